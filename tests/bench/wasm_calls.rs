//! What one question to a guest costs on a worker, beside the floors of the bare engine in the same run. (On an idle machine
//! of its own it took 82 ns for a scalar call, 85 ns for a pick over pushed columns, 192 ns for a route with method, host,
//! path and two headers.)
//!
//! What stands above a floor is ours: the copy of the attributes into the store, the allowance, quarantine, the check of
//! the answer. `unattached` is what a place without a policy pays.

use criterion::{Criterion, criterion_group, criterion_main};
use forebay::policy::{
    Asked, Attached, Columns, Edits, Fault, Journal, Level, Live, Policy, Priority, RouteAsked, ServerIndex,
    Setup, Shown, Waits,
};
use forebay::wasm::{Host, Limits, Mode, Settings, Text, pack};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Component, ComponentType, Lift, Linker};

const SERVERS: usize = 16;
const SECOND: Duration = Duration::from_secs(1);

/// An arena, a table whose weights are kept at 4096, and a place for answers.
const COMMON: &str = r#"
    (memory (export "memory") 2)
    (global $free (mut i32) (i32.const 8192))
    (global $weights (mut i32) (i32.const 4096))
    (global $count (mut i32) (i32.const 0))
    (data (i32.const 16) "\00\00\00\00\40\00\00\00\02\00\00\00\60\00\00\00\00\00\00\00")
    (data (i32.const 64) "\80\00\00\00\0d\00\00\00\a0\00\00\00\08\00\00\00")
    (data (i32.const 128) "header:x-user")
    (data (i32.const 160) "header:b")
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
      (local $at i32)
      (local.set $at (i32.and (i32.add (global.get $free) (i32.sub (local.get 2) (i32.const 1)))
                              (i32.sub (i32.const 0) (local.get 2))))
      (global.set $free (i32.add (local.get $at) (local.get 3)))
      (local.get $at))
    (func $two (param i32 i32) (result i32)
      (i32.store (i32.const 48) (local.get 0)) (i32.store (i32.const 52) (local.get 1)) (i32.const 48))"#;

const CONFIGURED: &str = r#"(func (export "forebay:policy/configure@0.1.0#configure")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))"#;
const UNCONFIGURED: &str = r#"(data (i32.const 24) "\00\00\00\00")"#;

const TABLE: &str = r#"(func (export "forebay:policy/balance-pick@0.1.0#table")
    (param i32 i32 i32 i32) (param $weights i32) (param $count i32) (param i32 i32 i32 i32 i32 i32)
    (global.set $count (local.get $count))
    (memory.copy (i32.const 4096) (local.get $weights) (i32.mul (local.get $count) (i32.const 4)))
    (global.set $free (i32.const 8192)))"#;

const SCALAR: &str = r#"(func (export "forebay:policy/balance-pick@0.1.0#pick")
    (param i32 i32 i32) (result i32) (global.set $free (i32.const 8192)) (call $two (i32.const 3) (i32.const -1)))"#;

/// The largest weight of all.
const PUSHED: &str = r#"(func (export "forebay:policy/balance-pick@0.1.0#pick")
    (param i32 i32 i32) (result i32) (local $at i32) (local $best i32) (local $most i32) (local $weight i32)
    (global.set $free (i32.const 8192))
    (loop $next
      (local.set $weight (i32.load (i32.add (i32.const 4096) (i32.shl (local.get $at) (i32.const 2)))))
      (if (i32.gt_s (local.get $weight) (local.get $most))
        (then (local.set $most (local.get $weight)) (local.set $best (local.get $at))))
      (br_if $next (i32.lt_s (local.tee $at (i32.add (local.get $at) (i32.const 1))) (global.get $count))))
    (call $two (local.get $best) (i32.const -1)))"#;

/// The least in flight of all, read as a column.
const PULLED: &str = r#"(func (export "forebay:policy/balance-pick@0.1.0#pick")
    (param i32 i32 i32) (result i32) (local $at i32) (local $best i32) (local $least i32) (local $load i32)
    (local $from i32)
    (global.set $free (i32.const 8192))
    (call $column (i32.const 0) (i32.const 300))
    (local.set $from (i32.load (i32.const 300)))
    (local.set $least (i32.const 0x7fffffff))
    (loop $next
      (local.set $load (i32.load (i32.add (local.get $from) (i32.shl (local.get $at) (i32.const 2)))))
      (if (i32.lt_s (local.get $load) (local.get $least))
        (then (local.set $least (local.get $load)) (local.set $best (local.get $at))))
      (br_if $next (i32.lt_s (local.tee $at (i32.add (local.get $at) (i32.const 1))) (global.get $count))))
    (call $two (local.get $best) (i32.const -1)))"#;

const COLUMN: &str = r#"(import "forebay:policy/servers@0.1.0" "column" (func $column (param i32 i32)))"#;
const LENGTH: &str =
    r#"(import "forebay:policy/request@0.1.0" "length" (func $length (param i32) (result i32)))"#;

const ROUTE: &str = r#"(func (export "forebay:policy/route@0.1.0#route")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (global.set $free (i32.const 8192))
    (i32.store (i32.const 56) (i32.const 0))
    (call $two (i32.const 0) (i32.and (i32.add (local.get 7) (local.get 10)) (i32.const 1))))"#;

const ROUTE_PULLING: &str = r#"(func (export "forebay:policy/route@0.1.0#route")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (global.set $free (i32.const 8192))
    (i32.store (i32.const 56) (i32.const 0))
    (call $two (i32.const 0) (i32.and (call $length (i32.const 1)) (i32.const 1))))"#;

/// The class is the length of the first attribute, unless others wait.
const USHER: &str = r#"(func (export "forebay:policy/classify@0.1.0#classify")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (global.set $free (i32.const 8192))
    (i32.store (i32.const 56) (local.get 9)) (i32.store (i32.const 60) (i32.const -1))
    (call $two (i32.const 1) (select (local.get 8) (local.get 2) (local.get 7))))
  (func (export "forebay:policy/admit@0.1.0#admit")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (global.set $free (i32.const 8192))
    (i32.store (i32.const 56) (i32.const -1)) (i32.store (i32.const 60) (i32.const -1))
    (call $two (i32.gt_s (local.get 7) (i32.const 1000)) (i32.const -1)))"#;

fn calls(criterion: &mut Criterion) {
    let host = host();
    let user: &[u8] = b"0123456789abcdef0123456789abcdef";
    let none = Asked {
        now: SECOND,
        seed: 7,
        attributes: &[],
    };
    let two = Asked {
        attributes: &[Some(user), Some(user)],
        ..none
    };

    let mut unattached: Option<Box<dyn Policy>> = None;
    criterion.bench_function("unattached", |bench| {
        bench.iter(|| {
            black_box(&mut unattached)
                .as_mut()
                .map(|policy| policy.pick(&none, None))
        });
    });
    for (name, asked, parts) in [
        ("pick: scalar, empty key", none, ["", UNCONFIGURED, TABLE, SCALAR]),
        (
            "pick: 16 pushed, empty key",
            none,
            ["", UNCONFIGURED, TABLE, PUSHED],
        ),
        ("pick: 16 pushed, key of 32", two, ["", "", TABLE, PUSHED]),
        (
            "pick: 16 in flight, pulled as a column",
            none,
            [COLUMN, UNCONFIGURED, TABLE, PULLED],
        ),
    ] {
        let mut policy = attach(&host, "picker", parts);
        policy.table(&table(), SECOND).expect("a table");
        criterion.bench_function(name, |bench| {
            bench.iter(|| policy.pick(black_box(&asked), None).expect("a pick"));
        });
    }
    let asked = RouteAsked {
        asked: two,
        method: b"GET",
        host: b"www.example.com",
        path: b"/v1/items/17",
    };
    let mut edits = Edits::default();
    for (name, parts) in [
        ("route: host, path, 2 headers", ["", "", "", ROUTE]),
        (
            "route: the same, 1 length pulled",
            [LENGTH, "", "", ROUTE_PULLING],
        ),
        (
            "route: the same, remembered",
            [
                "",
                "",
                "",
                &ROUTE.replace(
                    "(i32.store (i32.const 56) (i32.const 0))",
                    "(i32.store (i32.const 56) (i32.const 3600000))",
                ),
            ],
        ),
    ] {
        let mut policy = attach(&host, "router", parts);
        criterion.bench_function(name, |bench| {
            bench.iter(|| policy.route(black_box(&asked), &mut edits).expect("a route"));
        });
    }
    let waits = Waits {
        server: None,
        queued: 3,
        priority: Priority::default(),
    };
    let mut policy = attach(&host, "usher", ["", "", "", USHER]);
    criterion.bench_function("classify: 2 headers of 32", |bench| {
        bench.iter(|| policy.classify(black_box(&two), &waits).expect("a class"));
    });
    criterion.bench_function("admit: 2 headers of 32", |bench| {
        bench.iter(|| policy.admit(black_box(&two), &waits).expect("a verdict"));
    });
}

fn host() -> Arc<Host> {
    struct Silent;
    impl Journal for Silent {
        fn said(&self, _: &Attached, _: Level, _: &str) {}
        fn fault(&self, _: &Attached, fault: Fault, detail: &str) {
            panic!("{}: {detail}", fault.word());
        }
        fn paused(&self, _: &Attached, _: Fault, _: Duration) {}
        fn resumed(&self, _: &Attached) {}
    }
    let settings = Settings {
        mode: Mode::Live,
        threads: 2,
        attachments: 8,
        cache: None,
    };
    Host::new(&settings, Arc::new(Silent)).expect("an engine")
}

fn attach(host: &Arc<Host>, world: &str, parts: [&str; 4]) -> Box<dyn Policy> {
    let component = component_of(world, parts);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("guest.wasm");
    std::fs::write(&file, component).expect("written");
    let setup = Setup {
        policy: "p".into(),
        backends: vec!["a".into(), "b".into()],
        ..Setup::default()
    };
    let limits = Limits {
        mean_max: None,
        ..Limits::default()
    };
    let attached = host
        .load(&file, None)
        .and_then(|loaded| loaded.attach(&setup, limits, SECOND));
    attached
        .unwrap_or_else(|error| panic!("{error}"))
        .policy(SECOND)
        .expect("an instance")
}

fn component_of(world: &str, [imports, data, table, call]: [&str; 4]) -> Vec<u8> {
    let text = format!("(module {imports} {COMMON} {data} {CONFIGURED} {table} {call})");
    let module = wat::parse_str(text).expect("correct text");
    pack(&module, Some((world, Text::Utf8))).expect("packed")
}

fn table() -> Shown {
    struct Figures;
    impl Live for Figures {
        fn in_flight(&self, server: ServerIndex) -> u32 {
            100 - u32::from(server.0)
        }
        fn queued(&self, _: ServerIndex) -> u32 {
            0
        }
        fn idle(&self, _: ServerIndex) -> u32 {
            0
        }
    }
    let columns = Columns {
        names: (0..SERVERS).map(|at| at.to_string()).collect(),
        zones: vec![String::new(); SERVERS],
        weights: (0..SERVERS as i32).collect(),
        states: vec![0; SERVERS],
        limits: vec![-1; SERVERS],
        latencies: vec![-1; SERVERS],
    };
    Shown {
        columns: Arc::new(columns),
        live: Arc::new(Figures),
    }
}

/// What the engine alone takes on this machine at this moment: a scalar function, and the same pick.
fn floors(criterion: &mut Criterion) {
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true);
    let engine = wasmtime::Engine::new(&config).expect("an engine");
    let linker = Linker::<()>::new(&engine);
    let mut store = wasmtime::Store::new(&engine, ());
    store.set_epoch_deadline(1 << 40);

    let component = Component::new(&engine, wat::parse_str(ADD).expect("correct text")).expect("a component");
    let instance = linker.instantiate(&mut store, &component).expect("an instance");
    let add = instance
        .get_typed_func::<(u32, u32), (u32,)>(&mut store, "add")
        .expect("a function");
    criterion.bench_function("floor: add", |bench| {
        bench.iter(|| add.call(&mut store, (black_box(1), 2)).expect("a sum"));
    });

    let component = Component::new(&engine, component_of("picker", ["", UNCONFIGURED, TABLE, SCALAR]));
    let component = component.expect("a component");
    let instance = linker.instantiate(&mut store, &component).expect("an instance");
    let interface = instance.get_export_index(&mut store, None, "forebay:policy/balance-pick@0.1.0");
    let pick = instance
        .get_export_index(&mut store, interface.as_ref(), "pick")
        .expect("pick");
    let pick = instance
        .get_typed_func::<(&str, i32), (Choice,)>(&mut store, &pick)
        .expect("its type");
    criterion.bench_function("floor: pick, scalar, empty key", |bench| {
        bench.iter(|| {
            let (choice,) = pick.call(&mut store, (black_box(""), -1)).expect("a pick");
            black_box((choice.first, choice.second))
        });
    });
}

const ADD: &str = r#"(component
    (core module $m (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
    (core instance $m (instantiate $m))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $m "add"))))"#;

#[derive(ComponentType, Lift)]
#[component(record)]
struct Choice {
    first: i32,
    second: i32,
}

criterion_group!(benches, floors, calls);
criterion_main!(benches);
