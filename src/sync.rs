//! The synchronisation primitives of [`crate::shared`], in one place so that loom and shuttle can replace them.
//!
//! In the product a [`Mutex`] is parking_lot's and everything else is std's. With the feature `loom` or `shuttle`
//! the same names are the model checker's; such a build runs `tests/races.rs` and nothing else, because those
//! types work only inside a model.
//!
//! A [`Mutex`] here knows no poison. A panic while one is held would leave half a change for every other worker to
//! see, so it aborts the process; a panic in one session's step, outside every lock, ends that session only.

#[cfg(feature = "loom")]
use loom as primitives;
#[cfg(all(feature = "shuttle", not(feature = "loom")))]
use shuttle as primitives;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
use std as primitives;

pub use primitives::sync::Arc;
pub use primitives::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub use primitives::thread;
use std::ops::{Deref, DerefMut};

/// Stands between a sequentially consistent change and a sequentially consistent read of another place, where two threads
/// do this crosswise and one of them must see the other. In the product the two are in one order already; loom takes
/// them for acquire and release, so its models need the fence.
#[inline]
pub fn full_order() {
    #[cfg(feature = "loom")]
    primitives::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
use parking_lot as locks;
#[cfg(any(feature = "loom", feature = "shuttle"))]
use primitives::sync as locks;

/// Mutual exclusion between workers, held for a few dozen instructions: never across a system call, a log line, a
/// wake-up or a guest.
#[derive(Debug, Default)]
pub struct Mutex<T>(locks::Mutex<T>);

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub fn new(value: T) -> Self {
        Mutex(locks::Mutex::new(value))
    }

    /// Waits until nobody else holds it.
    pub fn lock(&self) -> Guard<'_, T> {
        #[cfg(any(feature = "loom", feature = "shuttle"))]
        let held = self.0.lock().expect("a model ends with the first panic");
        #[cfg(not(any(feature = "loom", feature = "shuttle")))]
        let held = self.0.lock();
        Guard::new(held)
    }

    /// Takes it if nobody holds it now.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        #[cfg(any(feature = "loom", feature = "shuttle"))]
        let held = self.0.try_lock().ok();
        #[cfg(not(any(feature = "loom", feature = "shuttle")))]
        let held = self.0.try_lock();
        held.map(Guard::new)
    }
}

/// A held [`Mutex`]; dropping it unlocks.
#[derive(Debug)]
pub struct Guard<'a, T> {
    held: locks::MutexGuard<'a, T>,
    #[cfg(not(any(feature = "loom", feature = "shuttle")))]
    panicking: bool,
}

impl<'a, T> Guard<'a, T> {
    fn new(held: locks::MutexGuard<'a, T>) -> Self {
        Guard {
            held,
            #[cfg(not(any(feature = "loom", feature = "shuttle")))]
            panicking: std::thread::panicking(),
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.held
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.held
    }
}

/// A lock taken while a session's panic unwinds (to give back what it held) is sound; one that the panic began in
/// is not.
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.panicking {
            std::process::abort();
        }
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_held_mutex_refuses_the_second() {
        let mutex = Mutex::new(1);
        let held = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(held);
        assert_eq!(*mutex.try_lock().unwrap(), 1);
    }

    #[test]
    fn a_panic_outside_the_lock_leaves_it_usable_while_unwinding() {
        struct GivesBack<'a>(&'a Mutex<u32>);
        impl Drop for GivesBack<'_> {
            fn drop(&mut self) {
                *self.0.lock() += 1;
            }
        }
        let mutex = Mutex::new(0);
        let step = catch_unwind(AssertUnwindSafe(|| {
            let _held = GivesBack(&mutex);
            panic!("a session's step");
        }));
        assert!(step.is_err());
        assert_eq!(*mutex.lock(), 1);
    }

    /// Runs itself again as a child process that panics under the lock.
    #[test]
    fn a_panic_under_the_lock_aborts_the_process() {
        const CHILD: &str = "FOREBAY_TEST_PANIC_UNDER_LOCK";
        if std::env::var_os(CHILD).is_some() {
            let mutex = Mutex::new(());
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let _held = mutex.lock();
                panic!("half a change");
            }));
            std::process::exit(0);
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "sync::tests::a_panic_under_the_lock_aborts_the_process",
            ])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(
            child.status.code(),
            None,
            "ended by a signal, not by exit: {child:?}"
        );
    }
}
