//! The fewest requests in flight per weight, exactly (LB-20…LB-23).
//!
//! Usable servers stand in a heap ordered by [`load_key`] and then by when they were last put there: among equals the
//! one taken goes to the end, so equals rotate, and idle servers come first whatever their weight. A second column
//! says where in the heap each server stands, so that a changed load moves it in O(log n).
//!
//! A picked server is counted one heavier at once, before its slot is taken: whoever asks next sees it. The caller
//! tells the real load with [`LeastConn::changed`] when a request leaves, or was refused its slot.
//!
//! A candidate has a free slot and nobody waiting; or, with `maxqueue`, room for one more in its slots and its queue
//! together (LB-21): then the contention of many who wait spreads over the queues of the servers.

use super::{load, load_key, servers};
use crate::policy::{ServerId, ServerIndex, Table};

/// The loads of one backend, in order.
#[derive(Clone, Debug, Default)]
pub struct LeastConn {
    /// Server of each place in the table that was synchronised last.
    ids: Vec<ServerId>,
    /// A binary heap, lightest on top.
    heap: Vec<Entry>,
    /// Where each server stands in the heap; `ABSENT` for who is not usable.
    places: Vec<u32>,
    /// Passed over in the pick that is running.
    passed: Vec<Entry>,
    /// Insertions so far.
    inserted: u64,
}

/// One server; ordered as the heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: u64,
    inserted: u64,
    server: ServerIndex,
    weight: u32,
    load: u32,
}

impl LeastConn {
    /// Takes over a new table with the loads of this instant. Servers are recognised by id and keep their rank among
    /// equals; who is new comes after them.
    pub fn sync(&mut self, table: &impl Table, id: impl Fn(ServerIndex) -> ServerId) {
        let mut known: Vec<_> = self
            .heap
            .iter()
            .map(|entry| (self.ids[entry.server.at()], entry.inserted))
            .collect();
        known.sort_unstable_by_key(|&(id, _)| id);
        self.heap.clear();
        self.places.clear();
        self.places.resize(table.len(), ABSENT);
        for server in servers(table).filter(|&server| table.usable(server)) {
            let inserted = match known.binary_search_by_key(&id(server), |&(id, _)| id) {
                Ok(at) => known[at].1,
                Err(_) => self.next_rank(),
            };
            let (load, weight) = (load(table, server), table.weight(server));
            self.insert(Entry {
                key: load_key(load, weight),
                inserted,
                server,
                weight,
                load,
            });
        }
        self.ids = servers(table).map(id).collect();
        self.passed.reserve(self.heap.len());
    }

    /// The lightest candidate, counted one heavier from now on. `table` is the one that was synchronised last.
    pub fn pick(&mut self, table: &impl Table, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let mut last_resort = None;
        let found = loop {
            let Some(&top) = self.heap.first() else {
                break last_resort;
            };
            if is_candidate(table, top.server) {
                match avoid == Some(top.server) {
                    true => last_resort = avoid,
                    false => break Some(self.warmest(table, top, avoid)),
                }
            }
            let top = self.remove(0);
            self.passed.push(top);
        };
        while let Some(entry) = self.passed.pop() {
            self.insert(entry);
        }
        let server = found?;
        let counted = self.heap[self.places[server.at()] as usize].load;
        self.changed(server, counted.saturating_add(1));
        Some(server)
    }

    /// The top of the heap; or, if it is not warm and one of the next few with the same load is, that one.
    fn warmest(&self, table: &impl Table, top: Entry, avoid: Option<ServerIndex>) -> ServerIndex {
        if table.is_warm(top.server) {
            return top.server;
        }
        // Equals of the top stand near it, if not always next to it: a few are worth a look, all are not.
        let near = self
            .heap
            .iter()
            .skip(1)
            .take(WARM_LOOK)
            .filter(|entry| entry.key == top.key);
        let warm = near
            .map(|entry| entry.server)
            .find(|&server| Some(server) != avoid && table.is_warm(server) && is_candidate(table, server));
        warm.unwrap_or(top.server)
    }

    /// Puts a server where this load belongs, at the end of its equals (LB-22).
    pub fn changed(&mut self, server: ServerIndex, load: u32) {
        let Some(&place) = self.places.get(server.at()).filter(|&&place| place != ABSENT) else {
            return;
        };
        let inserted = self.next_rank();
        let entry = &mut self.heap[place as usize];
        *entry = Entry {
            key: load_key(load, entry.weight),
            inserted,
            load,
            ..*entry
        };
        self.settle(place as usize);
    }

    /// Where a server stands in the table that was synchronised last: for who knows it from another table.
    pub fn find(&self, id: ServerId) -> Option<ServerIndex> {
        self.ids
            .iter()
            .position(|&known| known == id)
            .map(|at| ServerIndex(at as u16))
    }

    fn next_rank(&mut self) -> u64 {
        self.inserted += 1;
        self.inserted
    }

    fn insert(&mut self, entry: Entry) {
        self.heap.push(entry);
        self.rise(self.heap.len() - 1);
    }

    fn remove(&mut self, place: usize) -> Entry {
        let entry = self.heap.swap_remove(place);
        self.places[entry.server.at()] = ABSENT;
        if place < self.heap.len() {
            self.settle(place);
        }
        entry
    }

    fn settle(&mut self, place: usize) {
        let place = self.rise(place);
        self.sink(place);
    }

    fn rise(&mut self, mut place: usize) -> usize {
        while place > 0 && self.heap[place] < self.heap[(place - 1) / 2] {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        self.places[self.heap[place].server.at()] = place as u32;
        place
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(lighter) = children.min_by_key(|&child| self.heap[child]) else {
                return;
            };
            if self.heap[place] <= self.heap[lighter] {
                return;
            }
            self.swap(place, lighter);
            place = lighter;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one].server.at()] = one as u32;
        self.places[self.heap[other].server.at()] = other as u32;
    }
}

fn is_candidate(table: &impl Table, server: ServerIndex) -> bool {
    let most = table.limit(server).saturating_add(table.queue_max(server));
    !table.saturated(server) || table.queue_max(server) > 0 && load(table, server) < most
}

/// How many places of the heap are searched for a warm server.
const WARM_LOOK: usize = 14;
/// The place of a server that is not in the heap.
const ABSENT: u32 = u32::MAX;

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
