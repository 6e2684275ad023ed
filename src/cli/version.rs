//! `forebay --version`.

use crate::config::defaults;
use rustix::process::{Resource, getrlimit};

/// Prints the version, and what a report of a fault should say about the build.
pub(super) fn print(verbose: bool) {
    println!("forebay {}", env!("CARGO_PKG_VERSION"));
    if !verbose {
        return;
    }
    let enabled = |name: &'static str, on: bool| on.then_some(name);
    let features = [
        enabled("proxy", cfg!(feature = "proxy")),
        enabled("wasm", cfg!(feature = "wasm")),
    ];
    let features: Vec<&str> = features.into_iter().flatten().collect();
    let limit = getrlimit(Resource::Nofile);
    let shown = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    println!(
        "build       {} {}, {}",
        std::env::consts::ARCH,
        std::env::consts::OS,
        profile()
    );
    println!("features    {}", features.join(" "));
    println!("poller      epoll, edge-triggered (mio)");
    println!("wasmtime    {}", wasmtime());
    println!(
        "workers     {} by default, at most {}",
        default_workers(),
        defaults::WORKERS.end()
    );
    println!(
        "descriptors {} now, {} at most",
        shown(limit.current),
        shown(limit.maximum)
    );
    println!(
        "head        {} bytes, {} fields by default",
        defaults::HEAD_MAX,
        defaults::HEADERS_MAX
    );
}

fn profile() -> &'static str {
    if cfg!(debug_assertions) {
        "debug assertions on"
    } else {
        "optimised"
    }
}

/// One worker per core that this process may use.
pub(super) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(not(feature = "wasm"))]
fn wasmtime() -> &'static str {
    "not part of this build"
}

#[cfg(feature = "wasm")]
fn wasmtime() -> &'static str {
    crate::wasm::VERSION
}
