//! What becomes of a policy that goes wrong often, under a clock of the test.

use crate::guests::{Guest, PICK_FIRST};
use crate::kit::{Bench, asked, choice, three};
use forebay::policy::{Fault, Policy};
use forebay::wasm::{Limits, Mode};
use std::time::Duration;

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn pick(policy: &mut dyn Policy, now: Duration) -> Result<Option<forebay::policy::Pick>, Fault> {
    policy.pick(&asked(now), None)
}

#[test]
fn the_third_cut_ends_it_for_all_workers_and_time_brings_it_back() {
    let bench = Bench::new(Mode::Live);
    // Loops for the first two seconds of the clock.
    let sick = "(if (i64.lt_s (call $now) (i64.const 2000)) (then (loop $again (br $again))))
        (call $choice (i32.const 0) (i32.const 1))";
    let attachment = bench
        .attach(&Guest::picker(sick))
        .unwrap_or_else(|error| panic!("{error}"));
    let mut workers: Vec<_> = (0..2)
        .map(|_| attachment.policy(at(0)).expect("an instance"))
        .collect();
    for worker in &mut workers {
        worker.table(&three(), at(0)).expect("a table");
    }
    assert_eq!(pick(&mut *workers[0], at(100)), Err(Fault::Deadline));
    assert_eq!(pick(&mut *workers[1], at(200)), Err(Fault::Deadline));
    assert!(workers[0].ready(at(250)));
    assert_eq!(pick(&mut *workers[0], at(300)), Err(Fault::Deadline));
    for worker in &mut workers {
        assert!(!worker.ready(at(400)));
        assert_eq!(pick(&mut **worker, at(400)), Err(Fault::Quarantined));
    }
    assert!(bench.notes.any("shard@app paused deadline 1s"));
    // On probation, one cut is enough, and the pause is longer.
    assert_eq!(pick(&mut *workers[1], at(1300)), Err(Fault::Deadline));
    assert!(bench.notes.any("shard@app resumed") && bench.notes.any("paused deadline 2s"));
    assert_eq!(pick(&mut *workers[0], at(3200)), Err(Fault::Quarantined));
    for worker in &mut workers {
        assert_eq!(pick(&mut **worker, at(3300)), Ok(choice(0, Some(1))));
    }
}

/// Whoever waited while the guest was cut does not wait for another cut.
#[test]
fn after_a_cut_by_the_clock_the_worker_does_not_ask_for_a_while() {
    let bench = Bench::new(Mode::Live);
    let mut policy = bench.policy(&Guest::picker("(loop $again (br $again)) (unreachable)"));
    assert_eq!(pick(&mut *policy, at(1000)), Err(Fault::Deadline));
    // Until the deadline and 100 ms have passed since the call began.
    assert!(!policy.ready(at(1010)) && !policy.ready(at(1109)) && policy.ready(at(1110)));
    let mut traps = bench.policy(&Guest::picker("(unreachable)"));
    assert_eq!(pick(&mut *traps, at(1000)), Err(Fault::Trap));
    assert!(traps.ready(at(1000)), "a trap has cost nobody time");
}

#[test]
fn one_trap_among_a_hundred_costs_one_answer() {
    let bench = Bench::new(Mode::Test);
    // Each hundredth call of an instance traps.
    let mortal = "(global.set $seen (i32.add (global.get $seen) (i32.const 1)))
        (if (i32.eq (global.get $seen) (i32.const 100)) (then (unreachable)))
        (call $choice (i32.const 0) (i32.const 1))";
    let mut policy = bench.policy(&Guest::picker(mortal));
    let (mut good, mut traps) = (0, 0);
    for request in 0..10_000 {
        match pick(&mut *policy, Duration::from_micros(request * 1000)) {
            Ok(_) => good += 1,
            Err(Fault::Trap) => traps += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!((good, traps), (9_900, 100));
}

#[test]
fn bad_answers_are_refused_and_then_not_asked_for() {
    let bench = Bench::new(Mode::Test);
    let mut policy = bench.policy(&Guest::picker("(call $choice (i32.const 9) (i32.const 9))"));
    let refused = (0..1000)
        .filter(|_| pick(&mut *policy, at(1)) == Err(Fault::UnknownServer))
        .count();
    assert_eq!(refused, 20);
    assert!(bench.notes.any("fault unknown-server server 9 of 3"));
}

#[test]
fn remaking_instances_has_a_budget() {
    let bench = Bench::new(Mode::Test);
    // Good for forty calls, so that its end is an accident and no strike.
    let mortal = "(global.set $seen (i32.add (global.get $seen) (i32.const 1)))
        (if (i32.gt_s (global.get $seen) (i32.const 40)) (then (unreachable)))
        (call $choice (i32.const 0) (i32.const 1))";
    let mut policy = bench.policy(&Guest::picker(mortal));
    let mut answers = (0..3000).map(|_| pick(&mut *policy, at(1)));
    assert!(answers.any(|answer| answer == Err(Fault::Budget)));
    assert_eq!(pick(&mut *policy, at(2000)), Ok(choice(0, Some(1))));
}

#[test]
fn slowness_on_average_is_found() {
    let bench = Bench::new(Mode::Live);
    let slow = "(local.set $left (i32.const 20000))
        (loop $more (br_if $more (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (call $choice (i32.const 0) (i32.const 1))";
    let guest = Guest {
        locals: "(local $left i32)",
        ..Guest::picker(slow)
    };
    let limits = Limits {
        mean_max: Some(Duration::from_micros(1)),
        ..Limits::default()
    };
    let attachment = bench
        .attach_within(&guest, limits)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut policy = attachment.policy(at(0)).expect("an instance");
    policy.table(&three(), at(0)).expect("a table");
    let calls = (0..10_000)
        .take_while(|_| pick(&mut *policy, at(1)).is_ok())
        .count();
    assert!((64 * 15..64 * 40).contains(&calls), "{calls}");
    assert!(bench.notes.any("paused slow"));
    assert_eq!(pick(&mut *policy, at(2)), Err(Fault::Quarantined));
}

#[test]
fn a_healthy_policy_is_left_alone() {
    let bench = Bench::new(Mode::Live);
    let mut policy = bench.policy(&Guest::picker(PICK_FIRST));
    for request in 0..20_000 {
        assert_eq!(pick(&mut *policy, at(request)), Ok(choice(0, Some(1))));
    }
    assert!(bench.notes.0.lock().is_empty());
}
