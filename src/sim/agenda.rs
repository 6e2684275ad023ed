//! What happens next: events in virtual time.
//!
//! ```text
//! present   of this instant and before: a heap      ◄── near    of the next instants, each in a slot of its own
//!                                                   ◄── far     of all later ones: a heap
//! ```
//!
//! At one instant the workers step in an order that is drawn from the seed, for that instant anew; each does what it
//! has to do in the order in which it came to it. So a run meets the orders that threads meet, and the same seed meets
//! the same ones.

mod near;

use super::live::Token;
use crate::decide::settings::Micros;
use crate::policy::WorkerId;
use near::{Near, SPAN};
use std::cmp::Ordering;
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
    /// That is at hand. Nothing in `near` and `far` is as early.
    instant: Micros,
    present: BinaryHeap<Entry>,
    near: Near,
    /// What is [`SPAN`] and more away.
    far: BinaryHeap<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: Micros,
    rank: u32,
    entered: u64,
    pub(super) worker: WorkerId,
    pub(super) step: Step,
}

impl Ord for Entry {
    /// The next one is the greatest, for the heap. Most differ in their time.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match other.at.cmp(&self.at) {
            Ordering::Equal => (other.rank, other.entered).cmp(&(self.rank, self.entered)),
            order => order,
        }
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Agenda {
    pub(super) fn new(seed: u64) -> Self {
        Agenda {
            seed,
            entered: 0,
            instant: 0,
            present: BinaryHeap::new(),
            near: Near::new(),
            far: BinaryHeap::new(),
        }
    }

    pub(super) fn enter(&mut self, at: Micros, worker: WorkerId, step: Step) {
        let (rank, entered) = (self.rank(at, worker), self.entered);
        self.entered += 1;
        self.put(Entry {
            at,
            rank,
            entered,
            worker,
            step,
        });
    }

    pub(super) fn next(&mut self) -> Option<Entry> {
        if self.present.is_empty() {
            self.advance()?;
        }
        self.present.pop()
    }

    fn put(&mut self, entry: Entry) {
        if entry.at <= self.instant {
            self.present.push(entry);
        } else if entry.at - self.instant < SPAN {
            self.near.put(entry);
        } else {
            self.far.push(entry);
        }
    }

    /// Goes on to the next instant of which there is anything.
    fn advance(&mut self) -> Option<()> {
        let near = self.near.first_after(self.instant);
        self.instant = match near {
            Some(instant) => instant,
            None => self.far.peek()?.at,
        };
        if near.is_some() {
            self.near.take(self.instant, |entry| self.present.push(entry));
        }
        let end = self.instant.saturating_add(SPAN);
        while self.far.peek().is_some_and(|entry| entry.at < end)
            && let Some(entry) = self.far.pop()
        {
            self.put(entry);
        }
        Some(())
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
    use crate::policy::Draw as _;
    use crate::sim::random::Dice;
    use std::cmp::Reverse;
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

    /// However far apart events are, they come as they would out of one heap.
    #[test]
    fn near_and_far_are_one_order() {
        let (mut agenda, mut heap, mut dice) = (Agenda::new(5), Vec::new(), Dice::new(5));
        let (mut now, mut left) = (0, 20_000);
        while left > 0 || !heap.is_empty() {
            for _ in 0..dice.draw(4).min(left) {
                let reach = [1, 3, 1_000, SPAN, SPAN + 1, 4 * SPAN][dice.draw(6) as usize];
                let at = (now + dice.before(reach)).saturating_sub(Micros::from(dice.draw(2)));
                let worker = WorkerId(dice.draw(3) as u16);
                heap.push((at, agenda.rank(at, worker), agenda.entered));
                agenda.enter(at, worker, Step::Steer);
                left -= 1;
            }
            heap.sort_unstable_by_key(|entry| Reverse(*entry));
            let next = agenda.next().map(|entry| (entry.at, entry.rank, entry.entered));
            assert_eq!(next, heap.pop());
            now = next.map_or(now + 3 * SPAN, |(at, ..)| at);
        }
        assert_eq!(agenda.next(), None);
    }

    #[test]
    fn the_seed_says_who_steps_first() {
        let firsts: BTreeSet<u16> = (0..20).map(|seed| order(seed)[1].1).collect();
        assert_eq!(firsts.len(), 3, "{firsts:?}");
        assert_eq!(order(7), order(7));
    }
}
