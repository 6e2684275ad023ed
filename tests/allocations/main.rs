//! No heap allocation per request, once everything has the size it needs.
//!
//! First on the pure path of `tests/bench/path.rs`, then on the whole proxy: its threads run in this process before an
//! origin and clients that allocate nothing themselves once they are connected, so that every block counted is the
//! proxy's. `dhat` counts all threads from the moment its profiler starts; on a failure it writes `allocations.json`
//! (under `target/tmp`) with the stack of every allocation, for <https://nnethercote.github.io/dh_view/dh_view.html>.
//!
//! A binary with one test: a second one would allocate into the first one's count.

#[path = "../bench/path.rs"]
mod path;
mod peers;

use path::{Path, SHAPES};
use peers::{Client, KINDS, start_origin, start_proxy};

#[global_allocator]
static COUNTED: dhat::Alloc = dhat::Alloc;

const WARM_UP: usize = 2_000;
const REQUESTS: usize = 20_000;
/// Blocks that all measured requests of one kind together may take: growth that happens a few times in the life of a
/// worker, such as the timer wheel's nodes or a queue between threads.
const GROWTH_MAX: u64 = 16;

#[test]
fn no_request_allocates() {
    for shape in &SHAPES {
        let mut path = Path::new();
        expect_none(&format!("path, {}", shape.name), 0, |requests| {
            for _ in 0..requests {
                path.serve(shape);
            }
        });
    }
    let origin = start_origin();
    let proxy = start_proxy(origin, "none");
    for kind in &KINDS {
        let mut client = Client::connect(proxy, kind);
        let name = format!("proxy, {}", kind.name);
        expect_none(&name, GROWTH_MAX, |requests| client.exchange(requests));
    }
    let mut client = Client::connect(start_proxy(origin, "/dev/null"), &KINDS[0]);
    expect_none("proxy with a log", GROWTH_MAX, |requests| {
        client.exchange(requests)
    });
}

/// Runs `serve` to warm up, then again under the eyes of the profiler.
fn expect_none(what: &str, most: u64, mut serve: impl FnMut(usize)) {
    serve(WARM_UP);
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("allocations.json");
    let profiler = dhat::Profiler::builder().testing().file_name(file).build();
    serve(REQUESTS);
    let blocks = dhat::HeapStats::get().total_blocks;
    println!("{what}: {blocks} blocks in {REQUESTS} requests");
    dhat::assert!(
        blocks <= most,
        "{what}: {blocks} blocks in {REQUESTS} requests, at most {most} expected"
    );
    drop(profiler);
}
