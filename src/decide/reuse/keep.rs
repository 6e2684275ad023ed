//! Whether a released connection is parked (POOL-32).
//!
//! In one sentence: every worker may keep one connection of each server, and beyond that as many are kept as the
//! recent past needed, as long as descriptors are plenty.
//!
//! The rule has a variant ([`KeepRule::EqualShare`]), which also bears on take-overs and on the purge. Under the plain
//! rule whoever comes first fills the common room, and a worker that comes late closes what it will open again. Under
//! the equal share a worker that holds less than its part keeps on although the room is full; those that hold more than
//! theirs close at their next release, and the purge takes what is too much in all. So the parts even out, and all
//! together hold at most about twice the room, until the purge comes.

use super::{CloseReason, Descriptors, Figures, Mode, Proven};

/// What the caller knows of a released connection, its server and the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
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
    /// Requests that it may still carry, by [`reuses_left`]; `None` for no limit.
    pub reuses_left: Option<u32>,
    /// Descriptors in use, and where they begin to be short (POOL-33).
    pub descriptors: Descriptors,
    /// Limits and targets of the server's pool.
    pub figures: Figures,
}

/// What the pool counts at that moment, in connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Idle at this worker, with one request behind them.
    pub own_idle: u32,
    /// Safe at this worker.
    pub own_safe: u32,
    /// Idle and safe at all workers.
    pub idle: u32,
    /// Used at all workers, the released one included: it is not parked yet.
    pub used: u32,
    /// Estimated need of the server.
    pub need: u32,
    /// Workers that have used the server lately; only [`KeepRule::EqualShare`] asks.
    pub workers: u32,
}

/// How the room for idle connections is divided among workers (`pool-keep`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRule {
    /// Not at all: who comes first fills it (POOL-32).
    #[default]
    Plain,
    /// Towards equal parts: each worker that uses the server lately keeps its part for sure; who takes over takes from
    /// the sibling that has most; and the purge leaves the reserve of a server that was used in the period, which
    /// workers would open again.
    EqualShare,
}

/// Whether a released connection is parked, or else why it is closed (POOL-32, in its order; POOL-53 before the need).
pub fn keep(released: &Released, present: &Present) -> Result<(), CloseReason> {
    let refused = if released.private {
        CloseReason::Private
    } else if !released.purge_delay {
        CloseReason::Purge
    } else if released.maintenance {
        CloseReason::Maintenance
    } else if released.mode == Mode::Never {
        CloseReason::Never
    } else if released.descriptors.used >= released.descriptors.high {
        CloseReason::DescriptorsHigh
    } else if released.figures.idle_max.is_some_and(|max| present.idle >= max) {
        CloseReason::Max
    } else if released.streams > 0 || released.free_streams == 0 {
        CloseReason::Busy
    } else if released.reuses_left == Some(0) {
        CloseReason::MaxReuse
    } else if present.worker_has_none(released.proven) {
        return Ok(());
    } else if released.descriptors.used >= released.descriptors.low {
        CloseReason::DescriptorsLow
    } else if !released.reverse && released.is_too_many(present) {
        CloseReason::Need
    } else {
        return Ok(());
    };
    Err(refused)
}

/// Whether a session keeps a private connection that has become free, of which it holds `held` idle ones already and
/// may hold `held_max` (POOL-61).
pub fn keep_private(held: usize, held_max: usize, maintenance: bool) -> Result<(), CloseReason> {
    if maintenance {
        Err(CloseReason::Maintenance)
    } else if held >= held_max {
        Err(CloseReason::Private)
    } else {
        Ok(())
    }
}

/// How many requests a connection may still carry after `requests`, if `max-reuse` allows that many beyond the first
/// (POOL-53). `None` for no limit.
pub fn reuses_left(max_reuse: Option<u32>, requests: u32) -> Option<u32> {
    max_reuse.map(|most| most.saturating_sub(requests.saturating_sub(1)))
}

impl Released {
    /// Rule B, turned round.
    fn is_too_many(&self, present: &Present) -> bool {
        let room = self.room(present);
        let beyond = u64::from(present.idle) > room;
        match self.figures.rule {
            KeepRule::Plain => beyond,
            KeepRule::EqualShare => beyond && present.own() >= present.part_of(room),
        }
    }

    /// Idle connections that may lie beside this one's present use: what was needed and is not used, and the reserve.
    fn room(&self, present: &Present) -> u64 {
        let need = self.figures.need(present.need);
        u64::from(need.saturating_sub(present.used)) + u64::from(self.figures.idle_reserve)
    }
}

impl Present {
    /// Rule A: this worker's place is empty, or holds one that has proven less.
    fn worker_has_none(&self, proven: Proven) -> bool {
        self.own_safe == 0 && (proven == Proven::Safe || self.own_idle == 0)
    }

    fn own(&self) -> u64 {
        u64::from(self.own_idle) + u64::from(self.own_safe)
    }

    /// A worker's equal part of the room and of this connection's own place in it, rounded up.
    fn part_of(&self, room: u64) -> u64 {
        (room + 1).div_ceil(u64::from(self.workers.max(1)))
    }
}
