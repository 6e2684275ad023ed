//! WASI 0.2 as a guest imports it: interfaces with their types (enumerations as bytes), and for each function how a guest
//! calls it and what it must see.
//!
//! The texts are of components: a type as the component imports it, the same as a core module calls it, and an expression
//! of the core module that is 1 if all is as it should be. In it `$self` is the function; `$stdin` and `$stdout` open a
//! stream; 64 is where results are put, 256 where a line stands.

use std::time::Duration;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It answers the same at any time.
    Constant,
    /// It answers with the time of the question.
    OfTheTime,
    /// It answers with numbers that follow from the seed of the question.
    OfTheSeed,
    /// It ends the guest.
    Cut,
    /// It wants something that no function gives: the guest has to invent it, which ends it.
    Unreachable,
}

/// A function and its use.
pub(crate) struct Case {
    /// Without `wasi:` and version.
    pub(crate) interface: &'static str,
    pub(crate) function: &'static str,
    pub(crate) fate: Fate,
    /// Its type in the component.
    of: &'static str,
    /// Its type in the core module.
    pub(crate) core: &'static str,
    pub(crate) check: String,
}

/// An empty list, or an option that is none.
const EMPTY: &str = "(block (result i32) (call $self (i32.const 64)) (i32.eqz (i32.load (i32.const 68))))";
const NONE: &str = "(block (result i32) (call $self (i32.const 64)) (i32.eqz (i32.load8_u (i32.const 64))))";
const OPENED: &str = "(i32.ne (call $self) (i32.const 0))";

/// The interfaces that have cases, each with the types that its functions use, and what of others these are.
const TYPES: &[(&str, &str)] = &[
    ("io/error", r#"(export "error" (type $error (sub resource)))"#),
    (
        "io/poll",
        r#"(export "pollable" (type $pollable (sub resource)))"#,
    ),
    (
        "io/streams",
        r#"(alias outer 1 $error (type $error')) (export "error" (type $error (eq $error')))
           (alias outer 1 $pollable (type $pollable')) (export "pollable" (type $pollable (eq $pollable')))
           (export "input-stream" (type $in (sub resource))) (export "output-stream" (type $out (sub resource)))
           (type $failure' (variant (case "last-operation-failed" (own $error)) (case "closed")))
           (export "stream-error" (type $failure (eq $failure')))"#,
    ),
    (
        "clocks/monotonic-clock",
        r#"(alias outer 1 $pollable (type $pollable')) (export "pollable" (type $pollable (eq $pollable')))"#,
    ),
    (
        "clocks/wall-clock",
        r#"(type $time' (record (field "seconds" u64) (field "nanoseconds" u32)))
           (export "datetime" (type $time (eq $time')))"#,
    ),
    ("random/random", ""),
    ("random/insecure", ""),
    ("random/insecure-seed", ""),
    ("cli/environment", ""),
    ("cli/exit", ""),
    (
        "cli/stdin",
        r#"(alias outer 1 $in (type $in')) (export "input-stream" (type $in (eq $in')))"#,
    ),
    (
        "cli/stdout",
        r#"(alias outer 1 $out (type $out')) (export "output-stream" (type $out (eq $out')))"#,
    ),
    (
        "cli/stderr",
        r#"(alias outer 1 $out (type $out')) (export "output-stream" (type $out (eq $out')))"#,
    ),
    (
        "cli/terminal-input",
        r#"(export "terminal-input" (type (sub resource)))"#,
    ),
    (
        "cli/terminal-output",
        r#"(export "terminal-output" (type (sub resource)))"#,
    ),
    (
        "cli/terminal-stdin",
        r#"(alias outer 1 $tin (type $t')) (export "terminal-input" (type $t (eq $t')))"#,
    ),
    (
        "cli/terminal-stdout",
        r#"(alias outer 1 $tout (type $t')) (export "terminal-output" (type $t (eq $t')))"#,
    ),
    (
        "cli/terminal-stderr",
        r#"(alias outer 1 $tout (type $t')) (export "terminal-output" (type $t (eq $t')))"#,
    ),
    (
        "filesystem/types",
        r#"(export "descriptor" (type $file (sub resource)))
           (alias outer 1 $in (type $in')) (export "input-stream" (type $in (eq $in')))
           (alias outer 1 $error (type $error')) (export "error" (type $error (eq $error')))"#,
    ),
    (
        "filesystem/preopens",
        r#"(alias outer 1 $file (type $file')) (export "descriptor" (type $file (eq $file')))"#,
    ),
    ("sockets/network", r#"(export "network" (type (sub resource)))"#),
    (
        "sockets/instance-network",
        r#"(alias outer 1 $network (type $network')) (export "network" (type $network (eq $network')))"#,
    ),
    (
        "sockets/tcp",
        r#"(export "tcp-socket" (type $tcp (sub resource)))"#,
    ),
    (
        "sockets/tcp-create-socket",
        r#"(alias outer 1 $tcp (type $tcp')) (export "tcp-socket" (type $tcp (eq $tcp')))"#,
    ),
    (
        "sockets/udp",
        r#"(export "udp-socket" (type $udp (sub resource)))"#,
    ),
    (
        "sockets/udp-create-socket",
        r#"(alias outer 1 $udp (type $udp')) (export "udp-socket" (type $udp (eq $udp')))"#,
    ),
    (
        "sockets/ip-name-lookup",
        r#"(alias outer 1 $network (type $network')) (export "network" (type $network (eq $network')))"#,
    ),
    (
        "http/types",
        r#"(export "fields" (type $fields (sub resource)))
           (export "outgoing-request" (type $request (sub resource)))"#,
    ),
    (
        "http/outgoing-handler",
        r#"(alias outer 1 $request (type $request')) (export "outgoing-request" (type $request (eq $request')))"#,
    ),
];

/// Types of one interface that others use: their names in the component, the interface, and there.
const SHARED: &[(&str, &str, &str)] = &[
    ("$error", "io/error", "error"),
    ("$pollable", "io/poll", "pollable"),
    ("$in", "io/streams", "input-stream"),
    ("$out", "io/streams", "output-stream"),
    ("$tin", "cli/terminal-input", "terminal-input"),
    ("$tout", "cli/terminal-output", "terminal-output"),
    ("$file", "filesystem/types", "descriptor"),
    ("$network", "sockets/network", "network"),
    ("$tcp", "sockets/tcp", "tcp-socket"),
    ("$udp", "sockets/udp", "udp-socket"),
    ("$request", "http/types", "outgoing-request"),
];

/// The name of an imported interface in the component.
pub(crate) fn identifier(interface: &str) -> String {
    interface.replace('/', "_")
}

/// The imports of the component: every interface with the functions of its cases, then the types that others use.
pub(crate) fn interfaces(cases: &[Case]) -> String {
    let mut text = String::new();
    for (interface, types) in TYPES {
        let functions: String = cases
            .iter()
            .filter(|case| case.interface == *interface)
            .map(|case| format!(r#"(export "{}" (func {}))"#, case.function, case.of))
            .collect();
        let name = identifier(interface);
        text += &format!(r#"(import "wasi:{interface}@0.2.6" (instance ${name} {types} {functions}))"#);
        for (shared, _, there) in SHARED.iter().filter(|(_, of, _)| of == interface) {
            text += &format!(r#"(alias export ${name} "{there}" (type {shared}))"#);
        }
    }
    text
}

/// All cases, for a question of that time and seed.
pub(crate) fn cases(now: Duration, seed: u64) -> Vec<Case> {
    [answered(), of_the_question(now, seed), closed(), unreachable()]
        .into_iter()
        .flatten()
        .collect()
}

fn case(
    of: (&'static str, &'static str),
    fate: Fate,
    types: (&'static str, &'static str),
    check: impl Into<String>,
) -> Case {
    Case {
        interface: of.0,
        function: of.1,
        fate,
        of: types.0,
        core: types.1,
        check: check.into(),
    }
}

/// What is the same at any time: nothing, most of it.
fn answered() -> Vec<Case> {
    let list = |of, result| case(of, Fate::Constant, (result, "(param i32)"), EMPTY);
    let none = |of, result| case(of, Fate::Constant, (result, "(param i32)"), NONE);
    let stream = |of, result| case(of, Fate::Constant, (result, "(result i32)"), OPENED);
    let mut cases = vec![
        list(
            ("cli/environment", "get-environment"),
            "(result (list (tuple string string)))",
        ),
        list(("cli/environment", "get-arguments"), "(result (list string))"),
        list(
            ("filesystem/preopens", "get-directories"),
            "(result (list (tuple (own $file) string)))",
        ),
        none(("cli/environment", "initial-cwd"), "(result (option string))"),
        none(
            ("cli/terminal-stdin", "get-terminal-stdin"),
            "(result (option (own $t)))",
        ),
        none(
            ("cli/terminal-stdout", "get-terminal-stdout"),
            "(result (option (own $t)))",
        ),
        none(
            ("cli/terminal-stderr", "get-terminal-stderr"),
            "(result (option (own $t)))",
        ),
        stream(("cli/stdin", "get-stdin"), "(result (own $in))"),
        stream(("cli/stdout", "get-stdout"), "(result (own $out))"),
        stream(("cli/stderr", "get-stderr"), "(result (own $out))"),
    ];
    cases.extend(streams());
    for interface in ["clocks/monotonic-clock", "clocks/wall-clock"] {
        cases.push(resolution(interface));
    }
    cases.push(case(
        ("random/insecure-seed", "insecure-seed"),
        Fate::Constant,
        ("(result (tuple u64 u64))", "(param i32)"),
        "(block (result i32) (call $self (i32.const 64))
           (i64.eqz (i64.or (i64.load (i32.const 64)) (i64.load (i32.const 72)))))",
    ));
    cases
}

/// A millisecond.
fn resolution(interface: &'static str) -> Case {
    let of = (interface, "resolution");
    if interface == "clocks/monotonic-clock" {
        let check = "(i64.eq (call $self) (i64.const 1000000))";
        return case(of, Fate::Constant, ("(result u64)", "(result i64)"), check);
    }
    let check = "(block (result i32) (call $self (i32.const 64)) (i32.eq (i32.load (i32.const 72)) (i32.const 1000000)))";
    case(of, Fate::Constant, ("(result $time)", "(param i32)"), check)
}

/// Streams that end where they begin, and swallow what is written but for the log.
fn streams() -> Vec<Case> {
    let method = |function, types, check| case(("io/streams", function), Fate::Constant, types, check);
    let read = (
        r#"(param "self" (borrow $in)) (param "len" u64) (result (result (list u8) (error $failure)))"#,
        "(param i32 i64 i32)",
    );
    let write = (
        r#"(param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $failure)))"#,
        "(param i32 i32 i32 i32)",
    );
    let flush = (
        r#"(param "self" (borrow $out)) (result (result (error $failure)))"#,
        "(param i32 i32)",
    );
    let ready = (
        r#"(param "self" (borrow $out)) (result (result u64 (error $failure)))"#,
        "(param i32 i32)",
    );
    let ended = "(block (result i32) (call $self $stdin (i64.const 10) (i32.const 64))
        (i32.and (i32.load8_u (i32.const 64)) (i32.load8_u (i32.const 68))))";
    let written = "(block (result i32) (call $self $stdout (i32.const 256) (i32.const 8) (i32.const 64))
        (i32.eqz (i32.load8_u (i32.const 64))))";
    let flushed =
        "(block (result i32) (call $self $stdout (i32.const 64)) (i32.eqz (i32.load8_u (i32.const 64))))";
    let room = "(block (result i32) (call $self $stdout (i32.const 64)) (i64.eq (i64.load (i32.const 72)) (i64.const 4096)))";
    vec![
        method("[method]input-stream.read", read, ended),
        method("[method]input-stream.blocking-read", read, ended),
        method("[method]output-stream.check-write", ready, room),
        method("[method]output-stream.write", write, written),
        method("[method]output-stream.blocking-write-and-flush", write, written),
        method("[method]output-stream.flush", flush, flushed),
        method("[method]output-stream.blocking-flush", flush, flushed),
    ]
}

fn of_the_question(now: Duration, seed: u64) -> Vec<Case> {
    let monotonic = format!("(i64.eq (call $self) (i64.const {}))", now.as_nanos());
    let wall = format!(
        "(block (result i32) (call $self (i32.const 64))
           (i32.and (i64.eq (i64.load (i32.const 64)) (i64.const {}))
                    (i32.eq (i32.load (i32.const 72)) (i32.const {}))))",
        now.as_secs(),
        now.subsec_nanos()
    );
    let mut cases = vec![
        case(
            ("clocks/monotonic-clock", "now"),
            Fate::OfTheTime,
            ("(result u64)", "(result i64)"),
            monotonic,
        ),
        case(
            ("clocks/wall-clock", "now"),
            Fate::OfTheTime,
            ("(result $time)", "(param i32)"),
            wall,
        ),
    ];
    let numbers: Vec<u64> = numbers(seed).take(8).collect();
    let number = format!("(i64.eq (call $self) (i64.const {}))", numbers[0] as i64);
    let bytes = u64::from_le_bytes(std::array::from_fn(|at| numbers[at] as u8)) as i64;
    let bytes = format!(
        "(block (result i32) (call $self (i64.const 8) (i32.const 64))
           (i32.and (i32.eq (i32.load (i32.const 68)) (i32.const 8))
                    (i64.eq (i64.load (i32.load (i32.const 64))) (i64.const {bytes}))))"
    );
    let types = (
        ("(result u64)", "(result i64)"),
        (r#"(param "len" u64) (result (list u8))"#, "(param i64 i32)"),
    );
    let seeded = |of, types, check: &String| case(of, Fate::OfTheSeed, types, check.clone());
    cases.extend([
        seeded(("random/random", "get-random-u64"), types.0, &number),
        seeded(("random/insecure", "get-insecure-random-u64"), types.0, &number),
        seeded(("random/random", "get-random-bytes"), types.1, &bytes),
        seeded(("random/insecure", "get-insecure-random-bytes"), types.1, &bytes),
    ]);
    cases
}

/// SplitMix64, as a question's numbers follow from its seed.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |nth: u64| {
        let mut mixed = seed.wrapping_add(nth.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    })
}

/// What a guest can call, and is ended by.
fn closed() -> Vec<Case> {
    let cut = |of, types, check: &'static str| case(of, Fate::Cut, types, check);
    let skip = (
        r#"(param "self" (borrow $in)) (param "len" u64) (result (result u64 (error $failure)))"#,
        "(param i32 i64 i32)",
    );
    let zeroes = (
        r#"(param "self" (borrow $out)) (param "len" u64) (result (result (error $failure)))"#,
        "(param i32 i64 i32)",
    );
    let splice = (
        r#"(param "self" (borrow $out)) (param "src" (borrow $in)) (param "len" u64)
           (result (result u64 (error $failure)))"#,
        "(param i32 i32 i64 i32)",
    );
    let skipped = "(block (result i32) (call $self $stdin (i64.const 1) (i32.const 64)) (i32.const 1))";
    let zeroed = "(block (result i32) (call $self $stdout (i64.const 1) (i32.const 64)) (i32.const 1))";
    let spliced =
        "(block (result i32) (call $self $stdout $stdin (i64.const 1) (i32.const 64)) (i32.const 1))";
    let streams = "io/streams";
    vec![
        cut((streams, "[method]input-stream.skip"), skip, skipped),
        cut((streams, "[method]input-stream.blocking-skip"), skip, skipped),
        cut((streams, "[method]output-stream.write-zeroes"), zeroes, zeroed),
        cut(
            (streams, "[method]output-stream.blocking-write-zeroes-and-flush"),
            zeroes,
            zeroed,
        ),
        cut((streams, "[method]output-stream.splice"), splice, spliced),
        cut(
            (streams, "[method]output-stream.blocking-splice"),
            splice,
            spliced,
        ),
        cut(
            (streams, "[method]input-stream.subscribe"),
            (
                r#"(param "self" (borrow $in)) (result (own $pollable))"#,
                "(param i32) (result i32)",
            ),
            "(call $self $stdin)",
        ),
        cut(
            (streams, "[method]output-stream.subscribe"),
            (
                r#"(param "self" (borrow $out)) (result (own $pollable))"#,
                "(param i32) (result i32)",
            ),
            "(call $self $stdout)",
        ),
        cut(
            ("io/poll", "poll"),
            (
                r#"(param "in" (list (borrow $pollable))) (result (list u32))"#,
                "(param i32 i32 i32)",
            ),
            "(block (result i32) (call $self (i32.const 0) (i32.const 0) (i32.const 64)) (i32.const 1))",
        ),
        cut(
            ("clocks/monotonic-clock", "subscribe-instant"),
            (
                r#"(param "when" u64) (result (own $pollable))"#,
                "(param i64) (result i32)",
            ),
            "(call $self (i64.const 0))",
        ),
        cut(
            ("clocks/monotonic-clock", "subscribe-duration"),
            (
                r#"(param "when" u64) (result (own $pollable))"#,
                "(param i64) (result i32)",
            ),
            "(call $self (i64.const 0))",
        ),
        cut(
            ("cli/exit", "exit"),
            (r#"(param "status" (result))"#, "(param i32)"),
            "(block (result i32) (call $self (i32.const 0)) (i32.const 1))",
        ),
        cut(
            ("sockets/instance-network", "instance-network"),
            ("(result (own $network))", "(result i32)"),
            "(call $self)",
        ),
        cut(
            ("sockets/tcp-create-socket", "create-tcp-socket"),
            (
                r#"(param "address-family" u8) (result (result (own $tcp) (error u8)))"#,
                "(param i32 i32)",
            ),
            "(block (result i32) (call $self (i32.const 0) (i32.const 64)) (i32.const 1))",
        ),
        cut(
            ("sockets/udp-create-socket", "create-udp-socket"),
            (
                r#"(param "address-family" u8) (result (result (own $udp) (error u8)))"#,
                "(param i32 i32)",
            ),
            "(block (result i32) (call $self (i32.const 0) (i32.const 64)) (i32.const 1))",
        ),
        cut(
            ("http/types", "[constructor]fields"),
            ("(result (own $fields))", "(result i32)"),
            "(call $self)",
        ),
    ]
}

/// What wants something that nobody gives: a file, a connection, an error, a request. The guest says that it has number 7.
fn unreachable() -> Vec<Case> {
    let invented = "(block (result i32) (call $self (i32.const 7) (i32.const 64)) (i32.const 1))";
    let alone = "(block (result i32) (call $self (i32.const 7)) (i32.const 1))";
    let want = |of, types, check: &'static str| case(of, Fate::Unreachable, types, check);
    vec![
        want(
            ("filesystem/types", "[method]descriptor.read-via-stream"),
            (
                r#"(param "self" (borrow $file)) (param "offset" u64) (result (result (own $in) (error u8)))"#,
                "(param i32 i64 i32)",
            ),
            "(block (result i32) (call $self (i32.const 7) (i64.const 0) (i32.const 64)) (i32.const 1))",
        ),
        want(
            ("filesystem/types", "[method]descriptor.open-at"),
            (
                r#"(param "self" (borrow $file)) (param "path" string) (result (result (own $file) (error u8)))"#,
                "(param i32 i32 i32 i32)",
            ),
            "(block (result i32) (call $self (i32.const 7) (i32.const 256) (i32.const 7) (i32.const 64)) (i32.const 1))",
        ),
        want(
            ("filesystem/types", "filesystem-error-code"),
            (
                r#"(param "err" (borrow $error)) (result (option u8))"#,
                "(param i32 i32)",
            ),
            invented,
        ),
        want(
            ("io/error", "[method]error.to-debug-string"),
            (
                r#"(param "self" (borrow $error)) (result string)"#,
                "(param i32 i32)",
            ),
            invented,
        ),
        want(
            ("io/poll", "[method]pollable.block"),
            (r#"(param "self" (borrow $pollable))"#, "(param i32)"),
            alone,
        ),
        want(
            ("io/poll", "[method]pollable.ready"),
            (
                r#"(param "self" (borrow $pollable)) (result bool)"#,
                "(param i32) (result i32)",
            ),
            "(call $self (i32.const 7))",
        ),
        want(
            ("sockets/tcp", "[method]tcp-socket.finish-connect"),
            (
                r#"(param "self" (borrow $tcp)) (result (result (error u8)))"#,
                "(param i32 i32)",
            ),
            invented,
        ),
        want(
            ("sockets/udp", "[method]udp-socket.finish-bind"),
            (
                r#"(param "self" (borrow $udp)) (result (result (error u8)))"#,
                "(param i32 i32)",
            ),
            invented,
        ),
        want(
            ("sockets/ip-name-lookup", "resolve-addresses"),
            (
                r#"(param "network" (borrow $network)) (param "name" string) (result (result (error u8)))"#,
                "(param i32 i32 i32 i32)",
            ),
            "(block (result i32) (call $self (i32.const 7) (i32.const 256) (i32.const 7) (i32.const 64)) (i32.const 1))",
        ),
        want(
            ("http/outgoing-handler", "handle"),
            (
                r#"(param "request" (own $request)) (result (result (error u8)))"#,
                "(param i32 i32)",
            ),
            invented,
        ),
    ]
}
