//! What surrounds the proxy of a run: servers, clients, the network, chance. Plain data; all times in µs of virtual time.

use super::random::Span;
use super::traffic::Traffic;
use crate::decide::reuse::Sharing;
use crate::decide::settings::Micros;
use std::sync::Arc;

/// Everything of a run that is not the proxy's configuration.
#[derive(Clone, Debug)]
pub struct World {
    /// Workers, 1…4096. Clients are dealt to them in turn.
    pub workers: u16,
    /// What a worker's own work costs it.
    pub costs: Costs,
    /// From the beginning of a connect to its end.
    pub connect: Micros,
    /// Whether the estimate of need is in force.
    pub estimate: Estimate,
    /// Whether workers take over from each other.
    pub sharing: Sharing,
    /// Descriptors for server connections.
    pub marks: Marks,
    /// In so many of a hundred searches one sibling, drawn, is at its own shard. 0…100.
    pub contention: u8,
    /// Who asks.
    pub traffic: Vec<Traffic>,
    /// A client leaves if it waits in a queue for longer than this, drawn for each wait; `None`: it stays.
    pub leaves_after: Option<Span>,
    /// Of a hundred requests so many need one server, that of the client's number modulo theirs, as long as its queue
    /// takes them in (Q-5). 0…100.
    pub tied: u8,
    /// Nobody asks any more from then on.
    pub duration: Micros,
    /// Nor after so many requests.
    pub requests_max: u64,
    /// What is written down.
    pub watch: Watch,
}

/// Descriptors that server connections may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// That the process may open.
    pub limit: u32,
    /// `pool-low-fd-ratio`, percent.
    pub low: u8,
    /// `pool-high-fd-ratio`, percent.
    pub high: u8,
}

/// What of a run is written down, beside the totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The first so many decisions.
    pub first: usize,
    /// The last so many.
    pub last: usize,
    /// The state of all servers once in so long; 0 for never.
    pub step: Micros,
    /// Which server had which key before and after an instant.
    pub keys: Option<Split>,
    /// The most work that a call of each policy took.
    pub fuel: bool,
}

/// An instant that parts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// When.
    pub at: Micros,
}

/// What a worker's own work costs it. While it is at work it does nothing else, and what happens waits its turn. With
/// all zero, workers are never the bottleneck. In µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A request: read it, choose, find a connection, send it.
    pub request: Micros,
    /// A response: read it, send it, park the connection.
    pub response: Micros,
    /// A connection that is opened, besides.
    pub open: Micros,
    /// One that is taken over, besides.
    pub takeover: Micros,
    /// The end of a wait, before the request goes on.
    pub grant: Micros,
}

/// How one server behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// From a request to its response, the way there and back included; 1 µs at least.
    pub service: Span,
    /// Requests that it works on at a time; more wait inside it. `None`: any number.
    pub capacity: Option<u32>,
    /// It closes a connection with the response of this number, and says so in it; `None`: never.
    pub closes_after: Option<u32>,
    /// Requests that one connection carries at a time: 1 for HTTP/1, more for a multiplexed one.
    pub streams: u32,
    /// What it writes in each response about its load, as [`Self::reports`] fills it in; `None`: nothing.
    pub report: Option<Arc<str>>,
    /// What goes wrong with it.
    pub faults: Faults,
}

/// What goes wrong with a server. Shares are in 10,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Connects that it refuses.
    pub refuses: u16,
    /// Requests on which it closes the connection instead of an answer.
    pub drops: u16,
    /// Requests that it answers with 500.
    pub errors: u16,
    /// Requests that it never answers.
    pub hangs: u16,
    /// It is dead: it refuses each connect, and closes each connection on which a request comes.
    pub down: bool,
}

/// Whether the keep rule and the purge know what was needed lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// As in production (POOL-6, 32, 40).
    On,
    /// For comparison: only what is in use at that instant counts (POOL-44 says why that is not enough).
    Off,
}

impl Model {
    /// A server of HTTP/1 that answers after that time, any number at a time, and closes nothing.
    pub fn answering(service: Span) -> Self {
        Model {
            service,
            capacity: None,
            closes_after: None,
            streams: 1,
            report: None,
            faults: Faults::default(),
        }
    }

    /// What it says about its load while it has so many requests. Filled in are `{in-flight}`, `{queued}` (those that
    /// it does not work on yet) and `{load}` (their number by its capacity).
    pub fn reports(&self, in_flight: u32) -> Option<String> {
        let report = self.report.as_deref()?;
        let capacity = self.capacity.unwrap_or(u32::MAX);
        let load = f64::from(in_flight) / f64::from(capacity);
        Some(
            report
                .replace("{in-flight}", &in_flight.to_string())
                .replace("{queued}", &in_flight.saturating_sub(capacity).to_string())
                .replace("{load}", &format!("{load:.4}")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_filled_in() {
        let model = |report: &str, capacity| Model {
            report: Some(report.into()),
            capacity,
            ..Model::answering(Span::Constant(1))
        };
        let text = "TEXT cpu_utilization={load},named_metrics.queue={queued},named_metrics.busy={in-flight}";
        assert_eq!(
            model(text, Some(4)).reports(5).as_deref(),
            Some("TEXT cpu_utilization=1.2500,named_metrics.queue=1,named_metrics.busy=5")
        );
        assert_eq!(
            model(r#"JSON {"eps":{queued},"cpu_utilization":{load}}"#, None)
                .reports(5)
                .as_deref(),
            Some(r#"JSON {"eps":0,"cpu_utilization":0.0000}"#)
        );
        assert_eq!(Model::answering(Span::Constant(1)).reports(5), None);
    }
}
