//! Who runs a scenario: the simulator.

use super::{Ran, Runner};
use std::path::Path;

/// The simulator with the real host of policies.
pub(super) struct Simulator;

impl Runner for Simulator {
    fn run(&self, file: &Path, _seed: Option<u64>) -> Result<Ran, String> {
        Err(format!(
            "{}: cannot be run: the simulator's front is not built in",
            file.display()
        ))
    }
}
