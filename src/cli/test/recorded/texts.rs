//! Keeps every text once: a log repeats its hosts, targets and names by the million.

use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of all texts of one recording, at most.
pub(super) const TEXT_MAX: usize = 256 << 20;

/// One of the texts of a recording; two that are the same are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(u32);

impl Text {
    /// Its number among all, from 0.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// The texts of a recording.
#[derive(Debug)]
pub struct Texts {
    all: String,
    /// Bytes of all of them, at most.
    room: usize,
    /// Where each one ends; it begins where the one before ends.
    ends: Vec<u32>,
    /// By hash; one whose place is taken by another text is at the next that is free.
    places: HashMap<u64, u32>,
}

/// There is no room for another text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            all: String::new(),
            room: TEXT_MAX,
            ends: Vec::new(),
            places: HashMap::new(),
        }
    }
}

impl Texts {
    /// The text itself.
    pub fn get(&self, text: Text) -> &str {
        let at = text.number();
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[begin as usize..self.ends[at] as usize]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn add(&mut self, text: &str) -> Result<Text, Full> {
        let mut place = xxh3_64(text.as_bytes());
        while let Some(&taken) = self.places.get(&place) {
            if self.get(Text(taken)) == text {
                return Ok(Text(taken));
            }
            place = place.wrapping_add(1);
        }
        if self.all.len() + text.len() > self.room {
            return Err(Full);
        }
        let number = self.ends.len() as u32; // at most one for each byte of all, and the empty one
        self.all.push_str(text);
        self.ends.push(self.all.len() as u32); // at most TEXT_MAX
        self.places.insert(place, number);
        Ok(Text(number))
    }

    /// No more are added.
    pub(super) fn close(&mut self) {
        self.places = HashMap::new();
        self.all.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once() {
        let mut texts = Texts::default();
        let some = ["/a", "", "/b", "/a", ""].map(|text| texts.add(text).unwrap());
        assert_eq!((some[0], some[1]), (some[3], some[4]));
        assert_eq!(some.map(|text| texts.get(text)), ["/a", "", "/b", "/a", ""]);
        assert_eq!(texts.count(), 3);
    }

    #[test]
    fn two_texts_of_one_hash_are_two() {
        let mut texts = Texts::default();
        let other = texts.add("/other").unwrap();
        texts.places.insert(xxh3_64(b"/a"), other.0);
        let text = texts.add("/a").unwrap();
        assert_ne!(text, other);
        assert_eq!(texts.add("/a"), Ok(text));
    }

    #[test]
    fn there_is_an_end() {
        let mut texts = Texts {
            room: 3,
            ..Texts::default()
        };
        assert!(texts.add("xyz").is_ok());
        assert_eq!(texts.add("y"), Err(Full));
        assert!(texts.add("").is_ok());
    }
}
