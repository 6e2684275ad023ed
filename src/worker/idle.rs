//! Idle connections that are closed before anybody asks for them: the purge (POOL-40…45), eviction when descriptors or
//! places are short (POOL-50, 51). Decided in the pool, closed here, a few a turn: a close is a system call.

use super::{Worker, session};
use crate::decide::reuse::{self, CloseReason, Figures};
use crate::net::{Connection, Micros};
use crate::policy::ServerId;
use crate::shared::pool::{Evicted, PurgeTimer};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;

/// When this worker looks next at what it has parked at each server.
#[derive(Debug, Default)]
pub(super) struct Purges {
    due: BinaryHeap<Reverse<(Micros, u32)>>,
    /// By server: whether it is in `due`.
    armed: Vec<bool>,
}

impl Purges {
    /// Arms the timer of a server, unless it runs already.
    pub(super) fn arm(&mut self, server: ServerId, at: Micros) {
        let place = server.0 as usize;
        if self.armed.len() <= place {
            self.armed.resize(place + 1, false);
        }
        if !std::mem::replace(&mut self.armed[place], true) {
            self.due.push(Reverse((at, server.0)));
        }
    }

    /// The next deadline; `NEVER` without one.
    pub(super) fn next(&self) -> Micros {
        self.due.peek().map_or(session::NEVER, |Reverse((at, _))| *at)
    }

    fn expired(&mut self, now: Micros) -> Option<ServerId> {
        self.due.peek().filter(|Reverse((at, _))| *at <= now)?;
        let Reverse((_, server)) = self.due.pop()?;
        self.armed[server as usize] = false;
        Some(ServerId(server))
    }
}

/// Connections that are to be closed.
#[derive(Debug, Default)]
pub(super) struct Doomed {
    queue: VecDeque<(ServerId, Connection, CloseReason)>,
    /// Of one purge.
    victims: Vec<Connection>,
}

impl Doomed {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Worker {
    /// Purges the pools whose time has come.
    pub(super) fn purge_idle(&mut self) {
        while let Some(id) = self.purges.expired(self.now) {
            let Some((figures, delay)) = self.purging(id) else {
                continue; // the server is gone, and its pool was drained with it
            };
            let mut victims = std::mem::take(&mut self.doomed.victims);
            let period = reuse::period(self.now, delay);
            let timer = self
                .server(id)
                .pool
                .purge(self.id, period, &figures, &mut victims);
            for connection in victims.drain(..) {
                self.close_soon(id, connection, CloseReason::Purge);
            }
            self.doomed.victims = victims;
            match timer {
                PurgeTimer::RunsOn => self.purges.arm(id, self.now + delay.get()),
                PurgeTimer::Stops => {}
            }
        }
    }

    /// The figures of a server of the current generation, and the time between two purges. Where nothing may be idle
    /// any more, what was parked before goes soon.
    fn purging(&self, id: ServerId) -> Option<(Figures, NonZeroU64)> {
        let home = self.homes.get(id.0 as usize).copied().flatten()?;
        let current = self.tables.get(self.tables.current());
        let entry = &current.backends[usize::from(home.backend)];
        let delay = entry.settings.pool.purge_delay.unwrap_or(SOON);
        Some((entry.figures(home.index), delay))
    }

    /// Closes the oldest idle connection of a server (POOL-50); `false` if none could be had.
    pub(super) fn evict(&mut self, id: ServerId) -> bool {
        let Some(evicted) = self.server(id).pool.evict(self.id) else {
            return false;
        };
        self.close_evicted(id, evicted);
        self.server(id).pool.total().closed();
        true
    }

    /// Closes an idle connection of any server, for its descriptor; `false` if none could be had.
    #[cold]
    pub(super) fn make_room(&mut self) -> bool {
        let ids: Vec<ServerId> = self.servers.iter().flatten().map(|server| server.id).collect();
        ids.into_iter().any(|id| self.evict(id))
    }

    /// Counts a connection that is about to be opened to a server, of which there may be so many (POOL-51).
    pub(super) fn reserve(&mut self, id: ServerId, most: Option<u32>) -> bool {
        let Some(most) = most else {
            self.server(id).pool.total().opened();
            return true;
        };
        let (server, worker) = (self.server(id).clone(), self.id);
        let reserved = server
            .pool
            .reserve(worker, most, |evicted| self.close_evicted(id, evicted));
        reserved.is_ok()
    }

    /// Closes at once what was removed from a shard, whosever it was: a socket leaves the poll it is in by being closed.
    fn close_evicted(&mut self, id: ServerId, evicted: Evicted<Connection>) {
        let Evicted { connection, from } = evicted;
        if from == self.id {
            self.upstreams.remove(connection.home);
        } else {
            self.strays.give(from, connection.home);
        }
        drop(connection);
        self.server(id)
            .statistics
            .of(self.id)
            .closed(CloseReason::Evicted);
        self.process.server_connection_closed();
    }

    /// Has a connection of ours that nobody can find any more closed in one of the next turns.
    pub(super) fn close_soon(&mut self, id: ServerId, connection: Connection, reason: CloseReason) {
        self.upstreams.remove(connection.home);
        self.doomed.queue.push_back((id, connection, reason));
    }

    /// Closes some of those.
    pub(super) fn close_doomed(&mut self, at_most: usize) {
        for _ in 0..at_most.min(self.doomed.queue.len()) {
            if let Some((id, connection, reason)) = self.doomed.queue.pop_front() {
                drop(connection);
                self.count_close(id, reason);
            }
        }
    }

    /// Frees the slots of connections that siblings have taken over or closed.
    pub(super) fn free_strays(&mut self) {
        let Worker {
            strays,
            upstreams,
            id,
            stray_keys,
            ..
        } = self;
        if strays.take(*id, stray_keys) {
            for key in stray_keys.drain(..) {
                upstreams.remove(key);
            }
        }
    }
}

/// Time between two looks where nothing may be idle, in µs.
const SOON: NonZeroU64 = NonZeroU64::new(100_000).expect("not zero");
