//! One immutable view of a backend: its servers in order, with what may differ from one table to the next.
//!
//! A table is made whole, published by an atomic swap, and never changed. A worker borrows the current one for a
//! turn; an exchange keeps the one it began with. What lives on, the servers and the state of the algorithms, is shared
//! between tables by `Arc`. A plan is part of a table: who plans makes the next one.

mod choose;
mod native;
mod waiting;

use super::balancers::{Identified, Kind, SharedBalancers};
use super::load::ReportedLoad;
use super::server::Server;
use super::tiers::{self, TierView, Tiers, Verdict};
use crate::decide::balance::hash::Affinity;
use crate::decide::balance::ramp::Ramp;
use crate::decide::balance::{Algorithm, SERVERS_MAX, WEIGHT_MAX};
use crate::decide::limit;
use crate::policy::{BackendId, Draw, Live, Measure, Plan, Reading, ServerId, ServerIndex, Table, WorkerId};
use crate::sync::Arc;
pub use choose::{Balanced, hashed};
use native::Native;
use std::time::Duration;
pub use waiting::{SERVED_MAX, Waiting};
use xxhash_rust::xxh3::xxh3_64;

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
    /// Who takes new balanced requests (LB-2), by server.
    balanced: Box<[bool]>,
    /// Places by identity, in its order.
    places: Box<[(ServerId, ServerIndex)]>,
    native: Native,
    /// The plan, if there is one.
    tiers: Option<Box<Tiers>>,
    /// Of all tables of the backend.
    shared: Arc<SharedBalancers>,
    /// The same: who waits for any server.
    waiting: Arc<waiting::Room<C>>,
    /// Below so many requests in the backend limits move with their number; 0 where none does.
    moves: u32,
    /// Whether every limit is what its entry says: none moves, nobody is in a slow start.
    limits_stand: bool,
}

/// One server in one table.
#[derive(Debug)]
pub struct Entry<C> {
    /// What is the same in every table.
    pub server: Arc<Server<C>>,
    /// The user's weight, 0…256 (LB-1). 0 drains it.
    pub weight: u16,
    /// The weight of the file, where another one was set at run time; a map-based hash goes by it (LB-41).
    pub configured_weight: Option<u16>,
    /// What the operator wants of it.
    pub state: Admin,
    /// The most streams that may hold a slot; `u32::MAX` for no limit.
    pub limit: u32,
    /// What becomes of requests beyond that.
    pub queueing: Queueing,
    /// Whether an idle connection counts among equals (`prefer-idle`).
    pub prefer_idle: bool,
    /// When it takes its turn (LB-2).
    pub role: Role,
    /// How far it is in a slow start (LB-60).
    pub ramp: Ramp,
    /// A number of its own, from its name or its address: where it stands for a hash (LB-42).
    pub key: u64,
    /// What it reports about its load, where the backend says that it may.
    pub load: Option<Arc<ReportedLoad>>,
}

impl<C> Entry<C> {
    /// A server with weight 1 that takes requests, without limits; its number for a hash comes from its name.
    pub fn new(server: Arc<Server<C>>) -> Self {
        Entry {
            weight: 1,
            configured_weight: None,
            state: Admin::Ready,
            limit: u32::MAX,
            queueing: Queueing::default(),
            prefer_idle: false,
            role: Role::Active,
            ramp: Ramp::FULL,
            key: xxh3_64(server.name.as_bytes()),
            load: None,
            server,
        }
    }
}

/// When a server takes balanced requests (LB-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Always.
    Active,
    /// Only when no active one can, and of several the first (`backup`).
    Backup,
    /// Only when no active one can, and all such together (`allbackups`).
    JointBackup,
}

impl<C> Clone for Entry<C> {
    fn clone(&self) -> Self {
        Entry {
            server: self.server.clone(),
            load: self.load.clone(),
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

/// Who was chosen, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Nobody: no server can take a request now ([`Source::Native`]), or a full tier of the plan makes it wait.
    pub server: Option<ServerIndex>,
    /// Who decided that.
    pub source: Source,
    /// What becomes of the request if that server is full.
    pub tie: Tie,
}

/// Whether a request may go elsewhere than it was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Any server will do: it waits for whichever is free first.
    Free,
    /// This one or none: it waits in the server's own queue.
    Server,
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
        let heir = Heir {
            id,
            name: name.into(),
            generation: 1,
            shared: Arc::default(),
            waiting: Arc::default(),
        };
        Self::new(heir, algorithm, entries, None, None)
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
        self.pick_for(None, avoid, draw)
    }

    /// The same for a request whose hash is `number`, if it has one: for an algorithm that hashes.
    #[inline]
    pub fn pick_for(&self, number: Option<u64>, avoid: Option<ServerIndex>, draw: &mut impl Draw) -> Choice {
        let verdict = match &self.tiers {
            None => Verdict::Pass,
            Some(tiers) => tiers.pick(self, &self.shared, avoid, draw),
        };
        let server = match verdict {
            Verdict::Take(server) => Some(server),
            Verdict::Wait => None,
            Verdict::Pass => return self.pick_natively(number, avoid, draw),
        };
        Choice {
            server,
            source: Source::Plan,
            tie: Tie::Free,
        }
    }

    /// Chooses as if there were no plan. The same duties.
    pub fn pick_natively(
        &self,
        number: Option<u64>,
        avoid: Option<ServerIndex>,
        draw: &mut impl Draw,
    ) -> Choice {
        let (server, tie) = self.native.pick(self, number, avoid, draw);
        Choice {
            server,
            source: Source::Native,
            tie,
        }
    }

    /// Whether the algorithm ties a request with that hash, or without one, to its server: then it does not join those
    /// who wait for any.
    pub fn ties(&self, number: Option<u64>) -> bool {
        match self.native.algorithm {
            Algorithm::Sticky => true,
            // With this affinity a full server is passed over, and all full means that any will do.
            Algorithm::Hash(hash) => number.is_some() && hash.affinity != Affinity::Maxconn,
            Algorithm::Random(_) | Algorithm::RoundRobin | Algorithm::LeastConn | Algorithm::First => false,
        }
    }

    /// Whether a server may have a request that names it: it is not in maintenance. Unlike a balanced request, one that
    /// is tied to a server goes there although it drains (AC-42).
    pub fn takes_tied(&self, server: ServerIndex) -> bool {
        self.at(server).state != Admin::Maint
    }

    /// A request has left that server, or was refused its slot; after the slot was given back.
    #[inline]
    pub fn changed(&self, server: ServerIndex) {
        let ordered = match &self.tiers {
            None => self.native.has_order(),
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
        let at = self.places.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.places[at].1)
    }

    /// The configured algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.native.algorithm
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
        let heir = Heir {
            id: self.id,
            name: self.name.clone(),
            generation: self.generation + 1,
            shared: self.shared.clone(),
            waiting: self.waiting.clone(),
        };
        Self::new(heir, algorithm, entries, plan, Some(&self.native))
    }

    fn new(
        heir: Heir<C>,
        algorithm: Algorithm,
        entries: Vec<Entry<C>>,
        plan: Option<Plan>,
        former: Option<&Native>,
    ) -> Self {
        debug_assert!(
            entries.len() <= SERVERS_MAX,
            "the configuration is bounded (LB-13)"
        );
        debug_assert!(
            entries.iter().all(|entry| entry.weight <= WEIGHT_MAX),
            "the configuration is bounded (LB-1)"
        );
        let balanced = balanced(&entries);
        let mut places: Vec<_> = entries
            .iter()
            .map(|entry| entry.server.id)
            .zip((0..).map(ServerIndex))
            .collect();
        places.sort_unstable();
        let tiers = plan.map(|plan| Box::new(Tiers::new(plan, &entries, &balanced)));
        let moving = |entry: &&Entry<C>| !limit::is_fixed(entry.queueing.minconn, entry.limit);
        let moves = entries.iter().filter(moving).map(|entry| entry.queueing.fullconn);
        let table = BackendTable {
            id: heir.id,
            name: heir.name,
            generation: heir.generation,
            moves: moves.max().unwrap_or(0),
            limits_stand: !entries
                .iter()
                .any(|entry| moving(&entry) || !entry.ramp.is_full()),
            native: Native::new(algorithm, &entries, &balanced, former),
            entries: entries.into(),
            balanced: balanced.into(),
            places: places.into(),
            tiers,
            shared: heir.shared,
            waiting: heir.waiting,
        };
        if table.has_order() {
            table.shared.announce(table.generation);
        }
        table
    }

    fn has_order(&self) -> bool {
        match &self.tiers {
            None => self.native.has_order(),
            Some(tiers) => tiers.has_order(),
        }
    }
}

/// What all tables of a backend have in common, and which one this is.
struct Heir<C> {
    id: BackendId,
    name: Box<str>,
    generation: u64,
    shared: Arc<SharedBalancers>,
    waiting: Arc<waiting::Room<C>>,
}

/// Who takes new balanced requests (LB-2): those that are ready and have a weight; if no active one is, the first
/// backup, or all of them.
fn balanced<C>(entries: &[Entry<C>]) -> Vec<bool> {
    let ready = |entry: &Entry<C>| entry.state == Admin::Ready && entry.weight > 0;
    let any = |role: Role| entries.iter().any(|entry| ready(entry) && entry.role == role);
    let turn = [Role::Active, Role::JointBackup]
        .into_iter()
        .find(|role| any(*role));
    match turn {
        Some(role) => entries
            .iter()
            .map(|entry| ready(entry) && entry.role == role)
            .collect(),
        None => {
            let first = entries.iter().position(ready);
            (0..entries.len()).map(|at| Some(at) == first).collect()
        }
    }
}

impl<C> Entry<C> {
    /// Takes up what it reported about its load in a response, where that is looked for.
    pub fn reported(&self, worker: WorkerId, report: &[u8], now: Duration) {
        let Some(load) = &self.load else { return };
        let statistics = self.server.statistics.of(worker);
        statistics.load_reports.count();
        if load.take_up(report, now).is_err() {
            statistics.load_reports_malformed.count();
        }
    }

    fn effective_weight(&self) -> u32 {
        self.ramp.weight(self.weight)
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
    fn find(&self, measure: &Measure) -> Option<Reading> {
        match measure {
            Measure::SafeIdle => Some(Reading::SafeIdle),
            Measure::Window(windowed) => Some(Reading::Window(*windowed)),
            Measure::Report(name) => {
                let load = self.entries.first()?.load.as_ref()?;
                let at = load.wanted().names.binary_search(name).ok()?;
                Some(Reading::Report(at as u16))
            }
        }
    }
    fn measure(&self, server: ServerIndex, reading: Reading, now: Duration) -> Option<u32> {
        let entry = self.at(server);
        match reading {
            Reading::SafeIdle => Some(entry.server.pool.safe()),
            Reading::Window(windowed) => entry.server.window.read(windowed),
            Reading::Report(at) => entry.load.as_ref()?.value(at.into(), now),
        }
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
        self.balanced[server.at()]
    }
    fn served(&self, server: ServerIndex) -> u32 {
        self.at(server).server.slots.served()
    }
    fn waiting(&self, server: ServerIndex) -> u32 {
        self.at(server).server.slots.waiting()
    }
    fn limit(&self, server: ServerIndex) -> u32 {
        let Entry {
            limit,
            queueing,
            ramp,
            ..
        } = self.at(server);
        if self.limits_stand {
            return *limit;
        }
        let current = self.waiting.current();
        limit::limit(
            queueing.minconn,
            *limit,
            queueing.fullconn,
            current,
            ramp.percent(),
        )
    }
    fn queue_max(&self, server: ServerIndex) -> Option<u32> {
        self.at(server).queueing.queue_max
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
            weight,
            ..Entry::new(server.clone())
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
