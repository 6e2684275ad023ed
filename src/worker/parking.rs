//! What becomes of a server connection whose request is over, and of those that lie parked: the keep rule, events on
//! idle ones, servers that go.

use super::session::{Held, Live, Upstream};
use super::{Current, Worker};
use crate::decide::reuse::{self, CloseReason, Mode, Proven, Released};
use crate::net::{Key, Read};
use crate::policy::{ServerId, ServerIndex};
use crate::shared::pool::Refused;
use crate::shared::table::Admin;

impl Worker {
    /// Parks the connection of an exchange that is over, or closes it by the keep rule (POOL-32).
    pub(super) fn park(&mut self, exchange: Key) {
        let Some(key) = self.exchanges.get(exchange).and_then(|live| live.upstream) else {
            return;
        };
        let kept = self.park_or_close(exchange, key);
        // Not before: until then the exchange answers for it, also in a panic.
        let live = self.exchanges.get_mut(exchange).expect("looked up above");
        live.upstream = None;
        live.account.closed = kept.err();
    }

    fn park_or_close(&mut self, exchange: Key, key: Key) -> Result<(), CloseReason> {
        let live = self.exchanges.get(exchange).expect("whose connection it is");
        let Some(Upstream::Lent {
            connection,
            server: id,
            private,
            ..
        }) = self.upstreams.get_mut(key)
        else {
            return Ok(());
        };
        connection.requests += 1;
        // A read that filled the buffer, or an end that was announced: look before others rely on it (POOL-30).
        let ended = connection.stream.is_readable() && connection.stream.probe() != Read::Empty;
        let (id, requests, private, session) = (*id, connection.requests, *private, live.session);
        let settings = &self.backend(live).settings.pool;
        let index = live.account.server.expect("its connection is to a server");
        let state = self.present_state(live, index);
        let maintenance = state.is_none_or(|state| state == Admin::Maint);
        let released = Released {
            mode: live.sharing.mode,
            private,
            maintenance,
            purge_delay: settings.purge_delay.is_some(),
            reverse: false,
            streams: 0,
            free_streams: 1,
            proven: Proven::after(requests),
            reuses_left: reuse::reuses_left(settings.max_reuse, requests),
            descriptors: self.descriptors(),
            figures: self.backend(live).figures(index),
        };
        let delay = settings.purge_delay;
        // What a policy has once kept to this client is never lent to another, whatever this request may do.
        let own = live.account.held == Held::Private;
        let refused = if ended {
            CloseReason::Remote
        } else if private || own || live.sharing.mode == Mode::Never {
            match self.keep_private(key, session, self.key_of(live, index).clone(), &released) {
                Ok(()) => return Ok(()),
                Err(reason) => reason,
            }
        } else {
            match self.release(exchange, key, index, id, &released) {
                Ok(()) => {
                    if let Some(delay) = delay {
                        self.purges.arm(id, self.now + delay.get());
                    }
                    return Ok(());
                }
                Err(reason) => reason,
            }
        };
        self.close_lent(key, refused);
        Err(refused)
    }

    /// Hands it to the pool; what the pool does not want is back in its slot.
    fn release(
        &mut self,
        exchange: Key,
        key: Key,
        index: ServerIndex,
        id: ServerId,
        released: &Released,
    ) -> Result<(), CloseReason> {
        let Worker {
            upstreams,
            servers,
            tables,
            exchanges,
            id: worker,
            ..
        } = self;
        let live = exchanges.get(exchange).expect("whose connection it is");
        let plain = &tables.get(live.generation).backends[usize::from(live.backend)].keys[index.at()];
        let pool_key = live.pool_key.as_ref().unwrap_or(plain);
        let server = servers[id.0 as usize].as_ref().expect("a server in use");
        let place = upstreams.get_mut(key).expect("a connection keeps its slot");
        let parked = |ticket| Upstream::Parked { ticket, server: id };
        let Upstream::Lent {
            connection,
            session,
            private,
            ..
        } = std::mem::replace(place, parked(None))
        else {
            unreachable!("the caller has looked")
        };
        match server.pool.release(*worker, pool_key, released, connection) {
            Ok(ticket) => {
                *place = parked(Some(ticket));
                Ok(())
            }
            Err(Refused { connection, reason }) => {
                *place = Upstream::Lent {
                    connection,
                    session,
                    server: id,
                    private,
                };
                Err(reason)
            }
        }
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
            Some(Upstream::Private { connection, .. }) => {
                let found = connection.stream.probe();
                if found != Read::Empty {
                    self.drop_private(key, of_idle(&found));
                }
            }
            Some(Upstream::Opening(_)) => self.opening_event(key),
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

    fn drain_pool(&mut self, id: ServerId) {
        let mut drained = Vec::new();
        self.server(id).pool.drain(self.id, &mut drained);
        for connection in drained {
            self.close_soon(id, connection, CloseReason::Maintenance);
        }
    }

    /// Closes what is parked, when the worker ends.
    pub(super) fn forget_pools(&mut self) {
        let known: Vec<ServerId> = self.servers.iter().flatten().map(|server| server.id).collect();
        known.into_iter().for_each(|id| self.drain_pool(id));
        self.forget_openings();
        self.close_doomed(usize::MAX);
    }
}

fn of_idle(found: &Read) -> CloseReason {
    match found {
        Read::Bytes(_) => CloseReason::ExcessData,
        Read::End | Read::Empty => CloseReason::Remote,
        Read::Failed(_) => CloseReason::Error,
    }
}
