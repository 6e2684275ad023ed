//! How a server is chosen: small algorithms, one file each, that read a [`Table`] and nothing else.
//!
//! | algorithm | state | a pick costs | clauses |
//! |---|---|---|---|
//! | [`random`] | none; a ring made with the table | N draws | LB-30 |
//! | [`roundrobin`] | positions | O(log n) and one more for each server passed over | LB-10…14 |
//! | [`leastconn`] | loads, in order | O(log n) and one more for each server passed over | LB-20…22 |
//! | [`first`] | none | one for each server that is full | LB-50 |
//! | [`sticky`] | the server that is kept | one look | LB-50 |
//! | [`hash`] | none; a ring or a table made with the table | O(log points) and one for each server passed over | LB-40…43 |
//!
//! Each is given the server to avoid, the one that just failed, and answers with it only if there is no other (LB-3).
//! *Nothing* means that no server can take a request now; whoever asked decides whether to wait. A server is
//! only named here; its slot is taken afterwards, and may be lost to somebody faster.
//!
//! Beside them: what of a request is hashed ([`key`]), and how a returning server comes to its full weight ([`ramp`]).

pub mod first;
pub mod hash;
pub mod key;
pub mod leastconn;
pub mod ramp;
pub mod random;
pub mod roundrobin;
pub mod sticky;
mod tournament;

use crate::policy::{ServerIndex, Table};

/// Which algorithm a backend uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The least loaded of so many draws, at least one.
    Random(u8),
    /// Smooth weighted rotation.
    RoundRobin,
    /// The fewest in flight per weight.
    LeastConn,
    /// The first with a free slot.
    First,
    /// One for everybody until it is gone.
    Sticky,
    /// By a hash of the request.
    Hash(hash::Hash),
}

impl Algorithm {
    /// Its word in the configuration and in reports.
    pub fn word(self) -> &'static str {
        match self {
            Algorithm::Random(_) => "random",
            Algorithm::RoundRobin => "roundrobin",
            Algorithm::LeastConn => "leastconn",
            Algorithm::First => "first",
            Algorithm::Sticky => "sticky",
            Algorithm::Hash(_) => "hash",
        }
    }

    /// The one that chooses for a request without a key: itself, or what stands beside a hash (`else`).
    pub fn without_key(self) -> Algorithm {
        match self {
            Algorithm::Hash(hash) => hash.otherwise.into(),
            other => other,
        }
    }
}

impl From<hash::Otherwise> for Algorithm {
    fn from(otherwise: hash::Otherwise) -> Algorithm {
        match otherwise {
            hash::Otherwise::Random(draws) => Algorithm::Random(draws),
            hash::Otherwise::RoundRobin => Algorithm::RoundRobin,
            hash::Otherwise::LeastConn => Algorithm::LeastConn,
            hash::Otherwise::First => Algorithm::First,
        }
    }
}

/// Steps of effective weight in one of the user's (LB-1), so that slow start and percentages have sixteen.
pub const WEIGHT_SCALE: u32 = 16;

/// The most servers in a table (LB-13).
pub const SERVERS_MAX: usize = 4095;

/// The user's largest weight (LB-1).
pub const WEIGHT_MAX: u16 = 256;

/// The order of least load (LB-20): 0 for an idle server whatever its weight, else what one more request would make
/// of its load per weight. `weight` is the effective one, above 0.
pub fn load_key(load: u32, weight: u32) -> u64 {
    if load == 0 {
        0
    } else {
        let scaled = (u64::from(load) + 1) * 4096;
        match u32::try_from(scaled) {
            // A division of 32 bits, where it is enough, takes a fraction of the time.
            Ok(scaled) => u64::from(scaled / weight),
            Err(_) => scaled / u64::from(weight),
        }
    }
}

/// Chooses without any state: the lowest [`load_key`], the first among equals. For a caller whose table is older than
/// the state of its backend's algorithm.
pub fn least_loaded(table: &impl Table, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
    least_loaded_from(table, ServerIndex(0), avoid)
}

/// The same, with `first` as the first among equals, and on from there.
pub fn least_loaded_from(
    table: &impl Table,
    first: ServerIndex,
    avoid: Option<ServerIndex>,
) -> Option<ServerIndex> {
    let free = |&server: &ServerIndex| table.usable(server) && !table.saturated(server);
    let order = |&server: &ServerIndex| {
        (
            Some(server) == avoid,
            load_key(load(table, server), table.weight(server)),
        )
    };
    let (before, after) = (servers(table).take(first.at()), servers(table).skip(first.at()));
    after.chain(before).filter(free).min_by_key(order)
}

/// All places of a table, usable or not.
pub fn servers(table: &impl Table) -> impl Iterator<Item = ServerIndex> {
    (0..table.len()).map(|at| ServerIndex(at as u16))
}

/// Streams that a server has now: served and waiting (LB-20).
pub fn load(table: &impl Table, server: ServerIndex) -> u32 {
    table.served(server).saturating_add(table.waiting(server))
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
pub(crate) mod column {
    //! A table for tests: columns that can be set freely.

    use super::{ServerIndex, Table, WEIGHT_SCALE};
    use crate::policy::{Draw, ServerId};

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Columns {
        pub(crate) ids: Vec<u32>,
        pub(crate) weights: Vec<u32>,
        pub(crate) usable: Vec<bool>,
        pub(crate) served: Vec<u32>,
        pub(crate) limits: Vec<u32>,
        pub(crate) waiting: Vec<u32>,
        pub(crate) queue_max: Vec<u32>,
    }

    impl Columns {
        /// Idle, unlimited servers with these user weights.
        pub(crate) fn of(weights: &[u32]) -> Self {
            Columns {
                ids: (0..weights.len() as u32).collect(),
                weights: weights.iter().map(|weight| weight * WEIGHT_SCALE).collect(),
                usable: vec![true; weights.len()],
                served: vec![0; weights.len()],
                limits: vec![u32::MAX; weights.len()],
                waiting: vec![0; weights.len()],
                queue_max: vec![0; weights.len()],
            }
        }

        pub(crate) fn id(&self) -> impl Fn(ServerIndex) -> ServerId + '_ {
            |server| ServerId(self.ids[server.at()])
        }
    }

    impl Table for Columns {
        fn len(&self) -> usize {
            self.weights.len()
        }
        fn weight(&self, server: ServerIndex) -> u32 {
            self.weights[server.at()]
        }
        fn usable(&self, server: ServerIndex) -> bool {
            self.usable[server.at()] && self.weights[server.at()] > 0
        }
        fn served(&self, server: ServerIndex) -> u32 {
            self.served[server.at()]
        }
        fn waiting(&self, server: ServerIndex) -> u32 {
            self.waiting[server.at()]
        }
        fn queue_max(&self, server: ServerIndex) -> Option<u32> {
            Some(self.queue_max[server.at()]).filter(|&most| most > 0)
        }
        fn limit(&self, server: ServerIndex) -> u32 {
            self.limits[server.at()]
        }
    }

    /// A seeded generator (SplitMix64), so that one seed is one run.
    pub(crate) struct Seeded(pub(crate) u64);

    impl Draw for Seeded {
        fn draw(&mut self, bound: u32) -> u32 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((((z ^ (z >> 31)) >> 32) * u64::from(bound)) >> 32) as u32
        }
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::column::Columns;
    use super::*;

    /// V9 of the specification.
    #[test]
    fn v9() {
        let vectors = [
            (0, 1, 0),
            (1, 1, 512),
            (2, 1, 768),
            (1, 2, 256),
            (3, 2, 512),
            (10, 10, 281),
            (10, 256, 11),
        ];
        for (in_flight, weight, key) in vectors {
            assert_eq!(
                load_key(in_flight, weight * WEIGHT_SCALE),
                key,
                "in flight {in_flight} weight {weight}"
            );
        }
    }

    #[test]
    fn least_loaded_prefers_others_to_the_avoided() {
        let mut table = Columns::of(&[1, 1, 4]);
        table.served = vec![0, 3, 3];
        assert_eq!(least_loaded(&table, None), Some(ServerIndex(0)));
        assert_eq!(least_loaded(&table, Some(ServerIndex(0))), Some(ServerIndex(2)));
        table.usable = vec![true, false, false];
        assert_eq!(least_loaded(&table, Some(ServerIndex(0))), Some(ServerIndex(0)));
        let equals = Columns::of(&[1, 1, 1]);
        let from = |first| least_loaded_from(&equals, ServerIndex(first), Some(ServerIndex(2)));
        assert_eq!(
            [from(0), from(1), from(2)],
            [0, 1, 0].map(|at| Some(ServerIndex(at)))
        );
        table.limits[0] = 0;
        assert_eq!(least_loaded(&table, None), None);
    }
}
