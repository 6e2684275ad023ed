//! Each way in which a guest can go wrong at run time: the reason, and that the next request meets a guest that works.

use crate::guests::{ARENA, Guest, PICK_FIRST};
use crate::kit::{Bench, LIVE, choice, pick, route_asked, three};
use forebay::policy::{Edits, Fault, Plan, PlanServer, PlanView, State};
use forebay::wasm::{Limits, Mode};
use std::time::{Duration, Instant};

const LOOP: &str = "(loop $again (br $again)) (unreachable)";

fn picks_badly(how: &'static str) -> Guest {
    Guest::picker(how)
}

fn fault(guest: &Guest) -> Fault {
    let mut policy = LIVE.policy(guest);
    let fault = pick(&mut *policy).expect_err("a fault");
    // The instance that went wrong has no part in what follows: the next one does the same.
    assert_eq!(pick(&mut *policy), Err(fault));
    fault
}

#[test]
fn a_guest_that_stops_itself() {
    assert_eq!(fault(&picks_badly("(unreachable)")), Fault::Trap);
    assert_eq!(
        fault(&picks_badly("(i32.div_u (i32.const 1) (i32.const 0))")),
        Fault::Trap
    );
    assert_eq!(fault(&picks_badly("(i32.load (i32.const -4))")), Fault::Trap);
}

#[test]
fn a_loop_is_cut_after_its_deadline_and_not_before() {
    let mut policy = LIVE.policy(&picks_badly(LOOP));
    let begun = Instant::now();
    assert_eq!(pick(&mut *policy), Err(Fault::Deadline));
    let took = begun.elapsed();
    println!("cut after {took:?}");
    assert!(took >= Duration::from_millis(10), "{took:?}");
    // That it is cut at all: how soon is for `tests/bench/policy_faults` to say, on a machine that does nothing else.
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[test]
fn a_stack_that_overflows() {
    for _ in 0..3 {
        assert_eq!(fault(&picks_badly("(call $deep (i32.const 0))")), Fault::Stack);
    }
}

#[test]
fn a_memory_bomb() {
    let bomb =
        "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)";
    assert_eq!(fault(&picks_badly(bomb)), Fault::Memory);
    let polite = "(drop (memory.grow (i32.const 10000))) (call $choice (i32.const 0) (i32.const -1))";
    assert_eq!(pick(&mut *LIVE.policy(&picks_badly(polite))), Ok(choice(0, None)));
}

#[test]
fn a_flood_of_host_calls() {
    let flood = "(loop $more (drop (call $draw (i32.const 9))) (br $more)) (unreachable)";
    assert_eq!(fault(&picks_badly(flood)), Fault::HostCalls);
    let columns =
        "(loop $more (call $column (i32.const 0) (i32.const 300)) (global.set $free (i32.const 8192))
        (br $more)) (unreachable)";
    // A thousand columns take a while in a build for debugging.
    let limits = Limits {
        deadline: Duration::from_secs(2),
        ..Limits::default()
    };
    let attachment = LIVE
        .attach_within(&picks_badly(columns), limits)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    policy.table(&three(), Duration::ZERO).expect("a table");
    assert_eq!(pick(&mut *policy), Err(Fault::HostCalls));
}

#[test]
fn too_much_handed_over() {
    let long = "(call $log (i32.const 0) (i32.const 0) (i32.const 200000)) (unreachable)";
    assert_eq!(fault(&picks_badly(long)), Fault::HostBytes);
}

#[test]
fn text_that_is_none() {
    let latin = "(call $log (i32.const 0) (i32.const 256) (i32.const 2)) (unreachable)";
    assert_eq!(fault(&picks_badly(latin)), Fault::Utf8);
}

#[test]
fn pointers_outside_memory() {
    let outside = "(call $log (i32.const 0) (i32.const -8) (i32.const 4)) (unreachable)";
    assert_eq!(fault(&picks_badly(outside)), Fault::Pointer);
    assert_eq!(
        fault(&picks_badly("(i32.const -4)")),
        Fault::Pointer,
        "an answer outside memory"
    );
    assert_eq!(
        fault(&picks_badly("(i32.const 49)")),
        Fault::Pointer,
        "an answer between two words"
    );
}

/// The allocator behaves until `$seen` is set, so that the guest can be configured.
#[test]
fn an_allocator_that_misbehaves() {
    let cases = [
        ("(i32.const 0x7ffffff0)", Fault::Pointer),
        ("(i32.const -1)", Fault::Pointer),
        ("(unreachable)", Fault::Trap),
        ("(loop $again (br $again)) (unreachable)", Fault::Deadline),
    ];
    for (bad, expected) in cases {
        let realloc = format!("(if (global.get $seen) (then (return {bad}))) {ARENA}");
        let realloc: &'static str = realloc.leak();
        // A table is the last thing that the allocator does well.
        let guest = Guest {
            realloc: arena_with(realloc),
            table: "(global.set $seen (i32.const 1))",
            ..Guest::picker(PICK_FIRST)
        };
        assert_eq!(fault(&guest), expected, "{bad}");
    }
}

/// Locals stand first in a body.
fn arena_with(body: &'static str) -> &'static str {
    let text = format!("(local $at i32) {}", body.replace("(local $at i32)", ""));
    text.leak()
}

/// The report of a trap names the functions of the guest, and who wrote the guest has named them.
#[test]
fn a_name_that_would_command_a_terminal() {
    let bench = Bench::new(Mode::Test);
    let name = r#"$"\1b[2J\0aforged""#;
    let guest = Guest {
        before: format!("(func {name} (unreachable))").leak(),
        ..Guest::picker(format!("(call {name}) (unreachable)").leak())
    };
    assert_eq!(pick(&mut *bench.policy(&guest)), Err(Fault::Trap));
    assert!(bench.notes.any("?[2J forged"), "{:?}", bench.notes.0.lock());
    let clean = |line: &String| !line.contains(char::is_control);
    assert!(bench.notes.0.lock().iter().all(clean));
}

#[test]
fn servers_that_do_not_exist() {
    assert_eq!(
        fault(&picks_badly("(call $choice (i32.const 3) (i32.const -1))")),
        Fault::UnknownServer
    );
    assert_eq!(
        fault(&picks_badly("(call $choice (i32.const 0) (i32.const 99))")),
        Fault::UnknownServer
    );
    assert_eq!(
        fault(&picks_badly("(call $choice (i32.const -2) (i32.const 0))")),
        Fault::Range
    );
}

#[test]
fn attributes_that_were_not_declared() {
    let other = "(drop (call $length (i32.const 2))) (call $choice (i32.const 0) (i32.const 1))";
    assert_eq!(fault(&picks_badly(other)), Fault::Undeclared);
    let negative = "(drop (call $hash (i32.const -1))) (call $choice (i32.const 0) (i32.const 1))";
    assert_eq!(fault(&picks_badly(negative)), Fault::Undeclared);
}

#[test]
fn a_table_that_is_not_survived() {
    let guest = Guest {
        table: "(unreachable)",
        ..Guest::picker(PICK_FIRST)
    };
    let attachment = LIVE.attach(&guest).unwrap_or_else(|error| panic!("{error}"));
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    assert_eq!(policy.table(&three(), Duration::ZERO), Err(Fault::Trap));
    assert_eq!(pick(&mut *policy), Err(Fault::Trap));
}

#[test]
fn bad_edits_never_leave_the_host() {
    let decide = "(call $decision (i32.const 0) (i32.const 1) (i32.const 0))";
    let cases = [
        (
            "(call $set (i32.const 0) (i32.const 0) (i32.const 224) (i32.const 13))",
            Fault::Edit,
        ),
        (
            "(call $set (i32.const 0) (i32.const 1) (i32.const 224) (i32.const 2))",
            Fault::Undeclared,
        ),
        (
            "(call $set (i32.const 0) (i32.const -1) (i32.const 224) (i32.const 2))",
            Fault::Undeclared,
        ),
        (
            "(call $set (i32.const 0) (i32.const 0) (i32.const 4096) (i32.const 9000))",
            Fault::Edit,
        ),
        (
            "(call $set (i32.const 0) (i32.const 0) (i32.const 256) (i32.const 2))",
            Fault::Utf8,
        ),
        (
            "(call $set (i32.const 7) (i32.const 0) (i32.const 224) (i32.const 2))",
            Fault::Pointer,
        ),
    ];
    for (edit, expected) in cases {
        let body =
            format!("(call $set (i32.const 0) (i32.const 0) (i32.const 224) (i32.const 2)) {edit} {decide}");
        let mut policy = LIVE.policy_unshown(&Guest::router(body.leak()));
        let mut edits = Edits::default();
        assert_eq!(policy.route(&route_asked(), &mut edits), Err(expected), "{edit}");
        assert!(edits.is_empty(), "{edit}");
    }
}

#[test]
fn targets_that_do_not_exist() {
    for body in [
        "(call $decision (i32.const 0) (i32.const 2) (i32.const 0))",
        "(call $decision (i32.const 2) (i32.const 0) (i32.const 0))",
        "(call $decision (i32.const 9) (i32.const 0) (i32.const 0))",
    ] {
        let mut policy = LIVE.policy_unshown(&Guest::router(body));
        assert_eq!(
            policy.route(&route_asked(), &mut Edits::default()),
            Err(Fault::UnknownTarget),
            "{body}"
        );
    }
}

#[test]
fn plans_that_cannot_be_executed() {
    // An answer with a million tiers that all lie at the same place would be gigabytes.
    let huge = "(i32.store8 (i32.const 400) (i32.const 1)) (i32.store (i32.const 404) (i32.const 0))
        (i32.store (i32.const 408) (i32.const 20000)) (i32.const 400)";
    let empty = "(i32.store8 (i32.const 400) (i32.const 1)) (i32.store (i32.const 404) (i32.const 0))
        (i32.store (i32.const 408) (i32.const 0)) (i32.store (i32.const 412) (i32.const -1)) (i32.const 400)";
    let none = "(i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
    let server = |name| PlanServer {
        name,
        tags: &[("zone", "eu")],
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
    };
    let servers = [server("a"), server("b")];
    let view = PlanView {
        now: Duration::ZERO,
        servers: &servers,
        live: None,
    };
    // No tier at all is an answer: it withdraws the plan before.
    let withdrawn = Plan {
        tiers: Vec::new(),
        lifetime: None,
    };
    for (body, expected) in [(huge, Err(())), (empty, Ok(Some(withdrawn))), (none, Ok(None))] {
        let attachment = LIVE
            .attach(&Guest::planner(body))
            .unwrap_or_else(|error| panic!("{error}"));
        let mut planner = attachment.planner(Duration::ZERO).expect("an instance");
        assert_eq!(planner.plan(&view).map_err(|_| ()), expected);
    }
}
