use super::{Method, RequestHead, empty_lines, parse_request};
use crate::http1::{Framing, HostLine, Limits, Parsed, Refusal, Version};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    head_max: 1024,
    request_line_max: 128,
    headers_max: 16,
};

fn parse(text: &str) -> Result<RequestHead, Refusal> {
    let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let mut head = RequestHead::default();
    match parse_request(&bytes, &LIMITS, &mut head)? {
        Parsed::Complete => Ok(head),
        Parsed::Partial => panic!("partial: {text:?}"),
    }
}

fn get(fields: &str) -> Result<RequestHead, Refusal> {
    parse(&format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
}

#[test]
fn refusals() {
    let cases = [
        ("GET /a\r\n\r\n", Refusal::MalformedRequestLine),
        ("GET\t/a\tHTTP/1.1\r\n\r\n", Refusal::MalformedRequestLine),
        (
            "GE(T /a HTTP/1.1\r\nHost: h\r\n\r\n",
            Refusal::MalformedRequestLine,
        ),
        (
            " GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
            Refusal::MalformedRequestLine,
        ),
        (
            "GET /a  HTTP/1.1\r\nHost: h\r\n\r\n",
            Refusal::MalformedRequestLine,
        ),
        (
            "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
            Refusal::MalformedRequestLine,
        ),
        ("GET /a HTTP/1.1x\r\nHost: h\r\n\r\n", Refusal::MalformedLineEnd),
        (
            "GET /a http/1.1\r\nHost: h\r\n\r\n",
            Refusal::MalformedRequestLine,
        ),
        ("GET /a HTTP/1.11\r\nHost: h\r\n\r\n", Refusal::MalformedLineEnd),
        (
            "GET /a HTTP/11.1\r\nHost: h\r\n\r\n",
            Refusal::MalformedRequestLine,
        ),
        ("GET /a HTTP/2.0\r\nHost: h\r\n\r\n", Refusal::UnsupportedVersion),
        ("GET /a HTTP/1.2\r\nHost: h\r\n\r\n", Refusal::UnsupportedVersion),
        ("PRI * HTTP/2.0\r\n\r\n", Refusal::UnsupportedVersion),
        ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", Refusal::MalformedTarget),
        ("GET * HTTP/1.1\r\nHost: h\r\n\r\n", Refusal::MalformedTarget),
        ("GET /a HTTP/1.1\r\nHost: h\r\n\rX", Refusal::MalformedLineEnd),
        ("GET /a HTTP/1.1\r\n\r\n", Refusal::HostMissing),
        ("GET http://h/ HTTP/1.1\r\n\r\n", Refusal::HostMissing),
        (
            "GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
            Refusal::HostRepeated,
        ),
        ("GET /a HTTP/1.1\r\nHost: a b\r\n\r\n", Refusal::HostInvalid),
        (
            "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
            Refusal::ConnectMethod,
        ),
        ("CONNECT /a HTTP/1.1\r\nHost: h\r\n\r\n", Refusal::ConnectMethod),
        (
            "POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            Refusal::CodingInHttp10,
        ),
    ];
    for (text, refusal) in cases {
        assert_eq!(parse(text).err(), Some(refusal), "{text:?}");
    }
}

#[test]
fn refused_fields() {
    let cases = [
        ("X Y: 1\r\n", Refusal::MalformedFieldName),
        ("X : 1\r\n", Refusal::MalformedFieldName),
        ("JustAWord\r\n", Refusal::MalformedFieldName),
        (": 1\r\n", Refusal::MalformedFieldName),
        ("X-\u{e9}: 1\r\n", Refusal::MalformedFieldName),
        ("X: 1\r\n folded\r\n", Refusal::MalformedFieldName),
        ("X: a\0b\r\n", Refusal::MalformedFieldValue),
        ("X: a\rb\r\n", Refusal::MalformedFieldValue),
        ("X: a\u{7f}b\r\n", Refusal::MalformedFieldValue),
        ("Content-Length: +5\r\n", Refusal::LengthInvalid),
        ("Content-Length: \r\n", Refusal::LengthInvalid),
        ("Content-Length: 5, 5\r\n", Refusal::LengthInvalid),
        ("Content-Length: 18446744073709551621\r\n", Refusal::LengthInvalid),
        (
            "Content-Length: 5\r\ncontent-length: 6\r\n",
            Refusal::LengthConflict,
        ),
        ("Transfer-Encoding: identity\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked, chunked\r\n", Refusal::CodingInvalid),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Refusal::CodingInvalid,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
            Refusal::CodingInvalid,
        ),
        ("Transfer-Encoding: \"chunked\"\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked;q=1\r\n", Refusal::CodingInvalid),
        ("Transfer-Encoding: chunked\u{a0}\r\n", Refusal::CodingInvalid),
        (
            "Transfer-Encoding:\r\nContent-Length: 5\r\n",
            Refusal::CodingInvalid,
        ),
        ("Transfer-Encoding: gzip, chunked\r\n", Refusal::CodingUnsupported),
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            Refusal::FramingConflict,
        ),
        (
            "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            Refusal::FramingConflict,
        ),
        ("Transfer_Encoding: chunked\r\n", Refusal::FramingLookAlike),
        ("Content_Length: 5\r\n", Refusal::FramingLookAlike),
    ];
    for (fields, refusal) in cases {
        assert_eq!(get(fields).err(), Some(refusal), "{fields:?}");
    }
    let options = format!("Connection: {}\r\n", "x,".repeat(65));
    assert_eq!(get(&options).err(), Some(Refusal::TooManyOptions));
}

#[test]
fn framing() {
    assert_eq!(get("").unwrap().framing, Framing::None);
    assert_eq!(
        get("Content-Length:   5 \t\r\n").unwrap().framing,
        Framing::Length(5)
    );
    assert_eq!(get("Content-Length: 0\r\n").unwrap().framing, Framing::Length(0));
    assert_eq!(
        get("Content-Length: 010\r\nContent-Length: 10\r\n")
            .unwrap()
            .framing,
        Framing::Length(10)
    );
    assert_eq!(
        get("Transfer-Encoding: ChUNkeD\r\n").unwrap().framing,
        Framing::Chunked
    );
    assert_eq!(
        get("Connection: Content-Length\r\nContent-Length: 5\r\n")
            .unwrap()
            .framing,
        Framing::Length(5)
    );
}

#[test]
fn persistence() {
    assert!(get("").unwrap().keep_alive);
    assert!(
        !get("Connection: x-hint\r\nConnection: keep-alive, ClOsE\r\n")
            .unwrap()
            .keep_alive
    );
    assert!(get("Proxy-Connection: close\r\n").unwrap().keep_alive);
    assert!(!parse("GET /a HTTP/1.0\r\n\r\n").unwrap().keep_alive);
    assert!(
        parse("GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n")
            .unwrap()
            .keep_alive
    );
}

#[test]
fn expectations() {
    let body = "Content-Length: 2\r\n";
    assert!(
        get(&format!("{body}expect: 100-CONTINUE\r\n"))
            .unwrap()
            .expects_continue
    );
    assert!(
        !get(&format!("{body}Expect: teapot\r\n"))
            .unwrap()
            .expects_continue
    );
    assert!(!get("Expect: 100-continue\r\n").unwrap().expects_continue);
    assert!(
        !get("Content-Length: 0\r\nExpect: 100-continue\r\n")
            .unwrap()
            .expects_continue
    );
    let old = parse("POST /a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n").unwrap();
    assert!(!old.expects_continue && !old.fields[0].keep);
}

#[test]
fn upgrades() {
    assert!(
        get("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n")
            .unwrap()
            .upgrade
    );
    assert!(!get("Upgrade: websocket\r\n").unwrap().upgrade);
    assert!(!get("Connection: Upgrade\r\n").unwrap().upgrade);
    assert!(!get("Connection: Upgrade\r\nUpgrade: h2c\r\n").unwrap().upgrade);
    assert!(
        !get("Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: x, h2c\r\n")
            .unwrap()
            .upgrade
    );
    assert!(
        !get("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n")
            .unwrap()
            .upgrade
    );
    assert!(
        !parse("GET /a HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            .unwrap()
            .upgrade
    );
}

#[test]
fn targets_and_hosts() {
    let case = |text: &str| {
        let head = parse(text).unwrap();
        let bytes = text.as_bytes();
        let part = |part: &[u8]| String::from_utf8(part.to_vec()).unwrap();
        (
            part(head.path(bytes)),
            head.query(bytes).map(part),
            part(head.authority(bytes)),
            head.host_line,
        )
    };
    let expect = |path: &str, query: Option<&str>, authority: &str, host: HostLine| {
        (
            path.to_owned(),
            query.map(str::to_owned),
            authority.to_owned(),
            host,
        )
    };
    assert_eq!(
        case("GET /a?q HTTP/1.1\r\nHost: h:1\r\n\r\n"),
        expect("/a", Some("q"), "h:1", HostLine::Field)
    );
    assert_eq!(
        case("GET /a? HTTP/1.1\r\nHost:\r\n\r\n"),
        expect("/a", Some(""), "", HostLine::Field)
    );
    assert_eq!(
        case("GET http://h HTTP/1.1\r\nHost: h\r\n\r\n"),
        expect("/", None, "h", HostLine::Field)
    );
    assert_eq!(
        case("GET http://x?q HTTP/1.1\r\nHost: h\r\n\r\n"),
        expect("/", Some("q"), "x", HostLine::Authority)
    );
    assert_eq!(
        case("OPTIONS http://h HTTP/1.1\r\nHost: h\r\n\r\n"),
        expect("*", None, "h", HostLine::Field)
    );
    assert_eq!(
        case("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"),
        expect("*", None, "h", HostLine::Field)
    );
    assert_eq!(
        case("GET /a HTTP/1.0\r\n\r\n"),
        expect("/a", None, "", HostLine::Absent)
    );
    assert_eq!(
        case("GET http://x/a HTTP/1.0\r\n\r\n"),
        expect("/a", None, "x", HostLine::Authority)
    );
}

#[test]
fn limits_are_exact_and_known_early() {
    let head_of = |size: usize| {
        let fixed = "GET /a HTTP/1.1\r\nHost: h\r\nX: \r\n\r\n".len();
        format!(
            "GET /a HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
            "x".repeat(size - fixed)
        )
    };
    let mut head = RequestHead::default();
    assert_eq!(
        parse_request(head_of(1024).as_bytes(), &LIMITS, &mut head),
        Ok(Parsed::Complete)
    );
    assert_eq!(
        parse_request(head_of(1025).as_bytes(), &LIMITS, &mut head),
        Err(Refusal::HeadTooLarge)
    );
    assert_eq!(
        parse_request(&head_of(2000).as_bytes()[..1023], &LIMITS, &mut head),
        Ok(Parsed::Partial)
    );
    assert_eq!(
        parse_request(&head_of(2000).as_bytes()[..1024], &LIMITS, &mut head),
        Err(Refusal::HeadTooLarge)
    );
    let line_of = |size: usize| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(size - 14));
    assert_eq!(
        parse_request(line_of(128).as_bytes(), &LIMITS, &mut head),
        Ok(Parsed::Complete)
    );
    assert_eq!(
        parse_request(line_of(129).as_bytes(), &LIMITS, &mut head),
        Err(Refusal::RequestLineTooLong)
    );
    assert_eq!(
        parse_request(&[b'A'; 128], &LIMITS, &mut head),
        Ok(Parsed::Partial)
    );
    assert_eq!(
        parse_request(&[b'A'; 129], &LIMITS, &mut head),
        Err(Refusal::RequestLineTooLong)
    );
    let fields = |count: usize| {
        format!(
            "GET /a HTTP/1.1\r\nHost: h\r\n{}\r\n",
            "X: 1\r\n".repeat(count - 1)
        )
    };
    assert_eq!(
        parse_request(fields(16).as_bytes(), &LIMITS, &mut head),
        Ok(Parsed::Complete)
    );
    assert_eq!(head.fields.len(), 16);
    assert_eq!(
        parse_request(fields(17).as_bytes(), &LIMITS, &mut head),
        Err(Refusal::TooManyFields)
    );
    assert_eq!(
        parse_request("\r\n".repeat(512).as_bytes(), &LIMITS, &mut head),
        Err(Refusal::HeadTooLarge)
    );
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    let head = parse("\r\n\nGET /a HTTP/1.1\r\nHost: h\r\n\r\nrest").unwrap();
    assert_eq!(head.length, 3 + "GET /a HTTP/1.1\r\nHost: h\r\n\r\n".len());
    assert_eq!(empty_lines(b"\r\n\n\r\rGET"), 3);
    assert_eq!(empty_lines(b""), 0);
}

#[test]
fn a_head_is_used_again_without_a_trace_of_the_one_before() {
    let rich = "OPTIONS http://h?q HTTP/1.0\r\nHost: x\r\nTE: trailers\r\nMax-Forwards: 3\r\nContent-Length: 2\r\n\r\n";
    let plain = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    let (mut used, mut fresh) = (RequestHead::default(), RequestHead::default());
    parse_request(rich.as_bytes(), &LIMITS, &mut used).unwrap();
    parse_request(plain.as_bytes(), &LIMITS, &mut used).unwrap();
    parse_request(plain.as_bytes(), &LIMITS, &mut fresh).unwrap();
    assert_eq!(format!("{used:?}"), format!("{fresh:?}"));
}

#[test]
fn methods() {
    assert!(Method::of(b"GET").is_safe() && Method::of(b"DELETE").is_idempotent());
    assert!(!Method::of(b"POST").is_idempotent() && !Method::of(b"PATCH").is_idempotent());
    assert_eq!(Method::of(b"get"), Method::Other);
    assert!(!Method::Other.is_idempotent());
    assert_eq!(
        parse("BREW /a HTTP/1.1\r\nHost: h\r\n\r\n").unwrap().version,
        Version::Http11
    );
}

proptest! {
    /// Whatever part of a good head has come, it is waited for; the whole is understood alike however it came.
    #[test]
    fn prefixes_of_good_heads_are_partial(
        path in "/[a-z?%/]{0,20}", host in "[a-z.]{1,10}", value in "[ -~]{0,20}", cut in 0usize..200,
    ) {
        let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nX-V: {value}\r\nConnection: x-v\r\n\r\n");
        let mut head = RequestHead::default();
        let bytes = text.as_bytes();
        prop_assert_eq!(parse_request(bytes, &LIMITS, &mut head), Ok(Parsed::Complete));
        prop_assert_eq!(head.length, bytes.len());
        let part = &bytes[..cut.min(bytes.len() - 1)];
        prop_assert_eq!(parse_request(part, &LIMITS, &mut head), Ok(Parsed::Partial));
    }

    /// No bytes make the parser panic, and what it takes for whole ends with an empty line.
    #[test]
    fn any_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), good in any::<bool>()) {
        if good {
            bytes.splice(0..0, b"GET /a HTTP/1.1\r\nHost: h\r\n".iter().copied());
            bytes.extend_from_slice(b"\r\n\r\n");
        }
        let mut head = RequestHead::default();
        if parse_request(&bytes, &LIMITS, &mut head) == Ok(Parsed::Complete) {
            prop_assert!(bytes[..head.length].ends_with(b"\n\r\n") || bytes[..head.length].ends_with(b"\n\n"));
        }
    }
}
