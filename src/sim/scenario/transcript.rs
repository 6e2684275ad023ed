//! The text of a run: one decision a line, then tables. What a reviewer must judge, and nothing that differs from one
//! machine to another.

use super::{PolicyRow, Scenario};
use crate::decide::exchange::Failure;
use crate::decide::reuse::{CloseReason, OpenReason};
use crate::sim::decision::milliseconds;
use crate::sim::{Chooser, Delays, Report};
use std::fmt::Write as _;

/// Lines of a transcript.
pub(super) const LINES_MAX: usize = 200;
/// Rows of servers; of more the first and the last of them are shown.
const SERVERS_MAX: usize = 24;
/// What happened, at most.
const NOTES_MAX: usize = 24;
/// Characters of a line.
const WIDTH_MAX: usize = 200;

/// Writes it. Writing to a String does not fail.
pub(super) fn write(
    scenario: &Scenario,
    report: &Report,
    policies: &[PolicyRow],
    failures: &[String],
) -> String {
    let mut out = String::new();
    let spec = scenario.spec();
    let _ = writeln!(out, "{}", scenario.about());
    let _ = writeln!(
        out,
        "seed {}, {} workers, {} servers, {} ms",
        report.seed,
        spec.workers,
        report.servers.len(),
        milliseconds(super::micros(spec.duration))
    );
    decisions(report, &mut out);
    notes(report, &mut out);
    requests(report, &mut out);
    servers(report, &mut out);
    if spec.expect.moved_keys.is_some() {
        let (moved, seen) = report.moved_keys();
        let _ = writeln!(out, "\nkeys         {moved} of {seen} moved");
    }
    times(report, &mut out);
    connections(report, &mut out);
    for row in policies {
        policy(row, &mut out);
    }
    if failures.is_empty() {
        let _ = writeln!(out, "\nas expected");
    } else {
        let _ = writeln!(out, "\nNOT as expected");
        failures.iter().take(12).for_each(|failure| {
            let _ = writeln!(out, "  {failure}");
        });
    }
    debug_assert!(out.lines().count() <= LINES_MAX, "each part is bounded");
    out
}

fn decisions(report: &Report, out: &mut String) {
    if report.decided == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "\ndecisions: {} (time in ms, worker, client)",
        report.decided
    );
    for decision in &report.decisions {
        line(&decision.to_string(), out);
    }
    let shown = (report.decisions.len() + report.last.len()) as u64;
    if report.decided > shown {
        let _ = writeln!(out, "         ... {} more", report.decided - shown);
    }
    for decision in &report.last {
        line(&decision.to_string(), out);
    }
}

fn line(text: &str, out: &mut String) {
    let end = text.floor_char_boundary(WIDTH_MAX);
    let _ = writeln!(out, "{}{}", &text[..end], if end < text.len() { "…" } else { "" });
}

fn notes(report: &Report, out: &mut String) {
    if report.notes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nevents");
    for (at, note) in report.notes.iter().take(NOTES_MAX) {
        line(
            &format!("{:>12}  {}", milliseconds(*at), note.replace('\n', " ")),
            out,
        );
    }
    if report.notes.len() > NOTES_MAX {
        let _ = writeln!(out, "         ... {} more", report.notes.len() - NOTES_MAX);
    }
}

fn requests(report: &Report, out: &mut String) {
    let total = report.total();
    let _ = write!(
        out,
        "\nrequests     {} answered by servers",
        report.latency.count()
    );
    let counts = [
        (total.errors, "with an error"),
        (total.by_rule, "answered by rules"),
        (total.left, "left"),
        (total.retries, "retries"),
        (total.redispatches, "redispatches"),
    ];
    for (count, what) in counts {
        if count > 0 {
            let _ = write!(out, ", {count} {what}");
        }
    }
    let _ = writeln!(out);
    let failed: u64 = report.failures.iter().sum();
    if failed > 0 {
        let _ = write!(out, "failed       {failed}");
        for failure in Failure::ALL {
            let count = report.failures[failure.index()];
            if count > 0 {
                let _ = write!(out, ", {count} {}", failure.word().replace('_', " "));
            }
        }
        let _ = writeln!(out);
    }
    let _ = write!(out, "chosen by   ");
    for chooser in Chooser::ALL {
        let count = total.chosen_by(*chooser);
        if count > 0 {
            let _ = write!(out, " {} {count}", chooser.word());
        }
    }
    let _ = writeln!(out);
}

fn servers(report: &Report, out: &mut String) {
    let whole: u64 = report.served_by.iter().sum();
    let rows: Vec<String> = report
        .servers
        .iter()
        .zip(&report.served_by)
        .map(|((backend, server), served)| {
            let share = u128::from(*served) * 10_000 / u128::from(whole.max(1));
            format!(
                "  {:<24} {served:>9}  {:>3}.{:02} %",
                format!("{backend}/{server}"),
                share / 100,
                share % 100
            )
        })
        .collect();
    let _ = writeln!(out, "\nserver                      requests     share");
    if rows.len() <= SERVERS_MAX {
        rows.iter().for_each(|row| line(row, out));
    } else {
        let half = SERVERS_MAX / 2;
        rows[..half].iter().for_each(|row| line(row, out));
        let hidden = &report.served_by[half..rows.len() - half];
        let (least, most) = (hidden.iter().min(), hidden.iter().max());
        let _ = writeln!(
            out,
            "  ... {} more with {} to {}",
            hidden.len(),
            least.copied().unwrap_or_default(),
            most.copied().unwrap_or_default()
        );
        rows[rows.len() - half..].iter().for_each(|row| line(row, out));
    }
}

fn times(report: &Report, out: &mut String) {
    let _ = writeln!(
        out,
        "\nms                 count         p50         p90         p99        most"
    );
    for (what, delays) in [("latency", &report.latency), ("queueing", &report.delays)] {
        if delays.count() > 0 {
            let _ = writeln!(out, "  {what:<14} {:>7} {}", delays.count(), percentiles(delays));
        }
    }
}

fn percentiles(delays: &Delays) -> String {
    let mut text = String::new();
    for percent in [50, 90, 99] {
        let _ = write!(text, "{:>12}", milliseconds(delays.percentile(percent)));
    }
    let _ = write!(text, "{:>12}", milliseconds(delays.most()));
    text
}

fn connections(report: &Report, out: &mut String) {
    let total = report.total();
    let reused = u128::from(total.reused) * 10_000 / u128::from(total.requests.max(1));
    let _ = writeln!(
        out,
        "\nconnections  {}.{:02} % reused, {} taken over",
        reused / 100,
        reused % 100,
        total.taken_over
    );
    let _ = write!(out, "  opened {}", total.opened());
    for reason in OpenReason::ALL {
        let count = total.opened_for(*reason);
        if count > 0 {
            let _ = write!(out, ", {count} {}", reason.word().replace('_', " "));
        }
    }
    let _ = write!(out, "\n  closed {}", total.closed());
    for reason in CloseReason::ALL {
        let count = total.closed_for(*reason);
        if count > 0 {
            let _ = write!(out, ", {count} {}", reason.word().replace('_', " "));
        }
    }
    let _ = writeln!(out);
}

fn policy(row: &PolicyRow, out: &mut String) {
    let _ = write!(
        out,
        "\npolicy {} at {}: {} calls, {} without an opinion",
        row.policy, row.place, row.calls, row.abstained
    );
    for (count, what) in [
        (row.remembered, "remembered"),
        (row.unusable, "named nobody usable"),
        (row.rejected, "rejected"),
    ] {
        if count > 0 {
            let _ = write!(out, ", {count} {what}");
        }
    }
    let _ = writeln!(out);
    for (fault, count) in &row.faults {
        let _ = writeln!(out, "  not used: {count} {}", fault.replace('_', " "));
    }
}
