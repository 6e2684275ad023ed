//! Waiting for slots: take and enter beside release, grant beside cancel, dequeuers beside each other, a server that
//! goes while somebody enters its queue.
//!
//! What must hold when all threads are through: nobody waits beside a free slot; every wait ends once, and is told
//! once; and when all have left, nothing is served and nobody waits.

use crate::{LONG, explore, explore_to, together};
use forebay::decide::balance::{Algorithm, servers};
use forebay::policy::{BackendId, ServerId, ServerIndex, Table, WorkerId};
use forebay::shared::queue::{Grants, Outcome, Rank, Waiter};
use forebay::shared::server::Server;
use forebay::shared::table::{Admin, BackendTable, Entry, Waiting};
use forebay::sync::{self, Arc};
// What the test writes down is no part of the interleavings.
use parking_lot::Mutex;

type Backend = BackendTable<()>;

/// A table, those who hold slots of it, and those who wait.
struct Scene {
    /// Where it is published.
    table: sync::Mutex<Arc<Backend>>,
    guests: Mutex<Vec<Guest>>,
    came: Mutex<u64>,
    told: Mutex<Vec<u64>>,
    /// Slots that were taken without waiting.
    held: Mutex<Vec<ServerId>>,
}

struct Guest {
    waiter: Arc<Waiter>,
    with: Arc<Backend>,
    place: Option<ServerIndex>,
    rank: Rank,
    has_left: bool,
}

pub(crate) fn entry(id: u32, limit: u32) -> Entry<()> {
    Entry {
        limit,
        ..Entry::new(Arc::new(Server::new(ServerId(id), "app", "server", 1)))
    }
}

impl Scene {
    /// Servers with one slot each, all taken.
    fn full(servers: u32) -> Scene {
        Scene::of((0..servers).map(|id| entry(id, 1)).collect())
    }

    fn of(entries: Vec<Entry<()>>) -> Scene {
        let table = BackendTable::first(BackendId(1), "app", Algorithm::RoundRobin, entries);
        table.open();
        let mut held = Vec::new();
        for server in servers(&table) {
            while table.take(server) {
                held.push(table.at(server).server.id);
            }
        }
        Scene {
            table: sync::Mutex::new(Arc::new(table)),
            guests: Mutex::default(),
            came: Mutex::default(),
            told: Mutex::default(),
            held: Mutex::new(held),
        }
    }

    fn table(&self) -> Arc<Backend> {
        self.table.lock().clone()
    }

    /// A request that needs this server, or any: it has a slot, or waits.
    fn come(&self, place: Option<u16>) {
        let table = self.table();
        let place = place.map(ServerIndex);
        let taken = match place {
            Some(server) => table.take(server).then_some(server),
            // As a balancer does: by one look at each.
            None if table.is_queued() => None,
            None => servers(&*table).find(|server| table.usable(*server) && table.take(*server)),
        };
        match taken {
            Some(server) => self.held.lock().push(table.at(server).server.id),
            None => self.wait(&table, place),
        }
    }

    /// The beginning of a worker's turn.
    fn turn(&self, before: &Arc<Backend>) {
        let (table, mut grants) = (self.table(), Grants::new());
        if !Arc::ptr_eq(before, &table) {
            table.look(&mut grants);
            self.tell(&table, grants);
        }
    }

    fn wait(&self, table: &Arc<Backend>, place: Option<ServerIndex>) {
        let token = {
            let mut came = self.came.lock();
            *came += 1;
            *came
        };
        let waiter = Arc::new(Waiter::new(WorkerId(0), token));
        let mut grants = Grants::new();
        if let Waiting::Queued { rank, .. } = table.wait(place, waiter.clone(), (0, 0), &mut grants) {
            self.guests.lock().push(Guest {
                waiter,
                with: table.clone(),
                place,
                rank,
                has_left: false,
            });
        }
        self.tell(table, grants);
    }

    /// Who took a slot of that server gives it back.
    fn leave(&self, server: u32) {
        {
            let mut held = self.held.lock();
            let at = held.iter().position(|id| *id == ServerId(server));
            held.swap_remove(at.expect("somebody holds it"));
        }
        self.give_back(server);
    }

    fn give_back(&self, server: u32) {
        let (table, mut grants) = (self.table(), Grants::new());
        table.give_back(ServerId(server), ServerIndex(server as u16), &mut grants);
        self.tell(&table, grants);
    }

    /// The guest's own worker has waited long enough, or its client has left.
    fn cancel(&self, guest: usize) {
        let (waiter, with, place, rank) = {
            let guests = self.guests.lock();
            let guest = &guests[guest];
            (guest.waiter.clone(), guest.with.clone(), guest.place, guest.rank)
        };
        match with.cancel(place, rank, &waiter) {
            Ok(()) => self.told.lock().push(waiter.token),
            Err(Outcome::Granted(granted)) => {
                self.guests.lock()[guest].has_left = true;
                self.give_back(granted.server.0);
            }
            Err(_) => {}
        }
    }

    /// As `control` publishes a table.
    fn replace(&self, change: fn(&mut Vec<Entry<()>>)) {
        let before = self.table();
        let mut entries = before.entries.to_vec();
        change(&mut entries);
        let next = Arc::new(before.next(before.algorithm(), entries));
        next.open();
        *self.table.lock() = next.clone();
        let mut grants = Grants::new();
        next.send_back(&before, &mut grants);
        next.look(&mut grants);
        self.tell(&next, grants);
    }

    fn tell(&self, table: &Backend, mut grants: Grants) {
        loop {
            self.told.lock().extend(grants.drain().map(|grant| grant.token));
            if !grants.take_unfinished() {
                return;
            }
            table.look(&mut grants);
        }
    }

    /// Nobody waits beside a free slot; then all leave, and nothing is left.
    fn end(&self) {
        let table = self.table();
        let is_free = |server| table.served(server) < table.limit(server);
        for guest in self
            .guests
            .lock()
            .iter()
            .filter(|guest| guest.waiter.outcome().is_none())
        {
            let beside = match guest.place {
                Some(server) => is_free(server),
                None => servers(&*table).any(|server| table.usable(server) && is_free(server)),
            };
            assert!(!beside, "{:?} waits for {:?}", guest.rank, guest.place);
        }
        servers(&*table).for_each(|server| assert!(table.served(server) <= table.limit(server)));
        loop {
            let next = self.held.lock().pop();
            match next.or_else(|| self.next_to_leave()) {
                Some(server) => self.give_back(server.0),
                None => break,
            }
        }
        let guests = self.guests.lock();
        let waiting = guests
            .iter()
            .filter(|guest| guest.waiter.outcome().is_none())
            .count();
        assert_eq!((waiting, table.queued()), (0, 0));
        servers(&*table).for_each(|server| assert_eq!((table.served(server), table.waiting(server)), (0, 0)));
        let mut told = self.told.lock().clone();
        let mut waited: Vec<u64> = guests.iter().map(|guest| guest.waiter.token).collect();
        told.sort_unstable();
        waited.sort_unstable();
        assert_eq!(told, waited, "each is told once");
    }

    fn next_to_leave(&self) -> Option<ServerId> {
        let mut guests = self.guests.lock();
        guests.iter_mut().find_map(|guest| match guest.waiter.outcome() {
            Some(Outcome::Granted(granted)) if !guest.has_left => {
                guest.has_left = true;
                Some(granted.server)
            }
            _ => None,
        })
    }
}

/// one enters a server's queue while the last one leaves, and another comes.
#[test]
fn take_and_enter_beside_a_release() {
    explore(|| {
        let scene = Arc::new(Scene::full(1));
        together(&scene, 3, |scene, number| match number {
            0 => scene.leave(0),
            _ => scene.come(Some(0)),
        });
        scene.end();
    });
}

/// The same for the backend's queue.
#[test]
fn take_and_enter_for_any_beside_a_release() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::full(1));
        together(&scene, 3, |scene, number| match number {
            0 => scene.leave(0),
            _ => scene.come(None),
        });
        scene.end();
    });
}

/// two servers become free while one enters the backend's queue.
#[test]
fn a_second_look_at_two_servers() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::full(2));
        together(&scene, 3, |scene, number| match number {
            0 => scene.come(None),
            server => scene.leave(server - 1),
        });
        scene.end();
    });
}

/// the same while somebody waits already, who may be served before the one that comes is there.
#[test]
fn who_joins_those_who_wait_is_not_left_alone() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::full(2));
        scene.come(None);
        together(&scene, 3, |scene, number| match number {
            0 => scene.come(None),
            server => scene.leave(server - 1),
        });
        scene.end();
    });
}

/// time is up at the moment of the grant; the slot is not lost.
#[test]
fn a_grant_beside_a_timeout() {
    for place in [Some(0), None] {
        explore(move || {
            let scene = Arc::new(Scene::full(1));
            scene.come(place);
            together(&scene, 2, |scene, number| match number {
                0 => scene.leave(0),
                _ => scene.cancel(0),
            });
            scene.end();
        });
    }
}

/// The same while others wait behind: the slot is the next one's. A client that left is cancelled like one whose time is
/// up; here it is the second, and a third comes.
#[test]
fn a_grant_beside_a_client_that_leaves() {
    for place in [Some(0), None] {
        explore_to(LONG, move || {
            let scene = Arc::new(Scene::full(1));
            (0..2).for_each(|_| scene.come(place));
            let both = Arc::new((scene, place));
            together(&both, 3, |(scene, place), number| match number {
                0 => scene.leave(0),
                1 => scene.cancel(0),
                _ => scene.come(*place),
            });
            both.0.end();
        });
    }
}

/// Two dequeuers of two servers: one waiter gets one slot.
#[test]
fn two_dequeuers() {
    for waiting in [1, 2] {
        explore_to(LONG, move || {
            let scene = Arc::new(Scene::full(2));
            (0..waiting).for_each(|_| scene.come(None));
            together(&scene, 2, |scene, number| scene.leave(number));
            scene.end();
        });
    }
}

/// Two of one server, with both queues: the heads change between the look and the pop.
#[test]
fn two_dequeuers_of_both_queues() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::of(vec![entry(0, 2)]));
        scene.come(None);
        scene.come(Some(0));
        together(&scene, 2, |scene, _| scene.leave(0));
        scene.end();
    });
}

/// a server goes while one enters its queue with the table of before; it is not stranded.
#[test]
fn a_server_that_goes_while_one_enters() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::full(1));
        together(&scene, 2, |scene, number| match number {
            0 => scene.replace(|entries| entries[0].state = Admin::Maint),
            _ => scene.come(Some(0)),
        });
        scene.end();
    });
}

/// AC-25: the same for the last server and those who wait for any, while a slot is given back.
#[test]
fn the_last_server_goes_while_one_enters() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::full(1));
        together(&scene, 3, |scene, number| match number {
            0 => scene.replace(|entries| entries[0].state = Admin::Maint),
            1 => scene.come(None),
            _ => scene.leave(0),
        });
        assert!(
            scene
                .guests
                .lock()
                .iter()
                .all(|guest| guest.waiter.outcome().is_some()),
            "nobody waits for nothing"
        );
        scene.end();
    });
}

/// a server comes up while one enters with the table of before, which does not know it. Its worker takes the new
/// table up, and looks.
#[test]
fn a_server_that_comes_while_one_enters() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::full(1));
        scene.replace(|entries| {
            entries.push(entry(1, 1));
            entries[1].state = Admin::Maint;
        });
        together(&scene, 2, |scene, number| match number {
            0 => scene.replace(|entries| entries[1].state = Admin::Ready),
            _ => {
                let before = scene.table();
                scene.come(None);
                scene.turn(&before);
            }
        });
        scene.end();
    });
}

/// two give back what is above a limit that was lowered, while somebody waits.
#[test]
fn two_leave_above_a_lowered_limit() {
    explore_to(LONG, || {
        let scene = Arc::new(Scene::of(vec![entry(0, 2)]));
        scene.come(Some(0));
        scene.replace(|entries| entries[0].limit = 1);
        together(&scene, 2, |scene, _| scene.leave(0));
        scene.end();
    });
}

/// A slot is claimed for one who gives up at that moment: it is given back.
#[test]
fn a_raised_limit_beside_a_timeout() {
    for place in [Some(0), None] {
        explore_to(LONG, move || {
            let scene = Arc::new(Scene::full(1));
            scene.come(place);
            together(&scene, 2, |scene, number| match number {
                0 => scene.replace(|entries| entries[0].limit = 2),
                _ => scene.cancel(0),
            });
            scene.end();
        });
    }
}
