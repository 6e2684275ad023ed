//! The state of the algorithms that have one, of a backend and of each tier of its plan, behind one lock per backend.
//!
//! What `sticky` keeps is one word beside the lock. The lock is held for one pick or one move, never together with another lock. The state survives a change of the
//! table: the first pick with a newer table synchronises it by server id (LB-14), under the lock, once. Whoever still
//! holds an older table, for the rest of a turn or of an exchange, cannot turn the state back; such a pick is answered
//! by a scan of its own table.
//!
//! An order of loads has to hear of everybody who leaves, also of those who came with a table that had no order. So the
//! newest table with one is known to all (`ordered`), and a leave looks there after it has given its slot back. Both
//! sides are sequentially consistent, as are the changes of [`super::slots`]: a table makes itself known, then loads
//! are read; a slot is given back, then it is looked whether there is such a table. One of the two sees the other.

use super::table::BackendTable;
use crate::decide::balance::hash::Otherwise;
use crate::decide::balance::leastconn::LeastConn;
use crate::decide::balance::roundrobin::RoundRobin;
use crate::decide::balance::{self, Algorithm, sticky};
use crate::policy::{Selector, ServerId, ServerIndex, Table};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// A table that can say which one it is, and whom it names.
pub trait Identified: Table {
    /// Grows with every table of its backend; the first is 1.
    fn generation(&self) -> u64;
    /// The identity of a server.
    fn id(&self, server: ServerIndex) -> ServerId;
}

/// The rotations and orders of loads of one backend, for its life.
#[derive(Debug, Default)]
pub(super) struct SharedBalancers {
    /// Generation of the newest table with an order of loads; 0 without one.
    ordered: AtomicU64,
    /// The server that `sticky` keeps, and since which table; 0 before the first pick.
    kept: AtomicU64,
    state: Mutex<State>,
}

/// An algorithm with state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    RoundRobin,
    LeastConn,
}

/// Whose state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// That of the configured algorithm.
    Native,
    /// That of a tier of the plan.
    Tier(u8),
}

#[derive(Debug, Default)]
struct State {
    /// Generation of the table that the state is about; 0 before the first.
    generation: u64,
    native: Option<Order>,
    tiers: Vec<Option<Order>>,
}

#[derive(Debug)]
enum Order {
    RoundRobin(RoundRobin),
    LeastConn(LeastConn),
}

impl SharedBalancers {
    /// Makes a table with an order of loads known, before anybody picks with it.
    pub(super) fn announce(&self, generation: u64) {
        self.ordered.fetch_max(generation, Ordering::SeqCst);
    }

    /// Whether a table that is newer than `generation` has an order of loads. Ask after the slot was given back.
    pub(super) fn ordered_since(&self, generation: u64) -> bool {
        self.ordered.load(Ordering::SeqCst) > generation
    }

    /// Chooses a server of `view`, which is what `place` sees of the table.
    pub(super) fn pick<C>(
        &self,
        table: &BackendTable<C>,
        place: Place,
        view: &impl Table,
        avoid: Option<ServerIndex>,
    ) -> Option<ServerIndex> {
        let mut state = self.state.lock();
        state.follow(table);
        if state.generation > table.generation {
            drop(state);
            return balance::least_loaded(view, avoid);
        }
        let order = match place {
            Place::Native => state.native.as_mut(),
            Place::Tier(at) => state.tiers.get_mut(usize::from(at)).and_then(Option::as_mut),
        };
        match order? {
            Order::RoundRobin(rotation) => rotation.pick(view, avoid),
            Order::LeastConn(least) => least.pick(view, avoid),
        }
    }

    /// The server that everybody goes to (LB-50). No lock: whoever finds it gone names the next, and the first to do so
    /// decides. Who holds an older table than the one that it was named with follows it, or chooses for itself alone.
    pub(super) fn pick_kept<C>(
        &self,
        table: &BackendTable<C>,
        avoid: Option<ServerIndex>,
    ) -> Option<ServerIndex> {
        let mut word = self.kept.load(Ordering::Acquire);
        loop {
            let (since, id) = ((word >> 32) as u32, word as u32);
            let kept = (word != 0).then(|| table.find(ServerId(id))).flatten();
            let pick = sticky::pick(table, kept, avoid)?;
            let newer = table.generation as u32;
            if kept == Some(pick.kept) || since > newer {
                return Some(pick.server);
            }
            let named = u64::from(newer) << 32 | u64::from(table.id(pick.kept).0);
            match self
                .kept
                .compare_exchange(word, named, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some(pick.server),
                Err(now) => word = now,
            }
        }
    }

    /// A request has left that server, or was refused its slot: where does it stand now (LB-22)? The load is read
    /// under the lock, so that the last of several who tell tells the latest.
    pub(super) fn changed<C>(&self, table: &BackendTable<C>, server: ServerIndex) {
        let mut state = self.state.lock();
        state.follow(table);
        let newer = state.generation > table.generation;
        let mut place = (!newer).then_some(server);
        let State { native, tiers, .. } = &mut *state;
        for order in std::iter::once(native).chain(tiers) {
            let Some(Order::LeastConn(least)) = order else {
                continue;
            };
            // All orders are about one table: the place in one is that in all.
            place = place.or_else(|| least.find(table.id(server)));
            let Some(place) = place else { return };
            least.changed(place, balance::load(table, server));
        }
    }
}

impl State {
    /// Brings the state to a table that is newer than it. What has no successor of its kind is forgotten.
    fn follow<C>(&mut self, table: &BackendTable<C>) {
        if self.generation >= table.generation {
            return;
        }
        follow(&mut self.native, table.kind(), table);
        self.tiers.resize_with(table.tiers(), || None);
        for (order, at) in self.tiers.iter_mut().zip(0..) {
            let tier = table.tier(at);
            follow(order, tier.kind(), &tier);
        }
        self.generation = table.generation;
    }
}

fn follow(order: &mut Option<Order>, kind: Option<Kind>, table: &impl Identified) {
    if order.as_ref().map(Order::kind) != kind {
        *order = kind.map(Order::of);
    }
    match order {
        Some(Order::RoundRobin(rotation)) => rotation.sync(table, |server| table.id(server)),
        Some(Order::LeastConn(least)) => least.sync(table, |server| table.id(server)),
        None => {}
    }
}

impl Order {
    fn of(kind: Kind) -> Order {
        match kind {
            Kind::RoundRobin => Order::RoundRobin(RoundRobin::default()),
            Kind::LeastConn => Order::LeastConn(LeastConn::default()),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Order::RoundRobin(_) => Kind::RoundRobin,
            Order::LeastConn(_) => Kind::LeastConn,
        }
    }
}

impl Kind {
    pub(super) fn of_algorithm(algorithm: Algorithm) -> Option<Kind> {
        match algorithm {
            Algorithm::RoundRobin => Some(Kind::RoundRobin),
            Algorithm::LeastConn => Some(Kind::LeastConn),
            // The order of loads beside a hash would not hear of the requests that the hash places.
            Algorithm::Hash(hash) if hash.otherwise == Otherwise::RoundRobin => Some(Kind::RoundRobin),
            Algorithm::Random(_) | Algorithm::First | Algorithm::Sticky | Algorithm::Hash(_) => None,
        }
    }

    pub(super) fn of_selector(selector: Selector) -> Option<Kind> {
        match selector {
            Selector::Random => None,
            Selector::RoundRobin => Some(Kind::RoundRobin),
            Selector::LeastConn => Some(Kind::LeastConn),
        }
    }
}
