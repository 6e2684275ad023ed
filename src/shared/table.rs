//! One immutable view of a backend: its servers in order, with what may differ from one table to the next.
//!
//! A table is made whole, published by an atomic swap, and never changed. A worker borrows the current one for a
//! turn; an exchange keeps the one it began with. What lives on, the servers and the state of the algorithms, is shared
//! between tables by `Arc`. A plan is part of a table: who plans makes the next one.

use super::balancers::{Identified, Kind, Place, SharedBalancers};
use super::server::Server;
use super::tiers::{self, TierView, Tiers, Verdict};
use crate::decide::balance::random::Random;
use crate::decide::balance::{Algorithm, SERVERS_MAX, WEIGHT_MAX, WEIGHT_SCALE, servers};
use crate::decide::limit;
use crate::policy::{BackendId, Draw, Live, Plan, ServerId, ServerIndex, Table};
use crate::sync::Arc;

mod waiting;

pub use waiting::{SERVED_MAX, Waiting};

/// The servers of a backend at one moment. `C` is a connection to one of them.
#[derive(Debug)]
pub struct BackendTable<C> {
    /// The backend's identity.
    pub id: BackendId,
    /// Its name.
    pub name: Box<str>,
    /// Grows by one with every table of this backend; the first is 1.
    pub generation: u64,
    /// The servers, in the order of the configuration.
    pub entries: Box<[Entry<C>]>,
    native: Native,
    /// The plan, if there is one.
    tiers: Option<Box<Tiers>>,
    /// Of all tables of the backend.
    shared: Arc<SharedBalancers>,
    /// The same: who waits for any server.
    waiting: Arc<waiting::Room<C>>,
    /// Below so many requests in the backend limits move with their number; 0 where none does.
    moves: u32,
}

/// One server in one table.
#[derive(Debug)]
pub struct Entry<C> {
    /// What is the same in every table.
    pub server: Arc<Server<C>>,
    /// The user's weight, 0…256 (LB-1). 0 drains it.
    pub weight: u16,
    /// What the operator wants of it.
    pub state: Admin,
    /// The most streams that may hold a slot; `u32::MAX` for no limit.
    pub limit: u32,
    /// What becomes of requests beyond that.
    pub queueing: Queueing,
    /// Whether an idle connection counts among equals (`prefer-idle`).
    pub prefer_idle: bool,
}

impl<C> Clone for Entry<C> {
    fn clone(&self) -> Self {
        Entry {
            server: self.server.clone(),
            ..*self
        }
    }
}

/// How a server's limit moves, and how many may wait for it. The default: it stands still, and any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queueing {
    /// Where the limit begins (`minconn`, Q-4); 0 where it stands still.
    pub minconn: u32,
    /// Requests in the backend from which on the limit is the whole one (`fullconn`).
    pub fullconn: u32,
    /// The most that may wait for this server and no other (`maxqueue`, Q-5); `None` for any number.
    pub queue_max: Option<u32>,
}

/// What the operator wants of a server (`set server B/S state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin {
    /// It takes requests.
    Ready,
    /// It takes no new balanced requests and finishes what it has.
    Drain,
    /// The same, and its idle connections are closed (POOL-52).
    Maint,
}

impl Admin {
    /// Its word in commands and reports.
    pub fn word(self) -> &'static str {
        match self {
            Admin::Ready => "ready",
            Admin::Drain => "drain",
            Admin::Maint => "maint",
        }
    }
}

#[derive(Debug)]
enum Native {
    /// Its ring is this table's.
    Random(Random),
    /// Their state is the backend's.
    RoundRobin,
    LeastConn,
}

/// Who was chosen, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Nobody: no server can take a request now ([`Source::Native`]), or a full tier of the plan makes it wait.
    pub server: Option<ServerIndex>,
    /// Who decided that.
    pub source: Source,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tier of the plan.
    Plan,
    /// The configured algorithm.
    Native,
}

impl<C> BackendTable<C> {
    /// The first table of a backend.
    pub fn first(id: BackendId, name: &str, algorithm: Algorithm, entries: Vec<Entry<C>>) -> Self {
        Self::new(id, name.into(), 1, algorithm, entries, None, Arc::default())
    }

    /// The table that follows this one. The state of the algorithm goes on if the algorithm does (LB-14). A plan goes
    /// on for the servers that are still there, with its state.
    pub fn next(&self, algorithm: Algorithm, entries: Vec<Entry<C>>) -> Self {
        let plan = self.tiers.as_ref().map(|tiers| tiers.carried(self, &entries));
        self.follow(algorithm, entries, plan)
    }

    /// The table that follows this one, with another plan, which was made for this table and checked for it
    /// ([`Plan::check`]). Tiers go on where a tier of that number and selector was.
    pub fn planned(&self, plan: &Plan) -> Self {
        debug_assert_eq!(plan.check(self.entries.len()), Ok(()), "who plans has checked");
        self.follow(self.algorithm(), self.entries.to_vec(), Some(plan.clone()))
    }

    /// The table that follows this one, without a plan.
    pub fn unplanned(&self) -> Self {
        self.follow(self.algorithm(), self.entries.to_vec(), None)
    }

    /// The plan in the indices of this table. Its lifetime is for the publisher to watch: this table does not end.
    pub fn plan(&self) -> Option<&Plan> {
        self.tiers.as_ref().map(|tiers| &tiers.plan)
    }

    /// Chooses a server for a request; the caller takes the slot, and tells [`Self::changed`] if it cannot.
    #[inline]
    pub fn pick(&self, avoid: Option<ServerIndex>, draw: &mut impl Draw) -> Choice {
        let verdict = match &self.tiers {
            None => Verdict::Pass,
            Some(tiers) => tiers.pick(self, &self.shared, avoid, draw),
        };
        let (server, source) = match verdict {
            Verdict::Take(server) => (Some(server), Source::Plan),
            Verdict::Wait => (None, Source::Plan),
            Verdict::Pass => (self.pick_natively(avoid, draw), Source::Native),
        };
        Choice { server, source }
    }

    /// Chooses as if there were no plan. The same duties.
    pub fn pick_natively(&self, avoid: Option<ServerIndex>, draw: &mut impl Draw) -> Option<ServerIndex> {
        match &self.native {
            Native::Random(random) => random.pick(self, avoid, draw),
            Native::LeastConn if self.tiers.is_some() => tiers::least_loaded_from_anywhere(self, avoid, draw),
            Native::RoundRobin | Native::LeastConn => self.shared.pick(self, Place::Native, self, avoid),
        }
    }

    /// A request has left that server, or was refused its slot; after the slot was given back.
    #[inline]
    pub fn changed(&self, server: ServerIndex) {
        let ordered = match &self.tiers {
            None => matches!(self.native, Native::LeastConn),
            Some(tiers) => tiers.orders(server),
        };
        if ordered || self.shared.ordered_since(self.generation) {
            self.shared.changed(self, server);
        }
    }

    /// A server of this table.
    pub fn at(&self, server: ServerIndex) -> &Entry<C> {
        &self.entries[server.at()]
    }

    /// The place of a server, if it is in this table.
    pub fn find(&self, id: ServerId) -> Option<ServerIndex> {
        servers(self).find(|&server| self.id(server) == id)
    }

    /// The configured algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match &self.native {
            Native::Random(random) => Algorithm::Random(random.draws()),
            Native::RoundRobin => Algorithm::RoundRobin,
            Native::LeastConn => Algorithm::LeastConn,
        }
    }

    /// The state that the configured algorithm needs.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self.tiers {
            None => Kind::of_algorithm(self.algorithm()),
            Some(_) => tiers::kind_beside(self.algorithm()),
        }
    }

    /// What a tier of the plan sees. There must be one of that number.
    pub(super) fn tier(&self, at: u8) -> TierView<'_, C> {
        let tiers = self.tiers.as_ref().expect("who asks for a tier has counted them");
        tiers.view(self, at)
    }

    /// Number of tiers; 0 without a plan.
    pub(super) fn tiers(&self) -> usize {
        self.tiers.as_ref().map_or(0, |tiers| tiers.len())
    }

    fn follow(&self, algorithm: Algorithm, entries: Vec<Entry<C>>, plan: Option<Plan>) -> Self {
        let (name, generation) = (self.name.clone(), self.generation + 1);
        let mut next = Self::new(
            self.id,
            name,
            generation,
            algorithm,
            entries,
            plan,
            self.shared.clone(),
        );
        next.waiting = self.waiting.clone();
        next
    }

    fn new(
        id: BackendId,
        name: Box<str>,
        generation: u64,
        algorithm: Algorithm,
        entries: Vec<Entry<C>>,
        plan: Option<Plan>,
        shared: Arc<SharedBalancers>,
    ) -> Self {
        debug_assert!(
            entries.len() <= SERVERS_MAX,
            "the configuration is bounded (LB-13)"
        );
        debug_assert!(
            entries.iter().all(|entry| entry.weight <= WEIGHT_MAX),
            "the configuration is bounded (LB-1)"
        );
        let native = match algorithm {
            Algorithm::Random(draws) => {
                Native::Random(Random::new(draws, entries.iter().map(Entry::balanced_weight)))
            }
            Algorithm::RoundRobin => Native::RoundRobin,
            Algorithm::LeastConn => Native::LeastConn,
        };
        let tiers = plan.map(|plan| Box::new(Tiers::new(plan, &entries)));
        let moving = |entry: &&Entry<C>| !limit::is_fixed(entry.queueing.minconn, entry.limit);
        let moves = entries.iter().filter(moving).map(|entry| entry.queueing.fullconn);
        let table = BackendTable {
            id,
            name,
            generation,
            moves: moves.max().unwrap_or(0),
            entries: entries.into(),
            native,
            tiers,
            shared,
            waiting: Arc::default(),
        };
        if table.has_order() {
            table.shared.announce(generation);
        }
        table
    }

    fn has_order(&self) -> bool {
        match &self.tiers {
            None => matches!(self.native, Native::LeastConn),
            Some(tiers) => tiers.has_order(),
        }
    }
}

impl<C> Entry<C> {
    fn effective_weight(&self) -> u32 {
        u32::from(self.weight) * WEIGHT_SCALE
    }

    /// Whether a new balanced request may go there (LB-2).
    pub(super) fn takes_requests(&self) -> bool {
        self.balanced_weight() > 0
    }

    /// 0 where no new balanced request may go (LB-2).
    fn balanced_weight(&self) -> u32 {
        if self.state == Admin::Ready {
            self.effective_weight()
        } else {
            0
        }
    }
}

impl<C: Send> Live for BackendTable<C> {
    fn in_flight(&self, server: ServerIndex) -> u32 {
        self.served(server)
    }
    fn queued(&self, server: ServerIndex) -> u32 {
        self.waiting(server)
    }
    fn idle(&self, server: ServerIndex) -> u32 {
        self.at(server).server.pool.need.read().idle
    }
}

impl<C> Table for BackendTable<C> {
    fn len(&self) -> usize {
        self.entries.len()
    }
    fn weight(&self, server: ServerIndex) -> u32 {
        self.at(server).effective_weight()
    }
    fn usable(&self, server: ServerIndex) -> bool {
        self.at(server).takes_requests()
    }
    fn served(&self, server: ServerIndex) -> u32 {
        self.at(server).server.slots.served()
    }
    fn waiting(&self, server: ServerIndex) -> u32 {
        self.at(server).server.slots.waiting()
    }
    fn limit(&self, server: ServerIndex) -> u32 {
        let Entry { limit, queueing, .. } = self.at(server);
        if limit::is_fixed(queueing.minconn, *limit) {
            return *limit;
        }
        let current = self.waiting.current();
        limit::limit(queueing.minconn, *limit, queueing.fullconn, current, 100)
    }
    fn is_warm(&self, server: ServerIndex) -> bool {
        let entry = self.at(server);
        !entry.prefer_idle || entry.server.pool.need.read().idle > 0
    }
}

impl<C> Identified for BackendTable<C> {
    fn generation(&self) -> u64 {
        self.generation
    }
    fn id(&self, server: ServerIndex) -> ServerId {
        self.at(server).server.id
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use crate::decide::balance::column::Seeded;

    fn server(id: u32) -> Arc<Server<()>> {
        Arc::new(Server::new(ServerId(id), "app", &format!("s{id}"), 1))
    }

    fn entry(server: &Arc<Server<()>>, weight: u16) -> Entry<()> {
        Entry {
            server: server.clone(),
            weight,
            state: Admin::Ready,
            limit: u32::MAX,
            queueing: Queueing::default(),
            prefer_idle: false,
        }
    }

    fn entries(servers: &[Arc<Server<()>>]) -> Vec<Entry<()>> {
        servers.iter().map(|server| entry(server, 1)).collect()
    }

    /// Ids of the servers that are picked; each holds its slot.
    fn picks(table: &BackendTable<()>, count: usize) -> Vec<u32> {
        let pick = |_| {
            let server = table.pick(None, &mut Seeded(1)).server.unwrap();
            assert!(table.at(server).server.slots.take(table.limit(server)));
            table.id(server).0
        };
        (0..count).map(pick).collect()
    }

    fn leave(table: &BackendTable<()>, id: u32) {
        let server = table.find(ServerId(id)).unwrap();
        let _ = table.at(server).server.slots.release();
        table.changed(server);
    }

    #[test]
    fn weight_and_state_say_who_is_usable() {
        let servers = [server(0), server(1), server(2), server(3)];
        let mut list = entries(&servers);
        list[0].weight = 0;
        list[1].state = Admin::Drain;
        list[2].state = Admin::Maint;
        list[3].weight = 256;
        let table = BackendTable::first(BackendId(1), "app", Algorithm::Random(2), list);
        assert_eq!(
            [0, 1, 2, 3].map(|at| table.usable(ServerIndex(at))),
            [false, false, false, true]
        );
        assert_eq!(table.weight(ServerIndex(3)), 4096);
        assert_eq!(picks(&table, 5), [3; 5]);
        assert_eq!((table.served(ServerIndex(3)), table.find(ServerId(9))), (5, None));
    }

    #[test]
    fn a_rotation_goes_on_in_the_next_table() {
        let servers = [server(0), server(1), server(2)];
        let first = BackendTable::first(BackendId(1), "app", Algorithm::RoundRobin, entries(&servers));
        assert_eq!(picks(&first, 4), [0, 1, 2, 0]);
        let reversed = [&servers[2], &servers[1], &servers[0]].map(|server| entry(server, 1));
        let second = first.next(Algorithm::RoundRobin, reversed.into());
        assert_eq!((second.generation, picks(&second, 4)), (2, vec![1, 2, 0, 1]));
        let other = second.next(Algorithm::Random(3), entries(&servers));
        assert_eq!((other.generation, other.algorithm()), (3, Algorithm::Random(3)));
    }

    /// Who holds an older table gets a server of that table, and does not turn the state back.
    #[test]
    fn an_older_table_is_answered_from_itself() {
        let servers = [server(0), server(1), server(2)];
        let old = BackendTable::first(BackendId(1), "app", Algorithm::RoundRobin, entries(&servers));
        let new = old.next(Algorithm::RoundRobin, entries(&servers[1..]));
        assert_eq!(picks(&new, 1), [1]);
        assert_eq!(picks(&old, 1), [0], "the least loaded");
        assert_eq!(picks(&new, 2), [2, 1]);
    }

    /// A request that began with an older table leaves: the newer order of loads hears of it, by id.
    #[test]
    fn a_leave_with_an_older_table_is_not_lost() {
        let servers = [server(0), server(1), server(2)];
        let old = BackendTable::first(BackendId(1), "app", Algorithm::LeastConn, entries(&servers));
        assert_eq!(picks(&old, 3), [0, 1, 2]);
        let new = old.next(Algorithm::LeastConn, entries(&servers[1..]));
        assert_eq!(picks(&new, 2), [1, 2]);
        leave(&old, 2);
        leave(&old, 2);
        leave(&old, 0);
        assert_eq!(picks(&new, 1), [2], "idle again");
    }

    #[test]
    fn a_refused_slot_is_put_right() {
        let servers = [server(0), server(1)];
        let table = BackendTable::first(BackendId(1), "app", Algorithm::LeastConn, entries(&servers));
        let picked = table.pick(None, &mut Seeded(1)).server.unwrap();
        table.changed(picked);
        assert_eq!(picks(&table, 3), [1, 0, 1]);
    }
}
