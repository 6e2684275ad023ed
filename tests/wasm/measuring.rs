//! The import `measures`: which names there are, in which calls a value is read, and of which servers.

use crate::guests::{Guest, MEASURES, SILENT_PLAN, WISHES};
use crate::kit::{Bench, LIVE, asked, choice, pick, three};
use forebay::policy::{
    Fault, Live, Measure, Pick, PlanServer, PlanView, Policy, Priority, Reading, ServerIndex, Shown,
    Standing, State, Waits, Windowed,
};
use forebay::wasm::Mode;
use std::sync::Arc;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;
const NAMES: &str = r#"
    (data (i32.const 500) "safe-idle") (data (i32.const 520) "latency-p99")
    (data (i32.const 540) "report:named_metrics.q")"#;
const ASKS: &str = "(drop (call $measure (i32.const 500) (i32.const 9)))
    (drop (call $measure (i32.const 520) (i32.const 11)))
    (drop (call $measure (i32.const 540) (i32.const 22)))
    (i32.const 16)";

/// Three servers. Safe and idle are 2, 1, 0; the tail of the last two is known; the queue of each is its own index, for a
/// second.
struct Measured;

impl Live for Measured {
    fn in_flight(&self, _: ServerIndex) -> u32 {
        0
    }
    fn queued(&self, _: ServerIndex) -> u32 {
        0
    }
    fn idle(&self, _: ServerIndex) -> u32 {
        0
    }
    fn find(&self, measure: &Measure) -> Option<Reading> {
        match measure {
            Measure::SafeIdle => Some(Reading::SafeIdle),
            Measure::Window(windowed) => Some(Reading::Window(*windowed)),
            Measure::Report(name) => (&**name == "named_metrics.q").then_some(Reading::Report(7)),
        }
    }
    fn measure(&self, server: ServerIndex, reading: Reading, now: Duration) -> Option<u32> {
        let at = u32::from(server.0);
        match reading {
            Reading::SafeIdle => Some(2 - at),
            Reading::Window(Windowed::Tail) => (at > 0).then_some(at),
            Reading::Report(7) => (now <= Duration::from_secs(1)).then_some(at),
            other => panic!("nobody asked for {other:?}"),
        }
    }
}

fn measured() -> Shown {
    Shown {
        live: Arc::new(Measured),
        ..three()
    }
}

fn guest(body: &'static str) -> Guest {
    Guest {
        before: NAMES,
        configure: ASKS,
        ..Guest::whole(MEASURES, body)
    }
}

fn shown(bench: &Bench, body: &'static str) -> Box<dyn Policy> {
    let mut policy = bench.policy_unshown(&guest(body));
    policy.table(&measured(), NOW).expect("a table");
    policy
}

/// What a guest with that body picks.
fn picked(bench: &Bench, body: &'static str) -> Result<Option<Pick>, Fault> {
    pick(&mut *shown(bench, body))
}

#[test]
fn a_measure_is_read_by_server_or_as_a_column() {
    for bench in [&*LIVE, &Bench::new(Mode::Test)] {
        for (body, first, second) in [
            (
                "(call $choice (call $value (i32.const 0) (i32.const 0)) (call $value (i32.const 1) (i32.const 1)))",
                2,
                Some(1),
            ),
            (
                "(call $measures (i32.const 2) (i32.const 600))
                 (call $choice (i32.sub (i32.load (i32.const 604)) (i32.const 1))
                               (i32.load (i32.add (i32.load (i32.const 600)) (i32.const 4))))",
                2,
                Some(1),
            ),
            (
                "(call $measures (i32.const 9) (i32.const 600))
                 (call $choice (i32.sub (i32.load (i32.const 604)) (i32.const 2))
                               (i32.load (i32.load (i32.const 600))))",
                1,
                None,
            ),
        ] {
            assert_eq!(picked(bench, body), Ok(choice(first, second)), "{body}");
        }
    }
}

#[test]
fn what_is_unknown_is_minus_one() {
    for body in [
        "(call $choice (call $value (i32.const 0) (i32.const 1)) (i32.const -1))",
        "(call $choice (call $value (i32.const 3) (i32.const 0)) (i32.const -1))",
        "(call $choice (call $value (i32.const -1) (i32.const 0)) (i32.const -1))",
        "(call $choice (call $value (i32.const 0) (i32.const 3)) (i32.const -1))",
        "(call $choice (call $value (i32.const 0) (i32.const -2)) (i32.const -1))",
        // No name is taken any more.
        "(call $choice (call $measure (i32.const 500) (i32.const 9)) (i32.const -1))",
    ] {
        assert_eq!(picked(&LIVE, body), Ok(None), "{body}");
    }
    let queue = "(call $choice (call $value (i32.const 2) (i32.const 2)) (i32.const -1))";
    let mut policy = shown(&LIVE, queue);
    assert_eq!(policy.pick(&asked(NOW), None), Ok(choice(2, None)));
    assert_eq!(
        policy.pick(&asked(Duration::from_secs(2)), None),
        Ok(None),
        "by the time of the call"
    );
    // These servers know no reports at all.
    let mut policy = LIVE.policy(&guest(queue));
    assert_eq!(pick(&mut *policy), Ok(None));
}

/// A policy that is shown no table reads the servers that it is to follow, also after it was cut.
#[test]
fn a_policy_without_a_table_follows_its_servers() {
    let standing = "(if (i32.eq (local.get $queued) (i32.const 99)) (then (unreachable)))
        (call $preference (i32.const 1) (call $value (local.get $server) (i32.const 0)) (i32.const 0) (i32.const -1))";
    let mut policy = LIVE.policy_unshown(&Guest {
        standing,
        ..guest("(unreachable)")
    });
    let class = |policy: &mut Box<dyn Policy>, queued| {
        let waits = Waits {
            server: Some(ServerIndex(1)),
            queued,
            priority: Priority::default(),
        };
        let standing: Option<Standing> = policy.classify(&asked(NOW), &waits)?;
        Ok(standing.and_then(|standing| Some(standing.priority?.class)))
    };
    assert_eq!(class(&mut policy, 0), Ok(Some(-1)), "it follows nobody yet");
    policy.follow(&measured());
    assert_eq!(class(&mut policy, 0), Ok(Some(1)));
    assert_eq!(class(&mut policy, 99), Err(Fault::Trap));
    assert_eq!(
        class(&mut policy, 0),
        Ok(Some(1)),
        "a new instance follows them, too"
    );
}

/// A planner reads the measures of the servers that it was given.
#[test]
fn a_plan_reads_measures() {
    let planning =
        "(if (i32.ne (call $value (i32.const 0) (i32.const 0)) (i32.const 2)) (then (unreachable)))
        (i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
    let attachment = LIVE
        .attach(&Guest {
            planning,
            ..guest("(unreachable)")
        })
        .unwrap_or_else(|error| panic!("{error}"));
    let mut planner = attachment.planner(NOW).expect("an instance");
    let live: Arc<dyn Live> = Arc::new(Measured);
    let servers = [server("a"), server("b"), server("c")];
    let mut plan = |live| {
        planner.plan(&PlanView {
            now: NOW,
            servers: &servers,
            live,
        })
    };
    assert_eq!(plan(None), Err(Fault::Trap));
    assert_eq!(plan(Some(&live)), Ok(None));
}

fn server(name: &str) -> PlanServer<'_> {
    PlanServer {
        name,
        tags: &[],
        weight: 16,
        state: State::Ready,
        limit: None,
        in_flight: 0,
        queued: 0,
        used: 0,
        idle: 0,
        need: 0,
        opened: 0,
        latency: None,
        completed: 0,
        failed: 0,
    }
}

#[test]
fn names_are_settled_in_configure() {
    let attachment = LIVE
        .attach(&guest(SILENT_PLAN))
        .unwrap_or_else(|error| panic!("{error}"));
    let expected = [
        Measure::SafeIdle,
        Measure::Window(Windowed::Tail),
        Measure::Report("named_metrics.q".into()),
    ];
    assert_eq!(*attachment.offers().measures, expected);
    let many = "(local $left i32) (local.set $left (i32.const 17))
        (loop $again
          (drop (call $measure (i32.const 500) (i32.const 9)))
          (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (i32.const 16)";
    let unknown = "(drop (call $measure (i32.const 500) (i32.const 8))) (i32.const 16)";
    // The second instance, which is made to see whether it works, asks for something else.
    let changing = "(drop (call $measure (i32.const 500) (i32.const 9)))
        (if (i64.eqz (call $now)) (then) (else (drop (call $measure (i32.const 520) (i32.const 11)))))
        (i32.const 16)";
    for (configure, at, text) in [
        (many, NOW, "it asks for more than 16 measures"),
        (
            unknown,
            NOW,
            "it asks for the measure `safe-idl`, which does not exist; wit/measures.wit lists them",
        ),
        (
            changing,
            Duration::from_secs(1),
            "configure answered otherwise than the first time",
        ),
        (WISHES, NOW, ""),
    ] {
        let component = Guest {
            configure,
            ..guest("(unreachable)")
        }
        .component();
        let refused = LIVE
            .load_bytes(&component)
            .and_then(|loaded| loaded.attach(&crate::kit::setup(), crate::kit::limits(), at))
            .err()
            .map_or_else(String::new, |error| error.to_string());
        assert!(
            refused.contains(text) && refused.is_empty() == text.is_empty(),
            "{refused}"
        );
    }
}
