//! SIGTERM and SIGINT: what has begun is finished, then the process ends (RE-1).

use crate::kit::{
    Broken, Client, Exchange, Gate, Origin, PATIENCE, Proxy, Setup, Signal, Why, eventually, get, plain,
    request,
};
use std::time::{Duration, Instant};

fn held(gate: &Gate) -> Origin {
    let gate = gate.clone();
    Origin::start(move |exchange: &mut Exchange| {
        if exchange.target == "/held" {
            gate.wait();
        }
        plain(exchange);
    })
}

/// Requests in flight complete and announce the close; new connections are refused; the exit code is 0, soon after the
/// last answer.
#[test]
fn a_drain_finishes_what_has_begun() {
    for signal in [Signal::TERM, Signal::INT] {
        let gate = Gate::default();
        let origin = held(&gate);
        let proxy = Proxy::start(&Setup::before(&origin));
        let address = proxy.web();
        let mut clients: Vec<Client> = (0..5).map(|_| Client::connect(&address)).collect();
        for client in &mut clients {
            client.send(get("/held"));
        }
        gate.reached(5);
        proxy.signal(signal);
        eventually("the port refuses", || address.connect().is_err().then_some(()));
        assert!(proxy.runs(), "five requests are in flight");
        gate.open();
        for client in &mut clients {
            let response = client.response("GET");
            assert_eq!((response.status, response.closes()), (200, true));
            assert_eq!(client.rest(), b"");
        }
        let last = Instant::now();
        assert_eq!(proxy.exit_within(PATIENCE).code(), Some(0));
        assert!(
            last.elapsed() < Duration::from_secs(2),
            "{:?} after the last answer",
            last.elapsed()
        );
    }
}

/// A response that streams when the signal comes arrives whole.
#[test]
fn a_drain_does_not_cut_a_body() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        exchange.body();
        exchange.send(exchange.answer_head(200, "Content-Length: 2000000\r\n"));
        exchange.send(vec![b'a'; 1_000_000]);
        at_origin.wait();
        exchange.send(vec![b'b'; 1_000_000]);
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(get("/"));
    gate.reached(1);
    proxy.signal(Signal::TERM);
    gate.open();
    assert_eq!(client.response("GET").body.len(), 2_000_000);
    assert_eq!(proxy.exit_within(PATIENCE).code(), Some(0));
}

/// With nothing in flight it ends at once; idle clients are closed in the regular way.
#[test]
fn an_idle_proxy_ends_at_once() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut idle = Client::of(&proxy);
    idle.get("/");
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.exit_within(Duration::from_secs(5)).code(), Some(0));
    assert_eq!(idle.ending(), Why::Closed);
    eventually("the server's connections end", || {
        (origin.open() == 0).then_some(())
    });
}

/// A request that comes on a kept connection after the signal is served or the connection is closed before it; never is
/// a request taken and lost.
#[test]
fn a_request_during_the_drain_is_served_or_not_taken() {
    let gate = Gate::default();
    let origin = held(&gate);
    let proxy = Proxy::start(&Setup::before(&origin));
    let address = proxy.web();
    let (mut busy, mut kept) = (Client::connect(&address), Client::connect(&address));
    kept.get("/");
    busy.send(get("/held"));
    gate.reached(1);
    proxy.signal(Signal::TERM);
    eventually("the port refuses", || address.connect().is_err().then_some(()));
    let sent = kept.try_send(get("/late"));
    match sent.is_ok().then(|| kept.try_response("GET")) {
        Some(Ok(response)) => assert_eq!((response.status, response.closes()), (200, true)),
        Some(Err(Broken { got, .. })) => {
            assert_eq!(got, b"", "half an answer");
            assert!(
                origin.seen().iter().all(|seen| seen.target != "/late"),
                "it was taken and lost"
            );
        }
        None => {}
    }
    gate.open();
    assert_eq!(busy.response("GET").status, 200);
    assert_eq!(proxy.exit_within(PATIENCE).code(), Some(0));
}

/// `hard-stop-after` bounds the drain.
#[test]
fn a_drain_has_an_end() {
    let gate = Gate::default();
    let origin = held(&gate);
    let proxy = Proxy::start(&Setup::before(&origin).process("hard-stop-after = \"500ms\""));
    let mut client = Client::of(&proxy);
    client.send(get("/held"));
    gate.reached(1);
    let begun = Instant::now();
    proxy.signal(Signal::TERM);
    proxy.exit_within(Duration::from_secs(4));
    assert!(begun.elapsed() >= Duration::from_millis(450), "it did not wait");
    gate.open();
}

/// A second signal ends it at once.
#[test]
fn a_second_signal_stops_at_once() {
    let gate = Gate::default();
    let origin = held(&gate);
    let proxy = Proxy::start(&Setup::before(&origin));
    let address = proxy.web();
    let mut client = Client::connect(&address);
    client.send(request("GET", "/held", "", b""));
    gate.reached(1);
    proxy.signal(Signal::TERM);
    eventually("the port refuses", || address.connect().is_err().then_some(()));
    assert!(proxy.runs());
    proxy.signal(Signal::TERM);
    proxy.exit_within(Duration::from_secs(2));
    gate.open();
}

/// A Unix listener's path and the control socket go with the process.
#[test]
fn sockets_in_the_file_system_are_removed() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).bind("\"unix:$DIR/web.sock\""));
    assert_eq!(Client::of(&proxy).get("/").status, 200);
    proxy.signal(Signal::TERM);
    proxy.exit_within(PATIENCE);
    for name in ["web.sock", "control.sock"] {
        assert!(!proxy.path(name).exists(), "{name} is still there");
    }
}
