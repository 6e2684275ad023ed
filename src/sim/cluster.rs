//! What is simulated: workers, servers, clients, the pool between them. Plain data, all times in µs of virtual time.

use super::random::Span;
use crate::decide::balance::{Algorithm, SERVERS_MAX};
use crate::decide::reuse::{Figures, Mode, Override, Sharing};
use crate::decide::settings::{Micros, PoolSettings};
use crate::shared::table::{Admin, Queueing};
use std::num::NonZeroU64;

/// A proxy between clients and servers. [`Cluster::run`] runs it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Workers, 1…4096. Clients are dealt to them in turn.
    pub workers: u16,
    /// What a worker's own work costs it.
    pub costs: Costs,
    /// From the beginning of a connect to its end.
    pub connect: Micros,
    /// The servers, 1…4095.
    pub servers: Vec<VirtualServer>,
    /// Who chooses among them.
    pub balance: Algorithm,
    /// What becomes of a request that finds no slot.
    pub waiting: Patience,
    /// What the operator does meanwhile, in order of time.
    pub changes: Vec<Change>,
    /// The configured pool, as a backend has it; `name` and `source` are not looked at.
    pub pool: PoolSettings,
    /// Whether the estimate of need is in force.
    pub estimate: Estimate,
    /// Whether workers take over from each other.
    pub sharing: Sharing,
    /// Descriptors that the process may open; `pool-low-fd-ratio` and `pool-high-fd-ratio` are 20 and 25 % of it.
    pub descriptor_limit: u32,
    /// In so many of a hundred searches one sibling, drawn, is at its own shard. 0…100.
    pub contention: u8,
    /// Who asks.
    pub load: Load,
    /// Nobody asks any more from then on.
    pub duration: Micros,
    /// Nor after so many requests.
    pub requests_max: u64,
    /// The first so many decisions are written down.
    pub decisions_max: usize,
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

/// What becomes of a request that finds no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// It waits so long (`timeout-queue`, Q-14), and is refused.
    pub timeout: Micros,
    /// Its client leaves if it waits longer than this, drawn for each wait; `None`: it stays.
    pub leaves_after: Option<Span>,
    /// Of a hundred requests so many need one server, that of the client's number modulo theirs, as long as its queue
    /// takes them in. 0…100.
    pub tied: u8,
}

/// The operator's word about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Micros,
    /// About which one.
    pub server: u16,
    /// What it is from then on.
    pub state: Admin,
}

/// One server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualServer {
    /// From a request to its response, the way there and back included; 1 µs at least.
    pub service: Span,
    /// It closes a connection with the response of this number, and says so in it; `None`: never.
    pub closes_after: Option<u32>,
    /// Requests that one connection carries at a time: 1 for HTTP/1, more for a multiplexed one.
    pub streams: u32,
    /// The most that hold a slot; who comes then waits. `u32::MAX` for no limit.
    pub limit: u32,
    /// How the limit moves, and how many may wait for this server and no other.
    pub queueing: Queueing,
    /// The user's weight, 0…256.
    pub weight: u16,
}

/// Whether the keep rule and the purge know what was needed lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimate {
    /// As in production (POOL-6, 32, 40).
    On,
    /// For comparison: only what is in use at that instant counts (POOL-44 says why that is not enough).
    Off,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Load {
    /// Clients that wait for a response before they send the next request.
    Clients(Clients),
    /// These requests at these times.
    Script(Vec<ScriptedRequest>),
}

/// A request of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptedRequest {
    /// When it comes.
    pub at: Micros,
    /// Which client sends it. Client n is at worker n modulo their number.
    pub client: u32,
}

/// Clients that wait for a response before they send the next request, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// How many there are.
    pub count: u32,
    /// From a response to the next request.
    pub think: Span,
    /// They come at drawn instants of the first µs, so many.
    pub ramp: Micros,
    /// Requests that each has on its way at a time.
    pub streams: u32,
    /// After so many requests a client comes back as a new one; `None`: never.
    pub session: Option<u32>,
    /// How many of them are there, phase by phase and over again; empty for all of them, always.
    pub phases: Vec<Phase>,
}

/// A time in which so many clients are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// How long; 1 µs at least.
    pub lasts: Micros,
    /// The first so many clients.
    pub clients: u32,
}

impl Cluster {
    /// So many workers before `servers` equal ones, with the proxy's defaults: `reuse = "safe"`, `pool-low-conn` 0,
    /// purge every 5 s, random of two, 5 s in a queue. A connect takes 100 µs, workers cost nothing, nobody asks yet, and the run ends
    /// after 10 s.
    pub fn new(workers: u16, servers: usize, server: VirtualServer) -> Self {
        Cluster {
            workers,
            costs: Costs::default(),
            connect: 100,
            servers: vec![server; servers],
            balance: Algorithm::Random(2),
            waiting: Patience {
                timeout: 5_000_000,
                leaves_after: None,
                tied: 0,
            },
            changes: Vec::new(),
            pool: PoolSettings {
                mode: Mode::Safe,
                overriding: Override::Refused,
                figures: Figures::default(),
                purge_delay: NonZeroU64::new(5_000_000),
                max_reuse: None,
                strict_max: None,
                name: None,
                source: None,
            },
            estimate: Estimate::On,
            sharing: Sharing::On,
            descriptor_limit: 1 << 20,
            contention: 0,
            load: Load::Script(Vec::new()),
            duration: 10_000_000,
            requests_max: u64::MAX,
            decisions_max: 0,
        }
    }

    /// Panics where a number is out of its range: a mistake of who wrote it.
    pub(super) fn check(&self) {
        assert!((1..=4096).contains(&self.workers), "1…4096 workers");
        assert!(
            (1..=SERVERS_MAX).contains(&self.servers.len()),
            "1…{SERVERS_MAX} servers"
        );
        assert!(
            self.servers.iter().all(|server| server.streams > 0),
            "a connection carries a stream at least"
        );
        assert!(
            self.servers.iter().all(|server| server.limit > 0),
            "a server takes one request at least"
        );
        assert!(
            self.changes
                .iter()
                .all(|change| usize::from(change.server) < self.servers.len()),
            "a change is about a server"
        );
        if let Load::Clients(clients) = &self.load {
            let streams = u64::from(clients.count) * u64::from(clients.streams);
            assert!(streams <= u64::from(u32::MAX), "at most 2³² streams");
            assert!(
                clients.phases.iter().all(|phase| phase.lasts > 0),
                "a phase lasts 1 µs at least"
            );
        }
    }
}

impl VirtualServer {
    /// A server of HTTP/1 that answers after that time, closes nothing and has no limit.
    pub fn answering(service: Span) -> Self {
        VirtualServer {
            service,
            closes_after: None,
            streams: 1,
            limit: u32::MAX,
            queueing: Queueing::default(),
            weight: 1,
        }
    }
}

impl Clients {
    /// So many that think so long, with one request at a time, and are there within 10 ms and for good.
    pub fn thinking(count: u32, think: Span) -> Self {
        Clients {
            count,
            think,
            ramp: 10_000,
            streams: 1,
            session: None,
            phases: Vec::new(),
        }
    }

    /// When this client, who would send a request at `now`, does: at once if it is there then, else in the next phase
    /// that has it; `None` if none has.
    pub(super) fn there(&self, client: u32, now: Micros) -> Option<There> {
        if self.phases.is_empty() {
            return Some(There::Now);
        }
        let whole: Micros = self.phases.iter().map(|phase| phase.lasts).sum();
        let mut begins = now - now % whole;
        for phase in self.phases.iter().chain(&self.phases) {
            let ends = begins + phase.lasts;
            if ends > now && client < phase.clients {
                return Some(if begins <= now {
                    There::Now
                } else {
                    There::From(begins)
                });
            }
            begins = ends;
        }
        None
    }
}

/// When a client is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Now,
    From(Micros),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_there_in_their_phases() {
        let clients = Clients {
            phases: vec![
                Phase {
                    lasts: 10,
                    clients: 1,
                },
                Phase { lasts: 5, clients: 3 },
            ],
            ..Clients::thinking(4, Span::Constant(1))
        };
        for (client, now, expected) in [
            (0, 0, Some(There::Now)),
            (0, 14, Some(There::Now)),
            (2, 0, Some(There::From(10))),
            (2, 10, Some(There::Now)),
            (2, 15, Some(There::From(25))),
            (2, 29, Some(There::Now)),
            (3, 0, None),
        ] {
            assert_eq!(clients.there(client, now), expected, "client {client} at {now}");
        }
        let always = Clients::thinking(1, Span::Constant(1));
        assert_eq!(always.there(0, 99), Some(There::Now));
    }

    #[test]
    #[should_panic(expected = "1…4096 workers")]
    fn a_proxy_has_workers() {
        Cluster::new(0, 1, VirtualServer::answering(Span::Constant(1))).check();
    }
}
