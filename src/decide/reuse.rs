//! Which idle connections a request may use (POOL-11), and whether a released one is kept (POOL-32).
//!
//! Values in, values out: the counters are read by the caller, and the answer names its reason, because every open
//! and every close of a server connection is counted by reason (POOL-71).
//!
//! The keep rule in one sentence: every worker may keep one connection of each server, and beyond that as many are
//! kept as the recent past needed, as long as descriptors are plenty.

mod reasons;
#[cfg(test)]
mod tests;

pub use reasons::{CloseReason, OpenReason};

/// How server connections are shared between clients (`reuse`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every connection is private to its client.
    Never,
    /// A client's first request opens its own; later ones may share.
    Safe,
    /// A client's first request may use a connection that has proven reusable.
    Aggressive,
    /// Any request may use any connection.
    Always,
}

/// Whether a request may be sent again if its connection turns out dead (POOL-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retryable {
    /// Not the first request of its client connection, or the backend retries what a dead connection causes.
    Yes,
    /// The first request of its client connection.
    No,
}

/// What a released connection has shown so far (POOL-30: `is_safe`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proven {
    /// It carried one request: nobody knows whether the server keeps it.
    Once,
    /// It carried two requests or more.
    Safe,
}

/// Which collections are searched, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Idle first, then safe: using an unproven one proves it, and spares the proven.
    Any,
    /// Safe first, then idle.
    SafeFirst,
    /// Safe only.
    SafeOnly,
}

/// What a request may take from the idle and safe collections; or why it must open a connection (POOL-11).
pub fn wanted(mode: Mode, retryable: Retryable) -> Result<Wanted, OpenReason> {
    match (mode, retryable) {
        (Mode::Never, _) => Err(OpenReason::Never),
        (_, Retryable::Yes) => Ok(Wanted::Any),
        (Mode::Safe, Retryable::No) => Err(OpenReason::FirstRequest),
        (Mode::Aggressive, Retryable::No) => Ok(Wanted::SafeOnly),
        (Mode::Always, Retryable::No) => Ok(Wanted::SafeFirst),
    }
}

/// Everything that the keep rule looks at. Numbers of connections unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFacts {
    /// How the backend shares connections.
    pub mode: Mode,
    /// It belongs to one client (POOL-60).
    pub private: bool,
    /// The server is in maintenance (POOL-52).
    pub maintenance: bool,
    /// `pool-purge-delay` is not zero: idle connections may exist at all.
    pub purge_delay: bool,
    /// The server dialled us: it cannot be connected to again.
    pub reverse: bool,
    /// Streams that it still carries.
    pub streams: u32,
    /// Streams that it could take.
    pub free_streams: u32,
    /// What it has shown so far.
    pub proven: Proven,
    /// Descriptors in use, and where they begin to be short (POOL-33).
    pub descriptors: Descriptors,
    /// `pool-max-conn`; `None` for no limit.
    pub idle_max: Option<u32>,
    /// `pool-low-conn`: kept beyond the need.
    pub idle_reserve: u32,
    /// Idle at this worker, with one request behind them.
    pub own_idle: u32,
    /// Safe at this worker.
    pub own_safe: u32,
    /// Idle and safe at all workers.
    pub idle: u32,
    /// Used at all workers, this one included: it is not parked yet.
    pub used: u32,
    /// Estimated need of the server.
    pub need: u32,
}

/// Descriptors of the process (POOL-33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Open now.
    pub used: u32,
    /// From here on, a worker keeps one connection of a server and no more.
    pub low: u32,
    /// From here on, nothing is kept. Not below `low`.
    pub high: u32,
}

impl Descriptors {
    /// The thresholds for a descriptor limit of the process and two percentages of it, rounded up (POOL-33).
    pub fn new(used: u32, limit: u32, low_percent: u8, high_percent: u8) -> Self {
        let share = |percent: u8| (u64::from(limit) * u64::from(percent)).div_ceil(100) as u32;
        Descriptors {
            used,
            low: share(low_percent),
            high: share(high_percent),
        }
    }
}

/// Whether a released connection is parked, or else why it is closed (POOL-32, in its order).
pub fn keep(facts: &KeepFacts) -> Result<(), CloseReason> {
    let refused = if facts.private {
        CloseReason::Private
    } else if !facts.purge_delay {
        CloseReason::Purge
    } else if facts.maintenance {
        CloseReason::Maintenance
    } else if facts.mode == Mode::Never {
        CloseReason::Never
    } else if facts.descriptors.used >= facts.descriptors.high {
        CloseReason::DescriptorsHigh
    } else if facts.idle_max.is_some_and(|max| facts.idle >= max) {
        CloseReason::Max
    } else if facts.streams > 0 || facts.free_streams == 0 {
        CloseReason::Busy
    } else if facts.worker_has_none() {
        return Ok(());
    } else if facts.descriptors.used >= facts.descriptors.low {
        CloseReason::DescriptorsLow
    } else if !facts.reverse && facts.beyond_need() {
        CloseReason::Need
    } else {
        return Ok(());
    };
    Err(refused)
}

impl KeepFacts {
    /// Rule A: this worker's place is empty, or holds one that has proven less.
    fn worker_has_none(&self) -> bool {
        self.own_safe == 0 && (self.proven == Proven::Safe || self.own_idle == 0)
    }

    /// Rule B, turned round.
    fn beyond_need(&self) -> bool {
        let present = u64::from(self.used) + u64::from(self.idle);
        present > u64::from(self.used.max(self.need)) + u64::from(self.idle_reserve)
    }
}
