//! What an operator sees and does: the command line, runtime commands, the access log, metrics.

use crate::kit::{
    Client, Origin, PATIENCE, Proxy, Setup, Signal, ctl, eventually, metrics, once, plain, request, willing,
};
use std::os::unix::fs::PermissionsExt;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of this text, removed with its folder.
struct File(std::path::PathBuf);

impl File {
    fn of(name: &str, text: &str) -> File {
        let folder = std::env::temp_dir().join(format!("forebay-file-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("some.toml");
        std::fs::write(&path, text).expect("written");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().expect("a folder"));
    }
}

const SMALLEST: &str = "[[listen]]\nbind = \"127.0.0.1:8080\"\nbackend = \"app\"\n\n\
                        [backend.app]\nservers = [\"127.0.0.1:9001\", \"127.0.0.1:9002\"]\n";

/// DESIGN §2: every command is named by `--help`, and each has a help of its own.
#[test]
fn help_is_complete() {
    let help = text(&once(&["--help"]).stdout);
    for command in ["run", "check", "demo", "config", "ctl", "test", "plugin"] {
        assert!(help.contains(command), "{command} is missing: {help}");
        let own = once(&[command, "--help"]);
        assert!(own.status.success() && !own.stdout.is_empty(), "{command} --help");
    }
    assert!(!once(&["no-such-command"]).status.success());
}

/// The version, and with `--verbose` what matters for a report of a fault.
#[test]
fn the_version_says_what_it_is() {
    let version = text(&once(&["--version"]).stdout);
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    let verbose = text(&once(&["--version", "--verbose"]).stdout);
    assert!(
        verbose.contains(env!("CARGO_PKG_VERSION")) && verbose.len() > version.len(),
        "{verbose}"
    );
}

/// `check` says what is there, or every mistake with its place; the exit code tells.
#[test]
fn check_finds_every_mistake_with_its_place() {
    let good = File::of("good", SMALLEST);
    let output = once(&["check", good.path()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("ok") && said.contains("1 listener") && said.contains("2 servers"),
        "{said}"
    );

    let bad = File::of(
        "bad",
        "[[listen]]\nbind = 8080\nbakend = \"app\"\n\n[backend.app]\nservers = []\nmaxcon = 3\n",
    );
    let output = once(&["check", bad.path()]);
    assert_eq!(output.status.code(), Some(1));
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    for part in [
        "some.toml:2:8",
        "some.toml:3:1",
        "bakend",
        "backend",
        "some.toml:7:1",
    ] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    let output = once(&["check", "/no/such/file.toml"]);
    assert!(!output.status.success() && text(&output.stderr).contains("/no/such/file.toml"));
}

/// `run` refuses what `check` refuses, with the same words, and does not listen.
#[test]
fn run_refuses_a_bad_file() {
    let proxy = Proxy::spawn(
        &Setup::raw("[[listen]]\nbind = \"127.0.0.1:0\"\nbackend = \"nowhere\"\n"),
        None,
    );
    assert!(!proxy.exit_within(PATIENCE).success());
    proxy.says("which backend is missing", |line| line.contains("nowhere"));
    assert_eq!(proxy.addresses("web"), []);
}

/// `config show` writes out every default, in a form that can be read again to the same end.
#[test]
fn the_effective_configuration_can_be_shown_and_read() {
    let file = File::of("show", SMALLEST);
    let shown = text(&once(&["config", "show", file.path()]).stdout);
    for key in [
        "timeout-connect",
        "timeout-http-request",
        "workers",
        "head-max",
        "127.0.0.1:9002",
    ] {
        assert!(shown.contains(key), "{key} is missing: {shown}");
    }
    let again = File::of("shown", &shown);
    assert_eq!(text(&once(&["config", "show", again.path()]).stdout), shown);
}

/// CLI-2, ST-4: `show stat` is a table of what listeners and servers did; the socket is its owner's alone.
#[test]
fn show_stat_tells_what_happened() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mode = std::fs::metadata(proxy.path("control.sock"))
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    Client::of(&proxy).get("/");
    let table = ctl(&proxy, &["show", "stat"]).expect("a table");
    assert!(table.starts_with("# pxname,svname,"), "{table}");
    for row in ["web,FRONTEND,", "app,BACKEND,"] {
        assert!(table.contains(row), "{row} is missing: {table}");
    }
    let json = ctl(&proxy, &["show", "stat", "json"]).expect("JSON");
    serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
}

/// CLI-3: a server is drained, put into maintenance and made ready again; new requests follow at once.
#[test]
fn a_server_can_be_taken_out_and_put_back() {
    let (first, second) = (Origin::start(plain), Origin::start(plain));
    let servers = [&first, &second].map(|it| it.address().to_string());
    let listed = vec![
        format!("{{ name = \"a\", address = \"{}\" }}", servers[0]),
        format!("{{ name = \"b\", address = \"{}\" }}", servers[1]),
    ];
    let proxy = Proxy::start(&Setup::before_servers(listed).backend("balance = \"roundrobin\""));
    let mut client = Client::of(&proxy);
    for state in ["drain", "maint"] {
        ctl(&proxy, &["set", "server", "app/b", "state", state]).expect("done");
        eventually("only one server is used", || {
            let before = second.seen().len();
            (0..10).for_each(|_| drop(client.get("/")));
            (second.seen().len() == before).then_some(())
        });
        if state == "maint" {
            eventually("POOL-52: its parked connections are closed", || {
                (second.open() == 0).then_some(())
            });
        }
        ctl(&proxy, &["set", "server", "app/b", "state", "ready"]).expect("done");
        eventually("both are used again", || {
            let before = second.seen().len();
            (0..10).for_each(|_| drop(client.get("/")));
            (second.seen().len() > before).then_some(())
        });
    }
    ctl(&proxy, &["set", "server", "app/a", "state", "maint"]).expect("done");
    ctl(&proxy, &["set", "server", "app/b", "state", "maint"]).expect("done");
    eventually("no server is left", || {
        (Client::of(&proxy).get("/").status == 503).then_some(())
    });
}

/// CLI-4: one line says what is wrong with a command, and the exit code tells.
#[test]
fn a_wrong_command_is_an_error() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    for command in [
        &["set", "server", "app/nobody", "state", "drain"][..],
        &["shew", "stat"],
        &["set", "server"],
    ] {
        let said = ctl(&proxy, command).expect_err("an error");
        assert!(!said.trim().is_empty(), "{command:?} fails without a word");
    }
    assert!(ctl(&proxy, &["help"]).expect("a list").contains("show stat"));
}

/// LG-1…LG-4: one JSON line a request, with what the exchange was; as many lines as the metrics count requests.
#[test]
fn every_request_has_its_log_line() {
    let origin = Origin::start(willing);
    let proxy = Proxy::start(
        &Setup::before(&origin)
            .workers(1)
            .route("match = { path = \"/no\" }\ndeny = 403"),
    );
    let mut client = Client::of(&proxy);
    client.get("/first?q=1");
    client.send(request("POST", "/echo", "", b"0123456789"));
    assert_eq!(client.response("POST").status, 200);
    client.get("/no");
    let mut bad = Client::of(&proxy);
    bad.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(bad.response("GET").status, 400);
    let lines = proxy.access_log(4);
    let line = |target: &str| {
        lines
            .iter()
            .find(|it| it["target"] == target)
            .unwrap_or_else(|| panic!("{lines:#?}"))
    };
    let first = line("/first?q=1");
    assert_eq!(first["method"], "GET");
    assert_eq!(first["status"], 200);
    assert_eq!(
        (&first["listener"], &first["backend"]),
        (&"web".into(), &"app".into())
    );
    assert_eq!(
        (&first["host"], &first["reuse"], &first["end"]),
        (&"app.test".into(), &"new".into(), &"--".into())
    );
    assert!(first["total_us"].as_u64().is_some_and(|it| it > 0), "{first}");
    let echo = line("/echo");
    assert_eq!((&echo["reuse"], &echo["status"]), (&"idle".into(), &200.into()));
    assert!(
        echo["bytes_in"].as_u64() >= Some(10) && echo["bytes_out"].as_u64() >= Some(10),
        "{echo}"
    );
    let denied = line("/no");
    assert_eq!(
        (&denied["status"], &denied["server"]),
        (&403.into(), &serde_json::Value::Null)
    );
    assert!(
        lines
            .iter()
            .any(|it| it["status"] == 400 && !it["cause"].is_null()),
        "{lines:#?}"
    );

    for _ in 0..100 {
        client.get("/more");
    }
    let lines = proxy.access_log(104);
    assert_eq!(lines.len(), 104);
    eventually("metrics count what the log shows", || {
        let count = metrics(&proxy).sum("frontend_http_responses_total", &[("proxy", "web")]);
        (count == 104.0).then_some(())
    });
}

/// A request cannot forge a log line.
#[test]
fn the_log_cannot_be_forged() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.get("/%0a%7b%22status%22:200%7d\"quoted\"");
    let lines = proxy.access_log(1);
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["status"], 200);
}

/// SIGHUP opens the log file again, so that it can be rotated under load without losing a line.
#[test]
fn the_log_can_be_rotated() {
    let origin = Origin::start(plain);
    let setup = Setup::before(&origin);
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    client.get("/before");
    proxy.access_log(1);
    std::fs::rename(proxy.path("access.log"), proxy.path("access.log.1")).expect("moved");
    proxy.reload(&setup);
    let mut asked = 1;
    let lines = |name: &str| {
        let text = std::fs::read_to_string(proxy.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    eventually("a line in the new file", || {
        client.get("/after");
        asked += 1;
        (!lines("access.log").is_empty()).then_some(())
    });
    eventually("every line is in one of the two files", || {
        let both = lines("access.log.1").len() + lines("access.log").len();
        (both == asked).then_some(())
    });
    assert!(lines("access.log.1")[0].contains("\"/before\""));
}

/// A full disk costs log lines, counted, and nothing else.
#[test]
fn a_full_disk_loses_lines_only() {
    let origin = Origin::start(plain);
    let text = Setup::before(&origin)
        .text(std::path::Path::new("$DIR"))
        .replace("$DIR/access.log", "/dev/full");
    let proxy = Proxy::start(&Setup::raw(&text));
    let mut client = Client::of(&proxy);
    for _ in 0..50 {
        assert_eq!(client.get("/").status, 200);
    }
    eventually("the lost lines are counted", || {
        let metrics = metrics(&proxy);
        let lost =
            metrics.sum("process_failed_logs_total", &[]) + metrics.sum("process_dropped_logs_total", &[]);
        (lost == 50.0).then_some(())
    });
}

/// The metrics are Prometheus text that says its types, and nothing else is served there.
#[test]
fn metrics_are_prometheus_text() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    Client::of(&proxy).get("/");
    let mut client = Client::connect(&proxy.metrics_address());
    client.send("GET /metrics HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n");
    let page = client.response("GET").text();
    assert!(
        page.contains("# TYPE forebay_") && page.contains("# HELP forebay_"),
        "{page}"
    );
    let mut other = Client::connect(&proxy.metrics_address());
    other.send("GET /else HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n");
    assert_eq!(other.response("GET").status, 404);
}

/// `demo` needs nothing: it starts, says where, answers, and Ctrl-C ends it cleanly.
#[test]
fn the_demo_answers() {
    let demo = Proxy::demo();
    let address = demo.address("demo");
    let response = Client::connect(&address).get("/");
    assert_eq!(response.status, 200);
    demo.signal(Signal::INT);
    assert_eq!(demo.exit_within(PATIENCE).code(), Some(0));
}
