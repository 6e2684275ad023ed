//! The server's side of a request: lending a connection, taking one over, opening one, closing it.
//!
//! A server connection keeps its slot in `upstreams`, and so its token, from its first registration with this worker
//! to its close or until a sibling takes it over, also while it is parked: *resident* parking (DESIGN §5).

use super::Worker;
use super::session::{Held, Live, Upstream};
use crate::decide::exchange::{Closing, ConnectFailure, Event};
use crate::decide::reuse::{self, CloseReason, Descriptors, Gate, OpenReason, Retryable};
use crate::net::{Connection, Key, Kind, Stream, Token};
use crate::policy::{Fresh, ServerId, ServerIndex, WorkerId};
use crate::shared::key::PoolKey;
use crate::shared::pool::Found;
use std::net::IpAddr;

impl Worker {
    /// Takes an idle connection of this server for an exchange, if there is one that may be used (POOL-10).
    pub(super) fn lend(&mut self, exchange: Key, index: ServerIndex) -> bool {
        self.make_key(exchange, index);
        let Some(live) = self.exchanges.get(exchange) else {
            return false;
        };
        let (session, id) = (live.session, self.server_at(live, index).id);
        let descriptors = self.descriptors();
        if descriptors.evict() {
            self.evict(id);
        }
        if let Some(home) = self.lend_private(exchange, session, id, index) {
            self.hold(exchange, index, home, Held::Private);
            return true;
        }
        let live = self.exchanges.get(exchange).expect("looked up above");
        match self.find(live, index, descriptors) {
            Ok(Found::Own(connection)) => {
                let (home, held) = (connection.home, Held::by(connection.requests));
                self.place_lent(home, connection, session, id);
                self.hold(exchange, index, home, held);
                true
            }
            Ok(Found::Stolen { connection, from }) => {
                let Some(home) = self.take_over(connection, from, session, id) else {
                    return self.not_lent(exchange, OpenReason::Retry);
                };
                self.server_statistics(exchange, index, |statistics| statistics.takeovers.count());
                self.statistics().takeovers.count();
                self.hold(exchange, index, home, Held::TakenOver);
                true
            }
            Err(reason) => self.not_lent(exchange, reason),
        }
    }

    /// The search, after the session's own connections.
    fn find(
        &self,
        live: &Live,
        index: ServerIndex,
        descriptors: Descriptors,
    ) -> Result<Found<Connection>, OpenReason> {
        let entry = self.backend(live);
        let settings = &entry.settings;
        // Later requests of a client, and those that may be sent again, take what is unproven first (POOL-11).
        let first = || {
            let session = self.sessions.get(live.session);
            session.is_some_and(|session| session.requests == 1)
        };
        let retryable = if settings.effort.retry_on.covers_reuse() || !first() {
            Retryable::Yes
        } else {
            Retryable::No
        };
        if live.sharing.fresh == Fresh::Yes {
            return Err(OpenReason::Fresh);
        }
        let wanted = reuse::wanted(live.sharing.mode, retryable)?;
        let gate = Gate {
            sharing: self.process.sharing(),
            reverse: false,
            figures: entry.figures(index),
            descriptors,
        };
        let key = live.pool_key.as_ref().unwrap_or(&entry.keys[index.at()]);
        entry
            .table
            .at(index)
            .server
            .pool
            .find(self.id, key, wanted, &gate)
    }

    fn not_lent(&mut self, exchange: Key, reason: OpenReason) -> bool {
        let live = self.exchanges.get_mut(exchange).expect("whose search it was");
        live.open_reason = reason;
        false
    }

    /// Makes a sibling's connection ours: out of its poll, into our own (TAKE-5). Its slot there is told to the sibling,
    /// which may have an event of it in hand: it finds the ticket void, and says nothing.
    fn take_over(
        &mut self,
        mut connection: Connection,
        from: WorkerId,
        session: Key,
        id: ServerId,
    ) -> Option<Key> {
        let left = self.registrars[usize::from(from.0)].deregister(&mut connection.stream);
        self.strays.give(from, connection.home);
        let home = self.upstreams.insert(Upstream::Parked {
            ticket: None,
            server: id,
        });
        connection.home = home;
        if left
            .and_then(|()| self.poller.register(&mut connection.stream, token(home)))
            .is_err()
        {
            self.upstreams.remove(home);
            self.server(id).pool.need.closed();
            self.count_close(id, CloseReason::Error);
            return None;
        }
        self.place_lent(home, connection, session, id);
        Some(home)
    }

    fn place_lent(&mut self, home: Key, connection: Connection, session: Key, server: ServerId) {
        *self.upstreams.get_mut(home).expect("a connection keeps its slot") = Upstream::Lent {
            connection,
            session,
            server,
            private: false,
        };
    }

    /// A connection that was idle is the exchange's.
    fn hold(&mut self, exchange: Key, index: ServerIndex, home: Key, held: Held) {
        self.server_statistics(exchange, index, |statistics| statistics.reuses.count());
        let now = self.now;
        let live = self.exchanges.get_mut(exchange).expect("whose search it was");
        live.upstream = Some(home);
        live.server_active = now;
        live.account.connected = now;
        live.account.held = held;
        live.open_reason = OpenReason::Retry; // should it die and a fresh one be opened
    }

    /// Makes the key of the exchange's connections to a server, where requests share them by more than the server.
    fn make_key(&mut self, exchange: Key, index: ServerIndex) {
        let Worker {
            exchanges,
            tables,
            keys,
            process,
            ..
        } = self;
        if let Some(live) = exchanges.get_mut(exchange)
            && live.sharing.has_key()
        {
            let base = &tables.get(live.generation).backends[usize::from(live.backend)].keys[index.at()];
            let (name, tag) = (live.sharing.name.as_deref(), live.sharing.tag.as_deref());
            live.pool_key = Some(keys.with(process.key_secret(), base, name, tag));
        }
    }

    /// The key of the exchange's connections to a server.
    pub(super) fn key_of<'a>(&'a self, live: &'a Live, index: ServerIndex) -> &'a PoolKey {
        let plain = || &self.backend(live).keys[index.at()];
        live.pool_key.as_ref().unwrap_or_else(plain)
    }

    /// Begins to open a connection for an exchange.
    pub(super) fn connect(&mut self, exchange: Key, index: ServerIndex) {
        self.make_key(exchange, index);
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        let (session, reason) = (live.session, live.open_reason);
        let entry = self.backend(live);
        let settings = &entry.settings.pool;
        let (id, source, most) = (
            entry.table.at(index).server.id,
            settings.source,
            settings.strict_max,
        );
        if !self.reserve(id, most) {
            return self.connect_failed(exchange, index, ConnectFailure::Local);
        }
        self.server(id).pool.need.opened();
        let opened = self.open(exchange, index, source);
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
        live.account.held = Held::New(reason);
        let stream = opened.and_then(|mut stream| {
            self.poller.register(&mut stream, token(home))?;
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
                self.place_lent(home, connection, session, id);
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

    /// Begins a connection. Where descriptors have run out altogether, which POOL-50 prevents only as far as server
    /// connections do it, an idle one makes room.
    fn open(&mut self, exchange: Key, index: ServerIndex, source: Option<IpAddr>) -> std::io::Result<Stream> {
        let begin = |worker: &Worker| {
            let live = worker.exchanges.get(exchange).expect("it asked for it");
            Stream::connect(&worker.backend(live).addresses[index.at()], source)
        };
        match begin(self) {
            Err(error) if no_descriptor(&error) && self.make_room() => begin(self),
            opened => opened,
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

    /// Server connections that are open, against their marks.
    pub(super) fn descriptors(&self) -> Descriptors {
        self.process.descriptors()
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
            live.account.closed = Some(reason);
            self.close_lent(key, reason);
        }
    }

    /// Closes a lent connection.
    pub(super) fn close_lent(&mut self, key: Key, reason: CloseReason) {
        if let Some(Upstream::Lent { server, .. }) = self.upstreams.remove(key) {
            self.server(server).pool.need.closed();
            self.count_close(server, reason);
        }
    }

    /// Counts a connection that was closed: no more of the server's, nor of the process's.
    pub(super) fn count_close(&self, server: ServerId, reason: CloseReason) {
        let server = self.server(server);
        server.pool.total().closed();
        server.statistics.of(self.id).closed(reason);
        self.process.server_connection_closed();
    }

    /// The socket of an exchange's server connection.
    pub(super) fn upstream_stream(&mut self, exchange: Key) -> Option<&mut Stream> {
        let key = self.exchanges.get(exchange)?.upstream?;
        match self.upstreams.get_mut(key)? {
            Upstream::Lent { connection, .. } => Some(&mut connection.stream),
            Upstream::Parked { .. } | Upstream::Opening(_) | Upstream::Private { .. } => None,
        }
    }
}

/// How events name a server connection.
pub(super) fn token(home: Key) -> Token {
    Token {
        kind: Kind::Server,
        key: home,
    }
}

fn no_descriptor(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
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
