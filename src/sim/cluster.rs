//! What is simulated: workers, servers, clients, the pool between them. Plain data, all times in µs of virtual time.

use super::connections::Name;
use super::random::Span;
use super::steering::{Current, Nowhere, Steering, Turn};
use super::traffic::{Clients, Line, Traffic, Who};
use super::world::{Costs, Estimate, Marks, Model, Watch, World};
use crate::decide::balance::{Algorithm, SERVERS_MAX};
use crate::decide::edit::Edits;
use crate::decide::exchange::{Effort, Redispatch, RetryOn};
use crate::decide::reuse::{Figures, Mode, Override, Sharing};
use crate::decide::settings::{BackendSettings, Micros, PoolSettings, PreferLast};
use crate::policy::{BackendId, ServerId};
use crate::shared::generation::BackendEntry;
use crate::shared::key::{KeySecret, Parts, PoolKey};
use crate::shared::server::Server;
use crate::shared::statistics::{BackendStatistics, PerWorker};
use crate::shared::table::{Admin, BackendTable, Entry, Queueing};
use std::num::NonZeroU64;
use std::sync::Arc;

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

    fn model(&self) -> Model {
        Model {
            closes_after: self.closes_after,
            streams: self.streams,
            ..Model::answering(self.service)
        }
    }
}

impl Cluster {
    /// What surrounds the proxy.
    pub(super) fn world(&self) -> World {
        let who = match &self.load {
            Load::Clients(clients) => Who::Clients(clients.clone()),
            Load::Script(lines) => Who::Script(lines.iter().map(|line| line.line()).collect()),
        };
        World {
            workers: self.workers,
            costs: self.costs,
            connect: self.connect,
            estimate: self.estimate,
            sharing: self.sharing,
            marks: Marks {
                limit: self.descriptor_limit,
                low: 20,
                high: 25,
            },
            contention: self.contention,
            traffic: vec![Traffic {
                who,
                asks: None,
                listener: 0,
                from: 0,
                until: Micros::MAX,
            }],
            leaves_after: self.waiting.leaves_after,
            tied: self.waiting.tied,
            duration: self.duration,
            requests_max: self.requests_max,
            watch: Watch {
                first: self.decisions_max,
                last: 0,
                step: 0,
                keys: None,
                fuel: false,
            },
        }
    }

    fn settings(&self) -> BackendSettings {
        BackendSettings {
            connect: Micros::MAX,
            inactivity: Micros::MAX,
            queue: self.waiting.timeout,
            turn_around: 1_000_000,
            hashed: None,
            persistence: None,
            last: PreferLast::No,
            pool: self.pool.clone(),
            effort: EFFORT,
            budget: None,
            load_report: None,
            request_edits: Edits::default(),
            response_edits: Edits::default(),
        }
    }

    fn table(&self) -> BackendTable<Name> {
        let entries = self.servers.iter().zip(0..).map(|(server, at)| Entry {
            weight: server.weight,
            limit: server.limit,
            queueing: server.queueing,
            ..Entry::new(Arc::new(Server::new(
                ServerId(at),
                BACKEND,
                &format!("s{at}"),
                self.workers,
            )))
        });
        BackendTable::first(BackendId(0), BACKEND, self.balance, entries.collect())
    }
}

const BACKEND: &str = "simulated";

/// A cluster's servers do not fail: one attempt is enough.
const EFFORT: Effort = Effort {
    retries: 0,
    stale_max: 0,
    retry_on: RetryOn::USUAL,
    redispatch: Redispatch::USUAL,
};

impl ScriptedRequest {
    fn line(self) -> Line {
        Line {
            at: self.at,
            client: self.client,
            asks: None,
            service: None,
        }
    }
}

/// The operator of a cluster: what it is, and the changes that it says.
pub(super) struct Operator<'c> {
    cluster: &'c Cluster,
    current: Arc<Current>,
    done: usize,
}

impl<'c> Operator<'c> {
    pub(super) fn new(cluster: &'c Cluster, seed: u64) -> Self {
        let table = Arc::new(cluster.table());
        let key = PoolKey::new(&KeySecret::from_seed(seed), &Parts::default());
        let count = cluster.servers.len();
        let entry = BackendEntry {
            table,
            settings: Arc::new(cluster.settings()),
            addresses: vec![Nowhere; count].into(),
            keys: vec![key; count].into(),
            policy: None,
            reuse_policy: None,
            queue_policy: None,
            followed: None,
            planned_figures: None,
            statistics: Arc::new(PerWorker::new(cluster.workers, BackendStatistics::default)),
        };
        let current = Current {
            number: 1,
            listeners: Box::default(),
            backends: Box::new([entry]),
        };
        current.open_queues();
        Operator {
            cluster,
            current: Arc::new(current),
            done: 0,
        }
    }

    fn apply(&mut self, change: Change) {
        let former = &self.current.backends[0];
        let mut entries = former.table.entries.to_vec();
        entries[usize::from(change.server)].state = change.state;
        let entry = BackendEntry {
            table: Arc::new(former.table.next(former.table.algorithm(), entries)),
            ..former.clone()
        };
        self.current = Arc::new(Current {
            number: self.current.number + 1,
            listeners: Box::default(),
            backends: Box::new([entry]),
        });
    }
}

impl Steering for Operator<'_> {
    fn first(&self) -> Arc<Current> {
        self.current.clone()
    }

    fn model(&self, _: &str, server: &str) -> Model {
        let at: usize = server[1..].parse().expect("servers are numbered");
        self.cluster.servers[at].model()
    }

    fn turn(&mut self, now: Micros) -> Turn {
        let before = self.done;
        while let Some(change) = self
            .cluster
            .changes
            .get(self.done)
            .filter(|change| change.at <= now)
        {
            self.done += 1;
            self.apply(*change);
        }
        Turn {
            generation: (self.done > before).then(|| self.current.clone()),
            models: false,
            next: self.cluster.changes.get(self.done).map(|change| change.at),
            notes: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "1…4096 workers")]
    fn a_proxy_has_workers() {
        Cluster::new(0, 1, VirtualServer::answering(Span::Constant(1))).check();
    }
}
