//! Idle server connections: who may use them, how many there are, what is shown of them.

use crate::kit::{Client, Origin, Proxy, Setup, eventually, metrics, plain, request};

/// AC-3, POOL-11 (`always`): another client's first request uses a connection that the first client left behind.
#[test]
fn always_shares_between_clients() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).workers(1).backend("reuse = \"always\""));
    let mut first = Client::of(&proxy);
    assert_eq!(first.get("/").connection(), 1);
    drop(first);
    let response = Client::of(&proxy).get("/");
    assert_eq!((response.connection(), response.request()), (1, 2));
}

/// AC-4, POOL-60 (`never`): each client keeps to its own connection, and its connection ends with it.
#[test]
fn never_shares_nothing() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).workers(1).backend("reuse = \"never\""));
    let (mut first, mut second) = (Client::of(&proxy), Client::of(&proxy));
    assert_eq!(first.get("/").connection(), 1);
    assert_eq!(second.get("/").connection(), 2);
    assert_eq!((first.get("/").connection(), first.get("/").request()), (1, 3));
    assert_eq!((second.get("/").connection(), second.get("/").request()), (2, 3));
    drop((first, second));
    eventually("the private connections end", || {
        (origin.open() == 0).then_some(())
    });
    assert_eq!(Client::of(&proxy).get("/").connection(), 3);
}

/// Two requests at once need two connections; both are there afterwards (POOL-32 B: no more than were needed).
#[test]
fn what_was_needed_is_kept() {
    let gate = crate::kit::Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        if exchange.target == "/hold" {
            at_origin.wait();
        }
        plain(exchange);
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1).backend("reuse = \"always\""));
    let mut clients: Vec<Client> = (0..4).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.send(request("GET", "/hold", "", b""));
    }
    gate.reached(4);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response("GET").status, 200);
    }
    assert_eq!(origin.connections(), 4);
    for client in &mut clients {
        client.get("/again");
    }
    assert_eq!(origin.connections(), 4, "no new connection was opened");
}

/// POOL-70: connects and reuses are counted, and the gauges say what is parked.
#[test]
fn reuse_is_counted() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).workers(1).backend("reuse = \"always\""));
    let mut client = Client::of(&proxy);
    for _ in 0..10 {
        client.get("/");
    }
    let of = [("proxy", "app")];
    eventually("the counts of ten requests over one connection", || {
        let metrics = metrics(&proxy);
        let counts = [
            metrics.sum("server_connection_attempts_total", &of),
            metrics.sum("server_connection_reuses_total", &of),
            metrics.sum("server_idle_connections_current", &of),
            metrics.sum("server_used_connections_current", &of),
        ];
        (counts == [1.0, 9.0, 1.0, 0.0]).then_some(())
    });
    origin.close_connections();
    eventually("nothing is parked", || {
        (metrics(&proxy).sum("server_idle_connections_current", &of) == 0.0).then_some(())
    });
}

/// POOL-30: a response with bytes behind it, or one that says `close`, is not followed by another on its connection.
#[test]
fn unfit_connections_are_not_kept() {
    let origin = Origin::start(|exchange| {
        exchange.body();
        match exchange.target.as_str() {
            "/surplus" => {
                exchange.send(exchange.answer_head(200, "Content-Length: 2\r\n") + "okHTTP/1.1 200 OK\r\n")
            }
            "/close" => exchange.answer(200, "Connection: close\r\n", b"bye"),
            _ => plain(exchange),
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin).workers(1));
    let mut client = Client::of(&proxy);
    for target in ["/surplus", "/close"] {
        let unfit = client.get(target);
        assert_eq!((unfit.status, unfit.closes()), (200, false), "{target}");
        let next = client.get("/next");
        assert_ne!(next.connection(), unfit.connection(), "{target}");
        assert_eq!(next.text(), "GET /next\n", "{target}");
        origin.close_connections();
    }
}

/// LB-10, AC-40 by weight 1:2:4 in 70 requests: exactly 10, 20, 40 with one worker.
#[test]
fn roundrobin_shares_are_exact() {
    let origins = [Origin::start(plain), Origin::start(plain), Origin::start(plain)];
    let servers = (0..3).map(|at: usize| {
        format!(
            "{{ name = \"s{at}\", address = \"{}\", weight = {} }}",
            origins[at].address(),
            1 << at
        )
    });
    let setup = Setup::before_servers(servers.collect())
        .workers(1)
        .backend("balance = \"roundrobin\"");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    for _ in 0..70 {
        client.get("/");
    }
    assert_eq!(origins.each_ref().map(|origin| origin.seen().len()), [10, 20, 40]);
}

/// LB-20, AC-41: `leastconn` sends new requests to the servers that have none.
#[test]
fn leastconn_prefers_the_idle() {
    let gate = crate::kit::Gate::default();
    let script = |gate: crate::kit::Gate| {
        move |exchange: &mut crate::kit::Exchange| {
            if exchange.target == "/hold" {
                gate.wait();
            }
            plain(exchange);
        }
    };
    let origins = [(); 3].map(|()| Origin::start(script(gate.clone())));
    let all: Vec<&Origin> = origins.iter().collect();
    let proxy = Proxy::start(&Setup::before_all(&all).backend("balance = \"leastconn\""));
    let mut holding: Vec<Client> = (0..2).map(|_| Client::of(&proxy)).collect();
    for client in &mut holding {
        client.send(request("GET", "/hold", "", b""));
    }
    gate.reached(2);
    let mut client = Client::of(&proxy);
    for _ in 0..10 {
        client.get("/free");
    }
    let free: Vec<usize> = origins
        .iter()
        .map(|it| it.seen().iter().filter(|s| s.target == "/free").count())
        .collect();
    assert_eq!(free.iter().max(), Some(&10), "{free:?}");
    gate.open();
}
