//! All the numbers of the process at one moment, as plain data.
//!
//! `control` fills it by summing the workers' shards; the metrics, the runtime command `show stat` and the demo's
//! lines are made from it and from nothing else. It is not one atomic cut: each number was true at some instant of
//! the scrape. Counters of one server, listener or worker never go down within the life of a process; a sum over the
//! servers of a backend does when a reload takes one of them out.

use std::ops::AddAssign;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Everything, at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What the process shares.
    pub process: Process,
    /// Worker threads, in order.
    pub workers: Vec<Worker>,
    /// `[[listen]]` sections of the current configuration, in file order.
    pub listeners: Vec<Listener>,
    /// `[backend.NAME]` sections of the current configuration, in file order.
    pub backends: Vec<Backend>,
    /// Policies at work, one for each place, in the order of their names.
    pub policies: Vec<Policy>,
}

/// What the whole process shares.
#[derive(Clone, Debug)]
pub struct Process {
    /// The program's version.
    pub version: &'static str,
    /// Process id.
    pub pid: u32,
    /// When the process started.
    pub started: SystemTime,
    /// When this snapshot was taken.
    pub taken: SystemTime,
    /// Configurations published so far; the first is 1.
    pub generation: u64,
    /// Reloads that failed and changed nothing.
    pub failed_reloads: u64,
    /// Whether the process drains: it accepts no more and ends with its last session.
    pub stopping: bool,
    /// Descriptors open now.
    pub descriptors: u64,
    /// The most descriptors the process may have open.
    pub descriptor_limit: u64,
    /// The access log.
    pub log: LogCounts,
    /// Operator messages that found their queue full.
    pub messages_dropped: u64,
    /// Policies that were replaced, and that a worker still holds or whose code is being freed.
    pub policies_replaced: u64,
}

/// What became of the access log's records. Every finished request is in exactly one of the three.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Lines handed to the operating system.
    pub written: u64,
    /// Records that found the batch or the lane to the writer full.
    pub dropped: u64,
    /// Lines that the operating system refused.
    pub failed: u64,
}

/// One worker thread.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    /// Counted from 1, as in the configuration file.
    pub number: u16,
    /// Turns of its loop.
    pub turns: u64,
    /// Client connections it accepted.
    pub accepts: u64,
    /// Client connections it handed off to a less loaded worker (SCH-8).
    pub hand_offs_given: u64,
    /// Client connections it took from others.
    pub hand_offs_taken: u64,
    /// Client connections it serves now.
    pub sessions: u64,
    /// Server connections that it took over from others.
    pub takeovers: u64,
    /// Sessions that ended by a panic of ours.
    pub panics: u64,
    /// Times that accepting paused because descriptors had run out.
    pub accept_pauses: u64,
}

/// One `[[listen]]` section.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// Bound addresses, as printed at start.
    pub addresses: Vec<String>,
    /// Client connections accepted.
    pub connections: u64,
    /// Client connections open now.
    pub sessions: u64,
    /// Requests whose head was complete and accepted.
    pub requests: u64,
    /// Requests refused before a route was chosen, by cause.
    pub refused: Vec<Count>,
    /// Responses sent to clients, our own included.
    pub replies: StatusClasses,
    /// Timeouts by phase.
    pub timeouts: Vec<Count>,
    /// Bytes received from clients.
    pub bytes_in: u64,
    /// Bytes sent to clients.
    pub bytes_out: u64,
}

/// One `[backend.NAME]` section.
#[derive(Clone, Debug, Default)]
pub struct Backend {
    /// Who chose its servers: `plan`, `pick`, `native`, `session`, `cookie`.
    pub choices: Vec<Count>,
    /// Cookies that could not be followed: `unknown`, `unavailable`.
    pub cookies_missed: Vec<Count>,
    /// Its name.
    pub name: String,
    /// How it chooses a server, as written in the configuration.
    pub balance: String,
    /// Requests that wait in the backend's own queue now.
    pub waiting: u64,
    /// What happened there.
    pub queue: Queue,
    /// Attempts that its retry budget did not allow.
    pub budget_spent: u64,
    /// Its servers, in file order.
    pub servers: Vec<Server>,
}

/// One server of a backend.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// User weight, 0…256 (LB-1).
    pub weight: u16,
    /// What an operator decided about it.
    pub state: State,
    /// Streams that hold a slot now.
    pub served: u64,
    /// Streams that wait in the server's own queue now.
    pub waiting: u64,
    /// What happened there.
    pub queue: Queue,
    /// The most streams that may hold a slot, where there is a limit.
    pub limit: Option<u64>,
    /// Connections that carry a stream now (POOL-4).
    pub used: u64,
    /// The highest `used` since the last purge.
    pub max_used: u64,
    /// The connections thought to be needed (POOL-6).
    pub need: u64,
    /// Parked connections not yet proven safe for a first request.
    pub idle: u64,
    /// Parked connections that have proven to survive reuse.
    pub safe: u64,
    /// What happened so far.
    pub totals: ServerTotals,
}

/// What happened in one queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// The most that waited at once.
    pub longest: u64,
    /// Waits begun.
    pub waits: u64,
    /// Time of all that have ended, summed, in µs.
    pub time: u64,
    /// Waits that ended without a slot, and those that could not begin, by reason.
    pub ends: Vec<Count>,
}

impl Queue {
    /// Mean time of a wait, if there was any.
    pub fn mean_time(&self) -> Option<Duration> {
        self.time.checked_div(self.waits).map(Duration::from_micros)
    }
}

/// What an operator decided about a server; not whether it is healthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It gets requests.
    #[default]
    Ready,
    /// It gets no new balanced requests and finishes what it has.
    Drain,
    /// It gets nothing.
    Maint,
}

impl State {
    /// All, in the order of the runtime command's help.
    pub const ALL: [State; 3] = [State::Ready, State::Drain, State::Maint];

    /// The word of the runtime command (CLI-3).
    pub fn word(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Drain => "drain",
            State::Maint => "maint",
        }
    }
}

/// What happened at a server, or at all servers of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerTotals {
    /// Requests that were given to it.
    pub requests: u64,
    /// Connections opened (POOL-70).
    pub connects: u64,
    /// Requests that went over a connection opened earlier (POOL-70).
    pub reuses: u64,
    /// Of these, connections that another worker had parked.
    pub takeovers: u64,
    /// Connection attempts that failed or timed out.
    pub connect_failures: u64,
    /// Reused connections that died before the first byte of a response and cost the request an error.
    pub reuse_aborts: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Attempts that moved to another server.
    pub redispatches: u64,
    /// Responses received.
    pub responses: StatusClasses,
    /// Responses that were broken or missing.
    pub response_errors: u64,
    /// Load that it reported, by what was made of it.
    pub load_reports: Vec<Count>,
    /// Bytes sent to it.
    pub bytes_in: u64,
    /// Bytes received from it.
    pub bytes_out: u64,
    /// Responses whose time is in `response_time`.
    pub timed_responses: u64,
    /// Time from the end of a request sent to the head of its response, summed, in µs.
    pub response_time: u64,
    /// Timeouts by phase.
    pub timeouts: Vec<Count>,
    /// Connections opened, by the reason why none was reused (POOL-71).
    pub opens: Vec<Count>,
    /// Connections closed, by reason (POOL-71).
    pub closes: Vec<Count>,
}

/// Responses by the first digit of their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusClasses {
    /// 1xx to 5xx.
    pub by_class: [u64; 5],
    /// Anything else.
    pub other: u64,
}

/// How often something happened for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The reason, in snake case: the value of a label.
    pub cause: &'static str,
    /// How often.
    pub total: u64,
}

impl Process {
    /// How long the process had been running.
    pub fn uptime(&self) -> Duration {
        self.taken.duration_since(self.started).unwrap_or_default()
    }
}

/// A policy at one place.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Its name in the configuration.
    pub name: String,
    /// The backend or listener.
    pub attachment: String,
    /// Questions that reached it.
    pub calls: u64,
    /// Answers that were given again without a call.
    pub remembered: u64,
    /// Answers without an opinion.
    pub abstained: u64,
    /// Answers that named servers that take no requests.
    pub unusable: u64,
    /// Requests that it turned away when they were about to wait.
    pub rejected: u64,
    /// Answers that were not used, by reason; not being asked is one, too.
    pub faults: Vec<Count>,
    /// Its own counters, by name.
    pub counters: Vec<(String, u64)>,
    /// Its own gauges, by name.
    pub gauges: Vec<(String, i64)>,
}

impl Backend {
    /// What happened at all its servers together.
    pub fn totals(&self) -> ServerTotals {
        let mut sum = ServerTotals::default();
        for server in &self.servers {
            sum += &server.totals;
        }
        sum
    }

    /// Servers that get new requests now.
    pub fn usable(&self) -> u64 {
        self.servers.iter().filter(|server| server.usable()).count() as u64
    }
}

impl Server {
    /// Whether new balanced requests may go there (LB-2).
    pub fn usable(&self) -> bool {
        self.state == State::Ready && self.weight > 0
    }
}

impl ServerTotals {
    /// Mean time to the head of a response, if there was any.
    pub fn mean_response_time(&self) -> Option<Duration> {
        self.response_time
            .checked_div(self.timed_responses)
            .map(Duration::from_micros)
    }
}

impl AddAssign<&ServerTotals> for ServerTotals {
    fn add_assign(&mut self, more: &ServerTotals) {
        self.requests += more.requests;
        self.connects += more.connects;
        self.reuses += more.reuses;
        self.takeovers += more.takeovers;
        self.connect_failures += more.connect_failures;
        self.reuse_aborts += more.reuse_aborts;
        self.retries += more.retries;
        self.redispatches += more.redispatches;
        self.responses += more.responses;
        self.bytes_in += more.bytes_in;
        self.bytes_out += more.bytes_out;
        self.response_errors += more.response_errors;
        self.timed_responses += more.timed_responses;
        self.response_time += more.response_time;
        add_counts(&mut self.timeouts, &more.timeouts);
        add_counts(&mut self.load_reports, &more.load_reports);
        add_counts(&mut self.opens, &more.opens);
        add_counts(&mut self.closes, &more.closes);
    }
}

impl AddAssign for StatusClasses {
    fn add_assign(&mut self, more: StatusClasses) {
        for (sum, count) in self.by_class.iter_mut().zip(more.by_class) {
            *sum += count;
        }
        self.other += more.other;
    }
}

fn add_counts(sum: &mut Vec<Count>, more: &[Count]) {
    for count in more {
        match sum.iter_mut().find(|known| known.cause == count.cause) {
            Some(known) => known.total += count.total,
            None => sum.push(*count),
        }
    }
}

impl Default for Process {
    fn default() -> Process {
        Process {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            started: UNIX_EPOCH,
            taken: UNIX_EPOCH,
            generation: 1,
            failed_reloads: 0,
            stopping: false,
            descriptors: 0,
            descriptor_limit: 0,
            log: LogCounts::default(),
            messages_dropped: 0,
            policies_replaced: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::example_snapshot as example;
    use super::*;

    #[test]
    fn a_backend_is_the_sum_of_its_servers() {
        let snapshot = example();
        let totals = snapshot.backends[0].totals();
        assert_eq!(totals.requests, 6000 + 33);
        assert_eq!(
            totals.responses,
            StatusClasses {
                by_class: [6063, 6066, 6069, 6072, 6075],
                other: 3
            }
        );
        assert_eq!(
            totals.opens,
            [Count {
                cause: "none",
                total: 6123
            }]
        );
        assert_eq!(
            totals.closes[1],
            Count {
                cause: "purge",
                total: 6129
            }
        );
        assert_eq!(snapshot.backends[0].usable(), 1);
    }

    #[test]
    fn the_mean_is_that_of_the_timed_responses() {
        let mut totals = ServerTotals {
            response_time: 900,
            ..ServerTotals::default()
        };
        assert_eq!(totals.mean_response_time(), None);
        totals.timed_responses = 3;
        assert_eq!(totals.mean_response_time(), Some(Duration::from_micros(300)));
    }

    #[test]
    fn a_weight_of_zero_is_as_good_as_draining() {
        let server = Server {
            weight: 0,
            ..Server::default()
        };
        assert!(!server.usable());
        assert!(
            Server {
                weight: 1,
                ..Server::default()
            }
            .usable()
        );
    }
}
