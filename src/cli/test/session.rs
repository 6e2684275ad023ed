//! What happens with each outcome: it is told, its snapshot accepted or left, and all of them summed up.
//!
//! A transcript is accepted only if nothing failed in its run: what a broken rule brings about is nothing to keep.

use super::search::Scenario;
use super::snapshot::{self, Comparison};
use super::verdict::{Class, End, Outcome, Verdict, judge, summary};
use super::{Ran, WRONG_USE, diff, junit};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Duration;

/// Columns of the line of progress, so that it stays one line.
const PROGRESS_MAX: usize = 79;

/// Where the command reads and writes.
pub(super) struct Stage<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// Where questions are answered, if anybody sits there.
    pub answers: Option<&'a mut dyn BufRead>,
    /// Whether `out` shows colours.
    pub styled: bool,
    /// Whether `err` shows a line that is rewritten.
    pub progress: bool,
}

/// What becomes of transcripts that differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// They are left beside the accepted ones.
    Leave,
    Accept,
    Review,
    /// As `Leave`, after somebody had enough of reviewing: differences are not shown any more.
    Quit,
}

/// What becomes of one transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Accepted,
    Left,
}

/// One run of the command.
pub(super) struct Session<'a, 'b> {
    stage: &'a mut Stage<'b>,
    mode: Mode,
    verdicts: Vec<Verdict>,
    /// Columns of the line of progress that stands there.
    shown: usize,
}

impl<'a, 'b> Session<'a, 'b> {
    pub(super) fn new(stage: &'a mut Stage<'b>, mode: Mode) -> Session<'a, 'b> {
        Session {
            stage,
            mode,
            verdicts: Vec::new(),
            shown: 0,
        }
    }

    /// Shows that so many scenarios have ended, this one last.
    pub(super) fn progress(&mut self, ended: usize, all: usize, last: &Path) -> io::Result<()> {
        if !self.stage.progress {
            return Ok(());
        }
        let line = format!("{ended}/{all} {}", last.display());
        let line: String = line.chars().take(PROGRESS_MAX).collect();
        write!(self.stage.err, "\r{line:<0$}", self.shown)?;
        self.shown = line.chars().count();
        self.stage.err.flush()
    }

    fn clear_progress(&mut self) -> io::Result<()> {
        if self.shown > 0 {
            write!(self.stage.err, "\r{:1$}\r", "", self.shown)?;
            self.stage.err.flush()?;
            self.shown = 0;
        }
        Ok(())
    }

    /// Tells an outcome and does with its snapshot what the mode says.
    pub(super) fn settle(&mut self, outcome: &Outcome) -> io::Result<()> {
        let mut verdict = judge(outcome);
        self.tell(&verdict)?;
        if let End::Ran(ran, Some(comparison)) = &outcome.end {
            let fate = self.fate(ran, comparison)?;
            match keep(&outcome.scenario, ran, comparison, fate) {
                Ok(()) if fate == Fate::Left => {}
                Ok(()) => {
                    verdict.class = Class::Accepted;
                    let snapshot = snapshot::accepted(&outcome.scenario.file);
                    writeln!(self.stage.out, "  accepted: {}", snapshot.display())?;
                }
                Err(error) => {
                    verdict.class = Class::Unusable;
                    writeln!(self.stage.err, "{error}")?;
                    verdict.head = error;
                }
            }
        }
        self.verdicts.push(verdict);
        Ok(())
    }

    fn tell(&mut self, verdict: &Verdict) -> io::Result<()> {
        if verdict.head.is_empty() {
            return Ok(());
        }
        self.clear_progress()?;
        let stream = match verdict.class {
            Class::Unusable => &mut self.stage.err,
            _ => &mut self.stage.out,
        };
        writeln!(stream, "{}", verdict.head)?;
        match (self.mode, self.stage.styled) {
            (Mode::Quit, _) => Ok(()),
            (_, true) => write!(stream, "{}", diff::coloured(&verdict.body)),
            (_, false) => write!(stream, "{}", verdict.body),
        }
    }

    fn fate(&mut self, ran: &Ran, comparison: &Comparison) -> io::Result<Fate> {
        match (self.mode, comparison) {
            (Mode::Leave | Mode::Quit, _) | (_, Comparison::Same) => Ok(Fate::Left),
            _ if !ran.failures.is_empty() => {
                writeln!(self.stage.out, "  not accepted while it fails")?;
                Ok(Fate::Left)
            }
            (Mode::Accept, _) => Ok(Fate::Accepted),
            (Mode::Review, Comparison::Unreadable(_)) => Ok(Fate::Left),
            (Mode::Review, _) => self.ask(),
        }
    }

    /// What somebody wants of what was just shown; the end of the answers is a `q`.
    fn ask(&mut self) -> io::Result<Fate> {
        loop {
            write!(self.stage.out, "a accept, s skip, q quit: ")?;
            self.stage.out.flush()?;
            let mut answer = String::new();
            if let Some(answers) = &mut self.stage.answers {
                answers.read_line(&mut answer)?;
            }
            match answer.trim() {
                "a" => return Ok(Fate::Accepted),
                "s" => return Ok(Fate::Left),
                it if it == "q" || answer.is_empty() => {
                    self.mode = Mode::Quit;
                    return Ok(Fate::Left);
                }
                _ => {}
            }
        }
    }

    /// Writes the report if one is asked for, says the last line, and tells the exit code.
    pub(super) fn finish(
        mut self,
        seed: Option<u64>,
        report: Option<&Path>,
        took: Duration,
    ) -> io::Result<u8> {
        self.clear_progress()?;
        let codes = self.verdicts.iter().map(|it| it.class.exit_code());
        let mut code = codes.max().unwrap_or_default();
        if let Some(file) = report
            && let Err(error) = snapshot::write_whole(file, &junit::report(&self.verdicts, took))
        {
            writeln!(self.stage.err, "{}: cannot be written: {error}", file.display())?;
            code = WRONG_USE;
        }
        writeln!(self.stage.out, "{}", summary(&self.verdicts, seed))?;
        Ok(code)
    }
}

/// Writes what the comparison asks for, and says what could not be.
fn keep(scenario: &Scenario, ran: &Ran, comparison: &Comparison, fate: Fate) -> Result<(), String> {
    let (file, written) = match (comparison, fate) {
        (_, Fate::Accepted) => (
            snapshot::accepted(&scenario.file),
            snapshot::accept(scenario, &ran.transcript),
        ),
        (Comparison::Same, Fate::Left) => (
            snapshot::pending(&scenario.file),
            snapshot::forget_pending(&scenario.file),
        ),
        (Comparison::New | Comparison::Changed { .. }, Fate::Left) => (
            snapshot::pending(&scenario.file),
            snapshot::leave_pending(scenario, &ran.transcript),
        ),
        (Comparison::Unreadable(_), Fate::Left) => return Ok(()),
    };
    written.map_err(|error| format!("{}: cannot be written: {error}", file.display()))
}
