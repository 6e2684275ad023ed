//! The host of policies against guests written by hand: what it loads, what it refuses, how each fault ends.
//!
//! Nothing here needs a toolchain: a guest is a core module in text, packed by the host's own packer.

mod engines;
mod faults;
mod guests;
mod kit;
mod loading;
mod quarantine;
mod reach;
