//! Why Forebay answered, or cut, instead of a server: every cause under one roof, to be counted and logged by name.

use super::exchange::Failure;
use crate::http1::{BodyError, Refusal};

/// One cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The client's head is not acceptable.
    Head(Refusal),
    /// The client's body is malformed.
    Body(BodyError),
    /// The head did not come in time (`timeout-http-request`).
    TooSlow,
    /// The client ended in the middle of a head or a body.
    Incomplete,
    /// The exchange with the server failed.
    Exchange(Failure),
}

const BODY: usize = Refusal::COUNT;
const TOO_SLOW: usize = BODY + BodyError::COUNT;
const INCOMPLETE: usize = TOO_SLOW + 1;
const EXCHANGE: usize = INCOMPLETE + 1;

impl Cause {
    /// Number of causes: the size of an array of counters.
    pub const COUNT: usize = EXCHANGE + Failure::COUNT;

    /// Every cause, in the order of [`Cause::index`].
    pub fn all() -> impl Iterator<Item = Cause> {
        let heads = Refusal::ALL.iter().map(|refusal| Cause::Head(*refusal));
        let bodies = BodyError::ALL.iter().map(|error| Cause::Body(*error));
        let exchanges = Failure::ALL.iter().map(|failure| Cause::Exchange(*failure));
        heads
            .chain(bodies)
            .chain([Cause::TooSlow, Cause::Incomplete])
            .chain(exchanges)
    }

    /// Its place in an array of counters.
    pub fn index(self) -> usize {
        match self {
            Cause::Head(refusal) => refusal.index(),
            Cause::Body(error) => BODY + error.index(),
            Cause::TooSlow => TOO_SLOW,
            Cause::Incomplete => INCOMPLETE,
            Cause::Exchange(failure) => EXCHANGE + failure.index(),
        }
    }

    /// Its name in metrics and logs, in snake case.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Head(refusal) => refusal.reason(),
            Cause::Body(error) => error.reason(),
            Cause::TooSlow => "request_timeout",
            Cause::Incomplete => "incomplete_request",
            Cause::Exchange(failure) => failure.word(),
        }
    }

    /// The status of our answer, where one can be given.
    pub fn status(self) -> u16 {
        match self {
            Cause::Head(refusal) => refusal.status(),
            Cause::Body(_) | Cause::Incomplete => 400,
            Cause::TooSlow => 408,
            Cause::Exchange(failure) => failure.status(),
        }
    }

    /// Who ended it and in which phase (LG-3).
    pub fn termination(self) -> [u8; 2] {
        match self {
            Cause::Head(_) | Cause::Body(_) => *b"PR",
            Cause::TooSlow => *b"cR",
            Cause::Incomplete => *b"CR",
            Cause::Exchange(failure) => failure.termination(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_place_and_a_word_of_its_own() {
        let places: Vec<usize> = Cause::all().map(Cause::index).collect();
        assert_eq!(places, (0..Cause::COUNT).collect::<Vec<_>>());
        let mut words: Vec<&str> = Cause::all().map(Cause::word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Cause::COUNT);
    }
}
