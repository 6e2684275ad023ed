//! What would have been: one scenario as it is and with changes, or with the arrivals of a recorded log, side by side.
//!
//! Nothing is compared with a snapshot here: the two runs are compared with each other.

use super::recorded::{self, Recording};
use super::report;
use crate::config::scenario as spec;
use crate::sim::scenario::{Outcome, Scenario};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Longest time that is believed of a recorded response.
const SERVICE_MAX: Duration = Duration::from_secs(600);

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub(super) scenario: &'a Path,
    pub(super) changes: &'a [String],
    pub(super) log: Option<&'a Path>,
    pub(super) seed: Option<u64>,
    pub(super) report: Option<&'a Path>,
}

/// Runs both and tells how they differ.
///
/// # Errors
/// What is wrong with a file or a change, ready to print.
pub(super) fn compare(asked: &Asked<'_>) -> Result<String, String> {
    let mut out = String::new();
    let recording = asked.log.map(recorded::read).transpose()?;
    let run = |changes: &[String]| -> Result<(Scenario, Outcome), String> {
        let mut scenario =
            Scenario::load_with(asked.scenario, changes).map_err(|failure| failure.to_string())?;
        if let Some(recording) = &recording {
            replay(recording, scenario.spec_mut())?;
        }
        let seed = asked.seed.unwrap_or(scenario.spec().seed);
        let outcome = scenario.run_with(seed).map_err(|failure| failure.to_string())?;
        Ok((scenario, outcome))
    };
    if let Some(recording) = &recording {
        out.push_str(&told(recording));
    }
    let (scenario, before) = run(&[])?;
    let changed = if asked.changes.is_empty() {
        None
    } else {
        Some(run(asked.changes)?)
    };
    table(&before, changed.as_ref().map(|(_, after)| after), &mut out);
    if let Some(folder) = asked.report {
        let mut runs = vec![report::series(&scenario, &before)];
        if let Some((scenario, after)) = &changed {
            let mut series = report::series(scenario, after);
            series.policy = format!("{}, {}", series.policy, asked.changes.join(", "));
            runs.push(series);
        }
        let file = report::write(folder, scenario.name(), &runs)?;
        let _ = writeln!(out, "{}", file.display());
    }
    Ok(out)
}

/// Puts the requests of a log in the place of a scenario's own.
fn replay(recording: &Recording, spec: &mut spec::Scenario) -> Result<(), String> {
    let text = |of| recording.texts.get(of).to_owned();
    let lines: Vec<spec::Line> = recording
        .requests
        .iter()
        .map(|request| {
            let service = request.response.us().map(Duration::from_micros);
            spec::Line {
                at: Duration::from_micros(request.at),
                client: request.connection,
                asks: Some(spec::Asks {
                    method: or(text(request.method), "GET"),
                    host: or(text(request.host), "scenario.test"),
                    path: path(&text(request.target)),
                    headers: Vec::new(),
                    keys: spec::Keys::One,
                }),
                service: service.map(|time| time.min(SERVICE_MAX)),
            }
        })
        .collect();
    let Some(last) = lines.last() else {
        return Err("the log has no request".into());
    };
    spec.duration = last.at + Duration::from_millis(1);
    spec.requests = None;
    spec.traffic = vec![spec::Traffic {
        asks: spec::Asks {
            method: "GET".into(),
            host: "scenario.test".into(),
            path: "/".into(),
            headers: Vec::new(),
            keys: spec::Keys::One,
        },
        who: spec::Who::Script(lines),
        listener: 0,
        from: Duration::ZERO,
        until: None,
    }];
    Ok(())
}

fn or(text: String, usual: &str) -> String {
    if text.is_empty() { usual.to_owned() } else { text }
}

/// A target that a request of ours may have; what is not one is the root.
fn path(target: &str) -> String {
    let fine = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
    // A brace would be taken for a placeholder.
    if fine {
        target.replace(['{', '}'], "_")
    } else {
        "/".into()
    }
}

fn told(recording: &Recording) -> String {
    let mut out = format!(
        "replayed: {} requests of {} clients on {} connections\n",
        recording.requests.len(),
        recording.clients,
        recording.connections
    );
    let skipped = recording.skipped.to_string();
    if !skipped.is_empty() {
        let _ = writeln!(out, "{skipped}");
    }
    out.push_str(
        "Each request comes when it came, and its server, whichever it is now, takes as long as the recorded one took. So the \
         times hold only as far as servers are alike and not slowed by another load; nobody asks sooner, later or not at all \
         because of what is different.\n",
    );
    out
}

/// Both runs in columns.
fn table(before: &Outcome, after: Option<&Outcome>, out: &mut String) {
    let second = if after.is_some() { "changed" } else { "" };
    let _ = writeln!(out, "\n{:<28} {:>14} {:>14}", "", "as it is", second);
    let mut row = |what: &str, of: &dyn Fn(&Outcome) -> String| {
        let after = after.map(of).unwrap_or_default();
        let _ = writeln!(out, "{what:<28} {:>14} {after:>14}", of(before));
    };
    row("answered", &|outcome| {
        outcome.report().latency.count().to_string()
    });
    row("failed", &|outcome| {
        outcome.report().failures.iter().sum::<u64>().to_string()
    });
    for (what, percent) in [("latency p50 ms", 50), ("latency p99 ms", 99)] {
        row(what, &|outcome| {
            milliseconds(outcome.report().latency.percentile(percent))
        });
    }
    row("waited in queues", &|outcome| {
        outcome.report().total().waited.to_string()
    });
    for (what, percent) in [("queueing p50 ms", 50), ("queueing p99 ms", 99)] {
        row(what, &|outcome| {
            milliseconds(outcome.report().delays.percentile(percent))
        });
    }
    row("connections reused %", &|outcome| {
        let total = outcome.report().total();
        hundredths(total.reused, total.requests)
    });
    row("connections opened", &|outcome| {
        outcome.report().total().opened().to_string()
    });
    for (backend, server) in servers(before, after) {
        let name = format!("share of {backend}/{server} %");
        row(&name, &|outcome| share(outcome, &backend, &server));
    }
}

/// The servers of both, those of the first one first.
fn servers(before: &Outcome, after: Option<&Outcome>) -> Vec<(String, String)> {
    let mut servers = before.report().servers.clone();
    for server in after.map_or(&[][..], |after| &after.report().servers) {
        if !servers.contains(server) {
            servers.push(server.clone());
        }
    }
    servers
}

fn share(outcome: &Outcome, backend: &str, server: &str) -> String {
    let report = outcome.report();
    let is_it = |name: &(String, String)| (name.0.as_str(), name.1.as_str()) == (backend, server);
    match report.servers.iter().position(is_it) {
        Some(at) => hundredths(report.served_by[at], report.served_by.iter().sum()),
        None => "-".into(),
    }
}

fn milliseconds(time: u64) -> String {
    format!("{}.{:03}", time / 1_000, time % 1_000)
}

fn hundredths(part: u64, whole: u64) -> String {
    let share = u128::from(part) * 10_000 / u128::from(whole.max(1));
    format!("{}.{:02}", share / 100, share % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_made_harmless() {
        assert_eq!(path("/a?b={key}"), "/a?b=_key_");
        assert_eq!([path("*"), path("/a b"), path("")], ["/", "/", "/"]);
    }
}
