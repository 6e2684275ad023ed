use super::{push_decimal, write_request, write_response};
use crate::http1::{
    ClientConnection, Limits, Method, Parsed, RequestContext, RequestHead, ResponseHead, Version,
};
use crate::http1::{parse_request, parse_response};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    head_max: 8192,
    request_line_max: 4096,
    headers_max: 64,
};

/// What a server gets for this request, with an `X-Forwarded-For` of ours.
fn forward(text: &str) -> String {
    forward_edited(text, &[], b"X-Forwarded-For: 192.0.2.1\r\n")
}

fn forward_edited(text: &str, dropped: &[&[u8]], additions: &[u8]) -> String {
    let mut head = RequestHead::default();
    parse_request(text.as_bytes(), &LIMITS, &mut head).unwrap();
    dropped
        .iter()
        .for_each(|name| head.drop_named(text.as_bytes(), name));
    let mut out = Vec::new();
    write_request(text.as_bytes(), &head, additions, &mut out);
    String::from_utf8(out).unwrap()
}

fn answer(text: &str, context: RequestContext, connection: ClientConnection) -> String {
    let mut head = ResponseHead::default();
    parse_response(text.as_bytes(), &LIMITS, context, &mut head).unwrap();
    let mut out = Vec::new();
    write_response(
        text.as_bytes(),
        &head,
        connection,
        context.client,
        b"X-Own: 1\r\n",
        &mut out,
    );
    String::from_utf8(out).unwrap()
}

#[test]
fn requests() {
    let cases = [
        // Nothing to change: as it came, ours behind.
        (
            "GET /a?b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n\r\n",
            "GET /a?b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        // Lines that are not canonical are written afresh, bare LF included.
        (
            "\r\nGET /a HTTP/1.1\nHost:h\r\nX-A:  \t v  w \t \r\nX-B: 1\nX-Empty:\r\n\n",
            "GET /a HTTP/1.1\r\nHost: h\r\nX-A: v  w\r\nX-B: 1\r\nX-Empty: \r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        // Fields of the hop and those that Connection names are gone; ours is not lost with them.
        (
            "GET / HTTP/1.1\r\nX-One: 1\r\nHost: h\r\nConnection: x-one , X-TWO, x-forwarded-for, host\r\nX-Two: 2\r\n\
             Keep-Alive: x\r\nProxy-Connection: x\r\nTE: gzip\r\nUpgrade: x\r\nX-Four: 4\r\nX-Forwarded-For: 9\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Four: 4\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        // The framing survives whatever Connection names, and is canonical.
        (
            "POST / HTTP/1.1\r\nHost: h\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: CHUNKED\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 05\r\nContent-Length: 5\r\nConnection: content-length\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        // HTTP/1.0 goes on as 1.1, with a Host.
        (
            "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\nHost: \r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        // Absolute form becomes origin form, its authority wins.
        (
            "GET http://real.test?q HTTP/1.1\r\nHost: fake.test\r\nX: 1\r\n\r\n",
            "GET /?q HTTP/1.1\r\nX: 1\r\nHost: real.test\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        (
            "OPTIONS http://h HTTP/1.1\r\nHost: h\r\nMax-Forwards: 5\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: h\r\nMax-Forwards: 4\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        // Upgrade and trailers are asked for again.
        (
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, x\r\nUpgrade: websocket\r\nX: 1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers, gzip;q=0.5\r\nConnection: TE\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: TE\r\nTE: trailers\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(forward(text), expected, "{text:?}");
    }
}

#[test]
fn edits_of_requests() {
    let text = "GET / HTTP/1.1\r\nHost: h\r\nCookie: a\r\nX: 1\r\ncookie: b\r\nContent-Length: 0\r\n\r\n";
    let head = "GET / HTTP/1.1\r\n";
    let cookies: &[&[u8]] = &[b"COOKIE", b"content-length"];
    assert_eq!(
        forward_edited(text, cookies, b""),
        format!("{head}Host: h\r\nX: 1\r\nContent-Length: 0\r\n\r\n")
    );
    let rest = "Cookie: a\r\nX: 1\r\ncookie: b\r\nContent-Length: 0\r\n";
    assert_eq!(
        forward_edited(text, &[b"host"], b"X-Y: 1\r\nhOsT: new\r\n"),
        format!("{head}{rest}X-Y: 1\r\nhOsT: new\r\n\r\n")
    );
    assert_eq!(
        forward_edited(text, &[b"host"], b"X-Host: x\r\n"),
        format!("{head}{rest}Host: \r\nX-Host: x\r\n\r\n")
    );
}

#[test]
fn responses() {
    use ClientConnection::{Close, KeepAlive};
    let get = RequestContext {
        method: Method::Get,
        upgrade: false,
        client: Version::Http11,
    };
    let old = RequestContext {
        client: Version::Http10,
        ..get
    };
    let upgrade = RequestContext { upgrade: true, ..get };
    let chunked = "HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases = [
        (
            get,
            KeepAlive,
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Own: 1\r\n\r\n",
        ),
        (
            get,
            Close,
            "HTTP/1.0 299 Odd Ball\r\nContent-Length: 4\r\n\r\n",
            "HTTP/1.1 299 Odd Ball\r\nContent-Length: 4\r\nConnection: close\r\nX-Own: 1\r\n\r\n",
        ),
        (
            get,
            KeepAlive,
            "HTTP/1.1 200\r\nX:y\n\r\n",
            "HTTP/1.1 200 \r\nX: y\r\nConnection: close\r\nX-Own: 1\r\n\r\n",
        ),
        (
            get,
            KeepAlive,
            "HTTP/1.1 200 OK\r\nConnection: close, x-inner\r\nX-Inner: 1\r\nKeep-Alive: x\r\nContent-Length: 02\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Own: 1\r\n\r\n",
        ),
        (
            get,
            KeepAlive,
            chunked,
            "HTTP/1.1 200 OK\r\nTrailer: X\r\nTransfer-Encoding: chunked\r\nX-Own: 1\r\n\r\n",
        ),
        (
            old,
            KeepAlive,
            chunked,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Own: 1\r\n\r\n",
        ),
        (
            old,
            KeepAlive,
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\nX-Own: 1\r\n\r\n",
        ),
        (
            get,
            Close,
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Own: 1\r\n\r\n",
        ),
        (
            upgrade,
            KeepAlive,
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Own: 1\r\n\r\n",
        ),
        (
            upgrade,
            Close,
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: x\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: x\r\nContent-Length: 0\r\nConnection: Upgrade, close\r\nX-Own: 1\r\n\r\n",
        ),
    ];
    for (context, connection, text, expected) in cases {
        assert_eq!(answer(text, context, connection), expected, "{text:?}");
    }
}

#[test]
fn decimals() {
    for number in [0, 7, 10, 1_234_567, u64::MAX] {
        let mut out = Vec::new();
        push_decimal(number, &mut out);
        assert_eq!(out, number.to_string().into_bytes());
    }
}

/// A field line that a parser accepts, in one of its sloppier spellings.
fn line() -> impl Strategy<Value = String> {
    let name = "[Qq][A-Za-z0-9_-]{0,12}";
    let value = "[!-~]([ -~]{0,12}[!-~])?";
    let known = prop_oneof![
        Just("Connection: x-a, close\r\n".to_owned()),
        Just("connection:keep-alive \r\n".to_owned()),
        Just("TE: trailers\r\n".to_owned()),
        Just("Upgrade: websocket\r\nConnection: upgrade\r\n".to_owned()),
        Just("Expect: 100-continue\r\n".to_owned()),
        Just("X-A: 1\r\n".to_owned()),
    ];
    let free = (
        name,
        value,
        "[ \t]{0,2}",
        "[ \t]{0,2}",
        prop_oneof![Just("\r\n"), Just("\n")],
    )
        .prop_map(|(name, value, before, after, end)| format!("{name}:{before}{value}{after}{end}"));
    prop_oneof![known, free]
}

fn framing_line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (0u64..u64::MAX).prop_map(|length| format!("Content-Length:{length}\r\n")),
        Just("Content-Length: 007\r\nContent-Length: 7\r\n".to_owned()),
        Just("transfer-encoding: CHUNKED\r\n".to_owned()),
    ]
}

proptest! {
    /// What is written is what was meant: parsed again it has the same method, path, authority and framing, every line of
    /// it is canonical, nothing of the hop is left, and writing it once more changes nothing but what the hop said.
    #[test]
    fn write_and_parse_again(
        method in "(GET|POST|OPTIONS|BREW)", target in "(http://a\\.test)?/[a-z/]{0,8}(\\?[a-z=]{0,6})?",
        lines in proptest::collection::vec(line(), 0..8), framing in framing_line(), old in any::<bool>(), at in 0usize..8,
    ) {
        let at = at.min(lines.len());
        let (before, after) = (lines[..at].concat(), lines[at..].concat());
        let version = if old && !framing.contains("CHUNKED") { "1.0" } else { "1.1" };
        let text = format!("{method} {target} HTTP/{version}\r\n{before}hOST:h.test\r\n{framing}{after}\r\n");
        let mut head = RequestHead::default();
        prop_assert_eq!(parse_request(text.as_bytes(), &LIMITS, &mut head), Ok(Parsed::Complete));
        let mut out = Vec::new();
        write_request(text.as_bytes(), &head, b"X-Own: 1\r\n", &mut out);
        let mut again = RequestHead::default();
        parse_request(&out, &LIMITS, &mut again).unwrap();
        prop_assert_eq!(again.length, out.len());
        prop_assert_eq!(head.path(text.as_bytes()), again.path(&out));
        prop_assert_eq!(head.query(text.as_bytes()), again.query(&out));
        prop_assert_eq!(head.authority(text.as_bytes()), again.authority(&out));
        prop_assert_eq!((head.method, head.framing, head.upgrade), (again.method, again.framing, again.upgrade));
        prop_assert!(again.fields.iter().all(|field| field.canonical));
        prop_assert!(again.keep_alive);
        prop_assert!(head.find(text.as_bytes(), b"connection").is_none());
        let mut twice = Vec::new();
        write_request(&out, &again, b"", &mut twice);
        if !head.upgrade && !head.trailers {
            prop_assert_eq!(out, twice);
        }
    }

    /// Whatever bytes are wrong in a head: it is refused, or what is written is one message with the framing that the
    /// parser saw.
    #[test]
    fn damaged_heads(
        damage in proptest::collection::vec((0usize..120, prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b' '), Just(b',')]), 1..4),
        chunked in any::<bool>(),
    ) {
        let framing = if chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 10" };
        let text = format!("POST /a?b HTTP/1.1\r\nHost: a.test\r\nConnection: x-a, te\r\nX-A: 1\r\n{framing}\r\nTE: trailers\r\n\r\n");
        let mut bytes = text.into_bytes();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let mut head = RequestHead::default();
        if parse_request(&bytes, &LIMITS, &mut head) == Ok(Parsed::Complete) {
            let mut out = Vec::new();
            write_request(&bytes, &head, b"", &mut out);
            let mut again = RequestHead::default();
            prop_assert_eq!(parse_request(&out, &LIMITS, &mut again), Ok(Parsed::Complete));
            prop_assert_eq!((again.length, again.framing), (out.len(), head.framing));
            prop_assert!(again.fields.iter().all(|field| field.canonical));
            prop_assert!(!again.line.is_empty());
        }
    }
}
