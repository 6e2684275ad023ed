//! The order of events within one exchange: interim responses, early answers, half-closes, lingering.

use crate::kit::{
    Client, Exchange, Gate, Origin, Proxy, SOON, Setup, Why, eventually, plain, request, willing,
};
use std::time::{Duration, Instant};

/// RFC 9110 §10.1.1, RFC 9112 §9.3: `100 Continue` reaches a client that waits for it, at once, on fresh and on reused
/// server connections.
#[test]
fn continue_reaches_the_client() {
    let origin = Origin::start(|exchange| {
        if exchange.head.names("expect", "100-continue") {
            exchange.send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        exchange.echo();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    for round in 0..20 {
        client.send(request_head(
            "POST",
            "/echo",
            "Expect: 100-continue\r\nContent-Length: 7\r\n",
        ));
        let asked = Instant::now();
        assert!(
            client.head().expect("an interim response").line.contains(" 100"),
            "round {round}"
        );
        assert!(asked.elapsed() < SOON);
        client.send("payload");
        let response = client.response("POST");
        assert_eq!((response.status, response.text().as_str()), (200, "payload"));
    }
}

/// RFC 9110 §10.1.1: the server may refuse instead; the body that the client then keeps is not taken from what follows.
#[test]
fn an_expectation_may_be_refused() {
    let origin = Origin::start(|exchange| {
        exchange.answer_early(401, "", b"who?");
        exchange.rest();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request_head(
        "POST",
        "/",
        "Expect: 100-continue\r\nContent-Length: 40\r\n",
    ));
    let response = client.response("POST");
    assert_eq!((response.status, response.text().as_str()), (401, "who?"));
    let _ = client.try_send("GET /smuggled HTTP/1.1\r\nHost: app.test\r\n\r\n");
    assert_ne!(client.ending(), Why::Late);
    assert!(origin.seen().iter().all(|seen| seen.target != "/smuggled"));
}

/// RFC 9110 §15.2: other interim responses pass to an HTTP/1.1 client and never to an HTTP/1.0 one.
#[test]
fn interim_responses_pass() {
    let origin = Origin::start(|exchange| {
        exchange.body();
        exchange.send("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
        plain(exchange);
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let response = Client::of(&proxy).get("/");
    let lines: Vec<_> = response
        .interim
        .iter()
        .map(|head| head.line.get(..12).unwrap_or_default())
        .collect();
    assert_eq!(lines, ["HTTP/1.1 102", "HTTP/1.1 103"]);
    assert_eq!(response.interim[1].value("link"), Some("</a.css>"));
    let mut old = Client::of(&proxy);
    old.send("GET / HTTP/1.0\r\nHost: app.test\r\n\r\n");
    let response = old.response("GET");
    assert_eq!((response.status, response.interim.len()), (200, 0));
}

/// RFC 9110 §7.8: a 101 that nobody asked for opens nothing.
#[test]
fn an_unasked_switch_is_an_error() {
    let origin = Origin::start(|exchange| exchange.echo_tunnel("chat"));
    let proxy = Proxy::start(&Setup::before(&origin));
    assert_eq!(Client::of(&proxy).get("/").status, 502);
}

/// RFC 9112 §9.5, DESIGN §1 (early responses): an answer that comes while the upload runs reaches the client; the rest
/// of the body never becomes a request, and that server connection is not used again.
#[test]
fn an_early_answer_reaches_the_client() {
    let origin = Origin::start(|exchange| {
        if exchange.target == "/upload" {
            exchange.answer_early(413, "", b"too much");
            exchange.half_close();
            exchange.rest();
        } else {
            plain(exchange);
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    for _ in 0..10 {
        let response =
            Client::of(&proxy).exchange("POST", &request("POST", "/upload", "", &vec![b'x'; 2 << 20]));
        let response = response.expect("the server's answer");
        assert_eq!((response.status, response.text().as_str()), (413, "too much"));
        let next = Client::of(&proxy).get("/next");
        assert_eq!((next.status, next.text().as_str()), (200, "GET /next\n"));
    }
    let uploads: Vec<u32> = origin.saw("/upload").iter().map(|seen| seen.connection).collect();
    assert!(
        origin
            .saw("/next")
            .iter()
            .all(|seen| !uploads.contains(&seen.connection) || seen.request == 1)
    );
}

/// The same from a server that answers and closes with the upload unread: its answer or a complete 502, at once.
#[test]
fn an_early_answer_with_a_close_is_no_hang() {
    let origin = Origin::start(|exchange| {
        exchange.answer_early(403, "", b"no");
        exchange.close();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut served = 0;
    for _ in 0..20 {
        let begun = Instant::now();
        let response = Client::of(&proxy).exchange("POST", &request("POST", "/", "", &vec![b'x'; 2 << 20]));
        assert!(begun.elapsed() < Duration::from_secs(5), "it hung");
        if let Ok(response) = response {
            assert!([403, 502].contains(&response.status), "{}", response.status);
            served += 1;
        }
    }
    assert!(served >= 19, "{served} of 20 got an answer");
}

/// When the answer is complete and the request never will be, the exchange ends by the client's inactivity limit: no
/// connection stays behind on either side.
#[test]
fn an_answered_upload_that_never_ends_is_ended() {
    let origin = Origin::start(|exchange| {
        exchange.answer_early(200, "", b"enough");
        exchange.rest();
    });
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-client = \"300ms\""));
    let mut clients: Vec<Client> = (0..20).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.send(request_head("POST", "/", "Content-Length: 1000000\r\n"));
        client.send(vec![b'x'; 1000]);
        assert_eq!(client.response("POST").status, 200);
    }
    for client in &mut clients {
        assert_ne!(client.ending(), Why::Late);
    }
    eventually("the server's connections end", || {
        (origin.open() == 0).then_some(())
    });
}

/// RFC 9112 §9.6: a half-close behind the request does not mean that the client has gone.
#[test]
fn a_half_close_is_not_an_abort() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange: &mut Exchange| {
        at_origin.wait();
        exchange.echo();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request("POST", "/echo", "", b"last words"));
    client.half_close();
    gate.reached(1);
    gate.open();
    assert_eq!(client.response("POST").text(), "last words");
    assert_eq!(client.rest(), b"");
}

/// A half-close within a head or a body ends the exchange; no server gets half a request as a whole one.
#[test]
fn a_half_close_within_a_request_ends_it() {
    let origin = Origin::start(willing);
    let proxy = Proxy::start(&Setup::before(&origin));
    for message in [
        "GET /half HTTP/1.1\r\nHost: a",
        "POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhal",
    ] {
        let mut client = Client::of(&proxy);
        client.send(message);
        client.half_close();
        if let Ok(response) = client.try_response("POST") {
            assert!(matches!(response.status, 400 | 408), "{}", response.status);
        }
        assert_ne!(client.ending(), Why::Late);
    }
    eventually("the server's connection ends", || {
        (origin.open() == 0).then_some(())
    });
    assert!(origin.seen().iter().all(|seen| seen.body.is_none()));
}

/// RFC 9112 §9.6: the proxy closes in stages. A client that has more in flight still reads the error, not a reset.
#[test]
fn a_refusal_is_not_lost_to_a_reset() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    for _ in 0..10 {
        let mut message = b"POST / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 200000\r\n\r\n".to_vec();
        message.resize(message.len() + 200_000, b'x');
        let mut client = Client::of(&proxy);
        let response = client.exchange("POST", &message).expect("the refusal, whole");
        assert_eq!(response.status, 400);
        assert_eq!(client.rest(), b"");
    }
}

/// RFC 9112 §9.6 with `Connection: close`: the last byte of a long answer arrives before the end, however slowly it is
/// read.
#[test]
fn the_last_answer_is_not_cut() {
    let origin = Origin::start(|exchange| exchange.answer(200, "", &vec![b'z'; 3 << 20]));
    let proxy = Proxy::start(&Setup::before(&origin));
    for _ in 0..5 {
        let mut client = Client::of(&proxy);
        client.send(request("GET", "/", "Connection: close\r\n", b""));
        assert_eq!(client.response("GET").body.len(), 3 << 20);
        assert_eq!(client.rest(), b"");
    }
}

/// A client that resets in the middle of anything costs nobody else anything, and leaves nothing open.
#[test]
fn clients_that_reset_leave_nothing_behind() {
    let origin = Origin::start(|exchange| match exchange.target.as_str() {
        "/slow" => exchange.stall(Duration::from_secs(30)),
        _ => willing(exchange),
    });
    let proxy = Proxy::start(&Setup::before(&origin).backend("reuse = \"never\""));
    for message in [
        "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhal",
        "GET /he",
    ] {
        for _ in 0..10 {
            let mut client = Client::of(&proxy);
            client.send(message);
            client.reset();
        }
    }
    assert_eq!(Client::of(&proxy).get("/fine").status, 200);
    eventually("the server's connections end", || {
        (origin.open() == 0).then_some(())
    });
}

fn request_head(method: &str, path: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: app.test\r\n{fields}\r\n")
}
