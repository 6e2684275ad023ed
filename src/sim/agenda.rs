//! What happens next: a heap of events in virtual time.
//!
//! At one instant the workers step in an order that is drawn from the seed, for that instant anew; each does what it
//! has to do in the order in which it came to it. So a run meets the orders that threads meet, and the same seed meets
//! the same ones.

use super::live::Token;
use crate::decide::settings::Micros;
use crate::policy::WorkerId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a worker does next. Numbers are places in the tables of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// It is through with what it was at.
    Resume,
    /// This stream of a client sends a request.
    Ask(u32),
    /// Traffic that comes at a rate: its next requests; of no worker.
    Arrive(u16),
    /// One of them, of that traffic and client.
    Burst(u16, u32),
    /// Of a script, that of this traffic, this line.
    Scripted(u16, u32),
    /// The connection of this request is open, in this attempt of it; and the same below.
    Opened(Token, u16),
    /// It is refused.
    Refused(Token, u16),
    /// It has taken too long.
    Unreachable(Token, u16),
    /// The response of this request is here.
    Answered(Token, u16),
    /// Its connection has ended instead.
    Lost(Token, u16),
    /// Neither has come in time.
    Late(Token, u16),
    /// It may try again.
    PauseOver(Token, u16),
    /// The purge timer of this server.
    Purge(u32),
    /// The wait of this request has ended, and its worker is told.
    Told(Token),
    /// The time of its wait is up.
    Expired(Token, u16),
    /// Its client has left.
    Left(Token, u16),
    /// The worker looks at what is published.
    TakeUp,
    /// Something is due that is of no worker: an operator's command, a plan.
    Steer,
    /// Time to write down how the servers stand; of no worker.
    Watch,
}

/// Events to come.
#[derive(Debug)]
pub(super) struct Agenda {
    seed: u64,
    entered: u64,
    heap: BinaryHeap<Reverse<Entry>>,
}

/// Ordered as it is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) at: Micros,
    rank: u32,
    entered: u64,
    pub(super) worker: WorkerId,
    pub(super) step: Step,
}

impl Agenda {
    pub(super) fn new(seed: u64) -> Self {
        Agenda {
            seed,
            entered: 0,
            heap: BinaryHeap::new(),
        }
    }

    pub(super) fn enter(&mut self, at: Micros, worker: WorkerId, step: Step) {
        let (rank, entered) = (self.rank(at, worker), self.entered);
        self.entered += 1;
        self.heap.push(Reverse(Entry {
            at,
            rank,
            entered,
            worker,
            step,
        }));
    }

    pub(super) fn next(&mut self) -> Option<Entry> {
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Where the worker stands among the others at that instant.
    fn rank(&self, at: Micros, worker: WorkerId) -> u32 {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&at.to_le_bytes());
        bytes[8..].copy_from_slice(&worker.0.to_le_bytes());
        xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, self.seed) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn order(seed: u64) -> Vec<(Micros, u16, Step)> {
        let mut agenda = Agenda::new(seed);
        for worker in 0..3 {
            agenda.enter(20, WorkerId(worker), Step::Ask(0));
            agenda.enter(20, WorkerId(worker), Step::Ask(1));
        }
        agenda.enter(10, WorkerId(2), Step::Purge(0));
        std::iter::from_fn(|| agenda.next())
            .map(|entry| (entry.at, entry.worker.0, entry.step))
            .collect()
    }

    #[test]
    fn time_goes_forward_and_each_worker_keeps_its_order() {
        let entries = order(1);
        assert_eq!(entries[0], (10, 2, Step::Purge(0)));
        assert!(
            entries[1..]
                .chunks(2)
                .all(|pair| { (pair[0].1, pair[0].2, pair[1].2) == (pair[1].1, Step::Ask(0), Step::Ask(1)) })
        );
    }

    #[test]
    fn the_seed_says_who_steps_first() {
        let firsts: BTreeSet<u16> = (0..20).map(|seed| order(seed)[1].1).collect();
        assert_eq!(firsts.len(), 3, "{firsts:?}");
        assert_eq!(order(7), order(7));
    }
}
