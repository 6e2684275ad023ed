//! Who runs a scenario: the simulator.

use super::{Ran, Runner, report};
use crate::sim::scenario::{Failure, Scenario};
use std::path::{Path, PathBuf};

/// The simulator with the real host of policies.
pub(super) struct Simulator {
    /// Where pictures go, if anybody wants them.
    pub(super) report: Option<PathBuf>,
}

impl Runner for Simulator {
    fn run(&self, file: &Path, seed: Option<u64>) -> Result<Ran, String> {
        let scenario = Scenario::load(file).map_err(|failure| failure.to_string())?;
        let outcome = match seed {
            Some(seed) => scenario.run_with(seed),
            None => scenario.run(),
        };
        match outcome {
            Ok(outcome) => {
                if let Some(folder) = &self.report {
                    report::write(folder, &page_of(file), &[report::series(&scenario, &outcome)])?;
                }
                Ok(Ran {
                    transcript: outcome.transcript().to_owned(),
                    failures: outcome.failures().to_vec(),
                })
            }
            Err(Failure::Broken(broken)) => Ok(Ran {
                transcript: String::new(),
                failures: vec![broken.to_string()],
            }),
            Err(failure) => Err(format!("{}: {failure}", file.display())),
        }
    }
}

/// The name of a scenario's page: its path in one word.
fn page_of(file: &Path) -> String {
    let parts = file.with_extension("");
    let parts = parts.components().filter_map(|part| match part {
        std::path::Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("-")
}
