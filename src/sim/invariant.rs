//! What holds in every run, asked for or not.

use crate::decide::settings::Micros;
use std::fmt;

/// What holds in every run, at every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// A connection is in one place: at a request, or in one worker's shard, and there under the worker that parked it.
    OnePlace,
    /// The pool's counters say what is there: used and idle are counted once each, and all shards together hold what is
    /// idle.
    Counters,
    /// No server has more connections than `strict-maxconn`.
    StrictLimit,
    /// No server serves more requests than its limit.
    Slots,
    /// Nobody waits beside a free slot of a server that would serve it.
    NobodyWaitsBesideAFreeSlot,
    /// Every wait ends once, and its worker is told once.
    WaitsEndOnce,
    /// A connection does not carry more streams than it can.
    Streams,
    /// Under `safe` and `never` no two clients have streams on one connection at the same time (POOL-14).
    OneClientAtATime,
    /// When nobody asks any more, nothing is used, nobody waits, and when the pools are drained, nothing is left.
    AllDrains,
}

/// An invariant that did not hold. The seed and the step find it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub invariant: Invariant,
    /// The seed of the run.
    pub seed: u64,
    /// The steps before it.
    pub step: u64,
    /// When, in µs of virtual time.
    pub at: Micros,
    /// What was seen.
    pub seen: String,
    /// The last decisions before it, if decisions were written down.
    pub last: Vec<String>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken {
            invariant,
            seed,
            step,
            at,
            seen,
            last,
        } = self;
        write!(
            f,
            "{invariant:?} does not hold (seed {seed}, step {step}, {at} µs): {seen}"
        )?;
        last.iter().try_for_each(|line| write!(f, "\n{line}"))
    }
}

impl std::error::Error for Broken {}
