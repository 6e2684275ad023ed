//! Smooth weighted rotation (LB-10…LB-14).
//!
//! Time is the number of picks. With `T` the sum of effective weights, a server of weight `e` is due every `T/e`
//! picks: its next position is its last one plus `T/e`, remainders carried, so that over a long run it gets exactly
//! its share. A pick takes
//!
//! 1. the first of *current* (by position, then heavier, then smaller remainder, then who came first) if it is due;
//! 2. else the heaviest server that has not started yet;
//! 3. else the first of *current* although it is not due.
//!
//! A server that is full, or to be avoided, is passed over: its turn is consumed as if it had been picked (LB-12), so
//! that it does not make up for it later in a burst.
//!
//! Our difference to LB-11: positions are 64 bits wide and never restart, so there is no window and no *next* set.
//! Starting all over once per window costs a server that starts late (one light server after many of middle weight)
//! a turn in each window; without it every share stays exact within one pick.

use super::servers;
use crate::policy::{ServerId, ServerIndex, Table};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The rotation of one backend.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// Server of each place in the table that was synchronised last.
    ids: Vec<ServerId>,
    /// Sum of the effective weights of all usable servers: `T`.
    total: u32,
    /// Picks so far, passed-over turns included.
    position: u64,
    /// Servers that have started, first due on top.
    current: BinaryHeap<Reverse<Turn>>,
    /// Servers that have not started, heaviest last.
    init: Vec<Turn>,
    /// Passed over in the pick that is running.
    passed: Vec<Turn>,
    /// Insertions so far.
    inserted: u64,
}

/// When it is a server's turn; ordered as current is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    position: u64,
    weight: Reverse<u32>,
    remainder: u32,
    inserted: u64,
    server: ServerIndex,
    /// Position of its previous turn.
    last: u64,
}

impl RoundRobin {
    /// Takes over a new table. Servers are recognised by id: who stays keeps the position, who comes is put at the
    /// present position and not at the start, where it would receive a burst (LB-14). At first everybody starts
    /// from nothing.
    pub fn sync(&mut self, table: &impl Table, id: impl Fn(ServerIndex) -> ServerId) {
        let first = self.ids.is_empty();
        let known = self.known();
        self.total = usable(table).map(|server| table.weight(server)).sum();
        for server in usable(table) {
            let weight = table.weight(server);
            let turn = match known.binary_search_by_key(&id(server), |&(id, ..)| id) {
                Ok(at) => self.kept(known[at].1, known[at].2, server, weight),
                Err(_) if first => Place::Init(self.fresh(server, weight)),
                Err(_) => Place::Current(self.fresh(server, weight)),
            };
            match turn {
                Place::Current(turn) => self.current.push(Reverse(turn)),
                Place::Init(turn) => self.init.push(turn),
            }
        }
        self.init
            .sort_unstable_by_key(|turn| (Reverse(turn.weight), Reverse(turn.inserted)));
        self.ids = servers(table).map(id).collect();
        self.passed.reserve(self.current.len() + self.init.len());
        self.current.reserve(self.init.len());
    }

    /// Whose turn it is (LB-10, LB-12). `table` is the one that was synchronised last.
    pub fn pick(&mut self, table: &impl Table, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let mut avoided = None;
        let mut found = None;
        while found.is_none() {
            let Some(turn) = self.next() else { break };
            self.passed.push(turn);
            if table.saturated(turn.server) {
                continue;
            }
            match avoid == Some(turn.server) {
                true => avoided = avoid,
                false => found = Some(turn.server),
            }
        }
        self.current.extend(self.passed.drain(..).map(Reverse));
        found.or(avoided)
    }

    /// Removes the next turn and advances it; the caller puts it back.
    fn next(&mut self) -> Option<Turn> {
        let due = self
            .current
            .peek()
            .is_some_and(|Reverse(turn)| turn.position <= self.position);
        let mut turn = match self.init.pop_if(|_| !due) {
            Some(turn) => Turn {
                position: self.position,
                ..turn
            },
            None => self.current.pop()?.0,
        };
        turn.advance(self.total, self.inserted);
        self.position += 1;
        self.inserted += 1;
        Some(turn)
    }

    /// All turns by id, taken out of both sets.
    fn known(&mut self) -> Vec<(ServerId, Turn, Started)> {
        let ids = std::mem::take(&mut self.ids);
        let started = self.current.drain().map(|Reverse(turn)| (turn, Started::Yes));
        let waiting = self.init.drain(..).map(|turn| (turn, Started::No));
        let mut known: Vec<_> = started
            .chain(waiting)
            .map(|(turn, started)| (ids[turn.server.at()], turn, started))
            .collect();
        known.sort_unstable_by_key(|&(id, ..)| id);
        known
    }

    /// The turn of a server that was there already. A new weight recomputes the position from the last one: never
    /// later than it was, never earlier than two ahead (LB-14).
    fn kept(&self, old: Turn, started: Started, server: ServerIndex, weight: u32) -> Place {
        let same = Turn { server, ..old };
        match started {
            Started::No => Place::Init(Turn {
                weight: Reverse(weight),
                ..same
            }),
            Started::Yes if old.weight.0 == weight => Place::Current(same),
            Started::Yes => {
                let step = u64::from(self.total / weight);
                let position = (old.last + step).min(old.position).max(self.position + 2);
                Place::Current(Turn {
                    position,
                    weight: Reverse(weight),
                    remainder: 0,
                    ..same
                })
            }
        }
    }

    fn fresh(&mut self, server: ServerIndex, weight: u32) -> Turn {
        let (position, inserted) = (self.position, self.inserted);
        self.inserted += 1;
        Turn {
            position,
            weight: Reverse(weight),
            remainder: 0,
            inserted,
            server,
            last: position,
        }
    }
}

impl Turn {
    fn advance(&mut self, total: u32, inserted: u64) {
        let weight = self.weight.0;
        self.last = self.position;
        self.position += u64::from(total / weight);
        self.remainder += total % weight;
        if self.remainder >= weight {
            self.remainder -= weight;
            self.position += 1;
        }
        self.inserted = inserted;
    }
}

#[derive(Clone, Copy)]
enum Started {
    Yes,
    No,
}

enum Place {
    Current(Turn),
    Init(Turn),
}

fn usable(table: &impl Table) -> impl Iterator<Item = ServerIndex> {
    servers(table).filter(|&server| table.usable(server))
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::super::column::Columns;
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn synced(table: &Columns) -> RoundRobin {
        let mut rotation = RoundRobin::default();
        rotation.sync(table, table.id());
        rotation
    }

    fn picks(rotation: &mut RoundRobin, table: &Columns, count: usize) -> Vec<u32> {
        let mut picks = vec![0; table.len()];
        for _ in 0..count {
            picks[rotation.pick(table, None).unwrap().at()] += 1;
        }
        picks
    }

    fn letters(rotation: &mut RoundRobin, table: &Columns, count: usize) -> String {
        (0..count)
            .map(|_| {
                rotation
                    .pick(table, None)
                    .map_or('-', |at| (b'A' + at.0 as u8) as char)
            })
            .collect()
    }

    /// V3 of the specification.
    #[test]
    fn v3() {
        let vectors: [(&[u32], &str); 6] = [
            (&[1, 1, 1], "ABCABCABCABCABCABCABCABCABCA"),
            (&[2, 1], "AABAABAABAABAABAABAABAABAABA"),
            (&[3, 1], "AAABAAABAAABAAABAAABAAABAAAB"),
            (&[5, 1, 1], "AAABAACAAABAACAAABAACAAABAAC"),
            (&[1, 2, 4], "CCBCACBCCBCACBCCBCACBCCBCACB"),
            (&[10, 20, 30], "CBCACBCBCACBCBCACBCBCACBCBCA"),
        ];
        for (weights, sequence) in vectors {
            let table = Columns::of(weights);
            assert_eq!(letters(&mut synced(&table), &table, 28), sequence, "{weights:?}");
        }
    }

    /// AC-40.
    #[test]
    fn shares_of_one_to_two_to_four() {
        let table = Columns::of(&[1, 2, 4]);
        for k in [1, 10, 1000] {
            assert_eq!(
                picks(&mut synced(&table), &table, 7 * k),
                [k as u32, 2 * k as u32, 4 * k as u32]
            );
        }
    }

    /// AC-43: the eleventh server of equal weight.
    #[test]
    fn a_server_that_comes_up_gets_no_burst() {
        let mut table = Columns::of(&[1; 11]);
        table.usable[4] = false;
        let mut rotation = synced(&table);
        assert_eq!(picks(&mut rotation, &table, 137)[4], 0);
        table.usable[4] = true;
        rotation.sync(&table, table.id());
        let came = picks(&mut rotation, &table, 20)[4];
        assert!((1..=2).contains(&came), "{came} of 20 picks");
    }

    #[test]
    fn servers_are_recognised_by_id_when_the_table_is_reordered() {
        let table = Columns::of(&[1, 1, 1, 1]);
        let mut rotation = synced(&table);
        assert_eq!(letters(&mut rotation, &table, 6), "ABCDAB");
        let mut reordered = Columns::of(&[1, 1, 1]);
        reordered.ids = vec![3, 2, 0];
        rotation.sync(&reordered, reordered.id());
        assert_eq!(
            letters(&mut rotation, &reordered, 6),
            "BACBAC",
            "C (now B) was next, then D, then A"
        );
    }

    /// LB-14: never later than it was, never earlier than two ahead.
    #[test]
    fn a_changed_weight_moves_the_next_turn_a_little() {
        let mut table = Columns::of(&[1, 1, 1, 1, 1, 1, 1, 1]);
        let mut rotation = synced(&table);
        assert_eq!(letters(&mut rotation, &table, 8), "ABCDEFGH");
        table.weights[6] = 16 * 100;
        rotation.sync(&table, table.id());
        assert_eq!(
            letters(&mut rotation, &table, 4),
            "ABGC",
            "G was due at 14, now at 10"
        );
        let mut table = Columns::of(&[4, 4]);
        let mut rotation = synced(&table);
        assert_eq!(letters(&mut rotation, &table, 4), "ABAB");
        table.weights[1] = 16;
        rotation.sync(&table, table.id());
        assert_eq!(
            letters(&mut rotation, &table, 10),
            "AAABAAAABA",
            "B was due at 5, now at 6 (alone it would be 8)"
        );
    }

    /// LB-12: a full server loses its turns, and does not make up for them.
    #[test]
    fn a_saturated_server_is_passed_over_and_comes_back_without_a_burst() {
        let mut table = Columns::of(&[1, 1, 1]);
        let mut rotation = synced(&table);
        (table.served[1], table.limits[1]) = (5, 5);
        assert_eq!(letters(&mut rotation, &table, 6), "ACACAC");
        table.served[1] = 4;
        let back = letters(&mut rotation, &table, 6);
        assert_eq!(back.matches('B').count(), 2, "{back}");
        table.limits = vec![0; 3];
        assert_eq!(rotation.pick(&table, None), None);
    }

    /// LB-3.
    #[test]
    fn the_avoided_is_the_last_resort() {
        let mut table = Columns::of(&[1, 1]);
        let mut rotation = synced(&table);
        for _ in 0..5 {
            assert_eq!(rotation.pick(&table, Some(ServerIndex(0))), Some(ServerIndex(1)));
        }
        table.limits[1] = 0;
        assert_eq!(rotation.pick(&table, Some(ServerIndex(0))), Some(ServerIndex(0)));
        table.limits[0] = 0;
        assert_eq!(rotation.pick(&table, Some(ServerIndex(0))), None);
    }

    proptest! {
        /// Over any run the distance from the exact share is bounded, however long the run.
        #[test]
        fn shares_are_exact(weights in prop::collection::vec(1u32..=256, 1..40), rounds in 1u32..4) {
            let table = Columns::of(&weights);
            let sum: u32 = weights.iter().sum();
            let got = picks(&mut synced(&table), &table, (sum * rounds) as usize);
            for (&got, &weight) in got.iter().zip(&weights) {
                prop_assert!(got.abs_diff(weight * rounds) <= 1, "{got} instead of {}", weight * rounds);
            }
        }

        #[test]
        fn only_usable_free_servers_are_picked(
            steps in prop::collection::vec(
                prop::collection::vec((0u32..=20, any::<bool>(), 0u32..3), 1..12), 1..8),
            avoid in prop::option::of(0u16..12),
        ) {
            let mut rotation = RoundRobin::default();
            let avoid = avoid.map(ServerIndex);
            for servers in steps {
                let mut table = Columns::of(&servers.iter().map(|server| server.0).collect::<Vec<_>>());
                table.usable = servers.iter().map(|server| server.1).collect();
                table.served = servers.iter().map(|server| server.2).collect();
                table.limits = vec![2; servers.len()];
                rotation.sync(&table, table.id());
                let free: Vec<_> = usable(&table).filter(|&server| !table.saturated(server)).collect();
                for _ in 0..30 {
                    let picked = rotation.pick(&table, avoid);
                    prop_assert_eq!(picked.is_some(), !free.is_empty());
                    prop_assert!(picked.is_none_or(|server| free.contains(&server)));
                    prop_assert!(picked.is_none() || picked != avoid || free.len() == 1);
                }
            }
        }
    }
}
