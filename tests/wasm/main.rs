//! The host of policies against guests written by hand: what it loads, what it refuses, how each fault ends; and the
//! components that are shipped.
//!
//! Nothing here needs a toolchain: a guest by hand is a core module in text, packed by the host's own packer; what is
//! shipped is committed.

mod checking;
mod engines;
mod faults;
mod granting;
mod guests;
mod hostile;
mod isolation;
mod kit;
mod loading;
mod measuring;
mod operating_system;
mod quarantine;
mod reach;
mod remembering;
mod sharing;
mod shipped;
#[path = "../fuzz/hostile/mod.rs"]
mod stage;
mod ushering;
