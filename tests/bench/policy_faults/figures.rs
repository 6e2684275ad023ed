//! From what was measured to a row, and to the promises that do not hold.

use crate::kinds::Kind;
use crate::load::Answer;
use crate::proxy::Said;
use crate::{CPU_MORE_MAX, LATENCY_MAX};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Reasons that say of a question that it was not asked.
const NOT_ASKED: [&str; 2] = ["budget", "quarantined"];

/// What the steady load saw.
pub(crate) struct Fleeting {
    pub(crate) asked: Vec<Answer>,
    pub(crate) other: Vec<Answer>,
    pub(crate) begun: Instant,
    /// The first line about it.
    pub(crate) quarantined: Option<Said>,
    /// From the metrics, by reason.
    pub(crate) faults: BTreeMap<String, u64>,
}

/// CPU per request, relative to a process without policies.
pub(crate) struct Cost {
    /// Of the one with the policy in quarantine.
    pub(crate) faulty: f64,
    /// Of another one without policies: the noise.
    pub(crate) same: f64,
}

/// A line of the table.
pub(crate) struct Row;

impl Row {
    pub(crate) const HEADER: &str = "kind                    requests failed | asked ms until quarantine, later | other ms \
        until quarantine, later | quarantined | CPU: faulty same  | faults";

    pub(crate) fn of(kind: &str, seen: &Fleeting, cost: Option<&Cost>) -> String {
        let latencies = |answers: &[Answer]| {
            let (before, later) = seen.split(answers);
            format!("{} , {}", Latencies::of(&before), Latencies::of(&later))
        };
        let after = seen.quarantined.as_ref().map_or("never".to_owned(), |said| {
            format!("{:.3} s", seen.after(said).as_secs_f64())
        });
        let cost = cost.map_or("-".to_owned(), |it| format!("{:.3} {:.3}", it.faulty, it.same));
        let faults: Vec<String> = seen
            .faults
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        format!(
            "{kind:23} {:8} {:6} | {} | {} | {after:>11} | {cost:>17} | {}",
            seen.asked.len() + seen.other.len(),
            seen.failed(),
            latencies(&seen.asked),
            latencies(&seen.other),
            faults.join(", "),
        )
    }
}

impl Fleeting {
    /// Promises about requests that do not hold.
    pub(crate) fn broken(&self, kind: &str) -> Vec<String> {
        let mut broken = Vec::new();
        if self.failed() > 0 {
            broken.push(format!("{kind}: {} requests failed", self.failed()));
        }
        for (listener, answers) in [("asked", &self.asked), ("other", &self.other)] {
            let slow: Vec<Duration> = answers
                .iter()
                .map(|it| it.took)
                .filter(|it| *it > LATENCY_MAX)
                .collect();
            if let Some(worst) = slow.iter().max() {
                let count = slow.len();
                broken.push(format!(
                    "{kind}: {count} requests on `{listener}` took longer than {LATENCY_MAX:?}, the worst {worst:?}"
                ));
            }
        }
        broken
    }

    /// What operators were not told, or told wrongly.
    pub(crate) fn unnoticed(&self, kind: &Kind) -> Vec<String> {
        let (name, reason) = (kind.name, kind.reason.word());
        let mut broken = Vec::new();
        match &self.quarantined {
            None => broken.push(format!("{name}: never quarantined")),
            Some(said) => {
                let wanted = ["policy=faulty", "at=asked", &format!("reason={reason}")];
                if let Some(absent) = wanted.iter().find(|part| !said.line.contains(*part)) {
                    broken.push(format!("{name}: no {absent} in {:?}", said.line));
                }
            }
        }
        if !self.faults.contains_key(reason) {
            broken.push(format!("{name}: no fault counted as {reason}: {:?}", self.faults));
        }
        let others = |it: &&String| it.as_str() != reason && !NOT_ASKED.contains(&it.as_str());
        if let Some(other) = self.faults.keys().find(others) {
            broken.push(format!(
                "{name}: faults counted as {other}, which is not what happened"
            ));
        }
        broken
    }

    fn failed(&self) -> usize {
        let all = self.asked.iter().chain(&self.other);
        all.filter(|answer| !answer.good).count()
    }

    fn after(&self, said: &Said) -> Duration {
        said.at.saturating_duration_since(self.begun)
    }

    /// What was due before quarantine, and what was due later.
    fn split(&self, answers: &[Answer]) -> (Vec<Duration>, Vec<Duration>) {
        let until = self.quarantined.as_ref().map(|said| said.at);
        let (before, later): (Vec<_>, Vec<_>) = answers
            .iter()
            .partition(|answer| until.is_none_or(|until| answer.due < until));
        let times = |answers: Vec<Answer>| answers.iter().map(|answer| answer.took).collect();
        (times(before), times(later))
    }
}

impl Cost {
    /// Whether it costs more than was promised, beyond what two equal processes differ by.
    pub(crate) fn broken(&self, kind: &str) -> Option<String> {
        let more = self.faulty - self.same;
        (more > CPU_MORE_MAX).then(|| {
            let (more, most) = (more * 100.0, CPU_MORE_MAX * 100.0);
            format!(
                "{kind}: {more:.1} % more CPU per request after quarantine, at most {most} % are promised"
            )
        })
    }
}

/// 99th percentile and maximum.
struct Latencies(Option<(Duration, Duration)>);

impl Latencies {
    fn of(times: &[Duration]) -> Latencies {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let Some(worst) = sorted.last().copied() else {
            return Latencies(None);
        };
        Latencies(Some((sorted[(sorted.len() - 1) * 99 / 100], worst)))
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        match self.0 {
            Some((most, all)) => write!(
                out,
                "p99 {:5.2} max {:5.2}",
                milliseconds(most),
                milliseconds(all)
            ),
            None => write!(out, "{:>19}", "-"),
        }
    }
}

/// The middle one; of an even number, the upper middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
