//! Where an exchange stands: one phase for each of its three machines.

use super::Failure;
use crate::policy::ServerIndex;

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
    /// Nothing is asked for yet.
    Unasked,
    /// The balancer is asked; the server that failed before, if one did.
    Choosing(Option<Failed>),
    /// A slot of this one is asked for.
    Taking(ServerIndex),
    /// In the queue of this server, or of the backend; no slot is held. The server that failed before, if one did.
    Waiting(Option<ServerIndex>, Option<Failed>),
    /// An idle connection is looked for; a slot is held from here on.
    Lending(ServerIndex),
    /// A new connection is being opened.
    Connecting(ServerIndex),
    /// The budget is asked for another attempt; without one, this is the end.
    Charging(Failed, Failure),
    /// Resting before this one is tried again; no slot is held.
    Pausing(ServerIndex),
    /// A connection is ours.
    Holding(ServerIndex, Lease),
    /// Nothing is held any more.
    Released,
}

/// A server that failed, and whether to wait before it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    pub(super) server: ServerIndex,
    pub(super) wait: bool,
}

/// What kind of connection is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// Opened for this request.
    Fresh,
    /// It has carried requests before; its server may be closing it right now.
    Reused,
}
