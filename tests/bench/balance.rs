//! What a pick costs: every algorithm over 4, 100 and 1,000 servers, alone and beside another thread that picks.
//!
//! `pick` is a whole turn of a request as the balancer sees it: choose, take the slot, give it back, tell. What that costs
//! without choosing is the first line, `slot`. In `contended`, one more thread does the same as fast as it can.
//!
//! `cargo bench --no-default-features --bench balance`

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use forebay::decide::balance::Algorithm;
use forebay::decide::balance::hash::{Affinity, Hash, Mapping, Otherwise};
use forebay::policy::{BackendId, Draw, ServerId, ServerIndex};
use forebay::shared::server::Server;
use forebay::shared::table::{BackendTable, Entry};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Servers of a backend.
const SIZES: [u32; 3] = [4, 100, 1_000];
/// Picks that are under way at the same time: so many servers are not idle.
const AHEAD: usize = 64;

/// PCG's multiplier over a counter: cheap, and unlike from one draw to the next.
struct Counter(u64);

impl Draw for Counter {
    fn draw(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

fn algorithms() -> Vec<(&'static str, Algorithm)> {
    let hash = |mapping, bound| {
        Algorithm::Hash(Hash {
            mapping,
            bound,
            affinity: Affinity::Always,
            otherwise: Otherwise::RoundRobin,
        })
    };
    vec![
        ("random(2)", Algorithm::Random(2)),
        ("roundrobin", Algorithm::RoundRobin),
        ("leastconn", Algorithm::LeastConn),
        ("first", Algorithm::First),
        ("sticky", Algorithm::Sticky),
        ("hash", hash(Mapping::Consistent, None)),
        ("hash map-based", hash(Mapping::Map, None)),
        ("hash bound 150", hash(Mapping::Consistent, Some(150))),
    ]
}

fn table(algorithm: Algorithm, servers: u32) -> BackendTable<()> {
    let entry = |at: u32| Entry {
        key: u64::from(at).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        ..Entry::new(Arc::new(Server::new(ServerId(at), "app", &format!("s{at}"), 1)))
    };
    BackendTable::first(BackendId(0), "app", algorithm, (0..servers).map(entry).collect())
}

/// Requests that come and go, so many of them at a time.
struct Requests<'a> {
    table: &'a BackendTable<()>,
    under_way: [Option<ServerIndex>; AHEAD],
    at: usize,
    draw: Counter,
    key: Counter,
}

impl<'a> Requests<'a> {
    fn new(table: &'a BackendTable<()>, seed: u64) -> Self {
        let mut requests = Requests {
            table,
            under_way: [None; AHEAD],
            at: 0,
            draw: Counter(seed),
            key: Counter(seed ^ 0xFF),
        };
        (0..AHEAD).for_each(|_| requests.next());
        requests
    }

    /// The oldest leaves, another comes.
    fn next(&mut self) {
        self.at = (self.at + 1) % AHEAD;
        if let Some(server) = self.under_way[self.at].take() {
            let _ = self.table.at(server).server.slots.release();
            self.table.changed(server);
        }
        let number = u64::from(self.key.draw(u32::MAX)) << 32;
        let picked = self.table.pick_for(Some(number), None, &mut self.draw);
        let server = black_box(picked.server).expect("nobody is full");
        assert!(self.table.take(server));
        self.under_way[self.at] = Some(server);
    }
}

fn alone(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pick");
    for servers in SIZES {
        let slots = table(Algorithm::Random(2), servers);
        let mut at = 0;
        group.bench_function(BenchmarkId::new("slot", servers), |bench| {
            bench.iter(|| {
                at = (at + 1) % servers as u16;
                assert!(slots.take(ServerIndex(at)));
                let _ = slots.at(ServerIndex(at)).server.slots.release();
                slots.changed(ServerIndex(at));
            });
        });
        for (name, algorithm) in algorithms() {
            let table = table(algorithm, servers);
            let mut requests = Requests::new(&table, 1);
            group.bench_function(BenchmarkId::new(name, servers), |bench| {
                bench.iter(|| requests.next())
            });
        }
    }
    group.finish();
}

fn contended(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("contended");
    for servers in SIZES {
        for (name, algorithm) in algorithms() {
            let table = table(algorithm, servers);
            let ends = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut requests = Requests::new(&table, 2);
                    while !ends.load(Ordering::Relaxed) {
                        requests.next();
                    }
                });
                let mut requests = Requests::new(&table, 1);
                group.bench_function(BenchmarkId::new(name, servers), |bench| {
                    bench.iter(|| requests.next())
                });
                ends.store(true, Ordering::Relaxed);
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = balance;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20);
    targets = alone, contended
}
criterion_main!(balance);
