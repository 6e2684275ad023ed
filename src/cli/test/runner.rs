//! Who runs a scenario: the simulator.

use super::{Ran, Runner};
use crate::sim::scenario::{Failure, Scenario};
use std::path::Path;

/// The simulator with the real host of policies.
pub(super) struct Simulator;

impl Runner for Simulator {
    fn run(&self, file: &Path, seed: Option<u64>) -> Result<Ran, String> {
        let scenario = Scenario::load(file).map_err(|failure| failure.to_string())?;
        let outcome = match seed {
            Some(seed) => scenario.run_with(seed),
            None => scenario.run(),
        };
        match outcome {
            Ok(outcome) => Ok(Ran {
                transcript: outcome.transcript().to_owned(),
                failures: outcome.failures().to_vec(),
            }),
            Err(Failure::Broken(broken)) => Ok(Ran {
                transcript: String::new(),
                failures: vec![broken.to_string()],
            }),
            Err(failure) => Err(format!("{}: {failure}", file.display())),
        }
    }
}
