//! A guest that insists on an operating system reaches nothing of this one.
//!
//! One component imports everything of WASI 0.2 that a program could reach something by, and calls what it is told to: each
//! function that the host answers ([`forebay::wasm::answered_wasi`], all of them and no other), and has to see the time,
//! the randomness and the emptiness of its question; and the functions that must not be answered, which cut it. The
//! functions are in [`crate::operating_system`].

use crate::guests::PICK;
use crate::kit::{LIVE, limits, setup};
use crate::operating_system::{self, Case, Fate};
use forebay::policy::{Asked, Fault, Pick, ServerIndex};
use forebay::wasm::{Loaded, answered_wasi};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

/// The time and the seed of a question; a guest traps if it sees another time, or numbers that do not follow from it.
const NOW: Duration = Duration::new(5, 77);
const SEED: u64 = 7;

/// The component, and what each of its cases is.
fn insistent() -> (Loaded, Vec<Case>) {
    let cases = operating_system::cases(NOW, SEED);
    let component = wat::parse_str(text(&cases)).expect("a component is correct text");
    let loaded = LIVE
        .load_bytes(&component)
        .unwrap_or_else(|error| panic!("{error}"));
    (loaded, cases)
}

/// Calls the function of a case, in an instance that has seen nothing yet.
fn call(loaded: &Loaded, case: usize, now: Duration, seed: u64) -> Result<Option<Pick>, Fault> {
    let attached = loaded.attach(&setup(), limits(), Duration::ZERO);
    let attachment = attached.unwrap_or_else(|error| panic!("{error}"));
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    let asked = Asked {
        now,
        seed,
        attributes: &[],
    };
    policy.pick(&asked, Some(ServerIndex(case as u16)))
}

#[test]
fn every_function_that_answers_has_a_case() {
    let cases = operating_system::cases(NOW, SEED);
    let with_a_case: BTreeSet<(&str, &str)> = cases
        .iter()
        .filter(|case| case.fate != Fate::Cut && case.fate != Fate::Unreachable)
        .map(|case| (case.interface, case.function))
        .collect();
    assert_eq!(answered_wasi().collect::<BTreeSet<_>>(), with_a_case);
}

#[test]
fn what_answers_shows_the_question_and_what_does_not_cuts() {
    let (loaded, cases) = insistent();
    for (at, case) in cases.iter().enumerate() {
        let answer = call(&loaded, at, NOW, SEED);
        let of = format!("{} {}", case.interface, case.function);
        match case.fate {
            Fate::Constant | Fate::OfTheTime | Fate::OfTheSeed => assert_eq!(answer, Ok(None), "{of}"),
            Fate::Cut => assert_eq!(answer, Err(Fault::Closed), "{of}"),
            Fate::Unreachable => assert!(answer.is_err(), "{of}: {answer:?}"),
        }
    }
    assert!(LIVE.notes.any("said Info printed"), "what is printed is logged");
}

/// Nothing else has a part in it: another question, and only what should differ does.
#[test]
fn clocks_and_randomness_are_of_the_question() {
    let (loaded, cases) = insistent();
    for (at, case) in cases.iter().enumerate() {
        let of = format!("{} {}", case.interface, case.function);
        let (later, other) = (call(&loaded, at, NOW * 2, SEED), call(&loaded, at, NOW, SEED + 1));
        let expected = match case.fate {
            Fate::Constant => (Ok(None), Ok(None)),
            Fate::OfTheTime => (Err(Fault::Trap), Ok(None)),
            Fate::OfTheSeed => (Ok(None), Err(Fault::Trap)),
            Fate::Cut | Fate::Unreachable => continue,
        };
        assert_eq!((later, other), expected, "{of}");
    }
}

/// The component: all interfaces are imported, the core module calls the function of case `$avoid`.
fn text(cases: &[Case]) -> String {
    let (mut outside, mut inside, mut given, mut bodies) = Default::default();
    write_all(cases, &mut outside, &mut inside, &mut given, &mut bodies);
    let imports = operating_system::interfaces(cases);
    format!(
        r#"(component
             {imports}
             (core module $memory
               (memory (export "m") 1)
               (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
             (core instance $memory (instantiate $memory))
             (alias core export $memory "m" (core memory $m))
             (alias core export $memory "realloc" (core func $realloc))
             {outside}
             (core module $m
               (import "memory" "m" (memory 1))
               (import "memory" "realloc" (func $realloc (param i32 i32 i32 i32) (result i32)))
               {inside}
               (export "m" (memory 0))
               (export "realloc" (func $realloc))
               (data (i32.const 256) "printed\n")
               (func (export "table") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))
               (func (export "pick") (param $key i32) (param $size i32) (param $avoid i32) (result i32)
                 {bodies}
                 (i32.store (i32.const 8) (i32.const -1)) (i32.store (i32.const 12) (i32.const -1)) (i32.const 8)))
             (core instance $m (instantiate $m (with "memory" (instance $memory)) (with "wasi" (instance {given}))))
             {PICK})"#
    )
}

fn write_all(
    cases: &[Case],
    outside: &mut String,
    inside: &mut String,
    given: &mut String,
    bodies: &mut String,
) {
    for (at, case) in cases.iter().enumerate() {
        let Case {
            interface,
            function,
            core,
            check,
            ..
        } = case;
        let lowered = format!(
            r#"(core func $w{at} (canon lower (func ${} "{function}") (memory $m) (realloc $realloc)))"#,
            operating_system::identifier(interface)
        );
        // Strings of text into a string: nothing to go wrong.
        let _ = writeln!(outside, "{lowered}");
        let _ = writeln!(inside, r#"(import "wasi" "f{at}" (func $f{at} {core}))"#);
        let _ = write!(given, r#"(export "f{at}" (func $w{at}))"#);
        let own = format!("$f{at}");
        let mut check = check.replace("$self", &own);
        for stream in ["stdin", "stdout"] {
            let opener = cases
                .iter()
                .position(|it| it.interface == format!("cli/{stream}"));
            let opener = format!("(call $f{})", opener.expect("a case"));
            check = check.replace(&format!("${stream}"), &opener);
        }
        let _ = writeln!(
            bodies,
            "(if (i32.eq (local.get $avoid) (i32.const {at})) (then (if (i32.eqz {check}) (then (unreachable)))))"
        );
    }
}
