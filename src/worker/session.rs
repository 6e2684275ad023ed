//! One client connection and the request that is in progress on it: the data, without the doing.

use super::edits::ResponseEdits;
use super::persist::{Last, Ties};
use super::preconnect::Opening;
use super::queue::Seat;
use super::usher::Ushering;
use crate::decide::exchange::{Exchange, ResponseSide, Timer};
use crate::decide::reuse::{CloseReason, OpenReason};
use crate::decide::sharing::Sharing;
use crate::http1::{Body, Method, Version};
use crate::net::{Connection, Key, Micros, Stream};
use crate::observe::record::Ahead;
use crate::policy::ServerId;
use crate::shared::generation::ListenerId;
use crate::shared::key::PoolKey;
use crate::shared::parked::Ticket;
use std::net::SocketAddr;

/// A client connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) stream: Stream,
    pub(super) client: SocketAddr,
    pub(super) listener: ListenerId,
    /// The generation whose listener this came through, once the current one no longer has it.
    pub(super) pinned: Option<u32>,
    pub(super) phase: Phase,
    /// Whether another request may follow the present one.
    pub(super) keep: Keep,
    /// Whether it is in the run queue.
    pub(super) queued: bool,
    /// Whether its deadline has passed while it waited for its turn.
    pub(super) spared: bool,
    /// Whether `input` holds bytes that no parser has seen.
    pub(super) unseen: bool,
    /// Requests begun on this connection.
    pub(super) requests: u32,
    /// Bytes read and not consumed: a part of a head, or what was pipelined behind a request.
    pub(super) input: Vec<u8>,
    /// What the client did not take yet, from `output_sent` on.
    pub(super) output: Vec<u8>,
    pub(super) output_sent: usize,
    /// Idle server connections that only this client may use (POOL-60).
    pub(super) private: Vec<Key>,
    /// Where its last request went, for a backend that prefers it (LB-51).
    pub(super) last: Last,
    /// The last progress from or to the client.
    pub(super) active: Micros,
    /// When the present phase began; in a head, when the wait for it did.
    pub(super) since: Micros,
    /// The time of the wheel's entry; `NEVER` without one.
    pub(super) timer_at: Micros,
}

/// No time.
pub(super) const NEVER: Micros = Micros::MAX;

/// Whether another request may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

/// Where a client connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Between two requests.
    Idle,
    /// A part of a head has come, the first byte of it then.
    Head(Micros),
    /// A request is in progress.
    Busy(Key),
    /// What is left to say is being said; then it closes.
    Closing(Manner),
}

/// How a client connection closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// At once: nothing unread is expected.
    Plain,
    /// Our side first, then the rest of what the client sends is read and thrown away, for a while: a close with
    /// unread bytes would reset the connection and take our answer with it (RFC 9112 §9.6).
    Linger,
    /// Our side is closed, the client's is awaited.
    Draining,
}

impl Session {
    pub(super) fn has_output(&self) -> bool {
        self.output_sent < self.output.len()
    }

    /// When the first byte of the message came that is being read.
    pub(super) fn message_began(&self) -> Micros {
        match self.phase {
            Phase::Head(began) => began,
            Phase::Idle | Phase::Busy(_) | Phase::Closing(_) => self.since,
        }
    }
}

/// One request in progress.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) machine: Exchange,
    pub(super) session: Key,
    /// The generation whose servers it chooses from, by its place in the worker's list.
    pub(super) generation: u32,
    /// The backend, by its place in that generation.
    pub(super) backend: u16,
    /// The same as it came: its routes and edits are of that time.
    pub(super) begun: Begun,
    pub(super) route: Option<u16>,
    /// Its slot, and its waiting for one.
    pub(super) seat: Seat,
    pub(super) upstream: Option<Key>,
    pub(super) method: Method,
    pub(super) version: Version,
    /// Whether the client asked to switch protocols.
    pub(super) upgrade: bool,
    pub(super) request_body: Body,
    pub(super) response_body: Body,
    /// The request as it goes to the server; what lies before `sent` is kept while it may have to be sent again.
    pub(super) out: Vec<u8>,
    pub(super) sent: usize,
    /// How far it got on the present connection.
    pub(super) delivery: Delivery,
    /// Length of the head in `out`.
    pub(super) head_length: usize,
    /// A part of a response's head.
    pub(super) input: Vec<u8>,
    /// What becomes of the response's header; `None` where nothing is edited.
    pub(super) response_edits: Option<ResponseEdits>,
    /// What the backend's policy asked to see of the request; `None` where none is asked.
    pub(super) attributes: Option<Vec<u8>>,
    /// What is kept for the questions about its waiting.
    pub(super) ushering: Ushering,
    /// What ties it to a server.
    pub(super) ties: Ties,
    /// How its connections may be shared.
    pub(super) sharing: Sharing,
    /// The key of its connection, where it is not its server's own.
    pub(super) pool_key: Option<PoolKey>,
    /// Whether the server was the policy's choice.
    pub(super) asked: bool,
    /// Whether the server keeps its connection after this response.
    pub(super) server_keeps: bool,
    /// Whether the response's chunks are taken apart for an HTTP/1.0 client.
    pub(super) decoded: bool,
    /// Why a connection has to be opened.
    pub(super) open_reason: OpenReason,
    /// The last progress from or to the server.
    pub(super) server_active: Micros,
    /// When the pause before a retry is over.
    pub(super) pause_until: Micros,
    pub(super) tunnel: TunnelEnds,
    pub(super) account: Account,
}

/// Generation and backend that a request came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) generation: u32,
    pub(super) backend: u16,
}

/// How far a request got on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// Not one byte was taken.
    Nothing,
    /// Some were.
    Begun,
    /// Some were, and no more can be: what the server said before it broke the connection is still read.
    Broken,
}

/// Which sides of a tunnel have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TunnelEnds {
    pub(super) client: bool,
    pub(super) server: bool,
}

/// What the log and the statistics will say of a request.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Method, target and host as they came, one after the other, when there is a log.
    pub(super) texts: Vec<u8>,
    pub(super) method_length: u16,
    pub(super) target_length: u16,
    /// When its first byte came.
    pub(super) started: Micros,
    pub(super) head_complete: Micros,
    /// When the connection to the server was ours; 0 before.
    pub(super) connected: Micros,
    /// When the connect began; 0 where none was needed.
    pub(super) connect_began: Micros,
    /// When the response's head came; 0 before.
    pub(super) response_began: Micros,
    pub(super) status: u16,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) retries: u16,
    pub(super) redispatched: bool,
    /// µs in queues; `None` as long as it was in none.
    pub(super) waited: Option<Micros>,
    /// How many were ahead of it when it came to a queue for the last time.
    pub(super) ahead: Ahead,
    pub(super) held: Held,
    /// Why its server connection was closed; `None` if it was kept.
    pub(super) closed: Option<CloseReason>,
    /// Bytes that came from the server.
    pub(super) server_bytes: u64,
    /// The last server that was chosen.
    pub(super) server: Option<crate::policy::ServerIndex>,
}

/// Where the server connection of a request came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Held {
    /// There was none yet.
    #[default]
    Nothing,
    /// It was opened, because …
    New(OpenReason),
    /// It was idle here, and had carried one request.
    Idle,
    /// It was idle here, and had carried more.
    Safe,
    /// A sibling had it.
    TakenOver,
    /// The session had it for itself.
    Private,
}

impl Held {
    /// One that was parked here after so many requests.
    pub(super) fn by(requests: u32) -> Held {
        if requests > 1 { Held::Safe } else { Held::Idle }
    }

    /// Whether it had carried requests before.
    pub(super) fn is_reused(self) -> bool {
        !matches!(self, Held::Nothing | Held::New(_))
    }
}

/// A server connection's slot in the worker's slab.
#[derive(Debug)]
pub(super) enum Upstream {
    /// It serves a request, or is being opened for one.
    Lent {
        connection: Connection,
        session: Key,
        server: ServerId,
        /// Whether it is its session's alone from now on.
        private: bool,
    },
    /// It lies in the pool of this worker; events find it by its ticket.
    Parked {
        ticket: Option<Ticket>,
        server: ServerId,
    },
    /// It is being opened for nobody yet.
    Opening(Opening),
    /// It is idle and belongs to one session.
    Private {
        connection: Connection,
        session: Key,
        server: ServerId,
        key: PoolKey,
        /// Whether it would be under another `reuse`, too: the server has authenticated it.
        private: bool,
    },
}

/// Which limit ends the present phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// No next request came.
    KeepAlive,
    /// The head took too long.
    Head,
    /// The client did not close after we did, or does not read its last answer.
    Linger,
    /// A phase of the request took too long.
    Phase(Timer),
    /// The pause before a retry is over.
    Pause,
}

impl Live {
    /// Whether the whole of `out` has gone to the server.
    pub(super) fn all_sent(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Whether a byte of the final response has come.
    pub(super) fn awaited(&self) -> bool {
        self.machine.response() == ResponseSide::Awaited
    }
}
