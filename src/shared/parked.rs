//! One shard of a pool: the connections that one worker has parked at one server. No lock and no atomic here;
//! [`Pool`](super::pool::Pool) puts its lock around it.
//!
//! Every connection stands in a slab. Two chains run through it:
//!
//! ```text
//! key ─► shelf idle       oldest ⇄ … ⇄ newest    carried one request so far (POOL-1)
//!     ├► shelf safe       oldest ⇄ … ⇄ newest    carried two or more
//!     └► shelf available  oldest ⇄ … ⇄ newest    busy in its owner, with free streams; only its name is here
//!        order            oldest ⇄ … ⇄ newest    idle and safe of all keys together: eviction
//! ```
//!
//! A slot is *vacant*, holds a *parked* connection, the name of a *busy* one, or is *out*: its owner looks at the
//! connection because of an event, and its place in both chains is kept for it (POOL-5). Whoever empties a slot
//! makes its ticket void: slots count generations.
//!
//! Every operation but one takes constant time, forgetting unused keys included (amortised), and none allocates once
//! the slab has grown to what is parked at most.

use super::key::PoolKey;
use crate::decide::reuse::{Proven, Wanted};
use keys::Keys;

mod keys;
#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;

/// The place of one parked connection. Void as soon as the connection is lent, stolen or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

/// The owner's own name for a busy connection that has free streams (its slot and generation in the owner's slab).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy(pub u64);

/// The three collections of POOL-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shelf {
    Idle,
    Safe,
    Available,
}

/// The connections of one worker at one server.
#[derive(Debug)]
pub(super) struct Parked<C> {
    places: Vec<Place<C>>,
    vacant: u32,
    order: List,
    keys: Keys,
    counts: [u32; 3],
}

#[derive(Debug)]
struct Place<C> {
    generation: u32,
    key: u32,
    shelf: Shelf,
    links: [Link; 2],
    content: Content<C>,
}

#[derive(Debug)]
enum Content<C> {
    Vacant,
    Parked(C),
    Out,
    Busy { name: Busy, streams: u32 },
}

/// The two chains that a place may be part of.
#[derive(Clone, Copy)]
enum Chain {
    Shelf = 0,
    Order = 1,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    oldest: u32,
    newest: u32,
}

impl<C> Parked<C> {
    pub(super) fn new() -> Self {
        Parked {
            places: Vec::new(),
            vacant: NONE,
            order: List::EMPTY,
            keys: Keys::default(),
            counts: [0; 3],
        }
    }

    /// Puts a free connection on its shelf, as the newest there and in the order of eviction.
    pub(super) fn park(&mut self, key: &PoolKey, proven: Proven, connection: C) -> Ticket {
        let shelf = match proven {
            Proven::Once => Shelf::Idle,
            Proven::Safe => Shelf::Safe,
        };
        let slot = self.occupy(key, shelf, Content::Parked(connection));
        self.append(Chain::Order, slot);
        self.ticket(slot)
    }

    /// The newest connection with this key, from the shelves and in the order that `wanted` names (POOL-11, 20).
    pub(super) fn lend(&mut self, key: &PoolKey, wanted: Wanted) -> Option<C> {
        let key = self.keys.find(key)?;
        let shelves: &[Shelf] = match wanted {
            Wanted::Any => &[Shelf::Idle, Shelf::Safe],
            Wanted::SafeFirst => &[Shelf::Safe, Shelf::Idle],
            Wanted::SafeOnly => &[Shelf::Safe],
        };
        let slot = shelves.iter().find_map(|&shelf| self.newest_parked(key, shelf))?;
        self.vacate(slot)
    }

    /// Names a busy connection that has `streams` more to give (POOL-14).
    pub(super) fn offer(&mut self, key: &PoolKey, name: Busy, streams: u32) -> Ticket {
        let slot = self.occupy(key, Shelf::Available, Content::Busy { name, streams });
        self.ticket(slot)
    }

    /// One stream of the newest busy connection with this key. With its last free stream it leaves the shelf
    /// (POOL-15).
    pub(super) fn join(&mut self, key: &PoolKey) -> Option<Busy> {
        let key = self.keys.find(key)?;
        let slot = self.keys.shelves(key)[Shelf::Available as usize].newest;
        let Content::Busy { name, streams } = &mut self.places.get_mut(slot as usize)?.content else {
            return None;
        };
        let name = *name;
        *streams -= 1;
        if *streams == 0 {
            self.vacate(slot);
        }
        Some(name)
    }

    /// Takes a busy connection's name off the shelf. `false`: it had left already.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> bool {
        let offered = self
            .place(ticket)
            .is_some_and(|place| place.shelf == Shelf::Available);
        if offered {
            self.vacate(ticket.slot);
        }
        offered
    }

    /// Takes a parked connection out because of an event on it; its place is kept.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<C> {
        let place = self.place(ticket)?;
        match std::mem::replace(&mut place.content, Content::Out) {
            Content::Parked(connection) => Some(connection),
            other => {
                place.content = other;
                None
            }
        }
    }

    /// Puts what was taken back where it was. `Err`: its place has gone meanwhile, and the connection is the
    /// caller's to close.
    pub(super) fn put_back(&mut self, ticket: Ticket, connection: C) -> Result<(), C> {
        match self.place(ticket) {
            Some(place) if matches!(place.content, Content::Out) => {
                place.content = Content::Parked(connection);
                Ok(())
            }
            _ => Err(connection),
        }
    }

    /// What was taken does not come back. `false`: its place had gone already.
    pub(super) fn forget(&mut self, ticket: Ticket) -> bool {
        let out = self
            .place(ticket)
            .is_some_and(|place| matches!(place.content, Content::Out));
        if out {
            self.vacate(ticket.slot);
        }
        out
    }

    /// The connection that was parked first, whatever its key.
    pub(super) fn oldest(&mut self) -> Option<C> {
        let mut slot = self.order.oldest;
        while let Some(place) = self.places.get(slot as usize) {
            if matches!(place.content, Content::Parked(_)) {
                return self.vacate(slot);
            }
            slot = place.links[Chain::Order as usize].newer;
        }
        None
    }

    /// The oldest of those that have proven nothing; the oldest of all if there is none (POOL-51). The one operation
    /// that walks: past the safe ones that are older than it.
    pub(super) fn oldest_unproven(&mut self) -> Option<C> {
        let mut slot = if self.count(Shelf::Idle) > 0 {
            self.order.oldest
        } else {
            NONE
        };
        while let Some(place) = self.places.get(slot as usize) {
            if place.shelf == Shelf::Idle && matches!(place.content, Content::Parked(_)) {
                return self.vacate(slot);
            }
            slot = place.links[Chain::Order as usize].newer;
        }
        self.oldest()
    }

    /// Removes every idle and safe connection, oldest first; places kept for what is out go too. Answers how many
    /// places went.
    pub(super) fn drain(&mut self, into: &mut Vec<C>) -> u32 {
        let mut gone = 0;
        while self.order.oldest != NONE {
            into.extend(self.vacate(self.order.oldest));
            gone += 1;
        }
        gone
    }

    pub(super) fn count(&self, shelf: Shelf) -> u32 {
        self.counts[shelf as usize]
    }

    fn place(&mut self, ticket: Ticket) -> Option<&mut Place<C>> {
        self.places
            .get_mut(ticket.slot as usize)
            .filter(|place| place.generation == ticket.generation)
    }

    fn ticket(&self, slot: u32) -> Ticket {
        Ticket {
            slot,
            generation: self.places[slot as usize].generation,
        }
    }

    /// The newest on a shelf that is not out just now (its owner has one out at a time).
    fn newest_parked(&mut self, key: u32, shelf: Shelf) -> Option<u32> {
        let mut slot = self.keys.shelves(key)[shelf as usize].newest;
        while let Some(place) = self.places.get(slot as usize) {
            if matches!(place.content, Content::Parked(_)) {
                return Some(slot);
            }
            slot = place.links[Chain::Shelf as usize].older;
        }
        None
    }

    fn occupy(&mut self, key: &PoolKey, shelf: Shelf, content: Content<C>) -> u32 {
        let key = self
            .keys
            .find(key)
            .unwrap_or_else(|| self.keys.learn(key, self.places.len()));
        let mut slot = self.vacant;
        match self.places.get_mut(slot as usize) {
            Some(place) => {
                self.vacant = place.links[Chain::Shelf as usize].newer;
                (place.key, place.shelf, place.content) = (key, shelf, content);
            }
            None => {
                slot = self.places.len() as u32;
                self.places.push(Place {
                    generation: 0,
                    key,
                    shelf,
                    links: [Link::NONE; 2],
                    content,
                });
            }
        }
        self.counts[shelf as usize] += 1;
        self.append(Chain::Shelf, slot);
        slot
    }

    /// Empties a slot and makes its ticket void.
    fn vacate(&mut self, slot: u32) -> Option<C> {
        self.unlink(Chain::Shelf, slot);
        let shelf = self.places[slot as usize].shelf;
        if shelf != Shelf::Available {
            self.unlink(Chain::Order, slot);
        }
        self.counts[shelf as usize] -= 1;
        let place = &mut self.places[slot as usize];
        place.generation = place.generation.wrapping_add(1);
        place.links[Chain::Shelf as usize].newer = self.vacant;
        self.vacant = slot;
        match std::mem::replace(&mut place.content, Content::Vacant) {
            Content::Parked(connection) => Some(connection),
            Content::Vacant | Content::Out | Content::Busy { .. } => None,
        }
    }

    fn append(&mut self, chain: Chain, slot: u32) {
        let newest = std::mem::replace(&mut self.list(chain, slot).newest, slot);
        self.places[slot as usize].links[chain as usize] = Link {
            older: newest,
            newer: NONE,
        };
        match self.places.get_mut(newest as usize) {
            Some(before) => before.links[chain as usize].newer = slot,
            None => self.list(chain, slot).oldest = slot,
        }
    }

    fn unlink(&mut self, chain: Chain, slot: u32) {
        let Link { older, newer } = self.places[slot as usize].links[chain as usize];
        match self.places.get_mut(older as usize) {
            Some(place) => place.links[chain as usize].newer = newer,
            None => self.list(chain, slot).oldest = newer,
        }
        match self.places.get_mut(newer as usize) {
            Some(place) => place.links[chain as usize].older = older,
            None => self.list(chain, slot).newest = older,
        }
    }

    fn list(&mut self, chain: Chain, slot: u32) -> &mut List {
        let place = &self.places[slot as usize];
        match chain {
            Chain::Order => &mut self.order,
            Chain::Shelf => &mut self.keys.shelves(place.key)[place.shelf as usize],
        }
    }
}

impl Link {
    const NONE: Link = Link {
        older: NONE,
        newer: NONE,
    };
}

impl List {
    const EMPTY: List = List {
        oldest: NONE,
        newest: NONE,
    };
}

/// The end of a chain, in both directions.
const NONE: u32 = u32::MAX;
