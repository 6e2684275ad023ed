//! Who shares idle server connections with whom: modes, keys, limits, other workers (POOL-*, TAKE-*).

use crate::kit::{Client, Exchange, Gate, Origin, Proxy, Setup, ctl, eventually, metrics, plain, request};

const APP: [(&str, &str); 1] = [("proxy", "app")];

/// One worker, one origin.
fn before(origin: &Origin, backend: &str) -> Setup {
    Setup::before(origin).workers(1).backend(backend)
}

/// Four workers, each with a listener of its own: `w1` to `w4`.
fn four_workers(origin: &Origin, backend: &str) -> Setup {
    let listener = |worker| {
        format!(
            "[[listen]]\nname = \"w{worker}\"\nbind = \"127.0.0.1:0\"\nworkers = [{worker}]\nbackend = \"app\"\n"
        )
    };
    let listeners: String = (1..=4).map(listener).collect();
    Setup::before(origin).workers(4).backend(backend).more(&listeners)
}

fn at_worker(proxy: &Proxy, worker: u32) -> Client {
    Client::connect(&proxy.address(&format!("w{worker}")))
}

fn opened(proxy: &Proxy, reason: &str) -> f64 {
    metrics(proxy).sum("server_connection_opens_total", &[("reason", reason)])
}

fn closed(proxy: &Proxy, reason: &str) -> f64 {
    metrics(proxy).sum("server_connection_closes_total", &[("reason", reason)])
}

fn parked(proxy: &Proxy) -> f64 {
    metrics(proxy).sum("server_idle_connections_current", &APP)
}

/// Waits until what a request leaves behind is parked: the answer comes before that.
#[track_caller]
fn is_parked(proxy: &Proxy, count: f64) {
    eventually("the connections are parked", || {
        (parked(proxy) == count).then_some(())
    });
}

/// Waits until so many were closed for that reason.
#[track_caller]
fn were_closed(proxy: &Proxy, reason: &str, count: f64) {
    eventually(reason, || (closed(proxy, reason) == count).then_some(()));
}

/// Answers at once, or waits at the gate under `/hold`.
fn held(gate: &Gate) -> impl Fn(&mut Exchange) + Send + Sync + 'static {
    let gate = gate.clone();
    move |exchange| {
        if exchange.target.starts_with("/hold") {
            gate.wait();
        }
        plain(exchange);
    }
}

/// Has so many requests in flight at once, and then none: so many connections were needed.
fn burst(gate: &Gate, proxy: &Proxy, count: usize, host: &str) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| Client::of(proxy)).collect();
    for client in &mut clients {
        client.send(format!("GET /hold HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    gate.reached(count);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response("GET").status, 200);
    }
    clients
}

/// AC-1, POOL-11 (`safe`, the default), POOL-35: a first request opens its own connection, which the limit does not let
/// stay; later ones use what is there.
#[test]
fn safe_opens_for_a_first_request() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&before(&origin, "pool-max-conn = 1"));
    let (mut first, mut second) = (Client::of(&proxy), Client::of(&proxy));
    let three = |client: &mut Client| [(); 3].map(|()| client.get("/").connection());
    assert_eq!(three(&mut first), [1, 1, 1]);
    assert_eq!(three(&mut second), [2, 1, 1]);
    assert_eq!(opened(&proxy, "first_request"), 2.0);
    were_closed(&proxy, "max", 1.0);
}

/// AC-2, POOL-11 (`aggressive`): a first request takes what has proven itself, and nothing else.
#[test]
fn aggressive_takes_what_is_proven() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&before(&origin, "reuse = \"aggressive\""));
    let (mut first, mut second) = (Client::of(&proxy), Client::of(&proxy));
    assert_eq!(first.get("/").connection(), 1);
    assert_eq!(
        second.get("/").connection(),
        2,
        "the first one has carried one request"
    );
    let proven = second.get("/");
    let third = Client::of(&proxy).get("/");
    assert_eq!((third.connection(), third.request()), (proven.connection(), 3));
}

/// AC-5, POOL-2 (`pool-conn-name`): requests share a connection only with those of the same name.
#[test]
fn names_keep_connections_apart() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&before(
        &origin,
        "reuse = \"always\"\npool-conn-name = \"{host}\"\npool-low-conn = 8",
    ));
    let mut client = Client::of(&proxy);
    let mut ask = |host: &str| {
        client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.response("GET").connection()
    };
    let (a, b) = (ask("a.test"), ask("b.test"));
    assert_ne!(a, b);
    assert_eq!(
        [ask("b.test"), ask("a.test"), ask("a.test"), ask("b.test")],
        [b, a, a, b]
    );
    assert_eq!(opened(&proxy, "key"), 1.0);
}

/// AC-5, POOL-2 (source): connections come from where `source` says, and those from elsewhere are not used.
#[test]
fn another_source_is_another_connection() {
    let origin = Origin::start(plain);
    let from = |source: &str| before(&origin, &format!("reuse = \"always\"\nsource = \"{source}\""));
    let proxy = Proxy::start(&from("127.0.0.2"));
    let mut client = Client::of(&proxy);
    assert_eq!(
        [client.get("/").connection(), client.get("/").connection()],
        [1, 1]
    );
    proxy.reload(&from("127.0.0.3"));
    eventually("a connection from the other address", || {
        (client.get("/").connection() == 2).then_some(())
    });
    assert_eq!(client.get("/").connection(), 2);
    eventually("the former one is closed", || (origin.open() == 1).then_some(()));
}

/// AC-7, POOL-11, RT-7: where all that a dead idle connection can cause is tried again, a first request may use one.
#[test]
fn a_first_request_that_is_retried_may_reuse() {
    let origin = Origin::start(|exchange| match exchange.request {
        1 => plain(exchange),
        _ => {
            exchange.body();
            exchange.close();
        }
    });
    let causes = "retry-on = [\"conn-failure\", \"empty-response\", \"response-timeout\"]";
    let proxy = Proxy::start(&before(&origin, causes));
    assert_eq!(Client::of(&proxy).get("/one").connection(), 1);
    let second = Client::of(&proxy).get("/two");
    assert_eq!((second.status, second.connection()), (200, 2));
    let tried: Vec<_> = origin.saw("/two").iter().map(|seen| seen.connection).collect();
    assert_eq!(tried, [1, 2]);
}

/// RT-7: `response-timeout` sends a request that may be repeated to another server.
#[test]
fn a_slow_server_is_left_for_another_one() {
    let gate = Gate::default();
    let slow = Origin::start(held(&gate));
    let fast = Origin::start(plain);
    let setup = Setup::before_all(&[&slow, &fast]).workers(1).backend(
        "balance = \"roundrobin\"\ntimeout-server = \"300ms\"\nretry-on = [\"conn-failure\", \"response-timeout\"]",
    );
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    for _ in 0..2 {
        let response = client.get("/hold");
        assert_eq!(response.status, 200);
    }
    assert!(!slow.saw("/hold").is_empty());
    assert_eq!(fast.saw("/hold").len(), 2);
    client.send(request("POST", "/hold", "", b"once"));
    let status = client.response("POST").status;
    let posts =
        [&slow, &fast].map(|origin| origin.seen().iter().filter(|seen| seen.method == "POST").count());
    assert_eq!(posts.iter().sum::<usize>(), 1, "a POST is never sent twice");
    assert_eq!(status, if posts[0] == 1 { 504 } else { 200 });
    gate.open();
}

/// AC-8, POOL-23, TAKE-5: a worker without a connection takes over a sibling's; the server sees none of it.
#[test]
fn a_worker_takes_over_what_another_has() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&four_workers(&origin, "reuse = \"always\""));
    assert_eq!(at_worker(&proxy, 1).get("/").connection(), 1);
    is_parked(&proxy, 1.0);
    let mut clients = [1, 2, 3, 4].map(|worker| at_worker(&proxy, worker));
    for round in 0..20 {
        for client in &mut clients {
            is_parked(&proxy, 1.0);
            let response = client.get("/");
            assert_eq!(
                (response.status, response.connection()),
                (200, 1),
                "round {round}"
            );
        }
    }
    assert_eq!((origin.connections(), opened(&proxy, "none")), (1, 1.0));
    let taken = |worker: &str| metrics(&proxy).sum("worker_takeovers_total", &[("worker", worker)]);
    assert_eq!(["1", "2", "3", "4"].map(taken), [19.0, 20.0, 20.0, 20.0]);
    assert_eq!(
        metrics(&proxy).sum("server_connection_takeovers_total", &APP),
        79.0
    );
    // It is watched where it lies now: its end is seen, and nobody is lent a dead one.
    origin.close_connections();
    eventually("its end is seen", || (parked(&proxy) == 0.0).then_some(()));
    assert_eq!(clients[0].get("/").connection(), 2);
}

/// AC-9, POOL-22: below `pool-low-conn` a worker opens its own.
#[test]
fn below_the_reserve_nobody_takes_over() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&four_workers(&origin, "reuse = \"always\"\npool-low-conn = 8"));
    assert_eq!(at_worker(&proxy, 1).get("/").connection(), 1);
    is_parked(&proxy, 1.0);
    assert_eq!(at_worker(&proxy, 3).get("/").connection(), 2);
    assert_eq!((opened(&proxy, "none"), opened(&proxy, "low_conn")), (1.0, 1.0));
    assert_eq!(metrics(&proxy).sum("worker_takeovers_total", &[]), 0.0);
}

/// POOL-21 (`pool-sharing = "off"`): each worker keeps to its own, and a reload may change that.
#[test]
fn sharing_can_be_switched_off() {
    let origin = Origin::start(plain);
    let setup = four_workers(&origin, "reuse = \"always\"");
    let proxy = Proxy::start(&setup.clone().process("pool-sharing = \"off\""));
    assert_eq!(at_worker(&proxy, 1).get("/").connection(), 1);
    is_parked(&proxy, 1.0);
    let mut other = at_worker(&proxy, 2);
    assert_eq!(other.get("/").connection(), 2);
    assert_eq!(opened(&proxy, "sharing_off"), 1.0);
    proxy.reload(&setup);
    proxy.says("that it has reloaded", |line| line.contains("reloaded"));
    let taken = at_worker(&proxy, 3).get("/").connection();
    assert!(taken == 1 || taken == 2, "{taken}");
}

/// AC-11, POOL-40…43: after a burst half of the excess goes in each period, until nothing is left that nobody needs.
#[test]
fn what_is_not_needed_is_purged() {
    let gate = Gate::default();
    let origin = Origin::start(held(&gate));
    let proxy = Proxy::start(&before(&origin, "pool-purge-delay = \"200ms\""));
    let clients = burst(&gate, &proxy, 40, "app.test");
    assert_eq!(origin.connections(), 40);
    let mut series = vec![parked(&proxy)];
    eventually("the pool is nearly empty", || {
        let now = parked(&proxy);
        if series.last() != Some(&now) {
            series.push(now);
        }
        (now <= 2.0).then_some(())
    });
    let fullest = (0..series.len()).max_by(|&one, &other| series[one].total_cmp(&series[other]));
    series.drain(..fullest.unwrap_or(0)); // the last ones were still being parked
    println!("parked: {series:?}");
    assert!(
        series.windows(2).all(|pair| pair[1] < pair[0]),
        "it only falls: {series:?}"
    );
    assert!(series.len() >= 4, "not at once: {series:?}");
    eventually("the connections are closed", || {
        (origin.open() <= 2).then_some(())
    });
    assert!(closed(&proxy, "purge") >= 38.0);
    drop(clients);
}

/// POOL-32: with `pool-purge-delay = "0s"` nothing is kept.
#[test]
fn nothing_is_kept_without_a_purge() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&before(&origin, "pool-purge-delay = \"0s\""));
    let mut client = Client::of(&proxy);
    assert_eq!([1, 2, 3].map(|_| client.get("/").connection()), [1, 2, 3]);
    were_closed(&proxy, "purge", 3.0);
}

/// AC-12, POOL-32, POOL-50: above the high mark each request evicts an idle connection of its server, and none is kept.
#[test]
fn descriptors_that_run_out_evict_the_idle() {
    let (gate, busy) = (Gate::default(), Gate::default());
    let origin = Origin::start(held(&gate));
    let other = Origin::start(held(&busy));
    let more = format!("[backend.other]\nservers = [\"{}\"]\n", other.address());
    // Of 400 descriptors, 20 and 24.
    let setup = before(&origin, "")
        .process("pool-low-fd-ratio = 5\npool-high-fd-ratio = 6")
        .route("match = { path-prefix = \"/hold/other\" }\nbackend = \"other\"")
        .more(&more);
    let proxy = Proxy::start_with_descriptors(&setup, 400);
    let mut clients = burst(&gate, &proxy, 5, "app.test");
    is_parked(&proxy, 5.0);
    let mut waiting: Vec<Client> = (0..25).map(|_| Client::of(&proxy)).collect();
    for client in &mut waiting {
        client.send(request("GET", "/hold/other", "", b""));
    }
    busy.reached(25);
    let mut left = Vec::new();
    for _ in 0..3 {
        assert_eq!(clients[0].get("/").status, 200);
        left.push(parked(&proxy));
    }
    assert_eq!(left, [3.0, 1.0, 0.0], "one evicted, one used and not kept");
    assert_eq!((closed(&proxy, "evicted"), closed(&proxy, "fd_high")), (3.0, 3.0));
    busy.open();
}

/// AC-13, POOL-51: at `strict-maxconn` an idle connection of another key makes room; where none is idle, 503.
#[test]
fn no_server_sees_more_connections_than_it_may() {
    let gate = Gate::default();
    let origin = Origin::start(held(&gate));
    let proxy = Proxy::start(&before(
        &origin,
        "strict-maxconn = 10\npool-conn-name = \"{host}\"\npool-low-conn = 20",
    ));
    let mut clients = burst(&gate, &proxy, 10, "a.test");
    is_parked(&proxy, 10.0);
    assert_eq!(origin.open(), 10);
    for _ in 0..3 {
        clients[0].send("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n");
        assert_eq!(clients[0].response("GET").status, 200);
    }
    eventually("one was closed for one that was opened", || {
        (origin.open() == 10).then_some(())
    });
    assert_eq!((origin.connections(), closed(&proxy, "evicted")), (11, 1.0));
}

/// POOL-51: all that there may be are busy.
#[test]
fn a_request_beyond_the_strict_limit_is_refused() {
    let gate = Gate::default();
    let origin = Origin::start(held(&gate));
    let proxy = Proxy::start(&before(&origin, "strict-maxconn = 2"));
    let mut busy: Vec<Client> = (0..2).map(|_| Client::of(&proxy)).collect();
    for client in &mut busy {
        client.send(request("GET", "/hold", "", b""));
    }
    gate.reached(2);
    assert_eq!(Client::of(&proxy).get("/").status, 503);
    assert_eq!(origin.connections(), 2);
    gate.open();
    for client in &mut busy {
        assert_eq!(client.response("GET").status, 200);
    }
    assert_eq!(Client::of(&proxy).get("/").status, 200, "an idle one made room");
}

/// AC-14, POOL-52: a server that goes into maintenance has no idle connection; a busy one is closed when it is free.
#[test]
fn maintenance_closes_the_idle() {
    let gate = Gate::default();
    let origin = Origin::start(held(&gate));
    let proxy = Proxy::start(&before(&origin, "pool-low-conn = 9"));
    let mut clients = [(); 3].map(|()| Client::of(&proxy));
    let places: Vec<u32> = clients
        .iter_mut()
        .map(|client| client.get("/").connection())
        .collect();
    assert_eq!(places, [1, 2, 3]);
    clients[0].send(request("GET", "/hold", "", b""));
    gate.reached(1);
    let server = format!("app/{}", origin.address());
    ctl(&proxy, &["set", "server", &server, "state", "maint"]).expect("done");
    eventually("the idle ones are closed", || (origin.open() == 1).then_some(()));
    assert_eq!(parked(&proxy), 0.0);
    gate.open();
    assert_eq!(clients[0].response("GET").status, 200);
    eventually("the busy one, too", || (origin.open() == 0).then_some(()));
    were_closed(&proxy, "maint", 3.0);
}

/// AC-16, POOL-60, POOL-62: a connection that its server authenticates is its client's alone, and its client stays.
#[test]
fn an_authenticated_connection_is_never_shared() {
    let script = |exchange: &mut Exchange| match exchange.target.as_str() {
        "/login" => exchange.answer(
            401,
            "WWW-Authenticate: Negotiate\r\nWWW-Authenticate: NTLM\r\n",
            b"who?",
        ),
        _ => plain(exchange),
    };
    let origins = [Origin::start(script), Origin::start(script)];
    let setup = Setup::before_all(&[&origins[0], &origins[1]])
        .workers(1)
        .backend("balance = \"roundrobin\"\nreuse = \"always\"\nretry-on = \"none\"");
    let proxy = Proxy::start(&setup);
    let (mut one, mut other) = (Client::of(&proxy), Client::of(&proxy));
    assert_eq!(one.get("/login").status, 401);
    let home = origins
        .iter()
        .position(|origin| origin.connections() == 1)
        .expect("one of them");
    for round in 0..6 {
        other.get("/other");
        let mine = one.get("/mine");
        assert_eq!((mine.connection(), mine.request()), (1, round + 2));
    }
    let seen = origins[home].seen();
    let strangers = seen
        .iter()
        .filter(|seen| seen.connection == 1 && seen.target == "/other");
    assert_eq!(strangers.count(), 0);
    assert_eq!(origins[home].saw("/mine").len(), 6, "it stays with its server");
    drop(one);
    eventually("it ends with its client", || {
        let open: usize = origins.iter().map(Origin::open).sum();
        (open == 2).then_some(())
    });
    were_closed(&proxy, "private", 1.0);
}

/// POOL-53: after `max-reuse` further requests a connection is closed.
#[test]
fn a_connection_carries_so_many_requests() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&before(&origin, "max-reuse = 2"));
    let mut client = Client::of(&proxy);
    let places: Vec<u32> = (0..7).map(|_| client.get("/").connection()).collect();
    assert_eq!(places, [1, 1, 1, 2, 2, 2, 3]);
    were_closed(&proxy, "max_reuse", 2.0);
}

/// POOL-61: a session holds so many idle connections of its own, and no more.
#[test]
fn a_session_keeps_few_connections_of_its_own() {
    let origins = [(); 3].map(|()| Origin::start(plain));
    let setup = Setup::before_all(&[&origins[0], &origins[1], &origins[2]])
        .workers(1)
        .listen("max-session-srv-conns = 2")
        .backend("balance = \"roundrobin\"\nreuse = \"never\"");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    for _ in 0..9 {
        client.get("/");
    }
    eventually("two are kept", || {
        let open: usize = origins.iter().map(Origin::open).sum();
        (open == 2).then_some(())
    });
    let opened: u32 = origins.iter().map(Origin::connections).sum();
    assert_eq!(opened, 5, "the third server's is closed each time");
}

/// `prefer-idle`: of two servers that are equally good, the one to which a connection is idle.
#[test]
fn an_idle_connection_breaks_ties() {
    let origins = [(); 8].map(|()| Origin::start(plain));
    let all: Vec<&Origin> = origins.iter().collect();
    let setup = Setup::before_all(&all)
        .workers(1)
        .backend("balance = \"leastconn\"\nprefer-idle = true");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    for _ in 0..20 {
        client.get("/");
    }
    let opened: u32 = origins.iter().map(Origin::connections).sum();
    assert_eq!(opened, 1);
}

/// POOL-71: the log says where a connection came from, why it was opened, and why it was closed.
#[test]
fn the_log_tells_why() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&before(&origin, "max-reuse = 1"));
    let mut client = Client::of(&proxy);
    for _ in 0..3 {
        client.get("/");
    }
    let lines = proxy.access_log(3);
    let told: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {} {}", line["reuse"], line["opened"], line["closed"]))
        .collect();
    assert_eq!(
        told,
        [
            "\"new\" \"first_request\" null",
            "\"idle\" null \"max_reuse\"",
            "\"new\" \"none\" null"
        ]
    );
}
