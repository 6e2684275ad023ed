//! Servers that die: what is tried again, what is answered, what is counted (DESIGN §3, RT-*, POOL-16, AC-6).

use crate::kit::{
    Client, Exchange, Gate, Metrics, Origin, Proxy, Setup, eventually, metrics, plain, request,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A server that answers the first request on a connection and closes silently on the second one, having read it.
fn closes_on_reuse() -> Origin {
    Origin::start(|exchange| match exchange.request {
        1 => plain(exchange),
        _ => {
            exchange.body();
            exchange.close();
        }
    })
}

fn reuse_aborts(metrics: &Metrics) -> f64 {
    metrics.sum("server_reuse_aborts_total", &[("proxy", "app")])
}

/// AC-6, DESIGN §3 (b): a reused connection that dies before its first response byte; GET is sent once more on a fresh
/// connection, free of charge.
#[test]
fn a_get_on_a_dying_connection_is_retried_on_a_fresh_one() {
    let origin = closes_on_reuse();
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    assert_eq!(client.get("/first").connection(), 1);
    let again = client.get("/again");
    assert_eq!((again.status, again.connection(), again.request()), (200, 2, 1));
    assert_eq!(origin.saw("/again").len(), 2);
    assert_eq!(reuse_aborts(&metrics(&proxy)), 0.0);
}

/// AC-6, DESIGN §3 (c): the same with POST is a complete 502, carried out at most once, and counted.
#[test]
fn a_post_on_a_dying_connection_is_a_502() {
    let origin = closes_on_reuse();
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    client.get("/first");
    client.send(request("POST", "/once", "", b"do it"));
    let response = client.response("POST");
    assert_eq!(response.status, 502);
    assert!(response.head.framing().is_some(), "a complete response");
    assert_eq!(origin.saw("/once").len(), 1);
    eventually("reuse_aborts", || {
        (reuse_aborts(&metrics(&proxy)) == 1.0).then_some(())
    });
}

/// DESIGN §3 (b): idempotent methods with a small body are held and sent again, whole (RFC 9110 §9.2.2), whether it came
/// with its head or after it.
#[test]
fn a_put_with_a_small_body_is_sent_again_whole() {
    let origin = Origin::start(|exchange| match (exchange.request, exchange.target.as_str()) {
        (1, "/put") => exchange.echo(),
        (1, _) => plain(exchange),
        _ => {
            exchange.body();
            exchange.close();
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    let body = vec![b'p'; 8000];
    let message = request("PUT", "/put", "", &body);
    for piece in [message.len(), 3000] {
        client.get("/first");
        client.send_in_pieces(&message, piece, Duration::from_millis(20));
        let response = client.response("PUT");
        assert_eq!(
            (response.status, response.body == body),
            (200, true),
            "by {piece} bytes"
        );
    }
    assert_eq!(origin.saw("/put").len(), 4);
    assert!(
        origin
            .saw("/put")
            .iter()
            .all(|seen| seen.body.as_deref() == Some(&body[..]))
    );
}

/// DESIGN §3 (b): beyond 16 KiB of body nothing is held: the request fails rather than arriving with a wrong body.
#[test]
fn a_put_with_a_large_body_is_not_sent_again() {
    let origin = closes_on_reuse();
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    client.get("/first");
    let response = client
        .exchange("PUT", &request("PUT", "/put", "", &vec![b'p'; 300_000]))
        .expect("an answer");
    assert_eq!(response.status, 502);
    assert_eq!(origin.saw("/put").len(), 1);
}

/// DESIGN §3 (b) ends where a response has begun: one byte of it is enough.
#[test]
fn nothing_is_retried_after_the_first_response_byte() {
    let origin = Origin::start(|exchange| match exchange.request {
        1 => plain(exchange),
        _ => {
            exchange.send("HTTP/1.1 2");
            exchange.close();
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    client.get("/first");
    assert_eq!(client.get("/begun").status, 502);
    assert_eq!(origin.saw("/begun").len(), 1);
}

/// DESIGN §3 (c), RT-7: a fresh connection that dies after the request was read: POST is never repeated, GET once
/// (decision 0002); then a complete 502.
#[test]
fn a_death_on_a_fresh_connection_is_a_502() {
    let origin = Origin::start(|exchange| {
        exchange.body();
        exchange.close();
    });
    let proxy = Proxy::start(&Setup::before(&origin).backend("timeout-connect = \"100ms\""));
    for (method, body, times) in [("GET", &b""[..], 2), ("POST", b"x", 1)] {
        let target = format!("/{method}");
        let mut client = Client::of(&proxy);
        client.send(request(method, &target, "", body));
        assert_eq!(client.response(method).status, 502);
        assert_eq!(origin.saw(&target).len(), times, "{method}");
    }
}

/// DESIGN §4: a connection that the server closed, or on which it sent anything, right behind its answer or while it was
/// parked, is never lent: the next request, whatever its method, simply works.
#[test]
fn a_closed_or_poisoned_connection_is_not_lent() {
    let origin = Origin::start(|exchange| {
        plain(exchange);
        if exchange.target.starts_with("/later") {
            exchange.stall(Duration::from_millis(50));
        }
        match exchange.target.rsplit('/').next().unwrap_or_default() {
            "close" => exchange.close(),
            "poison" => exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"),
            _ => {}
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    let targets = [
        "/at-once/close",
        "/at-once/poison",
        "/later/close",
        "/later/poison",
    ];
    for (number, target) in (0..).zip(targets) {
        let connection = client.get(target).connection();
        client.listen_for(Duration::from_millis(150));
        client.send(request("POST", "/after", "", b"safe"));
        let response = client.response("POST");
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, "POST /after\n"),
            "{target}"
        );
        assert_ne!(response.connection(), connection);
        assert_eq!(origin.saw("/after").len(), number + 1);
        origin.close_connections();
        client.listen_for(Duration::from_millis(100));
    }
}

/// AC-30, RT-3: one of two servers refuses: the other one is asked at once, POST included, and it is counted.
#[test]
fn a_refused_connection_goes_to_the_other_server() {
    let (well, gone) = (Origin::start(crate::kit::willing), Origin::start(plain));
    gone.crash();
    let proxy = Proxy::start(&Setup::before_all(&[&gone, &well]).backend("balance = \"roundrobin\""));
    let mut client = Client::of(&proxy);
    let begun = Instant::now();
    for number in 0..20 {
        let body = format!("body {number}");
        client.send(request("POST", "/echo", "", body.as_bytes()));
        assert_eq!(client.response("POST").text(), body);
    }
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "there was a turn-around delay: {:?}",
        begun.elapsed()
    );
    assert_eq!(well.saw("/echo").len(), 20);
    eventually("redispatches", || {
        (metrics(&proxy).sum("server_redispatch_warnings_total", &[("proxy", "app")]) >= 1.0).then_some(())
    });
}

/// AC-31, RT-1, RT-5: the only server refuses: three more attempts, each after min(1 s, timeout-connect), then 503.
#[test]
fn a_refused_connection_is_retried_then_503() {
    let gone = Origin::start(plain);
    gone.crash();
    let proxy = Proxy::start(&Setup::before(&gone).backend("timeout-connect = \"200ms\""));
    let begun = Instant::now();
    assert_eq!(Client::of(&proxy).get("/").status, 503);
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(550) && took < Duration::from_secs(3),
        "{took:?}"
    );
    eventually("retries", || {
        (metrics(&proxy).sum("server_retry_warnings_total", &[("proxy", "app")]) == 3.0).then_some(())
    });
}

/// RT-5: a server that comes back within the turn-around gets the request, and the client notices nothing but time.
#[test]
fn a_server_that_comes_back_gets_the_request() {
    let origin = Origin::start(plain);
    origin.crash();
    let proxy = Proxy::start(&Setup::before(&origin).backend("timeout-connect = \"400ms\""));
    let mut client = Client::of(&proxy);
    client.send(request("POST", "/late", "", b"patience"));
    client.listen_for(Duration::from_millis(150));
    origin.restart();
    assert_eq!(client.response("POST").status, 200);
    assert_eq!(origin.saw_once("/late").body.as_deref(), Some(&b"patience"[..]));
}

/// Killed and restarted under load: only requests in flight at that server may fail, each with a complete 502; every
/// GET that fails was in flight, no POST is carried out twice.
#[test]
fn an_origin_may_die_under_load() {
    let (steady, dying) = (Origin::start(plain), Origin::start(plain));
    let proxy = Proxy::start(&Setup::before_all(&[&steady, &dying]).backend("timeout-connect = \"200ms\""));
    let next = AtomicU32::new(0);
    let failed = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::of(&proxy);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= 3000 {
                        return;
                    }
                    let method = if number.is_multiple_of(5) { "POST" } else { "GET" };
                    let body: &[u8] = if method == "POST" { b"once" } else { b"" };
                    client.send(request(method, &format!("/{number}"), "", body));
                    let response = client.response(method);
                    if response.status != 200 {
                        assert_eq!((response.status, method), (502, "POST"), "request {number}");
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    if response.closes() {
                        client = Client::of(&proxy);
                    }
                }
            });
        }
        for crash in 1..=3 {
            eventually("some load", || {
                (next.load(Ordering::Relaxed) > crash * 700).then_some(())
            });
            dying.crash();
            eventually("some more load", || {
                (next.load(Ordering::Relaxed) > crash * 700 + 200).then_some(())
            });
            dying.restart();
        }
    });
    assert!(
        failed.load(Ordering::Relaxed) <= 4 * 3,
        "more POSTs failed than could be in flight"
    );
    let mut posts = std::collections::BTreeMap::new();
    for seen in steady
        .seen()
        .into_iter()
        .chain(dying.seen())
        .filter(|seen| seen.method == "POST")
    {
        *posts.entry(seen.target).or_insert(0) += 1;
    }
    assert!(
        posts.values().all(|times| *times == 1),
        "a POST was carried out twice"
    );
    assert!(dying.connections() > 0);
}

/// A server that dies while others' requests are in flight on it: those fail at once with a complete 502, not at a
/// time-out, and their clients' connections stay good.
#[test]
fn requests_in_flight_fail_at_once() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange: &mut Exchange| match exchange.target.as_str() {
        "/held" => {
            exchange.body();
            at_origin.wait();
            exchange.reset();
        }
        _ => plain(exchange),
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut clients: Vec<Client> = (0..5).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.send(request("POST", "/held", "", b"x"));
    }
    gate.reached(5);
    let begun = Instant::now();
    gate.open();
    for client in &mut clients {
        let response = client.response("POST");
        assert_eq!(response.status, 502);
        if !response.closes() {
            assert_eq!(client.get("/fine").status, 200);
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(3));
}

/// RT-3, RT-5: without redispatch a request stays with the server that was chosen, however many others there are.
#[test]
fn without_redispatch_a_request_stays() {
    let (well, gone) = (Origin::start(plain), Origin::start(plain));
    gone.crash();
    let setup = Setup::before_all(&[&gone, &well])
        .workers(1)
        .backend("balance = \"roundrobin\"\nredispatch = false\nretries = 2\nretry-delay = \"30ms\"");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    let statuses: Vec<u16> = (0..4).map(|_| client.get("/").status).collect();
    assert_eq!(statuses, [503, 200, 503, 200]);
    let now = metrics(&proxy);
    let app = [("proxy", "app")];
    assert_eq!(now.sum("server_retry_warnings_total", &app), 4.0);
    assert_eq!(now.sum("server_redispatch_warnings_total", &app), 0.0);
}

/// A retry budget that is spent: the failure is answered at once, and counted.
#[test]
fn a_retry_budget() {
    let gone = Origin::start(plain);
    gone.crash();
    let setup = |keys: &str| Setup::before(&gone).workers(1).backend(keys);
    let keys = "retry-budget = \"0%\"\nretry-budget-min = 0\ntimeout-connect = \"5s\"";
    let proxy = Proxy::start(&setup(keys));
    let begun = Instant::now();
    assert_eq!(Client::of(&proxy).get("/").status, 503);
    assert!(begun.elapsed() < crate::kit::SOON, "{:?}", begun.elapsed());
    let app = [("proxy", "app")];
    assert_eq!(metrics(&proxy).sum("backend_retry_budget_spent_total", &app), 1.0);

    // One at a time: the second of two that fail has no budget while the first rests before its next attempt.
    let keys = "retry-budget = \"1%\"\nretry-budget-min = 1\ntimeout-connect = \"1s\"\nretries = 1";
    let proxy = Proxy::start(&setup(keys));
    let mut first = Client::of(&proxy);
    first.send(crate::kit::get("/first"));
    eventually("the first tries again", || {
        (metrics(&proxy).sum("server_retry_warnings_total", &app) == 1.0).then_some(())
    });
    assert_eq!(Client::of(&proxy).get("/second").status, 503);
    assert_eq!(metrics(&proxy).sum("backend_retry_budget_spent_total", &app), 1.0);
    assert_eq!(first.response("GET").status, 503);
    assert_eq!(metrics(&proxy).sum("server_retry_warnings_total", &app), 1.0);
}
