//! A hash of the request chooses: the same key goes to the same server (LB-40…43).
//!
//! ```text
//! consistent   ──•─a──•─c─────•─b──x─•─a───   a ring of 2³² places; each server has points in proportion to its weight;
//!                                  └─→ a      a key x goes to the nearest point, before or after
//! map-based    [ a a a | b b | c ]            a table in proportion to weights; a key goes to place x mod its length
//! ```
//!
//! From there on along the ring, or the table, whoever may not have it is passed over: the server to avoid (LB-3), one
//! that has its part of a bounded load (LB-43), one that is full where affinity ends there. On a ring, a server that
//! comes or goes takes or leaves only its own keys (AC-44); in a table nearly all keys move. Points come from the
//! server's name or address, so that neither its place in the file nor the file of another proxy matters.
//!
//! Made with the table and never changed: a pick takes no lock. With bounded load it reads what all servers serve.

mod layout;

use super::servers;
use crate::policy::{ServerIndex, Table};
use layout::Layout;
use std::ops::ControlFlow;

/// How a backend chooses by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    /// How numbers are mapped to servers (`type`).
    pub mapping: Mapping,
    /// The most that a server may have, in percent of its part of the load, above 100 (`bound`).
    pub bound: Option<u16>,
    /// Until when a key stays with its server (`affinity`).
    pub affinity: Affinity,
    /// Who chooses for a request without a key (`else`).
    pub otherwise: Otherwise,
}

/// How numbers are mapped to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// A ring with points (LB-42).
    Consistent,
    /// A table by weight (LB-41).
    Map,
}

/// Until when a key stays with its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// As long as the server is usable: its requests wait for it.
    Always,
    /// Until it is full: then the next one along the way.
    Maxconn,
    /// Until its queue is full, too.
    Maxqueue,
}

/// An algorithm that needs no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// The least loaded of so many draws.
    Random(u8),
    /// Smooth weighted rotation.
    RoundRobin,
    /// The fewest in flight per weight.
    LeastConn,
    /// The first with a free slot.
    First,
}

/// One server of the table, as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// A number that is the server's own, from its name or address.
    pub key: u64,
    /// Its effective weight; 0 for one that is not usable.
    pub weight: u32,
}

/// The servers of one table along the way.
#[derive(Clone, Debug)]
pub struct Hashed {
    hash: Hash,
    seats: Box<[Seat]>,
    /// Usable servers by key: the order in which they share what does not divide.
    members: Box<[Member]>,
    /// Sum of the weights of all members.
    total: u32,
    layout: Layout,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    server: ServerIndex,
    key: u64,
    weight: u32,
    /// Sum of the weights before it.
    before: u32,
}

impl Hashed {
    /// The way for these servers, in table order.
    pub fn new(hash: Hash, seats: Vec<Seat>) -> Hashed {
        let mut members: Vec<_> = seats
            .iter()
            .zip(0..)
            .filter(|(seat, _)| seat.weight > 0)
            .map(|(seat, at)| Member {
                server: ServerIndex(at),
                key: seat.key,
                weight: seat.weight,
                before: 0,
            })
            .collect();
        members.sort_unstable_by_key(|member| (member.key, member.server));
        let mut total = 0;
        for member in &mut members {
            member.before = total;
            total += member.weight;
        }
        Hashed {
            layout: Layout::new(hash.mapping, &members),
            hash,
            seats: seats.into(),
            members: members.into(),
            total,
        }
    }

    /// How it was to choose.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Whether it was made of this: then it can go on in the next table.
    pub fn is_of(&self, hash: Hash, seats: &[Seat]) -> bool {
        self.hash == hash && *self.seats == *seats
    }

    /// The server for a number. Nothing if affinity ends at a limit and all have reached it, or if none is usable.
    pub fn pick(&self, number: u64, table: &impl Table, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let mut total = None;
        let within = |member: &Member| self.is_within(member, table, &mut total);
        let other = |server| Some(server) != avoid && self.has_room(server, table);
        let anyone = || self.search(number, other, |_| true);
        self.search(number, other, within)
            // Only the avoided one is within its bound.
            .or_else(|| self.hash.bound.and_then(|_| anyone()))
            .or_else(|| {
                let known = |server: &ServerIndex| self.members.iter().any(|member| member.server == *server);
                avoid.filter(|server| known(server) && self.has_room(*server, table))
            })
    }

    /// The first along the way that is good and within; after a while of points, each server once.
    fn search(
        &self,
        number: u64,
        good: impl Fn(ServerIndex) -> bool,
        mut within: impl FnMut(&Member) -> bool,
    ) -> Option<ServerIndex> {
        let mut look = |member: &Member| match good(member.server) && within(member) {
            true => ControlFlow::Break(member.server),
            false => ControlFlow::Continue(()),
        };
        let looks = self.members.len() * LOOKS;
        let along = self
            .layout
            .walk(number, looks, |at| look(&self.members[usize::from(at)]));
        along.or_else(|| self.members.iter().try_for_each(look).break_value())
    }

    /// Whether one more is within its part of a bounded load (LB-43); everybody may have one.
    fn is_within(&self, member: &Member, table: &impl Table, total: &mut Option<u64>) -> bool {
        let Some(bound) = self.hash.bound else { return true };
        let served = table.served(member.server);
        served == 0 || {
            let total = *total.get_or_insert_with(|| self.served(table));
            served < self.allowed(member, bound, total)
        }
    }

    fn has_room(&self, server: ServerIndex, table: &impl Table) -> bool {
        match self.hash.affinity {
            Affinity::Always => true,
            Affinity::Maxconn => !table.saturated(server),
            Affinity::Maxqueue => {
                let has_place = |most| table.waiting(server) < most;
                !table.saturated(server) || table.queue_max(server).is_none_or(has_place)
            }
        }
    }

    fn served(&self, table: &impl Table) -> u64 {
        let served = |member: &Member| u64::from(table.served(member.server));
        self.members.iter().map(served).sum()
    }

    /// The slots of a server when all serve `total` (LB-43): its part of ⌈(total + 1) × bound⌉, cut so that the parts
    /// sum up exactly; at least 1.
    fn allowed(&self, member: &Member, bound: u16, total: u64) -> u32 {
        let all = ((total + 1) * u64::from(bound)).div_ceil(100);
        let until = |weights: u32| all * u64::from(weights) / u64::from(self.total);
        let part = until(member.before + member.weight) - until(member.before);
        u32::try_from(part).unwrap_or(u32::MAX).max(1)
    }
}

/// Points that are looked at along the way, for each server, before each server is looked at once.
const LOOKS: usize = 8;

/// The seats of a table in order, for tests and for whoever has only a table.
pub fn seats(table: &impl Table, key: impl Fn(ServerIndex) -> u64) -> Vec<Seat> {
    let weight = |server| {
        if table.usable(server) {
            table.weight(server)
        } else {
            0
        }
    };
    servers(table)
        .map(|server| Seat {
            key: key(server),
            weight: weight(server),
        })
        .collect()
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;
