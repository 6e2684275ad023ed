//! One pool and two or three workers at it: take-over, events, purge, eviction, limits.

use crate::{GATE, LONG, explore, explore_to, together};
use forebay::decide::reuse::{Descriptors, Figures, Mode, OpenReason, Proven, Released, Wanted};
use forebay::policy::WorkerId;
use forebay::shared::key::{KeySecret, Parts, PoolKey};
use forebay::shared::pool::{Evicted, Found, Pool, Ticket};
use forebay::sync::{Arc, AtomicU32, Mutex, Ordering};

/// A pool, its one key, and what became of each connection.
struct Site {
    pool: Pool<u32>,
    key: PoolKey,
    /// Of what the first worker had parked before anything began.
    tickets: Mutex<Vec<Ticket>>,
    /// In the hands of a worker, or closed.
    out: Mutex<Vec<u32>>,
    /// As the server sees it.
    connected: AtomicU32,
}

const FIGURES: Figures = GATE.figures;

impl Site {
    /// The first worker has parked that many connections, 0 and up.
    fn new(workers: u16, connections: u32) -> Arc<Self> {
        let site = Site {
            pool: Pool::new(workers),
            key: PoolKey::new(&KeySecret::from_seed(1), &Parts::default()),
            tickets: Mutex::default(),
            out: Mutex::default(),
            connected: AtomicU32::new(0),
        };
        for connection in 0..connections {
            site.pool.need.opened();
            site.pool.total().opened();
            site.connected.fetch_add(1, Ordering::Relaxed);
            let ticket = site.park(WorkerId(0), connection);
            site.tickets.lock().push(ticket);
        }
        Arc::new(site)
    }

    fn park(&self, worker: WorkerId, connection: u32) -> Ticket {
        self.pool.park(worker, &self.key, Proven::Safe, connection)
    }

    fn find(&self, worker: WorkerId) -> Result<Found<u32>, OpenReason> {
        self.pool.find(worker, &self.key, Wanted::Any, &GATE)
    }

    fn close(&self, connection: u32) {
        self.disconnect(connection);
        self.pool.total().closed();
    }

    fn disconnect(&self, connection: u32) {
        self.out.lock().push(connection);
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn purge(&self, worker: WorkerId, period: u64) {
        let mut gone = Vec::new();
        let _ = self.pool.purge(worker, period, &FIGURES, &mut gone);
        gone.into_iter().for_each(|connection| self.close(connection));
    }

    /// A connection is in one place, and every counter agrees: of these, `used` are lent.
    fn check(&self, connections: u32, used: u32) {
        let mut all = std::mem::take(&mut *self.out.lock());
        let workers = || (0..self.pool.workers()).map(WorkerId);
        let counted = self.pool.need.read();
        let parked: u32 = workers().map(|worker| self.pool.parked_by(worker)).sum();
        assert_eq!((counted.used, counted.idle), (used, parked));
        assert_eq!(self.pool.idle() + self.pool.safe(), parked);
        workers().for_each(|worker| self.pool.drain(worker, &mut all));
        all.sort_unstable();
        assert_eq!(all, (0..connections).collect::<Vec<_>>());
        assert_eq!(self.pool.need.read().idle, 0);
    }
}

/// The owner parks another one, hears that the peer closed the first, and purges; a sibling takes over and parks
/// what it took.
#[test]
fn park_and_take_over_and_peer_close_and_purge() {
    explore_to(LONG, || {
        let site = Site::new(2, 2);
        together(&site, 2, |site, number| match number {
            0 => {
                let ticket = site.tickets.lock()[0];
                if let Some(taken) = site.pool.take(WorkerId(0), ticket) {
                    site.close(taken.remove());
                }
                site.purge(WorkerId(0), 1);
                site.pool.need.opened();
                site.pool.total().opened();
                site.park(WorkerId(0), 2);
            }
            _ => {
                if let Ok(Found::Stolen { connection, from }) = site.find(WorkerId(1)) {
                    assert_eq!(from, WorkerId(0));
                    site.park(WorkerId(1), connection);
                }
            }
        });
        site.check(3, 0);
    });
}

/// An event on a parked connection that is still good, while one sibling takes over and another evicts.
#[test]
fn a_stale_event_beside_a_take_over_and_an_eviction() {
    explore_to(LONG, || {
        let site = Site::new(3, 2);
        together(&site, 3, |site, number| match number {
            0 => {
                let ticket = site.tickets.lock()[1];
                if let Some(taken) = site.pool.take(WorkerId(0), ticket) {
                    assert_eq!(*taken, 1);
                    assert_eq!(taken.put_back(), None, "its place was kept");
                }
            }
            1 => {
                if let Ok(found) = site.find(WorkerId(1)) {
                    site.park(WorkerId(1), found.into_connection());
                }
            }
            _ => {
                if let Some(evicted) = site.pool.evict(WorkerId(2)) {
                    assert!(evicted.from.0 < 2);
                    site.close(evicted.connection);
                }
            }
        });
        site.check(2, 0);
    });
}

/// Counters after migration: what left one worker's is in the other's, whatever happened in between.
#[test]
fn counters_follow_a_connection_that_migrates() {
    explore(|| {
        let site = Site::new(2, 1);
        together(&site, 2, |site, number| {
            let me = WorkerId(number as u16);
            if let Ok(found) = site.find(me) {
                site.park(me, found.into_connection());
            }
        });
        let parked = [0, 1].map(|worker| site.pool.parked_by(WorkerId(worker)));
        assert!(parked == [1, 0] || parked == [0, 1], "{parked:?}");
        assert_eq!(site.pool.need.read().max_used, 1);
        site.check(1, 0);
    });
}

/// Two thieves of one connection: one has it, and the other knows why not.
#[test]
fn two_thieves_of_one_connection() {
    explore_to(LONG, || {
        let site = Site::new(3, 1);
        together(&site, 3, |site, number| {
            match number {
                0 => {}
                thief => match site.find(WorkerId(thief as u16)) {
                    Ok(found) => site.out.lock().push(found.into_connection()),
                    Err(why) => assert!(
                        matches!(why, OpenReason::None | OpenReason::Key | OpenReason::Contended),
                        "{why:?}"
                    ),
                },
            };
        });
        assert_eq!(*site.out.lock(), [0], "one of them has it");
        site.check(1, 1);
    });
}

/// Two workers end the same period: one decay, one cut, while a request raises the maximum.
#[test]
fn a_period_ends_once() {
    explore(|| {
        let site = Site::new(2, 4);
        site.pool.need.opened();
        site.park(WorkerId(1), 4);
        together(&site, 2, |site, number| {
            site.purge(WorkerId(number as u16), 1);
            let counted = site.pool.need.read();
            assert!(counted.need >= counted.max_used);
        });
        let counted = site.pool.need.read();
        assert_eq!(
            (counted.max_used, counted.need),
            (0, 1),
            "one was used at once; one decay"
        );
        assert!(site.out.lock().len() <= 3, "half of four, and one");
        site.check(5, 0);
    });
}

/// The need is never below what was used at most, though a period ends between the two.
#[test]
fn a_rise_beside_a_decay_keeps_the_estimates_in_order() {
    explore(|| {
        let site = Site::new(2, 1);
        together(&site, 2, |site, number| match number {
            0 => site.purge(WorkerId(1), 1),
            _ => (0..2).for_each(|_| site.pool.need.opened()),
        });
        let counted = site.pool.need.read();
        assert_eq!(counted.used, 2);
        assert!(
            counted.need >= counted.max_used && counted.need >= 1,
            "{counted:?}"
        );
        assert_eq!(site.pool.need.read().idle, 1);
    });
}

/// POOL-34: two releases, one place.
#[test]
fn the_limit_of_a_pool_is_kept_by_two_releases() {
    explore(|| {
        let site = Site::new(2, 0);
        (0..2).for_each(|_| site.pool.need.opened());
        together(&site, 2, |site, number| {
            let released = Released {
                mode: Mode::Always,
                private: false,
                maintenance: false,
                purge_delay: true,
                reverse: false,
                streams: 0,
                free_streams: 1,
                proven: Proven::Once,
                reuses_left: None,
                descriptors: Descriptors {
                    used: 0,
                    low: 20,
                    high: 25,
                },
                figures: Figures {
                    idle_max: Some(1),
                    ..FIGURES
                },
            };
            let me = WorkerId(number as u16);
            if let Err(refused) = site.pool.release(me, &site.key, &released, number) {
                site.out.lock().push(refused.connection);
                site.pool.need.closed();
            }
        });
        assert_eq!(site.out.lock().len(), 1);
        site.check(2, 0);
    });
}

/// POOL-51: the server never sees more connections than the limit, though two workers open and one of them may close
/// what a third had parked.
#[test]
fn a_strict_limit_is_never_exceeded() {
    const LIMIT: u32 = 2;
    explore_to(LONG, || {
        let site = Site::new(3, LIMIT);
        together(&site, 3, |site, number| {
            if number == 0 {
                return; // the owner is idle: its connections are what may be closed
            }
            let close = |victim: Evicted<u32>| site.disconnect(victim.connection);
            if site.pool.reserve(WorkerId(number as u16), LIMIT, close).is_ok() {
                site.pool.need.opened();
                let before = site.connected.fetch_add(1, Ordering::Relaxed);
                assert!(before < LIMIT, "{before} and one more");
                site.pool.need.closed();
                site.connected.fetch_sub(1, Ordering::Relaxed);
                site.pool.total().closed();
            }
        });
        let closed = site.out.lock().len() as u32;
        assert_eq!(site.pool.total().read(), LIMIT - closed);
        site.check(LIMIT, 0);
    });
}
