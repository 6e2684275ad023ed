//! What a policy is asked about a request that is about to wait, and what it may answer: plain data.
//!
//! In which order requests wait is one question ([`Standing`]), whether a request may wait at all another ([`Verdict`]).
//! Neither is asked about a request that finds a slot at once.

use super::ServerIndex;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The classes there are, the one that is served first in front.
pub const CLASSES: RangeInclusive<i16> = -2047..=2047;
/// By how much a policy may have a request stand later than it came, in ms; earlier if negative.
pub const OFFSETS: RangeInclusive<i32> = -524_287..=524_287;
/// The longest that a policy may tell a client to stay away.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// A request that is about to wait, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// For which server; `None` for whichever is free first. An index of the table that the policy was shown last.
    pub server: Option<ServerIndex>,
    /// Requests that wait there already.
    pub queued: u32,
    /// What it has without the policy.
    pub priority: Priority,
}

/// Where a request stands among those that wait. The default is where it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// One of [`CLASSES`]; the lowest is served first.
    pub class: i16,
    /// In µs, within [`OFFSETS`]: within its class it stands as if it had come so much later; earlier if negative.
    pub offset: i64,
}

/// In which order a request waits, and for how long. What is `None` is as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Where it stands.
    pub priority: Option<Priority>,
    /// The most that it may wait from now on.
    pub wait_max: Option<Duration>,
}

/// Whether a request may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may, if the queue has room.
    Accept {
        /// The most that it may wait from now on; `None` as configured.
        wait_max: Option<Duration>,
    },
    /// It is answered at once, and no server sees it.
    Reject {
        /// With what.
        with: Rejection,
        /// When it is worth another try, in whole seconds, at most [`RETRY_AFTER_MAX`]; `None` as for a full queue.
        retry_after: Option<Duration>,
    },
}

/// The answer to a request that may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// 429: its client asks too much.
    TooManyRequests,
    /// 503: there is too much of everything.
    Unavailable,
}

impl Rejection {
    /// The status of the answer.
    pub fn status(self) -> u16 {
        match self {
            Rejection::TooManyRequests => 429,
            Rejection::Unavailable => 503,
        }
    }
}
