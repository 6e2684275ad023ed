//! Chance, from the seed of a run: draws of servers, times and contention. No float reaches a decision but the one
//! logarithm of an exponential time, which is computed in software and so is the same on every machine.

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
}

impl Span {
    /// Its mean.
    pub fn mean(self) -> Micros {
        match self {
            Span::Constant(time) | Span::Exponential { mean: time } => time,
        }
    }
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
        }
    }

    /// One of the µs before `end`; 0 if that is 0.
    pub(super) fn before(&mut self, end: Micros) -> Micros {
        match u32::try_from(end) {
            Ok(0) => 0,
            Ok(end) => Micros::from(self.draw(end)),
            Err(_) => self.0.next_u64() % end,
        }
    }

    /// Any number.
    pub(super) fn any(&mut self) -> u64 {
        self.0.next_u64()
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
