//! `forebay plugin check`: guests with a mistake are found out, and whatever is shipped passes.

use crate::guests::Guest;
use crate::kit::{Bench, LIVE, limits, pick, setup};
use forebay::policy::{Attachment, Setup, Usage};
use forebay::sim::kit::{self, Effort, Report, Verdict};
use forebay::wasm::Mode;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static TEST: LazyLock<Bench> = LazyLock::new(|| Bench::new(Mode::Test));

/// Forgets what the arguments of `table` took, as `pick` does.
const RESET: &str = "(global.set $free (i32.const 8192))";
/// The memory of the guest grows now and then, and for ever.
const LEAK: &str = "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.eqz (i32.rem_u (global.get $calls) (i32.const 1000)))
      (then (drop (memory.grow (i32.const 1)))))
    (call $choice (i32.const -1) (i32.const -1))";

fn check(guest: &Guest) -> Report {
    let attachment = TEST.attach(guest).unwrap_or_else(|error| panic!("{error}"));
    kit::check(&*attachment, &Effort::QUICK)
}

fn verdict(report: &Report, check: &str) -> Verdict {
    let found = report.findings.iter().find(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("no {check} in\n{report}")).verdict
}

/// The server with the lowest product of smoothed latency and requests in flight, whatever its state: the latencies of
/// the table are kept at 1024.
fn least_time() -> Guest {
    Guest {
        table: "(memory.copy (i32.const 1024) (local.get 10) (i32.mul (local.get $count) (i32.const 4)))
            (global.set $free (i32.const 8192))",
        locals: "(local $at i32) (local $best i32) (local $time i64) (local $least i64)",
        ..Guest::picker(
            "(local.set $best (i32.const -1)) (local.set $least (i64.const 0x7fffffffffffffff))
            (block $done (loop $next
              (br_if $done (i32.ge_s (local.get $at) (global.get $count)))
              (local.set $time (i64.mul
                (i64.extend_i32_s (i32.load (i32.add (i32.const 1024) (i32.mul (local.get $at) (i32.const 4)))))
                (i64.add (i64.extend_i32_s (call $in_flight (local.get $at))) (i64.const 1))))
              (if (i64.lt_s (local.get $time) (local.get $least))
                (then (local.set $least (local.get $time)) (local.set $best (local.get $at))))
              (local.set $at (i32.add (local.get $at) (i32.const 1)))
              (br $next)))
            (call $choice (local.get $best) (i32.const -1))",
        )
    }
}

#[test]
fn a_guest_that_starves_a_server() {
    let report = check(&least_time());
    assert_eq!(verdict(&report, "starvation"), Verdict::Failed, "{report}");
    assert_eq!(
        verdict(&report, "down servers in picks"),
        Verdict::Failed,
        "{report}"
    );
    assert_eq!(verdict(&report, "faults"), Verdict::Ok, "{report}");
    assert!(verdict(&report, "fuel of pick") >= Verdict::Ok, "{report}");
}

#[test]
fn a_guest_whose_memory_grows() {
    let guest = Guest {
        before: "(global $calls (mut i32) (i32.const 0))",
        table: RESET,
        ..Guest::picker(LEAK)
    };
    let report = check(&guest);
    assert_eq!(
        verdict(&report, "memory of requests"),
        Verdict::Failed,
        "{report}"
    );
    assert_eq!(report.count(Verdict::Failed), 1, "{report}");
}

#[test]
fn a_guest_that_traps_is_told_with_its_situation() {
    let guest = Guest {
        table: RESET,
        ..Guest::picker(
            "(if (i32.eq (local.get $size) (i32.const 16384)) (then (unreachable)))
            (call $choice (i32.const -1) (i32.const -1))",
        )
    };
    let report = check(&guest);
    assert_eq!(verdict(&report, "faults"), Verdict::Failed, "{report}");
    let fault = report.findings.last().expect("faults come last");
    assert_eq!(fault.figure, "trap in pick");
}

/// A call that takes long takes more; fuel is counted where guests run on it, memory everywhere.
#[test]
fn what_a_guest_uses_is_counted() {
    let used = |bench: &Bench, guest: &Guest| -> Usage {
        let mut policy = bench.policy(guest);
        pick(&mut *policy).expect("an answer");
        policy.usage()
    };
    let grows =
        Guest::picker("(drop (memory.grow (i32.const 3))) (call $choice (i32.const 0) (i32.const 1))");
    let (short, long) = (
        used(&TEST, &Guest::picker(crate::guests::PICK_FIRST)),
        used(&TEST, &least_time()),
    );
    let fuel = |usage: Usage| usage.fuel.expect("it is counted");
    assert!(fuel(short).used > 0 && fuel(short).used * 2 < fuel(long).used);
    assert_eq!(fuel(long).allowed, limits().fuel_max);
    let page = |usage: Usage| usage.memory.expect("it is counted") >> 16;
    assert_eq!((page(short), page(used(&TEST, &grows))), (4, 7));
    let live = used(&LIVE, &grows);
    assert_eq!((live.fuel, page(live)), (None, 7));
}

/// What each shipped component is told.
const SHIPPED: [(&str, &str); 13] = [
    ("least-latency", "{}"),
    ("own-first", "{}"),
    ("header-shard", "{}"),
    ("header-shard-c", "{}"),
    ("canary", CANARY),
    ("tenants", "{}"),
    ("tenant-priority", PRIORITY),
    ("peak-ewma", "{}"),
    ("zone-aware", r#"{"zone":"a"}"#),
    ("least-cost", "{}"),
    ("adaptive-concurrency", "{}"),
    ("preconnect", "{}"),
    ("canary", CANARIES),
];
const CANARY: &str = r#"{"backend":"b","share":"5%","keep":"30d"}"#;
const CANARIES: &str = r#"{"backends":{"a":"5%","b":"10%"},"testers":"x-try"}"#;
const PRIORITY: &str = r#"{"tenants":{"key-1":"gold"},"default":"plain",
    "classes":{"gold":{"class":-10},"plain":{"deadline":"2s","queue-max":100}}}"#;

#[test]
fn whatever_is_shipped_passes() {
    for (name, config) in SHIPPED {
        let report = kit::check(&*shipped(name, config), &Effort::QUICK);
        println!("{name}\n{report}");
        assert!(report.worst() < Verdict::Failed, "{name}\n{report}");
    }
}

fn shipped(name: &str, config: &str) -> Arc<dyn Attachment> {
    let path = component(name);
    let setup = Setup {
        config: config.into(),
        ..setup()
    };
    TEST.host
        .load(&path, None)
        .and_then(|loaded| loaded.attach(&setup, limits(), Duration::ZERO))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn component(name: &str) -> std::path::PathBuf {
    let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins");
    plugins.join(name).join(format!("{name}.wasm"))
}

/// The command, by its exit code and what it prints.
#[cfg(feature = "proxy")]
mod command {
    use super::{TEST, component, least_time};
    use std::path::Path;
    use std::process::Command;

    fn run(file: &Path, more: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(["plugin", "check", "--quick"]).arg(file).args(more);
        let output = command.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    #[test]
    fn exit_codes_tell_what_came_out() {
        let (code, told, _) = run(&component("tenants"), &[]);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("0 FAILED"), "{told}");
        let (code, told, _) = run(
            &TEST.file("least-time.wasm", &least_time().component()),
            &["--json"],
        );
        assert_eq!(code, Some(1), "{told}");
        assert!(
            told.contains(r#""verdict":"FAILED""#) && told.lines().count() == 1,
            "{told}"
        );
        let (code, told, wrong) = run(Path::new("no-such.wasm"), &[]);
        assert_eq!((code, &*told), (Some(2), ""), "{wrong}");
        let (code, _, wrong) = run(&component("tenants"), &["--config", "no-such.json"]);
        assert_eq!(code, Some(2), "{wrong}");
    }

    /// A component that refuses what it is told, and a file that is none, are findings.
    #[test]
    fn what_cannot_be_asked_has_failed() {
        let (code, told, _) = run(&component("canary"), &[]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains("must name the backend"), "{told}");
        let (code, told, _) = run(&component("canary"), &["--config", super::CANARY]);
        assert_eq!(code, Some(0), "{told}");
        let (code, told, _) = run(&TEST.file("none.wasm", b"none"), &[]);
        assert_eq!(code, Some(1), "{told}");
    }
}
