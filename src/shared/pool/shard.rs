//! One worker's shard, and what the whole pool writes seldom: what lies on which cache line.
//!
//! ```text
//! Pool     need, pointers                      written by every request of every worker (with the server's slots)
//! Shard    lengths │ lock │ the collections    written by its owner, and by who takes over
//! Seldom   next_takeover, total, users, cut    written at a take-over, an open, a close, a purge
//! ```
//!
//! 128 bytes is two lines: processors fetch them in pairs.

use super::Total;
use crate::decide::reuse::{Cut, Wanted};
use crate::policy::WorkerId;
use crate::shared::parked::{Parked, Shelf};
use crate::sync::{AtomicBool, AtomicU32, Guard, Mutex, Ordering};

#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Shard<C> {
    lengths: [AtomicU32; 3],
    /// Whether its owner has parked here since the last purge of the server.
    used_lately: AtomicBool,
    parked: Mutex<Parked<C>>,
}

impl<C> Shard<C> {
    pub(super) fn new() -> Self {
        Shard {
            lengths: [0; 3].map(AtomicU32::new),
            used_lately: AtomicBool::new(false),
            parked: Mutex::new(Parked::new()),
        }
    }

    /// Changes the own shard. Its lock is busy only while somebody takes over.
    pub(super) fn change<T>(&self, step: impl FnOnce(&mut Parked<C>) -> T) -> T {
        let mut parked = self.parked.lock();
        let answer = step(&mut parked);
        self.publish(parked);
        answer
    }

    /// Changes a sibling's shard, or `None`: somebody is at it, which is not worth waiting for (POOL-23).
    pub(super) fn try_change<T>(&self, step: impl FnOnce(&mut Parked<C>) -> T) -> Option<T> {
        let mut parked = self.parked.try_lock()?;
        let answer = step(&mut parked);
        self.publish(parked);
        Some(answer)
    }

    /// Keeps everybody else off.
    pub(super) fn occupy(&self) -> Guard<'_, Parked<C>> {
        self.parked.lock()
    }

    pub(super) fn length(&self, shelf: Shelf) -> u32 {
        self.lengths[shelf as usize].load(Ordering::Relaxed)
    }

    /// Whether anything lies where `wanted` looks. *Nothing* is exact for the owner, since only the owner adds.
    pub(super) fn holds(&self, wanted: Wanted) -> bool {
        match wanted {
            Wanted::SafeOnly => self.length(Shelf::Safe) > 0,
            Wanted::Any | Wanted::SafeFirst => self.length(Shelf::Idle) > 0 || self.length(Shelf::Safe) > 0,
        }
    }

    /// The owner parks. `true`: for the first time since the last purge.
    pub(super) fn begins_to_be_used(&self) -> bool {
        let begins = !self.used_lately.load(Ordering::Relaxed);
        if begins {
            self.used_lately.store(true, Ordering::Relaxed);
        }
        begins
    }

    pub(super) fn forget_use(&self) {
        self.used_lately.store(false, Ordering::Relaxed);
    }

    /// Tells the lengths to those who look without the lock, then unlocks.
    fn publish(&self, parked: Guard<'_, Parked<C>>) {
        for shelf in [Shelf::Idle, Shelf::Safe, Shelf::Available] {
            self.lengths[shelf as usize].store(parked.count(shelf), Ordering::Relaxed);
        }
    }
}

/// What no usual request writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Seldom {
    pub(super) total: Total,
    /// The sibling that the next search begins with; past the last one, the first.
    next_takeover: AtomicU32,
    /// Workers that have parked in this period, and in the one before.
    users: [AtomicU32; 2],
    pub(super) ended: Mutex<Ended>,
}

/// The period that was ended last, and what it closes.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) period: Option<u64>,
    pub(super) cut: Cut,
}

impl Seldom {
    pub(super) fn next_takeover(&self) -> u16 {
        self.next_takeover.load(Ordering::Relaxed) as u16
    }

    /// The rotation goes on behind who gave (POOL-25).
    pub(super) fn taken_over_from(&self, giver: WorkerId) {
        self.next_takeover
            .store(u32::from(giver.0) + 1, Ordering::Relaxed);
    }

    /// An estimate: who parks while a period ends may be counted in both, or in one too late.
    pub(super) fn users(&self) -> u32 {
        let [now, before] = &self.users;
        now.load(Ordering::Relaxed).max(before.load(Ordering::Relaxed))
    }

    pub(super) fn one_more_user(&self) {
        self.users[0].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end_of_users_period(&self) {
        let counted = self.users[0].load(Ordering::Relaxed);
        self.users[0].fetch_sub(counted, Ordering::Relaxed);
        self.users[1].store(counted, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
pub(super) mod layout {
    use super::{Seldom, Shard};
    use crate::policy::WorkerId;
    use crate::shared::pool::Pool;
    use std::mem::{align_of, offset_of, size_of};

    /// Lines of two workers, and of requests and take-overs, are never the same.
    pub(in crate::shared::pool) fn check() {
        assert_eq!((align_of::<Shard<u64>>(), align_of::<Seldom>()), (128, 128));
        assert_eq!((size_of::<Shard<u64>>(), size_of::<Seldom>()), (256, 128));
        let beginning = [
            offset_of!(Shard<u64>, lengths),
            offset_of!(Shard<u64>, used_lately),
            offset_of!(Shard<u64>, parked),
        ];
        assert_eq!(
            beginning,
            [0, 12, 16],
            "who looks without the lock meets the lock's line"
        );
        let pool = Pool::<u64>::new(4);
        let lines: Vec<usize> = (0..4)
            .map(|worker| std::ptr::from_ref(pool.shard(WorkerId(worker))).addr() / 128)
            .collect();
        assert!(lines.windows(2).all(|pair| pair[1] - pair[0] == 2), "{lines:?}");
        let need = std::ptr::from_ref(&pool.need).addr() / 128;
        let seldom = std::ptr::from_ref(&pool.seldom.next_takeover).addr() / 128;
        assert_ne!(need, seldom);
        assert!(!lines.contains(&seldom) && !lines.contains(&need));
    }
}
