//! What a scenario says, typed.

use crate::config::{Config, model};
use std::path::PathBuf;
use std::time::Duration;

/// A whole scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is there to show.
    pub about: String,
    /// What is simulated.
    pub config: Config,
    /// Workers.
    pub workers: u16,
    /// Where all chance comes from.
    pub seed: u64,
    /// Nobody asks any more from then on.
    pub duration: Duration,
    /// Nor after so many requests.
    pub requests: Option<u64>,
    /// How long a connect takes.
    pub connect: Duration,
    /// Who waits in a queue for longer leaves.
    pub patience: Option<Span>,
    /// Percent of searches in which a sibling is at its own shard.
    pub contention: u8,
    /// Descriptors that the process may open.
    pub descriptors: u32,
    /// What a worker's own work costs it.
    pub costs: Costs,
    /// How servers behave; the last one that fits counts.
    pub machines: Vec<Machine>,
    /// Who asks.
    pub traffic: Vec<Traffic>,
    /// What happens, in order of time.
    pub events: Vec<Event>,
    /// What is shown.
    pub show: Show,
    /// What must hold.
    pub expect: Expect,
}

/// What a worker's own work costs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A request.
    pub request: Duration,
    /// A response.
    pub response: Duration,
    /// A connection that is opened.
    pub open: Duration,
    /// One that is taken over.
    pub takeover: Duration,
    /// The end of a wait.
    pub grant: Duration,
}

/// A time that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Always the same.
    Constant(Duration),
    /// Exponential, with this mean.
    Mean(Duration),
    /// Between two, each as often.
    Between(Duration, Duration),
    /// Log-normal: the median, and what one in a hundred exceeds.
    Tail(Duration, Duration),
}

/// Servers by name, where `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(pub String);

impl Pattern {
    /// Whether it fits a server.
    pub fn fits(&self, backend: &str, server: &str) -> bool {
        fits(self.0.as_bytes(), format!("{backend}/{server}").as_bytes())
    }
}

fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| fits(rest, &text[skipped..])),
        Some((sign, rest)) => text
            .split_first()
            .is_some_and(|(own, text)| own == sign && fits(rest, text)),
    }
}

/// How some servers behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Which.
    pub names: Vec<Pattern>,
    /// How.
    pub behaviour: Behaviour,
}

/// How a server behaves; in an event only what is given changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// From a request to its response.
    pub service: Option<Span>,
    /// Requests that it works on at a time.
    pub capacity: Option<u32>,
    /// It closes a connection after so many responses.
    pub closes_after: Option<u32>,
    /// What it writes about its load.
    pub report: Option<String>,
    /// Connects that it refuses, in millionths; and so on.
    pub refuses: Option<u32>,
    /// Requests on which it closes the connection.
    pub drops: Option<u32>,
    /// Requests that it answers with 500.
    pub errors: Option<u32>,
    /// Requests that it never answers.
    pub hangs: Option<u32>,
    /// It is dead.
    pub down: Option<bool>,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Who, and when.
    pub who: Who,
    /// What.
    pub asks: Asks,
    /// Where: a listener's place.
    pub listener: u16,
    /// From when on.
    pub from: Duration,
    /// Until when.
    pub until: Option<Duration>,
}

/// Who asks, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Clients that wait for their response.
    Clients {
        /// How many.
        count: u32,
        /// From a response to the next request.
        think: Span,
        /// After so many requests it is another one.
        session: Option<u32>,
    },
    /// Requests at a rate.
    Rate {
        /// A second.
        rate: u32,
        /// Whether the times between them are equal.
        even: bool,
        /// So many at once.
        burst: u32,
        /// Connections that they are spread over.
        clients: u32,
    },
    /// Single requests.
    Script(Vec<Line>),
}

/// A single request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Duration,
    /// Whose.
    pub client: u32,
    /// What, where not as the traffic says.
    pub asks: Option<Asks>,
    /// How long its server takes.
    pub service: Option<Duration>,
}

/// What requests look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// The method.
    pub method: String,
    /// The host.
    pub host: String,
    /// The path, perhaps with a query.
    pub path: String,
    /// Other fields.
    pub headers: Vec<(String, String)>,
    /// Where `{key}` comes from.
    pub keys: Keys,
}

/// Where keys come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Always 0.
    One,
    /// One of these.
    Of(Vec<String>),
    /// Below this.
    Uniform(u32),
    /// Below this, the first most often; how steep, in hundredths.
    Zipf(u32, u16),
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Duration,
    /// To which servers.
    pub servers: Vec<Pattern>,
    /// The operator's word.
    pub state: Option<State>,
    /// Another weight.
    pub weight: Option<u16>,
    /// Another limit.
    pub maxconn: Option<u32>,
    /// How they behave from now on.
    pub behaviour: Behaviour,
    /// A configuration that is taken up.
    pub reload: Option<Reload>,
}

/// The operator's word about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It takes requests.
    Ready,
    /// It takes no new ones.
    Drain,
    /// Nor keeps connections.
    Maint,
}

/// A configuration that is taken up.
#[derive(Clone, Debug, PartialEq)]
pub enum Reload {
    /// This file.
    File(PathBuf),
    /// The same, with another component for a policy.
    Component(model::PolicyRef, PathBuf),
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Show {
    /// Lines of decisions.
    pub decisions: u32,
    /// Between two points of a chart.
    pub step: Duration,
}

/// What must hold. Shares are in millionths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The share of each server.
    pub shares: Vec<(Pattern, u32, u32)>,
    /// Of the server that has the least of its backend.
    pub least_share: Option<u32>,
    /// Of the one that has the most.
    pub most_share: Option<u32>,
    /// Waits.
    pub queueing_p50: Option<Duration>,
    /// Waits.
    pub queueing_p99: Option<Duration>,
    /// Responses.
    pub latency_p50: Option<Duration>,
    /// Responses.
    pub latency_p99: Option<Duration>,
    /// Connections that were there.
    pub reuse: Option<u32>,
    /// The same, at most.
    pub most_reuse: Option<u32>,
    /// Requests without a response.
    pub failed: Option<u64>,
    /// Answers of policies that were not used.
    pub fallbacks: Option<u64>,
    /// Units of work of one call of a policy.
    pub fuel: Option<u64>,
    /// Keys that change their server at the first event.
    pub moved_keys: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let fits = |pattern: &str| Pattern(pattern.into()).fits("app", "s12");
        assert!(
            ["app/s12", "*", "app/*", "*/s12", "a*/*2", "app/s*"]
                .into_iter()
                .all(fits)
        );
        assert!(
            !["app", "app/s1", "s12", "", "other/*", "*3"]
                .into_iter()
                .any(fits)
        );
    }
}
