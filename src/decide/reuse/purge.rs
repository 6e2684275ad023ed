//! How many idle connections of a server were too many in the last period, and what remains of its estimated need
//! (POOL-40…44).
//!
//! One decision per server and period ([`Cut`]), whoever makes it: the need decays once (POOL-41), and every worker
//! closes its part of the same number, its own oldest ones. POOL-40 rounds each part up, so that what is too much in
//! one place does go; for many workers with one connection each that would be a burst of closes. So together they
//! close one more than the decision says and no more, which is what one worker alone does.

use super::Figures;
use std::num::NonZeroU64;

/// One reading of the counters that decide (POOL-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Connections that carry a stream, or are being opened for one.
    pub used: u32,
    /// Connections parked idle or safe, all workers together.
    pub idle: u32,
    /// The most that were used at once since the last purge.
    pub max_used: u32,
    /// Estimated number of connections needed (`need_conn_est`), never below `max_used`.
    pub need: u32,
}

impl Counted {
    /// The same when the period ends: the need halves its distance to what was used at most, and the maximum begins
    /// anew with what is used now (POOL-40, steps 3 and 4). A use that has not raised the maximum yet counts, too.
    pub fn decayed(self) -> Self {
        let halfway = (u64::from(self.need) + u64::from(self.max_used)) / 2;
        Counted {
            need: (halfway as u32).max(self.max_used).max(self.used),
            max_used: self.used,
            ..self
        }
    }
}

/// What one period closes of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    target: u32,
    idle: u32,
    left: u32,
}

impl Cut {
    /// Half of what is present beyond what these figures take for needed, rounded up (POOL-40, steps 1 and 2). To be made
    /// before the need decays.
    pub fn of(counted: Counted, figures: &Figures) -> Self {
        let present = u64::from(counted.used) + u64::from(counted.idle);
        let needed = figures.spared(&counted);
        let target = present.saturating_sub(u64::from(needed)).div_ceil(2) as u32;
        Cut {
            target,
            idle: counted.idle,
            left: if target == 0 { 0 } else { target.saturating_add(1) },
        }
    }

    /// Half of the excess.
    pub fn target(&self) -> u32 {
        self.target
    }

    /// How many of its `own` parked connections a worker closes (POOL-40, step 5); they are no longer left for
    /// others.
    pub fn part(&mut self, own: u32) -> u32 {
        if self.left == 0 || own == 0 {
            return 0;
        }
        let share = u64::from(self.target) * u64::from(own) / u64::from(self.idle.max(1));
        let part = (share + 1).min(u64::from(own)).min(u64::from(self.left)) as u32;
        self.left -= part;
        part
    }
}

/// The number of the period that `now` lies in, both µs: what makes one decay of many purges (POOL-41). Two turns of
/// one worker's timer, `delay` or more apart, never lie in the same one.
pub fn period(now: u64, delay: NonZeroU64) -> u64 {
    now / delay
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One worker owns all, the use is constant.
    #[test]
    fn v2() {
        let mut counted = Counted {
            used: 2,
            idle: 30,
            max_used: 20,
            need: 32,
        };
        let ticks = [
            (30, 20, 32, 0, 0, 30, 26),
            (30, 2, 26, 3, 4, 26, 14),
            (26, 2, 14, 7, 8, 18, 8),
            (18, 2, 8, 6, 7, 11, 5),
            (11, 2, 5, 4, 5, 6, 3),
            (6, 2, 3, 3, 4, 2, 2),
            (2, 2, 2, 1, 2, 0, 2),
        ];
        for (tick, expected) in ticks.into_iter().enumerate() {
            let before = counted;
            let mut cut = Cut::of(counted, &Figures::default());
            let removed = cut.part(counted.idle);
            counted = counted.decayed();
            counted.idle -= removed;
            let row = (
                before.idle,
                before.max_used,
                before.need,
                cut.target(),
                removed,
                counted.idle,
                counted.need,
            );
            assert_eq!(row, expected, "tick {}", tick + 1);
        }
    }

    /// POOL-43: nothing to close is not "close all", and numbers of any size are safe.
    #[test]
    fn no_excess_closes_nothing() {
        let counted = |used, idle, max_used, need| Counted {
            used,
            idle,
            max_used,
            need,
        };
        for (case, counted, floor, target) in [
            ("just enough", counted(2, 8, 2, 10), 0, 0),
            ("one too many", counted(2, 9, 2, 10), 0, 1),
            ("too few", counted(2, 3, 2, 10), 0, 0),
            ("the floor needs them", counted(2, 30, 2, 10), 32, 0),
            ("the maximum needs them", counted(2, 30, 32, 10), 0, 0),
            ("all are too many", counted(0, 3, 0, 0), 0, 2),
            ("no overflow", counted(u32::MAX, u32::MAX, 0, 0), 0, 1 << 31),
            ("all that are used are needed", counted(9, 2, 0, 0), 0, 1),
        ] {
            let figures = Figures {
                need_floor: floor,
                ..Figures::default()
            };
            let mut cut = Cut::of(counted, &figures);
            assert_eq!(cut.target(), target, "{case}");
            assert_eq!(cut.part(counted.idle) > 0, target > 0, "{case}");
        }
    }

    /// Sixteen workers with one connection each, one of them too many: two go, not sixteen.
    #[test]
    fn workers_together_close_one_more_than_the_target() {
        let counted = Counted {
            used: 0,
            idle: 16,
            max_used: 15,
            need: 15,
        };
        let mut cut = Cut::of(counted, &Figures::default());
        let parts: Vec<u32> = (0..16).map(|_| cut.part(1)).collect();
        assert_eq!(parts, [[1, 1].as_slice(), &[0; 14]].concat());
    }

    #[test]
    fn parts_are_in_proportion() {
        let counted = Counted {
            used: 0,
            idle: 100,
            max_used: 20,
            need: 20,
        };
        let mut cut = Cut::of(counted, &Figures::default());
        assert_eq!(
            [60, 30, 10, 0].map(|own| cut.part(own)),
            [25, 13, 3, 0],
            "of 40; the last gets what is left"
        );
    }

    #[test]
    fn the_need_is_never_below_what_was_used() {
        let counted = Counted {
            used: 1,
            idle: 0,
            max_used: 7,
            need: 7,
        };
        let after = counted.decayed();
        assert_eq!((after.max_used, after.need), (1, 7));
        let after = after.decayed();
        assert_eq!((after.max_used, after.need), (1, 4));
        let ahead = Counted { used: 9, ..after };
        assert_eq!((ahead.decayed().max_used, ahead.decayed().need), (9, 9));
    }

    #[test]
    fn a_timer_fires_once_in_a_period() {
        let delay = NonZeroU64::new(5_000_000).unwrap();
        assert_eq!([0, 4_999_999, 5_000_000].map(|now| period(now, delay)), [0, 0, 1]);
    }
}
