//! A slot for a request: choose, take or wait, be told, give up; and the operator who takes servers away.
//!
//! A wait is told to its worker as production does, by a message; it arrives at the same instant, and the worker does
//! what it was at first.

use super::agenda::Step;
use super::invariant::{Broken, Invariant};
use super::run::Run;
use crate::decide::balance::servers;
use crate::decide::settings::Micros;
use crate::policy::{Draw, ServerIndex, Table, WorkerId};
use crate::shared::queue::{Grants, Outcome, Rank, Waiter};
use crate::shared::table::{Admin, Waiting};
use slab::Slab;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A request without a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) worker: WorkerId,
    pub(super) client: u32,
    /// Which of the client's streams goes on when it is over.
    pub(super) stream: Option<u32>,
    /// The one server that it needs.
    tied: Option<ServerIndex>,
    came: Micros,
}

impl Asking {
    /// What a hash makes of it: all requests of a client have the same.
    fn number(&self) -> u64 {
        xxh3_64(&self.client.to_le_bytes())
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquired {
    Slot(ServerIndex),
    /// It will be told.
    Waits,
    /// There is no server.
    Nothing,
}

/// Why a worker ends a wait of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Expired,
    Left,
}

/// All waits that their workers have not heard the end of.
#[derive(Debug, Default)]
pub(super) struct Waits {
    places: Slab<Wait>,
    begun: u32,
}

#[derive(Debug)]
struct Wait {
    /// Tells it from others at its place.
    number: u32,
    asking: Asking,
    waiter: Arc<Waiter>,
    place: Option<ServerIndex>,
    rank: Option<Rank>,
    /// Its worker has ended it, but will be told of another end, too.
    is_over: bool,
}

impl Waits {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn begin(&mut self, asking: Asking, place: Option<ServerIndex>) -> (u64, Arc<Waiter>) {
        self.begun = self.begun.wrapping_add(1);
        let entry = self.places.vacant_entry();
        let token = u64::from(self.begun) << 32 | entry.key() as u64;
        let waiter = Arc::new(Waiter::new(asking.worker, token));
        entry.insert(Wait {
            number: self.begun,
            asking,
            waiter: waiter.clone(),
            place,
            rank: None,
            is_over: false,
        });
        (token, waiter)
    }

    fn get_mut(&mut self, token: u64) -> Option<&mut Wait> {
        let wait = self.places.get_mut(token as u32 as usize)?;
        (wait.number == (token >> 32) as u32).then_some(wait)
    }

    fn remove(&mut self, token: u64) -> Option<Wait> {
        self.get_mut(token)?;
        Some(self.places.remove(token as u32 as usize))
    }
}

impl Run<'_> {
    pub(super) fn asking(&mut self, worker: WorkerId, client: u32, stream: Option<u32>) -> Asking {
        let percent = self.cluster.waiting.tied;
        let is_tied = percent > 0 && self.dice.draw(100) < u32::from(percent);
        let tied = is_tied.then(|| ServerIndex((client as usize % self.cluster.servers.len()) as u16));
        Asking {
            worker,
            client,
            stream,
            tied,
            came: self.now,
        }
    }

    /// A slot, or a place in a queue (Q-5…8).
    pub(super) fn acquire(&mut self, asking: Asking) -> Result<Acquired, Broken> {
        let mut grants = Grants::new();
        self.table.arrive(&mut grants);
        self.tell_waits(grants);
        let acquired = self.choose(asking)?;
        if acquired == Acquired::Nothing {
            self.table.depart();
        }
        Ok(acquired)
    }

    fn choose(&mut self, asking: Asking) -> Result<Acquired, Broken> {
        if !self.table.has_usable() {
            return Ok(Acquired::Nothing);
        }
        let tied = asking
            .tied
            .filter(|server| self.table.at(*server).state != Admin::Maint);
        let picked = match tied {
            Some(server) => Some(server),
            None if self.table.is_queued() && !self.table.ties(Some(asking.number())) => None,
            None => {
                let picked = self.table.pick_for(Some(asking.number()), None, &mut self.dice);
                picked.server
            }
        };
        let Some(server) = picked else {
            return self.wait(asking, None);
        };
        let taken = self.table.take(server);
        if !taken || tied.is_some() {
            self.table.changed(server);
        }
        if taken {
            self.check_slots(server)?;
            return Ok(Acquired::Slot(server));
        }
        self.wait(asking, Some(server))
    }

    fn wait(&mut self, asking: Asking, place: Option<ServerIndex>) -> Result<Acquired, Broken> {
        let (token, waiter) = self.waits.begin(asking, place);
        let mut grants = Grants::new();
        let waiting = self
            .table
            .wait(place, waiter, (0, asking.came as i64), &mut grants);
        self.tell_waits(grants);
        match waiting {
            Waiting::Queued { rank, .. } => {
                self.waits.get_mut(token).expect("it has begun").rank = Some(rank);
                self.tally.waited += 1;
                self.agenda.enter(
                    asking.came + self.cluster.waiting.timeout,
                    asking.worker,
                    Step::Expired(token),
                );
                if let Some(patience) = self.cluster.waiting.leaves_after {
                    let at = self.now + self.dice.time(patience);
                    self.agenda.enter(at, asking.worker, Step::Left(token));
                }
                Ok(Acquired::Waits)
            }
            Waiting::Full => {
                self.waits.remove(token);
                self.choose_freely(asking)
            }
            Waiting::Closed => {
                let seen = format!("{place:?} is closed in the table that is in force");
                Err(self.broken((Invariant::WaitsEndOnce, seen)))
            }
        }
    }

    /// The queue of the server that it wanted is full.
    fn choose_freely(&mut self, asking: Asking) -> Result<Acquired, Broken> {
        match asking.tied {
            Some(_) => self.choose(Asking { tied: None, ..asking }),
            None => self.wait(asking, None),
        }
    }

    /// A wait has ended.
    pub(super) fn told(&mut self, token: u64) -> Result<Micros, Broken> {
        let Some(wait) = self.waits.remove(token) else {
            let seen = format!("wait {token:x} is told of, but it is over");
            return Err(self.broken((Invariant::WaitsEndOnce, seen)));
        };
        if wait.is_over {
            return Ok(0);
        }
        let cost = self.cluster.costs.grant;
        match wait.waiter.outcome() {
            Some(Outcome::Granted(granted)) => {
                self.check_slots(granted.near)?;
                self.report.delays.add(self.now - wait.asking.came);
                self.send(wait.asking, granted.near, cost)
            }
            Some(Outcome::SentBack) => {
                self.tally.sent_back += 1;
                match self.choose(wait.asking)? {
                    Acquired::Slot(server) => self.send(wait.asking, server, cost),
                    Acquired::Waits => Ok(cost),
                    Acquired::Nothing => {
                        self.table.depart();
                        Ok(self.refuse(wait.asking, cost))
                    }
                }
            }
            outcome => {
                let seen = format!("wait {token:x} is told of with {outcome:?}");
                Err(self.broken((Invariant::WaitsEndOnce, seen)))
            }
        }
    }

    /// A worker ends a wait of its own; a slot that it was granted at that instant goes on to the next.
    pub(super) fn end_wait(&mut self, token: u64, why: Ended) -> Result<Micros, Broken> {
        let Some(wait) = self.waits.get_mut(token).filter(|wait| !wait.is_over) else {
            return Ok(0);
        };
        wait.is_over = true;
        let (asking, waiter, place) = (wait.asking, wait.waiter.clone(), wait.place);
        let rank = wait.rank.expect("it waits");
        match self.table.cancel(place, rank, &waiter) {
            Ok(()) => {
                self.waits.remove(token);
                self.table.depart();
            }
            Err(Outcome::Granted(granted)) => self.leave(granted.near),
            Err(_) => self.table.depart(),
        }
        match why {
            Ended::Expired => self.tally.timed_out += 1,
            Ended::Left => self.tally.left += 1,
        }
        self.think(asking.worker, asking.stream, 1);
        Ok(0)
    }

    /// Gives a slot back; the request has left the backend.
    pub(super) fn leave(&mut self, server: ServerIndex) {
        let mut grants = Grants::new();
        self.table.depart();
        self.table.release(server, &mut grants);
        self.tell_waits(grants);
    }

    /// The operator's word about a server.
    pub(super) fn change(&mut self, change: u32) -> Result<(), Broken> {
        let change = self.cluster.changes[change as usize];
        let mut entries = self.table.entries.to_vec();
        entries[usize::from(change.server)].state = change.state;
        let next = Arc::new(self.table.next(self.table.algorithm(), entries));
        next.open();
        let before = std::mem::replace(&mut self.table, next);
        let mut grants = Grants::new();
        self.table.send_back(&before, &mut grants);
        self.table.look(&mut grants);
        self.tell_waits(grants);
        self.check_waiting()
    }

    fn tell_waits(&mut self, mut grants: Grants) {
        loop {
            for grant in grants.drain() {
                self.agenda.enter(self.now, grant.worker, Step::Told(grant.token));
            }
            if !grants.take_unfinished() {
                return;
            }
            self.table.look(&mut grants);
        }
    }

    fn check_slots(&self, server: ServerIndex) -> Result<(), Broken> {
        let (served, limit) = (self.table.served(server), self.table.limit(server));
        if served <= limit || self.table.at(server).queueing.minconn > 0 {
            return Ok(());
        }
        let seen = format!("server {} serves {served} of {limit}", server.0);
        Err(self.broken((Invariant::Slots, seen)))
    }

    pub(super) fn check_waiting(&self) -> Result<(), Broken> {
        let queued = self.table.queued();
        if self.waits.is_empty() && queued == 0 {
            return Ok(());
        }
        for server in servers(&*self.table) {
            let (served, limit) = (self.table.served(server), self.table.limit(server));
            let own = self.table.waiting(server);
            if served < limit && (own > 0 || queued > 0 && self.table.usable(server)) {
                let seen = format!(
                    "server {} serves {served} of {limit}, and {own} wait for it, {queued} for any",
                    server.0
                );
                return Err(self.broken((Invariant::NobodyWaitsBesideAFreeSlot, seen)));
            }
        }
        Ok(())
    }
}
