//! The keys that one shard has seen, each with its three shelves.
//!
//! A key keeps its place when its last connection goes, because the next one usually has the same key. Keys without
//! connections are forgotten when they outnumber the others; that costs one pass, and at least half of the places
//! are free after it, so learning a key is constant time on average and memory stays in proportion to what is parked.

use super::{List, NONE};
use crate::shared::key::PoolKey;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Known keys, named by a small number that is valid while a connection with that key is parked.
#[derive(Debug, Default)]
pub(super) struct Keys {
    known: Vec<Known>,
    by_key: HashMap<PoolKey, u32, BuildHasherDefault<Fingerprint>>,
    unused: Vec<u32>,
    /// The key asked for last: a plain server has only one. Always one that is in `by_key`.
    last: u32,
}

#[derive(Debug)]
struct Known {
    key: PoolKey,
    shelves: [List; 3],
}

impl Keys {
    #[inline]
    pub(super) fn find(&mut self, key: &PoolKey) -> Option<u32> {
        match self.known.get(self.last as usize) {
            Some(known) if known.key == *key => Some(self.last),
            _ => self.look_up(key),
        }
    }

    fn look_up(&mut self, key: &PoolKey) -> Option<u32> {
        self.last = *self.by_key.get(key)?;
        Some(self.last)
    }

    /// A number for a key that is not known. `parked` bounds how many keys can be in use.
    pub(super) fn learn(&mut self, key: &PoolKey, parked: usize) -> u32 {
        if self.unused.is_empty() && self.known.len() >= KEPT_MIN.max(2 * parked) {
            self.forget_unused();
        }
        let known = Known {
            key: key.clone(),
            shelves: [List::EMPTY; 3],
        };
        self.last = match self.unused.pop() {
            Some(index) => {
                self.known[index as usize] = known;
                index
            }
            None => {
                self.known.push(known);
                self.known.len() as u32 - 1
            }
        };
        self.by_key.insert(key.clone(), self.last);
        self.last
    }

    pub(super) fn shelves(&mut self, key: u32) -> &mut [List; 3] {
        &mut self.known[key as usize].shelves
    }

    /// Every key is in `by_key` when this runs: `unused` is empty.
    fn forget_unused(&mut self) {
        for (index, known) in self.known.iter().enumerate() {
            if known.shelves.iter().all(|shelf| shelf.oldest == NONE) {
                self.by_key.remove(&known.key);
                self.unused.push(index as u32);
            }
        }
    }

    #[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

/// A key's fingerprint is its hash already.
#[derive(Default)]
struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("a key hashes as one word")
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// Keys that are kept without a connection, at least, before unused ones are forgotten.
const KEPT_MIN: usize = 32;
