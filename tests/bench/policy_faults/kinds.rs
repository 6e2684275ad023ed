//! The ways in which a guest goes wrong here, and the reason that the host must give for each.

use crate::guests::{Guest, PICK_FIRST};
use forebay::policy::Fault;

/// A faulty policy.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) guest: Guest,
    pub(crate) place: Place,
    pub(crate) reason: Fault,
}

/// What it is attached to.
pub(crate) enum Place {
    Backend,
    Listener,
}

const LOOP: &str = "(loop $again (br $again)) (unreachable)";
const BOMB: &str =
    "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (unreachable)";
const FLOOD: &str = "(loop $more (drop (call $draw (i32.const 9))) (br $more)) (unreachable)";
const HUGE_TEXT: &str = "(call $log (i32.const 0) (i32.const 0) (i32.const 200000)) (unreachable)";
const LATIN: &str = "(call $log (i32.const 0) (i32.const 256) (i32.const 2)) (unreachable)";
/// An index behind the last one that was declared; the answer itself would do.
const UNDECLARED: &str = "(drop (call $length (i32.const 2))) (call $choice (i32.const 0) (i32.const 1))";
/// No opinion, and a header whose value would begin another one.
const INJECTION: &str = "(call $set (i32.const 0) (i32.const 0) (i32.const 224) (i32.const 13))
    (call $decision (i32.const -1) (i32.const 0) (i32.const 0))";
/// 12 MB of empty tiers.
const MILLION_TIERS: &str = "(drop (memory.grow (i32.const 200))) (i32.store8 (i32.const 400) (i32.const 1))
    (i32.store (i32.const 404) (i32.const 262144)) (i32.store (i32.const 408) (i32.const 1000000))
    (i32.store (i32.const 412) (i32.const -1)) (i32.const 400)";
/// An arena until the guest has seen its table, and addresses outside memory from then on.
const BAD_REALLOC: &str = "(local $at i32)
    (if (global.get $seen) (then (return (i32.const -1))))
    (local.set $at (i32.and (i32.add (global.get $free) (i32.sub (local.get 2) (i32.const 1)))
                            (i32.sub (i32.const 0) (local.get 2))))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at)";

/// All of them.
pub(crate) fn all() -> Vec<Kind> {
    let realloc = Guest {
        realloc: BAD_REALLOC,
        table: "(global.set $seen (i32.const 1))",
        ..Guest::picker(PICK_FIRST)
    };
    vec![
        pick("loop", LOOP, Fault::Deadline),
        pick("trap", "(unreachable)", Fault::Trap),
        pick("stack-overflow", "(call $deep (i32.const 0))", Fault::Stack),
        pick("memory-bomb", BOMB, Fault::Memory),
        pick("host-call-flood", FLOOD, Fault::HostCalls),
        pick("huge-text", HUGE_TEXT, Fault::HostBytes),
        plan("plan-million-tiers", MILLION_TIERS, Fault::HostBytes),
        pick("invalid-utf-8", LATIN, Fault::Utf8),
        Kind {
            guest: realloc,
            ..pick("bad-realloc", "", Fault::Pointer)
        },
        pick(
            "unknown-server",
            "(call $choice (i32.const 7) (i32.const -1))",
            Fault::UnknownServer,
        ),
        pick(
            "negative-index",
            "(call $choice (i32.const -2) (i32.const 0))",
            Fault::Range,
        ),
        route("route-header-injection", INJECTION, Fault::Edit),
        pick("undeclared-attribute", UNDECLARED, Fault::Undeclared),
        route("route-loop", LOOP, Fault::Deadline),
        plan("plan-loop", LOOP, Fault::Deadline),
    ]
}

fn pick(name: &'static str, body: &'static str, reason: Fault) -> Kind {
    Kind {
        name,
        guest: Guest::picker(body),
        place: Place::Backend,
        reason,
    }
}

fn plan(name: &'static str, body: &'static str, reason: Fault) -> Kind {
    Kind {
        guest: Guest::planner(body),
        ..pick(name, body, reason)
    }
}

fn route(name: &'static str, body: &'static str, reason: Fault) -> Kind {
    Kind {
        guest: Guest::router(body),
        place: Place::Listener,
        ..pick(name, body, reason)
    }
}
