//! Many workers before three servers of one slot each, whole: choose, take or wait, be granted or give up, give back;
//! while a server goes and comes.
//!
//! Every request ends once; no server has more than its limit at any time; nobody waits for ever; each wait that its own
//! worker did not end is told once; and at the end nothing is served and nobody waits.

use crate::queues::entry;
use crate::{Depth, USUAL, explore, explore_to, together};
use forebay::decide::balance::{Algorithm, servers};
use forebay::policy::{BackendId, Draw, ServerId, ServerIndex, Table, WorkerId};
use forebay::shared::queue::{Grants, Outcome, Rank, Waiter};
use forebay::shared::table::{Admin, BackendTable, Waiting};
use forebay::sync::{Arc, AtomicU32, Ordering, thread};
// What the test writes down is no part of the interleavings; nor is where a table is published.
use parking_lot::Mutex;

type Backend = BackendTable<()>;

/// Looks at the own waiter before it counts as forgotten.
const LOOKS_MAX: u32 = if cfg!(feature = "shuttle") {
    50_000
} else {
    500_000_000
};

/// How large a run is.
#[derive(Clone, Copy)]
struct Size {
    workers: u32,
    servers: u32,
    /// Of each worker.
    requests: u32,
}

struct House {
    size: Size,
    published: Mutex<Arc<Backend>>,
    inside: Vec<AtomicU32>,
    /// Waits so far that others ended, and those who were told.
    waits: Mutex<Vec<u64>>,
    told: Mutex<Vec<u64>>,
    ends: Mutex<Vec<End>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Served,
    GaveUp,
    Refused,
}

struct Worker<'a> {
    house: &'a House,
    id: WorkerId,
    current: Arc<Backend>,
    grants: Grants,
    chance: Chance,
    waits: u64,
}

/// A server whose slot is held.
#[derive(Clone, Copy)]
struct Slot {
    server: ServerId,
    near: ServerIndex,
}

impl House {
    fn new(algorithm: Algorithm, size: Size) -> House {
        let entries = (0..size.servers).map(|id| entry(id, 1)).collect();
        let table = BackendTable::first(BackendId(1), "app", algorithm, entries);
        table.open();
        House {
            size,
            published: Mutex::new(Arc::new(table)),
            inside: (0..size.servers).map(|_| AtomicU32::new(0)).collect(),
            waits: Mutex::default(),
            told: Mutex::default(),
            ends: Mutex::default(),
        }
    }

    fn tell(&self, table: &Backend, grants: &mut Grants) {
        loop {
            self.told.lock().extend(grants.drain().map(|grant| grant.token));
            if !grants.take_unfinished() {
                return;
            }
            table.look(grants);
        }
    }

    /// The last of three servers goes, and all, and they come back; as `control` publishes. An only one stays.
    fn change(&self) {
        const GOING: [&[u16]; 4] = [&[2], &[], &[0, 1, 2], &[]];
        for gone in GOING.iter().filter(|_| self.size.servers == 3) {
            (0..5).for_each(|_| thread::yield_now());
            let before = self.published.lock().clone();
            let mut entries = before.entries.to_vec();
            for (entry, at) in entries.iter_mut().zip(0..) {
                entry.state = if gone.contains(&at) {
                    Admin::Maint
                } else {
                    Admin::Ready
                };
            }
            let next = Arc::new(before.next(before.algorithm(), entries));
            next.open();
            *self.published.lock() = next.clone();
            let mut grants = Grants::new();
            next.send_back(&before, &mut grants);
            next.look(&mut grants);
            self.tell(&next, &mut grants);
        }
    }

    fn check_at_rest(&self) {
        let table = self.published.lock().clone();
        for server in servers(&*table) {
            assert_eq!((table.served(server), table.waiting(server)), (0, 0));
        }
        assert_eq!(table.queued(), 0);
        let (mut waits, mut told) = (self.waits.lock().clone(), self.told.lock().clone());
        waits.sort_unstable();
        told.sort_unstable();
        assert_eq!(waits, told, "each is told once");
        assert_eq!(
            self.ends.lock().len() as u32,
            self.size.workers * self.size.requests
        );
    }
}

impl Worker<'_> {
    fn request(&mut self) {
        self.turn();
        let tied =
            (self.chance.draw(3) == 0).then(|| ServerIndex(self.chance.draw(self.house.size.servers) as u16));
        let end = match self.acquire(tied) {
            Ok(slot) => {
                self.serve(slot);
                End::Served
            }
            Err(end) => end,
        };
        self.house.ends.lock().push(end);
    }

    /// The beginning of a turn: is there a newer table?
    fn turn(&mut self) {
        let newest = self.house.published.lock().clone();
        if !Arc::ptr_eq(&newest, &self.current) {
            self.current = newest;
            self.current.look(&mut self.grants);
            self.house.tell(&self.current, &mut self.grants);
        }
    }

    fn acquire(&mut self, mut tied: Option<ServerIndex>) -> Result<Slot, End> {
        loop {
            if !self.current.has_usable() {
                return Err(End::Refused);
            }
            let place = tied.take().filter(|server| self.current.usable(*server));
            match place.or_else(|| self.choose()) {
                Some(server) if self.current.take(server) => {
                    return Ok(self.slot(server));
                }
                Some(server) if place.is_none() => self.current.changed(server),
                _ => {}
            }
            if let Some(outcome) = self.wait(place) {
                return outcome;
            }
            self.turn();
        }
    }

    fn choose(&mut self) -> Option<ServerIndex> {
        if self.current.is_queued() {
            return None;
        }
        self.current.pick(None, &mut self.chance).server
    }

    fn slot(&self, server: ServerIndex) -> Slot {
        Slot {
            server: self.current.at(server).server.id,
            near: server,
        }
    }

    /// Waits; `None`: choose again.
    fn wait(&mut self, place: Option<ServerIndex>) -> Option<Result<Slot, End>> {
        self.waits += 1;
        let token = u64::from(self.id.0) << 32 | self.waits;
        let waiter = Arc::new(Waiter::new(self.id, token));
        let with = self.current.clone();
        let rank = match with.wait(place, waiter.clone(), (0, 0), &mut self.grants) {
            Waiting::Queued { rank, .. } => rank,
            Waiting::Full | Waiting::Closed => return None,
        };
        self.house.tell(&with, &mut self.grants);
        let patience = if self.chance.draw(3) == 0 {
            self.chance.draw(20)
        } else {
            LOOKS_MAX
        };
        for _ in 0..patience {
            match waiter.outcome() {
                None => thread::yield_now(),
                Some(outcome) => {
                    self.house.waits.lock().push(token);
                    return self.came(outcome);
                }
            }
            self.turn();
        }
        assert!(patience < LOOKS_MAX, "nobody waits for ever");
        Some(self.give_up(&with, place, rank, &waiter))
    }

    fn came(&mut self, outcome: Outcome) -> Option<Result<Slot, End>> {
        match outcome {
            Outcome::Granted(granted) => Some(Ok(Slot {
                server: granted.server,
                near: granted.near,
            })),
            Outcome::SentBack => None,
            Outcome::Cancelled => panic!("only its own worker cancels"),
        }
    }

    fn give_up(
        &mut self,
        with: &Backend,
        place: Option<ServerIndex>,
        rank: Rank,
        waiter: &Waiter,
    ) -> Result<Slot, End> {
        if let Err(outcome) = with.cancel(place, rank, waiter) {
            self.house.waits.lock().push(waiter.token);
            if let Some(Ok(slot)) = self.came(outcome) {
                self.give_back(slot);
            }
        }
        Err(End::GaveUp)
    }

    fn serve(&mut self, slot: Slot) {
        let inside = &self.house.inside[slot.server.0 as usize];
        assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "one at a time");
        thread::yield_now();
        inside.fetch_sub(1, Ordering::AcqRel);
        self.turn();
        self.give_back(slot);
    }

    fn give_back(&mut self, slot: Slot) {
        self.current.give_back(slot.server, slot.near, &mut self.grants);
        self.house.tell(&self.current, &mut self.grants);
    }
}

struct Chance(u32);

impl Draw for Chance {
    fn draw(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) % bound
    }
}

fn crowd(algorithm: Algorithm, size: Size) {
    let house = Arc::new(House::new(algorithm, size));
    together(&house, size.workers + 1, |house, number| match number {
        0 => house.change(),
        _ => {
            let mut worker = Worker {
                house,
                id: WorkerId(number as u16),
                current: house.published.lock().clone(),
                grants: Grants::new(),
                chance: Chance(number),
                waits: 0,
            };
            (0..house.size.requests).for_each(|_| worker.request());
        }
    });
    house.check_at_rest();
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::RoundRobin, Algorithm::LeastConn, Algorithm::Random(2)];

/// AC-23, Q-9…16.
#[test]
fn a_crowd_before_servers_that_come_and_go() {
    let size = Size {
        workers: 8,
        servers: 3,
        requests: 4,
    };
    for algorithm in ALGORITHMS {
        explore(move || crowd(algorithm, size));
    }
}

/// AC-23: two meet again and again where nobody else frees a slot later, so that a wake-up that was lost is seen.
#[test]
fn two_before_one_server() {
    let size = Size {
        workers: 2,
        servers: 1,
        requests: 3,
    };
    for algorithm in ALGORITHMS {
        explore_to(
            Depth {
                schedules: 5000,
                ..USUAL
            },
            move || crowd(algorithm, size),
        );
    }
}
