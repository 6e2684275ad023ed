//! The least of many numbers of which one changes at a time: a tree whose leaves are the numbers and whose nodes hold the
//! least of four below them.
//!
//! A change plays the matches from its leaf to the top, always the same ones: a thousand numbers are five matches of
//! four. Unlike in a heap, which lines are read does not depend on what was read before, and no branch on a comparison
//! is taken, so the processor reads them all at once.

/// Numbers by place, and the least of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Tournament {
    /// How many places there are.
    places: usize,
    /// The leaves four by four, then the winners of these four by four, up to one family.
    families: Vec<Family>,
    /// Where in `families` each round begins.
    rounds: Vec<usize>,
    /// The least of the last family.
    least: u128,
}

/// Four who play against each other: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Family([u128; FAMILY]);

const FAMILY: usize = 4;

impl Tournament {
    /// The number of who does not play.
    pub(super) const OUT: u128 = u128::MAX;

    /// So many places from now on, and nobody plays.
    pub(super) fn reset(&mut self, places: usize) {
        self.places = places;
        self.families.clear();
        self.rounds.clear();
        self.least = Self::OUT;
        let mut entrants = places;
        while entrants > 0 {
            self.rounds.push(self.families.len());
            let families = entrants.div_ceil(FAMILY);
            let next = self.families.len() + families;
            self.families.resize(next, Family([Self::OUT; FAMILY]));
            entrants = if families > 1 { families } else { 0 };
        }
    }

    /// Puts a number at a place below the `places` of [`Tournament::reset`].
    pub(super) fn set(&mut self, place: usize, number: u128) {
        let (mut place, mut winner) = (place, number);
        for &round in &self.rounds {
            let family = &mut self.families[round + place / FAMILY].0;
            let own = place % FAMILY;
            family[own] = winner;
            // The others by name: reading back what was just stored would wait for it.
            let others = family[own ^ 1].min(family[own ^ 2]).min(family[own ^ 3]);
            winner = winner.min(others);
            place /= FAMILY;
        }
        self.least = winner;
    }

    /// The least number, unless all are out.
    pub(super) fn winner(&self) -> Option<u128> {
        Some(self.least).filter(|&least| self.places > 0 && least != Self::OUT)
    }

    pub(super) fn is_playing(&self, place: usize) -> bool {
        place < self.places && self.families[place / FAMILY].0[place % FAMILY] != Self::OUT
    }

    /// All numbers that play, by place.
    pub(super) fn playing(&self) -> impl Iterator<Item = u128> {
        let leaves = &self.families[..self.places.div_ceil(FAMILY)];
        let numbers = leaves.iter().flat_map(|family| family.0);
        numbers.filter(|&number| number != Self::OUT)
    }

    /// Who came as far as the last sixteen, the winner among them.
    pub(super) fn finalists(&self) -> impl Iterator<Item = u128> {
        let last = match *self.rounds.as_slice() {
            [.., semifinal, last] => &self.families[semifinal..last],
            _ => &self.families[..],
        };
        last.iter()
            .flat_map(|family| family.0)
            .filter(|&number| number != Self::OUT)
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn nobody_wins_where_nobody_plays() {
        let mut tournament = Tournament::default();
        assert_eq!(tournament.winner(), None);
        assert_eq!(tournament.finalists().count() + tournament.playing().count(), 0);
        tournament.reset(0);
        assert!(tournament.winner().is_none() && !tournament.is_playing(0));
        tournament.reset(1);
        assert_eq!(tournament.winner(), None);
        tournament.set(0, 7);
        assert_eq!(tournament.winner(), Some(7));
        tournament.reset(1);
        assert_eq!(tournament.winner(), None, "the former winner has left");
    }

    proptest! {
        /// Against a scan.
        #[test]
        fn the_least_wins(
            places in 1usize..200,
            changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(0u128..50)), 1..300),
        ) {
            let mut tournament = Tournament::default();
            tournament.reset(places);
            let mut numbers = vec![Tournament::OUT; places];
            for (which, number) in changes {
                let place = which.index(places);
                numbers[place] = number.unwrap_or(Tournament::OUT);
                tournament.set(place, numbers[place]);
                let least = numbers.iter().copied().min().filter(|&least| least != Tournament::OUT);
                prop_assert_eq!(tournament.winner(), least);
                prop_assert_eq!(tournament.is_playing(place), number.is_some());
                let finalists: Vec<_> = tournament.finalists().collect();
                prop_assert!(finalists.len() <= 16);
                prop_assert_eq!(finalists.iter().copied().min(), least);
                prop_assert!(finalists.iter().all(|finalist| numbers.contains(finalist)));
            }
            let playing: Vec<_> = tournament.playing().collect();
            let expected: Vec<_> = numbers.iter().copied().filter(|&number| number != Tournament::OUT).collect();
            prop_assert_eq!(playing, expected);
        }
    }
}
