//! How much of its weight and of its limit a returning server has (LB-60, Q-4).
//!
//! A server that was away has cold caches. With `slowstart` it begins at a sixteenth of its weight and at one slot, and
//! reaches all of both when the time is over. A table holds one value; who makes tables steps it ([`Ramp::step`]).

/// Microseconds.
type Micros = u64;

/// A part of the whole way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Of the weight, 1…16.
    sixteenths: u8,
    /// Of the limit, 0…100.
    percent: u8,
}

impl Ramp {
    /// All of it: a server that is not in a slow start.
    pub const FULL: Ramp = Ramp {
        sixteenths: 16,
        percent: 100,
    };

    /// After `elapsed` of a slow start of `whole`.
    pub fn at(elapsed: Micros, whole: Micros) -> Ramp {
        if elapsed >= whole {
            return Ramp::FULL;
        }
        let (elapsed, whole) = (u128::from(elapsed), u128::from(whole));
        Ramp {
            sixteenths: ((16 * elapsed + whole) / whole).min(16) as u8,
            percent: (100 * elapsed / whole) as u8,
        }
    }

    /// How long to wait before the next step of a slow start of `whole` (LB-60): a twentieth of it, at least a second.
    pub fn step(whole: Micros) -> Micros {
        (whole / 20).max(1_000_000)
    }

    /// The effective weight for the user's, 0…4096 (LB-1). Above 0 where that is.
    pub fn weight(self, user: u16) -> u32 {
        u32::from(user) * u32::from(self.sixteenths)
    }

    /// How much of its limit the server has, 0…100.
    pub fn percent(self) -> u32 {
        self.percent.into()
    }

    /// Whether the slow start is over.
    pub fn is_full(self) -> bool {
        self == Ramp::FULL
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    const SECOND: Micros = 1_000_000;

    /// V6 of the specification, AC-45.
    #[test]
    fn v6() {
        let vectors = [
            (0, 10),
            (1, 10),
            (4, 20),
            (8, 30),
            (15, 50),
            (30, 90),
            (45, 130),
            (56, 150),
            (59, 160),
            (60, 160),
            (61, 160),
        ];
        for (second, weight) in vectors {
            let ramp = Ramp::at(second * SECOND, 60 * SECOND);
            assert_eq!(ramp.weight(10), weight, "after {second} s");
        }
    }

    #[test]
    fn limits_rise_by_percent() {
        for (second, percent) in [(0, 0), (15, 25), (59, 98), (60, 100)] {
            assert_eq!(
                Ramp::at(second * SECOND, 60 * SECOND).percent(),
                percent,
                "after {second} s"
            );
        }
    }

    #[test]
    fn it_never_falls_and_ends_full() {
        let whole = 7 * SECOND;
        let all: Vec<_> = (0..=whole).step_by(9_973).map(|at| Ramp::at(at, whole)).collect();
        let rises =
            |pair: &[Ramp]| pair[0].sixteenths <= pair[1].sixteenths && pair[0].percent <= pair[1].percent;
        assert!(all.windows(2).all(rises));
        assert!(Ramp::at(whole, whole).is_full() && Ramp::at(0, 0).is_full() && !all[0].is_full());
        assert_eq!(
            [Ramp::step(60 * SECOND), Ramp::step(SECOND)],
            [3 * SECOND, SECOND]
        );
        assert_eq!(Ramp::at(0, whole).weight(0), 0, "a drained server stays drained");
    }
}
