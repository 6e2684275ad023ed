//! What ties a request to a server: the hash of a part of it, the backend's cookie, the server of the request before.
//!
//! Read once while the head is at hand and kept with the exchange; where nothing of it is configured nothing is read.
//! Servers are kept by id, so that an exchange that moves to another generation keeps what it was tied to.

use super::Worker;
use super::begin::Incoming;
use crate::decide::persist::Named;
use crate::decide::route::BackendRef;
use crate::decide::settings::PreferLast;
use crate::http1::RequestHead;
use crate::net::Key;
use crate::policy::{BackendId, ServerId, ServerIndex, Table};

/// What was read of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ties {
    /// Its hash, where the algorithm hashes and the request has what is hashed.
    pub(super) number: Option<u64>,
    pub(super) cookie: Cookie,
}

/// What the backend's cookie says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cookie {
    /// The backend has none.
    Off,
    /// The request has none, or one that names no server.
    Nobody,
    /// The request is tied to this server.
    Server(ServerId),
}

impl Worker {
    /// Reads what ties a request, before its head is edited.
    pub(super) fn read_ties(&self, incoming: &Incoming<'_>, backend: BackendRef, head: &RequestHead) -> Ties {
        let entry = &self.tables.get(incoming.place).backends[usize::from(backend.0)];
        let settings = &entry.settings;
        let hashed = settings.hashed.as_ref();
        let number = hashed.and_then(|of| of.hash(head, incoming.bytes, incoming.asked.client));
        let cookie = match &settings.persistence {
            None => Cookie::Off,
            Some(persistence) => match persistence.read(head, incoming.bytes) {
                Named::Server(server) => Cookie::Server(entry.table.at(server).server.id),
                Named::Nothing => Cookie::Nobody,
                Named::Unknown => {
                    entry.statistics.of(self.id).cookie_unknown.count();
                    Cookie::Nobody
                }
            },
        };
        Ties { number, cookie }
    }

    /// The server that the request's cookie names, if that may have it (LB-52).
    pub(super) fn server_of_cookie(&self, exchange: Key) -> Option<ServerIndex> {
        let live = self.exchanges.get(exchange)?;
        let Cookie::Server(id) = live.ties.cookie else {
            return None;
        };
        let entry = self.backend(live);
        let server = entry
            .table
            .find(id)
            .filter(|server| entry.table.takes_tied(*server));
        let statistics = entry.statistics.of(self.id);
        match server {
            Some(_) => statistics.by_cookie.count(),
            None => statistics.cookie_unavailable.count(),
        }
        server
    }

    /// The server of the session's request before, if that is preferred and has a free slot (LB-51).
    pub(super) fn last_server(&self, exchange: Key) -> Option<ServerIndex> {
        let live = self.exchanges.get(exchange)?;
        let entry = self.backend(live);
        if entry.settings.last == PreferLast::No {
            return None;
        }
        let (backend, id) = self.sessions.get(live.session)?.last?;
        let table = &entry.table;
        let server = table.find(id).filter(|_| backend == table.id)?;
        (table.usable(server) && !table.saturated(server)).then_some(server)
    }

    /// The server has answered: the client is bound to it, where it was not. Adds to `additions`.
    pub(super) fn bind_client(&mut self, exchange: Key) {
        let Worker {
            tables,
            sessions,
            exchanges,
            additions,
            ..
        } = self;
        let Some(live) = exchanges.get(exchange) else {
            return;
        };
        let entry = &tables.get(live.generation).backends[usize::from(live.backend)];
        let Some(server) = live.account.server else {
            return;
        };
        let id = entry.table.at(server).server.id;
        if let Some(persistence) = &entry.settings.persistence
            && live.ties.cookie != Cookie::Server(id)
        {
            persistence.render(server, additions);
        }
        if entry.settings.last == PreferLast::Yes
            && let Some(session) = sessions.get_mut(live.session)
        {
            session.last = Some((entry.table.id, id));
        }
    }
}

/// The server that a session's last request had, and its backend.
pub(super) type Last = Option<(BackendId, ServerId)>;
