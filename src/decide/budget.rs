//! How many requests may be on another attempt than their first: a share of those under way, and a few in any case.
//!
//! When much fails, second attempts are load that nobody asked for, and make it worse. The share bounds that load; the
//! few let a quiet backend try again at all.

/// The bound of one worker for one backend (`retry-budget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In millionths of the requests under way.
    pub share: u32,
    /// So many in any case (`retry-budget-min`).
    pub least: u32,
}

impl Budget {
    /// Whether one more of `live` requests may be on another attempt, when `trying` are.
    pub fn allows(self, live: u32, trying: u32) -> bool {
        let share = u64::from(live) * u64::from(self.share) / 1_000_000;
        u64::from(trying) < share.max(u64::from(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn a_share_of_those_under_way_and_a_few_in_any_case() {
        let budget = Budget {
            share: 200_000,
            least: 3,
        };
        for (live, most) in [
            (0, 3),
            (1, 3),
            (15, 3),
            (19, 3),
            (20, 4),
            (100, 20),
            (u32::MAX, 858_993_459),
        ] {
            assert!(budget.allows(live, most - 1), "{live}");
            assert!(!budget.allows(live, most), "{live}");
        }
        let none = Budget { share: 0, least: 0 };
        assert!(!none.allows(u32::MAX, 0));
    }
}
