//! The fewest requests in flight per weight, exactly (LB-20…LB-23).
//!
//! Usable servers play a tournament, match by match up to one winner: the lightest by [`load_key`] wins, and among equals
//! who was ranked first. The one taken goes to the end of its equals, so equals rotate, and idle servers come first
//! whatever their weight.
//!
//! A picked server is counted one heavier at once, before its slot is taken: whoever asks next sees it. The caller
//! tells the real load with [`LeastConn::changed`] when a request leaves, or was refused its slot.
//!
//! A candidate has a free slot and nobody waiting; or, with `maxqueue`, room for one more in its slots and its queue
//! together (LB-21): then the contention of many who wait spreads over the queues of the servers.

use super::tournament::Tournament;
use super::{load, load_key, servers};
use crate::policy::{ServerId, ServerIndex, Table};

/// The loads of one backend, in order.
#[derive(Clone, Debug, Default)]
pub struct LeastConn {
    /// Server of each place in the table that was synchronised last.
    ids: Vec<ServerId>,
    /// By server; [`Tournament::OUT`] for who is not usable.
    ranks: Tournament,
    /// By server.
    seats: Vec<Seat>,
    /// Passed over in the pick that is running.
    passed: Vec<Rank>,
    /// Times that a server was put at the end of its equals.
    ranked: u64,
}

/// Where a server belongs: its key, then when it was put there, then which one it is. One number, so that a comparison
/// is one: 64 bits, 48, and 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u128);

impl Rank {
    fn new(key: u64, ranked: u64, server: ServerIndex) -> Rank {
        Rank(u128::from(key) << 64 | u128::from(ranked << 16) | u128::from(server.0))
    }

    fn server(self) -> ServerIndex {
        ServerIndex(self.0 as u16)
    }

    fn ranked(self) -> u64 {
        (self.0 as u64) >> 16
    }

    fn key(self) -> u64 {
        (self.0 >> 64) as u64
    }
}

/// What is known of a server.
#[derive(Clone, Copy, Debug)]
struct Seat {
    weight: u32,
    load: u32,
}

impl LeastConn {
    /// Takes over a new table with the loads of this instant. Servers are recognised by id and keep their rank among
    /// equals; who is new comes after them.
    pub fn sync(&mut self, table: &impl Table, id: impl Fn(ServerIndex) -> ServerId) {
        let order = |rank: Rank| (self.ids[rank.server().at()], rank.ranked());
        let mut known: Vec<_> = self.ranks.playing().map(|rank| order(Rank(rank))).collect();
        known.sort_unstable();
        self.ranks.reset(table.len());
        self.seats.clear();
        for server in servers(table) {
            let (load, weight) = (load(table, server), table.weight(server));
            self.seats.push(Seat { weight, load });
            if table.usable(server) {
                let ranked = match known.binary_search_by_key(&id(server), |&(id, _)| id) {
                    Ok(at) => known[at].1,
                    Err(_) => self.next_rank(),
                };
                self.put(Rank::new(load_key(load, weight), ranked, server));
            }
        }
        self.ids = servers(table).map(id).collect();
        self.passed.reserve(table.len());
    }

    /// The lightest candidate, counted one heavier from now on. `table` is the one that was synchronised last.
    pub fn pick(&mut self, table: &impl Table, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let mut last_resort = None;
        let found = loop {
            let Some(lightest) = self.ranks.winner().map(Rank) else {
                break last_resort;
            };
            if is_candidate(table, lightest.server()) {
                match avoid == Some(lightest.server()) {
                    true => last_resort = avoid,
                    false => break Some(self.warmest(table, lightest, avoid)),
                }
            }
            self.ranks.set(lightest.server().at(), Tournament::OUT);
            self.passed.push(lightest);
        };
        while let Some(rank) = self.passed.pop() {
            self.put(rank);
        }
        let server = found?;
        let counted = self.seats[server.at()].load;
        self.changed(server, counted.saturating_add(1));
        Some(server)
    }

    /// The lightest; or, if it is not warm and one of a few others with the same load is, that one.
    fn warmest(&self, table: &impl Table, lightest: Rank, avoid: Option<ServerIndex>) -> ServerIndex {
        if table.is_warm(lightest.server()) {
            return lightest.server();
        }
        let mut equals = self
            .ranks
            .finalists()
            .map(Rank)
            .filter(|rank| rank.key() == lightest.key())
            .map(Rank::server);
        let warm = equals
            .find(|&server| Some(server) != avoid && table.is_warm(server) && is_candidate(table, server));
        warm.unwrap_or(lightest.server())
    }

    /// Puts a server where this load belongs, at the end of its equals (LB-22).
    pub fn changed(&mut self, server: ServerIndex, load: u32) {
        let ranked = self.next_rank();
        let Some(seat) = self.seats.get_mut(server.at()) else {
            return;
        };
        seat.load = load;
        let weight = seat.weight;
        if self.ranks.is_playing(server.at()) {
            self.put(Rank::new(load_key(load, weight), ranked, server));
        }
    }

    /// Where a server stands in the table that was synchronised last: for who knows it from another table.
    pub fn find(&self, id: ServerId) -> Option<ServerIndex> {
        self.ids
            .iter()
            .position(|&known| known == id)
            .map(|at| ServerIndex(at as u16))
    }

    fn next_rank(&mut self) -> u64 {
        self.ranked += 1;
        self.ranked
    }

    fn put(&mut self, rank: Rank) {
        self.ranks.set(rank.server().at(), rank.0);
    }
}

fn is_candidate(table: &impl Table, server: ServerIndex) -> bool {
    let has_place = |most: u32| most > 0 && load(table, server) < table.limit(server).saturating_add(most);
    !table.saturated(server) || table.queue_max(server).is_some_and(has_place)
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::super::column::Columns;
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_assume, proptest};

    fn synced(table: &Columns) -> LeastConn {
        let mut least = LeastConn::default();
        least.sync(table, table.id());
        least
    }

    /// Picks and takes the slot.
    fn take(least: &mut LeastConn, table: &mut Columns) -> Option<u16> {
        let server = least.pick(table, None)?;
        table.served[server.at()] += 1;
        Some(server.0)
    }

    fn leave(least: &mut LeastConn, table: &mut Columns, server: u16) {
        table.served[usize::from(server)] -= 1;
        least.changed(ServerIndex(server), table.served[usize::from(server)]);
    }

    /// AC-41: a heavy server does not draw the first requests away from idle light ones.
    #[test]
    fn idle_servers_come_first_whatever_their_weight() {
        let mut table = Columns::of(&[1, 100, 1]);
        let mut least = synced(&table);
        let first: Vec<_> = (0..5).map(|_| take(&mut least, &mut table).unwrap()).collect();
        assert_eq!(first, [0, 1, 2, 1, 1], "each idle one once, then by weight");
    }

    #[test]
    fn equals_rotate() {
        let mut table = Columns::of(&[1, 1, 1]);
        let mut least = synced(&table);
        let mut seen = Vec::new();
        for _ in 0..6 {
            let server = take(&mut least, &mut table).unwrap();
            leave(&mut least, &mut table, server);
            seen.push(server);
        }
        assert_eq!(seen, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_pick_counts_before_its_slot_is_taken() {
        let table = Columns::of(&[1, 1]);
        let mut least = synced(&table);
        assert_eq!(least.pick(&table, None), Some(ServerIndex(0)));
        assert_eq!(
            least.pick(&table, None),
            Some(ServerIndex(1)),
            "although nobody is served yet"
        );
        least.changed(ServerIndex(1), 0);
        assert_eq!(
            least.pick(&table, None),
            Some(ServerIndex(1)),
            "its request was refused the slot"
        );
    }

    /// LB-3, LB-21.
    #[test]
    fn full_servers_are_passed_over_and_the_avoided_is_the_last_resort() {
        let mut table = Columns::of(&[1, 1, 1]);
        (table.served, table.limits) = (vec![1, 5, 4], vec![1, 9, 9]);
        let mut least = synced(&table);
        assert_eq!(least.pick(&table, None), Some(ServerIndex(2)));
        least.changed(ServerIndex(2), 4);
        assert_eq!(least.pick(&table, Some(ServerIndex(2))), Some(ServerIndex(1)));
        table.limits[1] = 5;
        assert_eq!(least.pick(&table, Some(ServerIndex(2))), Some(ServerIndex(2)));
        table.limits[2] = 4;
        assert_eq!(least.pick(&table, Some(ServerIndex(2))), None);
        table.limits[0] = 2;
        assert_eq!(
            least.pick(&table, None),
            Some(ServerIndex(0)),
            "what was passed over is back"
        );
    }

    /// LB-21: slots and queue together are the limit.
    #[test]
    fn with_a_queue_full_servers_are_candidates() {
        let mut table = Columns::of(&[1, 1]);
        (table.limits, table.queue_max) = (vec![1, 2], vec![2, 0]);
        let mut least = synced(&table);
        let mut loads = [0, 0];
        let mut picks = Vec::new();
        while let Some(server) = least.pick(&table, None) {
            let at = server.at();
            loads[at] += 1;
            table.served[at] = loads[at].min(table.limits[at]);
            table.waiting[at] = loads[at] - table.served[at];
            picks.push(server.0);
        }
        assert_eq!(
            picks,
            [0, 1, 0, 1, 0],
            "three on the first, two on the second, and nothing"
        );
    }

    #[test]
    fn a_new_table_keeps_the_rank_among_equals() {
        let table = Columns::of(&[1, 1, 1]);
        let mut least = synced(&table);
        assert_eq!(least.pick(&table, None), Some(ServerIndex(0)));
        least.changed(ServerIndex(0), 0);
        let mut next = Columns::of(&[1, 1, 1, 1]);
        next.ids = vec![9, 0, 2, 1];
        least.sync(&next, next.id());
        let order: Vec<_> = (0..4).map(|_| least.pick(&next, None).unwrap().0).collect();
        assert_eq!(
            order,
            [3, 2, 1, 0],
            "ids 1, 2, then 0 that was taken, then the newcomer 9"
        );
        assert_eq!(
            [least.find(ServerId(2)), least.find(ServerId(7))],
            [Some(ServerIndex(2)), None]
        );
    }

    proptest! {
        /// Against a scan: each pick has the lowest key of all candidates, and who is full is never picked.
        #[test]
        fn every_pick_is_the_lightest(
            weights in prop::collection::vec(0u32..=256, 1..40),
            limit in 1u32..6,
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..300),
            avoid in prop::option::of(0u16..40),
        ) {
            let mut table = Columns::of(&weights);
            table.limits = vec![limit; weights.len()];
            prop_assume!(weights.iter().any(|&weight| weight > 0));
            let avoid = avoid.map(ServerIndex);
            let mut least = synced(&table);
            let mut served: Vec<u16> = Vec::new();
            for (which, arrives) in steps {
                if arrives || served.is_empty() {
                    let expected = super::super::least_loaded(&table, avoid);
                    let picked = least.pick(&table, avoid);
                    let key = |server: ServerIndex| {
                        (Some(server) == avoid, load_key(table.served[server.at()], table.weight(server)))
                    };
                    prop_assert_eq!(picked.map(key), expected.map(key));
                    if let Some(server) = picked {
                        prop_assert!(table.usable(server) && !table.saturated(server));
                        table.served[server.at()] += 1;
                        served.push(server.0);
                    }
                } else {
                    let server = served.swap_remove(which.index(served.len()));
                    leave(&mut least, &mut table, server);
                }
            }
        }
    }
}
