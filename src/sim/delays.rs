//! Times, counted so that percentiles are known to an eighth, in little room.

use crate::decide::settings::Micros;

/// Times in µs, counted in buckets an eighth of a power of two wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    most: Micros,
}

/// Buckets of one power of two, and the bits that tell them apart.
const PARTS: u64 = 8;
const PART_BITS: u32 = PARTS.trailing_zeros();

impl Delays {
    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    pub fn most(&self) -> Micros {
        self.most
    }

    /// Of all; 0 without any.
    pub fn mean(&self) -> Micros {
        (self.sum / u128::from(self.count.max(1))) as Micros
    }

    /// So many of a hundred are at most this long, to an eighth; 0 without any.
    pub fn percentile(&self, percent: u32) -> Micros {
        let below = (self.count * u64::from(percent)).div_ceil(100);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= below
        });
        bucket.map_or(0, |bucket| end_of(bucket as u64).min(self.most))
    }

    /// One more.
    pub(super) fn add(&mut self, delay: Micros) {
        let bucket = bucket_of(delay) as usize;
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(delay);
        self.most = self.most.max(delay);
    }
}

fn bucket_of(delay: Micros) -> u64 {
    let shift = delay.max(1).ilog2().saturating_sub(PART_BITS);
    u64::from(shift) * PARTS + (delay >> shift)
}

/// The longest in a bucket.
fn end_of(bucket: u64) -> Micros {
    if bucket < 2 * PARTS {
        return bucket;
    }
    let shift = bucket / PARTS - 1;
    ((bucket % PARTS + PARTS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_known_to_an_eighth() {
        let mut delays = Delays::default();
        assert_eq!((delays.percentile(99), delays.mean(), delays.most()), (0, 0, 0));
        (0..1000).for_each(|delay| delays.add(delay));
        assert_eq!((delays.count(), delays.mean(), delays.most()), (1000, 499, 999));
        for percent in [1, 50, 90, 99] {
            let (exact, found) = (u64::from(percent) * 10 - 1, delays.percentile(percent));
            assert!(
                found >= exact && found <= exact + exact / 8 + 1,
                "{percent}: {found}"
            );
        }
        for delay in [0, 1, 7, 8, 15, 16, 17, 31, 32, 1 << 40] {
            let end = end_of(bucket_of(delay));
            assert!(
                end >= delay && bucket_of(end) == bucket_of(delay),
                "{delay}: {end}"
            );
            assert_eq!(bucket_of(end + 1), bucket_of(delay) + 1);
        }
    }
}
