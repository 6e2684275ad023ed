//! What a demo origin answers: requests in, bytes out.

use super::request::{Answer, Request};
use std::io::Write;
use std::sync::LazyLock;

/// Bytes of `/large`.
pub(super) const LARGE_LENGTH: usize = 1024 * 1024;

/// Who answers, and what has happened so far.
pub(super) struct Facts<'a> {
    pub(super) server: &'a str,
    /// Requests this server has answered, this one included.
    pub(super) total: u64,
    /// Connections this server had accepted when this one came.
    pub(super) connection: u64,
    /// Requests on this connection, this one included.
    pub(super) request: u64,
    /// The value of `Date`.
    pub(super) date: &'a str,
}

/// Appends the answer; returns how many bytes of [`large`] follow it.
pub(super) fn respond(request: &Request, facts: &Facts<'_>, out: &mut Vec<u8>) -> usize {
    let line = format!(
        "{}: request {} ({} on connection {})\n",
        facts.server, facts.total, facts.request, facts.connection
    );
    let (content_type, body) = match &request.answer {
        Answer::Echo(body) => ("application/octet-stream", body.as_slice()),
        Answer::Large => ("text/plain", large()),
        Answer::Line | Answer::LateLine | Answer::Chunked => ("text/plain", line.as_bytes()),
    };
    let chunked = request.answer == Answer::Chunked && request.version == 1;
    let Facts {
        server,
        total,
        connection,
        request: number,
        date,
    } = facts;
    write!(
        out,
        "HTTP/1.1 200 OK\r\nDate: {date}\r\nServer: {server}\r\nContent-Type: {content_type}\r\n\
         X-Demo: server={server} total={total} connection={connection} request={number}\r\n"
    )
    .expect("a Vec takes everything");
    match chunked {
        true => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        false => write!(out, "Content-Length: {}\r\n", body.len()).expect("a Vec takes everything"),
    }
    match (request.keep_alive, request.version) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, 0) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, _) => {}
    }
    out.extend_from_slice(b"\r\n");
    match &request.answer {
        _ if request.head_only => return 0,
        Answer::Large => return LARGE_LENGTH,
        _ if chunked => write_chunks(body, out),
        _ => out.extend_from_slice(body),
    }
    0
}

fn write_chunks(body: &[u8], out: &mut Vec<u8>) {
    for part in body.chunks(16) {
        write!(out, "{:x}\r\n", part.len()).expect("a Vec takes everything");
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\nX-Demo-Trailer: end\r\n\r\n");
}

/// Appends an answer after which the connection ends.
pub(super) fn refuse(status: u16, out: &mut Vec<u8>) {
    let reason = match status {
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        _ => "Bad Request",
    };
    write!(
        out,
        "HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .expect("a Vec takes everything");
}

/// The body of `/large`: lines of 64 bytes.
pub(super) fn large() -> &'static [u8] {
    static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |at: usize| {
            if at % 64 == 63 {
                b'\n'
            } else {
                b'a' + (at % 26) as u8
            }
        };
        (0..LARGE_LENGTH).map(byte).collect()
    });
    &LARGE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::demo::origin::request::{Taken, take};

    fn answered(input: &str) -> String {
        let facts = Facts {
            server: "fast",
            total: 7,
            connection: 2,
            request: 3,
            date: "now",
        };
        let Taken::Whole(request, _) = take(input.as_bytes()) else {
            panic!("{input:?}")
        };
        let mut out = Vec::new();
        respond(&request, &facts, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_names_the_server_and_counts() {
        insta::assert_snapshot!(answered("GET / HTTP/1.1\r\n\r\n"), @"
        HTTP/1.1 200 OK
        Date: now
        Server: fast
        Content-Type: text/plain
        X-Demo: server=fast total=7 connection=2 request=3
        Content-Length: 36

        fast: request 7 (3 on connection 2)
        ");
    }

    #[test]
    fn the_frame_is_the_one_asked_for() {
        let line = "fast: request 7 (3 on connection 2)\n";
        let chunks = "10\r\nfast: request 7 \r\n10\r\n(3 on connection\r\n4\r\n 2)\n\r\n0\r\nX-Demo-Trailer: end\r\n\r\n";
        let cases = [
            (
                "GET /chunked HTTP/1.1\r\n\r\n",
                "Transfer-Encoding: chunked\r\n",
                chunks,
            ),
            (
                "GET /chunked HTTP/1.0\r\n\r\n",
                "Content-Length: 36\r\nConnection: close\r\n",
                line,
            ),
            ("HEAD / HTTP/1.1\r\n\r\n", "Content-Length: 36\r\n", ""),
            (
                "HEAD /chunked HTTP/1.1\r\n\r\n",
                "Transfer-Encoding: chunked\r\n",
                "",
            ),
            (
                "HEAD /large HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
                "Content-Length: 1048576\r\nConnection: keep-alive\r\n",
                "",
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi",
                "Content-Length: 2\r\n",
                "hi",
            ),
        ];
        for (input, framing, body) in cases {
            let answer = answered(input);
            let (head, rest) = answer.split_once("request=3\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\nDate: now\r\n"), "{input:?}");
            assert_eq!(rest, format!("{framing}\r\n{body}"), "{input:?}");
        }
    }
}
