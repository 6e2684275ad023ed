//! What the demo says while it runs: one line per interval with each server's share and latency, and a summary.
//!
//! Numbers in, text out. It remembers the totals of the last look, because what it is given only ever grows. Quiet intervals
//! are silent, except for one hint when traffic stops, or never began.

use std::fmt::Write;
use std::time::Duration;

/// Totals of one server since the start, as the proxy counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The server's name.
    pub name: String,
    /// Final responses received from it.
    pub responses: u64,
    /// Time to the heads of these responses, summed, in µs.
    pub response_time_us: u64,
    /// Requests that went over a connection opened earlier.
    pub reuses: u64,
    /// Connections opened.
    pub connects: u64,
    /// Attempts that failed: connections not made, answers not given.
    pub failures: u64,
}

/// Who chose the servers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The plan of a policy.
    pub plan: u64,
    /// A policy that was asked.
    pub pick: u64,
    /// The configured algorithm.
    pub native: u64,
}

/// The totals of the last look.
#[derive(Debug, Default)]
pub struct Report {
    last: Vec<Seen>,
    choices: Choices,
    /// From the start of the demo to the last look.
    running: Duration,
    quiet: bool,
    hint: String,
}

impl Report {
    /// `hint` is what a quiet line proposes to do.
    pub fn new(hint: String) -> Report {
        Report {
            hint,
            ..Report::default()
        }
    }

    /// What to say after `running` since the start; `None` when there is nothing new.
    pub fn look(&mut self, seen: &[Seen], choices: Choices, running: Duration) -> Option<String> {
        let interval = running.saturating_sub(self.running);
        let news: Vec<Seen> = seen.iter().map(|now| self.since_last(now)).collect();
        let chosen = choices.since(self.choices).shares();
        self.choices = choices;
        self.last = seen.to_vec();
        self.running = running;
        let was_quiet = self.quiet;
        self.quiet = news
            .iter()
            .all(|server| server.responses == 0 && server.failures == 0);
        match (self.quiet, was_quiet) {
            (false, _) => Some(line(&news, interval, running) + &chosen),
            (true, false) => Some(format!("{} no requests; try {}", clock(running), self.hint)),
            (true, true) => None,
        }
    }

    /// The closing words, over everything up to the last look.
    pub fn summary(&self) -> String {
        let total: u64 = self.last.iter().map(|server| server.responses).sum();
        let mut text = format!("responses {total} in {:.0} s", self.running.as_secs_f64());
        for server in &self.last {
            let Seen {
                name,
                responses,
                connects,
                reuses,
                ..
            } = server;
            let _ = write!(
                text,
                "\n  {name:<8}{}   responses {responses}",
                figures(server, total)
            );
            let _ = write!(text, ", connections opened {connects}, reuses {reuses}");
            if server.failures > 0 {
                let _ = write!(text, ", failures {}", server.failures);
            }
        }
        text
    }

    fn since_last(&self, now: &Seen) -> Seen {
        let Some(last) = self.last.iter().find(|last| last.name == now.name) else {
            return now.clone();
        };
        Seen {
            name: now.name.clone(),
            responses: now.responses.saturating_sub(last.responses),
            response_time_us: now.response_time_us.saturating_sub(last.response_time_us),
            reuses: now.reuses.saturating_sub(last.reuses),
            connects: now.connects.saturating_sub(last.connects),
            failures: now.failures.saturating_sub(last.failures),
        }
    }
}

impl Choices {
    fn since(self, last: Choices) -> Choices {
        Choices {
            plan: self.plan.saturating_sub(last.plan),
            pick: self.pick.saturating_sub(last.pick),
            native: self.native.saturating_sub(last.native),
        }
    }

    /// The share of each source; nothing where only the configured algorithm has a say.
    fn shares(self) -> String {
        let total = self.plan + self.pick + self.native;
        if self.plan + self.pick == 0 {
            return String::new();
        }
        let mut text = "   chosen by".to_owned();
        for (source, count) in [("plan", self.plan), ("pick", self.pick), ("native", self.native)] {
            if count > 0 {
                let _ = write!(text, " {source} {:.1}%", count as f64 * 100.0 / total as f64);
            }
        }
        text
    }
}

fn line(news: &[Seen], interval: Duration, running: Duration) -> String {
    let total: u64 = news.iter().map(|server| server.responses).sum();
    let rate = total as f64 / interval.as_secs_f64().max(0.001);
    let digits = if rate < 10.0 { 1 } else { 0 };
    let mut text = format!("{} {rate:>7.digits$} req/s", clock(running));
    for server in news {
        let _ = write!(text, "   {}{}", server.name, figures(server, total));
    }
    let failures: u64 = news.iter().map(|server| server.failures).sum();
    if failures > 0 {
        let _ = write!(text, "   failures {failures}");
    }
    text
}

/// Share of all responses, and mean latency.
fn figures(server: &Seen, total: u64) -> String {
    let share = server.responses as f64 * 100.0 / total.max(1) as f64;
    let latency = match server.response_time_us.checked_div(server.responses) {
        Some(mean_us) => format!("{:>6.1} ms", mean_us as f64 / 1000.0),
        None => "     - ms".to_owned(),
    };
    format!(" {share:>5.1}% {latency}")
}

fn clock(running: Duration) -> String {
    format!("{:>5.0} s", running.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, responses: u64, mean_us: u64) -> Seen {
        Seen {
            name: name.to_owned(),
            responses,
            response_time_us: responses * mean_us,
            reuses: responses.saturating_sub(2),
            connects: responses.min(2),
            failures: 0,
        }
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_line_is_about_its_interval_only() {
        let mut report = Report::new("curl".to_owned());
        let first = report.look(
            &[seen("fast", 300, 1000), seen("slow", 100, 9000)],
            Choices::default(),
            seconds(3),
        );
        insta::assert_snapshot!(first.unwrap(), @"    3 s     133 req/s   fast  75.0%    1.0 ms   slow  25.0%    9.0 ms");
        let second = report.look(
            &[seen("fast", 309, 1000), seen("slow", 100, 9000)],
            Choices::default(),
            seconds(6),
        );
        insta::assert_snapshot!(second.unwrap(), @"    6 s     3.0 req/s   fast 100.0%    1.0 ms   slow   0.0%      - ms");
        insta::assert_snapshot!(report.summary(), @"
        responses 409 in 6 s
          fast      75.6%    1.0 ms   responses 309, connections opened 2, reuses 307
          slow      24.4%    9.0 ms   responses 100, connections opened 2, reuses 98
        ");
    }

    #[test]
    fn quiet_is_said_once() {
        let mut report = Report::new("curl http://127.0.0.1:8080/".to_owned());
        let none = [seen("fast", 0, 0)];
        let hint = "    3 s no requests; try curl http://127.0.0.1:8080/";
        assert_eq!(
            report.look(&none, Choices::default(), seconds(3)).as_deref(),
            Some(hint)
        );
        assert_eq!(report.look(&none, Choices::default(), seconds(6)), None);
        assert!(
            report
                .look(&[seen("fast", 1, 500)], Choices::default(), seconds(9))
                .unwrap()
                .contains("100.0%    0.5 ms")
        );
        assert!(
            report
                .look(&[seen("fast", 1, 500)], Choices::default(), seconds(12))
                .unwrap()
                .contains("no requests")
        );
        assert_eq!(
            report.look(&[seen("fast", 1, 500)], Choices::default(), seconds(15)),
            None
        );
    }

    #[test]
    fn failures_are_news_even_without_an_answer() {
        let mut report = Report::new(String::new());
        let failed = Seen {
            failures: 2,
            ..seen("fast", 0, 0)
        };
        let line = report.look(&[failed], Choices::default(), seconds(3)).unwrap();
        assert!(
            line.contains("fast   0.0%      - ms") && line.ends_with("failures 2"),
            "{line}"
        );
        assert!(report.summary().ends_with("reuses 0, failures 2"));
    }

    #[test]
    fn who_chose_is_said_where_a_policy_has_a_say() {
        let mut report = Report::new(String::new());
        let planned = Choices {
            plan: 990,
            pick: 0,
            native: 10,
        };
        let line = report.look(&[seen("a", 1000, 100)], planned, seconds(3)).unwrap();
        assert!(line.ends_with("   chosen by plan 99.0% native 1.0%"), "{line}");
        let native = Choices {
            native: 1010,
            ..planned
        };
        let line = report.look(&[seen("a", 2000, 100)], native, seconds(6)).unwrap();
        assert!(!line.contains("chosen"), "{line}");
    }
}
