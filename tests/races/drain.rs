//! Four workers at the pools of three servers, with all that the pools can do: requests, take-overs, events, purges,
//! evictions, a strict limit, plain and equal shares. However they interleave, everything drains to zero.

use crate::{Depth, GATE, USUAL, explore_to, together};
use forebay::decide::reuse::{Figures, Gate, KeepRule, Mode, Proven, Released, Wanted};
use forebay::policy::WorkerId;
use forebay::shared::key::{KeySecret, Parts, PoolKey};
use forebay::shared::pool::{Found, Pool, Ticket};
use forebay::sync::{Arc, AtomicU32, Mutex, Ordering, thread};
use std::collections::BTreeSet;

const WORKERS: u16 = 4;
const SERVERS: usize = 3;
const STEPS: u64 = 8;
/// Of the last server, which has a strict one.
const LIMIT: u32 = 2;
/// Periods in which any of these pools is empty again.
const PERIODS_MAX: u64 = 10;

struct Connection {
    number: u32,
    carried: u32,
}

struct Server {
    pool: Pool<Connection>,
    figures: Figures,
    strict: bool,
    /// As the server itself sees it.
    connected: AtomicU32,
}

struct Site {
    key: PoolKey,
    servers: Vec<Server>,
    opened: AtomicU32,
    closed: AtomicU32,
    /// Connections that carry a request now.
    busy: Mutex<BTreeSet<u32>>,
}

impl Site {
    fn new() -> Self {
        let server = |(at, rule)| Server {
            pool: Pool::new(WORKERS),
            figures: Figures {
                idle_reserve: at as u32,
                rule,
                ..GATE.figures
            },
            strict: at + 1 == SERVERS,
            connected: AtomicU32::new(0),
        };
        let rules = [KeepRule::Plain, KeepRule::EqualShare, KeepRule::Plain];
        Site {
            key: PoolKey::new(&KeySecret::from_seed(1), &Parts::default()),
            servers: rules.into_iter().enumerate().map(server).collect(),
            opened: AtomicU32::new(0),
            closed: AtomicU32::new(0),
            busy: Mutex::default(),
        }
    }

    fn open(&self, server: &Server, me: WorkerId) -> Option<Connection> {
        match server.strict {
            false => server.pool.total().opened(),
            true => server
                .pool
                .reserve(me, LIMIT, |victim| self.disconnect(server, victim.connection))
                .ok()?,
        }
        server.pool.need.opened();
        let before = server.connected.fetch_add(1, Ordering::Relaxed);
        assert!(!server.strict || before < LIMIT, "{before} and one more");
        Some(Connection {
            number: self.opened.fetch_add(1, Ordering::Relaxed),
            carried: 0,
        })
    }

    fn close(&self, server: &Server, connection: Connection) {
        self.disconnect(server, connection);
        server.pool.total().closed();
    }

    fn disconnect(&self, server: &Server, connection: Connection) {
        assert!(
            !self.busy.lock().contains(&connection.number),
            "it carries a request"
        );
        server.connected.fetch_sub(1, Ordering::Relaxed);
        self.closed.fetch_add(1, Ordering::Relaxed);
    }

    fn purge(&self, server: &Server, me: WorkerId, period: u64) {
        let mut gone = Vec::new();
        let _ = server.pool.purge(me, period, &server.figures, &mut gone);
        gone.into_iter()
            .for_each(|connection| self.close(server, connection));
    }

    /// Nobody uses anything: the purge of a few periods closes all there is.
    fn drain(&self) {
        for server in &self.servers {
            let idle = || server.pool.need.read().idle;
            assert_eq!(server.pool.need.read().used, 0);
            assert_eq!(idle(), server.pool.idle() + server.pool.safe());
            assert_eq!(idle(), server.pool.total().read());
            for period in STEPS..STEPS + PERIODS_MAX {
                (0..WORKERS).for_each(|worker| self.purge(server, WorkerId(worker), period));
            }
            assert_eq!((idle(), server.pool.total().read()), (0, 0));
            assert_eq!(server.connected.load(Ordering::Relaxed), 0);
            assert_eq!((server.pool.need.read().need, server.pool.users()), (0, 0));
        }
        let closed = self.closed.load(Ordering::Relaxed);
        assert_eq!(self.opened.load(Ordering::Relaxed), closed);
    }
}

/// One worker of the four, and the tickets of what it has parked.
struct Worker<'s> {
    site: &'s Site,
    id: WorkerId,
    tickets: Vec<(usize, Ticket)>,
}

impl Worker<'_> {
    fn step(&mut self, step: u64) {
        let at = (step as usize + usize::from(self.id.0)) % SERVERS;
        let server = &self.site.servers[at];
        match step % 4 {
            0 | 1 => self.request(at),
            2 => self.event(),
            _ if self.id.0.is_multiple_of(2) => {
                if let Some(evicted) = server.pool.evict(self.id) {
                    self.site.close(server, evicted.connection);
                }
            }
            _ => self.site.purge(server, self.id, step / 4),
        }
    }

    fn request(&mut self, at: usize) {
        let (site, server) = (self.site, &self.site.servers[at]);
        let gate = Gate {
            figures: server.figures,
            ..GATE
        };
        let wanted = [Wanted::Any, Wanted::SafeFirst][at % 2];
        let found = server.pool.find(self.id, &site.key, wanted, &gate);
        let Some(mut connection) = found
            .map(Found::into_connection)
            .ok()
            .or_else(|| site.open(server, self.id))
        else {
            return;
        };
        assert!(
            site.busy.lock().insert(connection.number),
            "a connection carries one request"
        );
        thread::yield_now();
        assert!(site.busy.lock().remove(&connection.number));
        connection.carried += 1;
        let released = Released {
            mode: Mode::Always,
            private: false,
            maintenance: false,
            purge_delay: true,
            reverse: false,
            streams: 0,
            free_streams: 1,
            proven: Proven::after(connection.carried),
            reuses_left: None,
            descriptors: GATE.descriptors,
            figures: server.figures,
        };
        match server.pool.release(self.id, &site.key, &released, connection) {
            Ok(ticket) => self.tickets.push((at, ticket)),
            Err(refused) => {
                site.close(server, refused.connection);
                server.pool.need.closed();
            }
        }
    }

    /// The peer of the connection that was parked last closes it, unless that has been lent.
    fn event(&mut self) {
        let Some((at, ticket)) = self.tickets.pop() else {
            return;
        };
        let server = &self.site.servers[at];
        if let Some(taken) = server.pool.take(self.id, ticket) {
            match taken.carried % 2 {
                0 => assert!(taken.put_back().is_none(), "nobody drained the pool"),
                _ => self.site.close(server, taken.remove()),
            }
        }
    }
}

const MANY: Depth = Depth {
    schedules: 10_000,
    ..USUAL
};

#[test]
fn four_workers_at_three_servers_drain_to_zero() {
    explore_to(MANY, || {
        let site = Arc::new(Site::new());
        together(&site, u32::from(WORKERS), |site, number| {
            let mut worker = Worker {
                site,
                id: WorkerId(number as u16),
                tickets: Vec::new(),
            };
            (0..STEPS).for_each(|step| worker.step(step));
        });
        site.drain();
    });
}
