//! The rules of reuse: which idle connections a request may use, which are kept, and which are closed again.
//!
//! Values in, values out: the counters are read by [`Pool`](crate::shared::pool::Pool), and the answer names its
//! reason, because every open and every close of a server connection is counted by reason (POOL-71).
//!
//! | file | question | clauses |
//! |---|---|---|
//! | here | what may this request take? | POOL-11, 33, 50 |
//! | `search` | may siblings be asked, and in which order? | POOL-21…25 |
//! | `keep` | is a released connection parked or closed? | POOL-32, 53, 61 |
//! | `purge` | how many idle ones were too many? | POOL-40…44 |
//! | `figures` | what a plan may set for one server | |
//! | `reasons` | why was it opened, why closed? | POOL-71 |

mod figures;
mod keep;
mod purge;
mod reasons;
mod search;
#[cfg(test)]
mod tests;

pub use figures::{Figures, Wishes, share};
pub use keep::{KeepRule, Present, Released, keep, keep_private, reuses_left};
pub use purge::{Counted, Cut, period};
pub use reasons::{CloseReason, OpenReason};
pub use search::{Gate, Sharing, may_take_over, siblings};

use crate::policy::WishedSharing;

/// How server connections are shared between clients (`reuse`), the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Every connection is private to its client.
    Never,
    /// A client's first request opens its own; later ones may share.
    Safe,
    /// A client's first request may use a connection that has proven reusable.
    Aggressive,
    /// Any request may use any connection.
    Always,
}

/// Whether a policy may ask for more sharing than is configured (`reuse-override`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Override {
    /// It may only make reuse stricter.
    Refused,
    /// It may loosen it, too.
    Allowed,
}

/// A policy asked for a looser mode than it may. The configured one stays, and the caller counts the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looser;

impl From<WishedSharing> for Mode {
    fn from(wish: WishedSharing) -> Mode {
        match wish {
            WishedSharing::Never => Mode::Never,
            WishedSharing::Safe => Mode::Safe,
            WishedSharing::Aggressive => Mode::Aggressive,
            WishedSharing::Always => Mode::Always,
        }
    }
}

impl Mode {
    /// The mode for a request for which a policy wishes one: only downwards from `always` by `aggressive` and `safe`
    /// to `never`, unless the backend allows more.
    pub fn wished(self, wish: Mode, allowed: Override) -> Result<Mode, Looser> {
        match allowed {
            Override::Refused if wish > self => Err(Looser),
            Override::Refused | Override::Allowed => Ok(wish),
        }
    }
}

/// Whether a request may be sent again if its connection turns out dead (POOL-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retryable {
    /// Not the first request of its client connection, or the backend retries what a dead connection causes.
    Yes,
    /// The first request of its client connection.
    No,
}

/// What a released connection has shown so far (POOL-30: `is_safe`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proven {
    /// It carried one request: nobody knows whether the server keeps it.
    Once,
    /// It carried two requests or more.
    Safe,
}

impl Proven {
    /// What a connection of one stream at a time has shown after so many requests, the last one included.
    pub fn after(requests: u32) -> Self {
        if requests > 1 { Proven::Safe } else { Proven::Once }
    }
}

/// Which collections are searched, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Idle first, then safe: using an unproven one proves it, and spares the proven.
    Any,
    /// Safe first, then idle.
    SafeFirst,
    /// Safe only.
    SafeOnly,
}

/// What a request may take from the idle and safe collections; or why it must open a connection (POOL-11).
pub fn wanted(mode: Mode, retryable: Retryable) -> Result<Wanted, OpenReason> {
    match (mode, retryable) {
        (Mode::Never, _) => Err(OpenReason::Never),
        (_, Retryable::Yes) => Ok(Wanted::Any),
        (Mode::Safe, Retryable::No) => Err(OpenReason::FirstRequest),
        (Mode::Aggressive, Retryable::No) => Ok(Wanted::SafeOnly),
        (Mode::Always, Retryable::No) => Ok(Wanted::SafeFirst),
    }
}

/// Descriptors of the process (POOL-33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Open now.
    pub used: u32,
    /// From here on, a worker keeps one connection of a server and no more.
    pub low: u32,
    /// From here on, nothing is kept. Not below `low`.
    pub high: u32,
}

impl Descriptors {
    /// The thresholds for a descriptor limit of the process and two percentages of it, rounded up (POOL-33).
    pub fn new(used: u32, limit: u32, low_percent: u8, high_percent: u8) -> Self {
        let share = |percent: u8| (u64::from(limit) * u64::from(percent)).div_ceil(100) as u32;
        Descriptors {
            used,
            low: share(low_percent),
            high: share(high_percent),
        }
    }

    /// Whether a request first closes an idle connection of its server (POOL-50): more are open than `high`, by one
    /// at least. (At `high` itself nothing is kept any more, and nothing is evicted yet.)
    pub fn evict(&self) -> bool {
        self.used > self.high
    }
}
