//! What a worker does after a response, and with what lies idle: park or close, purge, evict, drain.

use super::agenda::Step;
use super::connections::{Name, Place};
use super::invariant::{Broken, Invariant};
use super::live::Token;
use super::run::Run;
use super::steering::Current;
use super::world::Estimate;
use crate::decide::reuse::{self, CloseReason, Counted, Cut, Figures, Mode, Present, Proven, Released};
use crate::decide::settings::Micros;
use crate::policy::{ServerId, ServerIndex, WorkerId};
use crate::shared::key::PoolKey;
use crate::shared::pool::{PurgeTimer, Refused, Ticket};
use crate::shared::table::Admin;
use std::num::NonZeroU64;

/// Idle private connections of one client at most, as a listener has it by default.
const SESSION_PRIVATE_MAX: usize = 5;

impl Run<'_> {
    /// Whether the connection of a request ends with the response that has just come on it.
    pub(super) fn response_ends_connection(&mut self, token: Token) -> bool {
        let live = self.lives.get(token).expect("it was answered");
        let name = live.connection.expect("it was answered on one");
        let closes_after = self
            .machines
            .model(self.connections.get(name).server)
            .closes_after;
        let connection = self.connections.get_mut(name);
        connection.responses += 1;
        connection.ending |= closes_after.is_some_and(|most| connection.responses >= most);
        connection.ending && connection.streams == 1
    }

    /// The request is over: its connection is parked, left to its client, offered to others, or closed (POOL-32).
    pub(super) fn park(&mut self, token: Token) -> Result<(), Broken> {
        let live = self.lives.get_mut(token).expect("it was answered");
        let Some(name) = live.connection.take() else {
            return Ok(());
        };
        let (client, mode) = (live.client, live.sharing.mode);
        let index = live.server.expect("it was sent to a server");
        let connection = self.connections.get_mut(name);
        connection.streams -= 1;
        if connection.streams > 0 {
            if connection.ending {
                self.withdraw(name);
            } else if mode >= Mode::Aggressive {
                self.offer(name);
            }
            return Ok(());
        }
        self.withdraw(name);
        self.clients[client as usize].own.retain(|own| *own != name);
        let released = self.released(token, name, index);
        let live = self.lives.get(token).expect("looked up above");
        let delay = live.entry().settings.pool.purge_delay;
        let (worker, server) = (
            self.connections.get(name).worker,
            self.connections.get(name).server,
        );
        let kept = if released.mode == Mode::Never {
            self.keep_private(name, client, &released)
        } else {
            self.release(worker, server, self.key_of(token, index), &released, name)
                .map(|_ticket| Place::Parked)
        };
        match kept {
            Ok(place) => {
                self.connections
                    .go(name, Place::Busy, place)
                    .map_err(|wrong| self.broken(wrong))?;
                if place == Place::Parked {
                    self.arm(worker, server, delay);
                }
                Ok(())
            }
            Err(reason) => {
                let pool = self.pool(server);
                pool.need.closed();
                pool.total().closed();
                self.forget_connection(name, Place::Busy, reason)
            }
        }
    }

    fn released(&self, token: Token, name: Name, index: ServerIndex) -> Released {
        let live = self.lives.get(token).expect("it was answered");
        let (connection, pool) = (self.connections.get(name), &live.entry().settings.pool);
        let proven = if self.is_multiplexed(connection.server) {
            Proven::Safe
        } else {
            Proven::after(connection.responses)
        };
        Released {
            mode: live.sharing.mode,
            private: false,
            maintenance: if self.is_current(live) {
                live.entry().table.at(index).state == Admin::Maint
            } else {
                let newest = &self.workers[usize::from(live.worker.0)].generation;
                self.is_retired(newest, connection.server)
            },
            purge_delay: pool.purge_delay.is_some(),
            reverse: false,
            streams: connection.streams,
            free_streams: self.streams(connection.server),
            proven,
            reuses_left: reuse::reuses_left(pool.max_reuse, connection.responses),
            descriptors: self.descriptors(),
            figures: live.entry().figures(index),
        }
    }

    /// Whether nobody may keep connections to a server any more (POOL-52).
    fn is_retired(&self, generation: &Current, server: ServerId) -> bool {
        let state = generation.backends.iter().find_map(|entry| {
            let at = entry.table.find(server)?;
            Some(entry.table.at(at).state)
        });
        state.is_none_or(|state| state == Admin::Maint)
    }

    fn release(
        &self,
        worker: WorkerId,
        server: ServerId,
        key: &PoolKey,
        released: &Released,
        name: Name,
    ) -> Result<Ticket, CloseReason> {
        let pool = self.pool(server);
        match self.world.estimate {
            Estimate::On => pool
                .release(worker, key, released, name)
                .map_err(|Refused { reason, .. }| reason),
            Estimate::Off => {
                let present = Present {
                    need: 0,
                    ..pool.present(worker, released.figures.rule)
                };
                reuse::keep(released, &present)?;
                Ok(pool.park(worker, key, released.proven, name))
            }
        }
    }

    /// Leaves a connection to its client (POOL-60, 61).
    fn keep_private(&mut self, name: Name, client: u32, released: &Released) -> Result<Place, CloseReason> {
        let held = self.clients[client as usize].own.len();
        reuse::keep_private(held, SESSION_PRIVATE_MAX, released.maintenance)?;
        if released.reuses_left == Some(0) {
            return Err(CloseReason::MaxReuse);
        }
        self.clients[client as usize].own.push(name);
        self.pool(self.connections.get(name).server).need.closed();
        Ok(Place::Private)
    }

    /// A client that has sent all of its requests goes, and comes back as a new one.
    pub(super) fn end_session(&mut self, client: u32, stream: Option<u32>) -> Result<(), Broken> {
        let most = self.session_max(stream);
        let state = &mut self.clients[client as usize];
        if state.on_their_way > 0 || most.is_none_or(|most| state.requests < most) {
            return Ok(());
        }
        (state.requests, state.last) = (0, None);
        for name in std::mem::take(&mut state.own) {
            self.close_private(name, CloseReason::Private)?;
        }
        Ok(())
    }

    fn close_private(&mut self, name: Name, reason: CloseReason) -> Result<(), Broken> {
        self.pool(self.connections.get(name).server).total().closed();
        self.forget_connection(name, Place::Private, reason)
    }

    fn arm(&mut self, worker: WorkerId, server: ServerId, delay: Option<NonZeroU64>) {
        let at = self.timer_of(worker, server);
        if let Some(delay) = delay
            && !std::mem::replace(&mut self.armed[at], true)
        {
            self.agenda
                .enter(self.now + delay.get(), worker, Step::Purge(server.0));
        }
    }

    fn timer_of(&self, worker: WorkerId, server: ServerId) -> usize {
        server.0 as usize * usize::from(self.world.workers) + usize::from(worker.0)
    }

    /// The purge timer of a server, at one worker (POOL-40).
    pub(super) fn purge(&mut self, worker: WorkerId, server: ServerId) -> Result<(), Broken> {
        let at = self.timer_of(worker, server);
        self.armed[at] = false;
        let generation = &self.workers[usize::from(worker.0)].generation;
        let settings = generation.backends.iter().find_map(|entry| {
            let at = entry.table.find(server)?;
            Some((entry.settings.pool.purge_delay?, entry.figures(at)))
        });
        let Some((delay, figures)) = settings else {
            return Ok(());
        };
        let mut victims = Vec::new();
        let timer = match self.world.estimate {
            Estimate::On => {
                let period: Micros = reuse::period(self.now, delay);
                self.pool(server).purge(worker, period, &figures, &mut victims)
            }
            Estimate::Off => self.purge_without_estimate(worker, server, &figures, &mut victims),
        };
        for victim in victims {
            self.pool(server).total().closed();
            self.forget_connection(victim, Place::Parked, CloseReason::Purge)?;
        }
        match timer {
            PurgeTimer::RunsOn => self.arm(worker, server, Some(delay)),
            PurgeTimer::Stops => {}
        }
        self.check(server)
    }

    /// The same cut, of what the counters say at this instant and nothing else.
    fn purge_without_estimate(
        &self,
        worker: WorkerId,
        server: ServerId,
        figures: &Figures,
        victims: &mut Vec<Name>,
    ) -> PurgeTimer {
        let pool = self.pool(server);
        let counted = Counted {
            max_used: 0,
            need: 0,
            ..pool.need.read()
        };
        let part = Cut::of(counted, figures).part(pool.parked_by(worker));
        victims.extend(
            (0..part)
                .filter_map(|_| pool.evict(worker))
                .map(|evicted| evicted.connection),
        );
        match pool.parked_by(worker) {
            0 => PurgeTimer::Stops,
            _ => PurgeTimer::RunsOn,
        }
    }

    /// Closes the oldest idle connection of a server (POOL-50).
    pub(super) fn evict(&mut self, worker: WorkerId, server: ServerId) -> Result<(), Broken> {
        let pool = self.pool(server);
        let Some(evicted) = pool.evict(worker) else {
            return Ok(());
        };
        pool.total().closed();
        self.forget_connection(evicted.connection, Place::Parked, CloseReason::Evicted)
    }

    /// A connection is closed; the pool's counters know it already.
    pub(super) fn forget_connection(
        &mut self,
        name: Name,
        place: Place,
        reason: CloseReason,
    ) -> Result<(), Broken> {
        self.tally.close(reason);
        match self.connections.close(name, place) {
            Ok(_server) => Ok(()),
            Err(wrong) => Err(self.broken(wrong)),
        }
    }

    /// Closes all that is left, when nobody asks any more (POOL-52). It is in no second's tally.
    pub(super) fn drain(&mut self) -> Result<(), Broken> {
        for client in 0..self.clients.len() {
            for name in std::mem::take(&mut self.clients[client].own) {
                self.close_private(name, CloseReason::Private)?;
            }
        }
        for at in 0..self.servers.len() {
            let server = ServerId(at as u32);
            for worker in 0..self.world.workers {
                self.drain_shard(WorkerId(worker), server)?;
            }
            self.nothing_left(server)?;
        }
        for entry in &self.current.backends {
            let queued = entry.table.queued();
            if queued > 0 {
                let seen = format!("{queued} wait in the queue of backend {}", entry.table.name);
                return Err(self.broken((Invariant::AllDrains, seen)));
            }
        }
        Ok(())
    }

    /// Closes what a worker has parked of a server.
    fn drain_shard(&mut self, worker: WorkerId, server: ServerId) -> Result<(), Broken> {
        let mut drained = Vec::new();
        self.pool(server).drain(worker, &mut drained);
        for name in drained {
            self.pool(server).total().closed();
            self.forget_connection(name, Place::Parked, CloseReason::Maintenance)?;
        }
        Ok(())
    }

    /// Closes what a worker has idle of servers that are in maintenance or gone since `former` (POOL-52).
    pub(super) fn close_retired(&mut self, worker: WorkerId, former: &Current) -> Result<(), Broken> {
        let now = self.workers[usize::from(worker.0)].generation.clone();
        for entry in &former.backends {
            for known in &entry.table.entries {
                let id = known.server.id;
                if known.state != Admin::Maint && self.is_retired(&now, id) {
                    self.drain_shard(worker, id)?;
                    self.close_private_of(worker, id)?;
                    self.check(id)?;
                }
            }
        }
        Ok(())
    }

    /// Closes the idle private connections that clients of a worker have to a server.
    fn close_private_of(&mut self, worker: WorkerId, server: ServerId) -> Result<(), Broken> {
        for client in 0..self.clients.len() {
            if self.clients[client].worker != worker {
                continue;
            }
            let connections = &self.connections;
            let goes = |name: &Name| {
                let connection = connections.get(*name);
                connection.server == server && connection.place == Place::Private
            };
            let own = &mut self.clients[client].own;
            let gone: Vec<Name> = own.extract_if(.., |name| goes(name)).collect();
            for name in gone {
                self.close_private(name, CloseReason::Maintenance)?;
            }
        }
        Ok(())
    }

    fn nothing_left(&self, server: ServerId) -> Result<(), Broken> {
        let (entry, there) = (&self.servers[server.0 as usize], self.connections.of(server));
        let (counted, total) = (entry.pool.need.read(), entry.pool.total().read());
        let left = [
            counted.used,
            counted.idle,
            total,
            there.in_all(),
            entry.slots.served(),
            entry.slots.waiting(),
        ];
        if left == [0; 6] {
            return Ok(());
        }
        let seen = format!(
            "server {}: {left:?} used, idle, in all, open, served, waiting",
            entry.name
        );
        Err(self.broken((Invariant::AllDrains, seen)))
    }
}
