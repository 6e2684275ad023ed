//! A hostile guest, whose script is the input, in the real host.

#![no_main]

#[path = "../hostile/mod.rs"]
mod hostile;

use hostile::{Ends, Stage};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static STAGE: LazyLock<Stage> = LazyLock::new(Stage::new);

fuzz_target!(|input: &[u8]| STAGE.play(input, &mut Ends::new()));
