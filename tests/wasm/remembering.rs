//! Remembered answers: equal to fresh ones for any guest that answers the same to the same, and gone when they must be.

use crate::kit::{LIVE, limits, setup};
use forebay::policy::{Asked, Edits, Given, Message, Policy, RouteAsked, Routed, Target};
use forebay::wasm::{Text, pack};
use proptest::prelude::*;
use std::time::Duration;

/// How long the guest allows its answers to be given again, in ms.
const REMEMBER: u64 = 50;

/// Which attributes it reads depends on what it has read: on the third, then on the fourth or the fifth. Where the third
/// has three bytes, it draws. Its edit carries the path.
fn guest(remember: u64) -> Box<dyn Policy> {
    let text = format!(
        r#"(module
          (import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))
          (import "forebay:policy/request@0.1.0" "hash" (func $hash (param i32) (result i32)))
          (import "forebay:policy/request@0.1.0" "draw" (func $draw (param i32) (result i32)))
          (import "forebay:policy/edits@0.1.0" "set" (func $set (param i32 i32 i32 i32)))
          (memory (export "memory") 4)
          (global $free (mut i32) (i32.const 8192))
          (data (i32.const 16) "\00\00\00\00\40\00\00\00\05\00\00\00\80\00\00\00\01\00\00\00")
          (data (i32.const 64) "\c0\00\00\00\08\00\00\00\c8\00\00\00\08\00\00\00\d0\00\00\00\08\00\00\00")
          (data (i32.const 88) "\d8\00\00\00\08\00\00\00\e0\00\00\00\08\00\00\00")
          (data (i32.const 128) "\f0\00\00\00\03\00\00\00")
          (data (i32.const 192) "header:aheader:bheader:cheader:dheader:e")
          (data (i32.const 240) "x-p")
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
            (global.set $free (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
          (func (export "forebay:policy/configure@0.1.0#configure") {twelve} (result i32)
            (global.set $free (i32.const 8192)) (i32.const 16))
          (func (export "forebay:policy/route@0.1.0#route")
            (param $method i32) (param $host i32) (param $host_size i32) (param $path i32) (param $path_size i32)
            (param $has_first i32) (param $first i32) (param $first_size i32)
            (param $has_second i32) (param $second i32) (param $second_size i32) (result i32)
            (local $third i32) (local $found i32)
            (local.set $third (call $length (i32.const 2)))
            (local.set $found (call $hash (select (i32.const 3) (i32.const 4)
              (i32.and (local.get $third) (i32.const 1)))))
            (if (i32.eq (local.get $third) (i32.const 3))
              (then (local.set $found (call $draw (i32.const 1000)))))
            (local.set $found (i32.add (local.get $found) (i32.add (local.get $method)
              (i32.add (local.get $first_size) (i32.mul (i32.const 2) (local.get $second_size))))))
            (if (i32.and (local.get $found) (i32.const 2))
              (then (call $set (i32.const 0) (i32.const 0) (local.get $path) (local.get $path_size))))
            (i32.store (i32.const 48) (select (i32.const 0) (i32.const -1)
              (i32.and (local.get $found) (i32.const 4))))
            (i32.store (i32.const 52) (i32.and (local.get $found) (i32.const 1)))
            (i32.store (i32.const 56) (i32.const {remember}))
            (global.set $free (i32.const 8192))
            (i32.const 48)))"#,
        twelve = "(param i32) ".repeat(12),
    );
    let module = wat::parse_str(text).expect("correct text");
    let component = pack(&module, Some(("router", Text::Utf8))).expect("a router");
    let attachment = LIVE
        .load_bytes(&component)
        .and_then(|loaded| loaded.attach(&setup(), limits(), Duration::ZERO));
    let attachment = attachment.unwrap_or_else(|error| panic!("{error}"));
    attachment.policy(Duration::ZERO).expect("an instance")
}

#[derive(Clone, Debug)]
struct Question {
    method: &'static [u8],
    path: &'static [u8],
    attributes: [Option<&'static [u8]>; 5],
    /// Since the question before, in ms.
    after: u64,
    seed: u64,
}

impl Question {
    /// Who answers, whether from memory, and the edits.
    fn ask(&self, policy: &mut dyn Policy, now: u64) -> (Option<Target>, Given, Vec<(Message, String)>) {
        let asked = RouteAsked {
            asked: Asked {
                now: Duration::from_millis(now),
                seed: self.seed,
                attributes: &self.attributes,
            },
            method: self.method,
            host: b"app.test",
            path: self.path,
        };
        let mut edits = Edits::default();
        let Routed { target, given, .. } = policy.route(&asked, &mut edits).expect("an answer");
        let edits = edits.iter().map(|(edit, value)| (edit.message, value.to_owned()));
        (target, given, edits.collect())
    }
}

fn question() -> impl Strategy<Value = Question> {
    let value = || {
        prop_oneof![
            Just(None),
            prop::sample::select(vec![Some(&b""[..]), Some(b"x"), Some(b"xy"), Some(b"xyz")])
        ]
    };
    let method = prop::sample::select(vec![&b"GET"[..], b"POST"]);
    let path = prop::sample::select(vec![&b"/"[..], b"/x"]);
    (
        method,
        path,
        [value(), value(), value(), value(), value()],
        0..20_u64,
        any::<u64>(),
    )
        .prop_map(|(method, path, attributes, after, seed)| Question {
            method,
            path,
            attributes,
            after,
            seed,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked in whatever order: who remembers answers as who does not.
    #[test]
    fn a_remembered_answer_equals_a_fresh_one(questions in prop::collection::vec(question(), 1..200)) {
        let (mut remembering, mut asking) = (guest(REMEMBER), guest(0));
        let mut now = 0;
        for question in &questions {
            now += question.after;
            let (target, _, edits) = question.ask(&mut *remembering, now);
            let (fresh, given, fresh_edits) = question.ask(&mut *asking, now);
            prop_assert_eq!((target, edits), (fresh, fresh_edits), "{:?}", question);
            prop_assert_eq!(given, Given::Asked);
        }
    }
}

#[test]
fn it_is_given_again_until_its_time_is_over_and_not_by_another_instance() {
    let question = Question {
        method: b"GET",
        path: b"/",
        attributes: [Some(b"mary"), None, Some(b"x"), Some(b"d"), Some(b"e")],
        after: 0,
        seed: 1,
    };
    let mut policy = guest(REMEMBER);
    let given = |question: &Question, policy: &mut dyn Policy, now| question.ask(policy, now).1;
    assert_eq!(given(&question, &mut *policy, 0), Given::Asked);
    assert_eq!(given(&question, &mut *policy, REMEMBER - 1), Given::Remembered);
    assert_eq!(given(&question, &mut *policy, REMEMBER), Given::Asked);
    // The fifth was not read: it makes no difference. The fourth was.
    let [mut fifth, mut fourth] = [question.clone(), question.clone()];
    fifth.attributes[4] = None;
    fourth.attributes[3] = None;
    assert_eq!(given(&fifth, &mut *policy, REMEMBER), Given::Remembered);
    assert_eq!(given(&fourth, &mut *policy, REMEMBER), Given::Asked);
    // Drawn: never again.
    let drawn = Question {
        attributes: [None, None, Some(b"xyz"), None, None],
        ..question.clone()
    };
    assert_eq!(given(&drawn, &mut *policy, REMEMBER), Given::Asked);
    assert_eq!(given(&drawn, &mut *policy, REMEMBER), Given::Asked);
    assert_eq!(given(&question, &mut *guest(REMEMBER), REMEMBER), Given::Asked);
}
