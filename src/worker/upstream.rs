//! The server's side: lending a connection, opening one, parking or closing it, and events on parked ones.
//!
//! A server connection keeps its slot in `upstreams`, and so its token, from its first registration to its close,
//! also while it is parked: *resident* parking (DESIGN §5).

use super::session::{Live, Upstream};
use super::{Current, Worker};
use crate::decide::exchange::{Closing, ConnectFailure, Event};
use crate::decide::reuse::{
    self, CloseReason, Descriptors, Figures, Gate, KeepRule, Mode, OpenReason, Proven, Released, Retryable,
    Sharing,
};
use crate::net::{Connection, Key, Kind, Read, Stream, Token};
use crate::policy::{ServerId, ServerIndex};
use crate::shared::pool::Found;
use crate::shared::table::Admin;

/// Idle private connections that one session may hold (POOL-61).
const PRIVATE_MAX: usize = 5;

impl Worker {
    /// Takes an idle connection of this server for an exchange, if there is one that may be used.
    pub(super) fn lend(&mut self, exchange: Key, index: ServerIndex) -> bool {
        let Some(live) = self.exchanges.get(exchange) else {
            return false;
        };
        let session = live.session;
        let entry = self.backend(live);
        let server = &entry.table.at(index).server;
        let id = server.id;
        let mode = entry.settings.reuse;
        let found = if mode == Mode::Never {
            self.lend_private(session, id)
        } else {
            let key = &entry.keys[index.at()];
            // Later requests of a client, and those that may be sent again, take what is unproven first (POOL-11).
            let first = self
                .sessions
                .get(session)
                .is_some_and(|session| session.requests == 1);
            let retryable = if first { Retryable::No } else { Retryable::Yes };
            match reuse::wanted(mode, retryable) {
                Ok(wanted) => {
                    let gate = Gate {
                        sharing: Sharing::Off,
                        reverse: false,
                        figures: Figures::default(),
                        descriptors: self.descriptors(),
                    };
                    let found = server.pool.find(self.id, key, wanted, &gate);
                    found.map(Found::into_connection)
                }
                Err(reason) => Err(reason),
            }
        };
        match found {
            Ok(connection) => {
                let home = connection.home;
                *self.upstreams.get_mut(home).expect("a connection keeps its slot") = Upstream::Lent {
                    connection,
                    session,
                    server: id,
                };
                self.server_statistics(exchange, index, |statistics| statistics.reuses.count());
                let live = self.exchanges.get_mut(exchange).expect("looked up above");
                live.upstream = Some(home);
                live.server_active = self.now;
                live.account.connected = self.now;
                live.account.reused = true;
                live.open_reason = OpenReason::Retry; // should it die and a fresh one be opened
                true
            }
            Err(reason) => {
                self.exchanges
                    .get_mut(exchange)
                    .expect("looked up above")
                    .open_reason = reason;
                false
            }
        }
    }

    fn lend_private(&mut self, session: Key, server: ServerId) -> Result<Connection, OpenReason> {
        let Worker {
            sessions,
            upstreams,
            servers,
            ..
        } = self;
        let session = sessions.get_mut(session).ok_or(OpenReason::Never)?;
        let of_server = |key: &Key| matches!(upstreams.get(*key), Some(Upstream::Private { server: of, .. }) if *of == server);
        let at = session
            .private
            .iter()
            .position(of_server)
            .ok_or(OpenReason::Never)?;
        let key = session.private.swap_remove(at);
        let place = upstreams
            .get_mut(key)
            .expect("a private connection keeps its slot");
        let lent = Upstream::Parked { ticket: None, server };
        let Upstream::Private { connection, .. } = std::mem::replace(place, lent) else {
            unreachable!("looked at above")
        };
        servers[server.0 as usize]
            .as_ref()
            .expect("a server in use")
            .pool
            .need
            .opened();
        Ok(connection)
    }

    /// Begins to open a connection for an exchange.
    pub(super) fn connect(&mut self, exchange: Key, index: ServerIndex) {
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        let (session, reason) = (live.session, live.open_reason);
        let entry = self.backend(live);
        let server = &entry.table.at(index).server;
        let id = server.id;
        server.pool.need.opened();
        server.pool.total().opened();
        let opened = Stream::connect(&entry.addresses[index.at()]);
        self.server_statistics(exchange, index, |statistics| {
            statistics.opened(reason);
        });
        let home = self.upstreams.insert(Upstream::Parked {
            ticket: None,
            server: id,
        });
        let live = self.exchanges.get_mut(exchange).expect("looked up above");
        live.server_active = self.now;
        live.account.connect_began = self.now;
        live.account.reused = false;
        let stream = opened.and_then(|mut stream| {
            self.poller.register(
                &mut stream,
                Token {
                    kind: Kind::Server,
                    key: home,
                },
            )?;
            Ok(stream)
        });
        match stream {
            Ok(stream) => {
                self.process.server_connection_opened();
                live.upstream = Some(home);
                let at_once = stream.is_writable();
                let connection = Connection {
                    stream,
                    requests: 0,
                    home,
                };
                *self.upstreams.get_mut(home).expect("just inserted") = Upstream::Lent {
                    connection,
                    session,
                    server: id,
                };
                if at_once {
                    self.connected(exchange);
                }
            }
            Err(error) => {
                self.upstreams.remove(home);
                let pool = &self.server(id).pool;
                pool.need.closed();
                pool.total().closed();
                self.connect_failed(exchange, index, local_or_remote(&error));
            }
        }
    }

    /// Looks whether the connect of an exchange has ended.
    pub(super) fn check_connect(&mut self, exchange: Key, index: ServerIndex) -> bool {
        let Some(stream) = self.upstream_stream(exchange) else {
            return false;
        };
        if !stream.is_writable() && !stream.is_hangup() {
            return false;
        }
        match stream.connected() {
            Ok(true) => self.connected(exchange),
            Ok(false) => return false,
            Err(error) => {
                self.drop_upstream(exchange, CloseReason::Error);
                self.connect_failed(exchange, index, local_or_remote(&error));
            }
        }
        true
    }

    fn connected(&mut self, exchange: Key) {
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("the exchange that connects");
        live.server_active = self.now;
        live.account.connected = self.now;
        self.drive(exchange, Event::Connected);
    }

    fn connect_failed(&mut self, exchange: Key, index: ServerIndex, failure: ConnectFailure) {
        self.server_statistics(exchange, index, |statistics| statistics.connect_failures.count());
        self.drive(exchange, Event::ConnectFailed(failure));
    }

    /// Parks the connection of an exchange that is over, or closes it by the keep rule (POOL-32).
    pub(super) fn park(&mut self, exchange: Key) {
        let Some(key) = self.exchanges.get(exchange).and_then(|live| live.upstream) else {
            return;
        };
        self.park_or_close(exchange, key);
        // Not before: until then the exchange answers for it, also in a panic.
        self.exchanges
            .get_mut(exchange)
            .expect("looked up above")
            .upstream = None;
    }

    fn park_or_close(&mut self, exchange: Key, key: Key) {
        let live = self.exchanges.get(exchange).expect("whose connection it is");
        let Some(Upstream::Lent {
            connection,
            server: id,
            ..
        }) = self.upstreams.get_mut(key)
        else {
            return;
        };
        connection.requests += 1;
        // A read that filled the buffer, or an end that was announced: look before others rely on it (POOL-30).
        if connection.stream.is_readable() && connection.stream.probe() != Read::Empty {
            return self.close_upstream(key, CloseReason::Remote);
        }
        let (id, requests, session) = (*id, connection.requests, live.session);
        let entry = self.backend(live);
        let mode = entry.settings.reuse;
        let server = self.server(id);
        let index = live.account.server.expect("its connection is to a server");
        let Some(state) = self.present_state(live, index) else {
            return self.close_upstream(key, CloseReason::Maintenance);
        };
        if mode == Mode::Never && state != Admin::Maint {
            return self.keep_private(key, session);
        }
        let proven = Proven::after(requests);
        let released = Released {
            mode,
            private: false,
            maintenance: state == Admin::Maint,
            purge_delay: true,
            reverse: false,
            streams: 0,
            free_streams: 1,
            proven,
            reuses_left: None,
            descriptors: self.descriptors(),
            figures: Figures::default(),
            rule: KeepRule::Plain,
        };
        if let Err(reason) = reuse::keep(&released, &server.pool.present(self.id, released.rule)) {
            return self.close_upstream(key, reason);
        }
        let (generation, backend) = (live.generation, usize::from(live.backend));
        let Worker {
            upstreams,
            servers,
            tables,
            ..
        } = self;
        let place = upstreams.get_mut(key).expect("looked up above");
        let parked = Upstream::Parked {
            ticket: None,
            server: id,
        };
        let Upstream::Lent { connection, .. } = std::mem::replace(place, parked) else {
            unreachable!("looked at above")
        };
        let key_of = &tables.get(generation).backends[backend].keys[index.at()];
        let server = servers[id.0 as usize].as_ref().expect("a server in use");
        let ticket = server.pool.park(self.id, key_of, proven, connection);
        *place = Upstream::Parked {
            ticket: Some(ticket),
            server: id,
        };
    }

    /// What the operator wants of an exchange's server by now; `None` if the current generation opens no connections
    /// like the one it had: one to an address that has changed is not kept (POOL-52).
    fn present_state(&self, live: &Live, index: ServerIndex) -> Option<Admin> {
        let own = self.backend(live);
        if live.generation == self.tables.current() {
            return Some(own.table.at(index).state);
        }
        let (id, key) = (own.table.at(index).server.id, &own.keys[index.at()]);
        let current = self.tables.get(self.tables.current());
        current.backends.iter().find_map(|entry| {
            let at = entry.table.find(id)?;
            (entry.keys[at.at()] == *key).then(|| entry.table.at(at).state)
        })
    }

    fn descriptors(&self) -> Descriptors {
        self.process.descriptors()
    }

    fn keep_private(&mut self, key: Key, session: Key) {
        let Some(owner) = self.sessions.get_mut(session) else {
            return self.close_upstream(key, CloseReason::Private);
        };
        if owner.private.len() >= PRIVATE_MAX {
            return self.close_upstream(key, CloseReason::Private);
        }
        owner.private.push(key);
        let place = self.upstreams.get_mut(key).expect("its exchange had it");
        let parked = Upstream::Parked {
            ticket: None,
            server: ServerId(0),
        };
        if let Upstream::Lent {
            connection, server, ..
        } = std::mem::replace(place, parked)
        {
            *place = Upstream::Private {
                connection,
                session,
                server,
            };
            self.server(server).pool.need.closed();
        }
    }

    /// Closes the connection of an exchange.
    pub(super) fn close_server(&mut self, exchange: Key, closing: Closing) {
        let reason = match closing {
            Closing::Remote => CloseReason::Remote,
            Closing::Error => CloseReason::Error,
            Closing::ExcessData => CloseReason::ExcessData,
            Closing::Unfinished | Closing::Aborted | Closing::Tunnel => CloseReason::NotReusable,
        };
        self.drop_upstream(exchange, reason);
    }

    /// Closes the connection of an exchange, if it has one.
    pub(super) fn drop_upstream(&mut self, exchange: Key, reason: CloseReason) {
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return;
        };
        self.buffers.reclaim(&mut live.input);
        if let Some(key) = live.upstream.take() {
            self.close_upstream(key, reason);
        }
    }

    /// Closes a lent connection.
    fn close_upstream(&mut self, key: Key, reason: CloseReason) {
        if let Some(Upstream::Lent { server, .. }) = self.upstreams.remove(key) {
            self.server(server).pool.need.closed();
            self.count_close(server, reason);
        }
    }

    /// Closes an idle private connection.
    pub(super) fn close_private(&mut self, key: Key) {
        if let Some(Upstream::Private { server, .. }) = self.upstreams.remove(key) {
            self.count_close(server, CloseReason::Private);
        }
    }

    fn count_close(&self, server: ServerId, reason: CloseReason) {
        let server = self.server(server);
        server.statistics.of(self.id).closed(reason);
        server.pool.total().closed();
        self.process.server_connection_closed();
    }

    /// Something happened on an idle connection: a close, or bytes that nobody asked for. A stale edge is neither.
    pub(super) fn parked_event(&mut self, key: Key) {
        match self.upstreams.get_mut(key) {
            Some(Upstream::Parked { ticket, server }) => {
                let (Some(ticket), id) = (*ticket, *server) else {
                    return;
                };
                let server = self.server(id).clone();
                let Some(mut taken) = server.pool.take(self.id, ticket) else {
                    return;
                };
                let reason = match taken.stream.probe() {
                    Read::Empty => match taken.put_back() {
                        None => return,
                        Some(_drained) => CloseReason::Maintenance,
                    },
                    found => {
                        drop(taken.remove());
                        of_idle(&found)
                    }
                };
                self.upstreams.remove(key);
                self.count_close(id, reason);
            }
            Some(Upstream::Private {
                connection,
                session,
                server,
            }) => {
                let found = connection.stream.probe();
                if found == Read::Empty {
                    return;
                }
                let (session, id) = (*session, *server);
                self.upstreams.remove(key);
                if let Some(session) = self.sessions.get_mut(session) {
                    session.private.retain(|private| *private != key);
                }
                self.count_close(id, of_idle(&found));
            }
            Some(Upstream::Lent { .. }) | None => {}
        }
    }

    /// Closes the pools of servers that a newer generation no longer has, has elsewhere, or keeps in maintenance.
    pub(super) fn close_retired_pools(&mut self, former: &Current) {
        let current = self.tables.get(self.tables.current()).clone();
        for entry in &former.backends {
            for (place, known) in entry.table.entries.iter().enumerate() {
                let id = known.server.id;
                let still = current.backends.iter().any(|now| {
                    let at = now.table.find(id).map(|at| at.at());
                    at.is_some_and(|at| {
                        now.keys[at] == entry.keys[place] && now.table.entries[at].state != Admin::Maint
                    })
                });
                if !still {
                    self.drain_pool(id);
                    self.drain_private(id);
                }
            }
        }
    }

    /// Closes the idle private connections to a server.
    fn drain_private(&mut self, id: ServerId) {
        let upstreams = &self.upstreams;
        let private = |key: &Key| matches!(upstreams.get(*key), Some(Upstream::Private { server, .. }) if *server == id);
        let gone: Vec<Key> = upstreams.keys().filter(private).collect();
        for key in gone {
            if let Some(Upstream::Private { session, .. }) = self.upstreams.remove(key)
                && let Some(session) = self.sessions.get_mut(session)
            {
                session.private.retain(|private| *private != key);
            }
            self.count_close(id, CloseReason::Maintenance);
        }
    }

    fn drain_pool(&mut self, id: ServerId) {
        let mut drained = Vec::new();
        self.server(id).pool.drain(self.id, &mut drained);
        for connection in drained {
            self.upstreams.remove(connection.home);
            self.count_close(id, CloseReason::Maintenance);
        }
    }

    /// Closes what is parked, when the worker ends.
    pub(super) fn forget_pools(&mut self) {
        let known: Vec<ServerId> = self.servers.iter().flatten().map(|server| server.id).collect();
        known.into_iter().for_each(|id| self.drain_pool(id));
    }

    /// The socket of an exchange's server connection.
    pub(super) fn upstream_stream(&mut self, exchange: Key) -> Option<&mut Stream> {
        let key = self.exchanges.get(exchange)?.upstream?;
        match self.upstreams.get_mut(key)? {
            Upstream::Lent { connection, .. } => Some(&mut connection.stream),
            Upstream::Parked { .. } | Upstream::Private { .. } => None,
        }
    }
}

fn of_idle(found: &Read) -> CloseReason {
    match found {
        Read::Bytes(_) => CloseReason::ExcessData,
        Read::End | Read::Empty => CloseReason::Remote,
        Read::Failed(_) => CloseReason::Error,
    }
}

/// Whether a connect failed here or there (RT-5).
fn local_or_remote(error: &std::io::Error) -> ConnectFailure {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::ADDRNOTAVAIL | Errno::AGAIN,
        ) => ConnectFailure::Local,
        Some(Errno::TIMEDOUT) => ConnectFailure::TimedOut,
        _ => ConnectFailure::Remote,
    }
}
