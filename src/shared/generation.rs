//! One generation: an immutable picture of everything that requests are handled by.
//!
//! `control/` builds a generation, publishes it behind one atomic swap, and never touches it again. A worker borrows
//! the current one once per turn; an exchange keeps the one it began with. What hangs on an identity (slots, pools,
//! statistics, balancer state) is inside `Arc`s that the next generation shares (DESIGN: identity).

use super::key::PoolKey;
use super::queue::Grants;
use super::statistics::{BackendStatistics, ListenerStatistics, PerWorker, PolicyStatistics};
use super::table::BackendTable;
use crate::decide::reuse::Figures;
use crate::decide::settings::{BackendSettings, ListenerSettings};
use crate::policy::{Attachment, ServerIndex, Shown};
use crate::sync::Arc;
use std::time::Duration;

/// A listener, by its name, for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(pub u16);

/// A policy at one backend or listener, for as long as its component and its configuration stay the same.
pub struct AttachedPolicy {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// Who makes its instances.
    pub attachment: Arc<dyn Attachment>,
    /// What is counted of it.
    pub statistics: Arc<PerWorker<PolicyStatistics>>,
    /// What becomes of a request when a route policy fails.
    pub on_fault: OnFault,
    /// Time between two questions for a plan.
    pub interval: Duration,
}

impl std::fmt::Debug for AttachedPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AttachedPolicy({:?})", self.attachment.offers())
    }
}

/// What becomes of a request when a route policy fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFault {
    /// What the rules chose.
    Fallback,
    /// It is denied (503).
    Deny,
}

/// Everything that requests are handled by, at one time. `C` is a connection to a server, `A` where one is opened.
#[derive(Debug)]
pub struct Generation<C, A> {
    /// Counted from 1.
    pub number: u64,
    /// By [`ListenerId`]; `None` where a listener is gone.
    pub listeners: Box<[Option<ListenerEntry>]>,
    /// In the order of the config: routes name them by place.
    pub backends: Box<[BackendEntry<C, A>]>,
}

/// One listener of a generation.
#[derive(Clone, Debug)]
pub struct ListenerEntry {
    /// Its name.
    pub name: Arc<str>,
    /// How it treats its clients.
    pub settings: Arc<ListenerSettings>,
    /// What it counts.
    pub statistics: Arc<PerWorker<ListenerStatistics>>,
    /// Its route policy, if it has one.
    pub policy: Option<Arc<AttachedPolicy>>,
    /// The workers that accept here; empty for all.
    pub workers: Arc<[u16]>,
}

/// One backend of a generation.
#[derive(Debug)]
pub struct BackendEntry<C, A> {
    /// Its servers as balancers see them.
    pub table: Arc<BackendTable<C>>,
    /// How it treats them.
    pub settings: Arc<BackendSettings>,
    /// Where they are, in the table's order.
    pub addresses: Arc<[A]>,
    /// The keys of connections to them, in the table's order.
    pub keys: Arc<[PoolKey]>,
    /// Its policy, if it has one.
    pub policy: Option<BackendPolicy>,
    /// Who is asked about connections, if anybody is; the same as `policy` where one policy does both.
    pub reuse_policy: Option<Arc<AttachedPolicy>>,
    /// Who is asked about requests that wait, if anybody is; the same as one of the others where one policy does both.
    pub queue_policy: Option<Arc<AttachedPolicy>>,
    /// The table, for those of them that read measures and pick for nobody.
    pub followed: Option<ShownTable>,
    /// What a plan made of the settings' figures, in the table's order; `None` where there is none.
    pub planned_figures: Option<Arc<[Figures]>>,
    /// Who chose its servers.
    pub statistics: Arc<PerWorker<BackendStatistics>>,
}

/// The policy of a backend, and the servers as it sees them.
#[derive(Clone, Debug)]
pub struct BackendPolicy {
    /// The policy.
    pub attached: Arc<AttachedPolicy>,
    /// The table, shown to each instance that picks.
    pub shown: ShownTable,
}

/// A table as policies see it.
#[derive(Clone)]
pub struct ShownTable(pub Shown);

impl std::fmt::Debug for ShownTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShownTable({} servers)", self.0.columns.len())
    }
}

impl<C, A> Clone for BackendEntry<C, A> {
    fn clone(&self) -> Self {
        BackendEntry {
            table: self.table.clone(),
            settings: self.settings.clone(),
            addresses: self.addresses.clone(),
            keys: self.keys.clone(),
            policy: self.policy.clone(),
            reuse_policy: self.reuse_policy.clone(),
            queue_policy: self.queue_policy.clone(),
            followed: self.followed.clone(),
            planned_figures: self.planned_figures.clone(),
            statistics: self.statistics.clone(),
        }
    }
}

impl<C, A> BackendEntry<C, A> {
    /// Every policy that is asked about it; one that is asked about several things more than once.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<AttachedPolicy>> {
        let servers = self.policy.as_ref().map(|policy| &policy.attached);
        [servers, self.reuse_policy.as_ref(), self.queue_policy.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Limits and targets of the connections to a server: a plan's, or else the configured ones.
    #[inline]
    pub fn figures(&self, server: ServerIndex) -> Figures {
        match &self.planned_figures {
            None => self.settings.pool.figures,
            Some(planned) => planned[server.at()],
        }
    }
}

impl ListenerEntry {
    /// Whether a worker accepts here.
    pub fn accepts(&self, worker: usize) -> bool {
        self.workers.is_empty() || self.workers.iter().any(|at| usize::from(*at) == worker)
    }
}

impl<C, A> Generation<C, A> {
    /// Lets requests wait for its servers; before it is published, so that nobody finds a queue closed that may be used.
    pub fn open_queues(&self) {
        self.backends.iter().for_each(|entry| entry.table.open());
    }

    /// Sends those back whose server has gone, and everybody where the last one has; after it was published in the place of
    /// `former`. Gives the backends where there were any, and how many.
    pub fn succeed<'f>(&self, former: &'f Self, grants: &mut Grants) -> Vec<(&'f str, u32)> {
        let mut sent_back = Vec::new();
        for was in &former.backends {
            let mut backends = self.backends.iter();
            let sent = match backends.find(|now| now.table.id == was.table.id) {
                Some(now) => now.table.send_back(&was.table, grants),
                None => was.table.retire(grants),
            };
            if sent > 0 {
                sent_back.push((&*was.table.name, sent));
            }
        }
        sent_back
    }

    /// The entry of a listener, if this generation has it.
    pub fn listener(&self, id: ListenerId) -> Option<&ListenerEntry> {
        self.listeners.get(usize::from(id.0))?.as_ref()
    }
}
