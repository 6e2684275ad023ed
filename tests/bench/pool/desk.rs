//! A pool with requests at it, as a worker makes them: what the bench and the allocation test both measure.

use forebay::decide::reuse::{
    Descriptors, Figures, Gate, Mode, OpenReason, Proven, Released, Sharing, Wanted,
};
use forebay::policy::WorkerId;
use forebay::shared::key::{KeySecret, Parts, PoolKey};
use forebay::shared::pool::{Found, Pool};

/// As large as the proxy's: a socket, counters, a few flags.
type Connection = [u64; 6];

/// A pool, and all that its requests have in common.
pub(crate) struct Desk {
    pool: Pool<Connection>,
    key: PoolKey,
    other: PoolKey,
    gate: Gate,
    released: Released,
}

impl Desk {
    pub(crate) fn new(workers: u16) -> Self {
        let secret = KeySecret::from_seed(1);
        let other = Parts {
            tag: Some(b"other"),
            ..Parts::default()
        };
        let descriptors = Descriptors::new(16, 4096, 20, 25);
        Desk {
            pool: Pool::new(workers),
            key: PoolKey::new(&secret, &Parts::default()),
            other: PoolKey::new(&secret, &other),
            gate: Gate {
                sharing: Sharing::On,
                reverse: false,
                figures: Figures::default(),
                descriptors,
            },
            released: Released {
                mode: Mode::Safe,
                private: false,
                maintenance: false,
                purge_delay: true,
                reverse: false,
                streams: 0,
                free_streams: 1,
                proven: Proven::Safe,
                reuses_left: None,
                descriptors,
                figures: Figures::default(),
            },
        }
    }

    /// Connections that are used at once and then parked.
    pub(crate) fn open(&self, worker: WorkerId, connections: u32) {
        (0..connections).for_each(|_| self.pool.need.opened());
        (0..connections).for_each(|_| self.release(worker, [0; 6]));
    }

    /// A request: a connection from wherever one is, parked again by this worker. The answer is whose it was.
    pub(crate) fn request(&self, worker: WorkerId) -> Result<WorkerId, OpenReason> {
        let found = self.pool.find(worker, &self.key, Wanted::Any, &self.gate)?;
        let from = match found {
            Found::Own(_) => worker,
            Found::Stolen { from, .. } => from,
        };
        self.release(worker, found.into_connection());
        Ok(from)
    }

    /// A take-over by `thief`, after which `owner` parks it again. For one thread that plays both.
    pub(crate) fn steal(&self, thief: WorkerId, owner: WorkerId) -> bool {
        let Ok(found) = self.pool.find(thief, &self.key, Wanted::Any, &self.gate) else {
            return false;
        };
        self.release(owner, found.into_connection());
        true
    }

    /// A request whose key no connection has.
    pub(crate) fn search_other(&self, worker: WorkerId) -> Result<Found<Connection>, OpenReason> {
        self.pool.find(worker, &self.other, Wanted::Any, &self.gate)
    }

    fn release(&self, worker: WorkerId, connection: Connection) {
        let released = self.pool.release(worker, &self.key, &self.released, connection);
        if released.is_err() {
            self.pool.need.closed();
        }
    }
}
