//! Nanoseconds of the pools of idle connections: `cargo bench --bench pool --no-default-features`. For looking, not
//! for gating: time depends on the machine, and with a thief on how the two threads meet. That none of it allocates
//! is asserted by `tests/allocations/pool.rs`.
//!
//! - `own`: one request of a worker that finds its own connection: find, keep rule, park. Nobody else is there.
//! - `own beside a search`: the same while a thread on another core tries the shard's lock without end and takes
//!   nothing.
//! - `one between two workers`: the one connection goes to and fro between two threads that do nothing else.
//! - `take over`: find what a sibling has parked, and the sibling parks it again; one thread, so that the lines are at
//!   hand.
//! - `nothing, sixteen siblings`: a search that looks at all and finds only another key.

#[path = "pool/desk.rs"]
mod desk;

use criterion::{Criterion, criterion_group, criterion_main};
use desk::Desk;
use forebay::decide::reuse::OpenReason;
use forebay::policy::WorkerId;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const ME: WorkerId = WorkerId(0);
const SIBLING: WorkerId = WorkerId(1);
/// Connections that are parked.
const DEPTH: u32 = 8;

fn own(criterion: &mut Criterion) {
    let desk = Desk::new(2);
    desk.open(ME, DEPTH);
    criterion.bench_function("pool/own", |bencher| bencher.iter(|| desk.request(black_box(ME))));
}

fn own_beside_a_search(criterion: &mut Criterion) {
    let desk = Desk::new(2);
    desk.open(ME, DEPTH);
    beside(
        || _ = desk.search_other(SIBLING),
        || {
            criterion.bench_function("pool/own beside a search", |bencher| {
                bencher.iter(|| desk.request(black_box(ME)));
            });
        },
    );
}

fn own_beside_a_thief(criterion: &mut Criterion) {
    let desk = Desk::new(2);
    desk.open(ME, 1);
    let [own, stolen, nothing] = [0; 3].map(AtomicU64::new);
    beside(
        || _ = desk.request(SIBLING),
        || {
            criterion.bench_function("pool/one between two workers", |bencher| {
                bencher.iter(|| {
                    let counter = match desk.request(black_box(ME)) {
                        Ok(ME) => &own,
                        Ok(_) => &stolen,
                        Err(_) => &nothing,
                    };
                    counter.fetch_add(1, Ordering::Relaxed)
                });
            });
        },
    );
    let [own, stolen, nothing] = [own, stolen, nothing].map(AtomicU64::into_inner);
    println!("  of these {own} found their own, {stolen} took over, {nothing} found none free");
}

/// Runs `other` over and over on another thread while `measured` runs.
fn beside(other: impl Fn() + Send + Sync, measured: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                other();
            }
        });
        measured();
        stop.store(true, Ordering::Relaxed);
    });
}

fn take_over(criterion: &mut Criterion) {
    let desk = Desk::new(2);
    desk.open(SIBLING, DEPTH);
    criterion.bench_function("pool/take over", |bencher| {
        bencher.iter(|| assert!(desk.steal(black_box(ME), SIBLING)));
    });
}

fn nothing(criterion: &mut Criterion) {
    let desk = Desk::new(17);
    (1..17).for_each(|worker| desk.open(WorkerId(worker), 1));
    criterion.bench_function("pool/nothing, sixteen siblings", |bencher| {
        bencher.iter(|| assert_eq!(desk.search_other(black_box(ME)), Err(OpenReason::Key)));
    });
}

fn measured() -> Criterion {
    Criterion::default().measurement_time(Duration::from_secs(3))
}

criterion_group! {
    name = benches;
    config = measured();
    targets = own, own_beside_a_search, own_beside_a_thief, take_over, nothing
}
criterion_main!(benches);
