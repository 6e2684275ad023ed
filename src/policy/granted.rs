//! What a policy may have only if the operator grants it: numbers of its own, and a few bytes that outlive its instances.
//!
//! Both are the core's: a host hands them on, and keeps none of them. An instance counts in a [`Tally`] of its own, which
//! it alone writes, so that counting costs a load, an add and a store; who keeps the tallies sums them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most counters and gauges of a policy.
pub const NUMBERS_MAX: usize = 16;
/// Bytes that a policy may have kept.
pub const STORE_MAX: usize = 64 << 10;
/// The longest name of a counter or a gauge.
const NUMBER_NAME_MAX: usize = 64;

/// What an operator may grant (`grants`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// `counters`: counters and gauges.
    Counters,
    /// `store`: bytes that are kept.
    Store,
}

impl Grant {
    /// All of them.
    pub const ALL: [Grant; 2] = [Grant::Counters, Grant::Store];

    /// Its word in a configuration.
    pub fn word(self) -> &'static str {
        match self {
            Grant::Counters => "counters",
            Grant::Store => "store",
        }
    }

    /// From its word.
    pub fn parse(word: &str) -> Option<Grant> {
        Grant::ALL.into_iter().find(|grant| grant.word() == word)
    }
}

/// What is granted to one policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grants(u8);

impl Grants {
    /// Everything.
    pub const ALL: Grants = Grants(0b11);

    /// Whether that is granted.
    pub fn has(self, grant: Grant) -> bool {
        self.0 & (1 << grant as u8) != 0
    }

    /// What is granted, in the order of [`Grant::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Grant> {
        Grant::ALL.into_iter().filter(move |grant| self.has(*grant))
    }

    /// What of these is not granted here.
    pub fn missing(self, wanted: Grants) -> Grants {
        Grants(wanted.0 & !self.0)
    }
}

impl FromIterator<Grant> for Grants {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Grants {
        Grants(grants.into_iter().fold(0, |all, grant| all | 1 << grant as u8))
    }
}

/// A number that a policy declares.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// Its name.
    pub name: Box<str>,
    /// How it moves.
    pub kind: NumberKind,
}

/// How a number of a policy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumberKind {
    /// It only grows.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// Whether a number may have that name: `a`…`z`, `0`…`9` and `_`, a letter first.
pub fn is_number_name(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= NUMBER_NAME_MAX
        && name.bytes().all(inside)
}

/// The numbers of one instance. One thread writes them; anybody reads.
#[derive(Debug)]
pub struct Tally {
    /// What they are, at most [`NUMBERS_MAX`].
    pub numbers: Arc<[Number]>,
    values: [AtomicU64; NUMBERS_MAX],
}

impl Tally {
    /// All zero.
    pub fn new(numbers: Arc<[Number]>) -> Tally {
        debug_assert!(numbers.len() <= NUMBERS_MAX, "who declared them was checked");
        Tally {
            numbers,
            values: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// So many more; `false` if there is no counter at that place.
    pub fn add(&self, at: usize, more: u32) -> bool {
        let known = self.is(at, NumberKind::Counter);
        if known {
            let value = &self.values[at];
            let sum = value.load(Ordering::Relaxed).wrapping_add(more.into());
            value.store(sum, Ordering::Relaxed);
        }
        known
    }

    /// That much from now on; `false` if there is no gauge at that place.
    pub fn set(&self, at: usize, value: i32) -> bool {
        let known = self.is(at, NumberKind::Gauge);
        if known {
            self.values[at].store(i64::from(value) as u64, Ordering::Relaxed);
        }
        known
    }

    /// The numbers and what they are now.
    pub fn read(&self) -> impl Iterator<Item = (&Number, i64)> {
        let now = |value: &AtomicU64| value.load(Ordering::Relaxed) as i64;
        self.numbers.iter().zip(self.values.iter().map(now))
    }

    fn is(&self, at: usize, kind: NumberKind) -> bool {
        self.numbers.get(at).is_some_and(|number| number.kind == kind)
    }
}

/// What the core keeps for one policy at one place.
pub trait Keeper: Send + Sync {
    /// Numbers for one instance; they count as long as it holds them, and its counters for ever.
    fn tally(&self, numbers: &Arc<[Number]>) -> Arc<Tally>;

    /// Keeps these bytes instead of what was kept; `false` if they are more than [`STORE_MAX`].
    fn save(&self, version: i32, bytes: &[u8]) -> bool;

    /// What was kept last, if it was under that version.
    fn restore(&self, version: i32) -> Option<Vec<u8>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_what_they_are_made_of() {
        let store: Grants = [Grant::Store].into_iter().collect();
        assert!(store.has(Grant::Store) && !store.has(Grant::Counters));
        assert_eq!(
            store.missing(Grants::ALL).iter().collect::<Vec<_>>(),
            [Grant::Counters]
        );
        assert_eq!(Grants::ALL.missing(store), Grants::default());
        assert_eq!(Grant::ALL.into_iter().collect::<Grants>(), Grants::ALL);
        assert_eq!(
            (Grant::parse("store"), Grant::parse("files")),
            (Some(Grant::Store), None)
        );
    }

    #[test]
    fn names_of_numbers_are_checked() {
        let longest = "a".repeat(NUMBER_NAME_MAX);
        for good in ["a", "hits", "queue_2", &longest] {
            assert!(is_number_name(good), "{good}");
        }
        let longer = format!("{longest}a");
        for bad in ["", "_a", "2a", "Hits", "a-b", "a b", "ä", "a\"", &longer] {
            assert!(!is_number_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_counter_grows_and_a_gauge_is_set() {
        let number = |name: &str, kind| Number {
            name: name.into(),
            kind,
        };
        let tally = Tally::new(Arc::new([
            number("hits", NumberKind::Counter),
            number("depth", NumberKind::Gauge),
        ]));
        assert!(tally.add(0, 2) && tally.add(0, u32::MAX) && tally.set(1, 7) && tally.set(1, -3));
        assert!(!tally.add(1, 1) && !tally.set(0, 1) && !tally.add(2, 1) && !tally.set(usize::MAX, 1));
        let values: Vec<i64> = tally.read().map(|(_, value)| value).collect();
        assert_eq!(values, [i64::from(u32::MAX) + 2, -3]);
    }
}
