//! Who waits for a slot, in which order, and how each wait ends. One type serves servers and backends alike (Q-1).
//!
//! ```text
//!              ┌─→ Granted(server)   a dequeuer passed a slot on: the waiter holds it now
//! Waiting ─────┼─→ SentBack          its server, or the last one of its backend, is gone: choose again (Q-13)
//!              └─→ Cancelled         its own worker: time is up, or the client left (Q-14)
//! ```
//!
//! - A [`Waiter`] is one atomic, changed once, by compare-and-swap: who changes it decides, and every wait ends once
//!   (Q-16). A dequeuer that finds it cancelled passes the slot on to the next; a canceller that finds it granted holds
//!   a slot, and gives it back as one gives any slot back.
//! - A [`Queue`] is a map in order of [`Rank`] under its own lock, which is held together with no other one. Who removes
//!   a waiter from the map under the lock lets it go; a waiter that is not there any more was removed by somebody else.
//! - Its length is an atomic beside the lock, changed under the lock, so that an empty queue costs one read.
//! - A closed queue takes nobody in, so that none is stranded who comes while its server goes.
//! - Wake-ups are collected in [`Grants`] and sent by the caller after every lock was released.
//!
//! Which queue a free slot goes to is not decided here but in `table`.

use crate::policy::{ServerId, ServerIndex, WorkerId};
use crate::sync::{Arc, AtomicU32, AtomicU64, Guard, Mutex, Ordering};
use std::collections::BTreeMap;

/// Classes go from −this to this; the lowest is served first (Q-2).
pub const CLASS_MAX: i16 = 2047;

/// A place in the order of a queue (Q-2). The lowest is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// Priority, −2047…2047; the usual one is 0.
    pub class: i16,
    /// First arrival in a queue plus offset, in microseconds of the workers' clock. Who was sent back and waits again
    /// keeps its arrival.
    pub at: i64,
    /// Of arrivals in this queue: nobody shares it, so equals are served as they came.
    pub sequence: u64,
}

impl Rank {
    /// Whether it comes before the head of another queue, which has its own sequence (Q-11).
    pub fn is_before(self, other: Rank) -> bool {
        (self.class, self.at) < (other.class, other.at)
    }
}

/// One that waits, in one queue at a time.
#[derive(Debug)]
pub struct Waiter {
    state: AtomicU64,
    /// Who is told.
    pub worker: WorkerId,
    /// What is told: the worker's word for the one that waits.
    pub token: u64,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds a slot of that server, and must give it back.
    Granted(Granted),
    /// It holds nothing, and chooses again with the current table.
    SentBack,
    /// It ended it itself.
    Cancelled,
}

/// Whose slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The server.
    pub server: ServerId,
    /// Its place in the table of who granted, which may not be the table of who was granted. See
    /// [`super::table::BackendTable::find_near`].
    pub near: ServerIndex,
}

const WAITING: u64 = 0;
const SENT_BACK: u64 = 1;
const CANCELLED: u64 = 2;
const GRANTED: u64 = 3;
const KIND: u64 = 3;

impl Waiter {
    /// One that waits.
    pub fn new(worker: WorkerId, token: u64) -> Waiter {
        Waiter {
            state: AtomicU64::new(WAITING),
            worker,
            token,
        }
    }

    /// How the wait ended; `None` as long as it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        Outcome::of(self.state.load(Ordering::Acquire))
    }

    /// Ends the wait, unless it has ended: then how.
    pub(super) fn end(&self, outcome: Outcome) -> Result<(), Outcome> {
        self.state
            .compare_exchange(WAITING, outcome.word(), Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(|word| Outcome::of(word).expect("only a wait that goes on is 0"))
    }
}

impl Outcome {
    fn word(self) -> u64 {
        match self {
            Outcome::Granted(Granted { server, near }) => {
                u64::from(server.0) << 32 | u64::from(near.0) << 16 | GRANTED
            }
            Outcome::SentBack => SENT_BACK,
            Outcome::Cancelled => CANCELLED,
        }
    }

    fn of(word: u64) -> Option<Outcome> {
        match word & KIND {
            WAITING => None,
            SENT_BACK => Some(Outcome::SentBack),
            CANCELLED => Some(Outcome::Cancelled),
            _ => Some(Outcome::Granted(Granted {
                server: ServerId((word >> 32) as u32),
                near: ServerIndex((word >> 16) as u16),
            })),
        }
    }
}

/// Waiters in order. On lines of its own: its length is read by all who give a slot back, its lock taken by few.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Queue {
    length: AtomicU32,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    is_closed: bool,
    arrivals: u64,
    waiters: BTreeMap<Rank, Arc<Waiter>>,
}

/// A locked [`Queue`].
#[derive(Debug)]
pub struct Locked<'a> {
    line: Guard<'a, Line>,
    length: &'a AtomicU32,
}

impl Queue {
    /// An empty one, open.
    pub fn new() -> Queue {
        Queue::default()
    }

    /// How many wait. In one order with the changes of `slots`: who enters and then looks for a free slot, and who
    /// frees a slot and then looks here, cannot both find nothing (Q-9).
    pub fn len(&self) -> u32 {
        self.length.load(Ordering::SeqCst)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for the lock. Nothing else may be locked meanwhile.
    pub fn lock(&self) -> Locked<'_> {
        Locked {
            line: self.line.lock(),
            length: &self.length,
        }
    }
}

impl Locked<'_> {
    /// Whether nobody may enter.
    pub fn is_closed(&self) -> bool {
        self.line.is_closed
    }

    /// Lets nobody in from now on.
    pub fn close(&mut self) {
        self.line.is_closed = true;
    }

    /// The opposite.
    pub fn open(&mut self) {
        self.line.is_closed = false;
    }

    /// How many wait.
    pub fn len(&self) -> u32 {
        self.line.waiters.len() as u32
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.line.waiters.is_empty()
    }

    /// Puts one in its place; it must be open.
    pub fn insert(&mut self, class: i16, at: i64, waiter: Arc<Waiter>) -> Rank {
        debug_assert!(!self.line.is_closed, "who enters has asked");
        let sequence = self.line.arrivals;
        self.line.arrivals += 1;
        let rank = Rank { class, at, sequence };
        self.line.waiters.insert(rank, waiter);
        self.length.fetch_add(1, Ordering::SeqCst);
        rank
    }

    /// The place of the first.
    pub fn first(&self) -> Option<Rank> {
        self.line.waiters.first_key_value().map(|(rank, _)| *rank)
    }

    /// Takes the first out.
    pub fn pop(&mut self) -> Option<Arc<Waiter>> {
        let (_, waiter) = self.line.waiters.pop_first()?;
        self.length.fetch_sub(1, Ordering::SeqCst);
        Some(waiter)
    }

    /// Takes one out; `false` if somebody else has.
    pub fn remove(&mut self, rank: Rank) -> bool {
        let was_there = self.line.waiters.remove(&rank).is_some();
        if was_there {
            self.length.fetch_sub(1, Ordering::SeqCst);
        }
        was_there
    }
}

/// Who is to be told that its wait has ended. A buffer of the caller's, sent and cleared after the locks.
#[derive(Debug, Default)]
pub struct Grants {
    list: Vec<Grant>,
    unfinished: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who is told.
    pub worker: WorkerId,
    /// What: [`Waiter::token`]. The outcome is the waiter's.
    pub token: u64,
}

impl Grants {
    /// Nobody.
    pub fn new() -> Grants {
        Grants::default()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is nobody to be told.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes them out, in the order in which their waits ended.
    pub fn drain(&mut self) -> impl Iterator<Item = Grant> + '_ {
        self.list.drain(..)
    }

    /// Whether somebody may wait beside a free slot still, because one call serves only so many. `true` once: then
    /// [`super::table::BackendTable::look`] again, after these were sent.
    #[must_use = "nobody else goes on with it"]
    pub fn take_unfinished(&mut self) -> bool {
        std::mem::take(&mut self.unfinished)
    }

    pub(super) fn add(&mut self, waiter: &Waiter) {
        self.list.push(Grant {
            worker: waiter.worker,
            token: waiter.token,
        });
    }

    pub(super) fn leave_unfinished(&mut self) {
        self.unfinished = true;
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;
