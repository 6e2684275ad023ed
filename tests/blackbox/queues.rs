//! Slots and queues: who waits, in which order, how waits end, and what is said about them (Q-*, AC-20…AC-28).

use crate::kit::{
    Client, Exchange, Gate, Origin, PATIENCE, Proxy, SOON, Setup, ctl, eventually, get, metrics, plain,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// An origin whose requests for `/held…` wait at the gate.
fn holding(gate: &Gate) -> Origin {
    let gate = gate.clone();
    Origin::start(move |exchange: &mut Exchange| {
        if exchange.target.starts_with("/held") {
            gate.wait();
        }
        plain(exchange);
    })
}

/// One slot, and requests that are patient.
fn one_slot(origin: &Origin) -> Setup {
    Setup::before(origin).backend("maxconn = 1\ntimeout-queue = \"60s\"")
}

/// A client that has asked for this.
fn asking(proxy: &Proxy, target: &str) -> Client {
    let mut client = Client::of(proxy);
    client.send(get(target));
    client
}

/// Waits until so many requests wait, in any queue of the backend.
#[track_caller]
fn queued(proxy: &Proxy, count: u32) {
    eventually(&format!("{count} requests wait"), || {
        let now = metrics(proxy).sum("backend_current_queue", &[("proxy", "app")]);
        (now == f64::from(count)).then_some(())
    });
}

/// Clients that have asked, one after the other, each seen in the queue before the next.
fn line_up(proxy: &Proxy, targets: &[&str]) -> Vec<Client> {
    let mut clients = Vec::new();
    for (target, count) in targets.iter().zip(1..) {
        clients.push(asking(proxy, target));
        queued(proxy, count);
    }
    clients
}

fn order(origin: &Origin) -> Vec<String> {
    origin.seen().into_iter().map(|seen| seen.target).collect()
}

/// AC-23 in small: one slot, four workers, sixteen clients. Never two at once, nobody is left behind, and while
/// anybody waits the slot does not lie idle.
#[test]
fn one_at_a_time() {
    const CLIENTS: u32 = 16;
    const EACH: u32 = 60;
    let inside = Arc::new(AtomicU32::new(0));
    let most = Arc::new(AtomicU32::new(0));
    let origin = Origin::start({
        let (inside, most) = (inside.clone(), most.clone());
        move |exchange: &mut Exchange| {
            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            inside.fetch_sub(1, Ordering::SeqCst);
            plain(exchange);
        }
    });
    let proxy = Proxy::start(&one_slot(&origin).workers(4));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::of(&proxy);
                for number in 0..EACH {
                    assert_eq!(client.get(&format!("/{number}")).status, 200);
                }
            });
        }
    });
    let took = begun.elapsed();
    assert_eq!(most.load(Ordering::SeqCst), 1, "two at once");
    assert_eq!(origin.seen().len() as u32, CLIENTS * EACH);
    assert!(
        took < Duration::from_millis(10) * CLIENTS * EACH,
        "{took:?}: it lay idle"
    );
    let now = metrics(&proxy);
    let app = [("proxy", "app")];
    assert_eq!(now.sum("backend_current_queue", &app), 0.0);
    assert_eq!(now.sum("server_current_sessions", &app), 0.0, "a slot was lost");
    assert!(now.sum("backend_queue_waits_total", &app) > 0.0);
    assert!(now.sum("backend_max_queue", &app) >= 1.0);
}

/// AC-26, Q-14: too long in the queue is 503, `sQ`; the slot is not touched.
#[test]
fn a_request_that_waits_too_long() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let proxy = Proxy::start(&Setup::before(&origin).backend("maxconn = 1\ntimeout-queue = \"100ms\""));
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let begun = Instant::now();
    let mut late = Client::of(&proxy);
    let response = late.get("/late");
    let took = begun.elapsed();
    assert_eq!(response.status, 503);
    assert!(took >= Duration::from_millis(100) && took < SOON, "{took:?}");
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
    assert_eq!(late.get("/again").status, 200, "its connection is still good");
    let log = proxy.access_log(3);
    let late = log.iter().find(|line| line["target"] == "/late").expect("logged");
    assert_eq!(
        (&late["end"], &late["cause"]),
        (&"sQ".into(), &"queue_timeout".into())
    );
    assert_eq!(late["ahead_backend"], 0);
    assert!(late["queue_us"].as_u64().expect("it waited") >= 100_000, "{late}");
    let ends = metrics(&proxy).sum(
        "backend_queue_ends_total",
        &[("proxy", "app"), ("reason", "timeout")],
    );
    assert_eq!(ends, 1.0);
    assert_eq!(order(&origin), ["/held", "/again"]);
}

/// AC-27, Q-14: a client that leaves while it waits, however it does, takes nobody's slot: `CQ`.
#[test]
fn a_client_that_leaves_the_queue() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let proxy = Proxy::start(&one_slot(&origin));
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let mut clients = line_up(&proxy, &["/closes", "/half-closes", "/resets", "/stays"]);
    let mut stays = clients.pop().expect("the last one");
    clients.pop().expect("the third").reset();
    queued(&proxy, 3);
    let mut half = clients.pop().expect("the second");
    half.half_close();
    queued(&proxy, 2);
    drop(clients);
    queued(&proxy, 1);
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
    assert_eq!(stays.response("GET").status, 200);
    assert_eq!(order(&origin), ["/held", "/stays"]);
    let log = proxy.access_log(5);
    let left: Vec<_> = log.iter().filter(|line| line["end"] == "CQ").collect();
    assert_eq!(left.len(), 3, "{log:#?}");
    assert!(
        left.iter()
            .all(|line| line["status"] == 0 && line["cause"] == "client_abort")
    );
    let aborts = metrics(&proxy).sum("backend_queue_ends_total", &[("reason", "client_abort")]);
    assert_eq!(aborts, 3.0);
}

/// AC-20, AC-21, Q-2: lower classes first; within one, as they came, or by their offsets.
#[test]
fn priorities() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let setup = one_slot(&origin)
        .route("match.path = \"/low\"\nbackend = \"app\"\npriority-class = 1")
        .route("match.path = \"/high\"\nbackend = \"app\"\npriority-class = -1")
        .route("match.path = \"/sooner\"\nbackend = \"app\"\npriority-offset = \"-60s\"")
        .route("match.path = \"/later\"\nbackend = \"app\"\npriority-offset = \"60s\"");
    let proxy = Proxy::start(&setup);
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let clients = line_up(&proxy, &["/low", "/later", "/one", "/two", "/sooner", "/high"]);
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
    for mut client in clients {
        assert_eq!(client.response("GET").status, 200);
    }
    let expected = ["/held", "/high", "/sooner", "/one", "/two", "/later", "/low"];
    assert_eq!(order(&origin), expected);
}

/// Q-7, AC-24, Q-13: with `leastconn` and `maxqueue` requests wait for one server; when it goes they are sent back, told
/// of in one message, and are served by the other.
#[test]
fn a_server_that_goes_sends_its_queue_back() {
    let gate = Gate::default();
    let (a, b) = (holding(&gate), holding(&gate));
    let setup = Setup::before_servers(vec![
        format!("{{ name = \"a\", address = \"{}\" }}", a.address()),
        format!("{{ name = \"b\", address = \"{}\" }}", b.address()),
    ]);
    let setup = setup.backend("balance = \"leastconn\"\nmaxconn = 1\nmaxqueue = 9\ntimeout-queue = \"60s\"");
    let proxy = Proxy::start(&setup);
    let held: Vec<Client> = (0..2).map(|_| asking(&proxy, "/held")).collect();
    gate.reached(2);
    let waiting = line_up(&proxy, &["/1", "/2", "/3", "/4", "/5", "/6"]);
    let own = metrics(&proxy);
    let of = |server| own.sum("server_current_queue", &[("server", server)]);
    assert_eq!((of("a"), of("b")), (3.0, 3.0), "they wait for one server each");
    ctl(&proxy, &["set", "server", "app/a", "state", "maint"]).expect("it is obeyed");
    proxy.says("how many were sent back", |line| {
        line.contains("sessions were requeued") && line.contains("sessions=3") && line.contains("backend=app")
    });
    eventually("the other has them", || {
        let now = metrics(&proxy).sum("server_current_queue", &[("server", "a")]);
        (now == 0.0).then_some(())
    });
    queued(&proxy, 6);
    gate.open();
    for mut client in held.into_iter().chain(waiting) {
        assert_eq!(client.response("GET").status, 200);
    }
    assert_eq!(order(&a), ["/held"]);
    assert_eq!(b.seen().len(), 7);
    let requeued = metrics(&proxy).sum(
        "server_queue_ends_total",
        &[("server", "a"), ("reason", "requeued")],
    );
    assert_eq!(requeued, 3.0);
}

/// AC-25, Q-13: when the last server goes, whoever waits for any gets 503 at once.
#[test]
fn the_last_server_goes() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let proxy = Proxy::start(
        &Setup::before_servers(vec![format!(
            "{{ name = \"a\", address = \"{}\" }}",
            origin.address()
        )])
        .backend("maxconn = 1\ntimeout-queue = \"60s\""),
    );
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let waiting = line_up(&proxy, &["/1", "/2", "/3", "/4", "/5"]);
    let begun = Instant::now();
    ctl(&proxy, &["set", "server", "app/a", "state", "maint"]).expect("it is obeyed");
    for mut client in waiting {
        assert_eq!(client.response("GET").status, 503);
    }
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    // Who comes now does not wait at all; and who comes after its return is served.
    assert_eq!(Client::of(&proxy).get("/none").status, 503);
    ctl(&proxy, &["set", "server", "app/a", "state", "ready"]).expect("it is obeyed");
    let mut again = line_up(&proxy, &["/again"]);
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
    assert_eq!(again[0].response("GET").status, 200);
    assert_eq!(order(&origin), ["/held", "/again"]);
}

/// a limit that is raised, by a command or by a reload, lets those in who wait; one that is lowered is reached slot
/// by slot.
#[test]
fn a_limit_that_changes() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let setup = |maxconn: u32| {
        let server = format!("{{ name = \"a\", address = \"{}\" }}", origin.address());
        Setup::before_servers(vec![server]).backend(&format!("maxconn = {maxconn}\ntimeout-queue = \"60s\""))
    };
    let proxy = Proxy::start(&setup(1));
    let mut clients = vec![asking(&proxy, "/held")];
    gate.reached(1);
    clients.extend(line_up(&proxy, &["/held", "/held", "/held", "/held"]));
    ctl(&proxy, &["set", "server", "app/a", "maxconn", "3"]).expect("it is obeyed");
    gate.reached(3);
    queued(&proxy, 2);
    ctl(&proxy, &["set", "server", "app/a", "maxconn", "1"]).expect("it is obeyed");
    clients.push(asking(&proxy, "/last"));
    queued(&proxy, 3);
    gate.open();
    for mut client in clients {
        assert_eq!(client.response("GET").status, 200);
    }
    queued(&proxy, 0);

    let gate = Gate::default();
    let slow = holding(&gate);
    let proxy = Proxy::start(&one_slot(&slow));
    let mut first = asking(&proxy, "/held");
    gate.reached(1);
    let mut second = line_up(&proxy, &["/held"]);
    let server = format!("\"{}\"", slow.address());
    proxy.reload(&Setup::before_servers(vec![server]).backend("maxconn = 2\ntimeout-queue = \"60s\""));
    gate.reached(2);
    gate.open();
    assert_eq!(first.response("GET").status, 200);
    assert_eq!(second[0].response("GET").status, 200);
}

/// AC-28, Q-4: with `minconn` the limit follows the load; who comes lets in who waits.
#[test]
fn a_limit_that_follows_the_load() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let keys = "minconn = 1\nmaxconn = 4\nfullconn = 8\ntimeout-queue = \"60s\"";
    let proxy = Proxy::start(&Setup::before(&origin).backend(keys));
    let mut clients = vec![asking(&proxy, "/held")];
    gate.reached(1);
    clients.extend(line_up(&proxy, &["/held", "/held"])); // 3 × 4 / 8 = 1
    clients.push(asking(&proxy, "/held")); // 4 × 4 / 8 = 2
    gate.reached(2);
    queued(&proxy, 2);
    for _ in 0..4 {
        clients.push(asking(&proxy, "/held"));
    }
    gate.reached(4); // 8 of 8
    queued(&proxy, 4);
    gate.open();
    for mut client in clients {
        assert_eq!(client.response("GET").status, 200);
    }
}

/// DESIGN §4: waiters of a backend that a reload takes away get 503; the request in progress ends as it began.
#[test]
fn a_backend_that_goes() {
    let gate = Gate::default();
    let (old, new) = (holding(&gate), Origin::start(plain));
    let proxy = Proxy::start(&one_slot(&old));
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let mut waiting = line_up(&proxy, &["/1", "/2"]);
    let text = format!(
        "[process]\nworkers = 2\ncontrol = \"$DIR/control.sock\"\nmetrics = \"127.0.0.1:0\"\n\
         log = {{ format = \"json\", to = \"$DIR/access.log\" }}\n\
         [[listen]]\nname = \"web\"\nbind = \"127.0.0.1:0\"\nbackend = \"other\"\n\
         [backend.other]\nservers = [\"{}\"]\n",
        new.address()
    );
    proxy.reload(&Setup::raw(&text));
    for client in &mut waiting {
        assert_eq!(client.response("GET").status, 503);
    }
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
    assert_eq!(Client::of(&proxy).get("/new").status, 200);
    assert_eq!(order(&new), ["/new"]);
}

/// who is tied to a server whose queue is full, and may not leave it, gets 503 with `Retry-After`.
#[test]
fn a_full_queue() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange: &mut Exchange| match exchange.target.as_str() {
        "/login" => exchange.answer(401, "WWW-Authenticate: NTLM abc\r\n", b"who are you"),
        "/held" => {
            at_origin.wait();
            plain(exchange);
        }
        _ => plain(exchange),
    });
    let proxy = Proxy::start(
        &one_slot(&origin)
            .workers(1)
            .backend("maxqueue = 0\nredispatch = false"),
    );
    let mut tied = Client::of(&proxy);
    assert_eq!(tied.get("/login").status, 401);
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let response = tied.get("/full");
    assert_eq!(
        (response.status, response.head.value("retry-after")),
        (503, Some("1"))
    );
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
    assert_eq!(tied.get("/room").status, 200);
    let log = proxy.access_log(4);
    let full = log.iter().find(|line| line["target"] == "/full").expect("logged");
    assert_eq!(
        (&full["end"], &full["cause"]),
        (&"PQ".into(), &"queue_full".into())
    );
    let ends = metrics(&proxy).sum("server_queue_ends_total", &[("proxy", "app"), ("reason", "full")]);
    assert_eq!(ends, 1.0);
}

/// A drain waits for those who wait.
#[test]
fn a_drain_lets_the_queue_end() {
    let gate = Gate::default();
    let origin = holding(&gate);
    let proxy = Proxy::start(&one_slot(&origin));
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let mut waiting = line_up(&proxy, &["/1", "/2"]);
    proxy.signal(crate::kit::Signal::TERM);
    gate.open();
    for client in std::iter::once(&mut holder).chain(&mut waiting) {
        let response = client.response("GET");
        assert_eq!((response.status, response.closes()), (200, true));
    }
    assert!(proxy.exit_within(PATIENCE).success());
}

/// DESIGN §6: a full tier of a plan that spills only when it is down makes requests wait, though another server is free.
/// Without its tier (its server gone) they are served by the other one.
#[cfg(feature = "wasm")]
#[test]
fn a_full_tier_makes_requests_wait() {
    use crate::policies::guests::Guest;
    use crate::policies::{Files, policy};
    // One tier, which spills when down, of the first server, without a cap; for ever.
    const FIRST_ONLY: &str = "
        (i32.store8 (i32.const 4096) (i32.const 1))
        (i32.store (i32.const 4100) (i32.const 4112)) (i32.store (i32.const 4104) (i32.const 1))
        (i32.store (i32.const 4108) (i32.const -1))
        (i32.store8 (i32.const 4112) (i32.const 0)) (i32.store8 (i32.const 4113) (i32.const 0))
        (i32.store (i32.const 4116) (i32.const 4124)) (i32.store (i32.const 4120) (i32.const 1))
        (i32.store (i32.const 4124) (i32.const 0)) (i32.store (i32.const 4128) (i32.const 1))
        (i32.store (i32.const 4132) (i32.const -1))
        (i32.const 4096)";
    let files = Files::new();
    let component = files.write("planner.wasm", &Guest::planner(FIRST_ONLY).component());
    let gate = Gate::default();
    let (first, second) = (holding(&gate), holding(&gate));
    let setup = Setup::before_servers(vec![
        format!("{{ name = \"a\", address = \"{}\" }}", first.address()),
        format!("{{ name = \"b\", address = \"{}\" }}", second.address()),
    ]);
    let keys = "balance = { policy = \"own\" }\nmaxconn = 1\ntimeout-queue = \"60s\"";
    let setup = setup
        .backend(keys)
        .more(&policy("own", &component, "interval = \"50ms\""));
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    eventually("requests follow the plan", || {
        client.get("/");
        (metrics(&proxy).sum("backend_choices_total", &[("source", "plan")]) >= 1.0).then_some(())
    });
    let before = second.seen().len();
    let mut holder = asking(&proxy, "/held");
    gate.reached(1);
    let mut waiting = line_up(&proxy, &["/1", "/2"]);
    assert_eq!(
        second.seen().len(),
        before,
        "the other server is free, and left alone"
    );
    ctl(&proxy, &["set", "server", "app/a", "state", "drain"]).expect("it is obeyed");
    for client in &mut waiting {
        assert_eq!(client.response("GET").status, 200);
    }
    assert_eq!(second.seen().len(), before + 2);
    gate.open();
    assert_eq!(holder.response("GET").status, 200);
}
