//! Scenarios: what `forebay test` runs, and what a test in Rust can run as well.
//!
//! ```no_run
//! use forebay::sim::scenario::Scenario;
//!
//! let scenario = Scenario::load("scenarios/one-slow.toml".as_ref()).expect("a scenario");
//! let outcome = scenario.run().expect("no invariant is broken");
//! assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
//! println!("{}", outcome.transcript());
//! ```
//!
//! The configuration becomes what it becomes in the proxy: the registry, the planner, the policies' host and the tables are
//! those of production. Policies run on fuel and are told the simulation's time, so one seed is one run.

#[cfg(feature = "wasm")]
mod components;
mod expect;
mod operator;
mod transcript;
mod world;

use super::run::Run;
use super::{Broken, Report, Sample};
use crate::config::scenario as spec;
use crate::control::Loader;
use crate::decide::settings::Micros;
use crate::shared::key::KeySecret;
use operator::Operator;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "wasm")]
pub use components::Components;

/// A scenario that was read.
pub struct Scenario {
    spec: spec::Scenario,
    name: String,
    loader: Option<Arc<dyn Loader>>,
}

/// Why there is no outcome.
#[derive(Debug)]
pub enum Failure {
    /// What is wrong with the file, with file, line and column.
    File(String),
    /// What could not be loaded, one text each.
    Policies(Vec<String>),
    /// An invariant did not hold.
    Broken(Broken),
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct Outcome {
    report: Report,
    policies: Vec<PolicyRow>,
    failures: Vec<String>,
    transcript: String,
}

/// What was counted of a policy in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRow {
    /// Its name in the configuration.
    pub policy: String,
    /// The backend or listener.
    pub place: String,
    /// Questions that it was asked.
    pub calls: u64,
    /// Answers that were given again without being asked.
    pub remembered: u64,
    /// Answers without an opinion.
    pub abstained: u64,
    /// Answers that named nobody who takes requests.
    pub unusable: u64,
    /// Requests that it did not let wait.
    pub rejected: u64,
    /// The most work that one call took, where an expectation is about it.
    pub fuel: Option<u64>,
    /// Answers that were not used, by reason.
    pub faults: Vec<(&'static str, u64)>,
}

impl Scenario {
    /// Reads a file. Policies are loaded by the host of this build, if it has one.
    ///
    /// # Errors
    /// Every mistake of the file.
    pub fn load(path: &Path) -> Result<Scenario, Failure> {
        Scenario::load_with(path, &[])
    }

    /// Reads a file as if some values in it were others: each change is `KEY=VALUE`, with dots in the key and numbers for
    /// places in a list.
    ///
    /// # Errors
    /// Every mistake of the file or of a change.
    pub fn load_with(path: &Path, changes: &[String]) -> Result<Scenario, Failure> {
        let spec = spec::load(path, changes).map_err(|errors| Failure::File(errors.to_string()))?;
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Scenario::new(spec, name).map_err(|found| Failure::File(format!("{}: {found}", path.display())))
    }

    /// Reads a text; relative paths in it begin at the current folder.
    ///
    /// # Errors
    /// Every mistake of the text.
    pub fn parse(text: &str, name: &str) -> Result<Scenario, Failure> {
        let spec = spec::parse(text, name, &[]).map_err(|errors| Failure::File(errors.to_string()))?;
        Scenario::new(spec, name.to_owned()).map_err(|found| Failure::File(format!("{name}: {found}")))
    }

    fn new(spec: spec::Scenario, name: String) -> Result<Scenario, String> {
        world::check(&spec)?;
        Ok(Scenario {
            spec,
            name,
            #[cfg(feature = "wasm")]
            loader: Some(Components::shared()),
            #[cfg(not(feature = "wasm"))]
            loader: None,
        })
    }

    /// The same with another way to load policies.
    pub fn loaded_by(mut self, loader: Arc<dyn Loader>) -> Scenario {
        self.loader = Some(loader);
        self
    }

    /// What it is there to show.
    pub fn about(&self) -> &str {
        &self.spec.about
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says.
    pub fn spec(&self) -> &spec::Scenario {
        &self.spec
    }

    /// What it says, to be changed before it runs.
    pub fn spec_mut(&mut self) -> &mut spec::Scenario {
        &mut self.spec
    }

    /// Runs it with its own seed.
    ///
    /// # Errors
    /// A policy that cannot be loaded, or an invariant that did not hold.
    pub fn run(&self) -> Result<Outcome, Failure> {
        self.run_with(self.spec.seed)
    }

    /// Runs it with another chance.
    ///
    /// # Errors
    /// As [`Scenario::run`].
    pub fn run_with(&self, seed: u64) -> Result<Outcome, Failure> {
        let secret = KeySecret::from_seed(seed);
        let mut operator =
            Operator::new(&self.spec, &secret, self.loader.clone()).map_err(Failure::Policies)?;
        let world = world::world(&self.spec);
        let report = Run::new(&world, &mut operator, seed)
            .finish()
            .map_err(Failure::Broken)?;
        let policies = operator.policies(&report);
        let failures = expect::failures(&self.spec.expect, &report, &policies);
        let transcript = transcript::write(self, &report, &policies, &failures);
        Ok(Outcome {
            report,
            policies,
            failures,
            transcript,
        })
    }
}

impl Outcome {
    /// The text that a snapshot holds: at most 200 lines.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// Expectations that did not hold, one sentence each.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// All figures.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// What was counted of each policy.
    pub fn policies(&self) -> &[PolicyRow] {
        &self.policies
    }

    /// How the servers stood over time.
    pub fn samples(&self) -> &[Sample] {
        &self.report.samples
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::File(text) => f.write_str(text),
            Failure::Policies(texts) => f.write_str(&texts.join("\n")),
            Failure::Broken(broken) => write!(f, "{broken}"),
        }
    }
}

impl std::error::Error for Failure {}

/// The examples of the manual are run.
#[cfg(all(doctest, feature = "wasm"))]
#[doc = include_str!("../../manual/testing.md")]
struct Manual;

fn micros(time: std::time::Duration) -> Micros {
    Micros::try_from(time.as_micros()).unwrap_or(Micros::MAX)
}
