//! What a policy is asked while a request waits, and what it may answer: plain data.
//!
//! Whoever asks lends what the policy declared ([`super::Offers::attributes`]) as slices; nothing is kept of them. An
//! answer names things by index and has been checked against what exists.

use super::ServerIndex;
use super::measure::{Measure, Reading};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A request for which something is to be decided.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The time of the turn, from any fixed point that all threads share. Never goes back.
    pub now: Duration,
    /// Where the policy's draws for this request come from.
    pub seed: u64,
    /// The value of each attribute that the policy declared, in that order.
    pub attributes: &'a [Option<&'a [u8]>],
}

/// A request that is to be routed.
#[derive(Clone, Copy, Debug)]
pub struct RouteAsked<'a> {
    /// As for every question.
    pub asked: Asked<'a>,
    /// As sent.
    pub method: &'a [u8],
    /// In lower case, without port; empty if there is none.
    pub host: &'a [u8],
    /// As sent, without query.
    pub path: &'a [u8],
}

/// The servers of a backend, as a policy sees them. One is made for each table and shared by all workers.
#[derive(Clone)]
pub struct Shown {
    /// What changes with the table.
    pub columns: Arc<Columns>,
    /// What changes with every request.
    pub live: Arc<dyn Live>,
}

/// What changes seldom, indexed by [`ServerIndex`]. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The name in the configuration, or the address.
    pub names: Vec<String>,
    /// The value of the tag `zone`; empty without one.
    pub zones: Vec<String>,
    /// Effective weight, 0…4096.
    pub weights: Vec<i32>,
    /// [`State`] as a number.
    pub states: Vec<i32>,
    /// The most requests at once; −1 without a limit.
    pub limits: Vec<i32>,
    /// Smoothed time to the first byte of a response in µs; −1 while unknown.
    pub latencies: Vec<i32>,
}

impl Columns {
    /// Number of servers.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Whether a server takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum State {
    /// It does.
    Ready = 0,
    /// It finishes what it has.
    Draining = 1,
    /// The operator took it out.
    Maintenance = 2,
    /// Checks found it dead.
    Down = 3,
}

/// What changes with every request. Read by any thread at any time; a server that does not exist is never asked for.
pub trait Live: Send + Sync {
    /// Requests that it has.
    fn in_flight(&self, server: ServerIndex) -> u32;
    /// Requests that wait for it.
    fn queued(&self, server: ServerIndex) -> u32;
    /// Idle connections to it, of all workers.
    fn idle(&self, server: ServerIndex) -> u32;
    /// How these servers know a measure; `None` if none of them does.
    fn find(&self, _: &Measure) -> Option<Reading> {
        None
    }
    /// A measure that was found, as it is at `now`; `None` while it is unknown.
    fn measure(&self, _: ServerIndex, _: Reading, _now: Duration) -> Option<u32> {
        None
    }
}

/// One server, or two in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The preferred one.
    pub first: ServerIndex,
    /// Whom to ask if the first is full; `None`: wait for the first.
    pub second: Option<ServerIndex>,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// Who; `None` for no opinion.
    pub target: Option<Target>,
    /// How long the same answer may be given to requests that show the same values; zero: not at all.
    pub remember: Duration,
    /// Where it comes from.
    pub given: Given,
}

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The guest was asked.
    Asked,
    /// It had answered the same question before, and allowed that the answer be given again.
    Remembered,
}

/// Who answers a request, by its place in [`super::Setup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A backend.
    Backend(u16),
    /// A redirect.
    Redirect(u16),
    /// A fixed response.
    Respond(u16),
}

/// Changes to headers, in the order of their making. A worker keeps one and lends it to each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    list: Vec<Edit>,
    text: String,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Whose header.
    pub message: Message,
    /// Which one, by its place in [`super::Offers::headers`].
    pub header: u8,
    /// What is done to it.
    pub change: Change,
    value: Range<usize>,
}

/// Whose headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Those of the request.
    Request,
    /// Those of the response.
    Response,
}

/// What is done to a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All its fields are replaced by one.
    Set,
    /// A field is added.
    Append,
    /// All its fields are removed.
    Remove,
}

impl Edits {
    /// The changes, each with its value (empty for [`Change::Remove`]).
    pub fn iter(&self) -> impl Iterator<Item = (&Edit, &str)> {
        self.list
            .iter()
            .map(|edit| (edit, &self.text[edit.value.clone()]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds one. The caller has checked the value.
    pub fn push(&mut self, message: Message, header: u8, change: Change, value: &str) {
        let begin = self.text.len();
        self.text.push_str(value);
        let value = begin..self.text.len();
        self.list.push(Edit {
            message,
            header,
            change,
            value,
        });
    }

    /// Bytes of all values.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Becomes equal to another, in the room that there is.
    pub fn copy_from(&mut self, other: &Edits) {
        self.list.clone_from(&other.list);
        self.text.clone_from(&other.text);
    }

    /// Forgets all, keeps the room.
    pub fn clear(&mut self) {
        self.list.clear();
        self.text.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_keep_their_order_and_values() {
        let mut edits = Edits::default();
        edits.push(Message::Request, 1, Change::Set, "a");
        edits.push(Message::Response, 0, Change::Remove, "");
        edits.push(Message::Request, 1, Change::Append, "bc");
        let values: Vec<&str> = edits.iter().map(|(_, value)| value).collect();
        assert_eq!(values, ["a", "", "bc"]);
        edits.clear();
        assert!(edits.is_empty() && edits.iter().next().is_none());
    }
}
