//! Policies at work in the real binary: the shipped ones do what they say, and those that go wrong cost no request.

use crate::kit::{Client, Origin, Proxy, Setup, eventually, metrics};
use std::path::{Path, PathBuf};

#[path = "../wasm/guests.rs"]
#[allow(dead_code, reason = "shared with the tests of the host, which use all of it")]
pub(crate) mod guests;

/// Files of one test, removed with it.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        Files(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), bytes).expect("written");
        self.path(name)
    }
}

/// A component that is shipped with the sources.
pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("plugins/{name}/{name}.wasm"))
}

pub(crate) fn policy(name: &str, component: &Path, keys: &str) -> String {
    format!(
        "[policy.{name}]\ncomponent = \"{}\"\n{keys}\n",
        component.display()
    )
}

/// Three origins that say their names.
pub(crate) fn three() -> [Origin; 3] {
    ["a", "b", "c"].map(named)
}

fn named(name: &'static str) -> Origin {
    Origin::start(move |exchange| exchange.answer(200, "", name.as_bytes()))
}

pub(crate) fn before(origins: &[Origin; 3], balance: &str, more: &str) -> Setup {
    let setup = Setup::before_all(&[&origins[0], &origins[1], &origins[2]]);
    setup
        .backend(&format!("balance = {{ policy = \"{balance}\" }}"))
        .more(more)
}

pub(crate) fn faults(proxy: &Proxy, reason: &str) -> f64 {
    metrics(proxy).sum("policy_faults_total", &[("reason", reason)])
}

pub(crate) fn chosen_by(proxy: &Proxy, source: &str) -> f64 {
    metrics(proxy).sum("backend_choices_total", &[("source", source)])
}

/// `balance-plan`: the plan is executed natively; no request waits for the guest.
#[test]
fn a_plan_decides() {
    let origins = three();
    let steady = policy("steady", &shipped("least-latency"), "interval = \"50ms\"");
    let proxy = Proxy::start(&before(&origins, "steady", &steady));
    let mut client = Client::of(&proxy);
    eventually("requests follow a plan", || {
        client.get("/");
        (chosen_by(&proxy, "plan") >= 20.0).then_some(())
    });
    assert_eq!(metrics(&proxy).sum("policy_faults_total", &[]), 0.0);
}

/// A reload that takes the policy away takes its plan, too: nobody would watch over it.
#[test]
fn a_plan_goes_with_its_policy() {
    let origins = three();
    let steady = policy("steady", &shipped("least-latency"), "interval = \"50ms\"");
    let proxy = Proxy::start(&before(&origins, "steady", &steady));
    let mut client = Client::of(&proxy);
    eventually("requests follow a plan", || {
        client.get("/");
        (chosen_by(&proxy, "plan") >= 1.0).then_some(())
    });
    let [a, b, c] = &origins;
    proxy.reload(&Setup::before_all(&[a, b, c]).backend("balance = \"roundrobin\""));
    eventually("requests are balanced", || {
        client.get("/");
        (chosen_by(&proxy, "native") >= 10.0).then_some(())
    });
    let planned = chosen_by(&proxy, "plan");
    (0..10).for_each(|_| drop(client.get("/")));
    assert_eq!(chosen_by(&proxy, "plan"), planned);
}

/// `balance-pick`: one key, one server; without a key the fallback decides. The policy in C chooses as the one in Rust.
#[test]
fn a_pick_shards_by_header() {
    let origins = three();
    let mut choices = Vec::new();
    for plugin in ["header-shard", "header-shard-c"] {
        let shard = policy("shard", &shipped(plugin), "config = { header = \"x-key\" }");
        let proxy = Proxy::start(&before(&origins, "shard", &shard).workers(1));
        let mut client = Client::of(&proxy);
        let chosen: Vec<String> = (0..24)
            .map(|key| {
                let mut once = || {
                    client.send(format!(
                        "GET / HTTP/1.1\r\nHost: app.test\r\nX-Key: user-{key}\r\n\r\n"
                    ));
                    client.response("GET").text()
                };
                let first = once();
                assert_eq!(once(), first, "{plugin}: the same key, another server");
                first
            })
            .collect();
        assert!(
            ["a", "b", "c"]
                .iter()
                .all(|name| chosen.iter().any(|it| it == name)),
            "{chosen:?}"
        );
        assert_eq!(chosen_by(&proxy, "pick"), 48.0);
        client.get("/");
        assert_eq!(chosen_by(&proxy, "native"), 1.0, "no key, no opinion");
        choices.push(chosen);
    }
    assert_eq!(choices[0], choices[1], "Rust and C");
}

/// `balance-pick`: a latency changes without any other column; whoever picks is shown it all the same.
#[test]
fn a_picker_is_shown_new_latencies() {
    let (origins, files) = (three(), Files::new());
    let guest = guests::Guest {
        table: "(global.set $seen (i32.load (local.get 10)))",
        ..guests::Guest::picker("(call $choice (i32.ge_s (global.get $seen) (i32.const 0)) (i32.const -1))")
    };
    let component = files.write("measured.wasm", &guest.component());
    let measured = policy("measured", &component, "interval = \"50ms\"");
    let proxy = Proxy::start(&before(&origins, "measured", &measured));
    let mut client = Client::of(&proxy);
    assert_eq!(client.get("/").text(), "a", "nothing is known yet");
    eventually("the second is chosen once the first has a latency", || {
        (client.get("/").text() == "b").then_some(())
    });
}

/// `route`: by cookie; its header edits reach the server; a denial of the rules is not asked about.
#[test]
fn a_route_takes_the_canary() {
    let app = Origin::start(|exchange| exchange.answer(200, "", b"app"));
    let canary = Origin::start(|exchange| exchange.answer(200, "", b"canary"));
    let more = format!(
        "[backend.canary]\nservers = [\"{}\"]\n{}",
        canary.address(),
        policy(
            "canary",
            &shipped("canary"),
            "config = { backend = \"canary\", share = \"0%\", cookie = \"canary\" }"
        )
    );
    let setup = Setup::before(&app)
        .listen("route-policy = \"canary\"")
        .route("match = { path = \"/secret\" }\ndeny = 403")
        .more(&more);
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    let mut ask = |path: &str, cookie: &str| {
        client.send(format!(
            "GET {path} HTTP/1.1\r\nHost: app.test\r\nCookie: canary={cookie}\r\n\r\n"
        ));
        client.response("GET")
    };
    assert_eq!(ask("/one", "always").text(), "canary");
    assert_eq!(ask("/two", "never").text(), "app");
    assert_eq!(ask("/secret", "always").status, 403);
    let seen = canary.saw_once("/one");
    assert_eq!(seen.head.value("x-canary"), Some("1"), "{:?}", seen.head);
}

/// AC-70: a guest that traps on every call: no request fails, the fallback decides, quarantine is logged once.
#[test]
fn a_guest_that_traps_costs_nothing() {
    let origins = three();
    let folder = Files::new();
    let component = folder.write("traps.wasm", &guests::Guest::picker("(unreachable)").component());
    let proxy = Proxy::start(&before(&origins, "bad", &policy("bad", &component, "")));
    let mut client = Client::of(&proxy);
    for _ in 0..300 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(chosen_by(&proxy, "native"), 300.0);
    assert!(faults(&proxy, "trap") >= 1.0);
    proxy.says("which policy is in quarantine", |line| {
        line.contains("quarantine") && line.contains("policy=bad") && line.contains("at=app")
    });
}

/// AC-71: a guest that loops: each call is cut, no request fails, the third cut shuts it out.
#[test]
fn a_guest_that_loops_is_cut() {
    let origins = three();
    let folder = Files::new();
    let looping = guests::Guest::picker("(loop $again (br $again)) (unreachable)").component();
    let component = folder.write("loops.wasm", &looping);
    let proxy = Proxy::start(&before(&origins, "bad", &policy("bad", &component, "")).workers(1));
    let mut client = Client::of(&proxy);
    let mut asked = 0.0;
    let mut ask = || {
        assert_eq!(client.get("/").status, 200);
        asked += 1.0;
    };
    // After a cut the worker does not ask for a while.
    eventually("the third cut", || {
        ask();
        (faults(&proxy, "deadline") == 3.0).then_some(())
    });
    for _ in 0..20 {
        ask();
    }
    assert_eq!(faults(&proxy, "deadline"), 3.0);
    assert_eq!(
        faults(&proxy, "quarantined"),
        0.0,
        "who is not ready is not asked"
    );
    assert_eq!(chosen_by(&proxy, "native"), asked);
}

/// A bad answer is refused, and the fallback decides.
#[test]
fn a_server_that_does_not_exist_is_no_answer() {
    let origins = three();
    let folder = Files::new();
    let wrong = guests::Guest::picker("(call $choice (i32.const 7) (i32.const -1))").component();
    let component = folder.write("wrong.wasm", &wrong);
    let proxy = Proxy::start(&before(&origins, "bad", &policy("bad", &component, "")).workers(1));
    let mut client = Client::of(&proxy);
    for _ in 0..10 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(
        (faults(&proxy, "unknown-server"), chosen_by(&proxy, "native")),
        (10.0, 10.0)
    );
}
