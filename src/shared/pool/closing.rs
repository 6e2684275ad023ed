//! Which parked connections are closed before anybody asks for them: those beyond the need, once a period (POOL-40…45),
//! and the oldest when descriptors or places run out (POOL-50, 51).
//!
//! A period of a server is ended once, by the worker whose timer comes first in it: it decides how many go and lets the
//! need decay, under a small lock of its own. Every worker, that one too, then closes its part out of its own shard.
//! The pool hands connections out; closing them is the caller's, after every lock (POOL-42).

use super::{Exhausted, Pool};
use crate::decide::reuse::{Figures, siblings};
use crate::policy::WorkerId;
use crate::shared::parked::Parked;

/// A parked connection that was removed to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted<C> {
    /// The connection, counted nowhere any more but in [`Pool::total`].
    pub connection: C,
    /// Who had parked it: it is registered in that worker's poll.
    pub from: WorkerId,
}

/// Whether a worker's purge timer for a server runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the last idle connections never go if the timer stops before them (POOL-43)"]
pub enum PurgeTimer {
    /// Something is parked still: again after `pool-purge-delay`.
    RunsOn,
    /// The worker has nothing parked here; the next release arms it.
    Stops,
}

/// Looks for a place in which a connection can be opened, before that fails (POOL-51); so many are closed for it at most.
const ATTEMPTS_MAX: u32 = 3;

impl<C> Pool<C> {
    /// Moves those of the worker's own connections that its part of this period's cut is, oldest first, to the end of
    /// `into`, to be closed with the reason `purge`. `period` is [`reuse::period`](crate::decide::reuse::period) of the
    /// present; a worker calls once in each.
    pub fn purge(&self, worker: WorkerId, period: u64, figures: &Figures, into: &mut Vec<C>) -> PurgeTimer {
        let part = self.part_of_period(worker, period, figures);
        if part > 0 {
            into.reserve(part as usize);
            let before = into.len();
            self.shard(worker)
                .change(|parked| into.extend((0..part).map_while(|_| parked.oldest())));
            self.need.dropped((into.len() - before) as u32);
        }
        match self.parked_by(worker) {
            0 => PurgeTimer::Stops,
            _ => PurgeTimer::RunsOn,
        }
    }

    /// Removes the oldest parked connection of this server: of the own shard, else of the next sibling's that has one
    /// and whose lock is free (POOL-50), to be closed with the reason `evicted`.
    pub fn evict(&self, worker: WorkerId) -> Option<Evicted<C>> {
        self.remove_one(worker, Parked::oldest)
    }

    /// Counts a connection that is about to be opened, if fewer than `most` are there (POOL-51, `strict-maxconn`).
    /// Where they are not, idle ones are given to `close` one by one, which closes each before it returns; own ones
    /// first, unproven ones before proven ones. After `Ok` the caller opens, and calls [`Total::closed`](super::Total)
    /// once the connection is closed, as for any other.
    pub fn reserve(
        &self,
        worker: WorkerId,
        most: u32,
        mut close: impl FnMut(Evicted<C>),
    ) -> Result<(), Exhausted> {
        for _ in 0..ATTEMPTS_MAX {
            if self.total().open_below(most) {
                return Ok(());
            }
            match self.remove_one(worker, Parked::oldest_unproven) {
                Some(victim) => {
                    close(victim);
                    self.total().closed();
                }
                None if self.need.read().idle == 0 => return Err(Exhausted),
                None => {} // a sibling is at its shard, or looks at an event
            }
        }
        // What the last victim left may have gone to somebody else.
        if self.total().open_below(most) {
            Ok(())
        } else {
            Err(Exhausted)
        }
    }

    fn part_of_period(&self, worker: WorkerId, period: u64, figures: &Figures) -> u32 {
        let own = self.parked_by(worker);
        let mut ended = self.seldom.ended.lock();
        // One that lies far back is of another `pool-purge-delay`, set by a reload.
        if ended.period.is_none_or(|last| last < period || last > period + 1) {
            ended.period = Some(period);
            ended.cut = self.need.decay(figures);
            self.shards.iter().for_each(|shard| shard.forget_use());
            self.seldom.end_of_users_period();
        }
        ended.cut.part(own)
    }

    /// The own shard first, then the siblings that follow.
    fn remove_one(&self, worker: WorkerId, step: impl Fn(&mut Parked<C>) -> Option<C>) -> Option<Evicted<C>> {
        let own = || match self.parked_by(worker) {
            0 => None,
            _ => self.shard(worker).change(&step),
        };
        let of_sibling = |sibling: WorkerId| match self.parked_by(sibling) {
            0 => None,
            _ => self.shard(sibling).try_change(&step).flatten(),
        };
        let found = own().map(|connection| (connection, worker)).or_else(|| {
            siblings(worker, self.workers(), worker.0 + 1)
                .find_map(|sibling| of_sibling(sibling).map(|connection| (connection, sibling)))
        });
        let (connection, from) = found?;
        self.need.dropped(1);
        Some(Evicted { connection, from })
    }
}
