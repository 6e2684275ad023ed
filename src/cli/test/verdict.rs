//! What became of a scenario, in words, and what became of all of them, in one line.

use super::Ran;
use super::diff::unified;
use super::search::Scenario;
use super::snapshot::{Comparison, accepted, normal, pending};
use std::path::Path;
use std::time::Duration;

/// A scenario that was run, or was to be.
pub(super) struct Outcome {
    pub scenario: Scenario,
    /// Wall time of the run.
    pub took: Duration,
    pub end: End,
}

/// How the run of a scenario ended.
pub(super) enum End {
    /// It could not be run: the text to print.
    Refused(String),
    /// It was run, and compared unless the seed was another one.
    Ran(Ran, Option<Comparison>),
}

/// What counts of an outcome, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    AsBefore,
    /// Run with another seed, and nothing to object to.
    Holds,
    Accepted,
    Differs,
    New,
    Fails,
    /// The scenario or its snapshot cannot be used.
    Unusable,
}

impl Class {
    const ALL: [Class; 7] = [
        Class::AsBefore,
        Class::Holds,
        Class::Accepted,
        Class::Differs,
        Class::New,
        Class::Fails,
        Class::Unusable,
    ];

    /// Whether somebody has to look.
    pub(super) fn is_fine(self) -> bool {
        self <= Class::Accepted
    }

    /// The exit code that it asks for; the largest of all counts.
    pub(super) fn exit_code(self) -> u8 {
        match self {
            it if it.is_fine() => 0,
            Class::Unusable => super::WRONG_USE,
            _ => super::DIFFERENT,
        }
    }

    fn counted(self, count: usize) -> String {
        let word = match (self, count) {
            (Class::AsBefore, _) => "as before",
            (Class::Holds, 1) => "holds",
            (Class::Holds, _) => "hold",
            (Class::Accepted, _) => "accepted",
            (Class::Differs, 1) => "differs",
            (Class::Differs, _) => "differ",
            (Class::New, _) => "new",
            (Class::Fails, 1) => "fails",
            (Class::Fails, _) => "fail",
            (Class::Unusable, _) => "unusable",
        };
        format!("{count} {word}")
    }
}

/// What is said about one outcome.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub scenario: Scenario,
    pub took: Duration,
    pub class: Class,
    /// One line, or what the runner refused with; empty if there is nothing to say.
    pub head: String,
    /// What failed and what differs, in lines.
    pub body: String,
}

/// Says what is to be said.
pub(super) fn judge(outcome: &Outcome) -> Verdict {
    let (class, head, body) = match &outcome.end {
        End::Refused(why) => (Class::Unusable, why.trim_end().to_owned(), String::new()),
        End::Ran(ran, comparison) => {
            let class = class(ran, comparison.as_ref());
            let head = head(&outcome.scenario.file, class, comparison.as_ref());
            (
                class,
                head,
                body(&outcome.scenario.file, ran, comparison.as_ref()),
            )
        }
    };
    Verdict {
        scenario: outcome.scenario.clone(),
        took: outcome.took,
        class,
        head,
        body,
    }
}

fn class(ran: &Ran, comparison: Option<&Comparison>) -> Class {
    match comparison {
        Some(Comparison::Unreadable(_)) => Class::Unusable,
        _ if !ran.failures.is_empty() => Class::Fails,
        None => Class::Holds,
        Some(Comparison::Same) => Class::AsBefore,
        Some(Comparison::New) => Class::New,
        Some(Comparison::Changed { .. }) => Class::Differs,
    }
}

fn head(file: &Path, class: Class, comparison: Option<&Comparison>) -> String {
    let shown = file.display();
    let compared = match comparison {
        Some(Comparison::Unreadable(why)) => {
            return format!(
                "{}: cannot be read as a snapshot: {why}; if nothing in it is worth keeping, `forebay test --accept {shown}` \
                 writes it anew",
                accepted(file).display()
            );
        }
        Some(Comparison::Changed { .. }) => Some("differs from its snapshot"),
        Some(Comparison::New) => Some("has no snapshot yet"),
        Some(Comparison::Same) | None => None,
    };
    match (class, compared) {
        (Class::Fails, Some(compared)) => format!("{shown}: fails, and {compared}"),
        (Class::Fails, None) => format!("{shown}: fails"),
        (_, Some(compared)) => format!("{shown}: {compared}"),
        (_, None) => String::new(),
    }
}

fn body(file: &Path, ran: &Ran, comparison: Option<&Comparison>) -> String {
    let mut body: String = ran.failures.iter().map(|it| failed(it)).collect();
    let (was, is) = (accepted(file), pending(file));
    let before = match comparison {
        Some(Comparison::Changed { before }) => (name(&was), before.as_str()),
        Some(Comparison::New) => ("/dev/null".to_owned(), ""),
        _ => return body,
    };
    body += &unified((&before.0, before.1), (&name(&is), &normal(&ran.transcript)));
    body
}

fn failed(message: &str) -> String {
    format!("  failed: {}\n", message.trim_end().replace('\n', "\n    "))
}

fn name(file: &Path) -> String {
    file.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The last line: how many scenarios, and what became of them.
pub(super) fn summary(verdicts: &[Verdict], seed: Option<u64>) -> String {
    let count = |class| verdicts.iter().filter(|it| it.class == class).count();
    let parts: Vec<String> = Class::ALL
        .into_iter()
        .map(|class| (class, count(class)))
        .filter(|(_, count)| *count > 0)
        .map(|(class, count)| class.counted(count))
        .collect();
    let waiting = count(Class::Differs) + count(Class::New);
    let all = match verdicts.len() {
        1 => "1 scenario".to_owned(),
        many => format!("{many} scenarios"),
    };
    let parts = parts.join(", ");
    match seed {
        Some(seed) => format!("{all} with seed {seed}: {parts} (snapshots were not compared)"),
        None if waiting > 0 => format!("{all}: {parts} (--review asks about each, --accept takes all)"),
        None => format!("{all}: {parts}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn outcome(failures: &[&str], comparison: Option<Comparison>) -> Outcome {
        let ran = Ran {
            transcript: "new\n".to_owned(),
            failures: failures.iter().map(|it| (*it).to_owned()).collect(),
        };
        ended(End::Ran(ran, comparison))
    }

    fn ended(end: End) -> Outcome {
        Outcome {
            scenario: Scenario {
                file: PathBuf::from("p/a.toml"),
                name: "a".to_owned(),
                about: None,
            },
            took: Duration::ZERO,
            end,
        }
    }

    fn changed() -> Option<Comparison> {
        let before = "old".to_owned();
        Some(Comparison::Changed { before })
    }

    #[test]
    fn each_outcome_is_told_with_what_to_do() {
        let outcomes = [
            outcome(&[], Some(Comparison::Same)),
            outcome(&[], changed()),
            outcome(&[], Some(Comparison::New)),
            outcome(&["a gets 1 of 10"], Some(Comparison::Same)),
            outcome(&["a gets 1 of 10", "b waits"], changed()),
            outcome(&[], Some(Comparison::Unreadable("why".to_owned()))),
            outcome(&[], None),
            outcome(&["a gets 1 of 10"], None),
            ended(End::Refused("p/a.toml:3:1: no such key\n".to_owned())),
        ];
        let told: Vec<String> = outcomes
            .iter()
            .map(judge)
            .map(|it| format!("{:?}:{}\n{}", it.class, it.head, it.body))
            .collect();
        insta::assert_snapshot!(told.join("."), @"
        AsBefore:
        .Differs:p/a.toml: differs from its snapshot
        --- a.snap
        +++ a.snap.new
        @@ -1 +1 @@
        -old
        +new
        .New:p/a.toml: has no snapshot yet
        --- /dev/null
        +++ a.snap.new
        @@ -0,0 +1 @@
        +new
        .Fails:p/a.toml: fails
          failed: a gets 1 of 10
        .Fails:p/a.toml: fails, and differs from its snapshot
          failed: a gets 1 of 10
          failed: b waits
        --- a.snap
        +++ a.snap.new
        @@ -1 +1 @@
        -old
        +new
        .Unusable:p/a.snap: cannot be read as a snapshot: why; if nothing in it is worth keeping, `forebay test --accept p/a.toml` writes it anew
        .Holds:
        .Fails:p/a.toml: fails
          failed: a gets 1 of 10
        .Unusable:p/a.toml:3:1: no such key
        ");
    }

    #[test]
    fn the_summary_counts_what_there_is() {
        let verdict = |class| {
            let mut verdict = judge(&outcome(&[], Some(Comparison::Same)));
            verdict.class = class;
            verdict
        };
        let told = |classes: &[Class], seed| {
            let verdicts: Vec<Verdict> = classes.iter().copied().map(verdict).collect();
            summary(&verdicts, seed)
        };
        assert_eq!(told(&[Class::AsBefore], None), "1 scenario: 1 as before");
        assert_eq!(
            told(&[Class::Differs, Class::AsBefore, Class::AsBefore], None),
            "3 scenarios: 2 as before, 1 differs (--review asks about each, --accept takes all)"
        );
        assert_eq!(
            told(&[Class::Fails, Class::Holds, Class::Fails], Some(7)),
            "3 scenarios with seed 7: 1 holds, 2 fail (snapshots were not compared)"
        );
        assert_eq!(
            told(&Class::ALL, None),
            "7 scenarios: 1 as before, 1 holds, 1 accepted, 1 differs, 1 new, 1 fails, 1 unusable \
             (--review asks about each, --accept takes all)"
        );
    }

    #[test]
    fn exit_codes() {
        let codes = Class::ALL.map(Class::exit_code);
        assert_eq!(codes, [0, 0, 0, 1, 1, 1, 2]);
    }
}
