//! Timers: one hashed wheel per worker, lazy by contract.
//!
//! The owner's own deadline is the truth, the wheel is a hint: it says *look at this key now*, and the owner files
//! it again when its deadline has moved on. So a request moves its deadlines by plain stores and touches the wheel
//! only when a deadline comes *earlier* than the entry it has. Entries beyond the horizon (about 33 s) fire at the
//! horizon and are filed again. Nothing fires early; a timer is late by at most one slot (about 8 ms).
//!
//! Entries are nodes of one vector linked into the slots: after warm-up nothing is allocated.

use super::{Key, Micros};

const SLOTS: usize = 4096;
const SLOT_SHIFT: u32 = 13;
const NONE: u32 = u32::MAX;

/// A hashed wheel of 4,096 slots of 8.192 ms.
#[derive(Debug)]
pub struct Wheel {
    heads: Box<[u32]>,
    occupied: [u64; SLOTS / 64],
    nodes: Vec<Node>,
    free: u32,
    /// The next slot that has not been expired, as a count of slots since the clock's zero.
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: Key,
    at: Micros,
    next: u32,
}

impl Wheel {
    /// An empty wheel at time `now`.
    pub fn new(now: Micros) -> Wheel {
        Wheel {
            heads: vec![NONE; SLOTS].into_boxed_slice(),
            occupied: [0; SLOTS / 64],
            nodes: Vec::new(),
            free: NONE,
            next: now >> SLOT_SHIFT,
        }
    }

    /// Files `key` to be looked at once `at` has passed (or the horizon, if that is nearer). Tells the time under
    /// which [`Wheel::expire`] will report it, by which the owner knows its current entry from older ones.
    pub fn insert(&mut self, key: Key, at: Micros) -> Micros {
        let slot = ((at >> SLOT_SHIFT) + 1).clamp(self.next, self.next + SLOTS as u64 - 1);
        let at = at.min(slot << SLOT_SHIFT);
        let place = (slot % SLOTS as u64) as usize;
        let node = Node {
            key,
            at,
            next: self.heads[place],
        };
        self.heads[place] = self.store(node);
        self.occupied[place / 64] |= 1 << (place % 64);
        at
    }

    /// Reports up to `most` entries whose slot has passed; `true` when more of them are left.
    pub fn expire(&mut self, now: Micros, most: usize, expired: &mut Vec<(Key, Micros)>) -> bool {
        let current = now >> SLOT_SHIFT;
        while self.next <= current {
            let place = (self.next % SLOTS as u64) as usize;
            while self.heads[place] != NONE {
                if expired.len() >= most {
                    return true;
                }
                let index = self.heads[place];
                let node = self.nodes[index as usize];
                self.heads[place] = node.next;
                self.nodes[index as usize].next = self.free;
                self.free = index;
                expired.push((node.key, node.at));
            }
            self.occupied[place / 64] &= !(1 << (place % 64));
            self.next = match self.next_occupied() {
                Some(slot) => slot.min(current + 1),
                None => current + 1,
            };
        }
        false
    }

    /// When the next entry can be expired, if there is one.
    pub fn next_deadline(&self) -> Option<Micros> {
        self.next_occupied().map(|slot| slot << SLOT_SHIFT)
    }

    fn next_occupied(&self) -> Option<u64> {
        let start = (self.next % SLOTS as u64) as usize;
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (place + SLOTS - start) % SLOTS;
                return Some(self.next + ahead as u64);
            }
        }
        None
    }

    fn store(&mut self, node: Node) -> u32 {
        if self.free == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(slot: u32) -> Key {
        Key { slot, generation: 0 }
    }

    #[test]
    fn nothing_fires_early_and_everything_fires_within_a_slot() {
        let mut wheel = Wheel::new(1_000);
        wheel.insert(key(1), 100_000);
        let mut fired = Vec::new();
        assert!(!wheel.expire(99_999, 10, &mut fired));
        assert_eq!(fired, []);
        wheel.expire(100_000 + 2 * 8_192, 10, &mut fired);
        assert_eq!(fired, [(key(1), 100_000)]);
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn beyond_the_horizon_it_fires_at_the_horizon() {
        let mut wheel = Wheel::new(0);
        let at = wheel.insert(key(1), 3_600_000_000);
        assert!(at < 34_000_000 && at > 33_000_000, "{at}");
        let mut fired = Vec::new();
        wheel.expire(34_000_000, 10, &mut fired);
        assert_eq!(fired, [(key(1), at)]);
    }

    #[test]
    fn a_budget_leaves_the_rest_for_the_next_turn() {
        let mut wheel = Wheel::new(0);
        for slot in 0..10 {
            wheel.insert(key(slot), 1);
        }
        let mut fired = Vec::new();
        assert!(wheel.expire(1_000_000, 4, &mut fired));
        assert_eq!(fired.len(), 4);
        fired.clear();
        assert!(!wheel.expire(1_000_000, 100, &mut fired));
        assert_eq!(fired.len(), 6);
    }

    proptest! {
        #[test]
        fn like_a_sorted_list(deadlines in proptest::collection::vec(0u64..20_000_000, 1..60), step in 1_000u64..3_000_000) {
            let mut wheel = Wheel::new(0);
            for (slot, at) in deadlines.iter().enumerate() {
                wheel.insert(key(slot as u32), *at);
            }
            let (mut now, mut seen) = (0, 0);
            while seen < deadlines.len() {
                now += step;
                let next = wheel.next_deadline().expect("entries are left");
                let mut fired = Vec::new();
                wheel.expire(now, usize::MAX, &mut fired);
                for (key, at) in &fired {
                    prop_assert_eq!(*at, deadlines[key.slot as usize]);
                    prop_assert!(*at <= now);
                    prop_assert!(next <= at + 2 * 8_192);
                }
                seen += fired.len();
                let overdue = deadlines.iter().filter(|at| **at + 2 * 8_192 < now).count();
                prop_assert!(seen >= overdue, "{} of {} overdue fired", seen, overdue);
            }
        }
    }
}
