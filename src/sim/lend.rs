//! A connection for a request that has a slot: one that is there, or a new one.

use super::connections::{Name, Place};
use super::decision::Lent;
use super::invariant::{Broken, Invariant};
use super::live::Token;
use super::run::Run;
use crate::decide::exchange::Closing;
use crate::decide::reuse::{self, CloseReason, Gate, Mode, OpenReason, Retryable, Wanted, siblings};
use crate::policy::{Draw, Fresh, ServerId, ServerIndex, WorkerId};
use crate::shared::key::PoolKey;
use crate::shared::pool::Found;

impl Run<'_> {
    /// Takes a connection that is there for a request, if one may be used (POOL-10).
    pub(super) fn find_connection(&mut self, token: Token, index: ServerIndex) -> Result<bool, Broken> {
        self.make_key(token, index);
        let live = self.lives.get(token).expect("it looks for a connection");
        let (worker, client, mode) = (live.worker, live.client, live.sharing.mode);
        let server = live.entry().table.at(index).server.id;
        let covers_reuse = live.entry().settings.effort.retry_on.covers_reuse();
        let fresh = live.sharing.fresh == Fresh::Yes;
        if self.descriptors().evict() {
            self.evict(worker, server)?;
        }
        if let Some(own) = self.own(token, index)? {
            return self.hold(token, own, Lent::Attached);
        }
        if self.is_multiplexed(server)
            && mode != Mode::Never
            && let Some(busy) = self.pool(server).join(worker, self.key_of(token, index))
        {
            return self.hold(token, Name::of(busy), Lent::Joined);
        }
        let first = self.clients[client as usize].requests == 1;
        let retryable = if covers_reuse || !first {
            Retryable::Yes
        } else {
            Retryable::No
        };
        let found = match reuse::wanted(mode, retryable) {
            _ if fresh => Err(OpenReason::Fresh),
            Ok(wanted) => self.search(token, index, wanted),
            Err(reason) => Err(reason),
        };
        match found {
            Ok(found) => self.found(token, found),
            Err(reason) => {
                self.lives.get_mut(token).expect("looked up above").open_reason = reason;
                Ok(false)
            }
        }
    }

    /// The search, past a sibling that is at its shard if the seed says so.
    fn search(
        &mut self,
        token: Token,
        index: ServerIndex,
        wanted: Wanted,
    ) -> Result<Found<Name>, OpenReason> {
        let workers = self.world.workers;
        let busy = (workers > 1 && self.dice.chance(self.world.contention))
            .then(|| self.dice.draw(u32::from(workers) - 1) as usize);
        let live = self.lives.get(token).expect("it looks for a connection");
        let (worker, pool) = (live.worker, &live.entry().table.at(index).server.pool);
        let gate = Gate {
            sharing: self.world.sharing,
            reverse: false,
            figures: live.entry().figures(index),
            descriptors: self.descriptors(),
        };
        let busy = busy.and_then(|drawn| siblings(worker, workers, 0).nth(drawn));
        let _at_it = busy.map(|sibling| pool.occupy(sibling));
        pool.find(worker, self.key_of(token, index), wanted, &gate)
    }

    fn found(&mut self, token: Token, found: Found<Name>) -> Result<bool, Broken> {
        let live = self.lives.get(token).expect("it looks for a connection");
        let (worker, client, mode) = (live.worker, live.client, live.sharing.mode);
        let (name, owner, lent) = match found {
            Found::Own(name) => (name, worker, Lent::Own),
            Found::Stolen { connection, from } => (connection, from, Lent::TakenOver(from)),
        };
        self.connections
            .found(name, owner)
            .map_err(|wrong| self.broken(wrong))?;
        self.connections.get_mut(name).worker = worker;
        if let Lent::TakenOver(from) = lent {
            self.spent += self.world.costs.takeover;
            self.tally.taken_over += 1;
            self.report.taken_over(worker, from);
        }
        self.hold(token, name, lent)?;
        self.attach_or_offer(name, client, mode);
        Ok(true)
    }

    /// One more request on a connection that was there.
    fn hold(&mut self, token: Token, name: Name, lent: Lent) -> Result<bool, Broken> {
        let live = self.lives.get_mut(token).expect("whose search it was");
        let (client, mode) = (live.client, live.sharing.mode);
        live.connection = Some(name);
        live.open_reason = OpenReason::Retry; // should it die and a fresh one be opened
        let (worker, index) = (live.worker, live.server.expect("it was chosen"));
        let statistics = live.entry().table.at(index).server.statistics.of(worker);
        statistics.reuses.count();
        let connection = self.connections.get_mut(name);
        let others = mode <= Mode::Safe && connection.streams > 0 && connection.client != client;
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
        self.tally.requests += 1;
        self.tally.reused += 1;
        self.tally.joined += u64::from(lent == Lent::Joined);
        self.report.lent(false);
        self.note_lent(token, serial, lent);
        Ok(true)
    }

    /// Begins a new connection; `None`: there is no place for one (POOL-51).
    pub(super) fn open(&mut self, token: Token, index: ServerIndex) -> Result<Option<Name>, Broken> {
        self.make_key(token, index);
        let live = self.lives.get(token).expect("it connects");
        let (worker, client, reason) = (live.worker, live.client, live.open_reason);
        let most = live.entry().settings.pool.strict_max;
        let mode = live.sharing.mode;
        let server = live.entry().table.at(index).server.clone();
        if !self.reserve(worker, server.id, most)? {
            return Ok(None);
        }
        server.pool.need.opened();
        server.statistics.of(worker).opened(reason);
        let name = self.connections.open(server.id, worker, client);
        self.connections.get_mut(name).key = Some(self.key_of(token, index).clone());
        let open = self.connections.of(server.id).in_all();
        if most.is_some_and(|most| open > most) {
            let seen = format!("server {} has {open} connections", server.name);
            return Err(self.broken((Invariant::StrictLimit, seen)));
        }
        if self.is_multiplexed(server.id) && mode == Mode::Safe {
            self.clients[client as usize].own.push(name);
        }
        self.tally.requests += 1;
        self.tally.open(reason);
        self.report.lent(true);
        let serial = self.connections.get(name).serial;
        self.note_lent(token, serial, Lent::Opened(reason));
        Ok(Some(name))
    }

    /// The connection of a request is open.
    pub(super) fn connection_is_open(&mut self, token: Token) -> Result<(), Broken> {
        let live = self.lives.get(token).expect("it connects");
        let (name, mode) = (live.connection.expect("it is being opened"), live.sharing.mode);
        self.connections
            .go(name, Place::Opening, Place::Busy)
            .map_err(|wrong| self.broken(wrong))?;
        if mode == Mode::Always && self.is_multiplexed(self.connections.get(name).server) {
            self.offer(name);
        }
        Ok(())
    }

    /// Counts a connection that is about to be opened (POOL-51).
    fn reserve(&mut self, worker: WorkerId, server: ServerId, most: Option<u32>) -> Result<bool, Broken> {
        let pool = self.pool(server);
        let Some(most) = most else {
            pool.total().opened();
            return Ok(true);
        };
        let mut victims = Vec::new();
        let reserved = pool.reserve(worker, most, |evicted| victims.push(evicted.connection));
        for victim in victims {
            self.forget_connection(victim, Place::Parked, CloseReason::Evicted)?;
        }
        Ok(reserved.is_ok())
    }

    /// The client's own connection to that server: a private one that is idle, or one attached to it with a free stream.
    fn own(&mut self, token: Token, index: ServerIndex) -> Result<Option<Name>, Broken> {
        let live = self.lives.get(token).expect("it looks for a connection");
        let client = live.client;
        if self.clients[client as usize].own.is_empty() {
            return Ok(None);
        }
        let server = live.entry().table.at(index).server.id;
        let key = self.key_of(token, index);
        let fits = |name: &&Name| {
            let connection = self.connections.get(**name);
            connection.server == server
                && connection.key.as_ref() == Some(key)
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

    // ---- keys ----------------------------------------------------------------------------------------------------

    /// Makes the key of a request's connections to a server, where requests share them by more than the server.
    fn make_key(&mut self, token: Token, index: ServerIndex) {
        let live = self.lives.get_mut(token).expect("it needs a connection");
        if !live.sharing.has_key() {
            return;
        }
        let base = &live.generation.backends[usize::from(live.backend)].keys[index.at()];
        let (name, tag) = (live.sharing.name.as_deref(), live.sharing.tag.as_deref());
        let keys = &mut self.workers[usize::from(live.worker.0)].keys;
        live.key = Some(keys.with(&self.secret, base, name, tag));
    }

    /// The key of a request's connections to a server.
    pub(super) fn key_of(&self, token: Token, index: ServerIndex) -> &PoolKey {
        let live = self.lives.get(token).expect("it needs a connection");
        let plain = || &live.entry().keys[index.at()];
        live.key.as_ref().unwrap_or_else(plain)
    }

    // ---- multiplexed connections ---------------------------------------------------------------------------------

    /// A multiplexed connection that was parked is its client's alone, or everybody's (POOL-14).
    fn attach_or_offer(&mut self, name: Name, client: u32, mode: Mode) {
        if !self.is_multiplexed(self.connections.get(name).server) {
            return;
        }
        match mode {
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
        let Some(key) = connection.key.clone().filter(|_| free > 0 && !connection.ending) else {
            return;
        };
        let (worker, pool) = (connection.worker, self.pool(connection.server));
        let ticket = pool.offer(worker, &key, name.busy(), free);
        self.connections.get_mut(name).offer = Some(ticket);
    }

    pub(super) fn withdraw(&mut self, name: Name) {
        let connection = self.connections.get_mut(name);
        if let Some(ticket) = connection.offer.take() {
            let (worker, server) = (connection.worker, connection.server);
            self.pool(server).withdraw(worker, ticket);
        }
    }

    pub(super) fn streams(&self, server: ServerId) -> u32 {
        self.machines.model(server).streams
    }

    pub(super) fn is_multiplexed(&self, server: ServerId) -> bool {
        self.streams(server) > 1
    }

    // ---- closing -------------------------------------------------------------------------------------------------

    /// Closes the connection of a request.
    pub(super) fn close_server(&mut self, token: Token, closing: Closing) -> Result<(), Broken> {
        self.drop_connection(token, reason_of(closing))
    }

    /// Closes the connection of a request, if it has one.
    pub(super) fn drop_connection(&mut self, token: Token, reason: CloseReason) -> Result<(), Broken> {
        let Some(name) = self.lives.get_mut(token).and_then(|live| live.connection.take()) else {
            return Ok(());
        };
        self.withdraw(name);
        let connection = self.connections.get_mut(name);
        connection.streams = connection.streams.saturating_sub(1);
        connection.ending = true;
        let (server, place, client) = (connection.server, connection.place, connection.client);
        // Others whose streams it carries have an end of their own.
        if connection.streams > 0 {
            return Ok(());
        }
        self.clients[client as usize].own.retain(|own| *own != name);
        let pool = self.pool(server);
        pool.need.closed();
        pool.total().closed();
        self.forget_connection(name, place, reason)
    }
}

fn reason_of(closing: Closing) -> CloseReason {
    match closing {
        Closing::Remote => CloseReason::Remote,
        Closing::Error => CloseReason::Error,
        Closing::ExcessData => CloseReason::ExcessData,
        Closing::Unfinished | Closing::Aborted | Closing::Tunnel => CloseReason::NotReusable,
    }
}
