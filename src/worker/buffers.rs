//! The buffer cache of one worker: an idle session owns none, a busy one borrows.
//!
//! Two classes. *Small* ones hold a request's head while it may have to be sent again; *large* ones hold what a
//! slow peer did not take. What a worker has too many of goes to a common pool, from which all may take; what that
//! cannot hold is freed.

use crate::shared::buffers::CommonBuffers;
use std::sync::Arc;

/// Capacity of a fresh small buffer, in bytes.
const SMALL: usize = 2 << 10;
/// Capacity of a fresh large buffer, in bytes.
const LARGE: usize = 16 << 10;
/// A buffer that has grown beyond this is freed instead of kept.
const KEPT_MAX: usize = 32 << 10;
/// Small buffers that a worker keeps.
const SMALL_KEPT: usize = 256;
/// Large buffers that a worker keeps: 32 × 16 KiB.
const LARGE_KEPT: usize = 32;

/// One worker's buffers.
#[derive(Debug)]
pub(super) struct Buffers {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
    common: Arc<CommonBuffers>,
}

impl Buffers {
    /// An empty cache over a common pool.
    pub(super) fn new(common: Arc<CommonBuffers>) -> Buffers {
        Buffers {
            small: Vec::with_capacity(SMALL_KEPT),
            large: Vec::with_capacity(LARGE_KEPT),
            common,
        }
    }

    /// An empty buffer for a head.
    pub(super) fn small(&mut self) -> Vec<u8> {
        self.small.pop().unwrap_or_else(|| Vec::with_capacity(SMALL))
    }

    /// An empty buffer for a part of a body.
    pub(super) fn large(&mut self) -> Vec<u8> {
        let kept = self.large.pop().or_else(|| self.common.take());
        kept.unwrap_or_else(|| Vec::with_capacity(LARGE))
    }

    /// Takes a buffer back, whatever is in it.
    pub(super) fn give(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        match buffer.capacity() {
            0 => {}
            capacity if capacity > KEPT_MAX => {}
            capacity if capacity < LARGE => {
                if self.small.len() < SMALL_KEPT {
                    self.small.push(buffer);
                }
            }
            _ if self.large.len() < LARGE_KEPT => self.large.push(buffer),
            _ => self.common.give(buffer),
        }
    }

    /// Takes the buffer out of its place and takes it back.
    pub(super) fn reclaim(&mut self, place: &mut Vec<u8>) {
        if place.capacity() > 0 {
            self.give(std::mem::take(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surplus_goes_to_the_common_pool_and_comes_back() {
        let common = Arc::new(CommonBuffers::default());
        let mut here = Buffers::new(common.clone());
        let taken: Vec<_> = (0..LARGE_KEPT + 5).map(|_| here.large()).collect();
        taken.into_iter().for_each(|buffer| here.give(buffer));
        assert_eq!(here.large.len(), LARGE_KEPT);
        assert_eq!(common.len(), 5);
        let mut there = Buffers::new(common.clone());
        assert!(there.large().is_empty());
        assert_eq!(common.len(), 4);
    }

    #[test]
    fn a_buffer_that_grew_large_changes_its_class_or_is_freed() {
        let mut buffers = Buffers::new(Arc::default());
        let mut grown = buffers.small();
        grown.extend_from_slice(&[0; LARGE]);
        buffers.give(grown);
        assert_eq!((buffers.small.len(), buffers.large.len()), (0, 1));
        let mut huge = buffers.large();
        huge.extend_from_slice(&[0; KEPT_MAX + 1]);
        buffers.give(huge);
        assert_eq!(buffers.large.len(), 0);
    }
}
