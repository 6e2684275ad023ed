//! The black-box kit: the real binary between a scripted client and a scripted origin.
//!
//! Everything runs on threads and blocking sockets, so that a test reads straight down. Nothing here waits without
//! a deadline, and nothing sleeps where a read with a deadline can wait instead. The origin numbers its connections
//! and the requests on each, and says both in every answer (`X-Connection`, `X-Request`): reuse is visible from the
//! client's side. The kit knows the program only by its command line, its configuration, its sockets and `/proc`.

mod client;
mod ctl;
mod exchange;
mod lines;
mod metrics;
mod origin;
mod proxy;
mod setup;
mod stream;
mod wire;

pub(crate) use client::{Client, Response, get, request};
pub(crate) use ctl::ctl;
pub(crate) use exchange::{Exchange, Gate, plain, willing};
pub(crate) use metrics::{Metrics, metrics};
pub(crate) use origin::{Accepts, Origin};
pub(crate) use proxy::{Proxy, Signal, once};
pub(crate) use setup::Setup;
pub(crate) use stream::Address;
pub(crate) use wire::{Broken, Framing, Why, hash};

use std::time::{Duration, Instant};

/// How long anything that should happen at once may take on a busy machine before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The bound of "at once" where a test tells a timer from no timer.
pub(crate) const SOON: Duration = Duration::from_millis(1500);

/// Asks until there is an answer; fails the test after [`PATIENCE`]. For states that no socket announces.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub(crate) struct Numbers(u64);

impl Numbers {
    /// The sequence of this seed.
    pub(crate) fn seeded(seed: u64) -> Numbers {
        Numbers(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A size in `1..=max` bytes, uniform in its logarithm.
    pub(crate) fn size(&mut self, max: usize) -> usize {
        let part = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((max as f64).powf(part) as usize).clamp(1, max)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..count.div_ceil(8))
            .flat_map(|_| self.next().to_le_bytes())
            .collect();
        bytes.truncate(count);
        bytes
    }
}
