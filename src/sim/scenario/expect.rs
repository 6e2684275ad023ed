//! Whether what a scenario expects came true.

use super::{PolicyRow, micros};
use crate::config::scenario::Expect;
use crate::config::units::show_share;
use crate::sim::decision::milliseconds;
use crate::sim::{Delays, Report};
use std::collections::BTreeMap;
use std::time::Duration;

/// Millionths.
const WHOLE: u64 = 1_000_000;

/// A sentence for each expectation that did not come true.
pub(super) fn failures(expect: &Expect, report: &Report, policies: &[PolicyRow]) -> Vec<String> {
    let mut failures = shares(expect, report);
    failures.extend(least_and_most(expect, report));
    for (what, delays, percent, most) in [
        ("queueing p50", &report.delays, 50, expect.queueing_p50),
        ("queueing p99", &report.delays, 99, expect.queueing_p99),
        ("latency p50", &report.latency, 50, expect.latency_p50),
        ("latency p99", &report.latency, 99, expect.latency_p99),
    ] {
        failures.extend(most.and_then(|most| later(what, delays, percent, most)));
    }
    let total = report.total();
    let reused = of(total.reused, total.requests);
    if let Some(least) = expect.reuse.filter(|least| reused < *least) {
        failures.push(format!("reuse is {}, not at least {}", show(reused), show(least)));
    }
    if let Some(most) = expect.most_reuse.filter(|most| reused > *most) {
        failures.push(format!("reuse is {}, not at most {}", show(reused), show(most)));
    }
    let failed: u64 = report.failures.iter().sum();
    if let Some(most) = expect.failed.filter(|most| failed > *most) {
        failures.push(format!(
            "{failed} requests got no response of a server, not at most {most}"
        ));
    }
    let fallbacks: u64 = policies
        .iter()
        .flat_map(|row| &row.faults)
        .map(|(_, count)| count)
        .sum();
    if let Some(most) = expect.fallbacks.filter(|most| fallbacks > *most) {
        failures.push(format!(
            "{fallbacks} answers of policies were not used, not at most {most}"
        ));
    }
    for row in policies {
        let over = row.fuel.zip(expect.fuel).filter(|(used, most)| used > most);
        if let Some((used, most)) = over {
            failures.push(format!(
                "a call of policy {} took {used} units of work, not at most {most}",
                row.policy
            ));
        }
    }
    if let Some(most) = expect.moved_keys {
        let (moved, seen) = report.moved_keys();
        let share = of(moved, seen);
        if share > most {
            failures.push(format!(
                "{moved} of {seen} keys moved, {}, not at most {}",
                show(share),
                show(most)
            ));
        }
    }
    failures
}

/// The share of a server among all requests that servers had.
fn shares(expect: &Expect, report: &Report) -> Vec<String> {
    let whole: u64 = report.served_by.iter().sum();
    let mut failures = Vec::new();
    for (pattern, low, high) in &expect.shares {
        for ((backend, server), served) in report.servers.iter().zip(&report.served_by) {
            let share = of(*served, whole);
            if pattern.fits(backend, server) && !(*low..=*high).contains(&share) {
                failures.push(format!(
                    "{backend}/{server} has {} of the requests, not {} to {}",
                    show(share),
                    show(*low),
                    show(*high)
                ));
            }
        }
    }
    failures
}

fn least_and_most(expect: &Expect, report: &Report) -> Vec<String> {
    let mut wholes: BTreeMap<&str, u64> = BTreeMap::new();
    for ((backend, _), served) in report.servers.iter().zip(&report.served_by) {
        *wholes.entry(backend).or_default() += served;
    }
    let mut failures = Vec::new();
    for ((backend, server), served) in report.servers.iter().zip(&report.served_by) {
        let share = of(*served, wholes[backend.as_str()]);
        if let Some(least) = expect.least_share.filter(|least| share < *least) {
            failures.push(format!(
                "{backend}/{server} has {} of its backend's requests ({served}), not at least {}",
                show(share),
                show(least)
            ));
        }
        if let Some(most) = expect.most_share.filter(|most| share > *most) {
            failures.push(format!(
                "{backend}/{server} has {} of its backend's requests ({served}), not at most {}",
                show(share),
                show(most)
            ));
        }
    }
    failures
}

fn later(what: &str, delays: &Delays, percent: u32, most: Duration) -> Option<String> {
    let time = delays.percentile(percent);
    (time > micros(most)).then(|| {
        format!(
            "{what} is {} ms, not at most {} ms",
            milliseconds(time),
            milliseconds(micros(most))
        )
    })
}

fn of(part: u64, whole: u64) -> u32 {
    (u128::from(part) * u128::from(WHOLE) / u128::from(whole.max(1))) as u32 // at most a million
}

fn show(millionths: u32) -> String {
    // Two decimals are enough for who reads.
    show_share(millionths / 100 * 100)
}
