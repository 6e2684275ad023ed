//! What a worker does for a request that has a slot: a connection.

use super::agenda::Step;
use super::connections::{Name, Place};
use super::invariant::{Broken, Invariant};
use super::report::{Decision, Lent};
use super::run::{Exchange, Run};
use super::waiting::{Acquired, Asking};
use crate::decide::reuse::{self, CloseReason, Gate, Mode, OpenReason, Retryable, Wanted, siblings};
use crate::decide::settings::Micros;
use crate::policy::{Draw, ServerIndex, WorkerId};
use crate::shared::pool::Found;

/// A client that was refused comes again after its time to think, and after this in any case.
const AFTER_A_REFUSAL: Micros = 1_000;

impl Run<'_> {
    /// A request; the answer is what it costs the worker.
    pub(super) fn request(
        &mut self,
        worker: WorkerId,
        client: u32,
        stream: Option<u32>,
    ) -> Result<Micros, Broken> {
        self.asked += 1;
        let asking = self.asking(worker, client, stream);
        let cost = self.cluster.costs.request;
        match self.acquire(asking)? {
            Acquired::Slot(server) => self.send(asking, server, cost),
            Acquired::Waits => Ok(cost),
            Acquired::Nothing => Ok(self.refuse(asking, cost)),
        }
    }

    /// A refused client comes again later.
    pub(super) fn refuse(&mut self, asking: Asking, cost: Micros) -> Micros {
        self.tally.refused += 1;
        self.think(asking.worker, asking.stream, cost + AFTER_A_REFUSAL);
        cost
    }

    /// Goes on with a slot of that server; `cost` is what it has cost so far.
    pub(super) fn send(
        &mut self,
        asking: Asking,
        server: ServerIndex,
        cost: Micros,
    ) -> Result<Micros, Broken> {
        let Asking {
            worker,
            client,
            stream,
            ..
        } = asking;
        let Some((connection, lent)) = self.lend(worker, client, server)? else {
            return Ok(self.refuse(asking, cost));
        };
        self.report.served_by[server.at()] += 1;
        let state = &mut self.clients[client as usize];
        state.requests += 1;
        state.on_their_way += 1;
        let exchange = self.exchanges.insert(Exchange {
            client,
            stream,
            server,
            connection,
        }) as u32;
        self.tell(worker, client, server, connection, lent);
        self.check(server)?;
        let costs = self.cluster.costs;
        let cost = cost
            + match lent {
                Lent::Opened(_) => costs.open,
                Lent::TakenOver(_) => costs.takeover,
                Lent::Attached | Lent::Joined | Lent::Own => 0,
            };
        let (after, step) = match lent {
            Lent::Opened(_) => (self.cluster.connect, Step::Opened(exchange)),
            _ => (self.service(server), Step::Answered(exchange)),
        };
        self.agenda.enter(self.now + cost + after, worker, step);
        Ok(cost)
    }

    /// The connection of an exchange is open: the request goes out on it.
    pub(super) fn opened(&mut self, exchange: u32) -> Result<Micros, Broken> {
        let Exchange {
            server, connection, ..
        } = self.exchanges[exchange as usize];
        self.connections
            .go(connection, Place::Opening, Place::Busy)
            .map_err(|wrong| self.broken(wrong))?;
        if self.cluster.pool.mode == Mode::Always {
            self.offer(connection);
        }
        let worker = self.connections.get(connection).worker;
        let at = self.now + self.service(server);
        self.agenda.enter(at, worker, Step::Answered(exchange));
        Ok(0)
    }

    /// A connection for a request (POOL-10); `None`: there is no place for one, and the slot is given back.
    fn lend(
        &mut self,
        worker: WorkerId,
        client: u32,
        server: ServerIndex,
    ) -> Result<Option<(Name, Lent)>, Broken> {
        if self.descriptors().evict() {
            self.evict(worker, server)?;
        }
        if let Some(own) = self.own(client, server)? {
            return self.one_more(own, client, Lent::Attached).map(Some);
        }
        if self.is_multiplexed(server)
            && self.cluster.pool.mode != Mode::Never
            && let Some(busy) = self.pool(server).join(worker, &self.key)
        {
            return self.one_more(Name::of(busy), client, Lent::Joined).map(Some);
        }
        let first = self.clients[client as usize].requests == 0;
        let retryable = if first { Retryable::No } else { Retryable::Yes };
        let found = match reuse::wanted(self.cluster.pool.mode, retryable) {
            Ok(wanted) => self.find(worker, server, wanted),
            Err(reason) => Err(reason),
        };
        match found {
            Ok(found) => self.found(worker, client, found).map(Some),
            Err(reason) if self.reserve(worker, server)? => {
                let connection = self.open(worker, client, server)?;
                Ok(Some((connection, Lent::Opened(reason))))
            }
            Err(_) => {
                self.leave(server);
                Ok(None)
            }
        }
    }

    /// The search, past a sibling that is at its shard if the seed says so.
    fn find(
        &mut self,
        worker: WorkerId,
        server: ServerIndex,
        wanted: Wanted,
    ) -> Result<Found<Name>, OpenReason> {
        let gate = Gate {
            sharing: self.cluster.sharing,
            reverse: false,
            figures: self.cluster.pool.figures,
            descriptors: self.descriptors(),
        };
        let workers = self.cluster.workers;
        let busy = (workers > 1 && self.dice.chance(self.cluster.contention))
            .then(|| self.dice.draw(u32::from(workers) - 1) as usize)
            .and_then(|drawn| siblings(worker, workers, 0).nth(drawn));
        let pool = self.pool(server);
        let _at_it = busy.map(|sibling| pool.occupy(sibling));
        pool.find(worker, &self.key, wanted, &gate)
    }

    fn found(&mut self, worker: WorkerId, client: u32, found: Found<Name>) -> Result<(Name, Lent), Broken> {
        let (name, owner, lent) = match found {
            Found::Own(name) => (name, worker, Lent::Own),
            Found::Stolen { connection, from } => (connection, from, Lent::TakenOver(from)),
        };
        self.connections
            .found(name, owner)
            .map_err(|wrong| self.broken(wrong))?;
        self.connections.get_mut(name).worker = worker;
        let lent = self.one_more(name, client, lent)?;
        self.attach_or_offer(name, client);
        Ok(lent)
    }

    fn open(&mut self, worker: WorkerId, client: u32, server: ServerIndex) -> Result<Name, Broken> {
        self.pool(server).need.opened();
        let name = self.connections.open(server, worker, client);
        let open = self.connections.of(server).in_all();
        if self.cluster.pool.strict_max.is_some_and(|most| open > most) {
            let seen = format!("server {} has {open} connections", server.0);
            return Err(self.broken((Invariant::StrictLimit, seen)));
        }
        if self.is_multiplexed(server) && self.cluster.pool.mode == Mode::Safe {
            self.clients[client as usize].own.push(name);
        }
        Ok(name)
    }

    /// Counts a connection that is about to be opened (POOL-51).
    fn reserve(&mut self, worker: WorkerId, server: ServerIndex) -> Result<bool, Broken> {
        let pool = &self.table.at(server).server.pool;
        let Some(most) = self.cluster.pool.strict_max else {
            pool.total().opened();
            return Ok(true);
        };
        let mut victims = Vec::new();
        let reserved = pool.reserve(worker, most, |evicted| victims.push(evicted.connection));
        for victim in victims {
            self.forget(victim, Place::Parked, CloseReason::Evicted)?;
        }
        Ok(reserved.is_ok())
    }

    /// The client's own connection to that server: a private one that is idle, or one attached to it with a free stream.
    fn own(&mut self, client: u32, server: ServerIndex) -> Result<Option<Name>, Broken> {
        let fits = |name: &&Name| {
            let connection = self.connections.get(**name);
            connection.server == server
                && match connection.place {
                    Place::Private => true,
                    Place::Busy => !connection.ending && connection.streams < self.streams(server),
                    Place::Opening | Place::Parked => false,
                }
        };
        let Some(&name) = self.clients[client as usize].own.iter().find(fits) else {
            return Ok(None);
        };
        if self.connections.get(name).place == Place::Private {
            self.connections
                .go(name, Place::Private, Place::Busy)
                .map_err(|wrong| self.broken(wrong))?;
            self.pool(server).need.opened();
            if !self.is_multiplexed(server) {
                self.clients[client as usize].own.retain(|own| *own != name);
            }
        }
        Ok(Some(name))
    }

    /// One more request of this client on a connection.
    fn one_more(&mut self, name: Name, client: u32, lent: Lent) -> Result<(Name, Lent), Broken> {
        let strict = self.cluster.pool.mode <= Mode::Safe;
        let connection = self.connections.get_mut(name);
        let others = strict && connection.streams > 0 && connection.client != client;
        connection.streams += 1;
        connection.client = client;
        let (serial, streams, server) = (connection.serial, connection.streams, connection.server);
        if others {
            let seen = format!("connection {serial} is at another client, and client {client} has it, too");
            return Err(self.broken((Invariant::OneClientAtATime, seen)));
        }
        if streams > self.streams(server) {
            let seen = format!("connection {serial} carries {streams}");
            return Err(self.broken((Invariant::Streams, seen)));
        }
        Ok((name, lent))
    }

    /// A multiplexed connection that was parked is its client's alone, or everybody's (POOL-14).
    fn attach_or_offer(&mut self, name: Name, client: u32) {
        if !self.is_multiplexed(self.connections.get(name).server) {
            return;
        }
        match self.cluster.pool.mode {
            Mode::Never => {}
            Mode::Safe => self.clients[client as usize].own.push(name),
            Mode::Aggressive | Mode::Always => self.offer(name),
        }
    }

    /// Offers the free streams of a busy connection, as many as there are now (POOL-10 b, 15).
    pub(super) fn offer(&mut self, name: Name) {
        self.withdraw(name);
        let connection = self.connections.get(name);
        let free = self.streams(connection.server).saturating_sub(connection.streams);
        if free == 0 || connection.ending {
            return;
        }
        let (worker, pool) = (connection.worker, self.pool(connection.server));
        let ticket = pool.offer(worker, &self.key, name.busy(), free);
        self.connections.get_mut(name).offer = Some(ticket);
    }

    pub(super) fn withdraw(&mut self, name: Name) {
        let connection = self.connections.get_mut(name);
        if let Some(ticket) = connection.offer.take() {
            let (worker, server) = (connection.worker, connection.server);
            self.pool(server).withdraw(worker, ticket);
        }
    }

    fn tell(&mut self, worker: WorkerId, client: u32, server: ServerIndex, name: Name, lent: Lent) {
        self.tally.requests += 1;
        self.tally.reused += u64::from(!matches!(lent, Lent::Opened(_)));
        match lent {
            Lent::Opened(reason) => self.tally.open(reason),
            Lent::Joined => self.tally.joined += 1,
            Lent::TakenOver(from) => {
                self.tally.taken_over += 1;
                self.report.taken_by[usize::from(worker.0)] += 1;
                self.report.given_by[usize::from(from.0)] += 1;
            }
            Lent::Attached | Lent::Own => {}
        }
        if self.report.decisions.len() < self.cluster.decisions_max {
            self.report.decisions.push(Decision {
                at: self.now,
                client,
                worker,
                server,
                connection: u64::from(self.connections.get(name).serial),
                lent,
            });
        }
    }

    fn service(&mut self, server: ServerIndex) -> Micros {
        self.dice.time(self.cluster.servers[server.at()].service).max(1)
    }

    pub(super) fn streams(&self, server: ServerIndex) -> u32 {
        self.cluster.servers[server.at()].streams
    }

    pub(super) fn is_multiplexed(&self, server: ServerIndex) -> bool {
        self.streams(server) > 1
    }
}
