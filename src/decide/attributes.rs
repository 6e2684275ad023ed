//! What a policy asked to see of a request, gathered once into a buffer that the exchange keeps for later attempts.
//!
//! Layout: for each attribute two `u32`, where its value begins and ends behind the table, or `u32::MAX` twice for
//! none; then the values. Nothing is allocated but the buffer itself.

use crate::http1::{RequestHead, cookie, parameter};
use crate::policy::{ATTRIBUTES_MAX, Attribute};
use std::io::Write;
use std::net::IpAddr;

const NONE: u32 = u32::MAX;
const ENTRY: usize = 8;

/// The request that attributes are read from.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its head.
    pub head: &'a RequestHead,
    /// The bytes that the head's spans mean.
    pub bytes: &'a [u8],
    /// Who sent it, unless it came over a Unix socket.
    pub client: Option<IpAddr>,
    /// Where it came in.
    pub listener: &'a str,
    /// What the rules chose, if it is a backend.
    pub backend: Option<&'a str>,
}

/// Values by the index of their attribute.
pub type Values<'a> = [Option<&'a [u8]>; ATTRIBUTES_MAX];

/// Appends the values of `wanted` to an empty buffer.
pub fn gather(wanted: &[Attribute], source: Source<'_>, out: &mut Vec<u8>) {
    let table = wanted.len() * ENTRY;
    out.resize(table, 0xff);
    for (at, attribute) in wanted.iter().enumerate() {
        let start = out.len();
        if append(attribute, source, out) {
            let span = [(start - table) as u32, (out.len() - table) as u32];
            out[at * ENTRY..at * ENTRY + 4].copy_from_slice(&span[0].to_ne_bytes());
            out[at * ENTRY + 4..(at + 1) * ENTRY].copy_from_slice(&span[1].to_ne_bytes());
        }
    }
}

/// The values that were gathered for so many attributes.
pub fn values(gathered: &[u8], count: usize) -> Values<'_> {
    let (table, texts) = gathered.split_at(count * ENTRY);
    let mut values = [None; ATTRIBUTES_MAX];
    for (value, entry) in values.iter_mut().zip(table.chunks_exact(ENTRY)) {
        let number = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        let (start, end) = (number(&entry[..4]), number(&entry[4..]));
        if start != NONE {
            *value = Some(&texts[start as usize..end as usize]);
        }
    }
    values
}

/// Appends one value; `false` if the request has none.
fn append(attribute: &Attribute, source: Source<'_>, out: &mut Vec<u8>) -> bool {
    let Source {
        head,
        bytes,
        client,
        listener,
        backend,
    } = source;
    match attribute {
        Attribute::Method => out.extend_from_slice(head.method_name(bytes)),
        Attribute::Scheme => out.extend_from_slice(b"http"),
        Attribute::Host => append_host(head.authority(bytes), out),
        Attribute::Path => out.extend_from_slice(head.path(bytes)),
        Attribute::Query => return append_some(head.query(bytes), out),
        Attribute::QueryParameter(name) => {
            return append_some(head.query(bytes).and_then(|query| parameter(query, name)), out);
        }
        Attribute::Header(name) => return append_joined(head.values(bytes, name.as_bytes()), out),
        Attribute::Cookie(name) => {
            let mut lines = head.values(bytes, b"cookie");
            return append_some(lines.find_map(|line| cookie(line, name)), out);
        }
        Attribute::ClientAddress => match client {
            Some(client) => {
                let _ = write!(out, "{client}");
            }
            None => return false,
        },
        Attribute::Backend => return append_some(backend.map(str::as_bytes), out),
        Attribute::Listener => out.extend_from_slice(listener.as_bytes()),
    }
    true
}

fn append_some(value: Option<&[u8]>, out: &mut Vec<u8>) -> bool {
    if let Some(value) = value {
        out.extend_from_slice(value);
    }
    value.is_some()
}

/// Fields of one name mean the same as one field with their values joined (RFC 9110 §5.3).
fn append_joined<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let mut any = false;
    for value in values {
        if any {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(value);
        any = true;
    }
    any
}

/// Appends the host of an authority: in lower case, without port.
pub fn append_host(authority: &[u8], out: &mut Vec<u8>) {
    let host = super::route::host_name(authority);
    out.extend(host.iter().map(u8::to_ascii_lowercase));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{Limits, parse_request};

    #[test]
    fn every_attribute_of_a_request() {
        let bytes = b"GET /a/b?x=1&user=me&x=2 HTTP/1.1\r\nHost: App.Test:80\r\nX-A: one\r\nx-a: two\r\n\
            Cookie: a=1; sid=s=3\r\nCookie: b=2\r\n\r\n";
        let mut head = RequestHead::default();
        let limits = Limits {
            head_max: 4096,
            request_line_max: 1024,
            headers_max: 32,
        };
        parse_request(bytes, &limits, &mut head).unwrap();
        let names = [
            "method",
            "scheme",
            "host",
            "path",
            "query",
            "query:user",
            "query:none",
            "header:X-A",
            "header:None",
            "cookie:sid",
            "cookie:b",
            "cookie:c",
            "client-address",
            "listener",
            "backend",
        ];
        let wanted: Vec<Attribute> = names.iter().map(|name| Attribute::parse(name).unwrap()).collect();
        let client = Some("10.0.0.7".parse().unwrap());
        let mut out = Vec::new();
        gather(
            &wanted,
            Source {
                head: &head,
                bytes,
                client,
                listener: "web",
                backend: Some("app"),
            },
            &mut out,
        );
        let found = values(&out, wanted.len());
        let shown: Vec<&str> = found[..wanted.len()]
            .iter()
            .map(|value| value.map_or("-", |value| std::str::from_utf8(value).unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                "GET",
                "http",
                "app.test",
                "/a/b",
                "x=1&user=me&x=2",
                "me",
                "-",
                "one, two",
                "-",
                "s=3",
                "2",
                "-",
                "10.0.0.7",
                "web",
                "app"
            ]
        );
        assert!(found[wanted.len()..].iter().all(Option::is_none));
    }
}
