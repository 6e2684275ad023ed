//! A slab whose keys carry a generation: a key of something that is gone finds nothing, never its successor.
//!
//! Slots are used again last-in-first-out, so that the hot ones stay in the cache. A slab never shrinks.

/// A slot and the generation of what stood in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The place in the slab.
    pub slot: u32,
    /// Raised each time the slot is emptied.
    pub generation: u32,
}

/// Values at stable places, found by [`Key`].
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Stores a value and tells where.
    pub fn insert(&mut self, value: T) -> Key {
        match self.free.pop() {
            Some(slot) => {
                let entry = &mut self.entries[slot as usize];
                entry.value = Some(value);
                Key {
                    slot,
                    generation: entry.generation,
                }
            }
            None => {
                let slot = self.entries.len() as u32;
                self.entries.push(Entry {
                    generation: 0,
                    value: Some(value),
                });
                Key { slot, generation: 0 }
            }
        }
    }

    /// The value of a key that is not stale.
    pub fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.slot as usize)?;
        if entry.generation == key.generation {
            entry.value.as_ref()
        } else {
            None
        }
    }

    /// The value of a key that is not stale.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        if entry.generation == key.generation {
            entry.value.as_mut()
        } else {
            None
        }
    }

    /// Takes the value out; its key is stale from now on.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let entry = self.entries.get_mut(key.slot as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(key.slot);
        Some(value)
    }

    /// How many values are stored.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every key in use, in order of place. For rare walks (drain, reload), not for the request path.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        let filled = self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.value.is_some());
        filled.map(|(slot, entry)| Key {
            slot: slot as u32,
            generation: entry.generation,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slab = Slab::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.slot, first.slot, "the slot is used again");
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!((slab.len(), slab.keys().collect::<Vec<_>>()), (1, vec![second]));
    }
}
