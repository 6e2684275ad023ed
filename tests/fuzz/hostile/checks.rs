//! What may come through: the promises that the core builds on, asked of each answer that the host let through.
//!
//! They are said here once more, and not taken from the host's own checks: a check that is left out there is missed here.

use forebay::http1::{Limits, Parsed, RequestHead, parse_request};
use forebay::policy::{
    ATTRIBUTES_MAX, CLASSES, CONNECTIONS_MAX, Edits, HEADERS_MAX, OFFSETS, Offers, Pick, PoolWish,
    Preference, RETRY_AFTER_MAX, Routed, Standing, Target, Verdict,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// Bytes of a line of a guest, or about it.
const LINE_MAX: usize = 1024;
/// Bytes of a refusal: 64 problems, each with a path and a message, and a little around them.
const REFUSAL_MAX: usize = 64 * (2 * LINE_MAX + 32) + 256;
const REMEMBER_MAX: Duration = Duration::from_secs(3600);
const EDITS_MAX: usize = 32;
const VALUE_MAX: usize = 8192;
/// No number above crosses.
const NUMBER_MAX: u32 = i32::MAX as u32;
/// What frames a message or belongs to one connection.
const CLOSED: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// How many things a route may name.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) backends: u16,
    pub(super) redirects: u16,
    pub(super) responses: u16,
}

pub(super) fn offers(offers: &Offers) {
    assert!(offers.attributes.len() <= ATTRIBUTES_MAX && offers.headers.len() <= HEADERS_MAX);
    for name in &offers.headers {
        assert!(!CLOSED.contains(&&**name), "{name} is the proxy's own");
        assert_eq!(**name, *name.to_ascii_lowercase());
        field(name, "value");
    }
}

/// A line that an operator reads.
pub(super) fn line(text: &str) {
    assert!(text.len() <= LINE_MAX, "{} bytes", text.len());
    assert!(!text.contains(char::is_control), "control characters in {text:?}");
}

/// Why a guest was not attached, in lines that an operator reads.
pub(super) fn refusal(text: &str) {
    assert!(text.len() <= REFUSAL_MAX, "{} bytes", text.len());
    let control = |it: char| it.is_control() && it != '\n';
    assert!(!text.contains(control), "control characters in {text:?}");
}

pub(super) fn pick(pick: Pick, servers: usize) {
    let exists = |at: usize| assert!(at < servers, "server {at} of {servers}");
    exists(pick.first.at());
    if let Some(second) = pick.second {
        exists(second.at());
        assert_ne!(second, pick.first);
    }
}

pub(super) fn routed(routed: Routed, shape: Shape) {
    let known = match routed.target {
        None => true,
        Some(Target::Backend(at)) => at < shape.backends,
        Some(Target::Redirect(at)) => at < shape.redirects,
        Some(Target::Respond(at)) => at < shape.responses,
    };
    assert!(known, "{:?}", routed.target);
    assert!(routed.remember <= REMEMBER_MAX, "{:?}", routed.remember);
}

pub(super) fn edits(edits: &Edits, headers: &[Box<str>]) {
    assert!(edits.len() <= EDITS_MAX);
    for (edit, value) in edits.iter() {
        let name = headers.get(usize::from(edit.header)).expect("a declared header");
        assert!(value.len() <= VALUE_MAX, "{} bytes", value.len());
        field(name, value);
    }
}

/// A field that stands in a message is that one field, whatever its value is.
fn field(name: &str, value: &str) {
    let head = format!("GET / HTTP/1.1\r\nhost: a\r\n{name}: {value}\r\n\r\n");
    let limits = Limits {
        head_max: 64 << 10,
        request_line_max: 64,
        headers_max: 2,
    };
    let mut parsed = RequestHead::default();
    let read = parse_request(head.as_bytes(), &limits, &mut parsed);
    assert_eq!(read, Ok(Parsed::Complete), "{name}: {value:?}");
    let found: Vec<&[u8]> = parsed.values(head.as_bytes(), name.as_bytes()).collect();
    assert_eq!(found, [value.as_bytes()], "{name}: {value:?}");
}

pub(super) fn preference(preference: Preference, attributes: usize) {
    assert!(
        preference.tag.is_none_or(|tag| tag <= NUMBER_MAX),
        "{preference:?}"
    );
    let at = preference.tag_attribute.map(usize::from);
    assert!(at.is_none_or(|at| at < attributes), "{preference:?}");
}

pub(super) fn standing(standing: Standing) {
    if let Some(priority) = standing.priority {
        assert!(CLASSES.contains(&priority.class), "{priority:?}");
        let milliseconds = priority.offset / 1000;
        assert!(
            OFFSETS.contains(&(milliseconds as i32)) && priority.offset % 1000 == 0,
            "{priority:?}"
        );
    }
    wait(standing.wait_max);
}

pub(super) fn verdict(verdict: Verdict) {
    match verdict {
        Verdict::Accept { wait_max } => wait(wait_max),
        Verdict::Reject { with, retry_after } => {
            assert!([429, 503].contains(&with.status()));
            assert!(
                retry_after.is_none_or(|time| time <= RETRY_AFTER_MAX),
                "{retry_after:?}"
            );
        }
    }
}

fn wait(time: Option<Duration>) {
    let most = Duration::from_millis(NUMBER_MAX.into());
    assert!(time.is_none_or(|time| time <= most), "{time:?}");
}

pub(super) fn wishes(wishes: &[PoolWish], servers: usize) {
    let mut seen = BTreeSet::new();
    for wish in wishes {
        assert!(
            wish.server.at() < servers && seen.insert(wish.server),
            "{wish:?} of {servers}"
        );
        for number in [wish.low, wish.max, wish.need, wish.preconnect] {
            assert!(number.is_none_or(|number| number <= CONNECTIONS_MAX), "{wish:?}");
        }
    }
}
