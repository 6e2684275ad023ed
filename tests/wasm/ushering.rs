//! Policies that are asked about requests that are about to wait: what they are told, what is refused, and what a fault
//! leaves.

use crate::guests::{Guest, PICK_FIRST, World};
use crate::kit::{Bench, LIVE, asked, choice, pick, three};
use forebay::policy::{Asked, Fault, Priority, Rejection, ServerIndex, Standing, Verdict, Waits};
use forebay::wasm::Mode;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;
/// For the second server, behind nine others.
const WAITS: Waits = Waits {
    server: Some(ServerIndex(1)),
    queued: 9,
    priority: Priority {
        class: -3,
        offset: 250_999,
    },
};
/// For whichever is free first, behind more than crosses.
const ANYWHERE: Waits = Waits {
    server: None,
    queued: u32::MAX,
    priority: Priority { class: 0, offset: 0 },
};

/// What a guest with that body says about a request of user `mary` for `/a`.
fn classified(bench: &Bench, body: &'static str, waits: &Waits) -> Result<Option<Standing>, Fault> {
    bench
        .policy_unshown(&Guest::classifier(body))
        .classify(&asked(NOW), waits)
}

fn admitted(bench: &Bench, body: &'static str, waits: &Waits) -> Result<Option<Verdict>, Fault> {
    bench
        .policy_unshown(&Guest::admitter(body))
        .admit(&asked(NOW), waits)
}

/// The offset is in ms.
fn stands(class: i16, offset: i64, wait_max: Option<u64>) -> Result<Option<Standing>, Fault> {
    Ok(Some(Standing {
        priority: Some(Priority {
            class,
            offset: offset * 1000,
        }),
        wait_max: wait_max.map(Duration::from_millis),
    }))
}

fn accepted(wait_max: Option<u64>) -> Result<Option<Verdict>, Fault> {
    Ok(Some(Verdict::Accept {
        wait_max: wait_max.map(Duration::from_millis),
    }))
}

/// it is given two attributes, where and behind how many the request would wait, and what its route says.
#[test]
fn a_standing_follows_from_what_is_told() {
    let told = "(call $preference (i32.const 1) (local.get $class) (local.get $offset) (local.get $queued))";
    let place = "(call $preference (i32.const 1) (local.get $server) (i32.const 0) (i32.const -1))";
    let sizes = "(call $preference (i32.const 1)
        (i32.add (i32.mul (i32.const 100) (local.get $first_size)) (local.get $second_size))
        (call $length (i32.const 0)) (i32.const -1))";
    let absent = "(call $preference (i32.const 1)
        (i32.add (i32.mul (i32.const 10) (local.get $has_first)) (local.get $has_second))
        (i32.const 0) (i32.const -1))";
    for bench in [&*LIVE, &Bench::new(Mode::Test)] {
        assert_eq!(classified(bench, told, &WAITS), stands(-3, 250, Some(9)));
        assert_eq!(
            classified(bench, told, &ANYWHERE),
            stands(0, 0, Some(i32::MAX as u64))
        );
        assert_eq!(classified(bench, place, &WAITS), stands(1, 0, None));
        assert_eq!(classified(bench, place, &ANYWHERE), stands(-1, 0, None));
        assert_eq!(classified(bench, sizes, &WAITS), stands(402, 4, None), "mary, /a");
        let nobody = Asked {
            attributes: &[None, Some(b"/a")],
            ..asked(NOW)
        };
        let mut policy = bench.policy_unshown(&Guest::classifier(absent));
        assert_eq!(policy.classify(&nobody, &WAITS), stands(1, 0, None));
    }
}

/// It is told the same, but for the offset.
#[test]
fn a_verdict_follows_from_what_is_told() {
    let mixed = "(call $preference (i32.const 0) (i32.const -1) (i32.const -1)
        (i32.add (i32.add (i32.mul (local.get $queued) (i32.const 10000))
                          (i32.mul (local.get $server) (i32.const 1000)))
                 (i32.add (i32.mul (local.get $first_size) (i32.const 100))
                          (i32.add (local.get $second_size) (local.get $class)))))";
    let reject = "(call $preference (i32.const 1) (i32.const 429) (local.get $queued) (i32.const -1))";
    for bench in [&*LIVE, &Bench::new(Mode::Test)] {
        assert_eq!(
            admitted(bench, mixed, &WAITS),
            accepted(Some(90_000 + 1_000 + 400 + 2 - 3))
        );
        let expected = Verdict::Reject {
            with: Rejection::TooManyRequests,
            retry_after: Some(Duration::from_secs(9)),
        };
        assert_eq!(admitted(bench, reject, &WAITS), Ok(Some(expected)));
    }
}

/// A bad answer is refused as a whole, and the instance lives; a cut one costs the instance.
#[test]
fn bad_standings_are_refused() {
    let silent = "(call $preference (i32.const -1) (i32.const 9999) (i32.const 0) (i32.const -1))";
    assert_eq!(classified(&LIVE, silent, &WAITS), Ok(None));
    for (body, fault) in [
        (
            "(call $preference (i32.const 1) (i32.const 2048) (i32.const 0) (i32.const -1))",
            Fault::Range,
        ),
        (
            "(call $preference (i32.const 1) (i32.const 0) (i32.const -524288) (i32.const -1))",
            Fault::Range,
        ),
        (
            "(call $preference (i32.const 1) (i32.const 0) (i32.const 0) (i32.const -2))",
            Fault::Range,
        ),
        (
            "(drop (call $length (i32.const 2))) (call $preference (i32.const 1) (i32.const 0) (i32.const 0) (i32.const -1))",
            Fault::Undeclared,
        ),
        ("(unreachable)", Fault::Trap),
        ("(i32.const -4)", Fault::Pointer),
        ("(loop $again (br $again)) (unreachable)", Fault::Deadline),
    ] {
        assert_eq!(classified(&LIVE, body, &WAITS), Err(fault), "{body}");
    }
}

#[test]
fn bad_verdicts_are_refused() {
    let silent = "(call $preference (i32.const -1) (i32.const 200) (i32.const -5) (i32.const -5))";
    assert_eq!(admitted(&LIVE, silent, &WAITS), Ok(None));
    for (body, fault) in [
        (
            "(call $preference (i32.const 2) (i32.const -1) (i32.const -1) (i32.const -1))",
            Fault::Range,
        ),
        (
            "(call $preference (i32.const 1) (i32.const 200) (i32.const -1) (i32.const -1))",
            Fault::Range,
        ),
        (
            "(call $preference (i32.const 0) (i32.const -1) (i32.const -1) (i32.const -2))",
            Fault::Range,
        ),
        ("(unreachable)", Fault::Trap),
        ("(i32.const -4)", Fault::Pointer),
    ] {
        assert_eq!(admitted(&LIVE, body, &WAITS), Err(fault), "{body}");
    }
}

/// A fault in one question costs the other nothing: the next instance answers it.
#[test]
fn a_cut_classification_leaves_the_verdict() {
    let guest = Guest {
        admission: "(call $preference (i32.const 0) (i32.const -1) (i32.const -1) (i32.const 7))",
        ..Guest::classifier("(unreachable)")
    };
    let mut policy = LIVE.policy_unshown(&guest);
    assert_eq!(policy.classify(&asked(NOW), &WAITS), Err(Fault::Trap));
    assert_eq!(policy.admit(&asked(NOW), &WAITS), accepted(Some(7)));
}

/// A policy that picks, too, is one instance: it knows the servers that it is told to wait for, and reads how they do.
#[test]
fn a_picker_knows_whom_a_request_waits_for() {
    let guest = Guest {
        world: World::Whole,
        standing: "(global.set $seen (local.get $server))
            (call $preference (i32.const 1) (call $in_flight (local.get $server)) (i32.const 0) (i32.const -1))",
        admission: "(call $preference (i32.const 0) (i32.const -1) (i32.const -1)
            (i32.add (i32.mul (i32.const 10) (global.get $count)) (global.get $seen)))",
        ..Guest::picker("(call $choice (global.get $seen) (i32.const -1))")
    };
    let mut policy = LIVE.policy(&guest);
    assert_eq!(pick(&mut *policy), Ok(choice(0, None)));
    assert_eq!(
        policy.classify(&asked(NOW), &WAITS),
        stands(6, 0, None),
        "b has six"
    );
    assert_eq!(
        policy.admit(&asked(NOW), &WAITS),
        accepted(Some(31)),
        "of three servers"
    );
    assert_eq!(pick(&mut *policy), Ok(choice(1, None)));
    // Without a table there is no such server.
    let mut unshown = LIVE.policy_unshown(&guest);
    assert_eq!(unshown.classify(&asked(NOW), &WAITS), stands(-1, 0, None));
}

/// Who does not export an interface has no opinion about it.
#[test]
fn what_is_not_exported_is_no_opinion() {
    let mut picker = LIVE.policy_unshown(&Guest::picker(PICK_FIRST));
    assert_eq!(picker.classify(&asked(NOW), &WAITS), Ok(None));
    assert_eq!(picker.admit(&asked(NOW), &WAITS), Ok(None));
    picker.table(&three(), NOW).expect("a table");
    let mut usher = LIVE.policy_unshown(&Guest::classifier("(unreachable)"));
    assert_eq!(pick(&mut *usher), Ok(None));
}
