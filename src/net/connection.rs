//! A server connection as an owned value: what is parked, lent and taken over.

use super::stream::Stream;

/// A connection to a server with no message on it. Whoever takes it out of a pool owns it.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub stream: Stream,
    /// Requests it has carried (POOL-1: two or more make it *safe*).
    pub requests: u32,
    /// The slot it keeps in its owner's slab while it is parked, for the events that reach it there.
    pub home: super::slab::Key,
}
