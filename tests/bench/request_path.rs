//! Nanoseconds of the pure request path, beside the instruction counts of `instructions/`: `cargo bench --bench
//! request_path --no-default-features`. For looking, not for gating: time depends on the machine.

mod path;

use criterion::{Criterion, criterion_group, criterion_main};
use path::{Path, SHAPES};
use std::hint::black_box;

fn request_path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request_path");
    for shape in &SHAPES {
        let mut path = Path::new();
        for _ in 0..2_000 {
            path.serve(shape); // every server its idle connection, every buffer its size
        }
        group.bench_function(shape.name, |bencher| {
            bencher.iter(|| path.serve(black_box(shape)))
        });
    }
    group.finish();
}

criterion_group!(benches, request_path);
criterion_main!(benches);
