//! Black-box tests: the real `forebay` binary on real sockets, by subject. The kit is in [`kit`].
//!
//! A test names the clause or the RFC it shows. It starts its own proxy and its own origins on ports of their own, so
//! all of them may run at once.

#![allow(
    clippy::disallowed_types,
    reason = "a poisoned lock is a failed test; std's say so"
)]

mod kit;

mod balancing;
mod bodies;
mod dialogue;
mod drain;
mod endings;
mod forwarding;
mod limits;
mod listeners;
#[cfg(feature = "wasm")]
mod measuring;
mod operating;
#[cfg(feature = "wasm")]
mod policies;
#[cfg(feature = "wasm")]
mod policy_loading;
mod pools;
mod queues;
mod reload;
mod replaying;
mod retries;
mod routing;
mod sharing;
#[cfg(feature = "wasm")]
mod tenancy;
mod tunnels;
#[cfg(feature = "wasm")]
mod ushering;
