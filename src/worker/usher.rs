//! Asks about a request that is about to wait: where it stands, for how long it may wait, and whether at all.

use super::Worker;
use crate::net::{Key, Micros};
use crate::policy::ServerIndex;

/// A request that is about to wait, as it is without a policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct AboutToWait {
    /// For which server of the exchange's table; `None` for whichever is free first.
    pub(super) server: Option<ServerIndex>,
    /// Requests that wait there already.
    pub(super) queued: u32,
    /// Its route's `priority-class`.
    pub(super) class: i16,
    /// Its route's `priority-offset` in µs.
    pub(super) offset: i64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ushered {
    /// The lowest is served first.
    pub(super) class: i16,
    /// In µs: within its class it stands as if it had come so much later.
    pub(super) offset: i64,
    /// The most that it may wait from now on, beside `timeout-queue`; zero: not at all.
    pub(super) wait_max: Option<Micros>,
    /// Whether it may wait.
    pub(super) admission: Admission,
}

/// Whether a request may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may, if the queue has room.
    #[default]
    Accepted,
    /// It is answered with this status, 429 or 503.
    Rejected {
        status: u16,
        /// `Retry-After`; `None` as for a full queue.
        seconds: Option<u32>,
    },
}

impl Worker {
    /// What becomes of a request that is about to wait.
    pub(super) fn usher(&mut self, _exchange: Key, place: &AboutToWait) -> Ushered {
        Ushered {
            class: place.class,
            offset: place.offset,
            wait_max: None,
            admission: Admission::Accepted,
        }
    }
}
