//! Server connections that are opened before a request asks for one, because a plan wants so many to be there.
//!
//! Each worker has its part of a server's target. Once a second it looks how many of its part lie parked or are being
//! opened, and opens what is missing, a few a turn; so what was closed meanwhile is replaced. A connection is parked
//! when it is connected, by the same rule as one that is released. Where a connect fails, the server is left alone for
//! a while; nobody waits for it.
//!
//! Never so many that the pool's limit or the low descriptor mark is passed ([`Figures::to_preconnect`]).

use super::session::Upstream;
use super::upstream::token;
use super::{Worker, session};
#[cfg(doc)]
use crate::decide::reuse::Figures;
use crate::decide::reuse::{CloseReason, Mode, OpenReason, Proven, Released, share};
use crate::net::{Connection, Key, Micros, Stream};
use crate::policy::{ServerId, ServerIndex, Table};
use crate::shared::key::PoolKey;
use crate::shared::pool::Refused;
use crate::shared::table::Admin;

/// Between two looks, in µs.
const LOOK_EVERY: Micros = 1_000_000;
/// How long a server is left alone after a connect that failed, in µs.
const FAILURE_PAUSE: Micros = 5_000_000;
/// Connects begun in one turn, at most.
const OPENS_MAX: u32 = 4;

/// What one worker opens in advance.
#[derive(Debug)]
pub(super) struct Preconnects {
    /// Servers of the current generation for which a plan wants some.
    wanted: Vec<Wanted>,
    /// Those that are being opened.
    opening: Vec<Key>,
    /// By [`ServerId`].
    servers: Vec<Known>,
    /// The next look; `NEVER` where nothing is wanted nor being opened.
    next: Micros,
    /// Where the look goes on that the turn before has left off.
    from: usize,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    server: ServerId,
    backend: u16,
    index: ServerIndex,
}

/// What a worker knows of a server.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Connections to it that are being opened in advance.
    opening: u32,
    /// Not before then.
    resume: Micros,
}

/// A connection that is being opened for nobody yet.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) connection: Connection,
    pub(super) server: ServerId,
    key: PoolKey,
    deadline: Micros,
}

impl Default for Preconnects {
    fn default() -> Self {
        Preconnects {
            wanted: Vec::new(),
            opening: Vec::new(),
            servers: Vec::new(),
            next: session::NEVER,
            from: 0,
        }
    }
}

impl Preconnects {
    /// The next deadline; `NEVER` without one.
    pub(super) fn next(&self) -> Micros {
        self.next
    }

    /// One is not being opened any more.
    fn ended(&mut self, home: Key, server: ServerId) {
        self.opening.retain(|opening| *opening != home);
        self.of(server).opening -= 1;
    }

    fn of(&mut self, server: ServerId) -> &mut Known {
        let place = server.0 as usize;
        if self.servers.len() <= place {
            self.servers.resize(place + 1, Known::default());
        }
        &mut self.servers[place]
    }
}

impl Worker {
    /// Learns from the current generation what is to be opened in advance.
    pub(super) fn learn_preconnects(&mut self) {
        let Worker {
            tables,
            preconnects,
            now,
            ..
        } = self;
        let generation = tables.get(tables.current());
        preconnects.wanted.clear();
        for (backend, entry) in generation.backends.iter().enumerate() {
            let pool = &entry.settings.pool;
            let Some(planned) = &entry.planned_figures else {
                continue;
            };
            // What is parked nowhere, or for other requests only, would be opened for nothing.
            if pool.mode == Mode::Never || pool.purge_delay.is_none() || pool.name.is_some() {
                continue;
            }
            for (at, figures) in planned.iter().enumerate() {
                let index = ServerIndex(at as u16);
                if figures.preconnect == 0 || !entry.table.usable(index) {
                    continue;
                }
                preconnects.wanted.push(Wanted {
                    server: entry.table.at(index).server.id,
                    backend: backend as u16,
                    index,
                });
            }
        }
        preconnects.from = 0;
        let idle = preconnects.wanted.is_empty() && preconnects.opening.is_empty();
        preconnects.next = if idle { session::NEVER } else { *now };
    }

    /// Opens what is missing, if it is time to look.
    pub(super) fn preconnect(&mut self) {
        if self.preconnects.next > self.now {
            return;
        }
        self.give_up_overdue();
        let mut left = OPENS_MAX;
        while let Some(wanted) = self.preconnects.wanted.get(self.preconnects.from).copied() {
            for _ in 0..self.missing(wanted) {
                if left == 0 {
                    return; // the rest in the next turn, which comes at once
                }
                left -= 1;
                if !self.open_in_advance(wanted) {
                    break;
                }
            }
            self.preconnects.from += 1;
        }
        let Preconnects {
            wanted,
            opening,
            next,
            from,
            ..
        } = &mut self.preconnects;
        *from = 0;
        *next = if wanted.is_empty() && opening.is_empty() {
            session::NEVER
        } else {
            self.now + LOOK_EVERY
        };
    }

    /// How many of this worker's part of a target are neither parked nor being opened, while all workers together have
    /// too few.
    fn missing(&mut self, wanted: Wanted) -> u32 {
        let Known { opening, resume } = *self.preconnects.of(wanted.server);
        if resume > self.now || self.draining {
            return 0;
        }
        let entry = &self.tables.get(self.tables.current()).backends[usize::from(wanted.backend)];
        let figures = entry.figures(wanted.index);
        let pool = &self.server(wanted.server).pool;
        let own = pool.parked_by(self.id) + opening;
        // What cannot be parked is nobody's part: each worker would open all that the limit leaves.
        let target = figures.preconnect.min(figures.idle_max.unwrap_or(u32::MAX));
        share(target, self.id, pool.workers())
            .saturating_sub(own)
            .min(figures.to_preconnect(&pool.need.read(), &self.descriptors()))
    }

    /// Begins to open one; `false` if there is no point in another.
    fn open_in_advance(&mut self, wanted: Wanted) -> bool {
        let Wanted {
            server: id,
            backend,
            index,
        } = wanted;
        let server = self.server(id).clone();
        let entry = &self.tables.get(self.tables.current()).backends[usize::from(backend)];
        let settings = &entry.settings;
        let (key, source, deadline) = (
            entry.keys[index.at()].clone(),
            settings.pool.source,
            self.now + settings.connect,
        );
        match settings.pool.strict_max {
            None => server.pool.total().opened(),
            Some(most) if server.pool.total().open_below(most) => {}
            Some(_) => return false,
        }
        // Counted before it is looked at: all workers together stay below the mark.
        self.process.server_connection_opened();
        server.pool.need.opened();
        let descriptors = self.descriptors();
        if descriptors.used > descriptors.low {
            self.uncount(id);
            return false;
        }
        server.statistics.of(self.id).opened(OpenReason::Preconnect);
        let home = self.upstreams.insert(Upstream::Parked {
            ticket: None,
            server: id,
        });
        let stream = Stream::connect(&entry.addresses[index.at()], source).and_then(|mut stream| {
            self.poller.register(&mut stream, token(home))?;
            Ok(stream)
        });
        let Ok(stream) = stream else {
            self.upstreams.remove(home);
            self.uncount(id);
            self.connect_in_advance_failed(id);
            return false;
        };
        let at_once = stream.is_writable();
        *self.upstreams.get_mut(home).expect("just inserted") = Upstream::Opening(Opening {
            connection: Connection {
                stream,
                requests: 0,
                home,
            },
            server: id,
            key,
            deadline,
        });
        self.preconnects.opening.push(home);
        self.preconnects.of(id).opening += 1;
        if at_once {
            self.opening_event(home);
        }
        true
    }

    /// Looks whether a connection that is opened in advance has come.
    pub(super) fn opening_event(&mut self, home: Key) {
        let Some(Upstream::Opening(Opening {
            connection, server, ..
        })) = self.upstreams.get(home)
        else {
            return;
        };
        let (stream, id) = (&connection.stream, *server);
        if !stream.is_writable() && !stream.is_hangup() {
            return;
        }
        match stream.connected() {
            Ok(false) => {}
            Ok(true) => self.park_in_advance(home),
            Err(_) => {
                self.close_opening(home, CloseReason::Error);
                self.connect_in_advance_failed(id);
            }
        }
    }

    /// Parks a connection that has come, unless the server has changed meanwhile, or the pool wants no more.
    fn park_in_advance(&mut self, home: Key) {
        let Some(Upstream::Opening(opening)) = self.upstreams.get(home) else {
            return;
        };
        let (id, descriptors) = (opening.server, self.descriptors());
        let current = self.tables.get(self.tables.current());
        let place = self.homes.get(id.0 as usize).copied().flatten();
        let place = place.map(|home| (&current.backends[usize::from(home.backend)], home.index));
        let Some((entry, index)) = place.filter(|(entry, index)| entry.keys[index.at()] == opening.key)
        else {
            return self.close_opening(home, CloseReason::Maintenance);
        };
        let settings = &entry.settings.pool;
        let released = Released {
            mode: settings.mode,
            private: false,
            maintenance: entry.table.at(index).state == Admin::Maint,
            purge_delay: settings.purge_delay.is_some(),
            reverse: false,
            streams: 0,
            free_streams: 1,
            proven: Proven::after(0),
            reuses_left: None,
            descriptors,
            figures: entry.figures(index),
        };
        let delay = settings.purge_delay;
        let place = self.upstreams.get_mut(home).expect("looked up above");
        let parked = |ticket| Upstream::Parked { ticket, server: id };
        let Upstream::Opening(opening) = std::mem::replace(place, parked(None)) else {
            unreachable!("looked at above")
        };
        self.preconnects.ended(home, id);
        let server = self.servers[id.0 as usize].as_ref().expect("a server in use");
        match server
            .pool
            .release(self.id, &opening.key, &released, opening.connection)
        {
            Ok(ticket) => {
                *place = parked(Some(ticket));
                if let Some(delay) = delay {
                    self.purges.arm(id, self.now + delay.get());
                }
            }
            Err(Refused { connection, reason }) => {
                self.upstreams.remove(home);
                drop(connection);
                self.server(id).pool.need.closed();
                self.count_close(id, reason);
            }
        }
    }

    fn give_up_overdue(&mut self) {
        let now = self.now;
        while let Some((home, id)) = self.preconnects.opening.iter().find_map(|home| {
            let Some(Upstream::Opening(opening)) = self.upstreams.get(*home) else {
                return None;
            };
            (opening.deadline <= now).then_some((*home, opening.server))
        }) {
            self.close_opening(home, CloseReason::Error);
            self.connect_in_advance_failed(id);
        }
    }

    /// Closes what is still being opened, when the worker ends.
    pub(super) fn forget_openings(&mut self) {
        while let Some(home) = self.preconnects.opening.last().copied() {
            self.close_opening(home, CloseReason::Maintenance);
        }
    }

    fn close_opening(&mut self, home: Key, reason: CloseReason) {
        if let Some(Upstream::Opening(opening)) = self.upstreams.remove(home) {
            let Opening {
                connection, server, ..
            } = opening;
            drop(connection);
            self.preconnects.ended(home, server);
            self.server(server).pool.need.closed();
            self.count_close(server, reason);
        }
    }

    /// Nobody waits for it; it is tried again after a while.
    fn connect_in_advance_failed(&mut self, id: ServerId) {
        self.server(id).statistics.of(self.id).connect_failures.count();
        self.preconnects.of(id).resume = self.now + FAILURE_PAUSE;
    }

    /// Takes back the counts of one that was not opened.
    fn uncount(&self, id: ServerId) {
        let pool = &self.server(id).pool;
        pool.need.closed();
        pool.total().closed();
        self.process.server_connection_closed();
    }
}
