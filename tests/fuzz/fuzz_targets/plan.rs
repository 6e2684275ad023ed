//! Plans of any numbers, checked as the host checks them, and executed by the core.

#![no_main]

#[path = "../hostile/plans.rs"]
mod plans;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| plans::play(input));
