//! `--report DIR`: the pictures of a run as a page.

use crate::config::model::Balance;
use crate::sim::picture::{self, Point, Series};
use crate::sim::scenario::{Outcome, Scenario};
use std::path::{Path, PathBuf};

/// What a run looked like over time.
pub(super) fn series(scenario: &Scenario, outcome: &Outcome) -> Series {
    let spec = scenario.spec();
    let several = spec.config.backends.len() > 1;
    let name = |(backend, server): &(String, String)| match several {
        true => format!("{backend}/{server}"),
        false => server.clone(),
    };
    let report = outcome.report();
    let count = report.servers.len();
    let padded = |numbers: &[u32]| {
        let mut numbers = numbers.to_vec();
        numbers.resize(count, 0);
        numbers
    };
    let percentiles = |delays: &crate::sim::Delays| [50, 90, 99].map(|percent| delays.percentile(percent));
    let points = outcome.samples().iter().map(|sample| Point {
        requests: padded(&sample.requests),
        in_flight: padded(&sample.in_flight),
        waiting: sample.waiting,
        latency: percentiles(&sample.latency),
        queueing: percentiles(&sample.queueing),
        failed: sample.failed,
        reused: sample.reused,
        opened: sample.opened,
    });
    Series {
        title: scenario.name().to_owned(),
        about: scenario.about().to_owned(),
        policy: chooser(scenario),
        step: spec.show.step.as_micros() as u64, // a day at most
        servers: report.servers.iter().map(name).collect(),
        points: points.collect(),
        events: report.notes.clone(),
    }
}

/// What chooses servers in the first backend.
fn chooser(scenario: &Scenario) -> String {
    let config = &scenario.spec().config;
    let Some(backend) = config.backends.first() else {
        return String::new();
    };
    match backend.policy {
        Some(policy) => config.policy(policy).name.clone(),
        None => balance(&backend.balance).to_owned(),
    }
}

fn balance(balance: &Balance) -> &'static str {
    match balance {
        Balance::Random(_) => "random",
        Balance::RoundRobin => "roundrobin",
        Balance::LeastConn => "leastconn",
        Balance::First => "first",
        Balance::Sticky => "sticky",
        Balance::Hash(_) => "hash",
    }
}

/// Writes the page of one run, or of two, into a folder; tells where.
pub(super) fn write(folder: &Path, name: &str, runs: &[Series]) -> Result<PathBuf, String> {
    let runs: Vec<&Series> = runs.iter().collect();
    let file = folder.join(format!("{name}.html"));
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| super::snapshot::write_whole(&file, &picture::page(&runs)));
    written
        .map(|()| file.clone())
        .map_err(|error| format!("{}: cannot be written: {error}", file.display()))
}
