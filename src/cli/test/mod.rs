//! `forebay test PATH…`: runs scenarios and compares the transcript of each with the accepted one.
//!
//! A scenario is a TOML file that says what happens to a cluster (`search` finds them); who runs it is behind `Runner`.
//! Scenarios run on many threads (`threads`) and are told in the order of their paths (`session`, `verdict`). A
//! transcript is compared with the snapshot beside its scenario (`snapshot`, `diff`). Exit code: 0 all fine, 1 something
//! differs or fails, 2 a wrong command line or a file that cannot be used.

mod diff;
mod junit;
pub mod recorded;
mod report;
mod runner;
mod search;
mod session;
mod snapshot;
mod threads;
mod verdict;
mod what_if;

#[cfg(test)]
mod tests;

use crate::cli::check::is_styled;
use clap::Args;
use search::Scenario;
use session::{Mode, Session, Stage};
use std::any::Any;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use threads::{Step, run_in_order};
use verdict::{End, Outcome};

/// Exit code when a transcript differs, or an assertion or an invariant does not hold.
const DIFFERENT: u8 = 1;
/// Exit code when a command line or a file cannot be used.
const WRONG_USE: u8 = 2;

/// Arguments of `forebay test`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "A scenario is a TOML file with a table [scenario]: a cluster, its traffic and what happens to it, in virtual \
    time. Its transcript is compared with the snapshot beside it, NAME.snap for NAME.toml. One that differs is left as \
    NAME.snap.new; --review and --accept put it in the snapshot's place, and so does `cargo insta review`.\n\n\
    Examples:\n  \
    forebay test                              all scenarios below this folder\n  \
    forebay test plugins/canary --review      one folder's, asking about each that differs\n  \
    forebay test --filter overload --seed 7   those about overload, with another seed than their own\n  \
    forebay test --junit report.xml --jobs 2  for continuous integration\n  \
    forebay test one.toml --set backend.app.balance=roundrobin --report out\n  \
    forebay test one.toml --replay access.log --set backend.app.maxconn=8\n\n\
    Exit codes: 0 all fine, 1 something differs or fails, 2 a wrong command line or a file that cannot be used."
)]
pub struct TestArgs {
    /// Scenarios, or folders to search for them with all that is below (hidden ones, `target` and links are not entered)
    #[arg(value_name = "PATH", default_value = ".")]
    pub paths: Vec<PathBuf>,
    /// Only scenarios whose path contains this text; repeated: one of these texts [default: all]
    #[arg(long = "filter", value_name = "TEXT")]
    pub filters: Vec<String>,
    /// Seed of all that is left to chance, in the place of each file's own; only assertions and invariants count then,
    /// snapshots are not compared [default: the file's own]
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["accept", "review"])]
    pub seed: Option<u64>,
    /// How many scenarios run at the same time [default: one per core]
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,
    /// Also write a report in JUnit's XML into this file [default: none]
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also write charts of each run, NAME.html, into this folder [default: none]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Run one scenario as it is and with this change, and compare the two; KEY as in the file, with dots, such as
    /// backend.app.balance=roundrobin or server.0.service=20ms; repeated: all of them
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with_all = ["accept", "review", "junit", "list"])]
    pub changes: Vec<String>,
    /// Run one scenario with the requests of this recorded access log (JSON or human) in the place of its own traffic
    #[arg(long, value_name = "LOG", conflicts_with_all = ["accept", "review", "junit", "list"])]
    pub replay: Option<PathBuf>,
    /// Accept all new and changed transcripts of scenarios in which nothing failed [default: leave them beside
    /// the snapshots as NAME.snap.new]
    #[arg(long, conflicts_with = "review")]
    pub accept: bool,
    /// Ask on the terminal about each new or changed transcript
    #[arg(long)]
    pub review: bool,
    /// Only print the paths of the scenarios that would run
    #[arg(long, conflicts_with_all = ["accept", "review", "seed", "jobs", "junit"])]
    pub list: bool,
}

/// One scenario, run.
pub(super) struct Ran {
    /// What is compared.
    pub transcript: String,
    /// Assertions that did not hold, one message each.
    pub failures: Vec<String>,
}

/// Who runs scenarios.
pub(super) trait Runner: Sync {
    /// Runs one scenario file, by its own seed or another. The error is what is wrong with the file, the whole text with
    /// file:line:column, ready to print.
    fn run(&self, file: &Path, seed: Option<u64>) -> Result<Ran, String>;
}

/// Runs the command.
pub fn run(args: &TestArgs) -> anyhow::Result<ExitCode> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let simulator = runner::Simulator {
        report: args.report.clone(),
    };
    let (mut answers, mut out, mut err) = (stdin.lock(), &stdout, &stderr);
    // Neither stream is locked for the run: whoever runs scenarios may print on its own threads.
    let mut stage = Stage {
        out: &mut out,
        err: &mut err,
        answers: stdin.is_terminal().then_some(&mut answers),
        styled: is_styled(&stdout),
        progress: stderr.is_terminal(),
    };
    Ok(ExitCode::from(test(args, &simulator, &mut stage)?))
}

fn test(args: &TestArgs, runner: &dyn Runner, stage: &mut Stage<'_>) -> io::Result<u8> {
    if args.review && stage.answers.is_none() {
        let advice = "use --accept, or `cargo insta review` after a run";
        writeln!(
            stage.err,
            "forebay: --review asks on a terminal, which standard input is not; {advice}"
        )?;
        return Ok(WRONG_USE);
    }
    match search::find(&args.paths, &args.filters) {
        Ok(scenarios) if !args.changes.is_empty() || args.replay.is_some() => {
            what_if(args, &scenarios, stage)
        }
        Ok(scenarios) if args.list => list(&scenarios, stage.out).map(|()| 0),
        Ok(scenarios) => run_all(args, &scenarios, runner, stage),
        Err(problem) => writeln!(stage.err, "forebay: {problem}").map(|()| WRONG_USE),
    }
}

/// One scenario as it is and changed.
fn what_if(args: &TestArgs, scenarios: &[Scenario], stage: &mut Stage<'_>) -> io::Result<u8> {
    let [scenario] = scenarios else {
        let problem = "--set and --replay change one scenario: name it";
        writeln!(stage.err, "forebay: {problem} ({} were found)", scenarios.len())?;
        return Ok(WRONG_USE);
    };
    let asked = what_if::Asked {
        scenario: &scenario.file,
        changes: &args.changes,
        log: args.replay.as_deref(),
        seed: args.seed,
        report: args.report.as_deref(),
    };
    match what_if::compare(&asked) {
        Ok(text) => write!(stage.out, "{text}").map(|()| 0),
        Err(problem) => writeln!(stage.err, "forebay: {problem}").map(|()| WRONG_USE),
    }
}

fn list(scenarios: &[Scenario], out: &mut dyn Write) -> io::Result<()> {
    scenarios
        .iter()
        .try_for_each(|it| writeln!(out, "{}", it.file.display()))
}

fn run_all(
    args: &TestArgs,
    scenarios: &[Scenario],
    runner: &dyn Runner,
    stage: &mut Stage<'_>,
) -> io::Result<u8> {
    let begun = Instant::now();
    let mut session = Session::new(stage, mode(args));
    // Nobody is asked while progress is shown.
    let mut to_review = Vec::new();
    run_in_order(
        scenarios,
        args.jobs.unwrap_or_else(one_per_core),
        |scenario| run_one(scenario, runner, args.seed),
        |step| match step {
            Step::Ended(ended, last) => session.progress(ended, scenarios.len(), &last.file),
            Step::Next(outcome) if args.review => {
                to_review.push(outcome);
                Ok(())
            }
            Step::Next(outcome) => session.settle(&outcome),
        },
    )?;
    let took = begun.elapsed();
    to_review.iter().try_for_each(|it| session.settle(it))?;
    session.finish(args.seed, args.junit.as_deref(), took)
}

fn mode(args: &TestArgs) -> Mode {
    match (args.accept, args.review) {
        (true, _) => Mode::Accept,
        (_, true) => Mode::Review,
        _ => Mode::Leave,
    }
}

fn one_per_core() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn run_one(scenario: &Scenario, runner: &dyn Runner, seed: Option<u64>) -> Outcome {
    let begun = Instant::now();
    // A panic is a failure of this scenario; the others still run.
    let run = AssertUnwindSafe(|| runner.run(&scenario.file, seed));
    let end = match catch_unwind(run) {
        Ok(Ok(ran)) => {
            let comparison = match seed {
                None => Some(snapshot::compare(&scenario.file, &ran.transcript)),
                Some(_) => None,
            };
            End::Ran(ran, comparison)
        }
        Ok(Err(why)) => End::Refused(why),
        Err(panic) => End::Ran(panicked(panic.as_ref()), None),
    };
    Outcome {
        scenario: scenario.clone(),
        took: begun.elapsed(),
        end,
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Ran {
    let static_text = panic.downcast_ref::<&str>().copied();
    let text = static_text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Ran {
        transcript: String::new(),
        failures: vec![format!("the run panicked: {}", text.unwrap_or("without a word"))],
    }
}
