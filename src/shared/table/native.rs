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
                            Mapping::Map => u32::from(entry.weight),
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
            (Algorithm::Hash(_), Some(hashed), Some(number)) => {
                let picked = hashed.pick(number, table, avoid);
                (picked, picked.map_or(Tie::Free, |_| Tie::Server))
            }
            (Algorithm::Hash(_), ..) => (self.pick_without_key(table, avoid, draw), Tie::Free),
            (Algorithm::Sticky, ..) => (table.shared.pick_kept(table, avoid), Tie::Server),
            (Algorithm::LeastConn, ..) => {
                let picked = self.pick_without_key(table, avoid, draw);
                let waits = |server: &ServerIndex| table.queue_max(*server) > 0 && table.saturated(*server);
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
