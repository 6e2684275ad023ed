//! HTTP/1.1 forwarding of heads: connections kept on both sides, pipelining, methods, versions, hop-by-hop fields.

use crate::kit::{Client, Origin, Proxy, Setup, Why, get, plain, request, willing};
use std::time::Duration;

/// RFC 9112 §9.3: the client's connection persists. POOL-11 (`always`): so does the server's, across clients.
#[test]
fn connections_persist_on_both_sides() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).workers(1).backend("reuse = \"always\""));
    let mut first = Client::of(&proxy);
    for request in 1..=5 {
        let response = first.get("/again");
        assert_eq!((response.status, response.text().as_str()), (200, "GET /again\n"));
        assert_eq!((response.connection(), response.request()), (1, request));
        assert!(!response.closes());
    }
    let mut second = Client::of(&proxy);
    assert_eq!(second.get("/other").connection(), 1);
    assert_eq!(origin.connections(), 1);
}

/// RFC 9112 §9.3.2: answers come in the order of the requests, whatever the segmentation.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start(willing);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut burst = Vec::new();
    for number in 0..20 {
        burst.extend_from_slice(&request(
            "POST",
            &format!("/echo/{number}"),
            "",
            format!("b{number}").as_bytes(),
        ));
        burst.extend_from_slice(get(&format!("/{number}")).as_bytes());
    }
    for piece in [burst.len(), 7] {
        let mut client = Client::of(&proxy);
        client.send_in_pieces(&burst, piece, Duration::ZERO);
        for number in 0..20 {
            assert_eq!(client.response("POST").text(), format!("b{number}"));
            assert_eq!(client.response("GET").text(), format!("GET /{number}\n"));
        }
    }
}

/// RFC 9112 §9.3.2 with §9.6: what is pipelined behind a request that ends the connection is not carried out.
#[test]
fn nothing_is_forwarded_behind_connection_close() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/last", "Connection: close\r\n", b""));
    client.send(get("/beyond"));
    let response = client.response("GET");
    assert!(response.closes());
    assert_eq!(client.rest(), b"");
    assert!(origin.seen().iter().all(|seen| seen.target == "/last"));
}

/// RFC 9112 §2.2 and §3: a head that comes one byte at a time is one head.
#[test]
fn a_head_may_come_byte_by_byte() {
    let origin = Origin::start(willing);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send_in_pieces(
        request("POST", "/echo", "X-Slow: yes\r\n", b"bytewise"),
        1,
        Duration::from_millis(1),
    );
    assert_eq!(client.response("POST").text(), "bytewise");
    assert_eq!(origin.saw_once("/echo").head.value("x-slow"), Some("yes"));
}

/// RFC 9112 §2.2: an empty line before a request line is let pass.
#[test]
fn an_empty_line_before_the_request_is_let_pass() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(format!("\r\n{}", get("/after-line")));
    assert_eq!(client.response("GET").status, 200);
    assert_eq!(
        origin.saw_once("/after-line").head.line,
        "GET /after-line HTTP/1.1"
    );
}

/// RFC 9110 §9.3.2, §15.3.5, §15.4.5: HEAD, 204 and 304 have no body, and the connection goes on.
#[test]
fn responses_without_a_body_end_at_their_head() {
    let origin = Origin::start(|exchange| match exchange.target.as_str() {
        "/204" => exchange.answer(204, "", b""),
        "/304" => exchange.answer(304, "ETag: \"v1\"\r\nContent-Length: 1234\r\n", b""),
        "/chunked" => {
            let head = exchange.answer_head(200, "Transfer-Encoding: chunked\r\n");
            exchange.send(head);
        }
        _ => exchange.answer(200, "", &[b'x'; 500]),
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    for (method, path, status) in [
        ("HEAD", "/sized", 200),
        ("GET", "/204", 204),
        ("GET", "/304", 304),
        ("HEAD", "/chunked", 200),
    ] {
        client.send(request(method, path, "", b""));
        let response = client.response(method);
        assert_eq!(
            (response.status, response.body.len()),
            (status, 0),
            "{method} {path}"
        );
    }
    assert_eq!(client.get("/whole").body.len(), 500);
    assert_eq!(origin.connections(), 1);
    assert_eq!(origin.saw_once("/sized").method, "HEAD");
}

/// RFC 9110 §9.3.2: the length that HEAD announces is passed on.
#[test]
fn head_keeps_the_announced_length() {
    let origin = Origin::start(|exchange| exchange.answer(200, "", &[b'x'; 321]));
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request("HEAD", "/", "", b""));
    assert_eq!(client.response("HEAD").head.value("content-length"), Some("321"));
}

/// RFC 9112 §9.3: an HTTP/1.0 client without `keep-alive` gets its answer and the close; its server is spoken to in 1.1.
#[test]
fn an_http_1_0_client_is_closed_after_its_answer() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send("GET /old HTTP/1.0\r\nHost: app.test\r\n\r\n");
    assert_eq!(client.response("GET").text(), "GET /old\n");
    assert_eq!(client.rest(), b"");
    assert_eq!(origin.saw_once("/old").head.line, "GET /old HTTP/1.1");
}

/// RFC 9112 §9.3 and appendix C.2.2: `keep-alive` of an HTTP/1.0 client is answered as such, and meant.
#[test]
fn an_http_1_0_client_may_keep_its_connection() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    for _ in 0..3 {
        client.send("GET /kept HTTP/1.0\r\nHost: app.test\r\nConnection: keep-alive\r\n\r\n");
        let response = client.response("GET");
        assert!(
            response.head.names("connection", "keep-alive"),
            "{:?}",
            response.head
        );
    }
}

/// RFC 9112 §6.1, §7: a chunked answer reaches an HTTP/1.0 client decoded, ended by the close.
#[test]
fn chunked_is_decoded_for_http_1_0() {
    let origin =
        Origin::start(|exchange| exchange.answer_chunked(&[b"one ", b"two ", b"three"], "X-T: 1\r\n"));
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send("GET /old HTTP/1.0\r\nHost: app.test\r\n\r\n");
    let response = client.response("GET");
    assert_eq!(response.text(), "one two three");
    assert!(response.head.values("transfer-encoding").is_empty());
}

/// RFC 9112 §9.3: a server that answers in HTTP/1.0 is believed about its connection, and its client is not bothered.
#[test]
fn an_http_1_0_server_is_not_reused() {
    let origin = Origin::start(|exchange| {
        exchange.body();
        exchange.send("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold");
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    for _ in 0..3 {
        let response = client.get("/");
        assert_eq!((response.text().as_str(), response.closes()), ("old", false));
    }
    assert_eq!(origin.connections(), 3);
}

/// RFC 9110 §7.6.1: hop-by-hop fields and those named by `Connection` end at the proxy, in both directions; a
/// field of ours is not lost when the client names it.
#[test]
fn hop_by_hop_fields_end_here() {
    let origin = Origin::start(|exchange| {
        exchange.answer(
            200,
            "Connection: X-Inner\r\nX-Inner: 1\r\nKeep-Alive: timeout=3\r\nX-Kept: 1\r\n",
            b"ok",
        );
    });
    let proxy = Proxy::start(&Setup::before(&origin).listen("x-forwarded = \"append\""));
    let mut client = Client::of(&proxy);
    let fields = "Connection: X-Hop, keep-alive, X-Forwarded-For\r\nConnection: X-Second\r\nX-Second: 1\r\n\
                  X-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\nX-End: 1\r\n";
    client.send(request("POST", "/hops", fields, b"four"));
    let response = client.response("POST");
    let seen = origin.saw_once("/hops");
    for gone in [
        "connection",
        "x-hop",
        "x-second",
        "keep-alive",
        "proxy-connection",
        "te",
    ] {
        assert!(
            seen.head.values(gone).is_empty(),
            "{gone} reached the server: {:?}",
            seen.head
        );
    }
    assert_eq!(seen.body.as_deref(), Some(&b"four"[..]));
    assert_eq!(
        (seen.head.value("x-end"), seen.head.value("host")),
        (Some("1"), Some("app.test"))
    );
    assert!(
        seen.head.value("x-forwarded-for").is_some(),
        "our own field is not lost to Connection"
    );
    for gone in ["x-inner", "keep-alive"] {
        assert!(
            response.head.values(gone).is_empty(),
            "{gone} reached the client: {:?}",
            response.head
        );
    }
    assert_eq!(response.head.value("x-kept"), Some("1"));
}

/// RFC 9112 §3.2.2: the authority of an absolute-form target is the Host the server sees, in origin-form.
#[test]
fn an_absolute_target_decides_the_host() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send("GET http://real.test/path?q=1 HTTP/1.1\r\nHost: other.test\r\n\r\n");
    assert_eq!(client.response("GET").status, 200);
    assert_eq!(origin.saw_once("/path?q=1").head.value("host"), Some("real.test"));
}

/// RFC 9112 §6.3: a response framed by the close of its connection arrives whole, and the client is told how it ends.
#[test]
fn a_response_may_end_with_its_connection() {
    let origin = Origin::start(|exchange| {
        exchange.body();
        exchange.send("HTTP/1.1 200 OK\r\n\r\nup to the end");
        exchange.close();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    let response = client.get("/");
    assert_eq!(response.text(), "up to the end");
    if response.head.framing().is_none() {
        assert!(response.closes());
        assert_eq!(client.ending(), Why::Closed);
    }
}

/// RFC 9112 §3.2, §5.1, §6: what a gateway must refuse is refused, the connection ends, no server hears of it.
#[test]
fn malformed_requests_never_reach_a_server() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    for (what, message, status) in [
        ("no Host", "GET / HTTP/1.1\r\n\r\n", 400),
        ("two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (
            "space before colon",
            "GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n",
            400,
        ),
        (
            "folded line",
            "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
            400,
        ),
        (
            "two lengths",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            400,
        ),
        (
            "signed length",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx",
            400,
        ),
        (
            "both framings",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        ("no request at all", "\u{16}\u{3}\u{1}\r\n\r\n", 400),
    ] {
        let mut client = Client::of(&proxy);
        client.send(message);
        let response = client.response("GET");
        assert_eq!(response.status, status, "{what}");
        assert!(response.closes(), "{what}");
        client.rest();
    }
    assert_eq!(origin.seen().len(), 0);
    assert_eq!(origin.connections(), 0);
}
