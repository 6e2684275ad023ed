//! How many connections to a server there are, whatever they do: opening, used, parked, private.
//!
//! Only `strict-maxconn` decides by it (POOL-51). It is counted always, so that the limit can come with a reload: one
//! step per connection opened and closed. A connection is counted from before its connect until after its close, so
//! what the server sees is never more.

use crate::sync::{AtomicU32, Ordering};

/// The number of connections to one server.
#[derive(Debug, Default)]
pub struct Total(AtomicU32);

/// No connection may be opened: all that there may be are there, and none could be closed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl Total {
    /// The number now.
    pub fn read(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// One is about to be opened, without a limit.
    pub fn opened(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One was closed, or could not be opened.
    pub fn closed(&self) {
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!(before > 0, "what is closed was opened");
    }

    /// One is about to be opened, if fewer than `most` are there. `Acquire` pairs with the `Release` of the close that
    /// made room: it has happened before this open begins.
    pub fn open_below(&self, most: u32) -> bool {
        let step = |total| (total < most).then_some(total + 1);
        self.0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, step)
            .is_ok()
    }
}
