//! The connections to one server that no request uses now: where they wait, and who may take them.
//!
//! ```text
//!            opened                    lend, try_lend
//! (nothing) ───────► used by a worker ◄─────────────── parked in that worker's shard
//!                         │    ▲    └──────────────────►   │  ▲          │
//!                  closed │    │            park       take│  │put_back  │ oldest, drain
//!                         ▼    └───── by value             ▼  │          ▼
//!                     (nothing)                           out ┴──────► (nothing)
//! ```
//!
//! - One shard per worker, each under its own lock (our difference to POOL-3). A worker locks its own; a sibling's it
//!   only tries ([`Pool::try_lend`]). Nobody holds two at once, and under the lock nothing happens but list work.
//! - Parking moves the connection: who removes it owns it, and a [`Ticket`] is all that its last owner keeps. It
//!   stays registered in the poll of the worker that parked it, so an event may name a ticket whose connection is
//!   gone. Then [`Pool::take`] answers `None`: silence.
//! - The numbers that decide are in [`Need`], one word for all workers; the lengths of a shard's collections are
//!   published beside its lock, so that a look at an empty shard takes no lock.

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;

use super::key::PoolKey;
use super::need::Need;
use super::parked::{Parked, Shelf};
use crate::decide::reuse::{OpenReason, Proven, Wanted};
use crate::policy::WorkerId;
use crate::sync::{AtomicU32, Guard, Mutex, Ordering};
use std::ops::{Deref, DerefMut};

pub use super::parked::{Busy, Ticket};

/// The parked connections of one server, in one shard per worker.
#[derive(Debug)]
pub struct Pool<C> {
    /// The counters that decide what is kept.
    pub need: Need,
    shards: Box<[Shard<C>]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Shard<C> {
    parked: Mutex<Parked<C>>,
    lengths: [AtomicU32; 3],
}

/// What a look into a sibling's shard found.
#[derive(Debug, PartialEq, Eq)]
pub enum Sibling<C> {
    /// A connection, the caller's from now on.
    Lent(C),
    /// Nothing that fits.
    Nothing,
    /// Somebody holds its lock: not worth waiting for (POOL-23).
    Contended,
}

impl<C> Pool<C> {
    /// An empty pool for that many workers.
    pub fn new(workers: u16) -> Self {
        Pool {
            need: Need::new(),
            shards: (0..workers).map(|_| Shard::new()).collect(),
        }
    }

    /// Parks a connection that was used (POOL-34). From here on it may be gone at any instant.
    pub fn park(&self, worker: WorkerId, key: &PoolKey, proven: Proven, connection: C) -> Ticket {
        self.need.parking();
        self.shard(worker)
            .change(|parked| parked.park(key, proven, connection))
    }

    /// The newest fitting connection of the own shard (POOL-20), for a request.
    pub fn lend(&self, worker: WorkerId, key: &PoolKey, wanted: Wanted) -> Option<C> {
        let shard = self.shard(worker);
        if shard.is_empty() {
            return None;
        }
        let connection = shard.change(|parked| parked.lend(key, wanted))?;
        self.need.lent();
        Some(connection)
    }

    /// The same from a sibling's shard, without waiting for its lock.
    pub fn try_lend(&self, sibling: WorkerId, key: &PoolKey, wanted: Wanted) -> Sibling<C> {
        let shard = self.shard(sibling);
        if shard.is_empty() {
            return Sibling::Nothing;
        }
        let Some(mut parked) = shard.parked.try_lock() else {
            return Sibling::Contended;
        };
        let found = parked.lend(key, wanted);
        shard.publish(parked);
        let Some(connection) = found else {
            return Sibling::Nothing;
        };
        self.need.lent();
        Sibling::Lent(connection)
    }

    /// Names a busy connection of this worker that has `streams` more to give, at least one (POOL-14). It stays
    /// counted as used.
    pub fn offer(&self, worker: WorkerId, key: &PoolKey, name: Busy, streams: u32) -> Ticket {
        debug_assert!(streams > 0, "a connection without free streams is not available");
        self.shard(worker)
            .change(|parked| parked.offer(key, name, streams))
    }

    /// One more stream of an own busy connection (POOL-10 b).
    pub fn join(&self, worker: WorkerId, key: &PoolKey) -> Option<Busy> {
        let shard = self.shard(worker);
        if shard.length(Shelf::Available) == 0 {
            return None;
        }
        shard.change(|parked| parked.join(key))
    }

    /// Takes back an offer; `false` if it was used up already.
    pub fn withdraw(&self, worker: WorkerId, ticket: Ticket) -> bool {
        self.shard(worker).change(|parked| parked.withdraw(ticket))
    }

    /// Takes a parked connection out of the own shard because of an event on it. `None`: it was lent or stolen.
    pub fn take(&self, worker: WorkerId, ticket: Ticket) -> Option<Taken<'_, C>> {
        let connection = self.shard(worker).change(|parked| parked.take(ticket))?;
        Some(Taken {
            pool: self,
            worker,
            ticket,
            connection: Some(connection),
        })
    }

    /// Removes the connection that was parked first in that shard (POOL-50), to be closed.
    pub fn oldest(&self, worker: WorkerId) -> Option<C> {
        let connection = self.shard(worker).change(Parked::oldest)?;
        self.need.dropped(1);
        Some(connection)
    }

    /// Removes all idle and safe connections of that shard (POOL-52), to be closed by the caller.
    pub fn drain(&self, worker: WorkerId, into: &mut Vec<C>) {
        let shard = self.shard(worker);
        into.reserve(self.parked_by(worker) as usize);
        let gone = shard.change(|parked| parked.drain(into));
        self.need.dropped(gone);
    }

    /// Connections of that worker that carried one request so far.
    pub fn idle_by(&self, worker: WorkerId) -> u32 {
        self.shard(worker).length(Shelf::Idle)
    }

    /// Connections of that worker that carried two requests or more.
    pub fn safe_by(&self, worker: WorkerId) -> u32 {
        self.shard(worker).length(Shelf::Safe)
    }

    /// Idle and safe connections of that worker (`idle_by_thread`).
    pub fn parked_by(&self, worker: WorkerId) -> u32 {
        self.idle_by(worker) + self.safe_by(worker)
    }

    /// Connections of all workers that carried one request so far (`idle_conn_cur`).
    pub fn idle(&self) -> u32 {
        self.shards.iter().map(|shard| shard.length(Shelf::Idle)).sum()
    }

    /// Connections of all workers that carried two requests or more (`safe_conn_cur`).
    pub fn safe(&self) -> u32 {
        self.shards.iter().map(|shard| shard.length(Shelf::Safe)).sum()
    }

    /// Number of shards.
    pub fn workers(&self) -> u16 {
        self.shards.len() as u16
    }

    /// Why that worker's own shard had nothing for a request that may take anything (POOL-71).
    pub fn why_nothing(&self, worker: WorkerId) -> OpenReason {
        if self.parked_by(worker) > 0 {
            OpenReason::Key
        } else if self.need.read().idle > 0 {
            OpenReason::SharingOff
        } else {
            OpenReason::None
        }
    }

    fn shard(&self, worker: WorkerId) -> &Shard<C> {
        &self.shards[usize::from(worker.0)]
    }
}

impl<C> Shard<C> {
    fn new() -> Self {
        Shard {
            parked: Mutex::new(Parked::new()),
            lengths: [0; 3].map(AtomicU32::new),
        }
    }

    fn change<T>(&self, step: impl FnOnce(&mut Parked<C>) -> T) -> T {
        let mut parked = self.parked.lock();
        let answer = step(&mut parked);
        self.publish(parked);
        answer
    }

    /// Tells the lengths to those who look without the lock, then unlocks.
    fn publish(&self, parked: Guard<'_, Parked<C>>) {
        for shelf in [Shelf::Idle, Shelf::Safe, Shelf::Available] {
            self.lengths[shelf as usize].store(parked.count(shelf), Ordering::Relaxed);
        }
    }

    fn length(&self, shelf: Shelf) -> u32 {
        self.lengths[shelf as usize].load(Ordering::Relaxed)
    }

    /// Exact for the owner as far as *empty* goes: only the owner adds.
    fn is_empty(&self) -> bool {
        self.length(Shelf::Idle) == 0 && self.length(Shelf::Safe) == 0
    }
}

/// A parked connection that its owner looks at because of an event. Its place is kept meanwhile, and it stays counted
/// as idle (POOL-5); nobody else can take it.
#[derive(Debug)]
#[must_use = "dropping it closes the connection"]
pub struct Taken<'p, C> {
    pool: &'p Pool<C>,
    worker: WorkerId,
    ticket: Ticket,
    connection: Option<C>,
}

impl<C> Taken<'_, C> {
    /// Puts it back in its old place, under its old ticket. `Some`: the pool was drained meanwhile, close it.
    #[must_use = "a connection without a place is closed by the caller"]
    pub fn put_back(mut self) -> Option<C> {
        let connection = self.connection.take()?;
        self.pool
            .shard(self.worker)
            .change(|parked| parked.put_back(self.ticket, connection))
            .err()
    }

    /// Removes it from the pool for good, to be closed.
    pub fn remove(mut self) -> C {
        self.give_up_place();
        self.connection.take().expect(STILL_HERE)
    }

    fn give_up_place(&self) {
        if self
            .pool
            .shard(self.worker)
            .change(|parked| parked.forget(self.ticket))
        {
            self.pool.need.dropped(1);
        }
    }
}

impl<C> Deref for Taken<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.connection.as_ref().expect(STILL_HERE)
    }
}

impl<C> DerefMut for Taken<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect(STILL_HERE)
    }
}

impl<C> Drop for Taken<'_, C> {
    fn drop(&mut self) {
        if self.connection.is_some() {
            self.give_up_place();
        }
    }
}

const STILL_HERE: &str = "only `put_back` and `remove` empty it, and they consume it";
