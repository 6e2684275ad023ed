//! The contract in Rust: types and calls, generated from `wit/`.
//!
//! Exports are called through the generated `Guest` of each interface, whose indices are looked up once per component.
//! Imports use the generated types, and are written by hand in [`super::imports`] because they are called per request.

use crate::policy::Grant;

wasmtime::component::bindgen!({ path: "wit", world: "policy" });

pub(super) use self::exports::forebay::policy::{
    admit, balance_pick, balance_plan, classify, configure, reuse, reuse_plan, route,
};
pub(super) use self::forebay::policy::{edits, log, servers};

/// The package, as it stands before the name of each interface.
pub(super) const PACKAGE: &str = "forebay:policy/";
/// The version that this host answers to.
pub(super) const CONTRACT: &str = "0.1.0";

/// The interfaces that a component may export.
pub(super) const EXPORTS: [&str; 8] = [
    "forebay:policy/configure@0.1.0",
    "forebay:policy/balance-plan@0.1.0",
    "forebay:policy/balance-pick@0.1.0",
    "forebay:policy/route@0.1.0",
    "forebay:policy/reuse@0.1.0",
    "forebay:policy/reuse-plan@0.1.0",
    "forebay:policy/classify@0.1.0",
    "forebay:policy/admit@0.1.0",
];

/// The interfaces that it may import.
pub(super) const LOG: &str = "forebay:policy/log@0.1.0";
pub(super) const REQUEST: &str = "forebay:policy/request@0.1.0";
pub(super) const SERVERS: &str = "forebay:policy/servers@0.1.0";
pub(super) const EDITS: &str = "forebay:policy/edits@0.1.0";
pub(super) const MEASURES: &str = "forebay:policy/measures@0.1.0";
pub(super) const COUNTERS: &str = "forebay:policy/counters@0.1.0";
pub(super) const STORE: &str = "forebay:policy/store@0.1.0";
pub(super) const IMPORTS: [&str; 7] = [LOG, REQUEST, SERVERS, EDITS, MEASURES, COUNTERS, STORE];

/// What has to be granted for an import.
pub(super) fn grant(import: &str) -> Option<Grant> {
    match import {
        COUNTERS => Some(Grant::Counters),
        STORE => Some(Grant::Store),
        _ => None,
    }
}

/// Its text, for who writes a policy and for packing a core module: file names and contents.
pub const WIT: [(&str, &str); 13] = [
    ("package.wit", include_str!("../../wit/package.wit")),
    ("worlds.wit", include_str!("../../wit/worlds.wit")),
    ("configure.wit", include_str!("../../wit/configure.wit")),
    ("balance-plan.wit", include_str!("../../wit/balance-plan.wit")),
    ("balance-pick.wit", include_str!("../../wit/balance-pick.wit")),
    ("route.wit", include_str!("../../wit/route.wit")),
    ("reuse.wit", include_str!("../../wit/reuse.wit")),
    ("reuse-plan.wit", include_str!("../../wit/reuse-plan.wit")),
    ("classify.wit", include_str!("../../wit/classify.wit")),
    ("admit.wit", include_str!("../../wit/admit.wit")),
    ("host.wit", include_str!("../../wit/host.wit")),
    ("measures.wit", include_str!("../../wit/measures.wit")),
    ("granted.wit", include_str!("../../wit/granted.wit")),
];
