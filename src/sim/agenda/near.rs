//! Events of the next [`SPAN`] µs, each in a slot of its instant: entering one and taking out those of the next instant cost
//! the same however many there are, where a heap of all clients' events would be the greatest cost of a run.

use super::Entry;
use crate::decide::settings::Micros;

/// So far reaches what is near. Of the times that clients think and servers take, most are shorter.
pub(super) const SPAN: Micros = 1 << 16;

/// In words of the map of occupied slots.
const WORDS: usize = SPAN as usize / 64;

/// The end of a list.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Near {
    /// By instant, modulo [`SPAN`]: the first of its events.
    first: Vec<u32>,
    /// A bit for each of these that is there.
    occupied: Vec<u64>,
    places: Vec<Place>,
    vacant: u32,
    count: u32,
}

#[derive(Debug)]
struct Place {
    entry: Entry,
    next: u32,
}

impl Near {
    pub(super) fn new() -> Near {
        Near {
            first: vec![NONE; SPAN as usize],
            occupied: vec![0; WORDS],
            places: Vec::new(),
            vacant: NONE,
            count: 0,
        }
    }

    /// All that are here are of fewer than [`SPAN`] instants in a row.
    pub(super) fn put(&mut self, entry: Entry) {
        let slot = slot_of(entry.at);
        let next = self.first[slot];
        let place = Place { entry, next };
        self.first[slot] = match self.places.get_mut(self.vacant as usize) {
            Some(vacant) => {
                let before = std::mem::replace(vacant, place);
                std::mem::replace(&mut self.vacant, before.next)
            }
            None => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.count += 1;
    }

    /// The first instant behind this one of which anything is here.
    pub(super) fn first_after(&self, instant: Micros) -> Option<Micros> {
        if self.count == 0 {
            return None;
        }
        let begin = instant + 1;
        let (word, bit) = (slot_of(begin) / 64, slot_of(begin) % 64);
        let rest = self.occupied[word] >> bit;
        if rest != 0 {
            return Some(begin + Micros::from(rest.trailing_zeros()));
        }
        // Round to the word that it began with: what lies before its bit comes last.
        let mut ahead = 64 - bit as Micros;
        for step in 1..=WORDS {
            let bits = self.occupied[(word + step) % WORDS];
            if bits != 0 {
                return Some(begin + ahead + Micros::from(bits.trailing_zeros()));
            }
            ahead += 64;
        }
        None
    }

    /// Takes out all of an instant, in no order.
    pub(super) fn take(&mut self, instant: Micros, mut each: impl FnMut(Entry)) {
        let slot = slot_of(instant);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        let mut at = std::mem::replace(&mut self.first[slot], NONE);
        while let Some(place) = self.places.get_mut(at as usize) {
            each(place.entry);
            let next = std::mem::replace(&mut place.next, self.vacant);
            self.vacant = at;
            at = next;
            self.count -= 1;
        }
    }
}

fn slot_of(at: Micros) -> usize {
    (at % SPAN) as usize
}
