//! How connections end: nothing waits for ever, nothing is cut that could arrive, and nothing is left behind.

use crate::kit::{
    Client, Exchange, Gate, Origin, PATIENCE, Proxy, SOON, Setup, Signal, Why, eventually, get, metrics,
    plain, request,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// After a server's half-close, the client's last words and its end come in one event: both sides are closed then, and
/// still every byte arrives.
#[test]
fn last_words_after_the_servers_end_arrive() {
    let heard = Arc::new(Mutex::new(None));
    let at_origin = heard.clone();
    let origin = Origin::start(move |exchange| {
        exchange.body();
        exchange.send("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nmy last");
        exchange.half_close();
        *at_origin.lock().unwrap() = Some(exchange.rest());
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request(
        "GET",
        "/",
        "Connection: Upgrade\r\nUpgrade: chat\r\n",
        b"",
    ));
    assert_eq!(client.response("GET").status, 101);
    assert_eq!(client.rest(), b"my last");
    proxy.signal(Signal::STOP);
    client.send("and mine");
    client.half_close();
    proxy.signal(Signal::CONT);
    let said = eventually("the origin hears the end", || heard.lock().unwrap().take());
    assert_eq!(String::from_utf8_lossy(&said), "and mine");
}

/// Empty lines before a request are no request: they do not renew the time for one.
#[test]
fn empty_lines_do_not_keep_a_connection() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(
        &Setup::before(&origin)
            .listen("timeout-http-request = \"400ms\"\ntimeout-http-keep-alive = \"400ms\""),
    );
    for served_before in [false, true] {
        let mut client = Client::of(&proxy);
        if served_before {
            client.get("/");
        }
        let begun = Instant::now();
        for piece in ["\r\n", "\r", "\n"].iter().cycle() {
            if client.listen_for(Duration::from_millis(40)) || client.try_send(piece).is_err() {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_millis(400) + SOON,
                "empty lines keep it alive"
            );
        }
    }
}

/// Interim responses without end to a client that does not read: its time is up one day, and the server's connection
/// goes with it.
#[test]
fn a_client_that_reads_no_interim_response_is_cut() {
    let origin = Origin::start(|exchange| {
        let flood = "HTTP/1.1 102 Processing\r\n\r\n".repeat(2000);
        (0..1000).for_each(|_| exchange.send(&flood));
    });
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-client = \"300ms\""));
    let mut client = Client::of(&proxy);
    client.send(get("/"));
    eventually("the server's connection opens", || {
        (origin.connections() == 1).then_some(())
    });
    let begun = Instant::now();
    eventually("it ends", || (origin.open() == 0).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let timeouts = metrics(&proxy).sum("frontend_timeouts_total", &[]);
    assert!(
        timeouts < 10.0,
        "{timeouts} time-outs were counted for one client"
    );
    assert_eq!(client.ending(), Why::Reset);
}

/// B03: an early answer is passed on although the server broke the connection while the request was still being sent.
#[test]
fn an_early_answer_before_a_reset_arrives() {
    let origin = Origin::start(|exchange: &mut Exchange| {
        exchange.answer_early(413, "Connection: close\r\n", b"too much");
        exchange.reset();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let upload = request("POST", "/upload", "", &vec![b'u'; 2_000_000]);
    for _ in 0..30 {
        let response = Client::of(&proxy).exchange("POST", &upload).expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (413, "too much"));
    }
}

/// `reuse = "never"`: a client's own connection does not outlive the address it was opened to.
#[test]
fn a_private_connection_does_not_outlive_its_address() {
    let (first, second) = (named("first"), named("second"));
    let setup = |origin: &Origin| {
        let server = format!("{{ name = \"a\", address = \"{}\" }}", origin.address());
        Setup::before_servers(vec![server]).backend("reuse = \"never\"")
    };
    let proxy = Proxy::start(&setup(&first));
    let mut client = Client::of(&proxy);
    assert_eq!(client.get("/").text(), "first");
    proxy.reload(&setup(&second));
    eventually("the idle connection ends", || (first.open() == 0).then_some(()));
    assert_eq!(client.get("/").text(), "second");
}

/// A listener that vanishes with clients on it and comes back counts only the clients it has.
#[test]
fn a_listener_that_comes_back_counts_afresh() {
    let origin = Origin::start(plain);
    let both =
        Setup::before(&origin).more("[[listen]]\nname = \"side\"\nbind = \"127.0.0.1:0\"\nbackend = \"app\"");
    let proxy = Proxy::start(&both);
    let sessions = || metrics(&proxy).sum("frontend_current_sessions", &[("proxy", "side")]);
    let mut client = Client::connect(&proxy.address("side"));
    client.get("/");
    assert_eq!(sessions(), 1.0);
    proxy.reload(&Setup::before(&origin));
    proxy.says("reloaded", |line| line.contains("reloaded"));
    assert!(client.get("/").closes(), "its listener is gone");
    client.rest();
    proxy.reload(&both);
    eventually("the listener is back, with nobody on it", || {
        (proxy.addresses("side").len() == 2 && sessions() == 0.0).then_some(())
    });
}

/// An access log that was switched off by a reload is written again when another one asks for it.
#[test]
fn a_log_can_be_switched_off_and_on() {
    let origin = Origin::start(plain);
    let setup = Setup::before(&origin);
    let proxy = Proxy::start(&setup);
    let reload = |setup: &Setup, mark: &str| {
        proxy.reload(
            &setup
                .clone()
                .route(&format!("match = {{ path = \"{mark}\" }}\ndeny = 410")),
        );
        eventually("the reload", || {
            (Client::of(&proxy).get(mark).status == 410).then_some(())
        });
    };
    reload(&setup.clone().log("none"), "/off");
    assert_eq!(Client::of(&proxy).get("/unlogged").status, 200);
    reload(&setup, "/on");
    assert_eq!(Client::of(&proxy).get("/logged").status, 200);
    eventually("the line", || {
        let text = std::fs::read_to_string(proxy.path("access.log")).ok()?;
        assert!(!text.contains("/unlogged"));
        text.contains("/logged").then_some(())
    });
}

/// A draining process takes up no new configuration: it would listen again.
#[test]
fn a_draining_process_does_not_reload() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        at_origin.wait();
        plain(exchange);
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let address = proxy.web();
    let mut client = Client::connect(&address);
    client.send(get("/"));
    gate.reached(1);
    proxy.signal(Signal::TERM);
    eventually("the port refuses", || address.connect().is_err().then_some(()));
    proxy.reload(
        &Setup::before(&origin)
            .more("[[listen]]\nname = \"late\"\nbind = \"127.0.0.1:0\"\nbackend = \"app\""),
    );
    proxy.says("what became of it", |line| line.contains("reload"));
    assert!(proxy.addresses("late").is_empty());
    gate.open();
    assert_eq!(client.response("GET").status, 200);
    assert_eq!(proxy.exit_within(PATIENCE).code(), Some(0));
}

/// B13: a drain leaves idle clients a moment, for the request that may be on its way.
#[test]
fn a_drain_leaves_idle_clients_a_moment() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut idle = Client::of(&proxy);
    idle.get("/");
    let begun = Instant::now();
    proxy.signal(Signal::TERM);
    assert_eq!(idle.ending(), Why::Closed);
    assert!(
        begun.elapsed() >= Duration::from_millis(90),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(proxy.exit_within(PATIENCE).code(), Some(0));
}

/// B04: the answer is complete, the request never will be: neither side is kept for it.
#[test]
fn an_upload_that_never_ends_leaves_nothing() {
    let origin = Origin::start(|exchange| {
        exchange.answer_early(200, "", b"enough");
        exchange.stall(PATIENCE);
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let before = proxy.descriptors();
    let start = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{}",
        "u".repeat(1000)
    );
    let mut clients: Vec<Client> = (0..50).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.send(&start);
    }
    for client in &mut clients {
        let response = client.response("POST");
        assert_eq!((response.status, response.closes()), (200, true));
    }
    eventually("both sides are closed", || {
        (origin.open() == 0 && proxy.descriptors() <= before).then_some(())
    });
    assert_eq!(clients.len(), 50, "they are still there");
}

/// B09: whatever ends, and however, the gauges return to what there is.
#[test]
fn gauges_return() {
    let origin = Origin::start(|exchange| match exchange.target.as_str() {
        "/reset" => exchange.reset(),
        "/part" => {
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
            exchange.close();
        }
        "/junk" => exchange.send("junk\r\n\r\n"),
        "/extra" => exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokextra"),
        "/silent" => exchange.stall(PATIENCE),
        "/chat" => exchange.echo_tunnel("chat"),
        _ => plain(exchange),
    });
    let refused = Origin::start(plain);
    refused.crash();
    let setup = Setup::before(&origin)
        .listen("timeout-client = \"300ms\"\ntimeout-http-keep-alive = \"300ms\"\ntimeout-http-request = \"300ms\"")
        .route("match = { path = \"/refused\" }\nbackend = \"gone\"")
        .backend("timeout-server = \"300ms\"")
        .more(&format!(
            "[backend.gone]\ntimeout-connect = \"50ms\"\nservers = [\"{}\"]",
            refused.address()
        ));
    let proxy = Proxy::start(&setup);
    let before = proxy.descriptors();
    let upgrade = "Connection: Upgrade\r\nUpgrade: chat\r\n";
    let messages: Vec<Vec<u8>> = ["/", "/reset", "/part", "/junk", "/extra", "/silent", "/refused"]
        .iter()
        .map(|target| get(target).into_bytes())
        .chain([
            request("GET", "/chat", upgrade, b""),
            request("GET", "/refused-upgrade", upgrade, b""),
            b"junk\r\n\r\n".to_vec(),
            b"GET / HTTP/1.1\r\nHos".to_vec(),
            b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc".to_vec(),
        ])
        .collect();
    for reset in [false, true] {
        let mut clients: Vec<Client> = Vec::new();
        for message in messages.iter().cycle().take(5 * messages.len()) {
            let mut client = Client::of(&proxy);
            client.send(message);
            clients.push(client);
        }
        for mut client in clients {
            if reset {
                client.reset();
            } else {
                let _ = client.try_response("GET");
            }
        }
    }
    eventually("all gauges", || {
        let now = metrics(&proxy);
        let gone = [
            "process_current_connections",
            "frontend_current_sessions",
            "backend_current_sessions",
            "server_current_sessions",
            "server_used_connections_current",
        ];
        let idle = now.sum("server_idle_connections_current", &[]) as usize;
        let quiet = gone.iter().all(|name| now.sum(name, &[]) == 0.0);
        (quiet && idle == origin.open() && proxy.descriptors() <= before + idle).then_some(())
    });
}

fn named(name: &'static str) -> Origin {
    Origin::start(move |exchange| exchange.answer(200, "", name.as_bytes()))
}
