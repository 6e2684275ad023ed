//! Sockets, readiness, tokens, slabs and timers: what a worker stands on.
//!
//! Nothing here knows HTTP, servers or policies. The contact with the poller is narrow on purpose — *ready*,
//! *read*, *write*, *end* — so that another poller can take mio's place. The one rule that is easy to get wrong
//! (when a socket counts as drained) stands once, in [`stream`].

pub mod address;
pub mod connection;
pub mod listener;
pub mod poller;
pub mod slab;
pub mod stream;
pub mod wheel;

pub use address::Address;
pub use connection::Connection;
pub use listener::{Accepted, Listener};
pub use poller::{Kind, Poller, Ready, Registrar, Token, Waker};
pub use slab::{Key, Slab};
pub use stream::{Read, Stream};
pub use wheel::Wheel;

/// Microseconds since the process started, on the monotonic clock. Read once per turn of a worker's loop.
pub type Micros = u64;
