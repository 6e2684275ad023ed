//! What a guest can see and change when all goes well.

use crate::guests::{Guest, PICK};
use crate::kit::{Bench, LIVE, asked, choice, pick, route_asked, setup};
use forebay::policy::{Change, Edits, Given, Message, Routed, ServerIndex, Target};
use forebay::wasm::{Limits, Mode};
use std::time::Duration;

fn picked(body: &'static str) -> Option<forebay::policy::Pick> {
    pick(&mut *LIVE.policy(&Guest::picker(body))).expect("an answer")
}

#[test]
fn the_key_the_avoided_and_the_table() {
    // 4 bytes of `mary` and 3 servers: 4 - 3 = 1.
    let sizes = "(call $choice (i32.sub (local.get $size) (global.get $count)) (i32.const -1))";
    assert_eq!(picked(sizes), choice(1, None));
    let avoid = "(call $choice (local.get $avoid) (i32.const -1))";
    assert_eq!(picked(avoid), None);
    let mut policy = LIVE.policy(&Guest::picker(avoid));
    assert_eq!(
        policy.pick(&asked(Duration::ZERO), Some(ServerIndex(2))),
        Ok(choice(2, None))
    );
}

#[test]
fn live_figures_by_index_and_as_a_column() {
    let one = "(call $choice (i32.sub (call $in_flight (i32.const 2)) (i32.const 5)) (call $in_flight (i32.const 3)))";
    assert_eq!(picked(one), choice(2, None));
    let column = "(call $column (i32.const 0) (i32.const 300))
        (call $choice (i32.sub (i32.load offset=4 (i32.load (i32.const 300))) (i32.const 5))
                      (i32.sub (i32.load (i32.const 304)) (i32.const 1)))";
    assert_eq!(picked(column), choice(1, Some(2)));
    let clamped = "(call $column (i32.const 2) (i32.const 300))
        (call $choice (i32.eq (i32.load (i32.load (i32.const 300))) (i32.const 0x7fffffff)) (i32.const -1))";
    assert_eq!(picked(clamped), choice(1, None));
}

#[test]
fn attributes_by_index() {
    // `/a` at index 1, read as text: its length is 2.
    let text = "(call $attribute (i32.const 1) (i32.const 300))
        (call $choice (i32.load (i32.const 308)) (i32.load8_u (i32.const 300)))";
    assert_eq!(picked(text), choice(2, Some(1)));
    let absent = "(call $choice (i32.add (call $length (i32.const 1)) (i32.const 1)) (i32.const -1))";
    let mut policy = LIVE.policy(&Guest::picker(absent));
    let asked = forebay::policy::Asked {
        attributes: &[None, None],
        ..asked(Duration::ZERO)
    };
    assert_eq!(policy.pick(&asked, None), Ok(choice(0, None)));
}

#[test]
fn lines_reach_the_journal_clean_and_bounded() {
    let bench = Bench::new(Mode::Test);
    let says = "(local.set $left (i32.const 40))
        (loop $more (call $log (i32.const 1) (i32.const 224) (i32.const 13))
          (br_if $more (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (call $choice (i32.const 0) (i32.const -1))";
    let guest = Guest {
        locals: "(local $left i32)",
        ..Guest::picker(says)
    };
    assert!(pick(&mut *bench.policy(&guest)).is_ok());
    let notes = bench.notes.0.lock();
    assert_eq!(notes.len(), 16);
    assert_eq!(notes[0], "shard@app said Warn eu??x-evil: 1");
}

#[test]
fn edits_come_with_the_answer() {
    let body = "(call $set (i32.const 0) (i32.const 0) (i32.const 224) (i32.const 2))
        (call $remove (i32.const 1) (i32.const 0))
        (call $decision (i32.const 0) (i32.sub (local.get $first_size) (i32.const 3)) (i32.const 250))";
    let mut policy = LIVE.policy_unshown(&Guest::router(body));
    let mut edits = Edits::default();
    for given in [Given::Asked, Given::Remembered, Given::Remembered] {
        let routed = policy.route(&route_asked(), &mut edits).expect("an answer");
        let remember = Duration::from_millis(250);
        assert_eq!(
            routed,
            Routed {
                target: Some(Target::Backend(1)),
                remember,
                given
            }
        );
        let seen: Vec<_> = edits
            .iter()
            .map(|(edit, value)| (edit.message, edit.header, edit.change, value))
            .collect();
        assert_eq!(
            seen,
            [
                (Message::Request, 0, Change::Set, "eu"),
                (Message::Response, 0, Change::Remove, "")
            ]
        );
    }
}

/// Guests of an operating system: linked without authority, and cut when they insist.
#[test]
fn wasi_is_closed() {
    let component = |call: &str| {
        let text = format!(
            r#"(component
                 (import "wasi:clocks/monotonic-clock@0.2.3" (instance $clock
                   (export "now" (func (result u64)))))
                 (import "wasi:cli/exit@0.2.0" (instance $exit
                   (export "exit" (func (param "status" (result))))))
                 (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
                 (alias export $clock "now" (func $now))
                 (alias export $exit "exit" (func $exit))
                 (core func $now' (canon lower (func $now)))
                 (core func $exit' (canon lower (func $exit)))
                 (core module $m
                   (import "wasi" "now" (func $now (result i64)))
                   (import "wasi" "exit" (func $exit (param i32)))
                   (memory (export "m") 1)
                   (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
                   (func (export "table") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))
                   (func (export "pick") (param i32 i32 i32) (result i32) {call}
                     (i32.store (i32.const 8) (i32.const -1)) (i32.const 8)))
                 (core instance $m (instantiate $m (with "wasi" (instance
                   (export "now" (func $now')) (export "exit" (func $exit'))))))
                 {PICK})"#
        );
        wat::parse_str(text).expect("correct text")
    };
    let picked = |call: &str| {
        let loaded = LIVE
            .load_bytes(&component(call))
            .unwrap_or_else(|error| panic!("{error}"));
        let attached = loaded.attach(&setup(), Limits::default(), Duration::ZERO);
        let mut policy = attached
            .unwrap_or_else(|error| panic!("{error}"))
            .policy(Duration::ZERO)
            .expect("an instance");
        policy.pick(&asked(Duration::from_nanos(77)), None)
    };
    let clock = "(if (i64.ne (call $now) (i64.const 77)) (then (unreachable)))";
    assert_eq!(picked(clock), Ok(None));
    assert_eq!(
        picked("(call $exit (i32.const 0))"),
        Err(forebay::policy::Fault::Closed)
    );
}
