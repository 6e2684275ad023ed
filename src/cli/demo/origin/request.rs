//! What a demo origin reads: bytes in, requests out.
//!
//! Its own small reader on top of httparse, on purpose not the proxy's: an origin that shared the proxy's code would share its
//! mistakes. A request is taken whole (head and at most [`BODY_MAX`] of body) before it is answered.

use std::mem::MaybeUninit;
use std::time::Duration;

/// Bytes of a request's head, at most; beyond: 431.
pub(super) const HEAD_MAX: usize = 64 * 1024;
/// Bytes of a request's body, at most; beyond: 413.
pub(super) const BODY_MAX: usize = 1024 * 1024;
/// How long `/slow` takes.
pub(super) const SLOW: Duration = Duration::from_millis(300);

/// What the bytes at hand hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// One request, and how many bytes it was.
    Whole(Request, usize),
    /// Not all of a request yet.
    Partial(Missing),
    /// Nothing that can be answered but with this status, and an end.
    Wrong(u16),
}

/// What a partial request lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// More bytes.
    Bytes,
    /// The body, for which the client waits to be asked (RFC 9110 §10.1.1).
    Invitation,
}

/// A request that was taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) answer: Answer,
    pub(super) head_only: bool,
    pub(super) keep_alive: bool,
    pub(super) version: u8,
}

/// What it will be answered with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A line that names the server and counts.
    Line,
    /// The same, after [`SLOW`].
    LateLine,
    /// 1 MiB.
    Large,
    /// The line, cut into chunks, with a trailer.
    Chunked,
    /// What was sent.
    Echo(Vec<u8>),
}

/// Takes the first request of `input`.
pub(super) fn take(input: &[u8]) -> Taken {
    if input.is_empty() {
        return Taken::Partial(Missing::Bytes);
    }
    let mut fields = [const { MaybeUninit::uninit() }; 128];
    let mut head = httparse::Request::new(&mut []);
    let head_length = match head.parse_with_uninit_headers(input, &mut fields) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() < HEAD_MAX => return Taken::Partial(Missing::Bytes),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Taken::Wrong(431),
        Err(_) => return Taken::Wrong(400),
    };
    let rest = &input[head_length..];
    let chunked = value(&head, "transfer-encoding").map(|coding| coding.eq_ignore_ascii_case("chunked"));
    let body = match (chunked, value(&head, "content-length").map(str::parse)) {
        (Some(true), None) => take_chunks(rest),
        (None, Some(Ok(length))) => take_length(rest, length),
        (None, None) => Body::Whole(Vec::new(), 0),
        _ => Body::Wrong(400),
    };
    match body {
        Body::Whole(body, length) => Taken::Whole(request(&head, body), head_length + length),
        Body::Partial if rest.is_empty() && expects_continue(&head) => Taken::Partial(Missing::Invitation),
        Body::Partial => Taken::Partial(Missing::Bytes),
        Body::Wrong(status) => Taken::Wrong(status),
    }
}

enum Body {
    Whole(Vec<u8>, usize),
    Partial,
    Wrong(u16),
}

fn take_length(rest: &[u8], length: usize) -> Body {
    match rest.get(..length) {
        _ if length > BODY_MAX => Body::Wrong(413),
        Some(body) => Body::Whole(body.to_vec(), length),
        None => Body::Partial,
    }
}

fn take_chunks(rest: &[u8]) -> Body {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let (start, size) = match httparse::parse_chunk_size(&rest[at..]) {
            Ok(httparse::Status::Complete((start, size))) => (at + start, size),
            Ok(httparse::Status::Partial) if rest.len() - at < HEAD_MAX => return Body::Partial,
            _ => return Body::Wrong(400),
        };
        if size == 0 {
            return take_trailers(rest, start, body);
        }
        let size = match usize::try_from(size) {
            Ok(size) if size <= BODY_MAX - body.len() => size,
            _ => return Body::Wrong(413),
        };
        match (
            rest.get(start..start + size),
            rest.get(start + size..start + size + 2),
        ) {
            (Some(data), Some(b"\r\n")) => body.extend_from_slice(data),
            (_, None) => return Body::Partial,
            _ => return Body::Wrong(400),
        }
        at = start + size + 2;
    }
}

fn take_trailers(rest: &[u8], start: usize, body: Vec<u8>) -> Body {
    let trailers = &rest[start..];
    match trailers.windows(4).position(|four| four == b"\r\n\r\n") {
        _ if trailers.starts_with(b"\r\n") => Body::Whole(body, start + 2),
        Some(at) => Body::Whole(body, start + at + 4),
        None if trailers.len() < HEAD_MAX => Body::Partial,
        None => Body::Wrong(431),
    }
}

fn request(head: &httparse::Request<'_, '_>, body: Vec<u8>) -> Request {
    let version = head.version.unwrap_or(1);
    let path = head.path.unwrap_or("/").split('?').next();
    let says = |option: &str| {
        value(head, "connection")
            .is_some_and(|list| list.split(',').any(|one| one.trim().eq_ignore_ascii_case(option)))
    };
    Request {
        answer: match path {
            _ if matches!(head.method, Some("POST" | "PUT" | "PATCH")) || !body.is_empty() => {
                Answer::Echo(body)
            }
            Some("/slow") => Answer::LateLine,
            Some("/large") => Answer::Large,
            Some("/chunked") => Answer::Chunked,
            _ => Answer::Line,
        },
        head_only: head.method == Some("HEAD"),
        keep_alive: if version == 0 {
            says("keep-alive")
        } else {
            !says("close")
        },
        version,
    }
}

fn expects_continue(head: &httparse::Request<'_, '_>) -> bool {
    value(head, "expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
}

fn value<'h>(head: &httparse::Request<'h, '_>, name: &str) -> Option<&'h str> {
    let field = head
        .headers
        .iter()
        .find(|field| field.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(field.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(input: &str) -> (Request, usize) {
        match take(input.as_bytes()) {
            Taken::Whole(request, length) => (request, length),
            other => panic!("{input:?}: {other:?}"),
        }
    }

    #[test]
    fn requests_end_where_their_framing_says() {
        let cases = [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Answer::Line),
            ("GET /slow?x HTTP/1.1\r\n\r\n", Answer::LateLine),
            ("GET /large HTTP/1.1\r\n\r\n", Answer::Large),
            ("GET /chunked HTTP/1.1\r\n\r\n", Answer::Chunked),
            (
                "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                Answer::Echo(b"abc".to_vec()),
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
                Answer::Echo(vec![]),
            ),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
                Answer::Echo(b"abcde".to_vec()),
            ),
            (
                "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\n\r\n",
                Answer::Echo(b"a".to_vec()),
            ),
        ];
        for (input, answer) in cases {
            let (request, length) = whole(&format!("{input}GET /next HTTP/1.1\r\n\r\n"));
            assert_eq!((request.answer, length), (answer, input.len()), "{input:?}");
            for end in 0..input.len() {
                assert_eq!(
                    take(&input.as_bytes()[..end]),
                    Taken::Partial(Missing::Bytes),
                    "{input:?} {end}"
                );
            }
        }
    }

    #[test]
    fn a_client_that_waits_for_its_invitation_gets_it_once() {
        let head = "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(take(head.as_bytes()), Taken::Partial(Missing::Invitation));
        assert_eq!(
            take(format!("{head}a").as_bytes()),
            Taken::Partial(Missing::Bytes)
        );
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        let long = format!("GET /{} HTTP/1.1", "a".repeat(HEAD_MAX));
        let cases = [
            ("nonsense\r\n\r\n", 400),
            (long.as_str(), 431),
            ("POST / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", 413),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                400,
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n",
                413,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naX\r\n",
                400,
            ),
        ];
        for (input, status) in cases {
            assert_eq!(take(input.as_bytes()), Taken::Wrong(status), "{:.60}", input);
        }
    }

    #[test]
    fn persistence_follows_version_and_option() {
        let cases = [
            ("1.1", "", true),
            ("1.1", "Connection: x, Close\r\n", false),
            ("1.0", "", false),
            ("1.0", "Connection: Keep-Alive\r\n", true),
        ];
        for (version, field, keep_alive) in cases {
            let (request, _) = whole(&format!("GET / HTTP/{version}\r\n{field}\r\n"));
            assert_eq!(request.keep_alive, keep_alive, "{version} {field}");
        }
    }
}
