//! What `control/` tells workers, and what workers hand to each other. Generic over the sockets and the log's batches,
//! which this module does not know.

use super::generation::{Generation, ListenerId};

/// What a worker is told to do.
#[derive(Debug)]
pub enum Order<L, B> {
    /// Accept on this socket of this address from now on.
    Listen(ListenerId, Place, L),
    /// The sockets of an address belong to another listener after a reload.
    Rename(Place, ListenerId),
    /// Take what waits on the sockets of an address, then close them, and drop the token to say so.
    Unlisten(Place, Done),
    /// The wait of a request has ended; which one, its waiter's token says.
    Woken(u64),
    /// Nothing but: look whether a newer generation is published.
    Look,
    /// Make the access log's batches with this from now on, or make none.
    Log(Option<B>),
    /// Finish what is in progress, then end.
    Drain,
    /// End at once.
    Stop,
}

/// Tells the sockets of one listening address from those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u64);

/// Dropped when an order has been carried out.
pub type Done = crossbeam_channel::Sender<std::convert::Infallible>;

/// Where the current generation is found.
pub type Published<C, A> = arc_swap::ArcSwap<Generation<C, A>>;
