//! Identities: names to ids, and what hangs on an id for the life of the process.
//!
//! A backend is its name; a server is (backend, name); a listener is its name. Slots, pools, statistics and balancer
//! state stay with the id over every reload. What a reload builds is a generation: a view of these with the settings
//! of the day. Ids of what is gone are kept for its return: names come back.

use super::loads::Loads;
use super::policies::{Kind, Policies};
use super::ramps::Ramps;
use super::settings;
use crate::config::{Config, model};
use crate::decide::reuse::{Figures, Wishes};
use crate::decide::settings::BackendSettings;
use crate::net::Address;
use crate::policy::{BackendId, Columns, Live, Plan, ServerId, ServerIndex, Shown, State, Table};
use crate::shared::generation::{
    AttachedPolicy, BackendEntry, BackendPolicy, Generation, ListenerEntry, ListenerId, ShownTable,
};
use crate::shared::key::{KeySecret, Parts, PoolKey};
use crate::shared::server::Server;
use crate::shared::statistics::{BackendStatistics, ListenerStatistics, PerWorker};
use crate::shared::table::{Admin, BackendTable, Entry, Queueing};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Everything that has an identity. `C` is a connection to a server, `A` where one is opened.
pub(super) struct Registry<C, A> {
    workers: u16,
    secret: KeySecret,
    generation: u64,
    backends: BTreeMap<String, KnownBackend<C>>,
    listeners: BTreeMap<String, KnownListener>,
    servers: u32,
    /// What commands have changed: it survives a reload (CLI-4 apart: it is gone with the process).
    changed: BTreeMap<ServerId, Changed>,
    ramps: Ramps,
    addresses: PhantomData<A>,
}

struct KnownBackend<C> {
    id: BackendId,
    servers: BTreeMap<String, Arc<Server<C>>>,
    /// Its latest table, which the next one follows.
    table: Option<Arc<BackendTable<C>>>,
    statistics: Arc<PerWorker<BackendStatistics>>,
    /// Raised when the servers are others, or other than they were.
    servers_generation: u64,
    /// The plan at work, and the servers that its indices mean.
    plan: Option<(Plan, Vec<ServerId>)>,
    /// Whose plan the table has.
    planner: Option<Arc<AttachedPolicy>>,
    /// What a plan wants of the connections to its servers; empty without one.
    wishes: BTreeMap<ServerId, Wishes>,
    /// Smoothed latencies in µs, by name, as they were last shown.
    latencies: BTreeMap<String, i32>,
    /// The tag `zone` of each server, in the table's order.
    zones: Vec<String>,
    /// What its servers report.
    loads: Loads,
}

/// What an operator has decided about a server, instead of the configuration.
#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    state: Option<Admin>,
    weight: Option<u16>,
    maxconn: Option<u32>,
}

/// One such decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// What it shall be.
    State(Admin),
    /// 0…256 (LB-1).
    Weight(u16),
    /// At least 1.
    Maxconn(u32),
}

/// What the planner thread has found out about a backend.
pub(super) struct News {
    pub(super) backend: String,
    /// The servers that were shown, by [`Registry::servers_generation`]: of others the plan knows nothing.
    pub(super) shown: u64,
    /// A new plan, or none from now on; the outer `None` where nothing changes.
    pub(super) plan: Option<Option<Plan>>,
    /// What is wanted of connections from now on, nothing if empty; `None` where nothing changes.
    pub(super) wishes: Option<Vec<(ServerId, Wishes)>>,
    /// Smoothed latencies in µs, by server; −1 while unknown. `None` where nobody is to be shown them.
    pub(super) latencies: Option<BTreeMap<String, i32>>,
}

struct KnownListener {
    id: ListenerId,
    statistics: Arc<PerWorker<ListenerStatistics>>,
}

impl<C: Send, A: Clone + From<Address>> Registry<C, A>
where
    BackendTable<C>: Live + 'static,
{
    pub(super) fn new(workers: u16, secret: &KeySecret) -> Registry<C, A> {
        Registry {
            workers,
            secret: secret.clone(),
            generation: 0,
            backends: BTreeMap::new(),
            listeners: BTreeMap::new(),
            servers: 0,
            changed: BTreeMap::new(),
            ramps: Ramps::default(),
            addresses: PhantomData,
        }
    }

    /// The next generation, for a config that was checked.
    pub(super) fn build(&mut self, config: &Config, policies: &Policies) -> Generation<C, A> {
        self.generation += 1;
        let backends: Vec<_> = config
            .backends
            .iter()
            .map(|backend| self.backend(backend, config, policies))
            .collect();
        let entries: Vec<_> = config
            .listeners
            .iter()
            .map(|listen| self.listener(listen, config, policies))
            .collect();
        let mut listeners: Vec<Option<ListenerEntry>> = vec![None; self.listeners.len()];
        for (id, entry) in entries {
            listeners[usize::from(id.0)] = Some(entry);
        }
        Generation {
            number: self.generation,
            listeners: listeners.into_boxed_slice(),
            backends: backends.into_boxed_slice(),
        }
    }

    /// The generation after `former`, with what the planner thread found out.
    pub(super) fn with_news(&mut self, former: &Generation<C, A>, news: &[News]) -> Generation<C, A> {
        self.generation += 1;
        let mut backends = former.backends.clone();
        for entry in &mut backends {
            let name = &entry.table.name;
            let Some(known) = self.backends.get_mut(&**name) else {
                continue;
            };
            let about_it: Vec<&News> = news.iter().filter(|news| *news.backend == **name).collect();
            about_it.into_iter().for_each(|news| known.take_up(news, entry));
        }
        Generation {
            number: self.generation,
            listeners: former.listeners.clone(),
            backends,
        }
    }

    /// Rises when the servers of a backend are others, or other than they were; not with a plan.
    pub(super) fn servers_generation(&self, backend: &str) -> u64 {
        self.backends
            .get(backend)
            .map_or(0, |known| known.servers_generation)
    }

    /// Decides something about a server, for the generation that is built next. One that comes back from maintenance
    /// begins slowly, if its backend says so (LB-60).
    pub(super) fn decide(
        &mut self,
        backend: &str,
        server: &str,
        decision: Decision,
        slow_start: Option<Duration>,
        now: Instant,
    ) -> Result<(), String> {
        let known = self
            .backends
            .get(backend)
            .ok_or_else(|| format!("no backend {backend:?}"))?;
        let server = known
            .servers
            .get(server)
            .ok_or_else(|| format!("no server {server:?} in backend {backend:?}"))?;
        let changed = self.changed.entry(server.id).or_default();
        match decision {
            Decision::State(state) => {
                let former = changed.state.replace(state).unwrap_or(Admin::Ready);
                match (former, state, slow_start) {
                    (Admin::Maint, Admin::Ready | Admin::Drain, Some(whole)) => {
                        self.ramps.begin(server.id, whole, now);
                    }
                    (_, Admin::Maint, _) => self.ramps.end(server.id),
                    _ => {}
                }
            }
            Decision::Weight(weight) => changed.weight = Some(weight),
            Decision::Maxconn(maxconn) => changed.maxconn = Some(maxconn),
        }
        Ok(())
    }

    /// Slow starts, for who steps them.
    pub(super) fn ramps(&mut self) -> &mut Ramps {
        &mut self.ramps
    }

    /// The id of a listener that was part of a generation.
    pub(super) fn listener_id(&self, name: &str) -> Option<ListenerId> {
        self.listeners.get(name).map(|known| known.id)
    }

    fn backend(
        &mut self,
        backend: &model::Backend,
        config: &Config,
        policies: &Policies,
    ) -> BackendEntry<C, A> {
        let workers = self.workers;
        let next = BackendId(self.backends.len() as u32);
        let known = self
            .backends
            .entry(backend.name.clone())
            .or_insert_with(|| KnownBackend {
                id: next,
                servers: BTreeMap::new(),
                table: None,
                statistics: Arc::new(PerWorker::new(workers, BackendStatistics::default)),
                servers_generation: 0,
                plan: None,
                planner: None,
                wishes: BTreeMap::new(),
                latencies: BTreeMap::new(),
                zones: Vec::new(),
                loads: Loads::default(),
            });
        let at_backend = |policy| policies.at(&config.policy(policy).name, Kind::Backend, &backend.name);
        let attached = backend.policy.and_then(at_backend);
        let reuse_policy = backend.reuse_policy.and_then(at_backend);
        let queue_policy = backend.queue_policy.and_then(at_backend);
        let everybody = [&attached, &reuse_policy, &queue_policy];
        known
            .loads
            .want(backend.load_report, everybody.into_iter().flatten());
        let mut entries = Vec::with_capacity(backend.servers.len());
        for server in &backend.servers {
            let id = ServerId(self.servers);
            let object = known.servers.entry(server.name.clone()).or_insert_with(|| {
                self.servers += 1;
                Arc::new(Server::new(id, &backend.name, &server.name, self.workers))
            });
            let changed = self.changed.get(&object.id).copied().unwrap_or_default();
            let maxconn = changed.maxconn.or(server.limits.max);
            entries.push(Entry {
                weight: changed.weight.unwrap_or(server.weight),
                configured_weight: Some(server.weight),
                state: changed.state.unwrap_or(Admin::Ready),
                limit: maxconn.unwrap_or(u32::MAX),
                queueing: Queueing {
                    minconn: server.limits.min.unwrap_or(0),
                    fullconn: backend.fullconn,
                    queue_max: server.limits.queue,
                },
                prefer_idle: backend.pool.prefer_idle,
                role: settings::role(server, backend),
                ramp: self.ramps.of(object.id),
                key: settings::hash_key(server, &backend.balance),
                load: known.loads.of(object.id),
                ..Entry::new(object.clone())
            });
        }
        let algorithm = settings::algorithm(&backend.balance);
        let mut table = match &known.table {
            Some(former) => former.next(algorithm, entries),
            None => BackendTable::first(known.id, &backend.name, algorithm, entries),
        };
        let is_planner = |planner: &Arc<AttachedPolicy>| {
            let now = attached.as_ref();
            now.is_some_and(|attached| Arc::ptr_eq(attached, planner))
        };
        if !known.planner.as_ref().is_some_and(is_planner) {
            // The plan goes with its policy: nobody would watch its lifetime.
            (known.plan, known.planner) = (None, None);
            if table.plan().is_some() {
                table = table.unplanned();
            }
        }
        // A plan goes on over a change of states or settings, as long as its indices mean the same servers.
        if let Some((plan, servers)) = &known.plan
            && *servers == ids(&table)
        {
            table = table.planned(plan);
        }
        if !reuse_policy
            .as_ref()
            .is_some_and(|attached| attached.attachment.offers().reuse_plan)
        {
            known.wishes.clear();
        }
        let table = Arc::new(table);
        let settings = Arc::new(settings::backend(backend));
        let planned_figures = known.figures(&table, &settings);
        known.servers_generation += 1;
        known.table = Some(table.clone());
        known.zones = backend.servers.iter().map(zone).collect();
        let reads = |policy: &Arc<AttachedPolicy>| !policy.attachment.offers().measures.is_empty();
        let mut followers = reuse_policy.iter().chain(&queue_policy);
        let followed = followers.any(reads).then(|| known.shown(&table));
        let policy = attached.map(|attached| BackendPolicy {
            attached,
            shown: known.shown(&table),
        });
        let statistics = known.statistics.clone();
        BackendEntry {
            policy,
            reuse_policy,
            queue_policy,
            followed,
            planned_figures,
            statistics,
            table,
            settings,
            addresses: backend
                .servers
                .iter()
                .map(|server| server.address.clone().into())
                .collect(),
            keys: backend
                .servers
                .iter()
                .map(|server| self.key(&server.address, backend.pool.source))
                .collect(),
        }
    }

    /// Connections to one address are interchangeable, to two they are not: a server that moved starts afresh.
    fn key(&self, address: &Address, source: Option<IpAddr>) -> PoolKey {
        let text = address.to_string();
        PoolKey::new(
            &self.secret,
            &Parts {
                server: Some(text.as_bytes()),
                source,
                ..Parts::default()
            },
        )
    }

    fn listener(
        &mut self,
        listen: &model::Listen,
        config: &Config,
        policies: &Policies,
    ) -> (ListenerId, ListenerEntry) {
        let next = ListenerId(self.listeners.len() as u16);
        let workers = self.workers;
        let known = self
            .listeners
            .entry(listen.name.clone())
            .or_insert_with(|| KnownListener {
                id: next,
                statistics: Arc::new(PerWorker::new(workers, settings::listener_statistics)),
            });
        let entry = ListenerEntry {
            name: listen.name.as_str().into(),
            settings: Arc::new(settings::listener(listen)),
            statistics: known.statistics.clone(),
            policy: listen
                .route_policy
                .and_then(|policy| policies.at(&config.policy(policy).name, Kind::Listener, &listen.name)),
            workers: listen.workers.clone().into(),
        };
        (known.id, entry)
    }
}

impl<C> KnownBackend<C>
where
    BackendTable<C>: Live + 'static,
{
    /// Puts news of this backend into its entry of the next generation.
    fn take_up<A>(&mut self, news: &News, entry: &mut BackendEntry<C, A>) {
        match &news.plan {
            // Its indices mean servers that are others by now; who made it is asked anew.
            Some(Some(_)) if news.shown != self.servers_generation => {}
            Some(Some(plan)) => {
                entry.table = Arc::new(entry.table.planned(plan));
                self.plan = Some((plan.clone(), ids(&entry.table)));
                self.planner = entry.policy.as_ref().map(|policy| policy.attached.clone());
            }
            Some(None) => {
                entry.table = Arc::new(entry.table.unplanned());
                (self.plan, self.planner) = (None, None);
            }
            None => {}
        }
        self.table = Some(entry.table.clone());
        if let Some(wishes) = &news.wishes {
            self.wishes = wishes.iter().copied().collect();
            entry.planned_figures = self.figures(&entry.table, &entry.settings);
        }
        if let Some(latencies) = &news.latencies {
            self.latencies.clone_from(latencies);
            if let Some(policy) = &mut entry.policy {
                policy.shown = self.shown(&entry.table);
            }
        }
    }

    /// What the plan makes of the configured figures; `None` without one.
    fn figures(&self, table: &BackendTable<C>, settings: &BackendSettings) -> Option<Arc<[Figures]>> {
        let configured = settings.pool.figures;
        let of = |entry: &Entry<C>| {
            let wishes = self.wishes.get(&entry.server.id);
            wishes.map_or(configured, |wishes| configured.with(wishes))
        };
        (!self.wishes.is_empty()).then(|| table.entries.iter().map(of).collect())
    }

    /// The servers as policies see them.
    fn shown(&self, table: &Arc<BackendTable<C>>) -> ShownTable {
        let mut columns = Columns::default();
        for (at, entry) in table.entries.iter().enumerate() {
            let name = entry.server.name.to_string();
            columns
                .latencies
                .push(self.latencies.get(&name).copied().unwrap_or(-1));
            columns.names.push(name);
            columns
                .zones
                .push(self.zones.get(at).cloned().unwrap_or_default());
            columns.weights.push(table.weight(ServerIndex(at as u16)) as i32);
            columns.states.push(match entry.state {
                Admin::Ready => State::Ready,
                Admin::Drain => State::Draining,
                Admin::Maint => State::Maintenance,
            } as i32);
            columns.limits.push(i32::try_from(entry.limit).unwrap_or(-1));
        }
        ShownTable(Shown {
            columns: Arc::new(columns),
            live: table.clone(),
        })
    }
}

fn ids<C>(table: &BackendTable<C>) -> Vec<ServerId> {
    table.entries.iter().map(|entry| entry.server.id).collect()
}

fn zone(server: &model::Server) -> String {
    let zone = server.tags.iter().find(|(name, _)| name == "zone");
    zone.map_or_else(String::new, |(_, zone)| zone.clone())
}
