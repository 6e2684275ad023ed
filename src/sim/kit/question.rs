//! The requests that a policy is asked about: keys, and what clients send besides.

use crate::policy::{Asked, Attribute, Offers, Priority, RouteAsked, ServerIndex, Waits};
use std::time::Duration;

/// What a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Values that follow from a number: the same number, the same client.
    Key(u32),
    /// No value at all.
    Absent,
    /// Values of no length.
    Empty,
    /// Values of 16 KiB.
    Long,
    /// The same, and not UTF-8.
    LongBytes,
    /// Bytes that are not UTF-8.
    Bytes,
    /// Letters beyond ASCII, quotes, line ends.
    Odd,
}

/// The shapes that are no key.
pub(super) const STRANGE: [Shape; 6] = [
    Shape::Absent,
    Shape::Empty,
    Shape::Long,
    Shape::LongBytes,
    Shape::Bytes,
    Shape::Odd,
];

/// Bytes of a long value.
const LONG: usize = 16 << 10;
const METHODS: [&[u8]; 4] = [b"GET", b"POST", b"PROPFIND", b""];

/// A request, with what the policy wants to see of it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    seed: u64,
    values: Vec<Option<Vec<u8>>>,
    method: &'static [u8],
    host: Vec<u8>,
    path: Vec<u8>,
}

impl Question {
    pub(super) fn new(offers: &Offers, shape: Shape, seed: u64) -> Question {
        let value = |attribute: &Attribute| value(attribute, shape);
        Question {
            seed,
            values: offers.attributes.iter().map(value).collect(),
            method: METHODS[seed as usize % METHODS.len()],
            host: value(&Attribute::Host).unwrap_or_default(),
            path: value(&Attribute::Path).unwrap_or_default(),
        }
    }

    /// Asks it at that time.
    pub(super) fn ask<R>(&self, now: Duration, ask: impl FnOnce(&RouteAsked<'_>) -> R) -> R {
        let attributes: Vec<Option<&[u8]>> = self.values.iter().map(Option::as_deref).collect();
        ask(&RouteAsked {
            asked: Asked {
                now,
                seed: self.seed,
                attributes: &attributes,
            },
            method: self.method,
            host: &self.host,
            path: &self.path,
        })
    }

    /// Where it is about to wait, if it finds no slot among so many servers.
    pub(super) fn waits(&self, servers: usize) -> Waits {
        const QUEUED: [u32; 4] = [0, 1, 100, u32::MAX];
        const PRIORITIES: [(i16, i64); 3] = [(0, 0), (-2047, -524_287_000), (2047, 524_287_000)];
        let turn = self.seed as usize;
        let (class, offset) = PRIORITIES[turn % PRIORITIES.len()];
        let server = turn.checked_rem(servers).filter(|_| turn.is_multiple_of(2));
        Waits {
            server: server.map(|at| ServerIndex(at as u16)),
            queued: QUEUED[turn % QUEUED.len()],
            priority: Priority { class, offset },
        }
    }
}

fn value(attribute: &Attribute, shape: Shape) -> Option<Vec<u8>> {
    match (shape, attribute) {
        (_, Attribute::Listener) => Some(b"web".to_vec()),
        (_, Attribute::Backend) => Some(b"app".to_vec()),
        (_, Attribute::Scheme) => Some(b"http".to_vec()),
        (Shape::Key(_), Attribute::Method) => Some(b"GET".to_vec()),
        (Shape::Key(key), Attribute::Host) => Some(format!("h{key}.example.com").into_bytes()),
        (Shape::Key(key), Attribute::Path) => Some(format!("/users/{key}").into_bytes()),
        (Shape::Key(key), Attribute::ClientAddress) => {
            let [_, b, c, d] = key.to_be_bytes();
            Some(format!("10.{b}.{c}.{d}").into_bytes())
        }
        (Shape::Key(key), _) => Some(format!("key-{key}").into_bytes()),
        // No request is without these.
        (Shape::Absent, Attribute::Method | Attribute::Path | Attribute::ClientAddress) => {
            value(attribute, Shape::Key(0))
        }
        (Shape::Absent, _) => None,
        (Shape::Empty, _) => Some(Vec::new()),
        (Shape::Long, _) => Some(vec![b'k'; LONG]),
        (Shape::LongBytes, _) => Some(vec![0xfe; LONG]),
        (Shape::Bytes, _) => Some(b"\xff\xfe\0k\xc3".to_vec()),
        (Shape::Odd, _) => Some("k\u{e4}\u{1f40c}\"\\\r\n\t;=, ".as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_another_client() {
        let names = ["header:x-user", "client-address", "path", "method"];
        let offers = Offers {
            attributes: names
                .iter()
                .map(|name| Attribute::parse(name).expect("an attribute"))
                .collect(),
            ..Offers::default()
        };
        let values = |shape| Question::new(&offers, shape, 0).values;
        let differ = |a: &[Option<Vec<u8>>], b: &[Option<Vec<u8>>]| {
            a.iter().zip(b).map(|(a, b)| a != b).collect::<Vec<bool>>()
        };
        let (one, other) = (values(Shape::Key(1)), values(Shape::Key(70_000)));
        assert_eq!(differ(&one, &other), [true, true, true, false]);
        assert_eq!(values(Shape::Absent)[0], None);
        assert_eq!(values(Shape::Long)[0].as_ref().map(Vec::len), Some(16 << 10));
    }
}
