//! What of a request a hash is made of: one number, computed once per request from its head, without allocation.
//!
//! The function is XXH3-64 with seed 0, named in the configuration so that others can come: the same key has the same
//! number in every process and on every machine, and so goes to the same server. Values are taken as sent, nothing is
//! decoded; an empty one is as good as none (LB-40).

use crate::http1::{RequestHead, cookie, parameter};
use std::net::IpAddr;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The part of a request that is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyOf {
    /// The client's address, without its port.
    Source,
    /// Path and query.
    Uri,
    /// The path.
    Path,
    /// So many first segments of the path, at least one.
    PathPrefix(u16),
    /// The segment of that number, counted from 1.
    PathPart(u16),
    /// All values of a header field, joined as one (RFC 9110 §5.3).
    Header(Box<str>),
    /// A cookie.
    Cookie(Box<str>),
    /// A query parameter.
    Query(Box<str>),
}

impl KeyOf {
    /// The number of a request; `None` if it has no such part. `bytes` are those that `head` was parsed from.
    pub fn hash(&self, head: &RequestHead, bytes: &[u8], client: Option<IpAddr>) -> Option<u64> {
        match self {
            KeyOf::Source => client.map(hash_of_address),
            KeyOf::Uri => Some(match head.query(bytes) {
                None => xxh3_64(head.path(bytes)),
                Some(query) => joined(head.path(bytes), [query].into_iter(), b"?"),
            }),
            KeyOf::Path => Some(xxh3_64(head.path(bytes))),
            KeyOf::PathPrefix(segments) => some(prefix(head.path(bytes), *segments)),
            KeyOf::PathPart(at) => part(head.path(bytes), *at).and_then(some),
            KeyOf::Header(name) => {
                let mut values = head
                    .values(bytes, name.as_bytes())
                    .filter(|value| !value.is_empty());
                let first = values.next()?;
                Some(joined(first, values, b", "))
            }
            KeyOf::Cookie(name) => {
                let mut lines = head.values(bytes, b"cookie");
                lines.find_map(|line| cookie(line, name)).and_then(some)
            }
            KeyOf::Query(name) => head
                .query(bytes)
                .and_then(|query| parameter(query, name))
                .and_then(some),
        }
    }
}

fn some(value: &[u8]) -> Option<u64> {
    (!value.is_empty()).then(|| xxh3_64(value))
}

/// An IPv4 address is the same one in an IPv6 coat.
fn hash_of_address(client: IpAddr) -> u64 {
    match client.to_canonical() {
        IpAddr::V4(address) => xxh3_64(&address.octets()),
        IpAddr::V6(address) => xxh3_64(&address.octets()),
    }
}

/// The number of the values as one, with `between` between them. One alone does not pay for the state of a stream.
fn joined<'a>(first: &[u8], others: impl Iterator<Item = &'a [u8]>, between: &[u8]) -> u64 {
    let mut others = others.peekable();
    if others.peek().is_none() {
        return xxh3_64(first);
    }
    let mut stream = Xxh3::new();
    stream.update(first);
    for value in others {
        stream.update(between);
        stream.update(value);
    }
    stream.digest()
}

/// The first segments of a path, without what follows them: `/a/b` for two of `/a/b/c`.
fn prefix(path: &[u8], segments: u16) -> &[u8] {
    let mut slashes = memchr::memchr_iter(b'/', path).skip(usize::from(segments));
    &path[..slashes.next().unwrap_or(path.len())]
}

fn part(path: &[u8], at: u16) -> Option<&[u8]> {
    path.split(|byte| *byte == b'/').nth(usize::from(at))
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use crate::http1::{Limits, parse_request};

    const LIMITS: Limits = Limits {
        head_max: 4096,
        request_line_max: 1024,
        headers_max: 16,
    };

    fn hash(of: &KeyOf, request: &str) -> Option<u64> {
        let bytes = request.as_bytes();
        let mut head = RequestHead::default();
        parse_request(bytes, &LIMITS, &mut head).unwrap();
        of.hash(&head, bytes, Some("::ffff:192.0.2.7".parse().unwrap()))
    }

    const REQUEST: &str = "GET /t/7/x?user=me&empty=&u HTTP/1.1\r\nHost: a\r\nX-A: one\r\nx-none: \r\nx-a: two\r\n\
        Cookie: a=1; sid=s=3\r\nCookie: b=2\r\n\r\n";

    #[test]
    fn each_part_by_its_value() {
        let named = |kind: fn(Box<str>) -> KeyOf, name: &str| kind(name.into());
        let vectors = [
            (KeyOf::Source, Some(&[192, 0, 2, 7][..])),
            (KeyOf::Uri, Some(b"/t/7/x?user=me&empty=&u")),
            (KeyOf::Path, Some(b"/t/7/x")),
            (KeyOf::PathPrefix(1), Some(b"/t")),
            (KeyOf::PathPrefix(2), Some(b"/t/7")),
            (KeyOf::PathPrefix(9), Some(b"/t/7/x")),
            (KeyOf::PathPart(2), Some(b"7")),
            (KeyOf::PathPart(4), None),
            (named(KeyOf::Header, "x-a"), Some(b"one, two")),
            (named(KeyOf::Header, "host"), Some(b"a")),
            (named(KeyOf::Header, "x-b"), None),
            (named(KeyOf::Header, "x-none"), None),
            (named(KeyOf::Cookie, "sid"), Some(b"s=3")),
            (named(KeyOf::Cookie, "b"), Some(b"2")),
            (named(KeyOf::Cookie, "c"), None),
            (named(KeyOf::Query, "user"), Some(b"me")),
            (named(KeyOf::Query, "empty"), None),
            (named(KeyOf::Query, "u"), None),
        ];
        for (of, value) in vectors {
            assert_eq!(hash(&of, REQUEST), value.map(xxh3_64), "{of:?}");
        }
    }

    #[test]
    fn a_path_without_query_is_its_own_uri() {
        let request = "GET /t HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(hash(&KeyOf::Uri, request), hash(&KeyOf::Path, request));
        assert_eq!(
            hash(&KeyOf::PathPart(1), "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            None
        );
    }

    #[test]
    fn a_client_without_an_address_has_no_key() {
        assert_eq!(KeyOf::Source.hash(&RequestHead::default(), b"", None), None);
    }
}
