//! From production to a test: the access log of the real proxy, replayed in a simulation (`forebay test --replay`).

use crate::kit::{Client, Origin, Proxy, Setup, once, plain};
use std::path::Path;

/// A cluster like the one that was recorded.
const SCENARIO: &str = r#"
[scenario]
about = "What was recorded comes again."
workers = 2
duration = "1s"

[backend.app]
servers = ["a", "b"]
balance = "roundrobin"

[[server]]
service = "1ms"

[[traffic]]
clients = 1
think = "1s"
"#;

/// Requests of each client, and clients.
const EACH: usize = 75;
const CLIENTS: usize = 4;

fn arguments<'a>(scenario: &'a Path, log: &'a Path) -> [&'a str; 4] {
    let text = |path: &'a Path| path.to_str().expect("a plain path");
    ["test", text(scenario), "--replay", text(log)]
}

/// The figures of the row that begins so: as it is, and changed.
fn row<'t>(told: &'t str, what: &str) -> Vec<&'t str> {
    let line = told.lines().find_map(|line| line.strip_prefix(what));
    line.unwrap_or_else(|| panic!("no row {what:?}: {told}"))
        .split_whitespace()
        .collect()
}

/// As many requests as were recorded, on as many connections, go to servers as they went; and otherwise under a change.
#[test]
fn a_recorded_log_comes_again() {
    let origins = [(); 2].map(|()| Origin::start(plain));
    let setup = Setup::before_all(&[&origins[0], &origins[1]]).backend("balance = \"roundrobin\"");
    let proxy = Proxy::start(&setup);
    for client in 0..CLIENTS {
        let mut connection = Client::of(&proxy);
        for request in 0..EACH {
            connection.get(&format!("/{client}/{request}"));
        }
    }
    let all = CLIENTS * EACH;
    proxy.access_log(all);
    assert_eq!(origins.each_ref().map(|origin| origin.seen().len()), [all / 2; 2]);

    let (scenario, log) = (proxy.path("recorded.toml"), proxy.path("access.log"));
    std::fs::write(&scenario, SCENARIO).expect("written");
    let change = ["--set", "backend.app.balance=first"];
    let output = once(&[&arguments(&scenario, &log)[..], &change].concat());
    let (told, wrong) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}{wrong}");
    let replayed = format!("replayed: {all} requests of 1 clients on {CLIENTS} connections");
    assert!(told.starts_with(&replayed), "{told}");
    assert_eq!(row(&told, "answered"), [all.to_string(), all.to_string()]);
    assert_eq!(row(&told, "failed"), ["0", "0"]);
    assert_eq!(row(&told, "share of app/a %"), ["50.00", "100.00"]);
    assert_eq!(row(&told, "share of app/b %"), ["50.00", "0.00"]);
}

/// A log of another program: which file and line, what it is, and how one of ours is made.
#[test]
fn a_log_of_another_program_is_refused() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let (scenario, log) = (proxy.path("recorded.toml"), proxy.path("other.log"));
    std::fs::write(&scenario, SCENARIO).expect("written");
    let line = "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 2326\n";
    std::fs::write(&log, line.repeat(3)).expect("written");
    let output = once(&arguments(&scenario, &log));
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{wrong}");
    for part in [
        &format!("{}:1: ", log.display()),
        "common or combined format",
        "log = { format = \"json\", to = \"PATH\" }",
    ] {
        assert!(wrong.contains(part), "{part}: {wrong}");
    }
    assert!(output.stdout.is_empty(), "nothing is run");
}
