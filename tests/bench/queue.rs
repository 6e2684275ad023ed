//! Nanoseconds of waiting for a slot: `cargo bench --bench queue --no-default-features`. For looking, not for gating:
//! time depends on the machine, and with two threads on how they meet.
//!
//! - `take, release`: a request that does not wait, with a backend's table whose queue is empty.
//! - `enter, pass on`: one enters a queue, whose server is full, and the slot is passed on to whoever is first: one
//!   request of a backend at its limit. The line is so long that a map of so many is searched.
//! - `beside`: the same while a second thread does nothing else.
//! - `contended`: how many acquisitions of 1,000 requests find a lock held, when the queue has its own, when it shares one
//!   with the balancer, and when a sleeping reader is woken under it; the last two are the variants that were rejected.

use criterion::{Criterion, criterion_group, criterion_main};
use forebay::decide::balance::Algorithm;
use forebay::policy::{BackendId, ServerId, ServerIndex, WorkerId};
use forebay::shared::queue::{Grants, Waiter};
use forebay::shared::server::Server;
use forebay::shared::table::{BackendTable, Entry};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Backend = BackendTable<()>;

fn backend(servers: u32, algorithm: Algorithm) -> Backend {
    let entry = |id| Entry {
        limit: 1,
        ..Entry::new(Arc::new(Server::new(ServerId(id), "app", "server", 2)))
    };
    let table = BackendTable::first(BackendId(1), "app", algorithm, (0..servers).map(entry).collect());
    table.open();
    table
}

/// A backend whose slots are all taken, and so many who wait.
struct Line {
    table: Backend,
    place: Option<ServerIndex>,
    at: AtomicU64,
}

const SERVERS: u32 = 20;

impl Line {
    fn new(waiting: usize, place: Option<ServerIndex>) -> Line {
        let table = backend(SERVERS, Algorithm::RoundRobin);
        assert!((0..SERVERS).all(|server| table.take(ServerIndex(server as u16))));
        let line = Line {
            table,
            place,
            at: AtomicU64::new(0),
        };
        let mut grants = Grants::new();
        (0..waiting).for_each(|_| line.enter(&mut grants));
        line
    }

    fn enter(&self, grants: &mut Grants) {
        let at = self.at.fetch_add(1, Ordering::Relaxed);
        let waiter = Arc::new(Waiter::new(WorkerId(0), at));
        black_box(self.table.wait(self.place, waiter, (0, at as i64), grants));
    }

    /// One request comes, another one is granted the slot of one that leaves.
    fn request(&self, grants: &mut Grants) {
        self.enter(grants);
        self.table.release(self.place.unwrap_or(ServerIndex(0)), grants);
        black_box(grants.drain().count());
    }
}

fn uncontended(criterion: &mut Criterion) {
    let table = backend(SERVERS, Algorithm::RoundRobin);
    let mut grants = Grants::new();
    criterion.bench_function("queue/take, release", |bencher| {
        bencher.iter(|| {
            assert!(table.take(black_box(ServerIndex(3))));
            table.release(ServerIndex(3), &mut grants);
        });
    });
    for (name, place) in PLACES {
        for waiting in [1, 1_000] {
            let line = Line::new(waiting, place);
            criterion.bench_function(
                &format!("queue/enter, pass on, {name}, {waiting} wait"),
                |bencher| {
                    bencher.iter(|| line.request(&mut grants));
                },
            );
        }
    }
}

const PLACES: [(&str, Option<ServerIndex>); 2] =
    [("of a server", Some(ServerIndex(0))), ("of a backend", None)];

fn beside_another(criterion: &mut Criterion) {
    for (name, place) in PLACES {
        let line = Line::new(1_000, place);
        beside(
            |grants| line.request(grants),
            || {
                let mut grants = Grants::new();
                criterion.bench_function(&format!("queue/the same beside another, {name}"), |bencher| {
                    bencher.iter(|| line.request(&mut grants));
                });
            },
        );
    }
}

/// Runs `other` over and over on another thread while `measured` runs.
fn beside(other: impl Fn(&mut Grants) + Send + Sync, measured: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut grants = Grants::new();
            while !stop.load(Ordering::Relaxed) {
                other(&mut grants);
            }
        });
        measured();
        stop.store(true, Ordering::Relaxed);
    });
}

/// Counts who finds it held.
struct Counted<T> {
    lock: Mutex<T>,
    waited: Waited,
}

#[derive(Default)]
struct Waited {
    times: AtomicU64,
    nanos: AtomicU64,
}

impl<T> Counted<T> {
    fn new(value: T) -> Self {
        Counted {
            lock: Mutex::new(value),
            waited: Waited::default(),
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        let mut held = self.lock.try_lock().unwrap_or_else(|| {
            let begun = Instant::now();
            let held = self.lock.lock();
            self.waited.times.fetch_add(1, Ordering::Relaxed);
            self.waited
                .nanos
                .fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
            held
        });
        act(&mut held)
    }
}

/// What the two locks protect, with the work of the real ones under them: an order of loads of 100 servers that is
/// picked from and corrected, and a queue of 1,000. A slot that is passed on is told to a reader that sleeps.
struct Desks {
    balancer: Counted<Loads>,
    queue: Counted<Places>,
    both: Counted<(Loads, Places)>,
    /// Of each worker that is woken.
    bells: Vec<UnixStream>,
}

type Loads = BTreeSet<(u64, u16)>;
type Places = BTreeMap<(i16, i64, u64), Arc<Waiter>>;

#[derive(Clone, Copy, Debug)]
enum Locks {
    /// Queue and balancer have their own, as the table has; the reader is woken after both.
    Own,
    /// They share one.
    Shared,
    /// Their own; the reader is woken under the queue's.
    WakeUnder,
}

/// How many of 1,000 requests meet another at a lock, where each picks, enters, pops, tells and corrects the order; and what
/// a request costs: two threads, and sixteen, of which those that the machine has no core for are stopped wherever they
/// are. In turns, because the machine is not the same from one second to the next.
fn contended(_: &mut Criterion) {
    const ROUNDS: usize = 5;
    for locks in [Locks::Own, Locks::Shared, Locks::WakeUnder].repeat(ROUNDS) {
        for threads in [2, 16] {
            meet(locks, threads);
        }
    }
}

fn meet(locks: Locks, threads: u64) {
    let (bells, readers): (Vec<_>, Vec<_>) = (0..threads)
        .map(|_| UnixStream::pair().expect("two descriptors"))
        .unzip();
    let desks = Desks {
        balancer: Counted::new((0..100).map(|server| (0, server)).collect()),
        queue: Counted::new(places()),
        both: Counted::new(((0..100).map(|server| (0, server)).collect(), places())),
        bells,
    };
    let sleepers: Vec<_> = readers
        .into_iter()
        .map(|reader| {
            std::thread::spawn(move || while (&reader).read(&mut [0; 4096]).is_ok_and(|read| read > 0) {})
        })
        .collect();
    let each_of = REQUESTS / threads;
    let begun = Instant::now();
    let shared = &desks;
    std::thread::scope(|scope| {
        for worker in 0..threads {
            scope.spawn(move || (0..each_of).for_each(|number| shared.request(locks, worker, number)));
        }
    });
    let each = begun.elapsed().as_nanos() as u64 / each_of;
    let sum = |of: fn(&Waited) -> &AtomicU64| {
        let all = [&desks.balancer.waited, &desks.queue.waited, &desks.both.waited];
        all.map(|waited| of(waited).load(Ordering::Relaxed))
            .iter()
            .sum::<u64>() as f64
            / (threads * each_of) as f64
    };
    println!(
        "queue/contended {locks:?}, {threads} threads: {:.2} contended acquisitions per 1,000 requests, {:.0} ns a request \
         at locks of {each} in all",
        sum(|waited| &waited.times) * 1000.0,
        sum(|waited| &waited.nanos),
    );
    drop(desks);
    for sleeper in sleepers {
        sleeper.join().expect("it ends with the other half");
    }
}

/// Of all threads.
const REQUESTS: u64 = 200_000;

fn places() -> Places {
    (0..1_000)
        .map(|number| ((0, number, 0), Arc::new(Waiter::new(WorkerId(0), number as u64))))
        .collect()
}

impl Desks {
    fn request(&self, locks: Locks, worker: u64, number: u64) {
        let waiter = Arc::new(Waiter::new(WorkerId(0), number));
        let key = (0, 1_000 + (number * 16 + worker) as i64, 0);
        let pick = |loads: &mut Loads| {
            loads
                .pop_first()
                .map(|(load, server)| loads.insert((load + 1, server)))
        };
        let correct = |loads: &mut Loads| {
            loads
                .pop_last()
                .map(|(load, server)| loads.insert((load.max(1) - 1, server)))
        };
        match locks {
            Locks::Own => {
                self.balancer.with(pick);
                self.queue.with(|places| places.insert(key, waiter));
                black_box(self.queue.with(Places::pop_first));
                self.balancer.with(correct);
                self.wake(worker);
            }
            Locks::Shared => {
                self.both.with(|(loads, _)| pick(loads));
                self.both.with(|(_, places)| places.insert(key, waiter));
                black_box(self.both.with(|(_, places)| places.pop_first()));
                self.both.with(|(loads, _)| correct(loads));
                self.wake(worker);
            }
            Locks::WakeUnder => {
                self.balancer.with(pick);
                self.queue.with(|places| places.insert(key, waiter));
                black_box(self.queue.with(|places| {
                    self.wake(worker);
                    places.pop_first()
                }));
                self.balancer.with(correct);
            }
        }
    }

    fn wake(&self, worker: u64) {
        (&self.bells[worker as usize])
            .write_all(&[1])
            .expect("somebody reads");
    }
}

fn measured() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = measured();
    targets = uncontended, beside_another, contended
}
criterion_main!(benches);
