//! The connections to one server that no request uses now: where they wait, and who may take them.
//!
//! ```text
//!            opened                      find, lend
//! (nothing) ───────► used by a worker ◄─────────────── parked in that worker's shard
//!                         │    ▲    └──────────────────►   │  ▲          │
//!                  closed │    │          release      take│  │put_back  │ purge, evict,
//!                         ▼    └───── by value             ▼  │          ▼ reserve, drain
//!                     (nothing)                           out ┴──────► (nothing)
//! ```
//!
//! - One shard per worker, each under its own lock (our difference to POOL-3). A worker locks its own; a sibling's it
//!   only tries. Nobody holds two at once, and under the lock nothing happens but list work.
//! - Parking moves the connection: who removes it owns it, and a [`Ticket`] is all that its last owner keeps. It
//!   stays registered in the poll of the worker that parked it, so an event may name a ticket whose connection is
//!   gone. Then [`Pool::take`] answers `None`: silence. Whoever removes a sibling's is told whose it was, to
//!   deregister it there ([`Found::Stolen`], [`Evicted`]).
//! - The numbers that decide are in [`Need`], one word for all workers; the lengths of a shard's collections are
//!   published beside its lock, so that a look at an empty shard takes no lock. What is written seldom, such as the
//!   place where the next take-over begins, is kept off the line that every request writes.
//!
//! | file | what |
//! |---|---|
//! | here | one worker and its own shard: park, lend, offer, take, drain |
//! | `search` | the whole search for a request, take-over included (POOL-20…25) |
//! | `closing` | purge and eviction (POOL-40, 50) |
//! | `total` | how many connections there are at all (POOL-51) |
//! | `taken`, `shard` | a connection with an event on it; the lock and what lies beside it |
//! | `occupied` | that lock, held by a simulation |

mod closing;
#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod history;
mod occupied;
mod search;
mod shard;
mod taken;
#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;
mod total;

use super::key::PoolKey;
use super::need::Need;
use super::parked::Shelf;
use crate::decide::reuse::{self, CloseReason, KeepRule, Present, Proven, Released, Wanted};
use crate::policy::WorkerId;
use shard::{Seldom, Shard};

pub use super::parked::{Busy, Ticket};
pub use closing::{Evicted, PurgeTimer};
pub use occupied::Occupied;
pub use search::Found;
pub use taken::Taken;
pub use total::{Exhausted, Total};

/// The parked connections of one server, in one shard per worker.
#[derive(Debug)]
pub struct Pool<C> {
    /// The counters that decide what is kept.
    pub need: Need,
    shards: Box<[Shard<C>]>,
    seldom: Box<Seldom>,
}

/// A released connection that is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<C> {
    /// The connection, still counted as used and the caller's to close.
    pub connection: C,
    /// Why.
    pub reason: CloseReason,
}

impl<C> Pool<C> {
    /// An empty pool for that many workers.
    pub fn new(workers: u16) -> Self {
        Pool {
            need: Need::new(),
            shards: (0..workers).map(|_| Shard::new()).collect(),
            seldom: Box::default(),
        }
    }

    /// Parks a connection whose request is over, or refuses it by the keep rule and the pool's limit (POOL-32, 34).
    /// Once parked it may be gone at any instant; if no timer of this worker runs for this server, it is time to arm
    /// one ([`Self::purge`]).
    pub fn release(
        &self,
        worker: WorkerId,
        key: &PoolKey,
        released: &Released,
        connection: C,
    ) -> Result<Ticket, Refused<C>> {
        if let Err(reason) = reuse::keep(released, &self.present(worker, released.figures.rule)) {
            return Err(Refused { connection, reason });
        }
        match released.figures.idle_max {
            Some(most) if !self.need.parking_below(most) => {
                let reason = CloseReason::Max;
                return Err(Refused { connection, reason });
            }
            Some(_) => {}
            None => self.need.parking(),
        }
        Ok(self.insert(worker, key, released.proven, connection))
    }

    /// Parks a connection that was counted as used, without asking: one that was opened in advance, or one for which
    /// [`reuse::keep`] was asked before.
    pub fn park(&self, worker: WorkerId, key: &PoolKey, proven: Proven, connection: C) -> Ticket {
        self.need.parking();
        self.insert(worker, key, proven, connection)
    }

    /// The newest fitting connection of the own shard (POOL-20), for a request. [`Self::find`] is the whole search.
    pub fn lend(&self, worker: WorkerId, key: &PoolKey, wanted: Wanted) -> Option<C> {
        let shard = self.shard(worker);
        if !shard.holds(wanted) {
            return None;
        }
        let connection = shard.change(|parked| parked.lend(key, wanted))?;
        self.need.lent();
        Some(connection)
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

    /// What that keep rule looks at, for that worker. Only the one that divides the room counts who uses the server:
    /// the number lies on a line that take-overs write.
    pub fn present(&self, worker: WorkerId, rule: KeepRule) -> Present {
        let counted = self.need.read();
        Present {
            own_idle: self.idle_by(worker),
            own_safe: self.safe_by(worker),
            idle: counted.idle,
            used: counted.used,
            need: counted.need,
            workers: match rule {
                KeepRule::Plain => 1,
                KeepRule::EqualShare => self.users(),
            },
        }
    }

    /// Workers that have parked a connection here in this period or in the one before.
    pub fn users(&self) -> u32 {
        self.seldom.users().min(u32::from(self.workers()))
    }

    /// All connections to the server, whatever they do.
    pub fn total(&self) -> &Total {
        &self.seldom.total
    }

    fn insert(&self, worker: WorkerId, key: &PoolKey, proven: Proven, connection: C) -> Ticket {
        let shard = self.shard(worker);
        if shard.begins_to_be_used() {
            self.seldom.one_more_user();
        }
        shard.change(|parked| parked.park(key, proven, connection))
    }

    fn shard(&self, worker: WorkerId) -> &Shard<C> {
        &self.shards[usize::from(worker.0)]
    }
}
