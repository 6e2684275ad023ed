//! No heap allocation for a request that finds a parked connection, its worker's own or a sibling's, nor for a search
//! that finds none, once the shards have the size they need.
//!
//! A binary with one test: a second one would allocate into the first one's count.

#[path = "../bench/pool/desk.rs"]
mod desk;

use desk::Desk;
use forebay::policy::WorkerId;

#[global_allocator]
static COUNTED: dhat::Alloc = dhat::Alloc;

const REQUESTS: usize = 20_000;
const ME: WorkerId = WorkerId(0);
const SIBLING: WorkerId = WorkerId(1);

#[test]
fn no_search_allocates() {
    let own = Desk::new(2);
    own.open(ME, 8);
    let other = Desk::new(2);
    other.open(SIBLING, 8);
    expect_none("own", || assert_eq!(own.request(ME), Ok(ME)));
    expect_none("take over", || assert!(other.steal(ME, SIBLING)));
    expect_none("nothing", || assert!(other.search_other(ME).is_err()));
}

fn expect_none(what: &str, step: impl Fn()) {
    (0..100).for_each(|_| step());
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("allocations-pool.json");
    let profiler = dhat::Profiler::builder().testing().file_name(file).build();
    (0..REQUESTS).for_each(|_| step());
    let blocks = dhat::HeapStats::get().total_blocks;
    println!("{what}: {blocks} blocks in {REQUESTS} steps");
    dhat::assert_eq!(blocks, 0);
    drop(profiler);
}
