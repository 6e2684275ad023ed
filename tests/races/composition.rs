//! Requests of several workers through one backend, whole: pick, take a slot, lend or steal or open a connection,
//! park or close it, release; while tables and plans are replaced under them.

use crate::{explore, together};
use forebay::decide::balance::{Algorithm, servers};
use forebay::decide::reuse::{Descriptors, Figures, Gate, KeepRule, Mode, Proven, Released, Sharing, Wanted};
use forebay::policy::{
    BackendId, Draw, Member, Plan, Selector, ServerId, ServerIndex, Spill, Table, Tier, WorkerId,
};
use forebay::shared::key::{KeySecret, Parts, PoolKey};
use forebay::shared::server::Server;
use forebay::shared::slots::Release;
use forebay::shared::table::{BackendTable, Entry};
use forebay::sync::{Arc, AtomicU32, Mutex, Ordering, thread};
use std::collections::BTreeSet;

const WORKERS: u16 = 3;
const REQUESTS: u32 = 8;
const LIMIT: u32 = 2;

struct Connection {
    number: u32,
    carried: u32,
}

struct Site {
    key: PoolKey,
    servers: Vec<Arc<Server<Connection>>>,
    table: Mutex<Arc<BackendTable<Connection>>>,
    opened: AtomicU32,
    closed: AtomicU32,
    /// Connections that carry a request now.
    busy: Mutex<BTreeSet<u32>>,
}

impl Site {
    fn new(algorithm: Algorithm) -> Self {
        let server = |id| Arc::new(Server::new(ServerId(id), "app", &format!("s{id}"), WORKERS));
        let servers: Vec<_> = (0..3).map(server).collect();
        let table = BackendTable::first(BackendId(1), "app", algorithm, entries(&servers));
        Site {
            key: PoolKey::new(&KeySecret::from_seed(1), &Parts::default()),
            servers,
            table: Mutex::new(Arc::new(table)),
            opened: AtomicU32::new(0),
            closed: AtomicU32::new(0),
            busy: Mutex::default(),
        }
    }

    /// Plans that come, change and go.
    fn replan(&self, selector: Selector) {
        for cap in [Some(1), None] {
            let mut table = self.table.lock();
            let next = table.planned(&plan(selector, cap));
            *table = Arc::new(next);
        }
        let mut table = self.table.lock();
        let next = table.unplanned();
        *table = Arc::new(next);
    }

    /// Without one server, in another order; then all of them again.
    fn reload(&self) {
        for present in [&self.servers[1..], &self.servers[..]] {
            let mut table = self.table.lock();
            let next = table.next(table.algorithm(), entries(present));
            *table = Arc::new(next);
        }
    }

    fn request(&self, worker: WorkerId, draw: &mut Counting) {
        let table = self.table.lock().clone();
        let Some(at) = table.pick(None, draw).server else {
            return;
        };
        let server = &table.at(at).server;
        if !server.slots.take(LIMIT) {
            return table.changed(at);
        }
        assert!(server.slots.served() <= LIMIT);
        let connection = self.lend(server, worker);
        assert!(
            self.busy.lock().insert(connection.number),
            "a connection carries one request"
        );
        thread::yield_now();
        assert!(self.busy.lock().remove(&connection.number));
        self.park(server, worker, connection);
        assert_eq!(server.slots.release(), Release::Lowered);
        table.changed(at);
    }

    fn lend(&self, server: &Server<Connection>, worker: WorkerId) -> Connection {
        if let Ok(found) = server.pool.find(worker, &self.key, Wanted::SafeFirst, &GATE) {
            return found.into_connection();
        }
        server.pool.need.opened();
        Connection {
            number: self.opened.fetch_add(1, Ordering::Relaxed),
            carried: 0,
        }
    }

    fn park(&self, server: &Server<Connection>, worker: WorkerId, mut connection: Connection) {
        connection.carried += 1;
        let released = Released {
            proven: Proven::after(connection.carried),
            ..RELEASED
        };
        if let Err(_refused) = server.pool.release(worker, &self.key, &released, connection) {
            server.pool.need.closed();
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn check_at_rest(&self) {
        let mut numbers = Vec::new();
        for server in &self.servers {
            assert_eq!((server.slots.served(), server.slots.waiting()), (0, 0));
            let counted = server.pool.need.read();
            assert_eq!(
                (counted.used, counted.idle),
                (0, server.pool.idle() + server.pool.safe())
            );
            for worker in (0..WORKERS).map(WorkerId) {
                let mut parked = Vec::new();
                server.pool.drain(worker, &mut parked);
                numbers.extend(parked.iter().map(|connection| connection.number));
            }
            assert_eq!(server.pool.need.read().idle, 0);
        }
        let distinct: BTreeSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len(), "a connection is in one place");
        let (opened, closed) = (
            self.opened.load(Ordering::Relaxed),
            self.closed.load(Ordering::Relaxed),
        );
        assert_eq!(numbers.len() as u32, opened - closed);
    }

    /// The same of tiers: both servers of the first one are idle, so each is picked once.
    fn check_tiers_are_equal(&self) {
        let table = self.table.lock().clone();
        let picked: BTreeSet<_> = (0..2)
            .filter_map(|_| table.pick(None, &mut Counting(0)).server)
            .map(ServerIndex::at)
            .collect();
        assert_eq!(picked, BTreeSet::from([0, 1]));
    }

    /// No leave was lost: all servers are idle, so each is picked once before one is picked twice.
    fn check_all_are_equal(&self) {
        let table = self.table.lock().clone();
        let picked: BTreeSet<_> = servers(&*table)
            .filter_map(|_| table.pick(None, &mut Counting(0)).server)
            .map(ServerIndex::at)
            .collect();
        assert_eq!(picked.len(), table.len());
    }
}

fn entries(servers: &[Arc<Server<Connection>>]) -> Vec<Entry<Connection>> {
    let entry = |server: &Arc<Server<_>>| Entry {
        limit: LIMIT,
        ..Entry::new(server.clone())
    };
    servers.iter().rev().map(entry).collect()
}

/// All servers in two tiers.
fn plan(selector: Selector, cap: Option<u32>) -> Plan {
    let member = |server| Member {
        server: ServerIndex(server),
        weight: 16,
        cap,
    };
    let tier = |servers: &[u16]| Tier {
        selector,
        spill: Spill::WhenFull,
        members: servers.iter().copied().map(member).collect(),
    };
    Plan {
        tiers: vec![tier(&[0, 1]), tier(&[2])],
        lifetime: None,
    }
}

const FIGURES: Figures = Figures {
    idle_reserve: 0,
    idle_max: None,
    need_floor: 0,
    preconnect: 0,
    rule: KeepRule::Plain,
};
const DESCRIPTORS: Descriptors = Descriptors {
    used: 0,
    low: 20,
    high: 25,
};
const GATE: Gate = Gate {
    sharing: Sharing::On,
    reverse: false,
    figures: FIGURES,
    descriptors: DESCRIPTORS,
};
const RELEASED: Released = Released {
    mode: Mode::Always,
    private: false,
    maintenance: false,
    purge_delay: true,
    reverse: false,
    streams: 0,
    free_streams: 1,
    proven: Proven::Once,
    reuses_left: None,
    descriptors: DESCRIPTORS,
    figures: FIGURES,
};

/// A source of numbers that needs no randomness: the interleaving is what varies.
struct Counting(u32);

impl Draw for Counting {
    fn draw(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(7);
        self.0 % bound
    }
}

fn run(algorithm: Algorithm) -> Arc<Site> {
    run_beside(algorithm, Site::reload)
}

fn run_beside(algorithm: Algorithm, control: fn(&Site)) -> Arc<Site> {
    let site = Arc::new(Site::new(algorithm));
    let both = Arc::new((site.clone(), control));
    together(
        &both,
        u32::from(WORKERS) + 1,
        |(site, control), number| match number {
            0 => control(site),
            worker => {
                let mut draw = Counting(worker);
                (0..REQUESTS).for_each(|_| site.request(WorkerId(worker as u16 - 1), &mut draw));
            }
        },
    );
    site.check_at_rest();
    site
}

#[test]
fn requests_with_random() {
    explore(|| drop(run(Algorithm::Random(2))));
}

#[test]
fn requests_with_roundrobin() {
    explore(|| drop(run(Algorithm::RoundRobin)));
}

#[test]
fn requests_with_leastconn() {
    explore(|| run(Algorithm::LeastConn).check_all_are_equal());
}

#[test]
fn requests_beside_plans_of_each_selector() {
    explore(|| {
        drop(run_beside(Algorithm::Random(2), |site| {
            site.replan(Selector::Random)
        }))
    });
    explore(|| {
        drop(run_beside(Algorithm::LeastConn, |site| {
            site.replan(Selector::RoundRobin)
        }))
    });
}

/// Requests that came without an order of loads leave while there is one, and the other way round.
#[test]
fn requests_beside_orders_of_loads_that_come_and_go() {
    explore(|| {
        let ordered = |site: &Site| site.replan(Selector::LeastConn);
        let site = run_beside(Algorithm::LeastConn, ordered);
        site.check_all_are_equal();
        let arrives = |site: &Site| {
            let mut table = site.table.lock();
            let next = table.planned(&plan(Selector::LeastConn, Some(1)));
            *table = Arc::new(next);
        };
        run_beside(Algorithm::Random(2), arrives).check_tiers_are_equal();
    });
}
