//! Components that cannot be loaded: what `check`, the start and a reload make of them.

use crate::kit::{Client, Proxy, Setup, eventually, once};
use crate::policies::guests::{Guest, PICK_FIRST};
use crate::policies::{Files, before, chosen_by, policy, shipped, three};
use crate::reload::Load;
use std::path::Path;

/// A component that is refused.
struct Bad {
    /// What its file holds; `None` for no file.
    bytes: Option<Vec<u8>>,
    /// What the message says is wrong, and what it says can be done.
    says: [&'static str; 2],
}

/// Each way of being refused.
fn bad() -> Vec<Bad> {
    let good = std::fs::read(shipped("header-shard")).expect("shipped");
    let bad = |bytes: Vec<u8>, says| Bad {
        bytes: Some(bytes),
        says,
    };
    let text = |text: &str, says| bad(wat::parse_str(text).expect("correct text"), says);
    let configures = |configure, says| {
        let guest = Guest {
            configure,
            before: REFUSAL_TEXTS,
            ..Guest::picker(PICK_FIRST)
        };
        bad(guest.component(), says)
    };
    vec![
        Bad {
            bytes: None,
            says: ["cannot be read", "Check the path `component`"],
        },
        bad(b"hello".to_vec(), ["not WebAssembly", "names a .wasm file"]),
        bad(
            good[..good.len() / 2].to_vec(),
            ["does not compile", "may be cut off"],
        ),
        text(
            "(module)",
            ["a core module, not a component", "`forebay plugin build"],
        ),
        text(
            "(component)",
            ["exports none of forebay:policy/", "Build it against a world"],
        ),
        text(
            r#"(component (import "lab:host/api" (func)))"#,
            ["imports lab:host/api", "It offers forebay:policy"],
        ),
        text(
            r#"(component (instance $i) (export "forebay:policy/route@0.9.0" (instance $i)))"#,
            ["forebay:policy/route@0.9.0", "built against another version"],
        ),
        text(
            WRONG_TYPES,
            ["types differ from the contract", "Build it against wit/"],
        ),
        configures(
            REFUSES,
            ["refuses its configuration", "config.window: must be above 0"],
        ),
        configures(
            "(unreachable)",
            ["failed in configure (trap)", "put one that works in its place"],
        ),
        configures(
            "(loop $again (br $again)) (unreachable)",
            ["failed in configure (deadline)", "raise `deadline`"],
        ),
    ]
}

/// The right names with other types.
const WRONG_TYPES: &str = r#"(component
    (core module $m (func (export "f") (param i32) (result i32) (local.get 0)))
    (core instance $m (instantiate $m))
    (func $f (param "key" s32) (result s32) (canon lift (core func $m "f")))
    (instance $i (export "table" (func $f)) (export "pick" (func $f)))
    (export "forebay:policy/balance-pick@0.1.0" (instance $i)))"#;
/// One problem, whose texts lie at 440 and 450.
const REFUSES: &str = "(i32.store8 (i32.const 400) (i32.const 1)) (i32.store (i32.const 404) (i32.const 420))
    (i32.store (i32.const 408) (i32.const 1)) (i32.store (i32.const 420) (i32.const 440))
    (i32.store (i32.const 424) (i32.const 6)) (i32.store (i32.const 428) (i32.const 450))
    (i32.store (i32.const 432) (i32.const 15)) (i32.const 400)";
const REFUSAL_TEXTS: &str = r#"(data (i32.const 440) "window") (data (i32.const 450) "must be above 0")"#;

/// Puts it where the configuration looks for it, as a copy or a package manager does: whole, or not at all.
fn put(bad: Option<&[u8]>, files: &Files) {
    let component = files.path("shard.wasm");
    match bad {
        Some(bytes) => {
            let new = files.write("shard.wasm.new", bytes);
            std::fs::rename(new, component).expect("renamed");
        }
        None => std::fs::remove_file(component).expect("removed"),
    }
}

fn shard(component: &Path, keys: &str) -> String {
    policy("shard", component, keys)
}

/// `check` and `run` name the policy, the file, what is wrong and what can be done; neither starts anything.
#[test]
fn a_policy_that_cannot_be_loaded_ends_the_start() {
    let origins = three();
    let files = Files::new();
    let component = files.write("shard.wasm", b"");
    let setup = before(&origins, "shard", &shard(&component, ""));
    let file = files.write("forebay.toml", setup.text(files.folder()).as_bytes());
    for Bad { bytes, says } in bad() {
        put(bytes.as_deref(), &files);
        for command in ["check", "run"] {
            let output = once(&[command, &file.display().to_string()]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{command}: {said}");
            for part in ["shard", "app", says[0], says[1]] {
                assert!(said.contains(part), "{command} does not say {part:?}: {said}");
            }
            // What a policy objects to stands in the configuration.
            let named = if says[0].contains("refuses") {
                "forebay.toml"
            } else {
                "shard.wasm"
            };
            assert!(command == "run" || said.contains(named), "{said}");
        }
        files.write("shard.wasm", b"");
    }
}

/// A component of ours that dislikes its configuration names the key.
#[test]
fn what_a_policy_objects_to_is_shown_with_its_key() {
    let origins = three();
    let files = Files::new();
    let component = shipped("header-shard");
    let setup = before(&origins, "shard", &shard(&component, "config = { header = 7 }"));
    let file = files.write("forebay.toml", setup.text(files.folder()).as_bytes());
    let output = once(&["check", &file.display().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("config.header: "), "{said}");
}

/// AC-73: at a reload under load, a component that cannot be loaded leaves the one at work; the rest of the configuration
/// is taken up, and no request fails.
#[test]
fn a_reload_keeps_the_policy_at_work() {
    let origins = three();
    let files = Files::new();
    let good = std::fs::read(shipped("header-shard")).expect("shipped");
    let component = files.write("shard.wasm", &good);
    let setup = before(
        &origins,
        "shard",
        // A machine that is busy with other tests is no reason to cut it, nor to put it aside for being slow.
        &shard(
            &component,
            "config = { header = \"host\" }\ndeadline = \"1s\"\nmean-max = \"100ms\"",
        ),
    );
    let proxy = Proxy::start(&setup);
    let load = Load::new();
    load.around(&proxy, 2, || {
        for (number, Bad { bytes, says }) in bad().into_iter().enumerate() {
            put(bytes.as_deref(), &files);
            proxy.reload(&marked(&setup, number));
            proxy.says("that the policy stays, and why", |line| {
                line.contains("a policy stays as it was") && says.iter().all(|part| line.contains(part))
            });
            eventually("the new route", || {
                (Client::of(&proxy).get(&format!("/mark/{number}")).status == 410).then_some(())
            });
            let before = chosen_by(&proxy, "pick");
            load.goes_on(20);
            assert!(chosen_by(&proxy, "pick") >= before + 20.0, "{}", says[0]);
            files.write("shard.wasm", &good);
        }
    });
    assert_eq!(chosen_by(&proxy, "native"), 0.0, "the policy chose every time");
}

/// A file with another content takes over at a reload, and operators are told which one it is.
#[test]
fn a_reload_takes_up_another_component() {
    let origins = three();
    let files = Files::new();
    let component = files.write(
        "shard.wasm",
        &std::fs::read(shipped("header-shard")).expect("shipped"),
    );
    let setup = before(
        &origins,
        "shard",
        &shard(&component, "config = { header = \"host\" }"),
    );
    let proxy = Proxy::start(&setup);
    let load = Load::new();
    load.around(&proxy, 2, || {
        load.goes_on(20);
        let other = Guest::picker("(call $choice (i32.const -1) (i32.const -1))").component();
        put(Some(&other), &files);
        proxy.reload(&setup);
        let digest = forebay::wasm::Digest::of(&other).short();
        proxy.says("which component is at work", |line| {
            line.contains("a policy has been loaded policy=shard at=app") && line.contains(&digest)
        });
        // It never has an opinion.
        eventually("the new one abstains", || {
            let before = chosen_by(&proxy, "pick");
            load.goes_on(20);
            (chosen_by(&proxy, "pick") == before).then_some(())
        });
    });
}

fn marked(setup: &Setup, number: usize) -> Setup {
    let route = format!("match = {{ path = \"/mark/{number}\" }}\ndeny = 410");
    setup.clone().route(&route)
}
