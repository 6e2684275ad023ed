//! A shard whose lock is held, as by a worker that is at it: what a simulation says *busy* with (POOL-23).

use super::Pool;
use crate::policy::WorkerId;
use crate::shared::parked::Parked;
use crate::sync::Guard;

/// The lock of one worker's shard; dropping it unlocks.
#[derive(Debug)]
#[must_use = "the shard is busy only as long as this lives"]
pub struct Occupied<'p, C>(#[expect(dead_code, reason = "held, not read")] Guard<'p, Parked<C>>);

impl<C> Pool<C> {
    /// Holds the lock of that worker's shard. While it is held, only a sibling's search and eviction may be tried, which
    /// do not wait for it; whatever waits for that lock waits for ever if the same thread holds it. For simulations and
    /// tests: production holds it for a step of list work.
    pub fn occupy(&self, worker: WorkerId) -> Occupied<'_, C> {
        Occupied(self.shard(worker).occupy())
    }
}
