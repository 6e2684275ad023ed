//! The surplus of all workers' buffer caches: empty buffers of 16 KiB that any worker may take.
//!
//! A worker comes here only when its own cache is empty or full, so the lock is seldom taken and held for one push or
//! pop. What the pool cannot hold is freed.

use crate::sync::Mutex;

/// Buffers that are kept: 256 × 16 KiB.
const KEPT: usize = 256;

/// The common pool of buffers.
#[derive(Debug, Default)]
pub struct CommonBuffers(Mutex<Vec<Vec<u8>>>);

impl CommonBuffers {
    /// An empty buffer, if there is one.
    pub fn take(&self) -> Option<Vec<u8>> {
        self.0.lock().pop()
    }

    /// Takes an empty buffer back.
    pub fn give(&self, buffer: Vec<u8>) {
        debug_assert!(buffer.is_empty(), "what is kept is empty");
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bound_is_freed() {
        let common = CommonBuffers::default();
        (0..KEPT + 3).for_each(|_| common.give(Vec::with_capacity(16)));
        assert_eq!(common.len(), KEPT);
        assert!(common.take().is_some());
        assert_eq!(common.len(), KEPT - 1);
    }
}
