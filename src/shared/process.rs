//! What all workers of the process share besides servers: loads and descriptors.
//!
//! Each worker alone writes its own load; the others read it when they place a new client. All of it is approximate
//! by nature, and relaxed; except that in a drain, a worker may not end before all others have said that they hand no
//! client off to it.

use super::key::KeySecret;
use crate::decide::reuse::{Descriptors, Sharing};
use crate::policy::WorkerId;
use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// Loads of the workers and descriptors of the process.
#[derive(Debug)]
pub struct Process {
    loads: Box<[Load]>,
    server_connections: AtomicU32,
    handing_off: AtomicU32,
    descriptor_limit: u32,
    low_percent: AtomicU32,
    high_percent: AtomicU32,
    sharing: AtomicBool,
    key_secret: KeySecret,
}

#[derive(Debug)]
#[repr(align(128))]
struct Load(AtomicU32);

impl Process {
    /// A process of so many workers that may open `descriptor_limit` descriptors.
    pub fn new(workers: u16, descriptor_limit: u32) -> Process {
        Process {
            loads: (0..workers).map(|_| Load(AtomicU32::new(0))).collect(),
            server_connections: AtomicU32::new(0),
            handing_off: AtomicU32::new(u32::from(workers)),
            descriptor_limit,
            low_percent: AtomicU32::new(20),
            high_percent: AtomicU32::new(25),
            sharing: AtomicBool::new(true),
            key_secret: KeySecret::random(),
        }
    }

    /// Sets `pool-low-fd-ratio` and `pool-high-fd-ratio`, in percent (POOL-33).
    pub fn set_ratios(&self, low: u8, high: u8) {
        self.low_percent.store(u32::from(low), Ordering::Relaxed);
        self.high_percent.store(u32::from(high), Ordering::Relaxed);
    }

    /// Sets whether workers take over each other's idle connections (`pool-sharing`).
    pub fn set_sharing(&self, sharing: Sharing) {
        self.sharing.store(sharing == Sharing::On, Ordering::Relaxed);
    }

    /// Whether they do (POOL-21).
    pub fn sharing(&self) -> Sharing {
        if self.sharing.load(Ordering::Relaxed) {
            Sharing::On
        } else {
            Sharing::Off
        }
    }

    /// What keys of connections are fingerprinted with.
    pub fn key_secret(&self) -> &KeySecret {
        &self.key_secret
    }

    /// Server connections that are open, against their thresholds (POOL-33, counted on server-side connections).
    pub fn descriptors(&self) -> Descriptors {
        Descriptors::new(
            self.server_connections(),
            self.descriptor_limit,
            self.low_percent.load(Ordering::Relaxed) as u8,
            self.high_percent.load(Ordering::Relaxed) as u8,
        )
    }

    /// The most descriptors the process may open.
    pub fn descriptor_limit(&self) -> u32 {
        self.descriptor_limit
    }

    /// Server connections that are open, busy, idle or being opened.
    pub fn server_connections(&self) -> u32 {
        self.server_connections.load(Ordering::Relaxed)
    }

    /// One more server connection is open.
    pub fn server_connection_opened(&self) {
        self.server_connections.fetch_add(1, Ordering::Relaxed);
    }

    /// One is closed.
    pub fn server_connection_closed(&self) {
        let before = self.server_connections.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "what is closed was open");
    }

    /// A worker will hand no client off any more, because it drains. `true`: it was the last.
    pub fn stop_hand_offs(&self) -> bool {
        self.handing_off.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether no worker hands a client off any more. What was handed off before lies in its mailbox.
    pub fn nobody_hands_off(&self) -> bool {
        self.handing_off.load(Ordering::Acquire) == 0
    }

    /// A worker tells how many client connections it has.
    pub fn set_load(&self, worker: WorkerId, connections: u32) {
        self.loads[usize::from(worker.0)]
            .0
            .store(connections, Ordering::Relaxed);
    }

    /// Every worker's client connections.
    pub fn loads(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.loads
            .iter()
            .map(|load| load.0.load(Ordering::Relaxed))
            .enumerate()
    }
}
