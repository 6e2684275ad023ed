//! `Upgrade`: a tunnel opens only on the server's own 101 to a request that asked (RFC 9110 §7.8).

use crate::kit::{Client, Origin, Proxy, Setup, Why, get, plain, request};
use std::time::Duration;

const ASK: &str = "Connection: Upgrade\r\nUpgrade: chat\r\n";

fn chat() -> Origin {
    Origin::start(|exchange| match exchange.target.as_str() {
        "/chat" => exchange.echo_tunnel("chat"),
        _ => plain(exchange),
    })
}

/// Bytes flow both ways unchanged, whatever they look like.
#[test]
fn an_accepted_upgrade_is_a_tunnel() {
    let origin = chat();
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/chat", ASK, b""));
    let response = client.response("GET");
    assert_eq!(response.status, 101);
    assert!(
        response.head.names("connection", "upgrade"),
        "{:?}",
        response.head
    );
    assert_eq!(response.head.value("upgrade"), Some("chat"));
    for bytes in [
        &b"ping \x00\xff\r\n\r\nGET / HTTP/1.1\r\n\r\n"[..],
        b"0\r\n\r\n",
        &[b'b'; 100_000],
    ] {
        client.send(bytes);
        assert_eq!(client.raw(bytes.len()), bytes);
    }
    let seen = origin.saw_once("/chat");
    assert_eq!(seen.head.value("upgrade"), Some("chat"));
    assert!(seen.head.names("connection", "upgrade"));
}

/// A pause does not end it: the request's own empty body is not the tunnel's end.
#[test]
fn a_tunnel_lives_through_a_pause() {
    let origin = chat();
    let proxy =
        Proxy::start(&Setup::before(&origin).listen("timeout-client = \"150ms\"\ntimeout-tunnel = \"10s\""));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/chat", ASK, b""));
    assert_eq!(client.response("GET").status, 101);
    assert!(
        !client.listen_for(Duration::from_millis(400)),
        "nobody sent anything"
    );
    client.send("still here");
    assert_eq!(client.raw(10), b"still here");
}

/// What was sent before one side closed arrives at the other, then the close; the server's connection is not pooled.
#[test]
fn the_last_words_arrive() {
    let origin = Origin::start(|exchange| match exchange.target.as_str() {
        "/bye" => {
            exchange.body();
            exchange.send(
                "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\ngreeting and tail",
            );
            exchange.close();
        }
        _ => plain(exchange),
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/bye", ASK, b""));
    assert_eq!(client.response("GET").status, 101);
    assert_eq!(client.rest(), b"greeting and tail");
    assert_eq!(Client::of(&proxy).get("/next").connection(), 2);
}

/// A refused upgrade is an ordinary exchange; what follows is parsed as a request.
#[test]
fn a_refused_upgrade_stays_http() {
    let origin = chat();
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    for _ in 0..10 {
        client.send(request("GET", "/refused", ASK, b""));
        client.send(get("/after"));
        assert_eq!(client.response("GET").text(), "GET /refused\n");
        assert_eq!(client.response("GET").text(), "GET /after\n");
    }
    assert_eq!(origin.connections(), 1);
}

/// `Upgrade` that `Connection` does not name, or in HTTP/1.0, is no question.
#[test]
fn an_upgrade_must_be_asked_for() {
    let origin = chat();
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/unnamed", "Upgrade: chat\r\n", b""));
    assert_eq!(client.response("GET").status, 200);
    let mut old = Client::of(&proxy);
    old.send(format!("GET /old HTTP/1.0\r\nHost: app.test\r\n{ASK}\r\n"));
    assert_eq!(old.response("GET").status, 200);
    for target in ["/unnamed", "/old"] {
        assert!(
            origin.saw_once(target).head.values("upgrade").is_empty(),
            "{target}"
        );
    }
}

/// A silent tunnel ends by its own limit.
#[test]
fn a_silent_tunnel_ends() {
    let origin = chat();
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-tunnel = \"300ms\""));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/chat", ASK, b""));
    assert_eq!(client.response("GET").status, 101);
    assert_ne!(client.ending(), Why::Late);
}
