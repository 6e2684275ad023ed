//! Identities: names to ids, and what hangs on an id for the life of the process.
//!
//! A backend is its name; a server is (backend, name); a listener is its name. Slots, pools, statistics and balancer
//! state stay with the id over every reload. What a reload builds is a generation: a view of these with the settings
//! of the day. Ids of what is gone are kept for its return: names come back.

use super::settings;
use crate::config::{Config, model};
use crate::net::{Address, Connection};
use crate::policy::{BackendId, ServerId};
use crate::shared::generation::{BackendEntry, Generation, ListenerEntry, ListenerId};
use crate::shared::key::{KeySecret, Parts, PoolKey};
use crate::shared::server::Server;
use crate::shared::statistics::{ListenerStatistics, PerWorker};
use crate::shared::table::{Admin, BackendTable, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that has an identity.
pub(super) struct Registry {
    workers: u16,
    secret: KeySecret,
    generation: u64,
    backends: BTreeMap<String, KnownBackend>,
    listeners: BTreeMap<String, KnownListener>,
    servers: u32,
    /// Runtime states, which survive a reload (CLI-4 apart: they are gone with the process).
    admin: BTreeMap<ServerId, Admin>,
}

struct KnownBackend {
    id: BackendId,
    servers: BTreeMap<String, Arc<Server<Connection>>>,
    /// Its latest table, which the next one follows.
    table: Option<Arc<BackendTable<Connection>>>,
}

struct KnownListener {
    id: ListenerId,
    statistics: Arc<PerWorker<ListenerStatistics>>,
}

impl Registry {
    pub(super) fn new(workers: u16) -> Registry {
        Registry {
            workers,
            secret: KeySecret::random(),
            generation: 0,
            backends: BTreeMap::new(),
            listeners: BTreeMap::new(),
            servers: 0,
            admin: BTreeMap::new(),
        }
    }

    /// The next generation, for a config that was checked.
    pub(super) fn build(&mut self, config: &Config) -> Generation<Connection, Address> {
        self.generation += 1;
        let backends: Vec<_> = config
            .backends
            .iter()
            .map(|backend| self.backend(backend))
            .collect();
        let entries: Vec<_> = config
            .listeners
            .iter()
            .map(|listen| self.listener(listen))
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

    /// The runtime state of a server, for the generation that is built next.
    pub(super) fn set_admin(&mut self, backend: &str, server: &str, state: Admin) -> Result<(), String> {
        let known = self
            .backends
            .get(backend)
            .ok_or_else(|| format!("no backend {backend:?}"))?;
        let server = known
            .servers
            .get(server)
            .ok_or_else(|| format!("no server {server:?} in backend {backend:?}"))?;
        self.admin.insert(server.id, state);
        Ok(())
    }

    /// The id of a listener that was part of a generation.
    pub(super) fn listener_id(&self, name: &str) -> Option<ListenerId> {
        self.listeners.get(name).map(|known| known.id)
    }

    fn backend(&mut self, backend: &model::Backend) -> BackendEntry<Connection, Address> {
        let next = BackendId(self.backends.len() as u32);
        let known = self
            .backends
            .entry(backend.name.clone())
            .or_insert_with(|| KnownBackend {
                id: next,
                servers: BTreeMap::new(),
                table: None,
            });
        let mut entries = Vec::with_capacity(backend.servers.len());
        for server in &backend.servers {
            let id = ServerId(self.servers);
            let object = known.servers.entry(server.name.clone()).or_insert_with(|| {
                self.servers += 1;
                Arc::new(Server::new(id, &backend.name, &server.name, self.workers))
            });
            let state = self.admin.get(&object.id).copied().unwrap_or(Admin::Ready);
            entries.push(Entry {
                server: object.clone(),
                weight: server.weight,
                state,
                limit: u32::MAX,
            });
        }
        let algorithm = settings::algorithm(backend.balance);
        let table = Arc::new(match &known.table {
            Some(former) => former.next(algorithm, entries),
            None => BackendTable::first(known.id, &backend.name, algorithm, entries),
        });
        known.table = Some(table.clone());
        BackendEntry {
            table,
            settings: Arc::new(settings::backend(backend)),
            addresses: backend
                .servers
                .iter()
                .map(|server| server.address.clone())
                .collect(),
            keys: backend
                .servers
                .iter()
                .map(|server| self.key(&server.address))
                .collect(),
        }
    }

    /// Connections to one address are interchangeable, to two they are not: a server that moved starts afresh.
    fn key(&self, address: &Address) -> PoolKey {
        let text = address.to_string();
        PoolKey::new(
            &self.secret,
            &Parts {
                name: Some(text.as_bytes()),
                ..Parts::default()
            },
        )
    }

    fn listener(&mut self, listen: &model::Listen) -> (ListenerId, ListenerEntry) {
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
            workers: listen.workers.clone().into(),
        };
        (known.id, entry)
    }
}
