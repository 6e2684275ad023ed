use super::{RequestContext, ResponseHead, parse_response};
use crate::http1::{BadResponse, ClientConnection, Framing, Limits, Method, Parsed, Version};
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    head_max: 1024,
    request_line_max: 128,
    headers_max: 16,
};
const GET: RequestContext = RequestContext {
    method: Method::Get,
    upgrade: false,
    client: Version::Http11,
};
const HEAD: RequestContext = RequestContext {
    method: Method::Head,
    ..GET
};
const UPGRADE: RequestContext = RequestContext { upgrade: true, ..GET };

fn parse_for(context: RequestContext, text: &str) -> Result<ResponseHead, BadResponse> {
    let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let mut head = ResponseHead::default();
    match parse_response(&bytes, &LIMITS, context, &mut head)? {
        Parsed::Complete => Ok(head),
        Parsed::Partial => panic!("partial: {text:?}"),
    }
}

fn parse(text: &str) -> Result<ResponseHead, BadResponse> {
    parse_for(GET, text)
}

#[test]
fn bad_responses() {
    let cases = [
        ("HELLO WORLD\r\n", BadResponse::MalformedStatusLine),
        ("ICY 200 OK\r\n\r\n", BadResponse::MalformedStatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n", BadResponse::MalformedStatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n", BadResponse::MalformedStatusLine),
        ("HTTP/1.1 2000 OK\r\n\r\n", BadResponse::MalformedStatusLine),
        ("HTTP/1.1 OK\r\n\r\n", BadResponse::MalformedStatusLine),
        ("HTTP/1.1 000 Zero\r\n\r\n", BadResponse::StatusOutOfRange),
        (
            "HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n",
            BadResponse::MalformedFieldValue,
        ),
        (
            "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
            BadResponse::MalformedFieldValue,
        ),
        (
            "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
            BadResponse::MalformedFieldName,
        ),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
            BadResponse::MalformedFieldName,
        ),
        (
            "HTTP/1.1 200 OK\r\n X: a\r\n\r\n",
            BadResponse::MalformedFieldName,
        ),
        ("HTTP/1.1 200 OK\r\nWord\r\n\r\n", BadResponse::MalformedFieldName),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
            BadResponse::LengthInvalid,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551619\r\n\r\n",
            BadResponse::LengthInvalid,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            BadResponse::LengthConflict,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            BadResponse::CodingInvalid,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            BadResponse::CodingUnsupported,
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            BadResponse::CodingInHttp10,
        ),
        (
            "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
            BadResponse::UnaskedUpgrade,
        ),
    ];
    for (text, bad) in cases {
        assert_eq!(parse(text).err(), Some(bad), "{text:?}");
    }
    let old = "HTTP/1.0 101 Switching\r\nUpgrade: x\r\n\r\n";
    assert_eq!(parse_for(UPGRADE, old).err(), Some(BadResponse::UnaskedUpgrade));
    let large = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(1024));
    assert_eq!(parse(&large).err(), Some(BadResponse::HeadTooLarge));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: 1\r\n".repeat(17));
    assert_eq!(parse(&many).err(), Some(BadResponse::TooManyFields));
}

#[test]
fn framing_by_rfc_9112() {
    let length = "Content-Length: 5\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let cases = [
        (GET, "200 OK", length, Framing::Length(5)),
        (
            GET,
            "200 OK",
            "Content-Length: 5\r\nContent-Length: 5\r\n",
            Framing::Length(5),
        ),
        (GET, "200 OK", chunked, Framing::Chunked),
        (GET, "200 OK", "", Framing::UntilClose),
        (HEAD, "200 OK", length, Framing::None),
        (HEAD, "404 Not Found", chunked, Framing::None),
        (GET, "204 No Content", length, Framing::None),
        (GET, "204 No Content", chunked, Framing::None),
        (GET, "304 Not Modified", length, Framing::None),
        (GET, "103 Early Hints", "Content-Length: x\r\n", Framing::None),
        (
            UPGRADE,
            "101 Switching Protocols",
            "Upgrade: x\r\n",
            Framing::None,
        ),
        (UPGRADE, "200 OK", length, Framing::Length(5)),
    ];
    for (context, status, fields, framing) in cases {
        let head = parse_for(context, &format!("HTTP/1.1 {status}\r\n{fields}\r\n")).unwrap();
        assert_eq!(head.framing, framing, "{status} {fields}");
        assert_eq!(head.switching, status.starts_with("101"));
        assert_eq!(head.is_interim(), status.starts_with("103"));
    }
}

#[test]
fn a_length_beside_chunked_is_dropped_and_the_connection_not_used_again() {
    for fields in [
        "Content-Length: 50\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 50\r\n",
    ] {
        let head = parse(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).unwrap();
        assert_eq!(head.framing, Framing::Chunked);
        assert!(!head.keep_alive && !head.verbatim);
        assert_eq!(head.fields.iter().filter(|field| field.keep).count(), 1);
    }
}

#[test]
fn persistence() {
    assert!(
        parse("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap()
            .keep_alive
    );
    assert!(!parse("HTTP/1.1 200 OK\r\n\r\n").unwrap().keep_alive);
    assert!(
        !parse("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            .unwrap()
            .keep_alive
    );
    assert!(
        !parse("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap()
            .keep_alive
    );
    assert!(
        parse("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n")
            .unwrap()
            .keep_alive
    );
    assert!(parse("HTTP/1.1 204 No Content\r\n\r\n").unwrap().keep_alive);
}

#[test]
fn only_a_canonical_head_goes_verbatim() {
    let keep = ClientConnection::KeepAlive;
    let good = parse("HTTP/1.1 200 \r\nDate: x\r\nX-A: \r\nContent-Length: 4\r\n\r\n").unwrap();
    assert!(good.goes_verbatim(keep, Version::Http11, b""));
    assert!(!good.goes_verbatim(keep, Version::Http11, b"X: y\r\n"));
    assert!(!good.goes_verbatim(keep, Version::Http10, b""));
    assert!(!good.goes_verbatim(ClientConnection::Close, Version::Http11, b""));
    for text in [
        "HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length:4\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4 \r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 04\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nUpgrade: x\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    ] {
        assert!(
            !parse(text).unwrap().goes_verbatim(keep, Version::Http11, b""),
            "{text:?}"
        );
    }
    let text = b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 4\r\n\r\n";
    let mut head = parse(std::str::from_utf8(text).unwrap()).unwrap();
    head.drop_named(text, b"x-none");
    head.drop_named(text, b"content-length");
    assert!(head.verbatim);
    head.drop_named(text, b"SERVER");
    assert!(!head.verbatim && head.find(text, b"server").is_none());
}

proptest! {
    /// No bytes make the parser panic; a prefix of a good head is waited for.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..100), cut in 0usize..100, value in "[ -~]{0,30}") {
        let mut head = ResponseHead::default();
        let _ = parse_response(&bytes, &LIMITS, GET, &mut head);
        let good = format!("HTTP/1.1 200 OK\r\nX: {value}\r\n\r\n");
        let part = &good.as_bytes()[..cut.min(good.len() - 1)];
        prop_assert_eq!(parse_response(part, &LIMITS, GET, &mut head), Ok(Parsed::Partial));
        prop_assert_eq!(parse_response(good.as_bytes(), &LIMITS, GET, &mut head), Ok(Parsed::Complete));
    }
}
