//! Policies about connections at work in the real binary: tenants keep apart, wishes are granted within limits, what
//! goes wrong costs nothing, and what a plan wants is there.

use crate::kit::{Client, Exchange, Gate, Origin, Proxy, Setup, eventually, metrics, once, plain};
use crate::policies::{Files, faults, guests, policy, shipped};
use guests::{Guest, World};
use std::time::Instant;

/// One worker, one origin, and a policy made of that guest.
fn before(origin: &Origin, files: &Files, guest: &Guest, backend: &str) -> Setup {
    let component = files.write("guest.wasm", &guest.component());
    Setup::before(origin)
        .workers(1)
        .backend(&format!("reuse-policy = \"p\"\n{backend}"))
        .more(&policy("p", &component, "interval = \"50ms\""))
}

fn opened(proxy: &Proxy, reason: &str) -> f64 {
    metrics(proxy).sum("server_connection_opens_total", &[("reason", reason)])
}

fn parked(proxy: &Proxy, backend: &str) -> f64 {
    metrics(proxy).sum("server_idle_connections_current", &[("proxy", backend)])
}

/// The connection that a request with these header lines is answered on.
fn on(client: &mut Client, lines: &str) -> u32 {
    client.send(format!("GET / HTTP/1.1\r\nHost: app.test\r\n{lines}\r\n"));
    let response = client.response("GET");
    assert_eq!(response.status, 200);
    response.connection()
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

/// Has so many requests in flight at once, and then none.
fn burst(gate: &Gate, proxy: &Proxy, host: &str, count: usize) {
    let mut clients: Vec<Client> = (0..count).map(|_| Client::of(proxy)).collect();
    for client in &mut clients {
        client.send(format!("GET /hold HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    }
    gate.reached(count);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response("GET").status, 200);
    }
}

/// POOL-2 (tag): two tenants never share a connection, one tenant's clients do; so do those without a tenant.
#[test]
fn tenants_keep_apart() {
    let origin = Origin::start(plain);
    let tenants = policy(
        "tenants",
        &shipped("tenants"),
        "config = { header = \"x-tenant\", cookie = \"tenant\" }",
    );
    let setup = Setup::before(&origin)
        .workers(1)
        .backend("reuse = \"always\"\nreuse-policy = \"tenants\"\npool-low-conn = 8")
        .more(&tenants);
    let proxy = Proxy::start(&setup);
    let ask = |lines: &str| on(&mut Client::of(&proxy), lines);
    let acme = ask("X-Tenant: acme\r\n");
    let zeta = ask("X-Tenant: zeta\r\n");
    let nobody = ask("");
    assert_eq!([acme, zeta, nobody], [1, 2, 3]);
    for _ in 0..3 {
        let again = [
            ask("X-Tenant: acme\r\n"),
            ask("Cookie: tenant=acme\r\n"),
            ask("X-Tenant: zeta\r\n"),
            ask(""),
            ask("X-Tenant: \r\n"),
        ];
        assert_eq!(again, [acme, acme, zeta, nobody, nobody]);
    }
    // One client speaks for two tenants, one request after the other.
    let mut client = Client::of(&proxy);
    for (lines, connection) in [("X-Tenant: acme\r\n", acme), ("X-Tenant: zeta\r\n", zeta)] {
        assert_eq!(on(&mut client, lines), connection);
    }
    assert_eq!((origin.connections(), opened(&proxy, "key")), (3, 2.0));
    assert_eq!(metrics(&proxy).sum("policy_faults_total", &[]), 0.0);
}

/// POOL-11, POOL-60: a request that is to share with nobody gets a connection that stays its client's, whatever the
/// client's later requests may do.
#[test]
fn what_was_private_once_stays_private() {
    let origin = Origin::start(plain);
    let tenants = policy(
        "tenants",
        &shipped("tenants"),
        "config = { first-request = \"never\" }",
    );
    let setup = Setup::before(&origin)
        .workers(1)
        .backend("reuse = \"always\"\nreuse-policy = \"tenants\"")
        .more(&tenants);
    let proxy = Proxy::start(&setup);
    let (mut one, mut other) = (Client::of(&proxy), Client::of(&proxy));
    assert_eq!([(); 3].map(|()| on(&mut one, "")), [1, 1, 1]);
    assert_eq!([(); 3].map(|()| on(&mut other, "")), [2, 2, 2]);
    assert_eq!(opened(&proxy, "never"), 2.0);
    drop((one, other));
    eventually("their connections end with them", || {
        (origin.open() == 0).then_some(())
    });
}

/// A looser mode than configured is refused and counted, and the rest of the answer is followed; unless the backend
/// allows it.
#[test]
fn a_looser_mode_is_a_counted_refusal() {
    let loose = "(call $preference (i32.const 3) (i32.const -1) (local.get $first_size) (i32.const -1))";
    for (allowed, connections, refused) in [("refuse", [1, 2, 3], 1.0), ("allow", [1, 1, 2], 0.0)] {
        let (origin, files) = (Origin::start(plain), Files::new());
        let keys = format!("reuse = \"safe\"\nreuse-override = \"{allowed}\"");
        let proxy = Proxy::start(&before(&origin, &files, &Guest::sharer(loose), &keys));
        // The guest's first attribute is `header:x-user`: names of one length share, others do not.
        let asked =
            ["ann", "bob", "mary"].map(|user| on(&mut Client::of(&proxy), &format!("X-User: {user}\r\n")));
        assert_eq!(asked, connections, "{allowed}");
        // The tag counts all the same: one client's next request of another length does not follow its own.
        let mut client = Client::of(&proxy);
        let [long, short] = ["X-User: maximilian\r\n", "X-User: bo\r\n"].map(|user| on(&mut client, user));
        assert!(long > connections[2] && short > long, "{long}, {short}");
        assert_eq!(faults(&proxy, "looser"), refused * 5.0, "{allowed}");
    }
}

/// A stricter one is granted: `never` where `always` is configured.
#[test]
fn a_stricter_mode_is_granted() {
    let strict = "(call $preference (i32.const 0) (i32.const -1) (i32.const -1) (i32.const -1))";
    let (origin, files) = (Origin::start(plain), Files::new());
    let proxy = Proxy::start(&before(
        &origin,
        &files,
        &Guest::sharer(strict),
        "reuse = \"always\"",
    ));
    let (mut one, mut other) = (Client::of(&proxy), Client::of(&proxy));
    assert_eq!(
        [&mut one, &mut other].map(|client| [on(client, ""), on(client, "")]),
        [[1, 1], [2, 2]]
    );
    assert_eq!(metrics(&proxy).sum("policy_faults_total", &[]), 0.0);
}

/// Every request gets a connection of its own making.
#[test]
fn a_fresh_connection_is_opened() {
    let fresh = "(call $preference (i32.const -1) (i32.const 1) (i32.const -1) (i32.const -1))";
    let (origin, files) = (Origin::start(plain), Files::new());
    let proxy = Proxy::start(&before(
        &origin,
        &files,
        &Guest::sharer(fresh),
        "reuse = \"always\"",
    ));
    let mut client = Client::of(&proxy);
    assert_eq!([(); 4].map(|()| on(&mut client, "")), [1, 2, 3, 4]);
    assert_eq!(opened(&proxy, "fresh"), 4.0);
}

/// AC-70 for connections: a guest that traps on every call fails no request, and what is configured holds.
#[test]
fn a_sharer_that_traps_costs_nothing() {
    let (origin, files) = (Origin::start(plain), Files::new());
    let proxy = Proxy::start(&before(
        &origin,
        &files,
        &Guest::sharer("(unreachable)"),
        "reuse = \"always\"",
    ));
    for _ in 0..20 {
        assert_eq!(on(&mut Client::of(&proxy), ""), 1);
    }
    assert!(faults(&proxy, "trap") >= 1.0);
    proxy.says("which policy is in quarantine", |line| {
        line.contains("quarantine") && line.contains("policy=p") && line.contains("at=app")
    });
}

/// Who picks and prefers for one backend is one instance: what one call leaves in its memory, the other finds.
#[test]
fn one_policy_for_both_is_one_instance() {
    let guest = Guest {
        world: World::Whole,
        sharing: "(global.set $seen (i32.const 1))
            (call $preference (i32.const -1) (i32.const -1) (i32.const 1) (i32.const -1))",
        ..Guest::picker("(call $choice (global.get $seen) (i32.const -1))")
    };
    let files = Files::new();
    let origins = ["a", "b"].map(|name| Origin::start(move |it| it.answer(200, "", name.as_bytes())));
    let component = files.write("whole.wasm", &guest.component());
    let setup = Setup::before_all(&[&origins[0], &origins[1]])
        .workers(1)
        .process("attachments-max = 1")
        .backend("balance = { policy = \"p\" }\nreuse-policy = \"p\"")
        .more(&policy("p", &component, ""));
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "b");
    }
    // Each request is asked about twice; what the planner was asked is no opinion.
    let calls = metrics(&proxy).sum("policy_calls_total", &[]);
    let abstained = metrics(&proxy).sum("policy_abstained_total", &[]);
    assert!(calls - abstained <= 20.0 && calls >= 20.0, "{calls}, {abstained}");
    // The same policy for connections alone picks nothing.
    let alone = Setup::before_all(&[&origins[0], &origins[1]])
        .workers(1)
        .backend("balance = \"roundrobin\"\nreuse-policy = \"p\"")
        .more(&policy("p", &component, ""));
    let proxy = Proxy::start(&alone);
    let mut client = Client::of(&proxy);
    let texts: Vec<String> = (0..4).map(|_| client.get("/").text()).collect();
    assert!(texts.iter().any(|text| text == "a"), "{texts:?}");
}

/// A policy in a place where it has nothing to say is a mistake of the configuration.
#[test]
fn a_policy_must_export_what_its_place_asks() {
    let origin = Origin::start(plain);
    let files = Files::new();
    for (plugin, backend, listen, says) in [
        (
            "header-shard",
            "reuse-policy = \"p\"",
            "",
            "neither reuse nor reuse-plan",
        ),
        (
            "tenants",
            "balance = { policy = \"p\" }",
            "",
            "neither balance-plan nor balance-pick",
        ),
        (
            "tenants",
            "queue-policy = \"p\"",
            "",
            "neither classify nor admit",
        ),
        ("tenants", "", "route-policy = \"p\"", "does not export route"),
    ] {
        let setup = Setup::before(&origin)
            .backend(backend)
            .listen(listen)
            .more(&policy("p", &shipped(plugin), ""));
        let file = files.write("forebay.toml", setup.text(files.folder()).as_bytes());
        for command in ["check", "run"] {
            let output = once(&[command, &file.display().to_string()]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command} {plugin}: {said}");
            assert!(said.contains(says), "{command} {plugin}: {said}");
        }
    }
}

/// A plan's target is there before the first request, which uses it; what closes is replaced.
#[test]
fn connections_are_there_before_the_first_request() {
    let some = "(call $figures (i32.const 0) (i32.const -1) (i32.const -1) (i32.const -1) (i32.const 5))";
    let (origin, files) = (Origin::start(plain), Files::new());
    let setup = before(
        &origin,
        &files,
        &Guest::stocker(some),
        "reuse = \"always\"\npool-purge-delay = \"100ms\"",
    )
    .workers(2);
    let proxy = Proxy::start(&setup);
    eventually("five connections are parked", || {
        (parked(&proxy, "app") == 5.0).then_some(())
    });
    assert_eq!((origin.connections(), origin.seen().len()), (5, 0));
    let response = Client::of(&proxy).get("/");
    assert_eq!((response.status, response.request()), (200, 1));
    assert!(response.connection() <= 5, "one of those that were there");
    origin.close_connections();
    eventually("they are replaced", || (origin.open() == 5).then_some(()));
    eventually("and parked", || (parked(&proxy, "app") == 5.0).then_some(()));
    assert_eq!(origin.connections(), 10, "none beyond the target");
    assert_eq!(opened(&proxy, "preconnect"), 10.0);
}

/// The target never passes a limit of the operator's, nor one of the plan's own.
#[test]
fn a_target_stays_within_limits() {
    let many = "(call $figures (i32.const 0) (i32.const -1) (i32.const -1) (i32.const -1) (i32.const 50))";
    let capped = "(call $figures (i32.const 0) (i32.const -1) (i32.const 3) (i32.const -1) (i32.const 50))";
    for (body, keys) in [
        (many, "strict-maxconn = 3"),
        (many, "pool-max-conn = 3"),
        (capped, "pool-max-conn = 20"),
    ] {
        let (origin, files) = (Origin::start(plain), Files::new());
        let setup = before(&origin, &files, &Guest::stocker(body), keys);
        let proxy = Proxy::start(&setup);
        eventually(keys, || (parked(&proxy, "app") == 3.0).then_some(()));
        let mut client = Client::of(&proxy);
        for _ in 0..20 {
            assert_eq!(client.get("/").status, 200);
        }
        assert!(origin.open() <= 4, "{keys}: {}", origin.open());
    }
}

/// A server that refuses is left alone for a while, whatever is opened to others meanwhile; each failure is counted.
#[test]
fn a_server_that_refuses_is_left_alone_for_a_while() {
    let two_each = "
        (drop (call $figures (i32.const 0) (i32.const -1) (i32.const -1) (i32.const -1) (i32.const 2)))
        (i32.store (i32.const 408) (i32.const 2)) (i32.store (i32.const 440) (i32.const 1))
        (i32.store (i32.const 444) (i32.const -1)) (i32.store (i32.const 448) (i32.const -1))
        (i32.store (i32.const 452) (i32.const -1)) (i32.store (i32.const 456) (i32.const 2)) (i32.const 400)";
    let ([dead, well], files) = ([(); 2].map(|()| Origin::start(plain)), Files::new());
    dead.crash();
    let component = files.write("guest.wasm", &Guest::stocker(two_each).component());
    let setup = Setup::before_all(&[&dead, &well])
        .workers(1)
        .backend("reuse-policy = \"p\"")
        .more(&policy("p", &component, ""));
    let proxy = Proxy::start(&setup);
    let begun = Instant::now();
    let failures = || metrics(&proxy).sum("server_connection_errors_total", &[]);
    eventually("a failure is counted", || (failures() >= 1.0).then_some(()));
    for round in 1..=3 {
        eventually("the other one has its connections", || {
            (well.connections() == 2 * round && well.open() == 2).then_some(())
        });
        well.close_connections();
    }
    // Two connects at first, and two each time that the pause of five seconds has passed; three looks make more.
    let pauses = (begun.elapsed().as_secs() / 5) as f64;
    assert!(
        failures() <= 2.0 + 2.0 * pauses,
        "{} after three looks",
        failures()
    );
    dead.restart();
    eventually("they are opened after all", || (dead.open() == 2).then_some(()));
}

/// The need that a plan sets outlasts the purge; beside it, a backend without a plan empties.
#[test]
fn a_need_is_left_by_the_purge() {
    let need = "(call $figures (i32.const 0) (i32.const -1) (i32.const -1) (i32.const 6) (i32.const -1))";
    let gates = [Gate::default(), Gate::default()];
    let [origin, plain_origin] = gates.each_ref().map(|gate| Origin::start(held(gate)));
    let files = Files::new();
    let keys = "reuse = \"always\"\npool-purge-delay = \"100ms\"";
    let setup = before(&origin, &files, &Guest::stocker(need), keys)
        .route("match = { host = \"other.test\" }\nbackend = \"other\"")
        .more(&format!(
            "[backend.other]\nservers = [\"{}\"]\n{keys}",
            plain_origin.address()
        ));
    let proxy = Proxy::start(&setup);
    eventually("the plan is made", || {
        (metrics(&proxy).sum("policy_calls_total", &[]) >= 2.0).then_some(())
    });
    burst(&gates[0], &proxy, "app.test", 6);
    burst(&gates[1], &proxy, "other.test", 6);
    eventually("the backend without a plan empties", || {
        (parked(&proxy, "other") == 0.0).then_some(())
    });
    assert_eq!(parked(&proxy, "app"), 6.0);
}

/// A lower limit that a plan sets is kept, and an empty list withdraws it.
#[test]
fn a_limit_is_kept_until_it_is_withdrawn() {
    let body = "
        (global.set $seen (i32.add (global.get $seen) (i32.const 1)))
        (if (i32.gt_s (global.get $seen) (i32.const 80)) (then
          (i32.store8 (i32.const 400) (i32.const 1)) (i32.store (i32.const 404) (i32.const 420))
          (i32.store (i32.const 408) (i32.const 0)) (return (i32.const 400))))
        (call $figures (i32.const 0) (i32.const -1) (i32.const 0) (i32.const -1) (i32.const -1))";
    let (origin, files) = (Origin::start(plain), Files::new());
    let proxy = Proxy::start(&before(
        &origin,
        &files,
        &Guest::stocker(body),
        "reuse = \"always\"",
    ));
    let mut client = Client::of(&proxy);
    let closed = || metrics(&proxy).sum("server_connection_closes_total", &[("reason", "max")]);
    eventually("nothing is kept", || {
        client.get("/");
        (closed() >= 2.0).then_some(())
    });
    eventually("the limit is withdrawn", || {
        let first = client.get("/").connection();
        (client.get("/").connection() == first).then_some(())
    });
}
