//! How access log records leave a worker: appended to the worker's own batch, handed over once per turn.
//!
//! Between a worker and the log thread stands a *lane*: one buffer under one lock, which the worker holds to swap or
//! append and the log thread to swap, never longer. The log thread looks every few milliseconds while there is
//! traffic, so a turn costs no system call; only a worker that finds it asleep rings the *bell*.
//!
//! Nothing here waits for the log thread. A full batch or lane drops what does not fit, record by record counted. Three
//! buffers circulate per worker and keep their memory: nothing is allocated once they have grown.
//!
//! The bell: the log thread clears it first and looks into the lanes second; a worker fills its lane first and rings
//! second. Both pass through the lane's lock in between, so a worker that still sees the bell ringing after it left
//! the lock was before the log thread there, and is read.

use super::record::Record;
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

/// The worker's end of its lane.
#[derive(Debug)]
pub struct Batcher {
    batch: Vec<u8>,
    records: u64,
    lane: Arc<Lane>,
    bell: Arc<Bell>,
}

/// What one worker has handed over and the log thread has not taken yet.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pending: Mutex<Pending>,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    records: u64,
}

/// Wakes the log thread, once per nap.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: AtomicBool,
    sleeper: OnceLock<Thread>,
}

/// Most bytes that one turn of a worker may log; 256 KiB.
pub const BATCH_MAX: usize = 256 * 1024;
/// Most bytes that wait for the log thread per worker; 1 MiB.
pub const LANE_MAX: usize = 1024 * 1024;

impl Batcher {
    pub(super) fn new(lane: Arc<Lane>, bell: Arc<Bell>) -> Batcher {
        Batcher {
            batch: Vec::new(),
            records: 0,
            lane,
            bell,
        }
    }

    /// Notes one finished request.
    pub fn push(&mut self, record: &Record) {
        if self.batch.len() >= BATCH_MAX {
            return self.lane.drop_records(1);
        }
        record.encode(&mut self.batch);
        self.records += 1;
    }

    /// Hands over what this turn noted. At the end of each turn; costs one branch when there is nothing.
    pub fn flush(&mut self) {
        if self.records > 0 {
            self.hand_over();
        }
    }

    /// Records that were dropped on this lane so far.
    pub fn dropped(&self) -> u64 {
        self.lane.dropped()
    }

    fn hand_over(&mut self) {
        let records = mem::take(&mut self.records);
        if !self.lane.give(&mut self.batch, records) {
            self.lane.drop_records(records);
        }
        self.batch.clear();
        self.bell.ring();
    }
}

impl Drop for Batcher {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Lane {
    /// Adds a batch; says no, and leaves it, when there is no room. The batch comes back with other memory.
    fn give(&self, batch: &mut Vec<u8>, records: u64) -> bool {
        let mut pending = self.pending.lock();
        if pending.bytes.is_empty() {
            mem::swap(&mut pending.bytes, batch);
        } else if pending.bytes.len() + batch.len() <= LANE_MAX {
            pending.bytes.extend_from_slice(batch);
        } else {
            return false;
        }
        pending.records += records;
        true
    }

    /// Takes everything that waits, leaving the empty buffer `into` for the next; says how many records it is.
    pub(super) fn take(&self, into: &mut Vec<u8>) -> u64 {
        into.clear();
        let mut pending = self.pending.lock();
        mem::swap(&mut pending.bytes, into);
        mem::take(&mut pending.records)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.lock().bytes.is_empty()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Only its worker writes this number.
    fn drop_records(&self, records: u64) {
        self.dropped.store(self.dropped() + records, Ordering::Relaxed);
    }
}

impl Bell {
    /// Says which thread to wake; once.
    pub(super) fn wakes(&self, thread: Thread) {
        let first = self.sleeper.set(thread);
        debug_assert!(first.is_ok(), "one log thread");
    }

    pub(super) fn ring(&self) {
        if self.rung.load(Ordering::Relaxed) || self.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(sleeper) = self.sleeper.get() {
            sleeper.unpark();
        }
    }

    /// Whether it was rung since the last look; silent afterwards. Look into the lanes after this, not before.
    pub(super) fn silence(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::super::encoding::decode;
    use super::super::record::Record;
    use super::super::testing::example_record as example;
    use super::*;

    fn pair() -> (Batcher, Arc<Lane>, Arc<Bell>) {
        let (lane, bell) = (Arc::new(Lane::default()), Arc::new(Bell::default()));
        (Batcher::new(Arc::clone(&lane), Arc::clone(&bell)), lane, bell)
    }

    fn statuses(bytes: &[u8]) -> Vec<u16> {
        decode(bytes).map(|record| record.status).collect()
    }

    #[test]
    fn turns_arrive_in_order_and_ring_once() {
        let (mut batcher, lane, bell) = pair();
        batcher.flush();
        assert!(!bell.silence(), "nothing noted, nothing rung");
        for status in [200, 404, 503] {
            batcher.push(&Record { status, ..example() });
            batcher.flush();
        }
        assert!(bell.silence() && !bell.silence());
        let mut taken = Vec::new();
        assert_eq!(lane.take(&mut taken), 3);
        assert_eq!(statuses(&taken), [200, 404, 503]);
        assert_eq!(lane.take(&mut taken), 0);
        assert!(taken.is_empty());
    }

    #[test]
    fn what_is_not_taken_is_bounded_and_counted() {
        let (mut batcher, lane, _bell) = pair();
        let mut pushed = 0;
        for _turn in 0..40 {
            for _request in 0..200 {
                batcher.push(&example());
                pushed += 1;
            }
            batcher.flush();
        }
        let mut taken = Vec::new();
        let kept = lane.take(&mut taken);
        assert!(
            taken.len() <= LANE_MAX && taken.len() > LANE_MAX / 2,
            "{}",
            taken.len()
        );
        assert_eq!(decode(&taken).count() as u64, kept);
        assert!(batcher.dropped() > 0);
        assert_eq!(kept + batcher.dropped(), pushed);
    }

    #[test]
    fn one_turn_is_bounded_too() {
        let (mut batcher, lane, _bell) = pair();
        let target = [b'x'; 2000];
        for _ in 0..1000 {
            batcher.push(&Record {
                target: &target,
                ..example()
            });
        }
        batcher.flush();
        let kept = lane.take(&mut Vec::new());
        assert_eq!(kept + batcher.dropped(), 1000);
        assert_eq!(kept as usize, BATCH_MAX / 2156 + 1);
    }

    #[test]
    fn buffers_circulate() {
        let (mut batcher, lane, _bell) = pair();
        let mut taken = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..9 {
            batcher.push(&example());
            batcher.flush();
            assert_eq!(lane.take(&mut taken), 1);
            seen.push(taken.as_ptr());
        }
        seen.sort();
        seen.dedup();
        assert!(seen.len() <= 3, "{} buffers", seen.len());
    }

    #[test]
    fn the_last_turn_of_a_worker_is_not_lost() {
        let (mut batcher, lane, bell) = pair();
        batcher.push(&example());
        drop(batcher);
        assert!(bell.silence());
        assert_eq!(lane.take(&mut Vec::new()), 1);
    }
}
