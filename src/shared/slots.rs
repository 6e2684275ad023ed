//! Who holds a slot of one server, and how many wait for one: a single atomic word.
//!
//! ```text
//! bits 63…32  waiting   streams in the server's own queue
//! bits 31…0   served    streams that hold a slot (Q-3); compared with the limit, and with nothing else (Q-17)
//! ```
//!
//! - *Take* succeeds only below the limit **and with nobody waiting**: who comes later never overtakes (Q-5).
//! - *Release* lowers `served` only when nobody waits. Otherwise the slot is owed: it is held still, and the caller
//!   passes it on, `served` as it is.
//! - *Claim* takes a slot for those who wait, whoever they are, so that it can be passed on like one that was held.
//! - `waiting` changes only under the lock of the server's queue ([`Slots::enter`], [`Slots::leave`]). So a releaser
//!   that finds the queue empty once it has the lock finds `waiting` 0 too, and its second release lowers.
//! - The second look after enqueueing (Q-9) is part of *enter*: it answers with the word it made, and a waiter that
//!   sees a free slot there serves the queue itself. Release and enter are swaps of one word, so one of the two sees
//!   the other.
//!
//! All are sequentially consistent: `balancers` and `table` say why. The queue itself is not here.

use crate::sync::{AtomicU64, Ordering};

const SERVED: u64 = 1;
const WAITING: u64 = 1 << 32;

/// The slots of one server.
#[derive(Debug)]
pub struct Slots(AtomicU64);

/// What became of a slot that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an owed slot is lost if nobody serves the queue"]
pub enum Release {
    /// Nobody waits: `served` went down by one.
    Lowered,
    /// Somebody waits: the slot is still held, and the caller must serve the queue with it.
    Owed,
}

/// One value of the word: both numbers at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Streams that hold a slot.
    pub served: u32,
    /// Streams that wait in the server's own queue.
    pub waiting: u32,
}

impl Slots {
    /// Nobody served, nobody waiting.
    pub fn new() -> Self {
        Slots(AtomicU64::new(0))
    }

    /// Takes a slot if fewer than `limit` are held and nobody waits (Q-3, Q-5). No limit is `u32::MAX`.
    pub fn take(&self, limit: u32) -> bool {
        self.change(|at| (at.waiting == 0 && at.served < limit).then_some(SERVED))
            .is_some()
    }

    /// Gives a slot back. The caller must not touch the slot again unless it is [`Release::Owed`].
    pub fn release(&self) -> Release {
        match self.change(|at| (at.waiting == 0).then_some(SERVED.wrapping_neg())) {
            Some(_) => Release::Lowered,
            None => Release::Owed,
        }
    }

    /// One more waits. Under the queue's lock, beside the insertion; look at the answer for a free slot (Q-9).
    pub fn enter(&self) -> Occupancy {
        Occupancy::of(self.0.fetch_add(WAITING, Ordering::SeqCst).wrapping_add(WAITING))
    }

    /// One waits no more: it was given a slot that somebody held, or gave up, or was sent back. Under the queue's lock,
    /// beside the removal.
    pub fn leave(&self) {
        let before = Occupancy::of(self.0.fetch_sub(WAITING, Ordering::SeqCst));
        debug_assert!(before.waiting > 0, "who leaves has waited");
    }

    /// Takes a slot for those who wait, whoever they are: one is free below `limit`. Pass it on, or release it.
    pub fn claim(&self, limit: u32) -> bool {
        self.change(|at| (at.served < limit).then_some(SERVED)).is_some()
    }

    /// Gives a slot back that must not be passed on, because the limit was lowered below `served` (Q-15). `false`: that
    /// is not so, or not any more, and the slot is still held.
    #[must_use = "the slot is still held if it was not lowered"]
    pub fn lower_above(&self, limit: u32) -> bool {
        self.change(|at| (at.served > limit).then_some(SERVED.wrapping_neg()))
            .is_some()
    }

    /// Gives back a slot of a server that is gone, whoever waits.
    pub fn lower(&self) {
        let before = Occupancy::of(self.0.fetch_sub(SERVED, Ordering::SeqCst));
        debug_assert!(before.served > 0, "who lowers holds a slot");
    }

    /// Both numbers at one instant.
    pub fn occupancy(&self) -> Occupancy {
        Occupancy::of(self.0.load(Ordering::SeqCst))
    }

    /// Streams that hold a slot.
    pub fn served(&self) -> u32 {
        self.occupancy().served
    }

    /// Streams that wait in the server's own queue.
    pub fn waiting(&self) -> u32 {
        self.occupancy().waiting
    }

    /// Adds what `step` says for the present value, or stops with `None` where it says nothing.
    fn change(&self, step: impl Fn(Occupancy) -> Option<u64>) -> Option<Occupancy> {
        let mut word = self.0.load(Ordering::SeqCst);
        loop {
            let next = word.wrapping_add(step(Occupancy::of(word))?);
            match self
                .0
                .compare_exchange_weak(word, next, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return Some(Occupancy::of(next)),
                Err(now) => word = now,
            }
        }
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::new()
    }
}

impl Occupancy {
    fn of(word: u64) -> Self {
        Occupancy {
            served: word as u32,
            waiting: (word >> 32) as u32,
        }
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    fn at(served: u32, waiting: u32) -> Occupancy {
        Occupancy { served, waiting }
    }

    #[test]
    fn slots_end_at_the_limit() {
        let slots = Slots::new();
        assert!(!slots.take(0));
        assert!(slots.take(2) && slots.take(2));
        assert!(!slots.take(2), "full");
        assert_eq!(slots.release(), Release::Lowered);
        assert_eq!(slots.occupancy(), at(1, 0));
        assert!(slots.take(u32::MAX));
    }

    #[test]
    fn nobody_overtakes_a_waiter() {
        let slots = Slots::new();
        assert!(slots.take(1));
        assert_eq!(slots.enter(), at(1, 1));
        assert!(!slots.take(u32::MAX), "free slots, but one waits");
        assert_eq!(slots.release(), Release::Owed);
        assert_eq!(slots.occupancy(), at(1, 1), "an owed slot is still held");
        slots.leave();
        assert_eq!(slots.occupancy(), at(1, 0));
    }

    #[test]
    fn an_owed_slot_is_lowered_when_the_waiter_has_gone() {
        let slots = Slots::new();
        assert!(slots.take(1));
        slots.enter();
        assert_eq!(slots.release(), Release::Owed);
        slots.leave();
        assert_eq!(slots.release(), Release::Lowered);
        assert_eq!(slots.occupancy(), at(0, 0));
    }

    #[test]
    fn what_became_free_before_a_waiter_entered_is_claimed_for_it() {
        let slots = Slots::new();
        assert_eq!(slots.enter(), at(0, 1));
        assert!(!slots.claim(0));
        assert!(slots.claim(1) && !slots.claim(1));
        slots.leave();
        assert_eq!(slots.occupancy(), at(1, 0));
    }

    #[test]
    fn a_lowered_limit_is_reached_slot_by_slot() {
        let slots = Slots::new();
        assert!(slots.take(2) && slots.take(2));
        slots.enter();
        assert_eq!(slots.release(), Release::Owed);
        assert!(slots.lower_above(1));
        assert!(!slots.lower_above(1), "of two who would lower, one does");
        assert_eq!(slots.occupancy(), at(1, 1));
        slots.lower();
        assert_eq!(slots.occupancy(), at(0, 1), "whoever waits");
    }
}
