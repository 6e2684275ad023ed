//! What an exchange is told: events, and what the answers to its questions may be.

use crate::policy::ServerIndex;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The head of a request is read and routed to a backend.
    Start(Asked),
    /// The answer to [`Command::Choose`](super::Command::Choose).
    Chosen(Chosen),
    /// The answer to [`Command::TakeSlot`](super::Command::TakeSlot).
    Slot(Taken),
    /// The wait that [`Command::Wait`](super::Command::Wait) began is over: a slot of this server is ours.
    Granted(ServerIndex),
    /// It is over without one, and another server is to be chosen: theirs goes.
    SentBack,
    /// It cannot begin: the queue is full.
    Full,
    /// It may not begin: a policy has said so.
    NotAdmitted,
    /// The answer to [`Command::Charge`](super::Command::Charge).
    Charged(Budget),
    /// The answer to [`Command::Lend`](super::Command::Lend).
    Lent(Found),
    /// The connect that was asked for has succeeded.
    Connected,
    /// It has not, and there is nothing left to close.
    ConnectFailed(ConnectFailure),
    /// The first byte of the request left for the server.
    Written,
    /// What was sent of the request can no longer be sent again: too much of it, or an interim response has come.
    HeldLost,
    /// The last byte of the request came from the client.
    RequestComplete,
    /// The head of the final response is read.
    ResponseStarted,
    /// The server switched protocols as the client had asked (101).
    Switched,
    /// The last byte of the response came from the server; of one that has started, that is.
    ResponseComplete(Afterwards),
    /// The server closed or broke the connection.
    ServerGone,
    /// The server sent what is no response.
    BadResponse,
    /// The client closed or broke its connection.
    ClientGone,
    /// The client sent a malformed body, or ended in the middle of it.
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

/// The answer to a wish for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// This one.
    Server(ServerIndex, Bond),
    /// There are usable ones, and none is free: whichever is first.
    Anyone,
    /// None is usable.
    Nobody,
}

/// How much a request cares for its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// Any other would have done: it was free.
    Loose,
    /// This one is worth a wait, while its queue has room: a policy's choice, or the shortest queue.
    Preferred,
    /// It was imposed: by a cookie, a hash, an authenticated connection. Left only as RT-3 says.
    Tied,
}

/// Whether another attempt is within the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// It may be made.
    Allows,
    /// Too many others are being made.
    Spent,
}

/// The answer to a wish for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours.
    Yes,
    /// None is free, or others wait for one.
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
    /// Here: no descriptor, no port. No reason to spare the server a moment (RT-5).
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
    /// No slot (`timeout-queue`, Q-14).
    Queue,
    /// No progress from or to the server (`timeout-server`).
    Server,
    /// Neither side of a tunnel said anything (`timeout-tunnel`).
    Tunnel,
}
