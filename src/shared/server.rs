//! One server, as long as it has a name: what survives every table and every reload (DESIGN: identity).
//!
//! A table names its servers through `Arc<Server>`; a new table takes over those that it still has. One that no table
//! has any more is freed by its last exchange.
//!
//! The decision counters, which every request of every worker writes, share the first cache line with the pointers
//! that every request reads anyway. What is only read, its names, stands behind them, and
//! the queue on lines of its own.

use super::pool::Pool;
use super::queue::Queue;
use super::slots::Slots;
use super::statistics::{PerWorker, ServerStatistics};
use crate::policy::{ServerId, Windowed};
use crate::sync::{AtomicU32, Ordering};

/// One server of one backend. `C` is a connection to it.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Server<C> {
    /// Streams that hold or wait for a slot.
    pub slots: Slots,
    /// Parked connections, and the counters that decide how many.
    pub pool: Pool<C>,
    /// What is counted about it.
    pub statistics: PerWorker<ServerStatistics>,
    /// Its identity: (backend, name).
    pub id: ServerId,
    /// Name of its backend.
    pub backend: Box<str>,
    /// Its name there.
    pub name: Box<str>,
    /// Who waits for a slot of this server and no other.
    pub queue: Queue,
    /// How it did in the last window, where a policy reads that.
    pub window: Window,
}

/// What a server did in the last window: made by the control thread, read by whoever is asked for a measure.
#[derive(Debug)]
pub struct Window([AtomicU32; Windowed::ALL.len()]);

impl Window {
    const UNKNOWN: u32 = u32::MAX;

    fn new() -> Window {
        Window(std::array::from_fn(|_| AtomicU32::new(Window::UNKNOWN)))
    }

    /// What was found out; `None` for what is unknown.
    pub fn set(&self, measure: Windowed, value: Option<u32>) {
        self.0[measure.index()].store(value.unwrap_or(Window::UNKNOWN), Ordering::Relaxed);
    }

    /// A measure now; `None` while it is unknown.
    pub fn read(&self, measure: Windowed) -> Option<u32> {
        let value = self.0[measure.index()].load(Ordering::Relaxed);
        (value != Window::UNKNOWN).then_some(value)
    }
}

impl<C> Server<C> {
    /// A server that nobody has used yet, for that many workers.
    pub fn new(id: ServerId, backend: &str, name: &str, workers: u16) -> Self {
        Server {
            slots: Slots::new(),
            pool: Pool::new(workers),
            statistics: PerWorker::new(workers, ServerStatistics::default),
            id,
            backend: backend.into(),
            name: name.into(),
            queue: Queue::new(),
            window: Window::new(),
        }
    }
}

#[cfg(not(any(feature = "loom", feature = "shuttle")))]
const _: () = assert!(
    std::mem::offset_of!(Server<()>, id) <= 128,
    "what a request touches of a server fits one line"
);

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use crate::policy::WorkerId;
    use crate::shared::need::Counted;

    #[test]
    fn a_new_server_is_at_rest() {
        let server = Server::<()>::new(ServerId(7), "app", "a", 2);
        assert!(server.slots.take(1));
        assert_eq!(
            server.pool.need.read(),
            Counted {
                used: 0,
                idle: 0,
                max_used: 0,
                need: 0
            }
        );
        assert_eq!(server.pool.workers(), 2);
        assert_eq!(server.statistics.of(WorkerId(1)).requests.read(), 0);
        assert_eq!(
            (server.id, &*server.backend, &*server.name),
            (ServerId(7), "app", "a")
        );
    }
}
