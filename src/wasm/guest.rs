//! What a store holds beside its guest: the current question as far as the guest may see it, what the guest has used up
//! of its allowance, and what it did wrong.
//!
//! Everything is owned: values are copied in before a call, because a store outlives the request. A mistake that the
//! guest need not notice is only noted here; the caller finds it after the call and refuses the answer.

use super::granted::Granted;
use super::measured::Measured;
use super::ticker::Overdue;
use crate::policy::{ATTRIBUTES_MAX, Asked, Attached, Edits, Fault, Journal, Level, Live, ServerIndex};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::{ResourceLimiter, UpdateDeadline};

/// Host calls within one call of a guest.
pub(super) const HOST_CALLS_MAX: u32 = 1024;
/// Lines that it may log of these.
pub(super) const LOGS_MAX: u32 = 16;
/// Bytes of a line that an operator reads; more are cut off.
const LINE_MAX: usize = 1024;
/// Elements of a table.
pub(super) const TABLE_MAX: usize = 20_000;

/// The data of a store.
pub(super) struct Guest {
    pub(super) who: Arc<Attached>,
    pub(super) memory: Memory,
    pub(super) request: Request,
    pub(super) edits: Edits,
    /// Whether this call may edit headers, and how many it declared.
    pub(super) editing: Option<u8>,
    pub(super) noted: Option<(Fault, Cow<'static, str>)>,
    pub(super) measured: Measured,
    pub(super) granted: Granted,
    overdue: Option<Overdue>,
    journal: Arc<dyn Journal>,
    live: Option<(Arc<dyn Live>, usize)>,
    calls: u32,
    logs: u32,
}

impl Guest {
    pub(super) fn new(who: Arc<Attached>, journal: Arc<dyn Journal>, memory_max: usize) -> Guest {
        Guest {
            who,
            memory: Memory {
                max: memory_max,
                held: 0,
                refused: false,
            },
            request: Request::default(),
            edits: Edits::default(),
            editing: None,
            noted: None,
            measured: Measured::default(),
            granted: Granted::default(),
            overdue: None,
            journal,
            live: None,
            calls: 0,
            logs: 0,
        }
    }

    /// Gives it a full allowance, before a call.
    pub(super) fn begin(&mut self) {
        self.calls = 0;
        self.logs = 0;
        self.noted = None;
        self.overdue = None;
        self.editing = None;
        self.measured.declaring = false;
        self.granted.begin();
        self.memory.refused = false;
    }

    /// Its time is over: what becomes of it.
    pub(super) fn overdue(&mut self) -> UpdateDeadline {
        match &mut self.overdue {
            None => self.overdue = Some(Overdue::begin()),
            Some(overdue) => {
                if overdue.is_over() {
                    return UpdateDeadline::Interrupt;
                }
            }
        }
        UpdateDeadline::Continue(1)
    }

    /// Counts a host call; an error cuts the guest.
    pub(super) fn enter(&mut self) -> wasmtime::Result<()> {
        self.calls += 1;
        if self.calls <= HOST_CALLS_MAX {
            return Ok(());
        }
        Err(self.cut(Fault::HostCalls, "more host calls than one call may make"))
    }

    /// Notes a mistake; the first one counts.
    pub(super) fn note(&mut self, fault: Fault, detail: impl Into<Cow<'static, str>>) {
        self.noted.get_or_insert_with(|| (fault, detail.into()));
    }

    /// Notes a mistake that ends the call.
    pub(super) fn cut(&mut self, fault: Fault, detail: impl Into<Cow<'static, str>>) -> wasmtime::Error {
        self.note(fault, detail);
        wasmtime::Error::msg("cut by the host")
    }

    /// Whether one more line may be written in this call.
    pub(super) fn may_log(&mut self) -> bool {
        self.logs += 1;
        self.logs <= LOGS_MAX
    }

    /// Writes a line, clean.
    pub(super) fn log(&self, level: Level, text: &str) {
        self.journal.said(&self.who, level, &clean(text));
    }

    /// The table that its indices mean from now on.
    pub(super) fn show(&mut self, live: Arc<dyn Live>, servers: usize) {
        self.measured.follow(&live, servers);
        self.live = Some((live, servers));
    }

    /// A live figure; −1 without such a server.
    pub(super) fn figure(&self, server: i32, read: impl Fn(&dyn Live, ServerIndex) -> u32) -> i32 {
        match &self.live {
            Some((live, servers)) if usize::try_from(server).is_ok_and(|at| at < *servers) => {
                number(read(&**live, ServerIndex(server as u16)))
            }
            _ => -1,
        }
    }

    /// A live figure of all servers.
    pub(super) fn column(&self, read: impl Fn(&dyn Live, ServerIndex) -> u32) -> Vec<i32> {
        let Some((live, servers)) = &self.live else {
            return Vec::new();
        };
        (0..*servers)
            .map(|at| number(read(&**live, ServerIndex(at as u16))))
            .collect()
    }
}

/// What a guest wrote, or had a part in, as an operator may see it: shortened and without control characters, which could
/// begin a line or command a terminal.
pub(super) fn clean(text: &str) -> String {
    let end = text.floor_char_boundary(LINE_MAX);
    let shown = |it: char| if it.is_control() { '?' } else { it };
    text[..end].chars().map(shown).collect()
}

/// As it crosses: never above 2³¹−1.
pub(super) fn number(figure: u32) -> i32 {
    i32::try_from(figure).unwrap_or(i32::MAX)
}

/// What an answer may depend on beside what came with the call: a bit for each attribute, and one for all that is no part of
/// the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen(u32);

impl Seen {
    const BESIDE: u32 = 1 << ATTRIBUTES_MAX;

    /// The attributes that come with the call.
    pub(super) fn pushed() -> Seen {
        Seen(0b11)
    }

    pub(super) fn attribute(&mut self, at: usize) {
        self.0 |= 1 << at;
    }

    /// A draw or the time: the same request may be answered otherwise.
    pub(super) fn beside_the_request(&mut self) {
        self.0 |= Seen::BESIDE;
    }

    pub(super) fn is_repeatable(self) -> bool {
        self.0 & Seen::BESIDE == 0
    }

    pub(super) fn covers(self, other: Seen) -> bool {
        other.0 & !self.0 == 0
    }

    pub(super) fn add(&mut self, other: Seen) {
        self.0 |= other.0;
    }

    /// The attributes, by their index.
    pub(super) fn attributes(self) -> impl Iterator<Item = usize> {
        (0..ATTRIBUTES_MAX).filter(move |at| self.0 & (1 << at) != 0)
    }
}

/// The current request, as far as the guest may see it.
#[derive(Default)]
pub(super) struct Request {
    now: Duration,
    draws: u64,
    seen: Seen,
    text: Vec<u8>,
    values: Vec<Option<Range<usize>>>,
}

impl Request {
    /// Takes a copy of what was declared, for a guest that may read it.
    pub(super) fn show(&mut self, asked: &Asked<'_>, reads: bool) {
        self.at(asked.now, asked.seed);
        if !reads {
            return;
        }
        for value in asked.attributes {
            let begin = self.text.len();
            self.text.extend_from_slice(value.unwrap_or_default());
            self.values.push(value.map(|_| begin..self.text.len()));
        }
    }

    /// No request at all, only a time.
    pub(super) fn at(&mut self, now: Duration, seed: u64) {
        self.now = now;
        self.draws = seed;
        self.seen = Seen::default();
        self.text.clear();
        self.values.clear();
    }

    /// Keeps room for this many attributes, all absent.
    pub(super) fn declare(&mut self, attributes: usize) {
        self.values.clear();
        self.values.resize(attributes, None);
    }

    /// The time of the call, for who does not tell the guest.
    pub(super) fn time(&self) -> Duration {
        self.now
    }

    /// The value of an attribute; the error is one that was never declared.
    pub(super) fn attribute(&mut self, attribute: i32) -> Result<Option<&[u8]>, ()> {
        let at = usize::try_from(attribute).map_err(|_| ())?;
        let value = self.values.get(at).ok_or(())?;
        self.seen.attribute(at);
        Ok(value.clone().map(|range| &self.text[range]))
    }

    pub(super) fn now(&mut self) -> Duration {
        self.seen.beside_the_request();
        self.now
    }

    /// What the guest has looked at in this call.
    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    /// The next of the numbers that follow from the seed (SplitMix64).
    pub(super) fn random(&mut self) -> u64 {
        self.seen.beside_the_request();
        self.draws = self.draws.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.draws;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0…bound−1.
    pub(super) fn draw(&mut self, bound: i32) -> i32 {
        match u64::try_from(bound) {
            Ok(bound @ 1..) => (((self.random() >> 32) * bound) >> 32) as i32,
            _ => 0,
        }
    }
}

/// How much memory a guest may have, and whether it was refused more.
pub(super) struct Memory {
    max: usize,
    /// Bytes of all its memories.
    pub(super) held: usize,
    pub(super) refused: bool,
}

impl ResourceLimiter for Memory {
    fn memory_growing(&mut self, now: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired <= self.max;
        if fits {
            self.held += desired - now;
        }
        self.refused |= !fits;
        Ok(fits)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let fits = desired <= TABLE_MAX;
        self.refused |= !fits;
        Ok(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_those_declared() {
        let mut request = Request::default();
        let attributes = [Some(&b"ab"[..]), None, Some(b"")];
        let asked = Asked {
            now: Duration::ZERO,
            seed: 1,
            attributes: &attributes,
        };
        request.show(&asked, true);
        assert_eq!(request.attribute(0), Ok(Some(&b"ab"[..])));
        assert_eq!(request.attribute(1), Ok(None));
        assert_eq!(request.attribute(2), Ok(Some(&b""[..])));
        for undeclared in [3, -1] {
            assert_eq!(request.attribute(undeclared), Err(()), "{undeclared}");
        }
    }

    #[test]
    fn what_a_guest_wrote_commands_no_terminal() {
        assert_eq!(clean("a\nb\u{1b}[2J\u{9b}1m é"), "a?b?[2J?1m é");
        assert_eq!(clean(&"é".repeat(LINE_MAX)).len(), LINE_MAX);
        assert_eq!(clean(&format!("a{}", "é".repeat(LINE_MAX))).len(), LINE_MAX - 1);
    }

    #[test]
    fn draws_stay_below_their_bound() {
        let mut request = Request::default();
        request.at(Duration::ZERO, 7);
        assert_eq!((request.draw(0), request.draw(-5), request.draw(1)), (0, 0, 0));
        let drawn: Vec<i32> = (0..1000).map(|_| request.draw(10)).collect();
        assert!((0..10).all(|digit| drawn.contains(&digit)) && drawn.iter().all(|it| (0..10).contains(it)));
    }
}
