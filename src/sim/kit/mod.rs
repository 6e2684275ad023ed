//! Whether a policy behaves: the same situations for each, drawn from a seed, and what is expected of any.
//!
//! ```text
//!  situations ──► the policy ──► answers ──► a finding of each check: what was seen, and where
//!       ▲                           │
//!       └── in flight, latency ◄────┘          (`load`: what is chosen has consequences)
//! ```
//!
//! It knows policies by the traits of [`crate::policy`] alone: a component is checked through its host, and a policy in
//! Rust as it is. What it says is about that configuration of the policy, and about these situations; a policy that
//! passes may still be a bad idea.
//!
//! | file | what is asked |
//! |---|---|
//! | `scene`, `question` | the servers and the requests that a policy is shown |
//! | `subject` | the policy: how it is asked, and what becomes of a fault |
//! | `load`, `starvation` | does every one of some equal servers get its share, also after a bad time? |
//! | `order` | do servers get the same wherever they stand in the table? |
//! | `vanished` | is a server chosen that is down, while others are not? |
//! | `movement` | how many keys move when a server goes? |
//! | `cost` | what does a call cost, and does memory stop growing? |
//! | `same` | are the same questions answered alike? |
//! | `faults` | is there a situation in which it traps, or in which its answer is refused? |

mod cost;
mod faults;
mod load;
mod movement;
mod order;
mod question;
mod same;
mod scene;
mod starvation;
mod subject;
mod vanished;

use crate::policy::Attachment;
use std::fmt;
use subject::{Stopped, Subject};

/// How much is asked. The same effort and the same policy give the same report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Where keys, draws, shuffles and times come from.
    pub seed: u64,
    /// Requests of a check that has servers stand still.
    pub requests: u32,
    /// Calls of each kind over which memory is watched.
    pub calls: u32,
    /// Seconds of virtual time before a server is slow, and while it is; three times as many follow.
    pub seconds: u32,
}

impl Effort {
    /// What a verdict needs: seconds on an idle machine.
    pub const WHOLE: Effort = Effort {
        seed: 1,
        requests: 4_000,
        calls: 100_000,
        seconds: 20,
    };
    /// What shows gross mistakes, for builds without optimisation.
    pub const QUICK: Effort = Effort {
        seed: 1,
        requests: 500,
        calls: 10_000,
        seconds: 5,
    };
}

/// What was found, in the order of the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// At least one of each check.
    pub findings: Vec<Finding>,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check.
    pub check: String,
    /// What it means.
    pub verdict: Verdict,
    /// What was seen.
    pub figure: String,
    /// Where it was seen.
    pub situation: String,
}

/// What a finding means, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It was not looked for: the policy does nothing of the kind.
    NotApplicable,
    /// As it should be.
    Ok,
    /// It may be meant so; if not, it is a mistake.
    Warning,
    /// A mistake.
    Failed,
}

/// Asks a policy whatever it answers, in all situations.
pub fn check(attachment: &dyn Attachment, effort: &Effort) -> Report {
    let mut subject = Subject::new(attachment, *effort);
    let checks: [(&str, Check); 8] = [
        ("starvation", starvation::check),
        ("order", order::check),
        ("down servers", vanished::check),
        ("movement", movement::check),
        ("fuel", cost::fuel),
        ("memory", cost::memory),
        ("determinism", same::check),
        ("faults", faults::check),
    ];
    let mut findings = Vec::new();
    for (name, check) in checks {
        match check(&mut subject) {
            Ok(found) => findings.extend(found.into_iter().map(|seen| seen.of(name))),
            Err(Stopped) => findings.push(Seen::nothing("a fault ended it: see `faults`").of(name)),
        }
    }
    Report { findings }
}

type Check = fn(&mut Subject<'_>) -> Result<Vec<Seen>, Stopped>;

/// A finding whose check is known to who made it.
struct Seen {
    /// What is added to the check's name.
    part: String,
    verdict: Verdict,
    figure: String,
    situation: String,
}

impl Seen {
    fn new(verdict: Verdict, figure: impl Into<String>, situation: impl Into<String>) -> Seen {
        Seen {
            part: String::new(),
            verdict,
            figure: figure.into(),
            situation: situation.into(),
        }
    }

    fn nothing(why: &str) -> Seen {
        Seen::new(Verdict::NotApplicable, why, "")
    }

    /// The same about a part of what is checked.
    fn part(self, part: impl Into<String>) -> Seen {
        let part = part.into();
        Seen { part, ..self }
    }

    fn of(self, check: &str) -> Finding {
        Finding {
            check: format!("{check} {}", self.part).trim_end().to_owned(),
            verdict: self.verdict,
            figure: self.figure,
            situation: self.situation,
        }
    }
}

impl Report {
    /// The worst that was found.
    pub fn worst(&self) -> Verdict {
        let verdicts = self.findings.iter().map(|finding| finding.verdict);
        verdicts.max().unwrap_or(Verdict::NotApplicable)
    }

    /// How many of them mean that.
    pub fn count(&self, verdict: Verdict) -> usize {
        let all = self.findings.iter();
        all.filter(|finding| finding.verdict == verdict).count()
    }
}

impl Verdict {
    /// All of them, the best first.
    pub const ALL: [Verdict; 4] = [
        Verdict::Ok,
        Verdict::Warning,
        Verdict::Failed,
        Verdict::NotApplicable,
    ];

    /// Its word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::NotApplicable => "not applicable",
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Failed => "FAILED",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let (word, check, figure) = (finding.verdict.word(), &finding.check, &finding.figure);
            writeln!(out, "  {word:<14}  {check:<21}  {figure}")?;
            if !finding.situation.is_empty() {
                writeln!(out, "{:41}{}", "", finding.situation)?;
            }
        }
        let counted = Verdict::ALL.map(|verdict| format!("{} {}", self.count(verdict), verdict.word()));
        writeln!(out, "  {}", counted.join(", "))
    }
}

#[cfg(test)]
mod tests;
