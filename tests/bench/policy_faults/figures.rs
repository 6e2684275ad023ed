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

/// How much more CPU a request takes, as a part of what it takes without policies.
pub(crate) struct Cost {
    /// With the policy in quarantine.
    pub(crate) faulty: Spread,
    /// In one process without policies against another: the noise.
    pub(crate) same: Spread,
}

/// A median and its standard error.
pub(crate) struct Spread {
    median: f64,
    error: f64,
}

/// A line of the table.
pub(crate) struct Row;

impl Row {
    pub(crate) const HEADER: &str = "kind                    requests failed | asked ms until quarantine, later | other ms \
        until quarantine, later | quarantined | CPU more, % (native against native), with 95 % confidence | faults";

    pub(crate) fn of(kind: &str, seen: &Fleeting, cost: Option<&Cost>) -> String {
        let latencies = |answers: &[Answer]| {
            let (before, later) = seen.split(answers);
            format!("{} , {}", Latencies::of(&before), Latencies::of(&later))
        };
        let after = seen.quarantined.as_ref().map_or("never".to_owned(), |said| {
            format!("{:.3} s", seen.after(said).as_secs_f64())
        });
        let cost = cost.map_or("-".to_owned(), |it| {
            format!("{} ({}) {}", it.faulty, it.same, it.verdict())
        });
        let faults: Vec<String> = seen
            .faults
            .iter()
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        format!(
            "{kind:23} {:8} {:6} | {} | {} | {after:>11} | {cost:>45} | {}",
            seen.asked.len() + seen.other.len(),
            seen.failures(),
            latencies(&seen.asked),
            latencies(&seen.other),
            faults.join(", "),
        )
    }
}

impl Fleeting {
    /// Whether requests failed, which none may.
    pub(crate) fn failed(&self, kind: &str) -> Option<String> {
        let failures = self.failures();
        (failures > 0).then(|| format!("{kind}: {failures} requests failed"))
    }

    /// Listeners on which requests took longer than was promised.
    pub(crate) fn slow(&self, kind: &str) -> Vec<String> {
        let listeners = [("asked", &self.asked), ("other", &self.other)];
        let slow = |(listener, answers): (&str, &Vec<Answer>)| {
            let slow = answers.iter().map(|it| it.took).filter(|it| *it > LATENCY_MAX);
            let worst = slow.clone().max()?;
            let count = slow.count();
            Some(format!(
                "{kind}: {count} requests on `{listener}` took longer than {LATENCY_MAX:?}, the worst {worst:?}"
            ))
        };
        listeners.into_iter().filter_map(slow).collect()
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

    fn failures(&self) -> usize {
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
    /// From the figures of each round.
    pub(crate) fn of(faulty: &[f64], same: &[f64]) -> Cost {
        Cost {
            faulty: Spread::of(faulty),
            same: Spread::of(same),
        }
    }

    /// Whether it costs more than was promised, beyond what chance explains.
    pub(crate) fn broken(&self, kind: &str) -> Option<String> {
        (self.faulty.median - self.margin() > CPU_MORE_MAX).then(|| {
            let most = CPU_MORE_MAX * 100.0;
            format!(
                "{kind}: {} % more CPU per request after quarantine, at most {most} % are promised",
                self.faulty
            )
        })
    }

    /// What can be said with 95 % confidence.
    pub(crate) fn verdict(&self) -> &'static str {
        if self.is_undecided() {
            "undecided"
        } else if self.faulty.median < CPU_MORE_MAX {
            "within 3 %"
        } else {
            "above 3 %"
        }
    }

    /// Whether the bound lies within the margin, or nothing was measured.
    pub(crate) fn is_undecided(&self) -> bool {
        let distance = (self.faulty.median - CPU_MORE_MAX).abs();
        distance.is_nan() || distance <= self.margin()
    }

    /// What may be chance: twice the error, and what two equal processes differ by.
    fn margin(&self) -> f64 {
        2.0 * self.faulty.error + self.same.median.abs()
    }
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        let count = values.len() as f64;
        let middle = median(values.to_vec());
        let deviation = median(values.iter().map(|value| (value - middle).abs()).collect());
        Spread {
            median: middle,
            // Of a normal distribution: its deviation from the median one, and the error of a median from that.
            error: 1.2533 * 1.4826 * deviation / count.sqrt(),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:+.1} +- {:.1}", self.median * 100.0, self.error * 200.0)
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
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
