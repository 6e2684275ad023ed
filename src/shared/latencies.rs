//! How long responses took, finely enough for percentiles: one count for each eighth of a power of two of microseconds.
//!
//! A worker adds one to a count of its own for each response; nothing is ever set back. Who wants to know about a window
//! reads all counts at its beginning and at its end ([`Counts`]) and looks at the difference. What nobody asks for is
//! not there ([`Histogram`] is made with the first question), and costs a branch.

use super::statistics::Counter;
use std::sync::OnceLock;

/// Steps within one power of two.
const STEPS: u32 = 8;
/// The power of two from which on a time is just long: 134 s.
const LONGEST: u32 = 27;
/// Counts of a histogram.
pub const BUCKETS: usize = ((LONGEST - 2) * STEPS) as usize + 1;

/// The counts of one worker, once somebody asked for them.
#[derive(Debug, Default)]
pub struct Histogram(OnceLock<Box<[Counter; BUCKETS]>>);

impl Histogram {
    /// Counts from now on.
    pub fn begin(&self) {
        self.0
            .get_or_init(|| Box::new(std::array::from_fn(|_| Counter::new())));
    }

    /// A response took so many µs.
    #[inline]
    pub fn count(&self, microseconds: u64) {
        if let Some(counts) = self.0.get() {
            counts[bucket(microseconds)].count();
        }
    }
}

/// The counts of all workers at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(Box<[u64; BUCKETS]>);

impl Default for Counts {
    fn default() -> Self {
        Counts(Box::new([0; BUCKETS]))
    }
}

impl Counts {
    /// Adds those of one worker.
    pub fn add(&mut self, histogram: &Histogram) {
        if let Some(counts) = histogram.0.get() {
            for (sum, count) in self.0.iter_mut().zip(counts.iter()) {
                *sum = sum.wrapping_add(count.read());
            }
        }
    }

    /// What was added since.
    pub fn since(&self, before: &Counts) -> Counts {
        let mut since = self.clone();
        for (count, before) in since.0.iter_mut().zip(before.0.iter()) {
            *count = count.wrapping_sub(*before);
        }
        since
    }

    /// The time in µs within which that part of the responses came, in percent; `None` without any.
    pub fn percentile(&self, percent: u64) -> Option<u32> {
        let total: u64 = self.0.iter().sum();
        let rank = (total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let within = self.0.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        within.map(longest_of)
    }
}

/// The count that a time belongs to.
fn bucket(microseconds: u64) -> usize {
    let time = u32::try_from(microseconds).unwrap_or(u32::MAX);
    if time < STEPS {
        return time as usize;
    }
    let power = time.ilog2();
    let step = (time >> (power - 3)) - STEPS;
    (((power - 2) * STEPS + step) as usize).min(BUCKETS - 1)
}

/// The longest time that belongs to a count; of the last one, where it begins.
fn longest_of(bucket: usize) -> u32 {
    let bucket = bucket as u32;
    if bucket < STEPS {
        return bucket;
    }
    let (power, step) = (bucket / STEPS + 2, bucket % STEPS);
    let begins = (STEPS + step) << (power - 3);
    if bucket as usize == BUCKETS - 1 {
        return begins;
    }
    begins + (1 << (power - 3)) - 1
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_its_count() {
        let mut before = 0;
        for time in
            (0..4096).chain((12..40).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let bucket = bucket(time);
            assert!(bucket == before || bucket == before + 1 || time >= 4096, "{time}");
            before = bucket;
            let longest = u64::from(longest_of(bucket));
            if bucket < BUCKETS - 1 {
                assert!(time <= longest && longest <= time + time / 8, "{time}: {longest}");
            } else {
                assert!(time >= longest && longest == 1 << LONGEST, "{time}: {longest}");
            }
        }
    }

    #[test]
    fn a_window_is_a_difference() {
        let (one, other) = (Histogram::default(), Histogram::default());
        one.count(5);
        one.begin();
        other.begin();
        let read = || {
            let mut counts = Counts::default();
            counts.add(&one);
            counts.add(&other);
            counts
        };
        (0..50).for_each(|_| one.count(1_000_000));
        let begun = read();
        assert_eq!(begun.since(&begun).percentile(50), None);
        (0..98).for_each(|_| one.count(6));
        other.count(100);
        other.count(7);
        let window = read().since(&begun);
        assert_eq!(
            [1, 50, 98, 99, 100].map(|percent| window.percentile(percent)),
            [6, 6, 6, 7, 103].map(Some)
        );
    }

    /// One response alone is every part of all responses.
    #[test]
    fn one_response_is_enough() {
        let histogram = Histogram::default();
        histogram.begin();
        histogram.count(3);
        let mut counts = Counts::default();
        counts.add(&histogram);
        assert_eq!([counts.percentile(50), counts.percentile(99)], [Some(3); 2]);
    }
}
