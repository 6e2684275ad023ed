//! Nanoseconds of waiting for a slot: `cargo bench --bench queue --no-default-features`. For looking, not for gating:
//! time depends on the machine, and with two threads on how they meet.
//!
//! - `take, release`: a request that does not wait, with a backend's table whose queue is empty.
//! - `enter, pass on`: one enters a queue, whose server is full, and the slot is passed on to whoever is first: one
//!   request of a backend at its limit. The line is so long that a map of so many is searched.
//! - `beside`: the same while a second thread does nothing else.
//! - `contended`: how many of 1,000 requests find the lock of the queue held, when that is the queue's own and when it is
//!   one with the balancer's; and what a request costs then.
//! - `wake`: the slot is passed on, and a sleeping reader is woken: after the lock was released, and under it, which is
//!   the variant that was rejected.

use criterion::{Criterion, criterion_group, criterion_main};
use forebay::decide::balance::Algorithm;
use forebay::policy::{BackendId, ServerId, ServerIndex, WorkerId};
use forebay::shared::queue::{Grants, Waiter};
use forebay::shared::server::Server;
use forebay::shared::table::{BackendTable, Entry};
use parking_lot::Mutex;
use std::hint::black_box;
use std::io::Write;
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
    taken: AtomicU64,
    waited: AtomicU64,
}

impl<T> Counted<T> {
    fn new(value: T) -> Self {
        Counted {
            lock: Mutex::new(value),
            taken: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        self.taken.fetch_add(1, Ordering::Relaxed);
        let mut held = self.lock.try_lock().unwrap_or_else(|| {
            self.waited.fetch_add(1, Ordering::Relaxed);
            self.lock.lock()
        });
        act(&mut held)
    }
}

/// What the two locks protect, with the work of the real ones under them: an order of loads of 100 servers that is
/// picked from and corrected, and a queue of 1,000.
struct Desks {
    balancer: Counted<Loads>,
    queue: Counted<Places>,
    both: Counted<(Loads, Places)>,
}

type Loads = std::collections::BTreeSet<(u64, u16)>;
type Places = std::collections::BTreeMap<(i16, i64, u64), Arc<Waiter>>;

/// How many of 1,000 requests meet another at a lock, where each picks, enters, pops and corrects the order. The locks
/// are taken as the table takes them: queue and balancer one after the other, or one for both.
fn contended(_: &mut Criterion) {
    const REQUESTS: u64 = 300_000;
    for (name, one) in [("its own", false), ("one with the balancer's", true)] {
        let desks = Desks {
            balancer: Counted::new(loads()),
            queue: Counted::new(places()),
            both: Counted::new((loads(), places())),
        };
        let begun = Instant::now();
        let desks = &desks;
        std::thread::scope(|scope| {
            for worker in 0..2_u64 {
                scope.spawn(move || (0..REQUESTS).for_each(|number| desks.request(one, worker, number)));
            }
        });
        let each = begun.elapsed().as_nanos() as u64 / REQUESTS;
        let locks = [&desks.balancer.taken, &desks.queue.taken, &desks.both.taken];
        let waits = [&desks.balancer.waited, &desks.queue.waited, &desks.both.waited];
        let per_thousand = |of: [&AtomicU64; 3]| {
            of.iter()
                .map(|number| number.load(Ordering::Relaxed))
                .sum::<u64>() as f64
                * 500.0
                / REQUESTS as f64
        };
        println!(
            "queue/contended, the queue's lock {name}: per 1,000 requests {:.0} acquisitions, {:.1} of them contended; \
             {each} ns a request of each of two threads",
            per_thousand(locks),
            per_thousand(waits)
        );
    }
}

fn loads() -> Loads {
    (0..100).map(|server| (0, server)).collect()
}

fn places() -> Places {
    (0..1_000)
        .map(|number| ((0, number, 0), Arc::new(Waiter::new(WorkerId(0), number as u64))))
        .collect()
}

impl Desks {
    fn request(&self, one: bool, worker: u64, number: u64) {
        let waiter = Arc::new(Waiter::new(WorkerId(0), number));
        let key = (0, 1_000 + (number * 2 + worker) as i64, 0);
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
        if one {
            self.both.with(|(loads, _)| pick(loads));
            self.both.with(|(_, places)| places.insert(key, waiter));
            black_box(self.both.with(|(_, places)| places.pop_first()));
            self.both.with(|(loads, _)| correct(loads));
        } else {
            self.balancer.with(pick);
            self.queue.with(|places| places.insert(key, waiter));
            black_box(self.queue.with(Places::pop_first));
            self.balancer.with(correct);
        }
    }
}

/// A slot is passed on to one whose worker sleeps in its poll; the wake-up is a write to a descriptor. A second thread
/// does the same.
fn wake(criterion: &mut Criterion) {
    let queue = Mutex::new(places());
    let at = AtomicU64::new(1_000);
    let null = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .expect("there is one");
    let wake = || (&null).write_all(&1_u64.to_ne_bytes()).expect("it takes all");
    let enter = || {
        let number = at.fetch_add(1, Ordering::Relaxed);
        let waiter = Arc::new(Waiter::new(WorkerId(0), number));
        queue.lock().insert((0, number as i64, 0), waiter);
    };
    let after = || {
        enter();
        let granted = queue.lock().pop_first();
        black_box(granted);
        wake();
    };
    let under = || {
        enter();
        let mut held = queue.lock();
        black_box(held.pop_first());
        wake();
    };
    let mut both = |name: &str, request: &(dyn Fn() + Sync)| {
        beside(
            |_| request(),
            || {
                criterion.bench_function(&format!("queue/wake {name}"), |bencher| bencher.iter(request));
            },
        );
    };
    both("after the lock", &after);
    both("under the lock", &under);
}

fn measured() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
}

criterion_group! {
    name = benches;
    config = measured();
    targets = uncontended, beside_another, contended, wake
}
criterion_main!(benches);
