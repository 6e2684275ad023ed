//! One request, end to end: which step follows which. It reads as the life of a request.
//!
//! Three small machines: the request's direction ([`RequestSide`]), the response's direction ([`ResponseSide`]) and
//! the acquisition of a server ([`ServerSide`]: choose, slot, lend, connect, retry). They take events and emit
//! commands; they know no socket, no clock and no table. Whoever drives them carries the commands out in order and
//! answers each question (`Choose`, `TakeSlot`, `Lend`, `Connect`, `Pause`) with one event.
//!
//! ```text
//!   Start ─ Choose ─ TakeSlot ─ Lend ─┬─ Send ─ ResponseStarted ─ ResponseComplete ─ ReleaseSlot, Park, Next
//!             ▲                       └─ Connect ─ Send
//!             └──────── Pause ◄── a connect failed, or the connection died before its first response byte
//! ```
//!
//! Invariants: a slot that was taken is released exactly once; a connection that was lent is parked or closed
//! exactly once; the client gets exactly one of `Next`, `Answer`, `Cut`, unless it left first.

use crate::policy::ServerIndex;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The head of a request is read and routed to a backend.
    Start(Asked),
    /// The balancer's answer to [`Command::Choose`].
    Chosen(Option<ServerIndex>),
    /// The answer to [`Command::TakeSlot`].
    Slot(Taken),
    /// The answer to [`Command::Lend`].
    Lent(Found),
    /// The connect that was asked for has succeeded.
    Connected,
    /// It has not.
    ConnectFailed(ConnectFailure),
    /// The first byte of the request left for the server.
    Written,
    /// What was sent of the request can no longer be sent again: too much of it.
    HeldLost,
    /// The last byte of the request came from the client.
    RequestComplete,
    /// The head of the final response is read.
    ResponseStarted,
    /// The server switched protocols as the client had asked (101).
    Switched,
    /// The last byte of the response came from the server.
    ResponseComplete(Afterwards),
    /// The server closed or broke the connection.
    ServerGone,
    /// The server sent what is no response.
    BadResponse,
    /// The client closed or broke its connection.
    ClientGone,
    /// The client sent a malformed body.
    BadRequest,
    /// A phase took too long.
    Expired(Timer),
    /// The turn-around delay has passed.
    PauseOver,
}

/// What has to be known of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether it may be sent twice (RFC 9110 §9.2.2).
    pub idempotent: Idempotent,
    /// Whether all of it is here already.
    pub arrival: Arrival,
}

/// Whether a method may be repeated without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idempotent {
    /// GET, HEAD, PUT, DELETE, OPTIONS, TRACE.
    Yes,
    /// POST, PATCH and every method we do not know.
    No,
}

/// How much of the request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The head and the whole body, if any.
    Whole,
    /// A body is still coming.
    BodyFollows,
}

/// The answer to a wish for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours.
    Yes,
    /// None is free.
    Refused,
}

/// The answer to a wish for an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A connection that has carried requests before.
    Idle,
    /// None that may be used.
    Nothing,
}

/// Why a connect failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Refused, reset, unreachable: the other side, or the way to it.
    Remote,
    /// It took longer than `timeout-connect`.
    TimedOut,
    /// Here: no descriptor, no port. Trying the same at once is pointless, waiting too (RT-5).
    Local,
}

/// What may become of the server connection after a complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// Both sides keep it alive and nothing is left on it.
    Reusable,
    /// The server closes it, or the message ended with it.
    Ended,
    /// Bytes nobody asked for came behind the response (POOL-30).
    ExcessData,
}

/// The timers that end a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// No progress from or to the client (`timeout-client`).
    Client,
    /// No progress from or to the server (`timeout-server`).
    Server,
    /// Neither side of a tunnel said anything (`timeout-tunnel`).
    Tunnel,
}

/// What to do. Commands of one event are carried out in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Ask the balancer for a server, another than this if there is one (LB-3).
    Choose(Option<ServerIndex>),
    /// Take a slot of this server (Q-3).
    TakeSlot(ServerIndex),
    /// Give the slot of this server back.
    ReleaseSlot(ServerIndex),
    /// Look for an idle connection to this server (POOL-10).
    Lend(ServerIndex),
    /// Open a new connection to this server.
    Connect(ServerIndex),
    /// Send what is held of the request, from its first byte.
    Send,
    /// Wait for the turn-around delay (RT-5).
    Pause,
    /// Count a retry on the same server.
    CountRetry(ServerIndex),
    /// Count a retry that left this server for another one (RT-6).
    CountRedispatch(ServerIndex),
    /// Count a request lost because a reused connection died under it (POOL-16).
    CountReuseAbort(ServerIndex),
    /// Give the connection to the pool, if the keep rule lets it (POOL-32).
    Park,
    /// Close the connection.
    CloseServer(Closing),
    /// Answer the client ourselves.
    Answer(Failure),
    /// The exchange is over; the client's connection goes on, or closes after `Afterwards` was announced.
    Next(Client),
    /// The response cannot be completed: make the client see that.
    Cut(Failure),
    /// The client is gone: nothing more is to be said to anybody.
    Forget,
}

/// Why a server connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The server ended it, or said it would.
    Remote,
    /// It failed, sent nonsense or was too slow.
    Error,
    /// Bytes nobody asked for.
    ExcessData,
    /// The response came before the whole request: the rest of the request was never sent.
    Unfinished,
    /// The client left in the middle.
    Aborted,
    /// The end of a tunnel.
    Tunnel,
}

/// What becomes of the client's connection when the response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The whole request was read: the next one may come.
    Whole,
    /// A part of the request was not read: the connection closes, slowly.
    RequestLeft,
    /// A tunnel has ended: close.
    TunnelEnded,
}

/// Why we answer, or cut, instead of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No usable server (503).
    NoServer,
    /// The chosen server has no slot (503).
    NoSlot,
    /// Every attempt to connect was refused (503, `SC`).
    ConnectRefused,
    /// The last attempt to connect timed out (503, `sC`).
    ConnectTimedOut,
    /// No connect was possible from here (503, `RC`).
    ConnectLocal,
    /// The connection died before the first byte of a response (502, `SH`).
    ServerClosed,
    /// What came is no response (502, `PH`).
    BadResponse,
    /// The server took too long (504, `sH`).
    ServerTimedOut,
    /// The client took too long with the body (408, `cD`).
    ClientTimedOut,
    /// The client's body is malformed (400, `PR`).
    BadRequest,
    /// The server closed or failed in the middle of a response (`SD`).
    Truncated,
    /// The server stalled in the middle of a response (`sD`).
    Stalled,
    /// The client stalled in the middle of a response (`cD`).
    ClientStalled,
}

impl Failure {
    /// Every failure, in the order of [`Failure::index`].
    pub const ALL: &[Failure] = &[
        Failure::NoServer,
        Failure::NoSlot,
        Failure::ConnectRefused,
        Failure::ConnectTimedOut,
        Failure::ConnectLocal,
        Failure::ServerClosed,
        Failure::BadResponse,
        Failure::ServerTimedOut,
        Failure::ClientTimedOut,
        Failure::BadRequest,
        Failure::Truncated,
        Failure::Stalled,
        Failure::ClientStalled,
    ];
    /// Number of failures.
    pub const COUNT: usize = Failure::ALL.len();

    /// Its place in an array of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name in metrics and logs, in snake case.
    pub fn word(self) -> &'static str {
        match self {
            Failure::NoServer => "no_server",
            Failure::NoSlot => "no_slot",
            Failure::ConnectRefused => "connect_refused",
            Failure::ConnectTimedOut => "connect_timeout",
            Failure::ConnectLocal => "connect_local",
            Failure::ServerClosed => "server_closed",
            Failure::BadResponse => "bad_response",
            Failure::ServerTimedOut => "server_timeout",
            Failure::ClientTimedOut => "client_timeout",
            Failure::BadRequest => "bad_request_body",
            Failure::Truncated => "response_truncated",
            Failure::Stalled => "response_stalled",
            Failure::ClientStalled => "client_stalled",
        }
    }

    /// The status of our answer; 0 where a response had begun and can only be cut.
    pub fn status(self) -> u16 {
        match self {
            Failure::BadRequest => 400,
            Failure::ClientTimedOut => 408,
            Failure::ServerClosed | Failure::BadResponse => 502,
            Failure::NoServer
            | Failure::NoSlot
            | Failure::ConnectRefused
            | Failure::ConnectTimedOut
            | Failure::ConnectLocal => 503,
            Failure::ServerTimedOut => 504,
            Failure::Truncated | Failure::Stalled | Failure::ClientStalled => 0,
        }
    }

    /// Who ended it and in which phase, as two letters (LG-3).
    pub fn termination(self) -> [u8; 2] {
        *match self {
            Failure::NoServer | Failure::ConnectRefused => b"SC",
            Failure::NoSlot => b"PQ",
            Failure::ConnectTimedOut => b"sC",
            Failure::ConnectLocal => b"RC",
            Failure::ServerClosed => b"SH",
            Failure::BadResponse => b"PH",
            Failure::ServerTimedOut => b"sH",
            Failure::ClientTimedOut | Failure::ClientStalled => b"cD",
            Failure::BadRequest => b"PR",
            Failure::Truncated => b"SD",
            Failure::Stalled => b"sD",
        }
    }
}

/// The request's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSide {
    /// Its body is still coming.
    Arriving,
    /// All of it has come.
    Complete,
}

/// The response's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseSide {
    /// Not one byte of a final response yet.
    Awaited,
    /// Its head has gone to the client.
    Arriving,
    /// After a 101: bytes both ways.
    Tunnel,
    /// Over, well or not.
    Over,
}

/// The acquisition of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSide {
    /// The balancer is asked; the server that failed before, if one did.
    Choosing(Option<Failed>),
    /// A slot of this one is asked for.
    Taking(ServerIndex),
    /// An idle connection is looked for; a slot is held from here on.
    Lending(ServerIndex),
    /// A new connection is being opened.
    Connecting(ServerIndex),
    /// Waiting before this one is tried again; no slot is held.
    Pausing(ServerIndex),
    /// A connection is ours.
    Holding(ServerIndex, Lease),
    /// Nothing is held any more.
    Released,
}

/// A server that failed, and whether to wait before it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    server: ServerIndex,
    wait: bool,
}

/// What kind of connection is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// Opened for this request.
    Fresh,
    /// It has carried requests before; its server may be closing it right now.
    Reused,
}

/// Limits of what is tried for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Attempts after the first that are charged (RT-1).
    pub retries: u8,
    /// Idle connections that may turn out dead before a fresh one is opened.
    pub stale_max: u8,
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
    /// Whether the free second attempt of a reused connection is spent.
    replayed: bool,
    retries_left: u8,
    stale_left: u8,
}

/// The commands of one event; a buffer of the worker.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    list: [Command; Commands::MAX],
    length: u8,
}

impl Commands {
    /// No event emits more.
    const MAX: usize = 6;

    /// An empty buffer.
    pub fn new() -> Commands {
        Commands {
            list: [Command::Forget; Commands::MAX],
            length: 0,
        }
    }

    fn push(&mut self, command: Command) {
        self.list[usize::from(self.length)] = command;
        self.length += 1;
    }

    /// The commands, in order.
    pub fn as_slice(&self) -> &[Command] {
        &self.list[..usize::from(self.length)]
    }
}

impl Default for Commands {
    fn default() -> Self {
        Commands::new()
    }
}

impl Exchange {
    /// A request of which nothing has happened yet.
    pub fn new(effort: Effort) -> Exchange {
        Exchange {
            request: RequestSide::Arriving,
            response: ResponseSide::Awaited,
            server: ServerSide::Choosing(None),
            idempotent: Idempotent::No,
            written: false,
            held: true,
            replayed: false,
            retries_left: effort.retries,
            stale_left: effort.stale_max,
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

    /// Takes one event and says what to do. An event that does not fit the phase does nothing: it came late.
    pub fn on(&mut self, event: Event) -> Commands {
        let mut commands = Commands::new();
        match event {
            Event::Start(asked) => self.start(asked, &mut commands),
            Event::Chosen(server) => self.chosen(server, &mut commands),
            Event::Slot(taken) => self.slot(taken, &mut commands),
            Event::Lent(found) => self.lent(found, &mut commands),
            Event::Connected => self.connected(&mut commands),
            Event::ConnectFailed(failure) => self.connect_failed(failure, &mut commands),
            Event::Written => self.written = true,
            Event::HeldLost => self.held = false,
            Event::RequestComplete => self.request = RequestSide::Complete,
            Event::ResponseStarted => self.response_started(ResponseSide::Arriving),
            Event::Switched => self.response_started(ResponseSide::Tunnel),
            Event::ResponseComplete(afterwards) => self.response_complete(afterwards, &mut commands),
            Event::ServerGone => self.server_gone(&mut commands),
            Event::BadResponse => self.fail(Closing::Error, Failure::BadResponse, &mut commands),
            Event::BadRequest => self.fail(Closing::Aborted, Failure::BadRequest, &mut commands),
            Event::ClientGone => self.client_gone(&mut commands),
            Event::Expired(timer) => self.expired(timer, &mut commands),
            Event::PauseOver => self.pause_over(&mut commands),
        }
        commands
    }

    fn start(&mut self, asked: Asked, commands: &mut Commands) {
        self.idempotent = asked.idempotent;
        if asked.arrival == Arrival::Whole {
            self.request = RequestSide::Complete;
        }
        commands.push(Command::Choose(None));
    }

    fn chosen(&mut self, server: Option<ServerIndex>, commands: &mut Commands) {
        let ServerSide::Choosing(failed) = self.server else {
            return;
        };
        let Some(server) = server else {
            self.server = ServerSide::Released;
            return self.answer(Failure::NoServer, commands);
        };
        match failed {
            Some(failed) if failed.server == server => {
                commands.push(Command::CountRetry(server));
                if failed.wait {
                    self.server = ServerSide::Pausing(server);
                    return commands.push(Command::Pause);
                }
            }
            Some(failed) => commands.push(Command::CountRedispatch(failed.server)),
            None => {}
        }
        self.take_slot(server, commands);
    }

    fn pause_over(&mut self, commands: &mut Commands) {
        if let ServerSide::Pausing(server) = self.server {
            self.take_slot(server, commands);
        }
    }

    fn take_slot(&mut self, server: ServerIndex, commands: &mut Commands) {
        self.server = ServerSide::Taking(server);
        commands.push(Command::TakeSlot(server));
    }

    fn slot(&mut self, taken: Taken, commands: &mut Commands) {
        let ServerSide::Taking(server) = self.server else {
            return;
        };
        match taken {
            // Whoever retries has met a dead connection: the next one is a new one (DESIGN §3).
            Taken::Yes if self.written || self.replayed => self.connect(server, commands),
            Taken::Yes => self.lend(server, commands),
            Taken::Refused => {
                self.server = ServerSide::Released;
                self.answer(Failure::NoSlot, commands);
            }
        }
    }

    fn lend(&mut self, server: ServerIndex, commands: &mut Commands) {
        self.server = ServerSide::Lending(server);
        commands.push(Command::Lend(server));
    }

    fn connect(&mut self, server: ServerIndex, commands: &mut Commands) {
        self.server = ServerSide::Connecting(server);
        commands.push(Command::Connect(server));
    }

    fn lent(&mut self, found: Found, commands: &mut Commands) {
        let ServerSide::Lending(server) = self.server else {
            return;
        };
        match found {
            Found::Idle => self.hold(server, Lease::Reused, commands),
            Found::Nothing => self.connect(server, commands),
        }
    }

    fn connected(&mut self, commands: &mut Commands) {
        if let ServerSide::Connecting(server) = self.server {
            self.hold(server, Lease::Fresh, commands);
        }
    }

    fn hold(&mut self, server: ServerIndex, lease: Lease, commands: &mut Commands) {
        self.server = ServerSide::Holding(server, lease);
        self.written = false;
        commands.push(Command::Send);
    }

    fn connect_failed(&mut self, failure: ConnectFailure, commands: &mut Commands) {
        let ServerSide::Connecting(server) = self.server else {
            return;
        };
        commands.push(Command::ReleaseSlot(server));
        if self.retries_left == 0 {
            self.server = ServerSide::Released;
            return self.answer(
                match failure {
                    ConnectFailure::Remote => Failure::ConnectRefused,
                    ConnectFailure::TimedOut => Failure::ConnectTimedOut,
                    ConnectFailure::Local => Failure::ConnectLocal,
                },
                commands,
            );
        }
        self.choose_again(server, failure != ConnectFailure::Local, commands);
    }

    fn choose_again(&mut self, server: ServerIndex, wait: bool, commands: &mut Commands) {
        self.retries_left -= 1;
        self.server = ServerSide::Choosing(Some(Failed { server, wait }));
        commands.push(Command::Choose(Some(server)));
    }

    fn response_started(&mut self, into: ResponseSide) {
        if self.response == ResponseSide::Awaited {
            self.response = into;
        }
    }

    fn response_complete(&mut self, afterwards: Afterwards, commands: &mut Commands) {
        let ServerSide::Holding(server, _) = self.server else {
            return;
        };
        let tunnel = self.response == ResponseSide::Tunnel;
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
        let repeatable = self.held && self.idempotent == Idempotent::Yes;
        match (self.written, lease) {
            // (a) Not one byte was written: free of charge, whatever the method.
            (false, Lease::Reused) if self.stale_left > 0 => {
                self.stale_left -= 1;
                self.lend(server, commands);
            }
            (false, Lease::Reused) => self.connect(server, commands),
            // (b) Reused, and it may be said again: once, on a fresh connection, free of charge.
            (true, Lease::Reused) if repeatable && !self.replayed => {
                self.replayed = true;
                self.connect(server, commands);
            }
            // (c) `retry-on conn-failure empty-response`, for what may be repeated (RT-7).
            (written, _) if self.retries_left > 0 && (repeatable || !written && self.held) => {
                commands.push(Command::ReleaseSlot(server));
                self.choose_again(server, true, commands);
            }
            (_, lease) => {
                if lease == Lease::Reused {
                    commands.push(Command::CountReuseAbort(server));
                }
                commands.push(Command::ReleaseSlot(server));
                self.server = ServerSide::Released;
                self.answer(Failure::ServerClosed, commands);
            }
        }
    }

    fn expired(&mut self, timer: Timer, commands: &mut Commands) {
        match (timer, self.server, self.response) {
            (Timer::Tunnel, _, ResponseSide::Tunnel) => self.response_complete(Afterwards::Ended, commands),
            (Timer::Server, ServerSide::Connecting(_), _) => {
                commands.push(Command::CloseServer(Closing::Error));
                self.connect_failed(ConnectFailure::TimedOut, commands);
            }
            (Timer::Server, _, ResponseSide::Awaited) => {
                self.fail(Closing::Error, Failure::ServerTimedOut, commands);
            }
            (Timer::Server, _, ResponseSide::Arriving) => {
                self.fail(Closing::Error, Failure::Stalled, commands)
            }
            (Timer::Client, _, ResponseSide::Awaited) if self.request == RequestSide::Arriving => {
                self.fail(Closing::Unfinished, Failure::ClientTimedOut, commands);
            }
            (Timer::Client, _, ResponseSide::Arriving) => {
                self.fail(Closing::Aborted, Failure::ClientStalled, commands);
            }
            _ => {}
        }
    }

    /// Ends an exchange that cannot be completed: an answer of ours where none has begun, a cut where one has.
    fn fail(&mut self, closing: Closing, failure: Failure, commands: &mut Commands) {
        self.let_go(closing, commands);
        match self.response {
            ResponseSide::Over => {}
            ResponseSide::Awaited => self.answer(failure, commands),
            ResponseSide::Arriving | ResponseSide::Tunnel => {
                self.response = ResponseSide::Over;
                commands.push(Command::Cut(failure));
            }
        }
    }

    fn client_gone(&mut self, commands: &mut Commands) {
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
            ServerSide::Choosing(_)
            | ServerSide::Taking(_)
            | ServerSide::Pausing(_)
            | ServerSide::Released => {}
        }
    }

    fn answer(&mut self, failure: Failure, commands: &mut Commands) {
        self.response = ResponseSide::Over;
        commands.push(Command::Answer(failure));
    }
}
