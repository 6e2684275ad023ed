//! One wake-up for a burst of messages.
//!
//! A sender pushes its message and then [rings](Bell::ring); only who rings first since the last look wakes the
//! reader. The reader [silences](Bell::silence) the bell first and drains second.
//!
//! No message is left behind: both are swaps of one flag. If a sender's swap came before the reader's, the reader
//! sees its message and drains it; if it came after, it found the bell silent, and wakes the reader again. A plain
//! store would not do for the reader: it would not see what a sender pushed before it found the bell ringing.

use crate::sync::{AtomicBool, Ordering};

/// Whether somebody woke the reader since it last looked.
#[derive(Debug)]
pub struct Bell(AtomicBool);

impl Bell {
    /// A silent bell.
    pub fn new() -> Self {
        Bell(AtomicBool::new(false))
    }

    /// After pushing a message. `true`: it was silent, wake the reader.
    #[must_use = "nobody else wakes the reader"]
    pub fn ring(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// Before draining. `false`: nobody has rung, there is nothing to drain. (A ring of this very instant may be
    /// missed, and wakes the reader.)
    pub fn silence(&self) -> bool {
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::AcqRel)
    }
}

impl Default for Bell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn a_burst_wakes_once() {
        let bell = Bell::new();
        assert!(!bell.silence());
        assert_eq!([bell.ring(), bell.ring(), bell.ring()], [true, false, false]);
        assert!(bell.silence());
        assert!(bell.ring());
    }
}
