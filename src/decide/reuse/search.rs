//! Whether the siblings of a worker are searched for an idle connection, and in which order (POOL-21…25).

use super::{Descriptors, Figures, OpenReason};
use crate::policy::WorkerId;

/// Whether workers take over each other's idle connections (POOL-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// They do.
    On,
    /// Each keeps to its own.
    Off,
}

/// What stands between a worker and its siblings' connections, besides the counters of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Whether it is open at all.
    pub sharing: Sharing,
    /// The server dialled us: there is no other way to a connection (POOL-12).
    pub reverse: bool,
    /// Of these, `idle_reserve` (`pool-low-conn`) and `idle_max`.
    pub figures: Figures,
    /// Descriptors in use, and where they begin to be short (POOL-33).
    pub descriptors: Descriptors,
}

/// Whether a worker that found nothing of its own may take over a sibling's connection, while `idle` are parked at all
/// workers together; or why it opens one.
///
/// Below the reserve it opens one although siblings have some (POOL-22), so that each worker comes to a few of its
/// own instead of stealing to and fro. Not where descriptors are short, nor where nothing can be opened.
pub fn may_take_over(gate: &Gate, idle: u32) -> Result<(), OpenReason> {
    if gate.sharing == Sharing::Off {
        return Err(OpenReason::SharingOff);
    }
    let opens_one = !gate.reverse && gate.descriptors.used < gate.descriptors.low;
    if opens_one && idle < gate.figures.idle_reserve {
        return Err(OpenReason::LowConn);
    }
    Ok(())
}

/// The siblings of `me` among `workers`, from `first` on and round once (POOL-23). A `first` that is no worker begins
/// with worker 0.
pub fn siblings(me: WorkerId, workers: u16, first: u16) -> impl Iterator<Item = WorkerId> {
    let first = if first < workers { first } else { 0 };
    (first..workers)
        .chain(0..first)
        .map(WorkerId)
        .filter(move |&sibling| sibling != me)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: Descriptors = Descriptors {
        used: 199,
        low: 200,
        high: 250,
    };

    fn gate(idle_reserve: u32) -> Gate {
        Gate {
            sharing: Sharing::On,
            reverse: false,
            figures: Figures {
                idle_reserve,
                ..Figures::default()
            },
            descriptors: PLENTY,
        }
    }

    #[test]
    fn v10() {
        let visited = |first| {
            siblings(WorkerId(1), 4, first)
                .map(|worker| worker.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(visited(0), [0, 2, 3]);
        assert_eq!(visited(1), [2, 3, 0]);
        assert_eq!(visited(2), [2, 3, 0]);
        assert_eq!(visited(3), [3, 0, 2]);
        assert_eq!(visited(4), [0, 2, 3], "behind the last comes the first");
    }

    #[test]
    fn a_worker_alone_has_no_siblings() {
        assert_eq!(siblings(WorkerId(0), 1, 0).count(), 0);
    }

    /// POOL-22: all three conditions together, and the reserve itself is not below it.
    #[test]
    fn below_the_reserve_a_worker_opens_its_own() {
        let short = Gate {
            descriptors: Descriptors { used: 200, ..PLENTY },
            ..gate(8)
        };
        let dialled = Gate {
            reverse: true,
            ..gate(8)
        };
        let low = Err(OpenReason::LowConn);
        for (case, gate, idle, expected) in [
            ("no reserve", gate(0), 0, Ok(())),
            ("one short", gate(8), 7, low),
            ("the reserve is full", gate(8), 8, Ok(())),
            ("descriptors are short", short, 1, Ok(())),
            ("nothing can be opened", dialled, 1, Ok(())),
        ] {
            assert_eq!(may_take_over(&gate, idle), expected, "{case}");
        }
    }

    /// POOL-21.
    #[test]
    fn without_sharing_nothing_opens_the_gate() {
        let off = Gate {
            sharing: Sharing::Off,
            reverse: true,
            ..gate(0)
        };
        assert_eq!(may_take_over(&off, 100), Err(OpenReason::SharingOff));
    }
}
