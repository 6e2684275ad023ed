//! Policies that are asked about connections: what they are told, what is refused, and what a fault leaves.

use crate::guests::{Guest, PICK_FIRST, World};
use crate::kit::{Bench, LIVE, asked, choice, pick, three};
use forebay::policy::{
    Asked, Fault, Fresh, Nth, PlanServer, PlanView, PoolWish, Preference, ServerIndex, State, WishedSharing,
};
use forebay::wasm::Mode;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

/// What a guest with that body answers to a request of user `mary` for `/a`.
fn prefers(bench: &Bench, body: &'static str, nth: Nth) -> Result<Option<Preference>, Fault> {
    bench
        .policy_unshown(&Guest::sharer(body))
        .prefer(&asked(NOW), nth)
}

fn tagged(tag: u32) -> Result<Option<Preference>, Fault> {
    Ok(Some(Preference {
        tag: Some(tag),
        ..Preference::default()
    }))
}

/// It is given the first two attributes and whether the request is its client's first; the others it asks for.
#[test]
fn a_preference_follows_from_what_is_told() {
    let sizes = "(call $preference (i32.const -1) (i32.const 0)
        (i32.add (i32.mul (i32.const 100) (local.get $first_size)) (local.get $second_size)) (i32.const -1))";
    let absent = "(call $preference (i32.const -1) (i32.const 0)
        (i32.add (i32.mul (i32.const 10) (local.get $has_first)) (local.get $has_second)) (i32.const -1))";
    let nth = "(call $preference (i32.const -1) (i32.const 0) (local.get $first_request) (i32.const -1))";
    let whole = "(call $preference (i32.const 2) (i32.const 1) (i32.const 7) (i32.const 1))";
    let length =
        "(call $preference (i32.const -1) (i32.const 0) (call $length (i32.const 0)) (i32.const -1))";
    for bench in [&*LIVE, &Bench::new(Mode::Test)] {
        assert_eq!(prefers(bench, sizes, Nth::Later), tagged(402), "mary, /a");
        assert_eq!(prefers(bench, nth, Nth::First), tagged(1));
        assert_eq!(prefers(bench, nth, Nth::Later), tagged(0));
        assert_eq!(prefers(bench, length, Nth::Later), tagged(4));
        let expected = Preference {
            sharing: Some(WishedSharing::Aggressive),
            fresh: Fresh::Yes,
            tag: Some(7),
            tag_attribute: Some(1),
        };
        assert_eq!(prefers(bench, whole, Nth::Later), Ok(Some(expected)));
        let nobody = Asked {
            attributes: &[None, Some(b"/a")],
            ..asked(NOW)
        };
        let mut policy = bench.policy_unshown(&Guest::sharer(absent));
        assert_eq!(policy.prefer(&nobody, Nth::First), tagged(1));
    }
}

/// A bad answer is refused as a whole, and the instance lives; a cut one costs the instance.
#[test]
fn bad_preferences_are_refused() {
    let silent = "(call $preference (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1))";
    assert_eq!(prefers(&LIVE, silent, Nth::First), Ok(None));
    for (body, fault) in [
        (
            "(call $preference (i32.const 4) (i32.const 0) (i32.const 1) (i32.const 0))",
            Fault::Range,
        ),
        (
            "(call $preference (i32.const -1) (i32.const 0) (i32.const -7) (i32.const 0))",
            Fault::Range,
        ),
        (
            "(call $preference (i32.const -1) (i32.const 0) (i32.const 1) (i32.const 2))",
            Fault::Undeclared,
        ),
        (
            "(drop (call $length (i32.const 2))) (call $preference (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))",
            Fault::Undeclared,
        ),
        ("(unreachable)", Fault::Trap),
        ("(i32.const -4)", Fault::Pointer),
        ("(loop $again (br $again)) (unreachable)", Fault::Deadline),
    ] {
        assert_eq!(prefers(&LIVE, body, Nth::First), Err(fault), "{body}");
    }
}

/// What one call leaves in the memory of a policy that picks and prefers, the other finds.
#[test]
fn one_policy_that_does_both_is_one_instance() {
    let guest = Guest {
        world: World::Whole,
        sharing: "(global.set $seen (i32.const 2))
            (call $preference (i32.const -1) (i32.const -1) (i32.const 1) (i32.const -1))",
        ..Guest::picker("(call $choice (global.get $seen) (i32.const -1))")
    };
    let mut policy = LIVE.policy(&guest);
    assert_eq!(pick(&mut *policy), Ok(choice(0, None)));
    assert_eq!(policy.prefer(&asked(NOW), Nth::First), tagged(1));
    assert_eq!(pick(&mut *policy), Ok(choice(2, None)));
}

/// Who does not export an interface has no opinion about it.
#[test]
fn what_is_not_exported_is_no_opinion() {
    let mut policy = LIVE.policy(&Guest::picker(PICK_FIRST));
    assert_eq!(policy.prefer(&asked(NOW), Nth::First), Ok(None));
    policy.table(&three(), NOW).expect("a table");
    let mut sharer = LIVE.policy_unshown(&Guest::sharer("(unreachable)"));
    assert_eq!(pick(&mut *sharer), Ok(None));
    assert_eq!(wishes(&Guest::planner("(unreachable)")), Ok(None));
}

fn server(name: &str) -> PlanServer<'_> {
    PlanServer {
        name,
        tags: &[("zone", "eu")],
        weight: 16,
        state: State::Ready,
        limit: None,
        in_flight: 1,
        queued: 2,
        used: 3,
        idle: 4,
        need: 5,
        opened: 6,
        latency: None,
        completed: 7,
        failed: 8,
    }
}

/// What a guest wishes of two servers.
fn wishes(guest: &Guest) -> Result<Option<Vec<PoolWish>>, Fault> {
    let attachment = LIVE.attach(guest).unwrap_or_else(|error| panic!("{error}"));
    let mut planner = attachment.planner(NOW).expect("an instance");
    let servers = [server("a"), server("b")];
    planner.plan_reuse(&PlanView {
        now: NOW,
        servers: &servers,
        live: None,
    })
}

/// A server takes 52 bytes: two texts or lists of 8, nine numbers of 4, in the order of the contract.
#[test]
fn a_plan_of_connections_follows_from_the_figures() {
    let at = |offset: usize| format!("(i32.load offset={offset} (local.get $servers))");
    for (offset, expected) in [
        (16, 16),
        (20, 0),
        (24, u32::MAX),
        (28, 1),
        (32, 3),
        (36, 4),
        (40, 5),
        (44, 6),
        (48, 7),
    ] {
        let body = format!(
            "(call $figures (i32.const 1) (i32.add (i32.const 1) {}) (i32.const -1) (i32.const 9) (local.get $count))",
            at(offset)
        );
        let wished = PoolWish {
            server: ServerIndex(1),
            low: Some(expected.wrapping_add(1)),
            max: None,
            need: Some(9),
            preconnect: Some(2),
        };
        let guest = Guest::stocker(body.leak());
        assert_eq!(wishes(&guest), Ok(Some(vec![wished])), "offset {offset}");
    }
}

#[test]
fn wishes_are_judged() {
    let none = "(i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
    let empty = "(i32.store8 (i32.const 400) (i32.const 1)) (i32.store (i32.const 404) (i32.const 420))
        (i32.store (i32.const 408) (i32.const 0)) (i32.const 400)";
    let of = |server: i32, most: i32| {
        let body = format!(
            "(call $figures (i32.const {server}) (i32.const -1) (i32.const {most}) (i32.const -1) (i32.const -1))"
        );
        wishes(&Guest::stocker(body.leak()))
    };
    assert_eq!(wishes(&Guest::stocker(none)), Ok(None));
    assert_eq!(wishes(&Guest::stocker(empty)), Ok(Some(Vec::new())));
    assert_eq!(of(2, 1), Err(Fault::UnknownServer));
    assert_eq!(of(0, -2), Err(Fault::Range));
    assert_eq!(of(0, 1_000_001), Err(Fault::Range));
    assert!(of(0, 1_000_000).is_ok());
    assert_eq!(wishes(&Guest::stocker("(unreachable)")), Err(Fault::Trap));
}
