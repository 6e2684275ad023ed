//! What a worker does after a response, and with what lies idle: park or close, purge, evict, drain.

use super::agenda::Step;
use super::connections::{Name, Place};
use super::invariant::{Broken, Invariant};
use super::run::{Exchange, Run};
use super::{Estimate, Load};
use crate::decide::reuse::{self, CloseReason, Counted, Cut, Mode, Present, Proven, Released};
use crate::decide::settings::Micros;
use crate::policy::{ServerIndex, WorkerId};
use crate::shared::pool::{PurgeTimer, Refused, Ticket};

/// Idle private connections of one client at most, as a listener has it by default.
const SESSION_PRIVATE_MAX: usize = 5;

impl Run<'_> {
    /// A response is here; the answer is what it costs the worker.
    pub(super) fn answered(&mut self, exchange: u32) -> Result<Micros, Broken> {
        let cost = self.cluster.costs.response;
        let Exchange {
            client,
            stream,
            server,
            connection: name,
        } = self.exchanges.remove(exchange as usize);
        let closes_after = self.cluster.servers[server.at()].closes_after;
        let connection = self.connections.get_mut(name);
        let worker = connection.worker;
        connection.streams -= 1;
        connection.responses += 1;
        connection.ending |= closes_after.is_some_and(|most| connection.responses >= most);
        if connection.streams == 0 {
            self.over(name, client)?;
        } else if connection.ending {
            self.withdraw(name);
        } else if self.cluster.pool.mode >= Mode::Aggressive {
            self.offer(name);
        }
        self.leave(server);
        self.check(server)?;
        self.clients[client as usize].on_their_way -= 1;
        self.end_session(client)?;
        self.think(worker, stream, cost);
        Ok(cost)
    }

    /// The last request on a connection is over: it is parked, left to its client, or closed (POOL-32).
    fn over(&mut self, name: Name, client: u32) -> Result<(), Broken> {
        self.withdraw(name);
        self.clients[client as usize].own.retain(|own| *own != name);
        let connection = self.connections.get(name);
        let (worker, server, ending) = (connection.worker, connection.server, connection.ending);
        let released = self.released(name);
        let kept = if ending {
            Err(CloseReason::NotReusable)
        } else if released.mode == Mode::Never {
            self.keep_private(name, client, &released)
        } else {
            self.release(worker, server, &released, name)
                .map(|_ticket| Place::Parked)
        };
        match kept {
            Ok(place) => {
                self.connections
                    .go(name, Place::Busy, place)
                    .map_err(|wrong| self.broken(wrong))?;
                if place == Place::Parked {
                    self.arm(worker, server);
                }
                Ok(())
            }
            Err(reason) => {
                let pool = self.pool(server);
                pool.need.closed();
                pool.total().closed();
                self.forget(name, Place::Busy, reason)
            }
        }
    }

    fn released(&self, name: Name) -> Released {
        let (connection, pool) = (self.connections.get(name), &self.cluster.pool);
        let proven = if self.is_multiplexed(connection.server) {
            Proven::Safe
        } else {
            Proven::after(connection.responses)
        };
        Released {
            mode: pool.mode,
            private: false,
            maintenance: false,
            purge_delay: pool.purge_delay.is_some(),
            reverse: false,
            streams: connection.streams,
            free_streams: self.streams(connection.server),
            proven,
            reuses_left: reuse::reuses_left(pool.max_reuse, connection.responses),
            descriptors: self.descriptors(),
            figures: pool.figures,
        }
    }

    fn release(
        &self,
        worker: WorkerId,
        server: ServerIndex,
        released: &Released,
        name: Name,
    ) -> Result<Ticket, CloseReason> {
        let pool = self.pool(server);
        match self.cluster.estimate {
            Estimate::On => pool
                .release(worker, &self.key, released, name)
                .map_err(|Refused { reason, .. }| reason),
            Estimate::Off => {
                let present = Present {
                    need: 0,
                    ..pool.present(worker, released.figures.rule)
                };
                reuse::keep(released, &present)?;
                Ok(pool.park(worker, &self.key, released.proven, name))
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
    fn end_session(&mut self, client: u32) -> Result<(), Broken> {
        let Load::Clients(clients) = &self.cluster.load else {
            return Ok(());
        };
        let state = &mut self.clients[client as usize];
        if state.on_their_way > 0 || clients.session.is_none_or(|most| state.requests < most) {
            return Ok(());
        }
        state.requests = 0;
        for name in std::mem::take(&mut state.own) {
            self.close_private(name, CloseReason::Private)?;
        }
        Ok(())
    }

    fn close_private(&mut self, name: Name, reason: CloseReason) -> Result<(), Broken> {
        self.pool(self.connections.get(name).server).total().closed();
        self.forget(name, Place::Private, reason)
    }

    fn arm(&mut self, worker: WorkerId, server: ServerIndex) {
        let at = usize::from(worker.0) * self.cluster.servers.len() + server.at();
        if let Some(delay) = self.cluster.pool.purge_delay
            && !std::mem::replace(&mut self.armed[at], true)
        {
            self.agenda
                .enter(self.now + delay.get(), worker, Step::Purge(server.0));
        }
    }

    /// The purge timer of a server, at one worker (POOL-40).
    pub(super) fn purge(&mut self, worker: WorkerId, server: ServerIndex) -> Result<Micros, Broken> {
        let Some(delay) = self.cluster.pool.purge_delay else {
            return Ok(0);
        };
        let at = usize::from(worker.0) * self.cluster.servers.len() + server.at();
        self.armed[at] = false;
        let mut victims = Vec::new();
        let timer = match self.cluster.estimate {
            Estimate::On => {
                let (period, figures) = (reuse::period(self.now, delay), self.cluster.pool.figures);
                self.pool(server).purge(worker, period, &figures, &mut victims)
            }
            Estimate::Off => self.purge_without_estimate(worker, server, &mut victims),
        };
        for victim in victims {
            self.pool(server).total().closed();
            self.forget(victim, Place::Parked, CloseReason::Purge)?;
        }
        match timer {
            PurgeTimer::RunsOn => self.arm(worker, server),
            PurgeTimer::Stops => {}
        }
        self.check(server)?;
        Ok(0)
    }

    /// The same cut, of what the counters say at this instant and nothing else.
    fn purge_without_estimate(
        &self,
        worker: WorkerId,
        server: ServerIndex,
        victims: &mut Vec<Name>,
    ) -> PurgeTimer {
        let pool = self.pool(server);
        let counted = Counted {
            max_used: 0,
            need: 0,
            ..pool.need.read()
        };
        let part = Cut::of(counted, &self.cluster.pool.figures).part(pool.parked_by(worker));
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
    pub(super) fn evict(&mut self, worker: WorkerId, server: ServerIndex) -> Result<(), Broken> {
        let pool = self.pool(server);
        let Some(evicted) = pool.evict(worker) else {
            return Ok(());
        };
        pool.total().closed();
        self.forget(evicted.connection, Place::Parked, CloseReason::Evicted)
    }

    /// A connection is closed; the pool's counters know it already.
    pub(super) fn forget(&mut self, name: Name, place: Place, reason: CloseReason) -> Result<(), Broken> {
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
        for at in 0..self.cluster.servers.len() {
            let server = ServerIndex(at as u16);
            let mut drained = Vec::new();
            for worker in 0..self.cluster.workers {
                self.pool(server).drain(WorkerId(worker), &mut drained);
            }
            for name in drained {
                self.pool(server).total().closed();
                self.forget(name, Place::Parked, CloseReason::Maintenance)?;
            }
            self.nothing_left(server)?;
        }
        let queued = self.table.queued();
        if queued > 0 {
            let seen = format!("{queued} wait in the backend's queue");
            return Err(self.broken((Invariant::AllDrains, seen)));
        }
        Ok(())
    }

    fn nothing_left(&self, server: ServerIndex) -> Result<(), Broken> {
        let (entry, there) = (&self.table.at(server).server, self.connections.of(server));
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
            server.0
        );
        Err(self.broken((Invariant::AllDrains, seen)))
    }
}
