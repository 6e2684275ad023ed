//! Interleavings of what two threads can touch (`forebay::shared`).
//!
//! The same scenarios run three ways:
//!
//! ```text
//! cargo test --no-default-features --test races                      on std, with real threads
//! cargo test --no-default-features --features loom --test races      every interleaving of two or three threads
//! cargo test --no-default-features --features shuttle --test races   many random ones, and the composition
//! ```
//!
//! Each names the invariant that it checks: slots ≤ limit, nobody waits beside a free slot, a connection is in one
//! place, no message is left behind, all drains to zero.

use forebay::decide::reuse::{Descriptors, Figures, Gate, KeepRule, Proven, Sharing, Wanted};
use forebay::policy::WorkerId;
use forebay::shared::bell::Bell;
use forebay::shared::key::{KeySecret, Parts, PoolKey};
use forebay::shared::pool::{Pool, Ticket};
use forebay::shared::slots::{Occupancy, Release, Slots};
use forebay::sync::{Arc, AtomicU32, Mutex, Ordering, thread};

#[cfg(not(feature = "loom"))]
#[path = "races/composition.rs"]
mod composition;
#[cfg(not(feature = "loom"))]
#[path = "races/crowd.rs"]
mod crowd;
#[cfg(not(feature = "loom"))]
#[path = "races/drain.rs"]
mod drain;
#[path = "races/pools.rs"]
mod pools;
#[path = "races/queues.rs"]
mod queues;

const OWNER: WorkerId = WorkerId(0);
const THIEF: WorkerId = WorkerId(1);
/// Nothing stands between a worker and its siblings' connections.
const GATE: Gate = Gate {
    sharing: Sharing::On,
    reverse: false,
    figures: Figures {
        idle_reserve: 0,
        idle_max: None,
        need_floor: 0,
        preconnect: 0,
        rule: KeepRule::Plain,
    },
    descriptors: Descriptors {
        used: 0,
        low: 20,
        high: 25,
    },
};

/// How far a scenario is explored.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "loom reads the one, shuttle the other, std none")]
struct Depth {
    /// Switches between threads that are not forced, in one interleaving of loom. Most faults need one or two; a
    /// third one takes a long scenario minutes.
    preemptions: usize,
    /// Random schedules of shuttle.
    schedules: usize,
}

const USUAL: Depth = Depth {
    preemptions: 3,
    schedules: 2000,
};
/// Of three threads, or of many steps.
const LONG: Depth = Depth {
    preemptions: 2,
    ..USUAL
};

/// Runs a scenario under every interleaving, or under many.
fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    explore_to(USUAL, scenario);
}

/// The same to another depth.
#[cfg_attr(
    not(any(feature = "loom", feature = "shuttle")),
    expect(unused_variables, reason = "std runs each a few hundred times")
)]
fn explore_to(depth: Depth, scenario: impl Fn() + Send + Sync + 'static) {
    #[cfg(feature = "loom")]
    {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = model.preemption_bound.or(Some(depth.preemptions));
        model.check(scenario);
    }
    #[cfg(all(feature = "shuttle", not(feature = "loom")))]
    shuttle::check_random(scenario, depth.schedules);
    #[cfg(not(any(feature = "loom", feature = "shuttle")))]
    (0..200).for_each(|_| scenario());
}

/// Runs `each` of that many threads, this one among them, and waits for all.
fn together<S: Send + Sync + 'static>(shared: &Arc<S>, threads: u32, each: fn(&S, u32)) {
    let others: Vec<_> = (1..threads)
        .map(|number| {
            let shared = shared.clone();
            thread::spawn(move || each(&shared, number))
        })
        .collect();
    each(shared, 0);
    for other in others {
        other.join().expect("a thread of the scenario ends well");
    }
}

/// Slots ≤ limit; all drains to zero.
#[test]
fn slots_are_never_more_than_the_limit() {
    const LIMIT: u32 = 2;
    struct Door {
        slots: Slots,
        inside: AtomicU32,
    }
    explore(|| {
        let door = Arc::new(Door {
            slots: Slots::new(),
            inside: AtomicU32::new(0),
        });
        together(&door, 3, |door, _| {
            if door.slots.take(LIMIT) {
                assert!(door.inside.fetch_add(1, Ordering::AcqRel) < LIMIT);
                door.inside.fetch_sub(1, Ordering::AcqRel);
                assert_eq!(door.slots.release(), Release::Lowered);
            }
        });
        assert_eq!(
            door.slots.occupancy(),
            Occupancy {
                served: 0,
                waiting: 0
            }
        );
    });
}

/// A pool of two workers, a key, and where each connection came out.
struct Yard {
    pool: Pool<u32>,
    key: PoolKey,
    tickets: Mutex<Vec<Ticket>>,
    out: Mutex<Vec<u32>>,
}

impl Yard {
    fn new(connections: u32) -> Self {
        let key = PoolKey::new(&KeySecret::from_seed(1), &Parts::default());
        let yard = Yard {
            pool: Pool::new(2),
            key,
            tickets: Mutex::default(),
            out: Mutex::default(),
        };
        for connection in 0..connections {
            yard.park(connection);
        }
        yard
    }

    fn park(&self, connection: u32) {
        self.pool.need.opened();
        let ticket = self.pool.park(OWNER, &self.key, Proven::Once, connection);
        self.tickets.lock().push(ticket);
    }

    fn lend(&self) {
        if let Some(connection) = self.pool.lend(OWNER, &self.key, Wanted::Any) {
            self.out.lock().push(connection);
        }
    }

    fn steal(&self) {
        if let Ok(found) = self.pool.find(THIEF, &self.key, Wanted::Any, &GATE) {
            assert!(
                self.pool.need.read().idle <= 2,
                "counted before it can be found: never below zero"
            );
            self.out.lock().push(found.into_connection());
        }
    }

    /// A connection is in one place: these came out, or are still in.
    fn check(&self, connections: u32) {
        let mut all = std::mem::take(&mut *self.out.lock());
        let lent = all.len() as u32;
        let counted = self.pool.need.read();
        assert_eq!((counted.used, counted.idle), (lent, connections - lent));
        assert_eq!(self.pool.parked_by(OWNER), connections - lent);
        self.pool.drain(OWNER, &mut all);
        all.sort_unstable();
        assert_eq!(all, (0..connections).collect::<Vec<_>>());
        assert_eq!(self.pool.need.read().idle, 0);
    }
}

#[test]
fn a_connection_is_lent_or_stolen_once() {
    explore_to(LONG, || {
        let yard = Arc::new(Yard::new(1));
        together(&yard, 3, |yard, number| match number {
            0 => {
                yard.park(1);
                yard.lend();
            }
            _ => yard.steal(),
        });
        yard.check(2);
    });
}

/// An event on a parked connection, while a sibling may be taking it.
#[test]
fn a_connection_that_is_looked_at_stays_in_one_place() {
    explore(|| {
        let yard = Arc::new(Yard::new(2));
        together(&yard, 2, |yard, number| match number {
            0 => {
                let ticket = yard.tickets.lock()[1];
                if let Some(taken) = yard.pool.take(OWNER, ticket) {
                    let newest = *taken;
                    assert_eq!(newest, 1);
                    assert_eq!(taken.put_back(), None, "nobody drained the pool");
                }
            }
            _ => {
                yard.steal();
                yard.steal();
            }
        });
        yard.check(2);
    });
}

/// The same while the control thread empties the pool (POOL-52).
#[test]
fn draining_leaves_nothing_behind() {
    explore_to(LONG, || {
        let yard = Arc::new(Yard::new(1));
        together(&yard, 3, |yard, number| match number {
            0 => {
                let ticket = yard.tickets.lock()[0];
                let homeless = yard.pool.take(OWNER, ticket).and_then(|taken| taken.put_back());
                yard.out.lock().extend(homeless);
            }
            1 => yard.steal(),
            _ => {
                let mut gone = Vec::new();
                yard.pool.drain(OWNER, &mut gone);
                yard.out.lock().extend(gone);
            }
        });
        let mut all = std::mem::take(&mut *yard.out.lock());
        yard.pool.drain(OWNER, &mut all);
        assert_eq!(all, [0]);
        assert_eq!((yard.pool.parked_by(OWNER), yard.pool.need.read().idle), (0, 0));
    });
}

/// No message is left behind, although a burst wakes once.
#[test]
fn a_bell_that_rang_once_loses_no_message() {
    #[derive(Default)]
    struct Post {
        bell: Bell,
        lane: Mutex<Vec<u32>>,
        received: Mutex<Vec<u32>>,
        awake: Mutex<bool>,
    }
    impl Post {
        fn send(&self, message: u32) {
            self.lane.lock().push(message);
            if self.bell.ring() {
                *self.awake.lock() = true;
            }
        }
        /// One turn of a reader that sleeps unless it was woken.
        fn turn(&self) {
            if std::mem::take(&mut *self.awake.lock()) && self.bell.silence() {
                let messages = std::mem::take(&mut *self.lane.lock());
                self.received.lock().extend(messages);
            }
        }
    }
    explore(|| {
        let post = Arc::new(Post::default());
        together(&post, 3, |post, number| match number {
            0 => post.turn(),
            sender => post.send(sender),
        });
        post.turn();
        let mut received = std::mem::take(&mut *post.received.lock());
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
    });
}
