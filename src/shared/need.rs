//! How many connections one server needs: the decision counters of POOL-4 and POOL-6.
//!
//! `used` and `idle` are one atomic word, because they change together: lending and parking move one connection from
//! the one to the other, in one step. `max_used` and `need` only rise here, and rarely, so the usual request reads
//! them and writes nothing. They are estimates by intent; what is exact is that every connection is counted once.
//!
//! A parked connection is counted idle before anybody can find it and until after it was removed, so `idle` is never
//! below what the shards hold. A multiplexed connection that is offered stays counted as used, once.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

const USED: u64 = 1;
const IDLE: u64 = 1 << 32;

/// The decision counters of one server's connections.
#[derive(Debug)]
pub struct Need {
    used_and_idle: AtomicU64,
    max_used: AtomicU32,
    need: AtomicU32,
}

/// One reading of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Connections that carry a stream, or are being opened for one.
    pub used: u32,
    /// Connections parked idle or safe, all workers together.
    pub idle: u32,
    /// The most that were used at once since the last purge.
    pub max_used: u32,
    /// Estimated number of connections needed (`need_conn_est`), never below `max_used`.
    pub need: u32,
}

impl Need {
    /// Nothing used, nothing idle.
    pub fn new() -> Self {
        Need {
            used_and_idle: AtomicU64::new(0),
            max_used: AtomicU32::new(0),
            need: AtomicU32::new(0),
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
        let word = self.used_and_idle.load(Ordering::Relaxed);
        Counted {
            used: word as u32,
            idle: (word >> 32) as u32,
            max_used: self.max_used.load(Ordering::Relaxed),
            need: self.need.load(Ordering::Relaxed),
        }
    }

    /// Before the insertion into a shard.
    pub(super) fn parking(&self) {
        let before = self
            .used_and_idle
            .fetch_add(IDLE.wrapping_sub(USED), Ordering::Relaxed);
        debug_assert!(before as u32 > 0, "what is parked was used");
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

    fn raise(&self, word: u64) {
        let used = word as u32;
        if used > self.max_used.load(Ordering::Relaxed) {
            self.max_used.fetch_max(used, Ordering::Relaxed);
            self.need.fetch_max(used, Ordering::Relaxed);
        }
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
}
