//! Limits and timers: what is too long, too late or not to be had gets a status of its own, a cause that is counted,
//! and a connection in a known state.

use crate::kit::{
    Accepts, Client, Metrics, Origin, Proxy, SOON, Setup, Why, eventually, get, metrics, plain, request,
};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Runs one refused exchange and returns the causes that were counted for it.
fn causes(proxy: &Proxy, what: &str, exchange: impl FnOnce()) -> BTreeSet<String> {
    let before = metrics(proxy);
    exchange();
    eventually(&format!("a cause is counted for {what}"), || {
        Some(metrics(proxy).causes_since(&before)).filter(|causes| !causes.is_empty())
    })
}

/// 400, 408, 414, 431 (two kinds): each refusal of a client's request is counted under a cause of its own.
#[test]
fn every_refused_request_has_its_cause() {
    let origin = Origin::start(plain);
    let setup = Setup::before(&origin)
        .listen("timeout-http-request = \"300ms\"\nhead-max = \"4KiB\"\nrequest-line-max = \"1KiB\"\nheaders-max = 20");
    let proxy = Proxy::start(&setup);
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "p".repeat(2000));
    let large_head = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX-Large: {}\r\n\r\n",
        "v".repeat(5000)
    );
    let many_fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X-Many: 1\r\n".repeat(30));
    let mut all = BTreeSet::new();
    for (what, message, status) in [
        ("a bad request", "GET / HTTP/1.1\r\n\r\n", 400),
        ("a late head", "GET / HTTP/1.1\r\nHost: a\r\n", 408),
        ("a long target", long_target.as_str(), 414),
        ("a large head", large_head.as_str(), 431),
        ("many fields", many_fields.as_str(), 431),
    ] {
        let counted = causes(&proxy, what, || {
            let mut client = Client::of(&proxy);
            client.send(message);
            let response = client.response("GET");
            assert_eq!(response.status, status, "{what}");
            assert!(response.closes(), "{what}");
            client.rest();
        });
        all.extend(counted);
    }
    assert!(all.len() >= 5, "five refusals share causes: {all:?}");
    assert_eq!(origin.connections(), 0);
}

/// 502, 503, 504: each failure of a server is counted under a cause of its own.
#[test]
fn every_failed_server_has_its_cause() {
    let origin = Origin::start(|exchange| match exchange.target.as_str() {
        "/junk" => {
            exchange.send("not HTTP at all\r\n\r\n");
            exchange.close();
        }
        _ => exchange.stall(Duration::from_secs(20)),
    });
    let refused = Origin::start(plain);
    refused.crash();
    let setup = Setup::before(&origin)
        .route("match = { path = \"/refused\" }\nbackend = \"gone\"")
        .backend("timeout-server = \"300ms\"")
        .more(&format!(
            "[backend.gone]\ntimeout-connect = \"200ms\"\nservers = [\"{}\"]",
            refused.address()
        ));
    let proxy = Proxy::start(&setup);
    let mut all = Vec::new();
    for (target, status) in [("/junk", 502), ("/refused", 503), ("/silent", 504)] {
        let counted = causes(&proxy, target, || {
            let response = Client::of(&proxy).get(target);
            assert_eq!(response.status, status, "{target}");
        });
        all.push(counted);
    }
    assert!(
        all[0] != all[1] && all[1] != all[2] && all[0] != all[2],
        "failures share causes: {all:?}"
    );
}

/// A refused connection is answered within the retries' turn-around (RT-1, RT-5), a silent server at its time-out.
#[test]
fn time_outs_are_on_time() {
    let origin = Origin::start(|exchange| exchange.stall(Duration::from_secs(20)));
    let proxy = Proxy::start(&Setup::before(&origin).backend("timeout-server = \"400ms\""));
    let begun = Instant::now();
    let response = Client::of(&proxy).get("/");
    assert_eq!(response.status, 504);
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(390) && took < Duration::from_millis(400) + SOON,
        "{took:?}"
    );
}

/// DESIGN §3: `timeout-http-request` bounds the whole head, however busy the client looks.
#[test]
fn a_dripping_head_is_cut_off() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-http-request = \"500ms\""));
    let mut client = Client::of(&proxy);
    let begun = Instant::now();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Drip: ");
    while !client.listen_for(Duration::from_millis(40)) {
        assert!(
            begun.elapsed() < Duration::from_millis(500) + SOON,
            "it drips on for ever"
        );
        if client.try_send("x").is_err() {
            break;
        }
    }
    assert!(begun.elapsed() >= Duration::from_millis(450));
    assert_eq!(client.response("GET").status, 408);
    assert_eq!(origin.connections(), 0);
}

/// A connection on which nothing was ever sent, and one that is idle between requests, are closed without a word.
#[test]
fn idle_connections_end_silently() {
    let origin = Origin::start(plain);
    let limits = "timeout-http-request = \"300ms\"\ntimeout-http-keep-alive = \"300ms\"";
    let proxy = Proxy::start(&Setup::before(&origin).listen(limits));
    let mut kept = Client::of(&proxy);
    kept.get("/once");
    assert_eq!(kept.rest(), b"");
    let mut silent = Client::of(&proxy);
    let said = silent.rest();
    assert!(
        said.is_empty() || said.starts_with(b"HTTP/1.1 408"),
        "{:?}",
        String::from_utf8_lossy(&said)
    );
}

/// The keep-alive limit counts between requests, not within them.
#[test]
fn a_slow_response_is_not_idleness() {
    let origin = Origin::start(|exchange| {
        exchange.body();
        exchange.stall(Duration::from_millis(700));
        plain(exchange);
    });
    let limits = "timeout-http-request = \"200ms\"\ntimeout-http-keep-alive = \"200ms\"";
    let proxy = Proxy::start(&Setup::before(&origin).listen(limits));
    assert_eq!(Client::of(&proxy).get("/").status, 200);
}

/// A body that stops half-way ends by the client's inactivity limit; the server gets no complete request.
#[test]
fn a_stalled_body_is_cut_off() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-client = \"300ms\""));
    let mut client = Client::of(&proxy);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    if let Ok(response) = client.try_response("POST") {
        assert_eq!(response.status, 408);
    }
    assert_ne!(client.ending(), Why::Late);
    eventually("the server's connection ends", || {
        (origin.open() == 0).then_some(())
    });
    assert!(origin.seen().iter().all(|seen| seen.body.is_none()));
}

/// A server that stops half-way in a body: the client is cut off, the connection is not pooled.
#[test]
fn a_stalled_response_is_cut_off() {
    let origin = Origin::start(|exchange| match exchange.target.as_str() {
        "/stall" => {
            exchange.send(exchange.answer_head(200, "Content-Length: 10\r\n"));
            exchange.send("half");
            exchange.stall(Duration::from_secs(20));
        }
        _ => plain(exchange),
    });
    let proxy = Proxy::start(
        &Setup::before(&origin)
            .workers(1)
            .backend("timeout-server = \"300ms\""),
    );
    let mut client = Client::of(&proxy);
    client.send(get("/stall"));
    client.head().expect("a head");
    assert_ne!(client.ending(), Why::Late);
    assert_eq!(Client::of(&proxy).get("/next").connection(), 2);
}

/// A client that stops reading ends by its inactivity limit, and so does the server's side.
#[test]
fn a_client_that_does_not_read_is_ended() {
    let origin = Origin::start(|exchange| exchange.answer(200, "", &vec![b'x'; 32 << 20]));
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-client = \"500ms\""));
    let mut client = Client::of(&proxy);
    client.send(get("/large"));
    client.head().expect("a head");
    eventually("the server's connection ends", || {
        (origin.open() == 0).then_some(())
    });
    assert_ne!(client.ending(), Why::Late);
}

/// A connect that is never answered ends by `timeout-connect` (503 or 504), for every attempt.
#[test]
fn a_connect_that_hangs_ends() {
    let full = Backlog::full();
    let origin = Origin::start(plain);
    let setup = Setup::before(&origin)
        .route("match = { path = \"/hang\" }\nbackend = \"hang\"")
        .more(&format!(
            "[backend.hang]\ntimeout-connect = \"200ms\"\nservers = [\"{}\"]",
            full.address
        ));
    let proxy = Proxy::start(&setup);
    let begun = Instant::now();
    let response = Client::of(&proxy).get("/hang");
    assert!([503, 504].contains(&response.status), "{}", response.status);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "retries 3 of 200 ms with turn-around took {:?}",
        begun.elapsed()
    );
    assert_eq!(Client::of(&proxy).get("/fine").status, 200);
}

/// A listener whose backlog is full: the kernel drops further SYNs.
struct Backlog {
    address: std::net::SocketAddr,
    _listener: socket2::Socket,
    _waiting: Vec<socket2::Socket>,
}

impl Backlog {
    fn full() -> Backlog {
        use socket2::{Domain, Socket, Type};
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any: std::net::SocketAddr = "127.0.0.1:0".parse().expect("an address");
        listener.bind(&any.into()).expect("bound");
        listener.listen(0).expect("listening");
        let address = listener.local_addr().expect("bound").as_socket().expect("IPv4");
        let waiting = (0..4).map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_nonblocking(true).expect("a socket");
            let _ = socket.connect(&address.into());
            socket
        });
        Backlog {
            address,
            _waiting: waiting.collect(),
            _listener: listener,
        }
    }
}

/// A server that closes or resets every new connection: a complete 502 or 503, and nothing is sent to it twice by POST.
#[test]
fn servers_that_hang_up_are_an_error() {
    for how in [Accepts::ThenCloses, Accepts::ThenResets] {
        let origin = Origin::start(plain);
        let proxy = Proxy::start(&Setup::before(&origin).backend("timeout-connect = \"100ms\""));
        origin.accept(how);
        for method in ["GET", "POST"] {
            let mut client = Client::of(&proxy);
            client.send(request(
                method,
                "/",
                "",
                if method == "POST" { b"body" } else { b"" },
            ));
            let status = client.response(method).status;
            assert!([502, 503].contains(&status), "{how:?} {method}: {status}");
        }
        origin.accept(Accepts::Yes);
        assert_eq!(Client::of(&proxy).get("/").status, 200);
    }
}

/// A response head that is too large, or breaks the grammar, is a 502 and never reaches the client.
#[test]
fn bad_response_heads_are_502() {
    let origin = Origin::start(|exchange| {
        let fields = match exchange.target.as_str() {
            "/large" => format!("X-Large: {}\r\nContent-Length: 0\r\n", "v".repeat(100_000)),
            "/lengths" => "Content-Length: 1\r\nContent-Length: 2\r\n".to_owned(),
            "/both" => "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n".to_owned(),
            "/space" => "X-Space : 1\r\nContent-Length: 0\r\n".to_owned(),
            _ => "Content-Length: x\r\n".to_owned(),
        };
        exchange.send(exchange.answer_head(200, &fields));
        exchange.close();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    for target in ["/large", "/lengths", "/space", "/word"] {
        assert_eq!(Client::of(&proxy).get(target).status, 502, "{target}");
    }
}

/// The counters of replies by class are those of what clients got.
#[test]
fn replies_are_counted_by_class() {
    let origin = Origin::start(|exchange| {
        let status = exchange.target[1..].parse().expect("a status");
        exchange.answer(status, "", b"");
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    for target in ["/200", "/201", "/301", "/404", "/404", "/500"] {
        client.get(target);
    }
    let count = |metrics: &Metrics, class: &str| {
        metrics.sum(
            "frontend_http_responses_total",
            &[("proxy", "web"), ("code", class)],
        )
    };
    eventually("the counts", || {
        let metrics = metrics(&proxy);
        let counts = ["2xx", "3xx", "4xx", "5xx"].map(|class| count(&metrics, class));
        (counts == [2.0, 1.0, 2.0, 1.0]).then_some(())
    });
}
