//! Slots that were vacated by others: when a worker takes over or closes a connection that a sibling had parked, the
//! sibling's slot for it is told here, and freed by the sibling in its next turn.
//!
//! Invariant: a slot is told once, by whoever removed its connection from the pool, and until its owner takes it here,
//! the owner gives it to nobody else. The list's lock holds it; the flag beside it only spares the owner the lock, and
//! a flag that is seen late means a slot that is freed a turn later.

use crate::policy::WorkerId;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// Vacated slots of each worker.
#[derive(Debug)]
pub struct Strays<K>(Box<[Vacated<K>]>);

#[derive(Debug)]
#[repr(align(128))]
struct Vacated<K> {
    any: AtomicBool,
    slots: Mutex<Vec<K>>,
}

impl<K> Strays<K> {
    /// None yet, for that many workers.
    pub fn new(workers: u16) -> Self {
        let vacated = || Vacated {
            any: AtomicBool::new(false),
            slots: Mutex::new(Vec::new()),
        };
        Strays((0..workers).map(|_| vacated()).collect())
    }

    /// Tells a worker that the connection in its slot is gone.
    pub fn give(&self, owner: WorkerId, slot: K) {
        let vacated = &self.0[usize::from(owner.0)];
        vacated.slots.lock().push(slot);
        vacated.any.store(true, Ordering::Release);
    }

    /// Moves the worker's own vacated slots to the end of `into`; `false` if there was none.
    pub fn take(&self, owner: WorkerId, into: &mut Vec<K>) -> bool {
        let vacated = &self.0[usize::from(owner.0)];
        if !vacated.any.load(Ordering::Acquire) {
            return false;
        }
        let mut slots = vacated.slots.lock();
        vacated.any.store(false, Ordering::Relaxed);
        into.append(&mut slots);
        true
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_taken_once_by_its_owner() {
        let strays = Strays::new(2);
        let (zero, one) = (WorkerId(0), WorkerId(1));
        let mut taken = Vec::new();
        assert!(!strays.take(one, &mut taken));
        strays.give(one, 7);
        strays.give(one, 8);
        assert!(!strays.take(zero, &mut taken));
        assert!(strays.take(one, &mut taken));
        assert_eq!(taken, [7, 8]);
        assert!(!strays.take(one, &mut taken));
    }
}
