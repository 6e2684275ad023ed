//! The figures of one server's pool: what the configuration says, and what a plan may say instead.

use super::{Counted, Descriptors, KeepRule};
use crate::policy::{PoolWish, WorkerId};

/// Limits and targets of the connections to one server, all in connections. The default is the configuration's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// `pool-low-conn`: idle ones below which a worker takes over no sibling's (POOL-22), and kept beyond the need
    /// (POOL-32). 0 switches the first off.
    pub idle_reserve: u32,
    /// `pool-max-conn`: idle ones at most; `None` for no limit.
    pub idle_max: Option<u32>,
    /// At least so many are taken to be needed, whatever the past says.
    pub need_floor: u32,
    /// So many are to be there, used or idle, before anybody asks for them.
    pub preconnect: u32,
    /// How the room for idle ones is divided among workers.
    pub rule: KeepRule,
}

/// What a plan says of one server; `None` is no opinion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Instead of [`Figures::idle_reserve`].
    pub idle_reserve: Option<u32>,
    /// Beside [`Figures::idle_max`]: the lower one counts.
    pub idle_max: Option<u32>,
    /// Instead of [`Figures::need_floor`].
    pub need_floor: Option<u32>,
    /// Instead of [`Figures::preconnect`].
    pub preconnect: Option<u32>,
}

impl From<&PoolWish> for Wishes {
    fn from(wish: &PoolWish) -> Wishes {
        Wishes {
            idle_reserve: wish.low,
            idle_max: wish.max,
            need_floor: wish.need,
            preconnect: wish.preconnect,
        }
    }
}

/// How many of so many connections a worker has ready in advance: equal parts, the first workers one more. The parts
/// of all workers are the whole.
pub fn share(whole: u32, worker: WorkerId, workers: u16) -> u32 {
    let workers = u32::from(workers.max(1));
    whole / workers + u32::from(u32::from(worker.0) < whole % workers)
}

impl Figures {
    /// These figures where a plan has no opinion, the plan's where it has one. The limit is the operator's: a plan
    /// may lower it and no more.
    pub fn with(self, wishes: &Wishes) -> Self {
        Figures {
            idle_reserve: wishes.idle_reserve.unwrap_or(self.idle_reserve),
            idle_max: match (self.idle_max, wishes.idle_max) {
                (Some(configured), Some(wished)) => Some(configured.min(wished)),
                (configured, wished) => configured.or(wished),
            },
            need_floor: wishes.need_floor.unwrap_or(self.need_floor),
            preconnect: wishes.preconnect.unwrap_or(self.preconnect),
            rule: self.rule,
        }
    }

    /// What the keep rule and the purge take for the need: the estimate, and never less than the floor. What is
    /// opened in advance is needed, too; else the purge would close it again.
    pub fn need(&self, estimated: u32) -> u32 {
        estimated.max(self.need_floor).max(self.preconnect)
    }

    /// Connections, used or idle, that the purge takes for needed: as many as [`Self::need`] says of the estimate, and of
    /// what was used in this period (POOL-40). Under the equal share the reserve, too, as long as the server is used at
    /// all: workers open it again (POOL-22), so that the plain purge and the reserve turn each other's work back.
    pub fn spared(&self, counted: &Counted) -> u32 {
        // What is used now is needed, too: the maximum may have missed it while another period ended.
        let needed = self.need(counted.used.max(counted.max_used).max(counted.need));
        match self.rule {
            KeepRule::EqualShare if counted.max_used > 0 => needed.saturating_add(self.idle_reserve),
            KeepRule::EqualShare | KeepRule::Plain => needed,
        }
    }

    /// How many connections are to be opened in advance now. Never so many that the pool's limit or the low descriptor
    /// mark is passed.
    pub fn to_preconnect(&self, counted: &Counted, descriptors: &Descriptors) -> u32 {
        let present = counted.used.saturating_add(counted.idle);
        let missing = self.preconnect.saturating_sub(present);
        let parkable = self
            .idle_max
            .map_or(u32::MAX, |most| most.saturating_sub(counted.idle));
        let openable = descriptors.low.saturating_sub(descriptors.used);
        missing.min(parkable).min(openable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIGURED: Figures = Figures {
        idle_reserve: 8,
        idle_max: Some(100),
        need_floor: 0,
        preconnect: 0,
        rule: KeepRule::Plain,
    };

    #[test]
    fn a_plan_without_opinions_changes_nothing() {
        assert_eq!(CONFIGURED.with(&Wishes::default()), CONFIGURED);
    }

    #[test]
    fn a_plan_sets_all_but_a_higher_limit() {
        let wishes = |most| Wishes {
            idle_reserve: Some(2),
            idle_max: Some(most),
            need_floor: Some(20),
            preconnect: Some(5),
        };
        let expected = |most| Figures {
            idle_reserve: 2,
            idle_max: Some(most),
            need_floor: 20,
            preconnect: 5,
            rule: KeepRule::Plain,
        };
        assert_eq!(CONFIGURED.with(&wishes(50)), expected(50));
        assert_eq!(CONFIGURED.with(&wishes(500)), expected(100));
        assert_eq!(Figures::default().with(&wishes(500)), expected(500));
    }

    #[test]
    fn parts_are_the_whole() {
        let parts = |whole, workers| (0..workers).map(move |at| share(whole, WorkerId(at), workers));
        assert_eq!(parts(7, 3).collect::<Vec<_>>(), [3, 2, 2]);
        assert_eq!(parts(2, 4).collect::<Vec<_>>(), [1, 1, 0, 0]);
        assert!((0..40).all(|whole| parts(whole, 7).sum::<u32>() == whole));
    }

    #[test]
    fn the_need_has_a_floor() {
        let figures = Figures {
            need_floor: 20,
            preconnect: 25,
            ..CONFIGURED
        };
        assert_eq!([10, 24, 26].map(|need| figures.need(need)), [25, 25, 26]);
        assert_eq!(CONFIGURED.need(3), 3);
    }

    /// The reserve of a server is left to it under the equal share, until a period in which nobody used it.
    #[test]
    fn the_purge_spares_what_is_needed() {
        let counted = |used, max_used, need| Counted {
            used,
            idle: 50,
            max_used,
            need,
        };
        let spared = |rule, counted: Counted| Figures { rule, ..CONFIGURED }.spared(&counted);
        for (counted, plain, equal) in [
            (counted(2, 9, 5), 9, 17),
            (counted(2, 4, 5), 5, 13),
            (counted(7, 4, 5), 7, 15),
            (counted(0, 0, 5), 5, 5),
        ] {
            assert_eq!(spared(KeepRule::Plain, counted), plain, "{counted:?}");
            assert_eq!(spared(KeepRule::EqualShare, counted), equal, "{counted:?}");
        }
    }

    #[test]
    fn connections_are_opened_in_advance_within_limits() {
        let descriptors = |used| Descriptors {
            used,
            low: 200,
            high: 250,
        };
        let counted = |used, idle| Counted {
            used,
            idle,
            max_used: used,
            need: used,
        };
        let figures = |preconnect, idle_max| Figures {
            preconnect,
            idle_max,
            ..CONFIGURED
        };
        for (case, figures, counted, open, expected) in [
            ("none are wanted", CONFIGURED, counted(0, 0), 0, 0),
            ("some are there", figures(10, None), counted(2, 3), 5, 5),
            ("enough are used", figures(10, None), counted(12, 0), 12, 0),
            ("the pool's limit", figures(10, Some(4)), counted(0, 3), 3, 1),
            ("the low mark", figures(10, None), counted(0, 0), 197, 3),
            ("beyond it", figures(10, None), counted(0, 0), 220, 0),
        ] {
            assert_eq!(
                figures.to_preconnect(&counted, &descriptors(open)),
                expected,
                "{case}"
            );
        }
    }
}
