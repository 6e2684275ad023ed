//! Chance, from the seed of a run: draws of servers, times and contention. The functions behind drawn times are computed
//! in software, and so are the same on every machine.

use crate::decide::settings::Micros;
use crate::policy::Draw;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use xxhash_rust::xxh3::xxh3_128;

/// A time that may be drawn anew for each use, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Always the same.
    Constant(Micros),
    /// Exponential: short ones are many, long ones few and far out.
    Exponential {
        /// Their mean.
        mean: Micros,
    },
    /// Between the two, each as often.
    Uniform {
        /// The shortest.
        least: Micros,
        /// The longest.
        most: Micros,
    },
    /// A tail like those of real services: the logarithm is normal.
    LogNormal {
        /// Half are shorter.
        median: Micros,
        /// One in a hundred is longer.
        p99: Micros,
    },
}

impl Span {
    /// Its mean.
    pub fn mean(self) -> Micros {
        match self {
            Span::Constant(time) | Span::Exponential { mean: time } => time,
            Span::Uniform { least, most } => least.midpoint(most),
            Span::LogNormal { median, p99 } => {
                let spread = deviation(median, p99);
                (median as f64 * libm::exp(spread * spread / 2.0)) as Micros
            }
        }
    }
}

/// The standard deviation of the logarithm.
fn deviation(median: Micros, p99: Micros) -> f64 {
    /// Where the standard normal distribution has left one in a hundred behind.
    const NINETY_NINE: f64 = 2.326_347_874;
    libm::log(p99.max(1) as f64 / median.max(1) as f64).max(0.0) / NINETY_NINE
}

/// The randomness of one run.
#[derive(Debug)]
pub(super) struct Dice(Pcg64Mcg);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Dice(Pcg64Mcg::new(xxh3_128(&seed.to_le_bytes())))
    }

    pub(super) fn time(&mut self, span: Span) -> Micros {
        match span {
            Span::Constant(time) => time,
            Span::Exponential { mean } => (-libm::log(1.0 - self.unit()) * mean as f64) as Micros,
            Span::Uniform { least, most } => least + self.before(most.saturating_sub(least) + 1),
            Span::LogNormal { median, p99 } => {
                let drawn = libm::exp(deviation(median, p99) * self.normal());
                (median as f64 * drawn) as Micros
            }
        }
    }

    /// From the standard normal distribution (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (length, turn) = (-2.0 * libm::log(1.0 - self.unit()), self.unit());
        libm::sqrt(length) * libm::cos(2.0 * std::f64::consts::PI * turn)
    }

    /// Any number.
    pub(super) fn wide(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// `true` in so many of 10,000.
    pub(super) fn share(&mut self, of_ten_thousand: u16) -> bool {
        of_ten_thousand > 0 && self.draw(10_000) < u32::from(of_ten_thousand)
    }

    /// One of the µs before `end`; 0 if that is 0.
    pub(super) fn before(&mut self, end: Micros) -> Micros {
        match u32::try_from(end) {
            Ok(0) => 0,
            Ok(end) => Micros::from(self.draw(end)),
            Err(_) => self.0.next_u64() % end,
        }
    }

    /// `true` in so many of a hundred.
    pub(super) fn chance(&mut self, percent: u8) -> bool {
        percent > 0 && self.draw(100) < u32::from(percent)
    }

    /// From 0 up to 1, without it.
    fn unit(&mut self) -> f64 {
        const STEPS: f64 = (1_u64 << 53) as f64;
        (self.0.next_u64() >> 11) as f64 / STEPS
    }
}

impl Draw for Dice {
    fn draw(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_sequence() {
        let draws = |seed| {
            let mut dice = Dice::new(seed);
            [(); 4].map(|()| dice.time(Span::Exponential { mean: 1_000 }))
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    /// A mean of 10,000 draws lies within 5 % of the distribution's: five of its standard deviations.
    #[test]
    fn exponential_times_have_their_mean() {
        let mut dice = Dice::new(3);
        let sum: Micros = (0..10_000)
            .map(|_| dice.time(Span::Exponential { mean: 2_000 }))
            .sum();
        assert!((19_000_000..21_000_000).contains(&sum), "{sum}");
    }

    #[test]
    fn times_are_spread_as_they_say() {
        let drawn = |span| {
            let mut dice = Dice::new(9);
            let mut times: Vec<Micros> = (0..10_000).map(|_| dice.time(span)).collect();
            times.sort_unstable();
            times
        };
        let tail = Span::LogNormal {
            median: 10_000,
            p99: 80_000,
        };
        let times = drawn(tail);
        assert!((9_700..10_300).contains(&times[5_000]), "{}", times[5_000]);
        assert!((70_000..90_000).contains(&times[9_900]), "{}", times[9_900]);
        assert_eq!(tail.mean(), 14_910);
        let even = Span::Uniform { least: 5, most: 8 };
        let times = drawn(even);
        assert_eq!((times[0], times[9_999], even.mean()), (5, 8, 6));
    }

    #[test]
    fn draws_end_before_their_bound() {
        let mut dice = Dice::new(5);
        assert!((0..1_000).all(|_| dice.before(3) < 3));
        assert!((0..1_000).all(|_| dice.before(1 << 40) < 1 << 40));
        assert_eq!(dice.before(0), 0);
        let hits = (0..10_000).filter(|_| dice.chance(25)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
        assert!(!dice.chance(0));
    }
}
