//! What a server said about its load in its latest response, as far as a policy wants to know it.
//!
//! Written by whichever worker gets a report, read by whoever is asked for a measure, without a lock: each value is whole,
//! and two reports that come at the same instant may mix. It hangs on the names that the policies of the backend asked
//! for: other names are another [`ReportedLoad`], which begins with nothing, so that no value is ever taken for another.

use crate::decide::load_report::{self, Malformed};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What a backend's policies read of reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedNames {
    /// As [`crate::policy::Measure::Report`] has them: sorted, at most [`NAMES_MAX`].
    pub names: Box<[Box<str>]>,
    /// What is older is unknown.
    pub age_max: Duration,
}

/// Policies of one backend, each with its measures.
pub const NAMES_MAX: usize = 3 * crate::policy::MEASURES_MAX;
/// Shares are kept in parts of this, …
const SHARE: f64 = 10_000.0;
/// … and everything else in parts of that.
const PLAIN: f64 = 1_000.0;
/// No value: none that crosses is as large.
const UNKNOWN: u32 = u32::MAX;

/// The latest report of one server.
#[derive(Debug)]
pub struct ReportedLoad {
    wanted: std::sync::Arc<ReportedNames>,
    /// When it came, in ms and one more; 0 before the first.
    came: AtomicU64,
    values: Box<[AtomicU32]>,
}

impl ReportedLoad {
    /// Nothing was reported yet.
    pub fn new(wanted: std::sync::Arc<ReportedNames>) -> ReportedLoad {
        debug_assert!(wanted.names.len() <= NAMES_MAX, "each policy was checked");
        ReportedLoad {
            came: AtomicU64::new(0),
            values: wanted.names.iter().map(|_| AtomicU32::new(UNKNOWN)).collect(),
            wanted,
        }
    }

    /// What is kept of a report.
    pub fn wanted(&self) -> &ReportedNames {
        &self.wanted
    }

    /// Takes up a report; a malformed one changes nothing.
    pub fn take_up(&self, report: &[u8], now: Duration) -> Result<(), Malformed> {
        let names = &self.wanted.names;
        let mut values = [UNKNOWN; NAMES_MAX];
        load_report::read(report, |name, value| {
            if let Some(at) = names.iter().position(|wanted| name.is(wanted)) {
                values[at] = scaled(&names[at], value);
            }
        })?;
        for (value, new) in self.values.iter().zip(values) {
            value.store(new, Ordering::Relaxed);
        }
        let came = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.came.store(came.saturating_add(1), Ordering::Release);
        Ok(())
    }

    /// The value at that place of the names; `None` if the latest report did not say it, or is too old.
    pub fn value(&self, at: usize, now: Duration) -> Option<u32> {
        let came = self.came.load(Ordering::Acquire).checked_sub(1)?;
        if now.saturating_sub(Duration::from_millis(came)) > self.wanted.age_max {
            return None;
        }
        let value = self.values.get(at)?.load(Ordering::Relaxed);
        (value != UNKNOWN).then_some(value)
    }
}

/// A value as it is kept. It is finite and not negative.
fn scaled(name: &str, value: f64) -> u32 {
    let is_share = name.starts_with("utilization.") || name.ends_with("_utilization") && !name.contains('.');
    let parts = if is_share { SHARE } else { PLAIN };
    (value * parts).round().min(f64::from(i32::MAX)) as u32
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn load(names: &[&str]) -> ReportedLoad {
        ReportedLoad::new(std::sync::Arc::new(ReportedNames {
            names: names.iter().map(|name| (*name).into()).collect(),
            age_max: 10 * SECOND,
        }))
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let load = load(&[
            "cpu_utilization",
            "eps",
            "named_metrics.gpu_utilization",
            "utilization.gpu",
        ]);
        assert_eq!(load.value(0, SECOND), None, "nothing was reported");
        let report = b"TEXT cpu_utilization=0.12344,eps=2.5,mem_utilization=1,utilization.gpu=1.5,named_metrics.gpu_utilization=0.5";
        assert_eq!(load.take_up(report, SECOND), Ok(()));
        let values = |now| [0, 1, 2, 3, 4].map(|at| load.value(at, now));
        assert_eq!(
            values(2 * SECOND),
            [Some(1234), Some(2500), Some(500), Some(15_000), None]
        );
        assert_eq!(values(11 * SECOND)[0], Some(1234));
        assert_eq!(values(12 * SECOND), [None; 5], "too old");
    }

    #[test]
    fn the_latest_report_counts_whole() {
        let load = load(&["cpu_utilization", "eps"]);
        assert_eq!(load.take_up(b"TEXT cpu_utilization=0.5,eps=1", SECOND), Ok(()));
        assert_eq!(load.take_up(b"TEXT cpu_utilization=9e99", SECOND), Ok(()));
        assert_eq!(
            [load.value(0, SECOND), load.value(1, SECOND)],
            [Some(i32::MAX as u32), None]
        );
        assert_eq!(
            load.take_up(b"TEXT eps=1,cpu_utilization=x", SECOND),
            Err(Malformed)
        );
        assert_eq!(
            load.value(1, SECOND),
            None,
            "a malformed one does not count at all"
        );
    }
}
