//! One request, end to end: which step follows which. It reads as the life of a request.
//!
//! Three small machines: the request's direction ([`RequestSide`]), the response's direction ([`ResponseSide`]) and
//! the acquisition of a server ([`ServerSide`]: choose, slot, lend, connect, retry). They take events and emit
//! commands; they know no socket, no clock and no table. Whoever drives them carries the commands out in order and
//! answers each question (`Choose`, `TakeSlot`, `Wait`, `Lend`, `Connect`, `Charge`, `Pause`) with one event. A question
//! that is open when the exchange ends is withdrawn: what it brings after that is the driver's to give back.
//!
//! ```text
//!   Start ─ Choose ─┬─ TakeSlot ─┬─ Lend ─┬─ Send ─ ResponseStarted ─ ResponseComplete ─ ReleaseSlot, Park, Next
//!             ▲     └─── Wait ───┘        └─ Connect ─ Send
//!             └── Pause ◄─ Charge ◄── a connect failed, or the connection died before its first response byte
//! ```
//!
//! Who finds a slot free and loses it to another waits like one who found none: with all others, or, if the server
//! matters ([`Bond`]), in that server's queue. A wait ends with the slot ([`Event::Granted`]), with its timer, with the
//! client, or where it began: at the choice of a server ([`Event::SentBack`]).
//!
//! Invariants: a slot that was taken is released exactly once; a connection that was lent is parked or closed
//! exactly once; the client gets exactly one of `Next`, `Answer`, `Cut`, or `Forget` if it left first, and nothing
//! comes after it; a request that may not be repeated is sent again only if no byte of it had left.

mod acquire;
mod command;
mod event;
mod failure;
mod phase;
mod retry;
#[cfg(test)]
mod tests;

use crate::policy::ServerIndex;

pub use command::{Client, Closing, Command, Commands, Tie, Wish};
pub use event::{
    Afterwards, Arrival, Asked, Bond, Budget, Chosen, ConnectFailure, Event, Found, Idempotent, Taken, Timer,
};
pub use failure::Failure;
pub use phase::{Failed, Lease, RequestSide, ResponseSide, ServerSide};
pub use retry::{Redispatch, RetryOn};

/// Limits of what is tried for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Attempts after the first that are charged (RT-1).
    pub retries: u8,
    /// Connections that may turn out dead before a byte was written, free of charge; once they are spent, a dead idle
    /// one leads to a fresh one, and a dead fresh one is charged.
    pub stale_max: u8,
    /// What is charged and tried again at all.
    pub retry_on: RetryOn,
    /// When another attempt goes to another server (RT-3).
    pub redispatch: Redispatch,
}

/// The state of one request.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    request: RequestSide,
    response: ResponseSide,
    server: ServerSide,
    idempotent: Idempotent,
    /// Whether a byte of the request has left on the connection that is held.
    written: bool,
    /// Whether all that was sent can be sent again.
    held: bool,
    /// Whether bytes of the request died with a connection: from then on only a fresh one will do.
    fresh_only: bool,
    /// How much it cares for the server that was chosen last.
    bond: Bond,
    tie: Tie,
    retries_left: u8,
    stale_left: u8,
    effort: Effort,
}

impl Exchange {
    /// A request of which nothing has happened yet.
    pub fn new(effort: Effort) -> Exchange {
        Exchange {
            request: RequestSide::Arriving,
            response: ResponseSide::Awaited,
            server: ServerSide::Unasked,
            idempotent: Idempotent::No,
            written: false,
            held: true,
            fresh_only: false,
            bond: Bond::Loose,
            tie: Tie::Kept,
            retries_left: effort.retries,
            stale_left: effort.stale_max,
            effort,
        }
    }

    /// The request's direction.
    pub fn request(&self) -> RequestSide {
        self.request
    }

    /// The response's direction.
    pub fn response(&self) -> ResponseSide {
        self.response
    }

    /// The acquisition of a server.
    pub fn server(&self) -> ServerSide {
        self.server
    }

    /// Whether what was sent may still have to be sent again, so that it must be kept.
    pub fn wants_held(&self) -> bool {
        self.held
            && self.response == ResponseSide::Awaited
            && (!self.written || self.idempotent == Idempotent::Yes)
    }

    /// While it chooses or waits it may go on with another table, in which servers have other indices, or none.
    pub fn renumber(&mut self, to: impl Fn(ServerIndex) -> Option<ServerIndex>) {
        let failed = match &mut self.server {
            ServerSide::Choosing(failed) => failed,
            ServerSide::Waiting(place, failed) => {
                *place = place.and_then(&to);
                failed
            }
            _ => return,
        };
        *failed = failed.and_then(|failed| {
            let server = to(failed.server)?;
            Some(Failed { server, ..failed })
        });
    }

    /// Takes one event and says what to do. An event that does not fit the phase does nothing: it came late.
    pub fn on(&mut self, event: Event) -> Commands {
        let mut commands = Commands::new();
        match event {
            Event::Start(asked) => self.start(asked, &mut commands),
            Event::Chosen(chosen) => self.chosen(chosen, &mut commands),
            Event::Slot(taken) => self.slot(taken, &mut commands),
            Event::Granted(server) => self.granted(server, &mut commands),
            Event::SentBack => self.sent_back(&mut commands),
            Event::Full => self.full(&mut commands),
            Event::NotAdmitted => self.give_up_waiting(Failure::NotAdmitted, &mut commands),
            Event::Charged(budget) => self.charged(budget, &mut commands),
            Event::Lent(found) => self.lent(found, &mut commands),
            Event::Connected => self.connected(&mut commands),
            Event::ConnectFailed(failure) => self.connect_failed(failure, &mut commands),
            Event::Written => self.written |= self.holds(),
            Event::HeldLost => self.held &= !self.holds(),
            Event::RequestComplete => self.request_complete(),
            Event::ResponseStarted => self.response_started(ResponseSide::Arriving),
            Event::Switched => self.response_started(ResponseSide::Tunnel),
            Event::ResponseComplete(afterwards) => self.response_complete(afterwards, &mut commands),
            Event::ServerGone => self.server_gone(&mut commands),
            Event::BadResponse => self.bad_response(&mut commands),
            Event::BadRequest => self.bad_request(&mut commands),
            Event::ClientGone => self.client_gone(&mut commands),
            Event::Expired(timer) => self.expired(timer, &mut commands),
            Event::PauseOver => self.pause_over(&mut commands),
        }
        commands
    }

    /// Whether the request is neither to come nor over.
    fn under_way(&self) -> bool {
        !matches!(self.server, ServerSide::Unasked | ServerSide::Released)
    }

    fn holds(&self) -> bool {
        matches!(self.server, ServerSide::Holding(..))
    }

    fn start(&mut self, asked: Asked, commands: &mut Commands) {
        if self.server != ServerSide::Unasked {
            return;
        }
        self.idempotent = asked.idempotent;
        if asked.arrival == Arrival::Whole {
            self.request = RequestSide::Complete;
        }
        self.choose(None, None, commands);
    }

    fn request_complete(&mut self) {
        if self.under_way() {
            self.request = RequestSide::Complete;
        }
    }

    fn response_started(&mut self, into: ResponseSide) {
        if self.holds() && self.response == ResponseSide::Awaited {
            self.response = into;
        }
    }

    fn response_complete(&mut self, afterwards: Afterwards, commands: &mut Commands) {
        let ServerSide::Holding(server, _) = self.server else {
            return;
        };
        let tunnel = match self.response {
            ResponseSide::Arriving => false,
            ResponseSide::Tunnel => true,
            ResponseSide::Awaited | ResponseSide::Over => return,
        };
        self.server = ServerSide::Released;
        self.response = ResponseSide::Over;
        commands.push(Command::ReleaseSlot(server));
        commands.push(match (tunnel, self.request, afterwards) {
            (true, _, _) => Command::CloseServer(Closing::Tunnel),
            (_, RequestSide::Arriving, _) => Command::CloseServer(Closing::Unfinished),
            (_, _, Afterwards::Reusable) => Command::Park,
            (_, _, Afterwards::Ended) => Command::CloseServer(Closing::Remote),
            (_, _, Afterwards::ExcessData) => Command::CloseServer(Closing::ExcessData),
        });
        commands.push(Command::Next(match (tunnel, self.request) {
            (true, _) => Client::TunnelEnded,
            (_, RequestSide::Complete) => Client::Whole,
            (_, RequestSide::Arriving) => Client::RequestLeft,
        }));
    }

    /// DESIGN §3: when a server connection dies before its first response byte.
    fn server_gone(&mut self, commands: &mut Commands) {
        let ServerSide::Holding(server, lease) = self.server else {
            return;
        };
        match self.response {
            ResponseSide::Over => return,
            ResponseSide::Tunnel => return self.response_complete(Afterwards::Ended, commands),
            ResponseSide::Arriving => return self.fail(Closing::Remote, Failure::Truncated, commands),
            ResponseSide::Awaited => commands.push(Command::CloseServer(Closing::Remote)),
        }
        // What has killed two connections is not tried on a third (decision 0002).
        let repeatable =
            self.held && self.idempotent == Idempotent::Yes && !(self.written && self.fresh_only);
        self.fresh_only |= self.written;
        match (self.written, lease) {
            // (a) Not one byte was written: free of charge, whatever the method, but not for ever.
            (false, Lease::Reused) if self.held && self.stale_left > 0 => {
                self.stale_left -= 1;
                self.lend(server, commands);
            }
            (false, Lease::Reused) if self.held => self.connect(server, commands),
            (false, Lease::Fresh) if self.held && self.stale_left > 0 => {
                self.stale_left -= 1;
                self.connect(server, commands);
            }
            // (b) Reused, and it may be said again: free of charge.
            (true, Lease::Reused) if repeatable => self.connect(server, commands),
            // (c) `retry-on`: what was not begun is as good as no connection; what was, once, if it may be repeated (RT-7).
            (written, Lease::Fresh)
                if self.retries_left > 0
                    && (self.effort.retry_on.empty_response && repeatable
                        || self.effort.retry_on.conn_failure && !written && self.held) =>
            {
                commands.push(Command::ReleaseSlot(server));
                self.charge(Failed { server, wait: true }, Failure::ServerClosed, commands);
            }
            (_, lease) => {
                if lease == Lease::Reused {
                    commands.push(Command::CountReuseAbort(server));
                }
                commands.push(Command::ReleaseSlot(server));
                self.end(Failure::ServerClosed, commands);
            }
        }
    }

    fn bad_response(&mut self, commands: &mut Commands) {
        if self.holds() {
            self.fail(Closing::Error, Failure::BadResponse, commands);
        }
    }

    fn bad_request(&mut self, commands: &mut Commands) {
        if self.under_way() && self.request == RequestSide::Arriving {
            self.fail(Closing::Aborted, Failure::BadRequest, commands);
        }
    }

    fn expired(&mut self, timer: Timer, commands: &mut Commands) {
        if !self.under_way() {
            return;
        }
        match (timer, self.server, self.response) {
            (Timer::Queue, ..) => self.give_up_waiting(Failure::QueueTimedOut, commands),
            (Timer::Tunnel, _, ResponseSide::Tunnel) => self.response_complete(Afterwards::Ended, commands),
            (Timer::Server, ServerSide::Connecting(_), _) => {
                commands.push(Command::CloseServer(Closing::Error));
                self.connect_failed(ConnectFailure::TimedOut, commands);
            }
            (Timer::Server, ServerSide::Holding(server, _), ResponseSide::Awaited) => {
                self.response_timed_out(server, commands);
            }
            (Timer::Server, _, ResponseSide::Arriving) => {
                self.fail(Closing::Error, Failure::Stalled, commands);
            }
            (Timer::Client, _, ResponseSide::Awaited) if self.request == RequestSide::Arriving => {
                self.fail(Closing::Unfinished, Failure::ClientTimedOut, commands);
            }
            // It does not take what went before: an interim response, or the response to its last request.
            (Timer::Client, _, ResponseSide::Awaited) => {
                self.let_go(Closing::Aborted, commands);
                self.cut(Failure::ClientStalled, commands);
            }
            (Timer::Client, _, ResponseSide::Arriving) => {
                self.fail(Closing::Aborted, Failure::ClientStalled, commands);
            }
            _ => {}
        }
    }

    /// The server took too long for the first byte of a response.
    fn response_timed_out(&mut self, server: ServerIndex, commands: &mut Commands) {
        let repeatable = self.held && (!self.written || self.idempotent == Idempotent::Yes);
        if !(self.effort.retry_on.response_timeout && repeatable && self.retries_left > 0) {
            return self.fail(Closing::Error, Failure::ServerTimedOut, commands);
        }
        self.fresh_only |= self.written;
        commands.push(Command::CloseServer(Closing::Error));
        commands.push(Command::ReleaseSlot(server));
        self.charge(Failed { server, wait: false }, Failure::ServerTimedOut, commands);
    }

    /// Ends an exchange that cannot be completed: an answer of ours where none has begun, a cut where one has.
    fn fail(&mut self, closing: Closing, failure: Failure, commands: &mut Commands) {
        self.let_go(closing, commands);
        match self.response {
            ResponseSide::Over => {}
            ResponseSide::Awaited => self.answer(failure, commands),
            ResponseSide::Arriving | ResponseSide::Tunnel => self.cut(failure, commands),
        }
    }

    fn client_gone(&mut self, commands: &mut Commands) {
        if self.response == ResponseSide::Over {
            return;
        }
        self.let_go(Closing::Aborted, commands);
        self.response = ResponseSide::Over;
        commands.push(Command::Forget);
    }

    /// Gives back whatever is held of a server.
    fn let_go(&mut self, closing: Closing, commands: &mut Commands) {
        match std::mem::replace(&mut self.server, ServerSide::Released) {
            ServerSide::Holding(server, _) | ServerSide::Connecting(server) => {
                commands.push(Command::CloseServer(closing));
                commands.push(Command::ReleaseSlot(server));
            }
            ServerSide::Lending(server) => commands.push(Command::ReleaseSlot(server)),
            ServerSide::Unasked
            | ServerSide::Choosing(_)
            | ServerSide::Taking(_)
            | ServerSide::Waiting(..)
            | ServerSide::Charging(..)
            | ServerSide::Pausing(_)
            | ServerSide::Released => {}
        }
    }

    /// Answers where nothing is held any more.
    fn end(&mut self, failure: Failure, commands: &mut Commands) {
        self.server = ServerSide::Released;
        self.answer(failure, commands);
    }

    fn answer(&mut self, failure: Failure, commands: &mut Commands) {
        self.response = ResponseSide::Over;
        commands.push(Command::Answer(failure));
    }
    fn cut(&mut self, failure: Failure, commands: &mut Commands) {
        self.response = ResponseSide::Over;
        commands.push(Command::Cut(failure));
    }
}
