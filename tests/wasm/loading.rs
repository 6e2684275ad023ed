//! From the file to an attachment: what is accepted, and what each refusal says.

use crate::guests::{Guest, PICK, PICK_FIRST, World};
use crate::kit::{Bench, LIVE, choice, pick, setup};
use forebay::policy::Fault;
use forebay::wasm::{Digest, From, Host, Limits, LoadError, Mode, Settings, Text, pack};
use std::time::Duration;

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("a component is correct text")
}

/// The refusal, as an operator reads it.
fn refusal(bytes: &[u8]) -> String {
    match LIVE.load_bytes(bytes) {
        Ok(_) => panic!("loaded"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn files_that_are_no_component_of_the_contract() {
    let good = Guest::picker(PICK_FIRST).component();
    let cases: [(&[u8], &str); 8] = [
        (b"", "not WebAssembly"),
        (b"\x7fELF", "not WebAssembly"),
        (&component("(module)"), "Pack it: `forebay plugin build"),
        (&good[..good.len() / 2], "does not compile"),
        (&component("(component)"), "exports none of forebay:policy/"),
        (
            &component(r#"(component (instance $i) (export "forebay:policy/route@0.9.0" (instance $i)))"#),
            "another version",
        ),
        (
            &component(r#"(component (import "lab:host/api" (func)))"#),
            "imports lab:host/api, which this host does not have",
        ),
        (
            &component(r#"(component (instance $i) (export "forebay:policy/route@0.1.0" (instance $i)))"#),
            "differ from the contract",
        ),
    ];
    for (bytes, expected) in cases {
        let text = refusal(bytes);
        assert!(text.contains(expected), "{text}");
    }
    let missing = LIVE
        .host
        .load("no/such.wasm".as_ref(), None)
        .err()
        .expect("refused")
        .to_string();
    assert!(missing.contains("no/such.wasm: cannot be read"), "{missing}");
}

/// The right names with other types.
#[test]
fn wrong_types_are_refused() {
    let wrong = component(
        r#"(component
             (core module $m (func (export "f") (param i32) (result i32) (local.get 0)))
             (core instance $m (instantiate $m))
             (func $f (param "key" s32) (result s32) (canon lift (core func $m "f")))
             (instance $i (export "table" (func $f)) (export "pick" (func $f)))
             (export "forebay:policy/balance-pick@0.1.0" (instance $i)))"#,
    );
    let text = refusal(&wrong);
    assert!(text.contains("differ from the contract"), "{text}");
}

#[test]
fn a_pinned_digest_is_compared() {
    let bytes = Guest::picker(PICK_FIRST).component();
    let file = LIVE.file("pinned.wasm", &bytes);
    assert!(LIVE.host.load(&file, Some(Digest::of(&bytes))).is_ok());
    let other = LIVE.host.load(&file, Some(Digest::of(b"other")));
    assert!(matches!(other, Err(LoadError::Digest { .. })));
}

#[test]
fn a_file_beyond_the_limit_is_not_read() {
    let file = LIVE.file("large.wasm", b"");
    let large = std::fs::File::create(&file).expect("a file");
    large.set_len((32 << 20) + 1).expect("made large");
    assert!(matches!(
        LIVE.host.load(&file, None),
        Err(LoadError::TooLarge { .. })
    ));
}

#[test]
fn configurations_are_judged_by_the_guest() {
    // One problem: `window`, `must be above 0`.
    let refuses = "(i32.store8 (i32.const 400) (i32.const 1)) (i32.store (i32.const 404) (i32.const 420))
        (i32.store (i32.const 408) (i32.const 1)) (i32.store (i32.const 420) (i32.const 440))
        (i32.store (i32.const 424) (i32.const 6)) (i32.store (i32.const 428) (i32.const 450))
        (i32.store (i32.const 432) (i32.const 15)) (i32.const 400)";
    let before = r#"(data (i32.const 440) "window") (data (i32.const 450) "must be above 0")"#;
    let guest = Guest {
        configure: refuses,
        before,
        ..Guest::picker(PICK_FIRST)
    };
    let text = LIVE.attach(&guest).err().expect("refused").to_string();
    assert_eq!(
        text,
        "policy `shard` refuses its configuration:\n  config.window: must be above 0"
    );
}

#[test]
fn a_configure_that_goes_wrong() {
    let unknown = r#"(data (i32.const 128) "trailer:x-usr")"#;
    let many = "(i32.store (i32.const 24) (i32.const 20000)) (i32.const 16)";
    let huge = "(i32.store (i32.const 24) (i32.const 500000)) (i32.const 16)";
    let latin =
        "(i32.store (i32.const 64) (i32.const 256)) (i32.store (i32.const 68) (i32.const 2)) (i32.const 16)";
    let grows = "(loop $m (br_if $m (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (unreachable)";
    let cases = [
        ("(unreachable)", "", Some(Fault::Trap)),
        (
            "(loop $again (br $again)) (unreachable)",
            "",
            Some(Fault::Deadline),
        ),
        ("(call $deep (i32.const 0))", "", Some(Fault::Stack)),
        (grows, "", Some(Fault::Memory)),
        (latin, "", Some(Fault::Utf8)),
        (huge, "", None),
        (many, "", None),
        ("(i32.const 16)", unknown, None),
    ];
    for (configure, before, expected) in cases {
        let error = LIVE
            .attach(&Guest {
                configure,
                before,
                ..Guest::picker(PICK_FIRST)
            })
            .err()
            .expect("refused");
        println!("{error}");
        match (&error, expected) {
            (LoadError::Fault { fault, .. }, Some(expected)) => assert_eq!(*fault, expected, "{configure}"),
            (_, None) => {}
            _ => panic!("{error}"),
        }
    }
}

/// It has a second to configure itself at load, but each worker would wait for it.
#[test]
fn a_configure_beyond_the_deadline_is_found_at_load() {
    let slow = "(local $left i64) (local.set $left (i64.const 60000000))
        (loop $more (br_if $more (i64.ne (local.tee $left (i64.sub (local.get $left) (i64.const 1)))
        (i64.const 0)))) (i32.const 16)";
    let guest = Guest {
        configure: slow,
        ..Guest::picker(PICK_FIRST)
    };
    let limits = Limits {
        deadline: Duration::from_millis(1),
        ..Limits::default()
    };
    let error = LIVE
        .attach_within(&guest, limits)
        .err()
        .expect("refused")
        .to_string();
    assert!(error.contains("deadline"), "{error}");
}

#[test]
fn a_component_without_configure_is_asked_all_the_same() {
    let component = component(
        &r#"(component
             (core module $m
               (memory (export "m") 1)
               (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
               (func (export "table") (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32))
               (func (export "pick") (param i32 i32 i32) (result i32)
                 (i32.store (i32.const 8) (i32.const 2)) (i32.store (i32.const 12) (i32.const -1)) (i32.const 8)))
             (core instance $m (instantiate $m))
             PICK
             (export "somebody:else/api@3.0.0" (instance $api)))"#
        .replace("PICK", PICK),
    );
    let loaded = LIVE
        .load_bytes(&component)
        .unwrap_or_else(|error| panic!("{error}"));
    let attachment = loaded
        .attach(&setup(), Limits::default(), Duration::ZERO)
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(attachment.offers().pick && attachment.offers().attributes.is_empty());
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    policy
        .table(&crate::kit::three(), Duration::ZERO)
        .expect("a table");
    assert_eq!(pick(&mut *policy), Ok(choice(2, None)));
}

#[test]
fn what_was_compiled_is_found_again() {
    let bench = Bench::new(Mode::Test);
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("cache");
    let file = bench.file("guest.wasm", &Guest::picker(PICK_FIRST).component());
    for entries in [1, 1] {
        let settings = Settings {
            mode: Mode::Test,
            threads: 1,
            attachments: 1,
            cache: Some(cache.clone()),
        };
        let host = Host::new(&settings, bench.notes.clone()).expect("an engine");
        assert!(host.remarks().is_empty(), "{:?}", host.remarks());
        let attached = host
            .load(&file, None)
            .and_then(|it| it.attach(&setup(), Limits::default(), Duration::ZERO));
        let mut policy = attached
            .unwrap_or_else(|error| panic!("{error}"))
            .policy(Duration::ZERO)
            .expect("an instance");
        policy
            .table(&crate::kit::three(), Duration::ZERO)
            .expect("a table");
        assert_eq!(pick(&mut *policy), Ok(choice(0, Some(1))));
        assert_eq!(std::fs::read_dir(&cache).expect("the cache").count(), entries);
    }
}

#[test]
fn inspect_tells_what_the_host_would_do() {
    let file = LIVE.file(
        "router.wasm",
        &Guest::router("(call $remove (i32.const 0) (i32.const 0)) (i32.const 48)").component(),
    );
    let found = LIVE.host.inspect(&file).expect("read");
    assert_eq!(
        (found.contracts.as_slice(), &found.refusal),
        (&["0.1.0".to_owned()][..], &None)
    );
    assert!(
        found.imports.iter().all(|it| it.from == From::Contract) && found.exports.iter().all(|it| it.used)
    );
    println!("{found}");
    let file = LIVE.file("core.wasm", &component("(module)"));
    assert!(
        LIVE.host
            .inspect(&file)
            .expect("read")
            .refusal
            .expect("a refusal")
            .contains("core module")
    );
}

/// What a C library or a Go runtime imports is answered within the component.
#[test]
fn preview_1_is_answered_inside() {
    let text = r#"(import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))"#;
    let guest = Guest::planner("(drop (call $clock (i32.const 0) (i64.const 0) (i32.const 512)))
        (drop (call $random (i32.const 520) (i32.const 8))) (i32.store8 (i32.const 400) (i32.const 0)) (i32.const 400)");
    let module = wat::parse_str(guest.text_with(text)).expect("correct text");
    let packed = pack(&module, Some((World::Planner.name(), Text::Utf8))).expect("packed");
    let file = LIVE.file("libc.wasm", &packed);
    let found = LIVE.host.inspect(&file).expect("read");
    assert_eq!((found.imports.len(), found.refusal), (0, None));
}
