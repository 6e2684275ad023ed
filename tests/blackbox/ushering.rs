//! Policies about requests that wait, at work in the real binary: who is served in front, who is turned away, and what a
//! policy costs that goes wrong.

use crate::kit::{Client, Exchange, Gate, Origin, Proxy, Response, Setup, eventually, metrics, plain};
use crate::policies::{Files, faults, guests, policy, shipped};
use guests::{Guest, World};
use std::path::Path;
use std::time::{Duration, Instant};

/// One worker, one origin that takes one request at a time, and a policy that is asked who waits.
fn before(origin: &Origin, component: &Path, keys: &str) -> Setup {
    Setup::before(origin)
        .workers(1)
        .backend("maxconn = 1\ntimeout-queue = \"60s\"\nqueue-policy = \"p\"")
        .more(&policy("p", component, keys))
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

/// A client whose request of that tenant is under way.
fn ask(proxy: &Proxy, path: &str, tenant: &str) -> Client {
    let mut client = Client::of(proxy);
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: app.test\r\nX-Tenant: {tenant}\r\nX-User: {tenant}\r\n\r\n"
    ));
    client
}

/// The same, once the policy has been asked so often about those that wait.
fn ask_and_wait(proxy: &Proxy, path: &str, tenant: &str, calls: f64) -> Client {
    let client = ask(proxy, path, tenant);
    asked(proxy, calls);
    client
}

fn asked(proxy: &Proxy, calls: f64) {
    eventually("the policy was asked", || {
        (policy_count(proxy, "calls") == calls).then_some(())
    });
}

fn policy_count(proxy: &Proxy, what: &str) -> f64 {
    metrics(proxy).sum(&format!("policy_{what}_total"), &[("policy", "p")])
}

/// The targets in the order in which the origin saw them.
fn order(origin: &Origin) -> Vec<String> {
    origin.seen().into_iter().map(|seen| seen.target).collect()
}

fn statuses(clients: &mut [Client]) -> Vec<u16> {
    clients
        .iter_mut()
        .map(|client| client.response("GET").status)
        .collect()
}

/// Keys of the shipped policy: gold before all others, bulk behind them.
const CLASSES: &str = "config.tenants = { acme = \"gold\", zeta = \"bulk\" }
config.default = \"plain\"
config.classes.gold = { class = -10 }
config.classes.plain = {}
config.classes.bulk = { class = 10, queue-max = 4, retry-after = \"5s\" }";

/// Q-2, AC-20: classes are served from the lowest, within one class who came first; nobody is asked about a request that
/// finds a slot.
#[test]
fn tenants_are_served_by_their_class() {
    let gate = Gate::default();
    let origin = Origin::start(held(&gate));
    let proxy = Proxy::start(&before(&origin, &shipped("tenant-priority"), CLASSES));
    let mut clients = vec![ask(&proxy, "/hold", "acme")];
    gate.reached(1);
    for (at, (path, tenant)) in [
        ("/bulk", "zeta"),
        ("/plain-1", "nobody"),
        ("/plain-2", "nobody"),
        ("/gold-1", "acme"),
        ("/gold-2", "acme"),
    ]
    .into_iter()
    .enumerate()
    {
        clients.push(ask_and_wait(&proxy, path, tenant, 2.0 * (at + 1) as f64));
    }
    gate.open();
    assert_eq!(statuses(&mut clients), [200; 6]);
    assert_eq!(
        order(&origin),
        ["/hold", "/gold-1", "/gold-2", "/plain-1", "/plain-2", "/bulk"]
    );
    assert_eq!(metrics(&proxy).sum("policy_faults_total", &[]), 0.0);
    // With the slot free again nobody is asked.
    assert_eq!(Client::of(&proxy).get("/").status, 200);
    assert_eq!(policy_count(&proxy, "calls"), 10.0);
}

/// Who is turned away is told when to come again, reaches no server, and is counted; the others wait on.
#[test]
fn too_many_of_a_class_are_turned_away() {
    let gate = Gate::default();
    let origin = Origin::start(held(&gate));
    let proxy = Proxy::start(&before(&origin, &shipped("tenant-priority"), CLASSES));
    let mut clients = vec![ask(&proxy, "/hold", "acme")];
    gate.reached(1);
    for at in 1..=4 {
        clients.push(ask_and_wait(&proxy, "/bulk", "zeta", 2.0 * f64::from(at)));
    }
    let away = ask(&proxy, "/away", "zeta").response("GET");
    assert_eq!((away.status, retry_after(&away)), (429, Some("5".into())));
    clients.push(ask_and_wait(&proxy, "/gold", "acme", 12.0));
    gate.open();
    assert_eq!(statuses(&mut clients), [200; 6]);
    assert_eq!(origin.saw("/away").len(), 0);
    assert_eq!(policy_count(&proxy, "rejected"), 1.0);
}

fn retry_after(response: &Response) -> Option<String> {
    response.head.value("retry-after").map(str::to_owned)
}

/// a deadline ends the wait with a 503, long before `timeout-queue`; that of the verdict counts if it is shorter.
#[test]
fn a_deadline_ends_the_wait() {
    let late = "(call $preference (i32.const -1) (i32.const 0) (i32.const 0) (i32.const 100))";
    for admission in [
        "(call $preference (i32.const 0) (i32.const -1) (i32.const -1) (i32.const 60000))",
        "(call $preference (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1))",
    ] {
        let guest = Guest {
            admission,
            ..Guest::classifier(late)
        };
        let gate = Gate::default();
        let (origin, files) = (Origin::start(held(&gate)), Files::new());
        let component = files.write("guest.wasm", &guest.component());
        let proxy = Proxy::start(&before(&origin, &component, ""));
        let mut first = ask(&proxy, "/hold", "acme");
        gate.reached(1);
        let begun = Instant::now();
        assert_eq!(ask(&proxy, "/late", "zeta").response("GET").status, 503);
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(100), "{waited:?}");
        assert!(
            waited < Duration::from_secs(30),
            "{waited:?}: that was the queue's own limit"
        );
        gate.open();
        assert_eq!(first.response("GET").status, 200);
        assert_eq!(origin.saw("/late").len(), 0);
    }
}

/// A wait of no time is an answer at once.
#[test]
fn who_may_wait_for_no_time_is_answered_at_once() {
    let never = "(call $preference (i32.const 0) (i32.const -1) (i32.const -1) (i32.const 0))";
    let gate = Gate::default();
    let (origin, files) = (Origin::start(held(&gate)), Files::new());
    let component = files.write("guest.wasm", &Guest::admitter(never).component());
    let proxy = Proxy::start(&before(&origin, &component, ""));
    let mut first = ask(&proxy, "/hold", "acme");
    gate.reached(1);
    assert_eq!(ask(&proxy, "/late", "zeta").response("GET").status, 503);
    gate.open();
    assert_eq!(first.response("GET").status, 200);
    assert_eq!(policy_count(&proxy, "rejected"), 0.0, "the core turned it away");
}

/// AC-70 for queues: a policy that traps, or answers what is out of range, costs no request its place: requests wait in
/// the order of their coming.
#[test]
fn a_policy_that_goes_wrong_costs_no_request() {
    let out_of_range = "(call $preference (i32.const 1) (i32.const 9999) (i32.const 0) (i32.const -1))";
    for (body, reason) in [("(unreachable)", "trap"), (out_of_range, "range")] {
        let gate = Gate::default();
        let (origin, files) = (Origin::start(held(&gate)), Files::new());
        let guest = Guest {
            admission: body,
            ..Guest::classifier(body)
        };
        let component = files.write("guest.wasm", &guest.component());
        let proxy = Proxy::start(&before(&origin, &component, ""));
        let mut clients = vec![ask(&proxy, "/hold", "acme")];
        gate.reached(1);
        for at in 1..=3 {
            let path = format!("/{at}");
            clients.push(ask_and_wait(&proxy, &path, "acme", 2.0 * f64::from(at)));
        }
        gate.open();
        assert_eq!(statuses(&mut clients), [200; 4], "{reason}");
        assert_eq!(order(&origin), ["/hold", "/1", "/2", "/3"], "{reason}");
        assert_eq!(faults(&proxy, reason), 6.0);
    }
}

/// Without a word of the policy the route's class counts; with one, the policy's.
#[test]
fn a_class_of_the_policy_replaces_that_of_the_route() {
    // Users of three letters stand in front; about others it has no opinion.
    let short_names = "(call $preference (i32.eq (local.get $first_size) (i32.const 3)) (i32.const -5)
        (i32.const 0) (i32.const -1))";
    let gate = Gate::default();
    let (origin, files) = (Origin::start(held(&gate)), Files::new());
    let component = files.write("guest.wasm", &Guest::classifier(short_names).component());
    let setup = before(&origin, &component, "")
        .route("match = { path-prefix = \"/low\" }\nbackend = \"app\"\npriority-class = 7")
        .route("match = { path-prefix = \"/high\" }\nbackend = \"app\"\npriority-class = -3");
    let proxy = Proxy::start(&setup);
    let mut clients = vec![ask(&proxy, "/hold", "anybody")];
    gate.reached(1);
    for (at, (path, user)) in [
        ("/low-1", "anybody"),
        ("/plain", "anybody"),
        ("/high", "anybody"),
        ("/low-2", "ann"),
    ]
    .into_iter()
    .enumerate()
    {
        clients.push(ask_and_wait(&proxy, path, user, 2.0 * (at + 1) as f64));
    }
    gate.open();
    assert_eq!(statuses(&mut clients), [200; 5]);
    assert_eq!(order(&origin), ["/hold", "/low-2", "/high", "/plain", "/low-1"]);
}

/// Who picks and ushers for one backend is one instance: what one call leaves in its memory, the other finds; and it
/// knows the server that it is told of.
#[test]
fn one_policy_for_both_is_one_instance() {
    // It remembers how many requests it picked for, and turns away the third.
    let guest = Guest {
        world: World::Whole,
        admission: "(call $preference (i32.eq (global.get $seen) (i32.const 3)) (i32.const 503)
            (i32.add (i32.const 100) (local.get $server)) (i32.const -1))",
        ..Guest::picker(
            "(global.set $seen (i32.add (global.get $seen) (i32.const 1)))
             (call $choice (i32.const 0) (i32.const -1))",
        )
    };
    let gate = Gate::default();
    let (origin, files) = (Origin::start(held(&gate)), Files::new());
    let component = files.write("whole.wasm", &guest.component());
    let setup = Setup::before(&origin)
        .workers(1)
        .process("attachments-max = 1")
        .backend("maxconn = 1\ntimeout-queue = \"60s\"\nbalance = { policy = \"p\" }\nqueue-policy = \"p\"")
        .more(&policy("p", &component, ""));
    let proxy = Proxy::start(&setup);
    let mut clients = vec![ask(&proxy, "/hold", "acme")];
    gate.reached(1);
    // A pick and a verdict: the class is no opinion, and so is every plan.
    let opinions = || policy_count(&proxy, "calls") - policy_count(&proxy, "abstained");
    clients.push(ask(&proxy, "/second", "acme"));
    eventually("it was asked about the second", || {
        (opinions() == 3.0).then_some(())
    });
    let third = ask(&proxy, "/third", "acme").response("GET");
    assert_eq!(
        (third.status, retry_after(&third)),
        (503, Some("100".into())),
        "a pick is tied to its server"
    );
    gate.open();
    assert_eq!(statuses(&mut clients), [200; 2]);
}
