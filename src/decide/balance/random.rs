//! The least loaded of N servers drawn on a weighted ring (LB-30); N = 2 is the default of every backend.
//!
//! The ring is made with the table and never changes, so a pick takes no lock and leaves nothing behind: two workers
//! that pick at the same instant do not meet. Drawing is one index where all weights are equal, a binary search
//! where they are not.
//!
//! Our differences: servers of equal load per weight are not told apart by their rate of sessions; the one drawn last
//! is kept, as LB-30 says for equal rates. And if the kept one is full, the least loaded is looked for, so that nothing
//! means what it says: no server has a free slot.

use super::least_loaded;
use crate::policy::{Draw, ServerIndex, Table};
use std::cmp::Ordering;

/// The algorithm with the ring of one table.
#[derive(Clone, Debug)]
pub struct Random {
    draws: u8,
    /// Usable servers in table order.
    members: Box<[ServerIndex]>,
    /// Where each member's arc ends; arcs are as long as weights. Empty where all are equal: then a member is drawn.
    ends: Box<[u32]>,
    /// Length of the ring; the number of members where all weights are equal.
    length: u32,
}

impl Random {
    /// The ring of servers with these effective weights, in table order, 0 for one that is not usable; and how often
    /// it is drawn from for one pick (at least once).
    pub fn new(draws: u8, weights: impl IntoIterator<Item = u32>) -> Self {
        let (mut members, mut ends, mut length) = (Vec::new(), Vec::new(), 0);
        for (at, weight) in weights.into_iter().enumerate().filter(|&(_, weight)| weight > 0) {
            length += weight;
            members.push(ServerIndex(at as u16));
            ends.push(length);
        }
        let equal = ends.iter().zip(1..).all(|(&end, arcs)| end == ends[0] * arcs);
        if equal {
            (ends, length) = (Vec::new(), members.len() as u32);
        }
        Random {
            draws,
            members: members.into(),
            ends: ends.into(),
            length,
        }
    }

    /// How often it draws for one pick.
    pub fn draws(&self) -> u8 {
        self.draws
    }

    /// Draws and keeps the lowest load per weight; the least loaded of all if the kept one is full or has a queue.
    pub fn pick(
        &self,
        table: &impl Table,
        avoid: Option<ServerIndex>,
        draw: &mut impl Draw,
    ) -> Option<ServerIndex> {
        let (start, hole) = self.hole(avoid);
        let mut kept = self.drawn(start, hole, draw)?;
        for _ in 1..self.draws {
            let other = self.drawn(start, hole, draw)?;
            if other != kept && !precedes(table, kept, other) {
                kept = other;
            }
        }
        if table.saturated(kept) {
            return least_loaded(table, avoid);
        }
        Some(kept)
    }

    /// The arc that is left out of the ring: the avoided server's, unless it is all there is.
    fn hole(&self, avoid: Option<ServerIndex>) -> (u32, u32) {
        let Some(at) = avoid.and_then(|server| self.members.binary_search(&server).ok()) else {
            return (0, 0);
        };
        if self.members.len() == 1 {
            return (0, 0);
        }
        match self.ends.get(at) {
            None => (at as u32, 1),
            Some(&end) => {
                let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
                (start, end - start)
            }
        }
    }

    fn drawn(&self, start: u32, hole: u32, draw: &mut impl Draw) -> Option<ServerIndex> {
        if self.length == 0 {
            return None;
        }
        let mut point = draw.draw(self.length - hole);
        if point >= start {
            point += hole;
        }
        let at = match self.ends.is_empty() {
            true => point as usize,
            false => self.ends.partition_point(|&end| end <= point),
        };
        self.members.get(at).copied()
    }
}

/// Whether `one` has less in flight per weight than `other`, or as much and is the warmer.
fn precedes(table: &impl Table, one: ServerIndex, other: ServerIndex) -> bool {
    let load = |of, per| u64::from(table.served(of)) * u64::from(table.weight(per));
    match load(one, other).cmp(&load(other, one)) {
        Ordering::Equal => table.is_warm(one) && !table.is_warm(other),
        unequal => unequal == Ordering::Less,
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::super::column::{Columns, Seeded};
    use super::super::servers;
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_assume, proptest};

    /// Answers with what it was told, and remembers what it was asked.
    struct Script(Vec<u32>, Vec<u32>);

    impl Draw for Script {
        fn draw(&mut self, bound: u32) -> u32 {
            self.1.push(bound);
            self.0.remove(0)
        }
    }

    fn ring(draws: u8, table: &Columns) -> Random {
        let weight = |server| {
            if table.usable(server) {
                table.weight(server)
            } else {
                0
            }
        };
        Random::new(draws, servers(table).map(weight))
    }

    fn pick(table: &Columns, draws: &[u32], avoid: Option<u16>) -> Option<u16> {
        let random = ring(draws.len() as u8, table);
        let mut script = Script(draws.to_vec(), Vec::new());
        random
            .pick(table, avoid.map(ServerIndex), &mut script)
            .map(|server| server.0)
    }

    #[test]
    fn the_lowest_load_per_weight_is_kept() {
        let mut table = Columns::of(&[1, 1, 1]);
        table.served = vec![3, 1, 2];
        assert_eq!(pick(&table, &[0, 1], None), Some(1));
        assert_eq!(pick(&table, &[1, 0], None), Some(1));
        assert_eq!(pick(&table, &[0, 2, 1], None), Some(1));
        assert_eq!(pick(&table, &[0], None), Some(0), "one draw compares nothing");
        assert_eq!(pick(&table, &[0, 0], None), Some(0), "draws may coincide");
    }

    #[test]
    fn among_equals_the_last_drawn_is_kept() {
        let mut table = Columns::of(&[1, 1, 2]);
        table.served = vec![1, 1, 2];
        assert_eq!(pick(&table, &[0, 16], None), Some(1));
        assert_eq!(pick(&table, &[16, 0], None), Some(0));
        assert_eq!(pick(&table, &[0, 32], None), Some(2));
        assert_eq!(pick(&table, &[32, 0], None), Some(0));
    }

    #[test]
    fn arcs_are_as_long_as_weights() {
        let mut table = Columns::of(&[1, 3, 2]);
        table.usable[1] = false;
        let places: Vec<_> = [0, 15, 16, 47]
            .iter()
            .map(|&at| pick(&table, &[at], None))
            .collect();
        assert_eq!(places, [Some(0), Some(0), Some(2), Some(2)]);
    }

    #[test]
    fn a_full_choice_is_the_least_loaded_of_all() {
        let mut table = Columns::of(&[1, 1, 1]);
        (table.served, table.limits) = (vec![1, 3, 2], vec![1, 9, 9]);
        assert_eq!(pick(&table, &[0, 1], None), Some(2));
        assert_eq!(pick(&table, &[1, 1], None), Some(1));
        assert_eq!(pick(&table, &[0, 0], Some(2)), Some(1), "the avoided last");
        table.limits = vec![1, 3, 2];
        assert_eq!(pick(&table, &[0, 1], None), None, "no server has a free slot");
    }

    /// LB-3: the avoided server's arc is closed, so the others keep their proportions.
    #[test]
    fn the_avoided_is_not_drawn() {
        let table = Columns::of(&[1, 2, 3]);
        let random = ring(1, &table);
        let places: Vec<_> = [0, 15, 16, 63]
            .iter()
            .map(|&at| {
                let mut script = Script(vec![at], Vec::new());
                let server = random.pick(&table, Some(ServerIndex(1)), &mut script).unwrap().0;
                (server, script.1[0])
            })
            .collect();
        assert_eq!(places, [(0, 64), (0, 64), (2, 64), (2, 64)]);
        assert_eq!(
            pick(&Columns::of(&[5]), &[0], Some(0)),
            Some(0),
            "unless there is no other"
        );
    }

    #[test]
    fn no_usable_server_is_nothing() {
        assert_eq!(pick(&Columns::of(&[]), &[0, 0], None), None);
        assert_eq!(pick(&Columns::of(&[0, 0]), &[0, 0], None), None);
    }

    proptest! {
        #[test]
        fn only_usable_free_servers_are_picked(
            rows in prop::collection::vec((0u32..=256, any::<bool>(), 0u32..4, 1u32..4), 1..30),
            avoid in prop::option::of(0u16..30),
            draws in 1u8..5,
            seed in any::<u64>(),
        ) {
            let mut table = Columns::of(&rows.iter().map(|row| row.0).collect::<Vec<_>>());
            table.usable = rows.iter().map(|row| row.1).collect();
            table.served = rows.iter().map(|row| row.2).collect();
            table.limits = rows.iter().map(|row| row.3).collect();
            let avoid = avoid.map(ServerIndex);
            let random = ring(draws, &table);
            if let Some(server) = random.pick(&table, avoid, &mut Seeded(seed)) {
                prop_assert!(table.usable(server) && !table.saturated(server));
                let free = |&other: &ServerIndex| table.usable(other) && !table.saturated(other);
                let mut others = servers(&table).filter(|&other| Some(other) != avoid);
                prop_assert!(Some(server) != avoid || !others.any(|other| free(&other)));
            } else {
                prop_assert!(servers(&table).all(|server| !table.usable(server) || table.saturated(server)));
            }
        }

        /// With one draw, shares are the weights', within five standard deviations.
        #[test]
        fn shares_follow_weights(weights in prop::collection::vec(1u32..=256, 1..12), seed in any::<u64>()) {
            const PICKS: u32 = 4000;
            prop_assume!(weights.len() > 1);
            let table = Columns::of(&weights);
            let random = ring(1, &table);
            let mut draw = Seeded(seed);
            let mut picks = vec![0u32; weights.len()];
            for _ in 0..PICKS {
                picks[random.pick(&table, None, &mut draw).unwrap().at()] += 1;
            }
            prop_assert_eq!(picks.iter().sum::<u32>(), PICKS);
            for (&got, &weight) in picks.iter().zip(&weights) {
                let share = f64::from(weight) / f64::from(weights.iter().sum::<u32>());
                let expected = share * f64::from(PICKS);
                let deviation = (expected * (1.0 - share)).sqrt();
                prop_assert!((f64::from(got) - expected).abs() < 5.0 * deviation + 1.0, "{got} instead of {expected}");
            }
        }
    }
}
