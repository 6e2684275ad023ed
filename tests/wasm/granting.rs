//! The imports that have to be granted: numbers for the operator, and bytes that outlive an instance.

use crate::guests::{COUNTERS, Guest, STORE};
use crate::kit::{LIVE, choice, limits, pick, setup, three};
use forebay::policy::{
    Attachment, Fault, Grant, Grants, Keeper, Number, NumberKind, PlanView, Policy, STORE_MAX, Tally,
};
use forebay::wasm::{Limits, LoadError};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const NOW: Duration = Duration::ZERO;

/// Keeps what policies of this test are granted.
#[derive(Default)]
struct Chest {
    tallies: Mutex<Vec<Arc<Tally>>>,
    bytes: Mutex<Option<(i32, Vec<u8>)>>,
}

impl Keeper for Chest {
    fn tally(&self, numbers: &Arc<[Number]>) -> Arc<Tally> {
        let tally = Arc::new(Tally::new(numbers.clone()));
        self.tallies.lock().push(tally.clone());
        tally
    }
    fn save(&self, version: i32, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= STORE_MAX;
        if fits {
            *self.bytes.lock() = Some((version, bytes.to_owned()));
        }
        fits
    }
    fn restore(&self, version: i32) -> Option<Vec<u8>> {
        let kept = self.bytes.lock();
        kept.as_ref()
            .filter(|(saved, _)| *saved == version)
            .map(|(_, bytes)| bytes.clone())
    }
}

impl Chest {
    /// The numbers of each instance that was made.
    fn read(&self) -> Vec<Vec<i64>> {
        let tallies = self.tallies.lock();
        let values = |tally: &Arc<Tally>| tally.read().map(|(_, value)| value).collect();
        tallies.iter().map(values).collect()
    }
}

fn attach(guest: &Guest, grants: &[Grant], chest: &Arc<Chest>) -> Result<Arc<dyn Attachment>, LoadError> {
    let limits = Limits {
        grants: grants.iter().copied().collect(),
        ..limits()
    };
    let keeper: Arc<dyn Keeper> = chest.clone();
    LIVE.load_bytes(&guest.component())?
        .attach_kept(&setup(), limits, Some(keeper), NOW)
}

fn policy(guest: &Guest, chest: &Arc<Chest>) -> Box<dyn Policy> {
    let attachment = attach(guest, &Grant::ALL, chest).unwrap_or_else(|error| panic!("{error}"));
    let mut policy = attachment.policy(NOW).expect("an instance");
    policy.table(&three(), NOW).expect("a table");
    policy
}

/// Declares the counter `hits` and the gauge `depth`.
fn counting(body: &'static str) -> Guest {
    Guest {
        before: r#"(data (i32.const 500) "hits") (data (i32.const 510) "depth")"#,
        configure: "(drop (call $counter (i32.const 500) (i32.const 4)))
            (drop (call $gauge (i32.const 510) (i32.const 5)))
            (call $add (i32.const 0) (i32.const 77))
            (i32.const 16)",
        ..Guest::whole(COUNTERS, body)
    }
}

#[test]
fn numbers_count_at_once_and_outlive_an_instance() {
    let chest = Arc::new(Chest::default());
    let body = "(call $add (i32.const 0) (i32.const 2)) (call $set_gauge (i32.const 1) (i32.const -5))
        (if (i32.eq (local.get $avoid) (i32.const 1)) (then (unreachable)))
        (call $choice (i32.const 0) (i32.const -1))";
    let mut policy = policy(&counting(body), &chest);
    assert_eq!(chest.read(), [[0, 0]], "nothing counts in configure");
    assert_eq!(pick(&mut *policy), Ok(choice(0, None)));
    assert_eq!(chest.read(), [[2, -5]]);
    let cut = policy.pick(&crate::kit::asked(NOW), Some(forebay::policy::ServerIndex(1)));
    assert_eq!(cut, Err(Fault::Trap));
    assert_eq!(chest.read(), [[4, -5]], "also in a call that is cut");
    assert_eq!(pick(&mut *policy), Ok(choice(0, None)));
    assert_eq!(chest.read(), [[6, -5]], "the next instance goes on");
}

#[test]
fn a_number_that_was_not_declared_is_refused() {
    for change in [
        "(call $add (i32.const 0) (i32.const -1))",
        "(call $add (i32.const 1) (i32.const 1))",
        "(call $add (i32.const 2) (i32.const 1))",
        "(call $add (i32.const -1) (i32.const 1))",
        "(call $set_gauge (i32.const 0) (i32.const 1))",
        "(call $set_gauge (i32.const 2147483647) (i32.const 1))",
    ] {
        let chest = Arc::new(Chest::default());
        let body: &'static str = format!("{change} (call $choice (i32.const 0) (i32.const -1))").leak();
        let mut policy = policy(&counting(body), &chest);
        assert_eq!(pick(&mut *policy), Err(Fault::Undeclared), "{change}");
        assert_eq!(chest.read(), [[0, 0]], "{change}");
    }
}

#[test]
fn numbers_have_names() {
    let chest = Arc::new(Chest::default());
    let attached = attach(&counting("(unreachable)"), &[Grant::Counters], &chest)
        .unwrap_or_else(|error| panic!("{error}"));
    let number = |name: &str, kind| Number {
        name: name.into(),
        kind,
    };
    let expected = [
        number("hits", NumberKind::Counter),
        number("depth", NumberKind::Gauge),
    ];
    assert_eq!(*attached.offers().numbers, expected);
    let many = "(local $left i32) (local.set $left (i32.const 17))
        (loop $again
          (drop (call $counter (i32.const 500) (i32.const 4)))
          (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (i32.const 16)";
    for (configure, text) in [
        (many, "it declares more than 16 counters and gauges"),
        (
            "(drop (call $counter (i32.const 500) (i32.const 0))) (i32.const 16)",
            "it declares the number ``; expected 1 to 64 of a…z, 0…9 and _, a letter first",
        ),
        (
            "(drop (call $counter (i32.const 128) (i32.const 13))) (i32.const 16)",
            "it declares the number `header:x-user`; expected",
        ),
        (
            "(drop (call $counter (i32.const 500) (i32.const 4)))
             (drop (call $gauge (i32.const 500) (i32.const 4))) (i32.const 16)",
            "it declares the number `hits` twice",
        ),
    ] {
        let guest = Guest {
            configure,
            ..counting("(unreachable)")
        };
        let refused = attach(&guest, &[Grant::Counters], &chest).err().expect("refused");
        assert!(refused.to_string().contains(text), "{refused}");
    }
}

#[test]
fn what_is_imported_has_to_be_granted() {
    let chest = Arc::new(Chest::default());
    let guest = Guest {
        before: r#"(data (i32.const 500) "found")"#,
        ..Guest::whole(STORE, "(unreachable)")
    };
    for (grants, imports, line) in [
        (
            &[][..],
            "forebay:policy/counters and forebay:policy/store",
            r#"`grants = ["counters", "store"]` in [policy.shard]"#,
        ),
        (
            &[Grant::Counters],
            "forebay:policy/store",
            r#"`grants = ["counters", "store"]` in [policy.shard]"#,
        ),
    ] {
        let refused = attach(&guest, grants, &chest).err().expect("refused").to_string();
        let expected = format!("imports {imports}, which has to be granted. Write {line}");
        assert!(refused.contains(&expected), "{refused}");
    }
    assert!(attach(&guest, &Grant::ALL, &chest).is_ok());
    // What imports nothing of the kind may be granted everything.
    assert!(attach(&Guest::picker("(unreachable)"), &Grant::ALL, &chest).is_ok());
    let file = LIVE.file("granted.wasm", &guest.component());
    let found = LIVE.host.inspect(&file).expect("a file");
    assert_eq!(
        found.grants().as_deref(),
        Some(r#"grants = ["counters", "store"]"#)
    );
    assert_eq!(found.refusal, None);
    assert_eq!(Grants::ALL, Grant::ALL.into_iter().collect());
}

/// Saves four bytes in the first plan, and finds them in the next; another version finds none.
#[test]
fn a_planner_has_bytes_kept() {
    let planning = "(call $restore (i32.const 3) (i32.const 600))
        (if (i32.load8_u (i32.const 600))
          (then (call $add (i32.const 0) (i32.load (i32.const 608)))
                (if (i32.ne (i32.load (i32.load (i32.const 604))) (i32.load (i32.const 500))) (then (unreachable)))
                (drop (call $save (i32.const 4) (i32.const 500) (i32.const 2))))
          (else (if (i32.eqz (call $save (i32.const 3) (i32.const 500) (i32.const 4))) (then (unreachable)))))
        (i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
    let guest = Guest {
        before: r#"(data (i32.const 500) "found")"#,
        configure: "(drop (call $counter (i32.const 500) (i32.const 5))) (i32.const 16)",
        planning,
        ..Guest::whole(STORE, "(unreachable)")
    };
    let chest = Arc::new(Chest::default());
    // Each plan is made by an instance of its own, as after a swap.
    let plan = || {
        let attached = attach(&guest, &Grant::ALL, &chest).unwrap_or_else(|error| panic!("{error}"));
        let view = PlanView {
            now: NOW,
            servers: &[],
            live: None,
        };
        attached.planner(NOW).expect("an instance").plan(&view)
    };
    assert_eq!((plan(), plan(), plan()), (Ok(None), Ok(None), Ok(None)));
    assert_eq!(chest.read(), [[0], [4], [0]], "the second one found four bytes");
    assert_eq!(chest.restore(3), Some(b"foun".to_vec()));
}

/// A worker keeps nothing; and too much is not kept.
#[test]
fn the_store_is_for_planners() {
    let chest = Arc::new(Chest::default());
    let guest = Guest {
        before: r#"(data (i32.const 500) "found")"#,
        ..Guest::whole(
            STORE,
            "(call $restore (i32.const 3) (i32.const 600))
             (call $choice (call $save (i32.const 3) (i32.const 500) (i32.const 4)) (i32.load8_u (i32.const 600)))",
        )
    };
    assert!(chest.save(3, b"some"));
    let mut policy = policy(&guest, &chest);
    assert_eq!(
        pick(&mut *policy),
        Ok(choice(0, None)),
        "not saved, and nothing found"
    );
    let planning = "(if (call $save (i32.const 3) (i32.const 500) (i32.const 65537)) (then (unreachable)))
        (i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)";
    let attached = attach(&Guest { planning, ..guest }, &Grant::ALL, &chest);
    let attached = attached.unwrap_or_else(|error| panic!("{error}"));
    let view = PlanView {
        now: NOW,
        servers: &[],
        live: None,
    };
    assert_eq!(attached.planner(NOW).expect("an instance").plan(&view), Ok(None));
}
