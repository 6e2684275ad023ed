//! One line of the log as read, whatever its form.

use super::skipped::Why;
use crate::observe::record::{Reuse, Timers};
use std::net::SocketAddr;

/// A line; texts are empty where there was none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at_unix_ms: u64,
    pub(super) client: Option<SocketAddr>,
    pub(super) listener: String,
    pub(super) backend: String,
    pub(super) server: String,
    pub(super) method: String,
    pub(super) host: String,
    pub(super) target: String,
    pub(super) status: u16,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) timers: Timers,
    pub(super) retries: u16,
    pub(super) end: [u8; 2],
    pub(super) reuse: Reuse,
}

/// A line, or why there is none.
pub(super) type Read = Result<Line, (Why, String)>;

/// What is wrong with a field.
pub(super) fn misread(what: impl Into<String>) -> (Why, String) {
    (Why::Misread, what.into())
}

/// The word of the log as where a connection came from.
pub(super) fn reuse(word: &str) -> Option<Reuse> {
    Reuse::ALL.iter().copied().find(|reuse| reuse.word() == word)
}

/// Two letters of LG-3.
pub(super) fn end(text: &str) -> Option<[u8; 2]> {
    text.as_bytes().try_into().ok()
}

impl Line {
    /// A request that a replay can send, or why not.
    pub(super) fn sendable(self) -> Read {
        if self.method.is_empty() || self.target.is_empty() {
            return Err((Why::Request, format!("status {}", self.status)));
        }
        Ok(self)
    }
}
