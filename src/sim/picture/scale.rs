//! Where on an axis does a value stand, and which values are written beside it?
//!
//! Ticks are 1, 2 or 5 times a power of ten; those of time also quarters and halves of minutes and hours. An axis of times
//! is logarithmic where the smallest would be nothing beside the largest.

use super::number::Unit;
use crate::decide::settings::Micros;

/// The units of a drawing from its bottom to its top.
pub(super) const HEIGHT: u32 = 1_000;
/// From this ratio of the highest to the lowest on, times are drawn on a logarithmic axis.
const WIDE: u64 = 30;
/// Parts between ticks.
const PARTS_MAX: u64 = 5;
const MINUTE: Micros = 60_000_000;
const HOUR: Micros = 60 * MINUTE;

/// An axis from bottom to top.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scale {
    kind: Kind,
    /// From the bottom to the top, both included.
    pub(super) ticks: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Logarithmic,
}

impl Scale {
    /// For all of these values; zeros stand at the bottom.
    pub(super) fn of(values: impl Iterator<Item = u64>, unit: Unit) -> Scale {
        let (mut lowest, mut highest) = (u64::MAX, 0);
        for value in values.filter(|value| *value > 0) {
            lowest = lowest.min(value);
            highest = highest.max(value);
        }
        if unit == Unit::Time && highest / WIDE >= lowest {
            Scale::logarithmic(lowest, highest)
        } else {
            Scale::linear(highest)
        }
    }

    /// From none to all, or only to a small part of all if no more is to be seen.
    pub(super) fn percent(highest: u64) -> Scale {
        if highest < 400 {
            return Scale::linear(highest);
        }
        let ticks = vec![0, 250, 500, 750, 1_000];
        let kind = Kind::Linear;
        Scale { kind, ticks }
    }

    fn linear(highest: u64) -> Scale {
        let highest = highest.max(1);
        let between = round_steps()
            .find(|step| highest.div_ceil(*step) <= PARTS_MAX)
            .unwrap_or(u64::MAX);
        let ticks = (0..=highest.div_ceil(between)).map(|at| between.saturating_mul(at));
        let (kind, ticks) = (Kind::Linear, ticks.collect());
        Scale { kind, ticks }
    }

    fn logarithmic(lowest: u64, highest: u64) -> Scale {
        let all = between(round_steps(), lowest, highest);
        let few = all.len() as u64 <= PARTS_MAX + 1;
        let ticks = if few {
            all
        } else {
            between(powers(), lowest, highest)
        };
        let kind = Kind::Logarithmic;
        Scale { kind, ticks }
    }

    pub(super) fn top(&self) -> u64 {
        self.ticks[self.ticks.len() - 1]
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.kind == Kind::Logarithmic
    }

    /// Above the bottom, of [`HEIGHT`].
    pub(super) fn height(&self, value: u64) -> u32 {
        let (bottom, top) = (self.ticks[0], self.top());
        let value = value.clamp(bottom, top);
        match self.kind {
            Kind::Linear => place(value, top, HEIGHT),
            Kind::Logarithmic => {
                let above = |value: u64| libm::log10(value as f64 / bottom as f64);
                libm::round(above(value) / above(top) * f64::from(HEIGHT)) as u32
            }
        }
    }
}

/// Where a part of a whole ends on so many units.
pub(super) fn place(part: u64, whole: u64, units: u32) -> u32 {
    let exact = (u128::from(part) * u128::from(units)).checked_div(u128::from(whole));
    u32::try_from(exact.unwrap_or(0)).map_or(units, |it| it.min(units))
}

/// The moments to write below a run of that duration.
pub(super) fn moments(duration: Micros) -> Vec<Micros> {
    let minutes = [
        MINUTE / 2,
        MINUTE,
        2 * MINUTE,
        5 * MINUTE,
        10 * MINUTE,
        30 * MINUTE,
    ];
    let hours = [1, 2, 6, 12, 24].map(|hours| hours * HOUR);
    let seconds = round_steps().take_while(|step| *step < MINUTE / 2);
    let days = round_steps().map(|days| days.saturating_mul(24 * HOUR));
    let between = seconds
        .chain(minutes)
        .chain(hours)
        .chain(days)
        .find(|step| duration / step <= PARTS_MAX)
        .unwrap_or(u64::MAX);
    (0..=duration / between).map(|at| at * between).collect()
}

/// Those from the last one that is not above the lowest to the first that is not below the highest.
fn between(steps: impl Iterator<Item = u64> + Clone, lowest: u64, highest: u64) -> Vec<u64> {
    let bottom = steps.clone().take_while(|step| *step <= lowest).last();
    let top = steps.clone().find(|step| *step >= highest).unwrap_or(u64::MAX);
    let inside = steps.filter(|step| bottom.is_none_or(|bottom| *step >= bottom));
    inside.take_while(|step| *step < top).chain([top]).collect()
}

/// 1, 2, 5, 10, 20, 50, …
fn round_steps() -> impl Iterator<Item = u64> + Clone {
    powers().flat_map(|power| [power, 2 * power, 5 * power])
}

/// 1, 10, 100, …
fn powers() -> impl Iterator<Item = u64> + Clone {
    (0..19).map(|power| 10_u64.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[u64], unit: Unit) -> Vec<u64> {
        Scale::of(values.iter().copied(), unit).ticks
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(ticks(&[37], Unit::Count), [0, 10, 20, 30, 40]);
        assert_eq!(ticks(&[1], Unit::Count), [0, 1]);
        assert_eq!(ticks(&[], Unit::Count), [0, 1]);
        assert_eq!(
            ticks(&[8_000, 9_000], Unit::Time),
            [0, 2_000, 4_000, 6_000, 8_000, 10_000]
        );
        for highest in (1..10_000).chain([u64::MAX - 1, u64::MAX]) {
            let ticks = ticks(&[highest], Unit::Count);
            assert!(
                (2..=6).contains(&ticks.len()) && ticks[ticks.len() - 1] >= highest,
                "{highest}: {ticks:?}"
            );
        }
    }

    #[test]
    fn times_far_apart_are_drawn_on_a_logarithmic_axis() {
        assert_eq!(
            ticks(&[0, 300, 9_000], Unit::Time),
            [200, 500, 1_000, 2_000, 5_000, 10_000]
        );
        assert_eq!(
            ticks(&[3, 7_000_000], Unit::Time),
            [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
        );
        assert_eq!(ticks(&[3, 7_000_000], Unit::Count).len(), 5);
        let scale = Scale::of([100, 10_000].into_iter(), Unit::Time);
        let heights = [0, 100, 1_000, 10_000, 20_000].map(|value| scale.height(value));
        assert_eq!(heights, [0, 0, 500, 1_000, 1_000]);
    }

    #[test]
    fn heights_are_in_proportion() {
        let scale = Scale::of([40].into_iter(), Unit::Count);
        assert_eq!(
            [0, 10, 20, 40, 50].map(|value| scale.height(value)),
            [0, 250, 500, 1_000, 1_000]
        );
        assert_eq!(Scale::percent(900).height(333), 333);
        assert_eq!(Scale::percent(112).ticks, [0, 50, 100, 150]);
        assert_eq!(place(1, 0, 100), 0);
    }

    #[test]
    fn moments_are_round() {
        assert_eq!(
            moments(10_000_000),
            [0, 2_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000]
        );
        assert_eq!(
            moments(4 * MINUTE),
            [0, MINUTE, 2 * MINUTE, 3 * MINUTE, 4 * MINUTE]
        );
        assert_eq!(moments(0), [0]);
        assert!(moments(u64::MAX).len() <= 6);
    }
}
