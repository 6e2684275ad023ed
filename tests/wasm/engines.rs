//! What runs in a test is what runs in production: both engines give the same answers.

use crate::guests::Guest;
use crate::kit::{Bench, three};
use forebay::policy::{Asked, Fault, Pick, ServerIndex};
use forebay::wasm::{Limits, Mode};
use std::time::Duration;

/// Mixes all that a guest may read with float arithmetic, and shows NaN bits.
const MIXED: &str = "
    (local.set $x (f64.convert_i32_s (call $draw (i32.const 1000))))
    (local.set $x (f64.sqrt (f64.sub (local.get $x) (f64.const 500))))
    (local.set $bits (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 (local.get $x)) (i64.const 40))))
    (call $choice
      (i32.rem_u (i32.add (i32.add (local.get $bits) (call $hash (i32.const 0))) (call $in_flight (i32.const 1)))
                 (i32.const 3))
      (i32.sub (call $draw (i32.const 4)) (i32.const 1)))";

fn answers(mode: Mode) -> Vec<Result<Option<Pick>, Fault>> {
    let bench = Bench::new(mode);
    let guest = Guest {
        locals: "(local $x f64) (local $bits i32)",
        ..Guest::picker(MIXED)
    };
    let mut policy = bench.policy(&guest);
    policy.table(&three(), Duration::ZERO).expect("a table");
    let one = |seed: u64| {
        let user = seed.to_string();
        let attributes = [Some(user.as_bytes()), None];
        let asked = Asked {
            now: Duration::from_millis(seed),
            seed,
            attributes: &attributes,
        };
        policy.pick(&asked, seed.is_multiple_of(2).then_some(ServerIndex(1)))
    };
    (0..500).map(one).collect()
}

#[test]
fn both_engines_give_equal_answers() {
    let live = answers(Mode::Live);
    assert_eq!(live, answers(Mode::Test));
    assert!(live.iter().any(|answer| *answer != live[0]));
}

#[test]
fn work_is_bounded_by_fuel_in_a_test() {
    let bench = Bench::new(Mode::Test);
    let limits = Limits {
        fuel_max: 100_000,
        ..Limits::default()
    };
    let guest = Guest::picker("(loop $again (br $again)) (unreachable)");
    let attachment = bench
        .attach_within(&guest, limits)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    policy.table(&three(), Duration::ZERO).expect("a table");
    assert_eq!(crate::kit::pick(&mut *policy), Err(Fault::Fuel));
}
