//! Server connections of one client alone (POOL-60…62): all of them under `reuse = "never"`, and any on which the server
//! has asked for NTLM or Negotiate, which authenticate the connection and not the request.

use super::Worker;
use super::session::Upstream;
use crate::decide::reuse::{CloseReason, Released, keep_private};
use crate::http1::ResponseHead;
use crate::net::Key;
use crate::policy::{Fresh, ServerId, ServerIndex};
use crate::shared::key::PoolKey;

impl Worker {
    /// Takes one of the session's own connections to a server, with the exchange's key; tells its slot. A request that
    /// wants a fresh one takes an authenticated one all the same: on another it would have to begin anew.
    pub(super) fn lend_private(
        &mut self,
        exchange: Key,
        session: Key,
        server: ServerId,
        index: ServerIndex,
    ) -> Option<Key> {
        let own = &self.sessions.get(session)?.private;
        if own.is_empty() {
            return None;
        }
        let live = self.exchanges.get(exchange)?;
        let wanted = self.key_of(live, index);
        let any = live.sharing.fresh == Fresh::No;
        let fits = |home: &Key| match self.upstreams.get(*home) {
            Some(Upstream::Private {
                server: of,
                key,
                private,
                ..
            }) => *of == server && key == wanted && (any || *private),
            _ => false,
        };
        let at = own.iter().position(fits)?;
        let home = self.sessions.get_mut(session)?.private.swap_remove(at);
        let place = self
            .upstreams
            .get_mut(home)
            .expect("a private connection keeps its slot");
        let empty = Upstream::Parked { ticket: None, server };
        let Upstream::Private {
            connection, private, ..
        } = std::mem::replace(place, empty)
        else {
            unreachable!("looked at above")
        };
        *place = Upstream::Lent {
            connection,
            session,
            server,
            private,
        };
        self.server(server).pool.need.opened();
        Some(home)
    }

    /// Leaves a connection whose request is over to its session, or tells why not (POOL-61).
    pub(super) fn keep_private(
        &mut self,
        home: Key,
        session: Key,
        key: PoolKey,
        released: &Released,
    ) -> Result<(), CloseReason> {
        let most = self.private_max(session);
        let Some(owner) = self.sessions.get_mut(session) else {
            return Err(CloseReason::Private);
        };
        keep_private(owner.private.len(), most, released.maintenance)?;
        if released.reuses_left == Some(0) {
            return Err(CloseReason::MaxReuse);
        }
        owner.private.push(home);
        let place = self.upstreams.get_mut(home).expect("its exchange had it");
        let empty = Upstream::Parked {
            ticket: None,
            server: ServerId(0),
        };
        if let Upstream::Lent {
            connection,
            server,
            private,
            ..
        } = std::mem::replace(place, empty)
        {
            *place = Upstream::Private {
                connection,
                session,
                server,
                key,
                private,
            };
            self.server(server).pool.need.closed();
        }
        Ok(())
    }

    fn private_max(&self, session: Key) -> usize {
        let Some(session) = self.sessions.get(session) else {
            return 0;
        };
        let place = session.pinned.unwrap_or(self.tables.current());
        let listener = self.tables.get(place).listener(session.listener);
        listener.map_or(0, |entry| entry.settings.session_private_max)
    }

    /// A response has come that may make its connection private: from here on nobody else gets it (POOL-60).
    pub(super) fn look_for_authentication(&mut self, exchange: Key, head: &ResponseHead, bytes: &[u8]) {
        let name: &[u8] = match head.status {
            401 => b"www-authenticate",
            407 => b"proxy-authenticate",
            _ => return,
        };
        if !head.values(bytes, name).any(authenticates_connections) {
            return;
        }
        let home = self.exchanges.get(exchange).and_then(|live| live.upstream);
        if let Some(Upstream::Lent { private, .. }) = home.and_then(|home| self.upstreams.get_mut(home)) {
            *private = true;
        }
    }

    /// The server to which the session has an authenticated connection, if the exchange may use it (POOL-62).
    pub(super) fn authenticated_server(&self, exchange: Key) -> Option<ServerIndex> {
        let live = self.exchanges.get(exchange)?;
        let own = &self.sessions.get(live.session)?.private;
        let table = &self.backend(live).table;
        own.iter().find_map(|home| match self.upstreams.get(*home) {
            Some(Upstream::Private {
                server,
                private: true,
                ..
            }) => table.find(*server),
            _ => None,
        })
    }

    /// Closes an idle private connection that its session has forgotten already.
    pub(super) fn close_private(&mut self, key: Key) {
        if let Some(Upstream::Private { server, .. }) = self.upstreams.remove(key) {
            self.count_close(server, CloseReason::Private);
        }
    }

    /// Closes an idle private connection, and has its session forget it.
    pub(super) fn drop_private(&mut self, key: Key, reason: CloseReason) {
        if let Some(Upstream::Private { session, server, .. }) = self.upstreams.remove(key) {
            if let Some(session) = self.sessions.get_mut(session) {
                session.private.retain(|private| *private != key);
            }
            self.count_close(server, reason);
        }
    }

    /// Closes the idle private connections to a server.
    pub(super) fn drain_private(&mut self, id: ServerId) {
        let upstreams = &self.upstreams;
        let private = |key: &Key| matches!(upstreams.get(*key), Some(Upstream::Private { server, .. }) if *server == id);
        let gone: Vec<Key> = upstreams.keys().filter(private).collect();
        for key in gone {
            self.drop_private(key, CloseReason::Maintenance);
        }
    }
}

/// Whether a challenge (RFC 9110 §11.6.1) is of a scheme that authenticates the connection it is answered on. Several
/// may stand in one field.
fn authenticates_connections(value: &[u8]) -> bool {
    let schemes = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii_start);
    schemes
        .map(|challenge| challenge.split(|byte| *byte == b' ').next().unwrap_or_default())
        .any(|scheme| scheme.eq_ignore_ascii_case(b"ntlm") || scheme.eq_ignore_ascii_case(b"negotiate"))
}

#[cfg(test)]
mod tests {
    use super::authenticates_connections;

    #[test]
    fn schemes_are_found_among_others() {
        for challenge in [
            "NTLM",
            "Negotiate",
            "negotiate YII=",
            "Basic realm=\"a, b\", NTLM",
            "Digest a=b,  ntlm",
        ] {
            assert!(authenticates_connections(challenge.as_bytes()), "{challenge}");
        }
        for challenge in ["Basic realm=\"ntlm\"", "Bearer", "NTLMish", ""] {
            assert!(!authenticates_connections(challenge.as_bytes()), "{challenge}");
        }
    }
}
