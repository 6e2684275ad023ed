//! The configured algorithm of one table: what it keeps with the table, and how it is asked.
//!
//! Rings and the like are made with a table and never change; where the next table has the same servers with the same
//! weights, it takes the hash's over. What changes with every pick is in [`super::SharedBalancers`].

use super::{BackendTable, Entry, Tie};
use crate::decide::balance::hash::{Hashed, Mapping, Seat};
use crate::decide::balance::random::Random;
use crate::decide::balance::{Algorithm, first};
use crate::policy::{Draw, ServerIndex, Table};
use crate::shared::balancers::Place;
use crate::shared::tiers;
use crate::sync::Arc;

/// An algorithm with what it keeps of one table.
#[derive(Debug)]
pub(super) struct Native {
    pub(super) algorithm: Algorithm,
    /// For who draws; otherwise empty.
    ring: Random,
    /// For who hashes.
    hashed: Option<Arc<Hashed>>,
}

impl Native {
    /// For these servers, of which `balanced` take requests; `former` is that of the table before.
    pub(super) fn new<C>(
        algorithm: Algorithm,
        entries: &[Entry<C>],
        balanced: &[bool],
        former: Option<&Native>,
    ) -> Native {
        let ring = match algorithm.without_key() {
            Algorithm::Random(draws) => {
                let weight =
                    |(entry, takes): (&Entry<C>, &bool)| entry.effective_weight() * u32::from(*takes);
                Random::new(draws, entries.iter().zip(balanced).map(weight))
            }
            _ => Random::new(1, []),
        };
        let hashed = match algorithm {
            Algorithm::Hash(hash) => {
                let seat = |(entry, takes): (&Entry<C>, &bool)| Seat {
                    key: entry.key,
                    weight: u32::from(*takes)
                        * match hash.mapping {
                            Mapping::Consistent => entry.effective_weight(),
                            // LB-41, LB-60: only 0 changes it while the program runs.
                            Mapping::Map if entry.weight == 0 => 0,
                            Mapping::Map => u32::from(entry.configured_weight.unwrap_or(entry.weight)),
                        },
                };
                let seats: Vec<_> = entries.iter().zip(balanced).map(seat).collect();
                let former = former.and_then(|former| former.hashed.clone());
                let same = former.filter(|former| former.is_of(hash, &seats));
                Some(same.unwrap_or_else(|| Arc::new(Hashed::new(hash, seats))))
            }
            _ => None,
        };
        Native {
            algorithm,
            ring,
            hashed,
        }
    }

    /// Whether an order of loads is kept for it, where there is no plan.
    pub(super) fn has_order(&self) -> bool {
        self.algorithm == Algorithm::LeastConn
    }

    /// Asks it for a server. `number` is the hash of the request, if it has one.
    pub(super) fn pick<C>(
        &self,
        table: &BackendTable<C>,
        number: Option<u64>,
        avoid: Option<ServerIndex>,
        draw: &mut impl Draw,
    ) -> (Option<ServerIndex>, Tie) {
        match (self.algorithm, &self.hashed, number) {
            // The default: nothing else is looked at.
            (Algorithm::Random(_), ..) => (self.ring.pick(table, avoid, draw), Tie::Free),
            (Algorithm::Hash(_), Some(hashed), Some(number)) => {
                let picked = hashed.pick(number, table, avoid);
                let tied = picked.is_some() && table.ties(Some(number));
                (picked, if tied { Tie::Server } else { Tie::Free })
            }
            (Algorithm::Hash(_), ..) => (self.pick_without_key(table, avoid, draw), Tie::Free),
            (Algorithm::Sticky, ..) => (table.shared.pick_kept(table, avoid), Tie::Server),
            (Algorithm::LeastConn, ..) => {
                let picked = self.pick_without_key(table, avoid, draw);
                let queues = |server: ServerIndex| table.queue_max(server).is_some_and(|most| most > 0);
                let waits = |server: &ServerIndex| queues(*server) && table.saturated(*server);
                let tie = picked.filter(waits).map_or(Tie::Free, |_| Tie::Server);
                (picked, tie)
            }
            _ => (self.pick_without_key(table, avoid, draw), Tie::Free),
        }
    }

    fn pick_without_key<C>(
        &self,
        table: &BackendTable<C>,
        avoid: Option<ServerIndex>,
        draw: &mut impl Draw,
    ) -> Option<ServerIndex> {
        match self.algorithm.without_key() {
            Algorithm::Random(_) => self.ring.pick(table, avoid, draw),
            Algorithm::First => first::pick(table, avoid),
            Algorithm::LeastConn if table.tiers.is_some() || !self.has_order() => {
                tiers::least_loaded_from_anywhere(table, avoid, draw)
            }
            Algorithm::RoundRobin | Algorithm::LeastConn => {
                table.shared.pick(table, Place::Native, table, avoid)
            }
            Algorithm::Sticky | Algorithm::Hash(_) => None,
        }
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::super::{Admin, Choice, Role, Source};
    use super::*;
    use crate::decide::balance::column::Seeded;
    use crate::decide::balance::hash::{Affinity, Hash, Otherwise};
    use crate::decide::balance::ramp::Ramp;
    use crate::policy::{BackendId, ServerId};
    use crate::shared::server::Server;
    use crate::shared::table::Queueing;
    use proptest::prelude::{Strategy, any, prop, prop_assert, proptest};
    use xxhash_rust::xxh3::xxh3_64;

    type Backend = BackendTable<()>;

    fn entries(ids: impl IntoIterator<Item = u32>) -> Vec<Entry<()>> {
        let entry = |id: u32| Entry {
            key: xxh3_64(&id.to_le_bytes()),
            ..Entry::new(Arc::new(Server::new(ServerId(id), "app", &format!("s{id}"), 1)))
        };
        ids.into_iter().map(entry).collect()
    }

    fn first(algorithm: Algorithm, entries: Vec<Entry<()>>) -> Backend {
        BackendTable::first(BackendId(1), "app", algorithm, entries)
    }

    fn picked(table: &Backend, number: Option<u64>, avoid: Option<u16>) -> (Option<u32>, Tie) {
        let choice = table.pick_for(number, avoid.map(ServerIndex), &mut Seeded(1));
        assert_eq!(choice.source, Source::Native);
        (
            choice.server.map(|server| table.at(server).server.id.0),
            choice.tie,
        )
    }

    fn take(table: &Backend, server: u16, count: u32) {
        for _ in 0..count {
            assert!(table.take(ServerIndex(server)));
        }
    }

    /// LB-2: backups stand in for all active ones, the first of them or all.
    #[test]
    fn backups_serve_only_where_nobody_else_can() {
        let mut list = entries(0..4);
        (list[1].role, list[2].role) = (Role::Backup, Role::Backup);
        let usable = |list: &[Entry<()>]| {
            let table = first(Algorithm::RoundRobin, list.to_vec());
            [0, 1, 2, 3].map(|at| table.usable(ServerIndex(at)))
        };
        assert_eq!(usable(&list), [true, false, false, true]);
        (list[0].state, list[3].weight) = (Admin::Maint, 0);
        assert_eq!(usable(&list), [false, true, false, false], "one of them");
        list[1].state = Admin::Drain;
        assert_eq!(usable(&list), [false, false, true, false], "the next");
        list[1].state = Admin::Ready;
        (list[1].role, list[2].role) = (Role::JointBackup, Role::JointBackup);
        assert_eq!(usable(&list), [false, true, true, false], "all of them");
        list[3].weight = 1;
        assert_eq!(usable(&list), [false, false, false, true], "one active is enough");
        list.iter_mut().for_each(|entry| entry.state = Admin::Maint);
        assert_eq!(usable(&list), [false; 4]);
    }

    /// LB-60: a server in a slow start has a sixteenth of its weight, and of its limit next to nothing.
    #[test]
    fn a_returning_server_begins_slowly() {
        let mut list = entries(0..2);
        list.iter_mut()
            .for_each(|entry| (entry.weight, entry.limit) = (10, 50));
        list[1].ramp = Ramp::at(0, 60_000_000);
        let table = first(Algorithm::RoundRobin, list);
        let both = [0, 1].map(|at| (table.weight(ServerIndex(at)), table.limit(ServerIndex(at))));
        assert_eq!(both, [(160, 50), (10, 1)]);
    }

    /// LB-50: one server for all, through changes of the table, and never back.
    #[test]
    fn sticky_stays_over_tables() {
        let mut list = entries(0..3);
        list.iter_mut().for_each(|entry| entry.limit = 1);
        let table = first(Algorithm::Sticky, list.clone());
        assert_eq!(picked(&table, None, None), (Some(0), Tie::Server));
        take(&table, 0, 1);
        assert_eq!(
            picked(&table, None, None),
            (Some(0), Tie::Server),
            "full: it is waited for"
        );
        assert_eq!(
            picked(&table, None, Some(0)).0,
            Some(1),
            "it has just failed: this once"
        );
        assert_eq!(picked(&table, None, None).0, Some(0));
        list[0].state = Admin::Maint;
        let second = table.next(Algorithm::Sticky, list.clone());
        assert_eq!(picked(&second, None, None).0, Some(1));
        assert_eq!(
            picked(&table, None, None).0,
            Some(1),
            "who holds the older table follows"
        );
        list[0].state = Admin::Ready;
        list.rotate_left(1);
        let third = second.next(Algorithm::Sticky, list.clone());
        assert_eq!(
            picked(&third, None, None).0,
            Some(1),
            "in whatever place it is now"
        );
        let fourth = third.next(Algorithm::Sticky, entries(7..9));
        assert_eq!(picked(&fourth, None, None).0, Some(7));
        assert_eq!(
            picked(&third, None, None).0,
            Some(1),
            "an older table decides for itself alone"
        );
        assert_eq!(picked(&fourth, None, None).0, Some(7));
    }

    fn hash(affinity: Affinity, otherwise: Otherwise) -> Algorithm {
        Algorithm::Hash(Hash {
            mapping: Mapping::Consistent,
            bound: None,
            affinity,
            otherwise,
        })
    }

    /// So many servers with one slot each.
    fn of_one_slot(servers: u32) -> Vec<Entry<()>> {
        let mut list = entries(0..servers);
        list.iter_mut().for_each(|entry| entry.limit = 1);
        list
    }

    /// LB-40, LB-42: tied by its key; without one, whatever else was said.
    #[test]
    fn a_hash_ties_and_its_absence_does_not() {
        for otherwise in [
            Otherwise::RoundRobin,
            Otherwise::LeastConn,
            Otherwise::Random(2),
            Otherwise::First,
        ] {
            let table = first(hash(Affinity::Always, otherwise), of_one_slot(4));
            let (server, tie) = picked(&table, Some(7), None);
            assert_eq!(tie, Tie::Server);
            let place = table.find(ServerId(server.unwrap())).unwrap();
            take(&table, place.0, 1);
            assert_eq!(
                picked(&table, Some(7), None),
                (server, Tie::Server),
                "full: it is waited for"
            );
            let mut others: Vec<_> = (0..3)
                .map(|_| {
                    let (other, tie) = picked(&table, None, None);
                    assert_eq!(tie, Tie::Free);
                    take(&table, table.find(ServerId(other.unwrap())).unwrap().0, 1);
                    other
                })
                .collect();
            assert_eq!(picked(&table, None, None), (None, Tie::Free), "{otherwise:?}");
            others.push(server);
            others.sort();
            assert_eq!(others, [0, 1, 2, 3].map(Some));
        }
        let table = first(hash(Affinity::Maxconn, Otherwise::RoundRobin), of_one_slot(4));
        (0..4).for_each(|at| take(&table, at, 1));
        assert_eq!(
            picked(&table, Some(7), None),
            (None, Tie::Free),
            "whoever is free first"
        );
    }

    /// A plan, a weight elsewhere, a state that stays: the ring is made once.
    #[test]
    fn a_ring_goes_on_in_the_next_table() {
        let algorithm = hash(Affinity::Always, Otherwise::RoundRobin);
        let ring = |table: &Backend| Arc::as_ptr(table.native.hashed.as_ref().unwrap());
        let list = entries(0..3);
        let table = first(algorithm, list.clone());
        let next = table.next(algorithm, list.clone());
        assert_eq!(ring(&table), ring(&next));
        let other = next.next(algorithm, entries(0..2));
        assert_ne!(ring(&next), ring(&other));
        for number in 0..100u64 {
            let number = Some(number << 57);
            let (old, new) = (picked(&next, number, None).0, picked(&other, number, None).0);
            assert!(old == new || old == Some(2), "only its own keys move");
        }
    }

    /// least connections may wait for a server whose queue has room; others wait for any.
    #[test]
    fn who_waits_where() {
        let with_queue = || {
            let mut list = of_one_slot(2);
            list[1].queueing = Queueing {
                queue_max: Some(1),
                ..Queueing::default()
            };
            list
        };
        let full = |algorithm, list| {
            let table = first(algorithm, list);
            (0..2).for_each(|at| take(&table, at, 1));
            picked(&table, None, None)
        };
        for algorithm in [
            Algorithm::RoundRobin,
            Algorithm::LeastConn,
            Algorithm::Random(2),
            Algorithm::First,
        ] {
            assert_eq!(
                full(algorithm, of_one_slot(2)),
                (None, Tie::Free),
                "{algorithm:?}"
            );
        }
        assert_eq!(full(Algorithm::LeastConn, with_queue()), (Some(1), Tie::Server));
        assert_eq!(full(Algorithm::RoundRobin, with_queue()), (None, Tie::Free));
        let free = first(Algorithm::LeastConn, with_queue());
        let Choice { server, tie, .. } = free.pick(None, &mut Seeded(1));
        assert_eq!((server, tie), (Some(ServerIndex(0)), Tie::Free));
    }

    /// AC-42: a tied request goes to who drains, not to who is in maintenance.
    #[test]
    fn who_takes_the_tied() {
        let mut list = entries(0..4);
        list[0].weight = 0;
        list[1].state = Admin::Drain;
        list[2].state = Admin::Maint;
        list[3].role = Role::Backup;
        let table = first(Algorithm::RoundRobin, list);
        let takes = [0, 1, 2, 3].map(|at| table.takes_tied(ServerIndex(at)));
        assert_eq!(takes, [true, true, false, true]);
    }

    fn any_algorithm() -> impl Strategy<Value = Algorithm> {
        let hash = |mapping, bound, affinity| {
            Algorithm::Hash(Hash {
                mapping,
                bound,
                affinity,
                otherwise: Otherwise::RoundRobin,
            })
        };
        prop::sample::select(vec![
            Algorithm::Random(2),
            Algorithm::RoundRobin,
            Algorithm::LeastConn,
            Algorithm::First,
            Algorithm::Sticky,
            hash(Mapping::Consistent, None, Affinity::Always),
            hash(Mapping::Consistent, Some(150), Affinity::Maxqueue),
            hash(Mapping::Map, None, Affinity::Maxconn),
        ])
    }

    proptest! {
        /// LB-2, LB-3, Q-6 for every algorithm, over tables that follow each other: nobody down, no backup beside an active
        /// server, nobody to be avoided beside another who is free; nothing only where nobody is free.
        #[test]
        fn whoever_is_picked_may_be(
            algorithm in any_algorithm(),
            tables in prop::collection::vec(
                prop::collection::vec((0u16..=2, 0u8..5, any::<bool>(), 1u32..4, 1u64..70), 5),
                1..4,
            ),
            requests in prop::collection::vec((prop::option::of(any::<u64>()), prop::option::of(0u16..5)), 1..40),
        ) {
            let mut list = entries(0..5);
            let mut table = first(algorithm, list.clone());
            let mut draw = Seeded(7);
            for rows in tables {
                for (entry, (weight, state, backup, limit, second)) in list.iter_mut().zip(rows) {
                    entry.weight = weight;
                    entry.state = [Admin::Ready, Admin::Ready, Admin::Ready, Admin::Drain, Admin::Maint][usize::from(state)];
                    entry.role = if backup { Role::Backup } else { Role::Active };
                    entry.limit = limit;
                    entry.ramp = Ramp::at(second * 1_000_000, 60_000_000);
                }
                table = table.next(algorithm, list.clone());
                let ready = |at: ServerIndex| table.at(at).state == Admin::Ready && table.at(at).weight > 0;
                let all = || (0..5).map(ServerIndex);
                let active = all().any(|at| ready(at) && table.at(at).role == Role::Active);
                for (number, avoid) in &requests {
                    let avoid = avoid.map(ServerIndex);
                    let free = |at: ServerIndex| table.usable(at) && !table.saturated(at);
                    let other = all().any(|at| free(at) && Some(at) != avoid);
                    let Choice { server, tie, .. } = table.pick_for(*number, avoid, &mut draw);
                    prop_assert!(tie == Tie::Free || table.ties(*number) || server.is_none());
                    let Some(server) = server else {
                        prop_assert!(!all().any(free));
                        continue;
                    };
                    prop_assert!(ready(server) && (table.at(server).role == Role::Active || !active));
                    prop_assert!(Some(server) != avoid || !other);
                    if tie == Tie::Free {
                        prop_assert!(free(server));
                    }
                    if table.take(server) {
                        // Slots are never above the limit of this table, whatever the one before allowed.
                        prop_assert!(table.served(server) <= table.limit(server));
                    } else {
                        table.changed(server);
                    }
                }
                // They leave, in no order of their coming.
                for at in all() {
                    while table.served(at) > 0 {
                        let _ = table.at(at).server.slots.release();
                        table.changed(at);
                    }
                }
            }
        }
    }
}
