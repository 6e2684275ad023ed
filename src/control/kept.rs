//! What the proxy keeps for one policy at one place, where the operator granted it: its numbers, and a few bytes.
//!
//! Every instance counts in a tally of its own. When an instance is gone, its counters go into a sum and its gauges are
//! forgotten; that is done when the tallies are looked at next, so that no worker does anything for it. The bytes are
//! those of the planner, of whatever generation.

use crate::policy::{Keeper, Number, NumberKind, STORE_MAX, Tally};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The numbers and the bytes of one policy at one place.
#[derive(Debug, Default)]
pub(super) struct Kept {
    numbers: Mutex<Numbers>,
    store: Mutex<Option<(i32, Vec<u8>)>>,
}

#[derive(Debug, Default)]
struct Numbers {
    at_work: Vec<Arc<Tally>>,
    /// Counters of instances that are gone.
    former: BTreeMap<Number, i64>,
}

impl Kept {
    /// All numbers that were declared, as they are now, in the order of their names.
    pub(super) fn read(&self) -> BTreeMap<Number, i64> {
        let mut numbers = self.numbers.lock();
        numbers.settle();
        let mut sums = numbers.former.clone();
        for tally in &numbers.at_work {
            add(&mut sums, tally);
        }
        sums
    }
}

impl Numbers {
    /// Takes leave of instances that are gone.
    fn settle(&mut self) {
        // Nobody else holds it, so that nobody writes there any more.
        let gone = |tally: &mut Arc<Tally>| Arc::get_mut(tally).is_some();
        for tally in self.at_work.extract_if(.., gone) {
            add(&mut self.former, &tally);
        }
        self.former.retain(|number, _| number.kind == NumberKind::Counter);
    }
}

fn add(sums: &mut BTreeMap<Number, i64>, tally: &Tally) {
    for (number, value) in tally.read() {
        let sum = sums.entry(number.clone()).or_default();
        *sum = sum.wrapping_add(value);
    }
}

impl Keeper for Kept {
    fn tally(&self, declared: &Arc<[Number]>) -> Arc<Tally> {
        let tally = Arc::new(Tally::new(declared.clone()));
        let mut numbers = self.numbers.lock();
        numbers.settle();
        numbers.at_work.push(tally.clone());
        tally
    }

    fn save(&self, version: i32, bytes: &[u8]) -> bool {
        let fits = bytes.len() <= STORE_MAX;
        if fits {
            *self.store.lock() = Some((version, bytes.to_owned()));
        }
        fits
    }

    fn restore(&self, version: i32) -> Option<Vec<u8>> {
        let store = self.store.lock();
        let (_, bytes) = store.as_ref().filter(|(saved, _)| *saved == version)?;
        Some(bytes.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, kind: NumberKind) -> Number {
        Number {
            name: name.into(),
            kind,
        }
    }

    fn shown(kept: &Kept) -> Vec<(String, i64)> {
        let numbers = kept.read().into_iter();
        numbers
            .map(|(number, value)| (number.name.into(), value))
            .collect()
    }

    #[test]
    fn instances_are_summed_and_counters_outlive_them() {
        let kept = Kept::default();
        let declared: Arc<[Number]> = Arc::new([
            number("hits", NumberKind::Counter),
            number("depth", NumberKind::Gauge),
        ]);
        let (one, other) = (kept.tally(&declared), kept.tally(&declared));
        assert!(one.add(0, 3) && other.add(0, 4) && one.set(1, 10) && other.set(1, -2));
        let pair = |hits, depth| vec![("depth".to_owned(), depth), ("hits".to_owned(), hits)];
        assert_eq!(shown(&kept), pair(7, 8));
        drop(one);
        assert_eq!(shown(&kept), pair(7, -2));
        let reordered: Arc<[Number]> = Arc::new([declared[1].clone(), declared[0].clone()]);
        let next = kept.tally(&reordered);
        assert!(next.add(1, 1) && next.set(0, 5));
        drop(other);
        assert_eq!(shown(&kept), pair(8, 5));
        drop(next);
        assert_eq!(shown(&kept), [("hits".to_owned(), 8)]);
    }

    #[test]
    fn bytes_are_kept_under_their_version() {
        let kept = Kept::default();
        assert_eq!(kept.restore(0), None);
        assert!(kept.save(1, b"one"));
        assert_eq!((kept.restore(1), kept.restore(2)), (Some(b"one".to_vec()), None));
        assert!(!kept.save(2, &vec![0; STORE_MAX + 1]), "too many");
        assert_eq!(kept.restore(1), Some(b"one".to_vec()), "as before");
        assert!(kept.save(2, &vec![0; STORE_MAX]));
        assert_eq!(
            (kept.restore(1), kept.restore(2).map(|it| it.len())),
            (None, Some(STORE_MAX))
        );
    }
}
