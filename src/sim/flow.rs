//! The life of a request in a run: begun, driven by its machine, over. What the machine commands is carried out as a
//! worker of the proxy does it, with events in virtual time in the place of sockets.

use super::agenda::Step;
use super::consult::{Asking, Entry};
use super::decision::{Chooser, Decision, End, Lent};
use super::invariant::Broken;
use super::live::{Live, Token, Weighed};
use super::machine::Outcome;
use super::message::Numbers;
use super::run::Run;
use super::traffic::Line;
use super::waiting::tell;
use crate::decide::exchange::{
    Afterwards, Arrival, Asked, Budget, Command, ConnectFailure, Event, Exchange, Failure, Found, Timer,
};
use crate::decide::reuse::CloseReason;
use crate::decide::settings::Micros;
use crate::policy::{Draw, ServerId, ServerIndex, WorkerId};
use crate::shared::queue::Grants;
use std::time::Duration;

/// A client that was refused comes again after its time to think, and after this in any case.
const AFTER_A_REFUSAL: Micros = 1_000;

impl<'w> Run<'w> {
    /// A request comes to a worker.
    pub(super) fn request(
        &mut self,
        worker: WorkerId,
        traffic: u16,
        client: u32,
        stream: Option<u32>,
        line: Option<&'w Line>,
    ) -> Result<(), Broken> {
        self.asked += 1;
        self.spent += self.world.costs.request;
        let numbers = Numbers {
            client,
            request: self.asked,
        };
        let usual = &self.world.traffic[usize::from(traffic)];
        let asks = line.and_then(|line| line.asks.as_ref()).or(usual.asks.as_ref());
        let message = &mut self.messages[usize::from(traffic)];
        message.begin(asks, numbers, &mut self.dice);
        let idempotent = message.idempotent();
        let decision = self.report.is_watched().then(|| {
            Box::new(Decision {
                at: self.now,
                client,
                worker,
                asked: message.shown(),
                ..Decision::default()
            })
        });
        let asking = Asking {
            worker,
            client,
            traffic,
            listener: asks.map(|_| usual.listener),
        };
        let generation = self.workers[usize::from(worker.0)].generation.clone();
        let backend = match self.route(asking, &generation) {
            Ok(backend) => backend,
            Err(end) => return self.answer_here(worker, stream, decision, end),
        };
        let entry = &generation.backends[usize::from(backend)];
        let machine = Exchange::new(entry.settings.effort);
        let hash = self.hash_of(asking, entry);
        self.edit(asking, &generation, entry);
        let sharing = self.sharing(asking, entry);
        let session = &mut self.clients[client as usize];
        session.requests += 1;
        session.on_their_way += 1;
        let id = entry.table.id;
        let cookie = session.cookies.iter().find(|(backend, _)| *backend == id);
        let cookie = cookie.map(|(_, server)| *server);
        let [for_picker, for_usher] = self.gather(asking, entry);
        let needs = self.draw_needed(client, entry);
        let mut live = Live {
            worker,
            client,
            stream,
            came: self.now,
            cookie,
            service: line.and_then(|line| line.service),
            decision,
            hash,
            for_picker,
            for_usher,
            needs,
            ..Live::new(machine, generation, backend, sharing)
        };
        if self.report.watches_keys() {
            live.named = Some(self.messages[usize::from(traffic)].key().into());
        }
        live.seat.priority = self.priority;
        let token = self.lives.insert(live);
        self.arrive(token);
        let arrival = Arrival::Whole;
        self.drive(token, Event::Start(Asked { idempotent, arrival }))
    }

    /// Of a hundred requests so many need one server.
    fn draw_needed(&mut self, client: u32, entry: &Entry) -> Option<ServerId> {
        let percent = self.world.tied;
        let needs = percent > 0 && self.dice.draw(100) < u32::from(percent);
        let entries = &entry.table.entries;
        needs.then(|| entries[client as usize % entries.len()].server.id)
    }

    /// Tells a request what happened and does what it wants.
    pub(super) fn drive(&mut self, token: Token, event: Event) -> Result<(), Broken> {
        let Some(live) = self.lives.get_mut(token) else {
            return Ok(());
        };
        let commands = live.machine.on(event);
        for command in commands.as_slice() {
            self.carry_out(token, *command)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, token: Token, command: Command) -> Result<(), Broken> {
        match command {
            Command::Choose(wish) => {
                let chosen = self.choose(token, wish)?;
                self.drive(token, Event::Chosen(chosen))
            }
            Command::TakeSlot(server) => {
                let taken = self.take_slot(token, server)?;
                self.drive(token, Event::Slot(taken))
            }
            Command::ReleaseSlot(_) => self.release_slot(token),
            Command::Wait(place) => self.wait(token, place),
            Command::Charge => {
                let budget = self.charge(token);
                self.drive(token, Event::Charged(budget))
            }
            Command::Lend(server) => {
                let found = self.lend(token, server)?;
                self.drive(token, Event::Lent(found))
            }
            Command::Connect(server) => self.connect(token, server),
            Command::Send => self.send(token),
            Command::Pause => {
                let settings = &self.lives.get(token).expect("it pauses").entry().settings;
                let pause = settings.turn_around.min(settings.connect);
                self.enter_attempt(token, self.now + pause, Step::PauseOver);
                Ok(())
            }
            Command::CountRetry(_) => self.count_attempt(token, |tally| &mut tally.retries),
            Command::CountRedispatch(_) => self.count_attempt(token, |tally| &mut tally.redispatches),
            Command::CountReuseAbort(_) => {
                self.tally.reuse_aborts += 1;
                Ok(())
            }
            Command::Park => self.park(token),
            Command::CloseServer(closing) => self.close_server(token, closing),
            Command::Answer(failure) | Command::Cut(failure) => self.fail(token, failure),
            Command::Next(_) => self.next(token),
            Command::Forget => self.forget(token),
        }
    }

    /// Enters an event of this attempt and no later one.
    pub(super) fn enter_attempt(&mut self, token: Token, at: Micros, step: fn(Token, u16) -> Step) {
        if let Some(live) = self.lives.get_mut(token) {
            let step = step(token, live.attempt);
            self.agenda.enter(at, live.worker, step);
        }
    }

    /// Whether an event is of the attempt that is under way.
    pub(super) fn is_of(&self, token: Token, attempt: u16) -> bool {
        self.lives.get(token).is_some_and(|live| live.attempt == attempt)
    }

    fn next_attempt(&mut self, token: Token) {
        if let Some(live) = self.lives.get_mut(token) {
            live.attempt = live.attempt.wrapping_add(1);
        }
    }

    fn count_attempt(&mut self, token: Token, of: fn(&mut super::Tally) -> &mut u64) -> Result<(), Broken> {
        *of(&mut self.tally) += 1;
        if let Some(decision) = self.lives.get_mut(token).and_then(|live| live.decision.as_mut()) {
            decision.retries = decision.retries.saturating_add(1);
            decision.queue = None;
        }
        Ok(())
    }

    // ---- the way to the server and back --------------------------------------------------------------------------

    /// Opens a connection: it is open, refused or given up some time later.
    fn connect(&mut self, token: Token, index: ServerIndex) -> Result<(), Broken> {
        let Some(connection) = self.open(token, index)? else {
            return self.drive(token, Event::ConnectFailed(ConnectFailure::Local));
        };
        let live = self.lives.get_mut(token).expect("it connects");
        live.connection = Some(connection);
        let (id, patience) = (
            live.entry().table.at(index).server.id,
            live.entry().settings.connect,
        );
        self.next_attempt(token);
        self.spent += self.world.costs.open;
        let begins = self.now + self.spent;
        let (takes, step): (Micros, fn(Token, u16) -> Step) = if self.world.connect > patience {
            (patience, Step::Unreachable)
        } else if self.machines.refuses(id, &mut self.dice) {
            (self.world.connect, Step::Refused)
        } else {
            (self.world.connect, Step::Opened)
        };
        self.enter_attempt(token, begins + takes, step);
        Ok(())
    }

    pub(super) fn opened(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if !self.is_of(token, attempt) {
            return Ok(());
        }
        self.connection_is_open(token)?;
        self.drive(token, Event::Connected)
    }

    pub(super) fn refused(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        self.connect_failed(token, attempt, Event::ConnectFailed(ConnectFailure::Remote))
    }

    /// The connect has taken too long; the machine closes it.
    pub(super) fn unreachable(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if !self.is_of(token, attempt) {
            return Ok(());
        }
        self.count_connect_failure(token);
        self.drive(token, Event::Expired(Timer::Server))
    }

    fn connect_failed(&mut self, token: Token, attempt: u16, event: Event) -> Result<(), Broken> {
        if !self.is_of(token, attempt) {
            return Ok(());
        }
        self.count_connect_failure(token);
        self.drop_connection(token, CloseReason::Error)?;
        self.drive(token, event)
    }

    fn count_connect_failure(&mut self, token: Token) {
        let live = self.lives.get(token).expect("it connects");
        if let Some(server) = live.server {
            let statistics = live.entry().table.at(server).server.statistics.of(live.worker);
            statistics.connect_failures.count();
        }
        self.tally.connect_failures += 1;
    }

    /// The request goes out on its connection.
    fn send(&mut self, token: Token) -> Result<(), Broken> {
        self.next_attempt(token);
        let sent = self.now + self.spent;
        let live = self.lives.get_mut(token).expect("it is sent");
        live.sent = sent;
        let index = live.server.expect("it is sent to a server");
        let entry = live.entry();
        let (server, patience) = (&entry.table.at(index).server, entry.settings.inactivity);
        server.statistics.of(live.worker).requests.count();
        self.report.served(server.id);
        if let Some(key) = &live.named {
            self.report.keyed(self.now, key, server.id);
        }
        let outcome = self.machines.serve(server.id, sent, live.service, &mut self.dice);
        let (at, step): (Micros, fn(Token, u16) -> Step) = match outcome {
            Outcome::Answer(at, _) | Outcome::Drop(at) if at - sent > patience => {
                (sent + patience, Step::Late)
            }
            Outcome::Answer(at, status) => {
                live.status = status;
                (at, Step::Answered)
            }
            Outcome::Drop(at) => (at, Step::Lost),
            Outcome::Silence => (sent + patience, Step::Late),
        };
        self.enter_attempt(token, at, step);
        self.drive(token, Event::Written)
    }

    /// A response is here, whole.
    pub(super) fn answered(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if !self.is_of(token, attempt) {
            return Ok(());
        }
        self.spent += self.world.costs.response;
        let live = self.lives.get(token).expect("it was sent");
        let index = live.server.expect("it was sent to a server");
        let (status, took) = (live.status, self.now - live.sent);
        let server = &live.entry().table.at(index).server;
        server.statistics.of(live.worker).responded(status, took);
        if let Some(report) = self.machines.model(server.id).reports(server.slots.served()) {
            let now = Duration::from_micros(self.now);
            let entry = live.entry().table.at(index);
            entry.reported(live.worker, report.as_bytes(), now);
        }
        let server = server.id;
        self.tally.errors += u64::from(status >= 500);
        self.report.answered(self.now - live.came);
        self.bind_client(token, server);
        let afterwards = if self.response_ends_connection(token) {
            Afterwards::Ended
        } else {
            Afterwards::Reusable
        };
        self.drive(token, Event::ResponseStarted)?;
        self.drive(token, Event::ResponseComplete(afterwards))?;
        self.check(server)
    }

    /// The client's next requests know who had this one (LB-51, LB-52).
    fn bind_client(&mut self, token: Token, server: ServerId) {
        let live = self.lives.get(token).expect("it was answered");
        let (backend, persists) = (live.entry().table.id, live.entry().settings.persistence.is_some());
        let client = &mut self.clients[live.client as usize];
        client.last = Some((backend, server));
        if persists {
            client.cookies.retain(|(of, _)| *of != backend);
            client.cookies.push((backend, server));
        }
    }

    /// The connection has ended before a response.
    pub(super) fn lost(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if !self.is_of(token, attempt) {
            return Ok(());
        }
        self.count_response_error(token);
        self.drive(token, Event::ServerGone)
    }

    /// No response came in time.
    pub(super) fn late_answer(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if !self.is_of(token, attempt) {
            return Ok(());
        }
        self.count_response_error(token);
        self.drive(token, Event::Expired(Timer::Server))
    }

    fn count_response_error(&mut self, token: Token) {
        let live = self.lives.get(token).expect("it was sent");
        let index = live.server.expect("it was sent to a server");
        let statistics = live.entry().table.at(index).server.statistics.of(live.worker);
        statistics.response_errors.count();
        self.tally.lost += 1;
    }

    pub(super) fn pause_over(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if self.is_of(token, attempt) {
            self.next_attempt(token);
            return self.drive(token, Event::PauseOver);
        }
        Ok(())
    }

    // ---- its end -------------------------------------------------------------------------------------------------

    fn fail(&mut self, token: Token, failure: Failure) -> Result<(), Broken> {
        self.tell_decision(token, Some(End::Failed(failure)));
        match failure {
            Failure::QueueTimedOut => self.tally.timed_out += 1,
            _ => self.tally.refused += 1,
        }
        self.report.failed(failure);
        let least = match failure {
            Failure::QueueTimedOut => 1,
            _ => self.spent + AFTER_A_REFUSAL,
        };
        self.over(token, least)
    }

    fn next(&mut self, token: Token) -> Result<(), Broken> {
        let least = self.spent;
        self.over(token, least)
    }

    fn forget(&mut self, token: Token) -> Result<(), Broken> {
        self.tell_decision(token, Some(End::ClientLeft));
        self.tally.left += 1;
        self.over(token, 1)
    }

    /// The request is over; its client thinks of another one.
    fn over(&mut self, token: Token, least: Micros) -> Result<(), Broken> {
        let Some(mut live) = self.lives.remove(token) else {
            return Ok(());
        };
        self.leave_seat(token, &mut live)?;
        self.depart(&live);
        self.clients[live.client as usize].on_their_way -= 1;
        self.end_session(live.client, live.stream)?;
        self.think(live.worker, live.stream, least);
        Ok(())
    }

    /// No backend: a rule answers, or nobody.
    fn answer_here(
        &mut self,
        worker: WorkerId,
        stream: Option<u32>,
        decision: Option<Box<Decision>>,
        end: End,
    ) -> Result<(), Broken> {
        match end {
            End::NoRoute => self.tally.refused += 1,
            _ => self.tally.by_rule += 1,
        }
        if let Some(mut decision) = decision {
            decision.end = Some(end);
            self.report.tell(&decision);
        }
        let least = self.spent + AFTER_A_REFUSAL;
        self.think(worker, stream, least);
        Ok(())
    }

    // ---- what is told of it --------------------------------------------------------------------------------------

    /// Notes who chose, among whom.
    pub(super) fn note_choice(&mut self, token: Token, server: Option<ServerIndex>, chooser: Chooser) {
        self.tally.choose(chooser);
        let Some(live) = self.lives.get_mut(token) else {
            return;
        };
        if let Some(decision) = &mut live.decision {
            let table = &live.generation.backends[usize::from(live.backend)].table;
            decision.backend = table.name.to_string();
            decision.candidates = super::candidates::shown(table);
            decision.server = server.map_or_else(String::new, |at| table.at(at).server.name.to_string());
            decision.chooser = Some(chooser);
        }
    }

    /// Writes down an attempt that has a connection, or will have one.
    pub(super) fn note_lent(&mut self, token: Token, connection: u32, lent: Lent) {
        if let Some(decision) = self.lives.get_mut(token).and_then(|live| live.decision.as_mut()) {
            decision.connection = u64::from(connection);
            decision.lent = Some(lent);
        }
        self.tell_decision(token, None);
    }

    fn tell_decision(&mut self, token: Token, end: Option<End>) {
        let now = self.now;
        if let Some(decision) = self.lives.get_mut(token).and_then(|live| live.decision.as_mut()) {
            decision.at = now;
            decision.end = end;
            if end.is_some() {
                (decision.lent, decision.connection) = (None, 0);
            }
            self.report.tell(decision);
        }
    }

    // ---- who comes and goes --------------------------------------------------------------------------------------

    /// A request has come to its backend, before it asks for a server.
    fn arrive(&mut self, token: Token) {
        let live = self.lives.get_mut(token).expect("it has come");
        let entry = &live.generation.backends[usize::from(live.backend)];
        if entry.settings.budget.is_some() {
            live.weighed = Weighed::Live;
            let loads = &mut self.workers[usize::from(live.worker.0)].loads;
            loads.entry(entry.table.id).or_default().live += 1;
        }
        let mut grants = Grants::new();
        entry.table.arrive(&mut grants);
        tell(&mut self.agenda, self.now, &entry.table, grants);
    }

    /// It has left it.
    fn depart(&mut self, live: &Live) {
        let table = &live.entry().table;
        table.depart();
        if live.weighed != Weighed::No {
            let loads = &mut self.workers[usize::from(live.worker.0)].loads;
            let load = loads.entry(table.id).or_default();
            load.live -= 1;
            load.trying -= u32::from(live.weighed == Weighed::Trying);
        }
    }

    /// Whether another attempt is within the budget of its backend.
    fn charge(&mut self, token: Token) -> Budget {
        let live = self.lives.get_mut(token).expect("it wants another attempt");
        let entry = &live.generation.backends[usize::from(live.backend)];
        let (Weighed::Live, Some(budget)) = (live.weighed, entry.settings.budget) else {
            return Budget::Allows;
        };
        let loads = &mut self.workers[usize::from(live.worker.0)].loads;
        let load = loads.entry(entry.table.id).or_default();
        if !budget.allows(load.live, load.trying) {
            return Budget::Spent;
        }
        load.trying += 1;
        live.weighed = Weighed::Trying;
        Budget::Allows
    }

    /// Lends an idle connection, if there is one.
    fn lend(&mut self, token: Token, index: ServerIndex) -> Result<Found, Broken> {
        Ok(match self.find_connection(token, index)? {
            true => Found::Idle,
            false => Found::Nothing,
        })
    }
}
