//! What policies may read and keep beyond the table, in the real binary: the load that servers report, what happened in
//! the last seconds, and what is granted.

use crate::kit::{Client, Exchange, Gate, Origin, Proxy, Setup, eventually, metrics};
use crate::policies::guests::{Guest, MEASURES, STORE, World};
use crate::policies::{Files, before, policy};

/// Picks the server of three whose measure is the least; an unknown one is less than any.
const LEAST: &str = "
    (call $measures (i32.const 0) (i32.const 600))
    (local.set $list (i32.load (i32.const 600)))
    (loop $next
      (if (i32.lt_s (call $at (local.get $list) (local.get $i)) (call $at (local.get $list) (local.get $least)))
        (then (local.set $least (local.get $i))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                             (i32.load (i32.const 604)))))
    (call $choice (local.get $least) (i32.const -1))";

/// Picks by a measure, whose name `before` puts at 500.
fn by_least(name: &'static str, before: &'static str) -> Guest {
    let configure: &'static str = format!(
        "(drop (call $measure (i32.const 500) (i32.const {}))) (i32.const 16)",
        name.len()
    )
    .leak();
    Guest {
        world: World::Whole,
        before,
        configure,
        locals: "(local $list i32) (local $i i32) (local $least i32)",
        ..Guest::whole(MEASURES, LEAST)
    }
}

const AT: &str = "(func $at (param i32 i32) (result i32)
    (i32.load (i32.add (local.get 0) (i32.mul (i32.const 4) (local.get 1)))))";

fn by_cpu() -> Guest {
    let before: &'static str = format!("{AT} (data (i32.const 500) \"report:cpu_utilization\")").leak();
    by_least("report:cpu_utilization", before)
}

/// An origin that says its name, and reports this.
fn reporting(name: &'static str, report: &'static str) -> Origin {
    let fields: String = match report {
        "" => String::new(),
        report => format!("endpoint-load-metrics: {report}\r\n"),
    };
    Origin::start(move |exchange: &mut Exchange| exchange.answer(200, &fields, name.as_bytes()))
}

/// Three origins; the second one has the least to do.
fn three_reporting() -> [Origin; 3] {
    [
        reporting("a", "TEXT cpu_utilization=0.9,named_metrics.queue=4"),
        reporting("b", r#"JSON {"cpu_utilization": 0.25, "eps": 1}"#),
        reporting("c", "TEXT cpu_utilization=0.5"),
    ]
}

#[test]
fn the_least_loaded_server_is_preferred_by_its_report() {
    let files = Files::new();
    let component = files.write("cpu.wasm", &by_cpu().component());
    let origins = three_reporting();
    let section = policy("least", &component, "");
    let proxy =
        Proxy::start(&before(&origins, "least", &section).backend("load-report = true\nretry-on = \"none\""));
    let mut client = Client::of(&proxy);
    // Each is asked once, because nothing is known of it; then all go where there is the least to do.
    let served: Vec<String> = (0..8).map(|_| client.get("/").text()).collect();
    assert_eq!(served, ["a", "b", "c", "b", "b", "b", "b", "b"]);
    let last = client.get("/");
    assert_eq!(
        last.head.value("endpoint-load-metrics"),
        None,
        "it is not the client's business"
    );
    let scraped = metrics(&proxy);
    assert_eq!(
        scraped.sum("server_load_reports_total", &[("result", "read")]),
        9.0
    );
    assert_eq!(
        scraped.sum("server_load_reports_total", &[("result", "malformed")]),
        0.0
    );
    assert_eq!(scraped.sum("policy_faults_total", &[]), 0.0);
}

/// A report that cannot be read is counted, and is none; with `pass` the client gets it as it came.
#[test]
fn a_malformed_report_is_none() {
    let files = Files::new();
    let component = files.write("cpu.wasm", &by_cpu().component());
    let origins = [
        reporting("a", "TEXT cpu_utilization=nan"),
        reporting("b", "TEXT cpu_utilization=0.1"),
        reporting("c", "TEXT cpu_utilization=0.2"),
    ];
    let section = policy("least", &component, "");
    let proxy = Proxy::start(&before(&origins, "least", &section).backend("load-report = \"pass\""));
    let mut client = Client::of(&proxy);
    for _ in 0..4 {
        let response = client.get("/");
        assert_eq!(response.text(), "a", "nothing is known of it");
        assert_eq!(
            response.head.value("endpoint-load-metrics"),
            Some("TEXT cpu_utilization=nan")
        );
    }
    assert_eq!(
        metrics(&proxy).sum("server_load_reports_total", &[("result", "malformed")]),
        4.0
    );
}

/// Where it is not looked for, it is a field as any other, and nothing is known.
#[test]
fn without_the_key_a_report_is_any_field() {
    let files = Files::new();
    let component = files.write("cpu.wasm", &by_cpu().component());
    let origins = three_reporting();
    let section = policy("least", &component, "");
    let proxy = Proxy::start(&before(&origins, "least", &section));
    let mut client = Client::of(&proxy);
    for _ in 0..3 {
        let response = client.get("/");
        assert_eq!(response.text(), "a");
        assert!(response.head.value("endpoint-load-metrics").is_some());
    }
    assert_eq!(metrics(&proxy).sum("server_load_reports_total", &[]), 0.0);
}

/// What is too old is unknown again: then it is asked for.
#[test]
fn an_old_report_is_none() {
    let files = Files::new();
    let component = files.write("cpu.wasm", &by_cpu().component());
    let origins = three_reporting();
    let section = policy("least", &component, "");
    let keys = "load-report = true\nload-report-max-age = \"300ms\"";
    let proxy = Proxy::start(&before(&origins, "least", &section).backend(keys));
    let mut client = Client::of(&proxy);
    assert_eq!(client.get("/").text(), "a");
    eventually("the first one is asked again", || {
        (client.get("/").text() == "a").then_some(())
    });
}

/// A policy about requests that wait is shown no table, and reads the measures of its backend all the same.
#[test]
fn a_queue_policy_reads_what_servers_report() {
    let gate = Gate::default();
    let held = gate.clone();
    let origin = Origin::start(move |exchange: &mut Exchange| {
        if exchange.target == "/hold" {
            held.wait();
        }
        let fields = "endpoint-load-metrics: TEXT named_metrics.pause=0.007\r\n";
        exchange.answer(200, fields, b"");
    });
    let files = Files::new();
    let guest = Guest {
        before: "(data (i32.const 500) \"report:named_metrics.pause\")",
        configure: "(drop (call $measure (i32.const 500) (i32.const 26))) (i32.const 16)",
        admission: "(call $preference (i32.const 1) (i32.const 429)
            (call $value (i32.const 0) (i32.const 0)) (i32.const -1))",
        ..Guest::whole(MEASURES, "(unreachable)")
    };
    let component = files.write("pause.wasm", &guest.component());
    let setup = Setup::before(&origin)
        .backend("maxconn = 1\nqueue-policy = \"pause\"\nload-report = true")
        .more(&policy("pause", &component, ""));
    let proxy = Proxy::start(&setup);
    assert_eq!(Client::of(&proxy).get("/").status, 200);
    let mut first = Client::of(&proxy);
    first.send("GET /hold HTTP/1.1\r\nHost: app.test\r\n\r\n");
    gate.reached(1);
    let away = Client::of(&proxy).get("/away");
    assert_eq!((away.status, away.head.value("retry-after")), (429, Some("7")));
    gate.open();
    assert_eq!(first.response("GET").status, 200);
}

/// `failures` of the last window: who fails is avoided once it is known.
#[test]
fn a_failing_server_is_avoided_by_its_window() {
    let files = Files::new();
    let before_it: &'static str = format!("{AT} (data (i32.const 500) \"failures\")").leak();
    let component = files.write("failures.wasm", &by_least("failures", before_it).component());
    let origins = [
        Origin::start(|exchange: &mut Exchange| exchange.answer(503, "", b"a")),
        reporting("b", ""),
        reporting("c", ""),
    ];
    let section = policy("least", &component, "");
    let proxy = Proxy::start(&before(&origins, "least", &section).backend("retries = 0"));
    let mut client = Client::of(&proxy);
    assert_eq!(client.get("/").text(), "a");
    for name in ["b", "c", "b"] {
        // Where nothing has happened nothing is known, and that is less than no failure at all.
        eventually(name, || (client.get("/").text() == name).then_some(()));
    }
}

/// A scenario's servers report as real ones do, and the same code reads it: of all requests but the first ones, the
/// second server gets each, until its load is another.
#[test]
fn simulated_servers_report_their_load() {
    let files = Files::new();
    files.write("cpu.wasm", &by_cpu().component());
    let scenario = r#"
[scenario]
about = "The server that reports the least load gets everything; from the third second on that is another one."
workers = 2
duration = "6s"
[backend.app]
servers = ["s[1-3]"]
balance = { policy = "least" }
load-report = true
[policy.least]
component = "cpu.wasm"
[[server]]
service = "10ms"
report = "TEXT cpu_utilization=0.9"
[[server]]
name = "app/s2"
service = "10ms"
report = 'JSON {"cpu_utilization":0.2,"named_metrics":{"busy":{in-flight}}}'
[[server]]
name = "app/s3"
service = "10ms"
capacity = 100
report = "TEXT cpu_utilization={load},named_metrics.queue={queued}"
[[traffic]]
rate = 100
clients = 4
[[event]]
at = "3s"
server = "app/s3"
report = "TEXT cpu_utilization=0.5"
[expect]
share = { "app/s1" = "0%..2%", "app/s2" = "45%..52%", "app/s3" = "45%..52%" }
fallbacks = 0
"#;
    let file = files.write("reports.toml", scenario.as_bytes());
    let run = crate::kit::once(&["test", "--accept", file.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let transcript = std::fs::read_to_string(files.path("reports.snap")).expect("a transcript");
    assert!(
        transcript.contains(r#"reports "TEXT cpu_utilization=0.5""#),
        "{transcript}"
    );
}

/// A planner of the next generation finds what the one before had kept; its counter goes on.
#[test]
fn what_is_kept_outlives_a_swap() {
    let planning = "(call $restore (i32.const 1) (i32.const 600))
        (if (i32.load8_u (i32.const 600)) (then (call $add (i32.const 0) (i32.const 1))))
        (drop (call $save (i32.const 1) (i32.const 500) (i32.const 5)))
        (i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
    let silent = Guest {
        before: "(data (i32.const 500) \"found\")",
        configure: "(drop (call $counter (i32.const 500) (i32.const 5))) (i32.const 16)",
        planning,
        ..Guest::whole(STORE, "(call $choice (i32.const -1) (i32.const -1))")
    };
    let files = Files::new();
    let component = files.write("keeps.wasm", &silent.component());
    let origins = ["a", "b", "c"].map(|name| reporting(name, ""));
    let keys = "grants = [\"counters\", \"store\"]\ninterval = \"1h\"";
    let first = before(&origins, "keeps", &policy("keeps", &component, keys));
    let proxy = Proxy::start(&first);
    let found = || metrics(&proxy).sum("policy_counter_total", &[("policy", "keeps"), ("name", "found")]);
    eventually("the first plan", || {
        (metrics(&proxy).sum("policy_calls_total", &[("policy", "keeps")]) >= 1.0).then_some(())
    });
    assert_eq!(found(), 0.0, "there was nothing to find");
    let other = format!("{keys}\nconfig = {{ other = true }}");
    proxy.reload(&before(&origins, "keeps", &policy("keeps", &component, &other)));
    eventually("the next generation finds it", || (found() >= 1.0).then_some(()));
}

/// Without its grant a component is refused, at start as by `check`, with the line to write.
#[test]
fn what_is_not_granted_is_refused() {
    let files = Files::new();
    let guest = Guest::whole(STORE, "(call $choice (i32.const -1) (i32.const -1))");
    let guest = Guest {
        configure: "(drop (call $counter (i32.const 128) (i32.const 6))) (i32.const 16)",
        planning: "(drop (call $save (i32.const 1) (i32.const 500) (i32.const 5)))
            (i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)",
        ..guest
    };
    let component = files.write("wants.wasm", &guest.component());
    let origins = ["a", "b", "c"].map(|name| reporting(name, ""));
    let setup: Setup = before(&origins, "wants", &policy("wants", &component, ""));
    let file = files.write("wants.toml", setup.text(files.folder()).as_bytes());
    let checked = crate::kit::once(&["check", file.to_str().expect("UTF-8")]);
    let said =
        String::from_utf8_lossy(&checked.stderr).into_owned() + &String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success(), "{said}");
    assert!(
        said.contains("Write `grants = [\"counters\", \"store\"]` in [policy.wants]"),
        "{said}"
    );
    let inspected = crate::kit::once(&["plugin", "inspect", component.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&inspected.stdout).into_owned();
    assert!(
        said.contains("needs     grants = [\"counters\", \"store\"] in [policy.NAME]")
            && said.contains("accepted"),
        "{said}"
    );
}
