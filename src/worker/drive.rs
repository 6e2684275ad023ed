//! Carries out what `decide::exchange` commands, and tells it what came of it.

use super::Worker;
use super::client::Answered;
use super::session::{Keep, Live, Manner};
use crate::decide::cause::Cause;
use crate::decide::exchange::{Client, Command, Event, Failure, Found, RequestSide};
use crate::http1::{Framing, Method};
use crate::net::{Address, Connection, Key};
use crate::policy::ServerIndex;
use crate::shared::generation::BackendEntry;
use crate::shared::server::Server;
use std::io::Write as _;
use std::sync::Arc;

impl Worker {
    /// Tells an exchange what happened and does what it wants.
    pub(super) fn drive(&mut self, exchange: Key, event: Event) {
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return;
        };
        let commands = live.machine.on(event);
        for command in commands.as_slice() {
            self.carry_out(exchange, *command);
        }
    }

    fn carry_out(&mut self, exchange: Key, command: Command) {
        match command {
            Command::Choose(wish) => {
                let chosen = self.choose(exchange, wish);
                self.drive(exchange, Event::Chosen(chosen));
            }
            Command::TakeSlot(server) => {
                let taken = self.take_slot(exchange, server);
                self.drive(exchange, Event::Slot(taken));
            }
            Command::ReleaseSlot(_) => self.release_slot(exchange),
            Command::Wait(place) => self.wait(exchange, place),
            Command::Charge => {
                let budget = self.charge(exchange);
                self.drive(exchange, Event::Charged(budget));
            }
            Command::Lend(server) => {
                let found = if self.lend(exchange, server) {
                    Found::Idle
                } else {
                    Found::Nothing
                };
                self.drive(exchange, Event::Lent(found));
            }
            Command::Connect(server) => self.connect(exchange, server),
            Command::Send => self.send_held(exchange),
            Command::Pause => self.pause(exchange),
            Command::CountRetry(server) => {
                self.server_statistics(exchange, server, |statistics| statistics.retries.count());
                self.count_attempt(exchange, false);
            }
            Command::CountRedispatch(server) => {
                self.server_statistics(exchange, server, |statistics| statistics.redispatches.count());
                self.count_attempt(exchange, true);
            }
            Command::CountReuseAbort(server) => {
                self.server_statistics(exchange, server, |statistics| statistics.reuse_aborts.count());
            }
            Command::Park => self.park(exchange),
            Command::CloseServer(closing) => self.close_server(exchange, closing),
            Command::Answer(failure) => self.answer(exchange, failure),
            Command::Next(client) => self.next(exchange, client),
            Command::Cut(failure) => self.cut(exchange, failure),
            Command::Forget => self.forget(exchange),
        }
    }

    /// The backend of an exchange, in the generation it began with.
    pub(super) fn backend(&self, live: &Live) -> &BackendEntry<Connection, Address> {
        &self.tables.get(live.generation).backends[usize::from(live.backend)]
    }

    /// A server of an exchange's table.
    pub(super) fn server_at(&self, live: &Live, server: ServerIndex) -> &Arc<Server<Connection>> {
        &self.backend(live).table.at(server).server
    }

    fn pause(&mut self, exchange: Key) {
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        let settings = &self.backend(live).settings;
        let (until, session) = (
            self.now + settings.turn_around.min(settings.connect),
            live.session,
        );
        self.exchanges
            .get_mut(exchange)
            .expect("looked up above")
            .pause_until = until;
        self.arm(session);
    }

    fn count_attempt(&mut self, exchange: Key, redispatched: bool) {
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.account.retries += 1;
            live.account.redispatched |= redispatched;
        }
    }

    /// Our own answer in place of the server's.
    fn answer(&mut self, exchange: Key, failure: Failure) {
        let Some(mut live) = self.finish(exchange) else {
            return;
        };
        let session = live.session;
        let whole = live.machine.request() == RequestSide::Complete;
        let keep = self
            .sessions
            .get(session)
            .map_or(Keep::No, |session| session.keep);
        let to = Answered {
            version: live.version,
            head_request: live.method == Method::Head,
            keep: if whole { keep } else { Keep::No },
        };
        let cause = Cause::Exchange(failure);
        self.count_cause(session, cause);
        let (status, retry_after) = match live.seat.refusal {
            Some((status, seconds)) if failure == Failure::NotAdmitted => (status, seconds),
            _ => (failure.status(), None),
        };
        let mut lines = std::mem::take(&mut self.additions);
        lines.clear();
        if let Some(seconds) = retry_after.or(failure.retry_after()) {
            // Writing to a Vec does not fail.
            let _ = write!(lines, "Retry-After: {seconds}\r\n");
        }
        let keep = self.compose(status, to, &lines, None);
        self.additions = lines;
        live.account.status = status;
        live.account.bytes_out = self.outgoing.len() as u64;
        self.log_finished(&mut live, failure.termination(), cause.word());
        self.retire(live);
        self.deliver(session, status, keep);
    }

    /// The exchange is over; the client's connection goes on or closes.
    fn next(&mut self, exchange: Key, client: Client) {
        let Some(mut live) = self.finish(exchange) else {
            return;
        };
        let key = live.session;
        self.log_finished(&mut live, *b"--", "");
        self.retire(live);
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        match client {
            Client::Whole if session.keep == Keep::Yes => self.next_request(key),
            // More than the request is here, or on its way: a close would reset what was sent (RFC 9112 §9.6).
            Client::Whole if session.unseen || session.stream.is_readable() => {
                self.begin_closing(key, Manner::Linger);
            }
            Client::Whole | Client::TunnelEnded => self.begin_closing(key, Manner::Plain),
            Client::RequestLeft => self.begin_closing(key, Manner::Linger),
        }
    }

    /// A response that cannot be completed: the client must not take what it has for the whole.
    fn cut(&mut self, exchange: Key, failure: Failure) {
        let Some(mut live) = self.finish(exchange) else {
            return;
        };
        let key = live.session;
        let ends_with_close = live.response_body.framing() == Framing::UntilClose || live.decoded;
        let cause = Cause::Exchange(failure);
        self.count_cause(key, cause);
        self.log_finished(&mut live, failure.termination(), cause.word());
        self.retire(live);
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        if ends_with_close || failure == Failure::ClientStalled {
            session.stream.reset_on_close();
            return self.close(key);
        }
        self.begin_closing(key, Manner::Plain);
    }

    /// The client left.
    fn forget(&mut self, exchange: Key) {
        let Some(mut live) = self.finish(exchange) else {
            return;
        };
        let key = live.session;
        let phase = match live.account.response_began {
            1.. => *b"CD",
            0 if live.seat.left_waiting => *b"CQ",
            0 => *b"CH",
        };
        self.log_finished(&mut live, phase, "client_abort");
        self.retire(live);
        self.close(key);
    }

    /// Takes the exchange out of the worker. What it held of a server is given back already, but it may have waited.
    fn finish(&mut self, exchange: Key) -> Option<Live> {
        let mut live = self.exchanges.remove(exchange)?;
        self.leave_seat(&mut live);
        debug_assert!(live.upstream.is_none(), "a connection left with its exchange");
        Some(live)
    }

    /// Gives its buffers and its generation back.
    pub(super) fn retire(&mut self, mut live: Live) {
        self.depart(&live);
        self.buffers.give(live.out);
        self.buffers.give(live.input);
        self.buffers.give(live.account.texts);
        self.buffers.give(live.attributes.unwrap_or_default());
        self.buffers.give(live.ushering.forget());
        self.buffers.give(live.sharing.name.unwrap_or_default());
        self.buffers.give(live.sharing.tag.unwrap_or_default());
        if let Some(edits) = live.response_edits {
            self.buffers.give(edits.lines);
            self.buffers.give(edits.dropped);
        }
        if live.begun.generation != live.generation {
            self.tables.release(live.begun.generation);
        }
        self.tables.release(live.generation);
    }
}
