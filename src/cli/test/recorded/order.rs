//! Tells a log whose clock was set back, or whose parts were joined in the wrong order, from one that is only as
//! disordered as every log is.
//!
//! The lines of a running proxy stand in the order in which their requests ended, but for the turns of its workers; a log
//! that was sorted stands in the order in which they came. One of the two never goes back by much.

use super::line::Line;

/// What both orders may go back, in ms: more than workers and a slow disk ever disorder. A clock that is set back by less
/// is not noticed: the requests of these seconds come one upon the other.
const BACK_MAX: u64 = 10_000;

/// The latest moments so far, in ms since 1970.
#[derive(Default)]
pub(super) struct Order {
    came: u64,
    ended: u64,
}

/// A step back of the clock.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Back {
    pub(super) seconds: u64,
}

impl Order {
    pub(super) fn next(&mut self, line: &Line) -> Result<(), Back> {
        let came = line.at_unix_ms;
        let ended = came.saturating_add(line.timers.total.max(0) as u64 / 1000);
        let back = self
            .came
            .saturating_sub(came)
            .min(self.ended.saturating_sub(ended));
        if back > BACK_MAX {
            return Err(Back { seconds: back / 1000 });
        }
        self.came = self.came.max(came);
        self.ended = self.ended.max(ended);
        Ok(())
    }
}
