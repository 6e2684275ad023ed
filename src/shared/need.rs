//! How many connections one server needs: the decision counters of POOL-4 and POOL-6.
//!
//! `used` and `idle` are one atomic word, because they change together: lending and parking move one connection from
//! the one to the other, in one step. So are `max_used` and `need`, of which the second is never below the first;
//! between two purges they only rise, and rarely, so the usual request reads them and writes nothing. They are
//! estimates by intent: a period that ends while `used` rises may begin with a maximum that lags behind. What is exact
//! is that every connection is counted once.
//!
//! A parked connection is counted idle before anybody can find it and until after it was removed, so `idle` is never
//! below what the shards hold. A multiplexed connection that is offered stays counted as used, once.

use crate::decide::reuse::{Cut, Figures};
use crate::sync::{AtomicU64, Ordering};

pub use crate::decide::reuse::Counted;

const USED: u64 = 1;
const IDLE: u64 = 1 << 32;

/// The decision counters of one server's connections.
#[derive(Debug)]
pub struct Need {
    used_and_idle: AtomicU64,
    /// `max_used` in the lower half, `need` in the upper one.
    estimates: AtomicU64,
}

impl Need {
    /// Nothing used, nothing idle.
    pub fn new() -> Self {
        Need {
            used_and_idle: AtomicU64::new(0),
            estimates: AtomicU64::new(0),
        }
    }

    /// A connection is being opened for a request.
    pub fn opened(&self) {
        self.raise(
            self.used_and_idle
                .fetch_add(USED, Ordering::Relaxed)
                .wrapping_add(USED),
        );
    }

    /// A connection that was used is closed instead of parked, or could not be opened.
    pub fn closed(&self) {
        let before = self.used_and_idle.fetch_sub(USED, Ordering::Relaxed);
        debug_assert!(before as u32 > 0, "what is closed was used");
    }

    /// All counters now.
    pub fn read(&self) -> Counted {
        let (word, estimates) = (
            self.used_and_idle.load(Ordering::Relaxed),
            self.estimates.load(Ordering::Relaxed),
        );
        Counted {
            used: word as u32,
            idle: (word >> 32) as u32,
            max_used: estimates as u32,
            need: (estimates >> 32) as u32,
        }
    }

    /// Before the insertion into a shard.
    pub(super) fn parking(&self) {
        let before = self
            .used_and_idle
            .fetch_add(IDLE.wrapping_sub(USED), Ordering::Relaxed);
        debug_assert!(before as u32 > 0, "what is parked was used");
    }

    /// The same if fewer than `most` are idle; else nothing changes (POOL-34).
    pub(super) fn parking_below(&self, most: u32) -> bool {
        let step =
            |word: u64| ((word >> 32) < u64::from(most)).then(|| word.wrapping_add(IDLE.wrapping_sub(USED)));
        self.used_and_idle
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, step)
            .is_ok()
    }

    /// After the removal from a shard, for a request (POOL-6).
    pub(super) fn lent(&self) {
        let step = USED.wrapping_sub(IDLE);
        self.raise(
            self.used_and_idle
                .fetch_add(step, Ordering::Relaxed)
                .wrapping_add(step),
        );
    }

    /// After the removal from a shard, to be closed.
    pub(super) fn dropped(&self, connections: u32) {
        self.used_and_idle
            .fetch_sub(IDLE * u64::from(connections), Ordering::Relaxed);
    }

    /// Ends a period: what is to be closed by these figures; then the need decays (POOL-40).
    pub(super) fn decay(&self, figures: &Figures) -> Cut {
        loop {
            let counted = self.read();
            let after = counted.decayed();
            if self.replace(counted, after.max_used, after.need) {
                return Cut::of(counted, figures);
            }
        }
    }

    fn raise(&self, word: u64) {
        let used = word as u32;
        loop {
            let counted = self.read();
            if used <= counted.max_used || self.replace(counted, used, counted.need.max(used)) {
                return;
            }
        }
    }

    /// Sets the estimates if they are still as they were read.
    fn replace(&self, read: Counted, max_used: u32, need: u32) -> bool {
        let word = |max_used, need| u64::from(max_used) | u64::from(need) << 32;
        self.estimates
            .compare_exchange(
                word(read.max_used, read.need),
                word(max_used, need),
                Ordering::Relaxed,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

impl Default for Need {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_counted_in_one_place() {
        let need = Need::new();
        need.opened();
        need.opened();
        assert_eq!(
            need.read(),
            Counted {
                used: 2,
                idle: 0,
                max_used: 2,
                need: 2
            }
        );
        need.parking();
        assert_eq!(
            need.read(),
            Counted {
                used: 1,
                idle: 1,
                max_used: 2,
                need: 2
            }
        );
        need.lent();
        need.closed();
        need.parking();
        need.dropped(1);
        assert_eq!(
            need.read(),
            Counted {
                used: 0,
                idle: 0,
                max_used: 2,
                need: 2
            }
        );
    }

    /// POOL-6: taking raises the maximum and the estimate, giving back lowers neither.
    #[test]
    fn the_maximum_stays() {
        let need = Need::new();
        for _ in 0..3 {
            need.opened();
        }
        for _ in 0..3 {
            need.parking();
        }
        need.lent();
        assert_eq!(
            need.read(),
            Counted {
                used: 1,
                idle: 2,
                max_used: 3,
                need: 3
            }
        );
    }

    /// POOL-34: the pool's limit is exact, and what it refuses stays used.
    #[test]
    fn parking_stops_at_the_limit() {
        let need = Need::new();
        (0..3).for_each(|_| need.opened());
        let parked = [2, 2, 2].map(|most| need.parking_below(most));
        assert_eq!(parked, [true, true, false]);
        assert_eq!((need.read().used, need.read().idle), (1, 2));
    }

    /// POOL-40: what is to go is decided before the need decays.
    #[test]
    fn a_period_ends_with_a_cut_and_a_decay() {
        let need = Need::new();
        (0..9).for_each(|_| need.opened());
        (0..8).for_each(|_| need.parking());
        let plain = Figures::default();
        let floor = Figures {
            need_floor: 8,
            ..plain
        };
        assert_eq!(need.decay(&plain).target(), 0, "nine were used");
        assert_eq!((need.read().max_used, need.read().need), (1, 9));
        assert_eq!(need.decay(&plain).target(), 0, "nine were needed");
        assert_eq!((need.read().max_used, need.read().need), (1, 5));
        assert_eq!(need.decay(&plain).target(), 2);
        assert_eq!(need.decay(&floor).target(), 1, "eight are needed anyway");
    }
}
