//! The search of a request for a parked connection, its own worker first and then the siblings (POOL-20…25).

use super::{Pool, PoolKey};
use crate::decide::reuse::{Gate, KeepRule, OpenReason, Wanted, may_take_over, siblings};
use crate::policy::WorkerId;
use std::cmp::Reverse;

/// A connection for a request, the caller's from now on and counted as used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<C> {
    /// It was parked by the searching worker.
    Own(C),
    /// It was parked by a sibling, in whose poll it still is: deregister it there, then register it here (TAKE-5).
    Stolen {
        /// The connection.
        connection: C,
        /// Whose it was.
        from: WorkerId,
    },
}

impl<C> Found<C> {
    /// The connection, wherever it was.
    pub fn into_connection(self) -> C {
        match self {
            Found::Own(connection) | Found::Stolen { connection, .. } => connection,
        }
    }
}

impl<C> Pool<C> {
    /// A parked connection for a request of `worker`, or why one must be opened (POOL-71).
    ///
    /// The own shard first: idle ones, then safe ones. Then the siblings, if the gate lets them be asked: in turn from
    /// where the last take-over ended, without a look at the locks of those that have nothing, and without waiting for
    /// the lock of any; under [`KeepRule::EqualShare`] the one that has most comes before them, so that parts even out. A first request under `always` looks for a safe one everywhere before it takes an idle one.
    ///
    /// A usual request takes one lock, its own shard's, and allocates nothing. Busy connections with free streams are
    /// not in here; they come before ([`Self::join`], POOL-10).
    pub fn find(
        &self,
        worker: WorkerId,
        key: &PoolKey,
        wanted: Wanted,
        gate: &Gate,
    ) -> Result<Found<C>, OpenReason> {
        if gate.figures.idle_max == Some(0) {
            return Err(OpenReason::None); // POOL-10: what is left from before the limit is not lent
        }
        match wanted {
            Wanted::Any | Wanted::SafeOnly => self.search(worker, key, wanted, gate),
            Wanted::SafeFirst => self
                .search(worker, key, Wanted::SafeOnly, gate)
                .or_else(|_| self.search(worker, key, Wanted::Any, gate)),
        }
    }

    fn search(
        &self,
        worker: WorkerId,
        key: &PoolKey,
        wanted: Wanted,
        gate: &Gate,
    ) -> Result<Found<C>, OpenReason> {
        match self.lend(worker, key, wanted) {
            Some(connection) => Ok(Found::Own(connection)),
            None => self.take_over(worker, key, wanted, gate),
        }
    }

    fn take_over(
        &self,
        worker: WorkerId,
        key: &PoolKey,
        wanted: Wanted,
        gate: &Gate,
    ) -> Result<Found<C>, OpenReason> {
        let idle = self.need.read().idle;
        if !self.siblings_hold(worker, wanted, idle) {
            return Err(self.why_not_own(worker, wanted, idle));
        }
        may_take_over(gate, idle)?;
        let mut why = OpenReason::Key;
        for sibling in self.givers(worker, wanted, gate.figures.rule) {
            let shard = self.shard(sibling);
            if !shard.holds(wanted) {
                continue;
            }
            match shard.try_change(|parked| parked.lend(key, wanted)) {
                Some(Some(connection)) => {
                    self.need.lent();
                    self.seldom.taken_over_from(sibling);
                    return Ok(Found::Stolen {
                        connection,
                        from: sibling,
                    });
                }
                Some(None) => {}
                None => why = OpenReason::Contended,
            }
        }
        Err(why)
    }

    /// Who is asked, in this order. Only the rule that evens parts out reads what all siblings have, a line of memory each.
    fn givers(&self, worker: WorkerId, wanted: Wanted, rule: KeepRule) -> impl Iterator<Item = WorkerId> {
        let in_turn = || siblings(worker, self.workers(), self.seldom.next_takeover());
        let richest = match rule {
            KeepRule::Plain => None,
            KeepRule::EqualShare => in_turn()
                .filter(|&sibling| self.shard(sibling).holds(wanted))
                .min_by_key(|&sibling| Reverse(self.parked_by(sibling))),
        };
        richest
            .into_iter()
            .chain(in_turn().filter(move |&sibling| Some(sibling) != richest))
    }

    /// Whether a sibling has anything of the kind. That any are parked elsewhere shows in the counters; only who
    /// wants proven ones looks at each sibling's lengths.
    fn siblings_hold(&self, worker: WorkerId, wanted: Wanted, idle: u32) -> bool {
        idle > self.parked_by(worker)
            && (wanted != Wanted::SafeOnly
                || siblings(worker, self.workers(), 0).any(|sibling| self.shard(sibling).holds(wanted)))
    }

    fn why_not_own(&self, worker: WorkerId, wanted: Wanted, idle: u32) -> OpenReason {
        if self.shard(worker).holds(wanted) {
            OpenReason::Key
        } else if wanted == Wanted::SafeOnly && idle > 0 {
            OpenReason::FirstRequest
        } else {
            OpenReason::None
        }
    }
}
