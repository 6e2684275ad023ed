//! How are numbers written, so that they are read at a glance and are the same on every machine?
//!
//! All are integers: counts, thousandths of a rate, tenths of a percent, microseconds.

use crate::decide::settings::Micros;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Things.
    Count,
    /// Thousandths of one in a second.
    PerSecond,
    /// Tenths of a percent.
    Percent,
    /// µs.
    Time,
}

/// In full, with its unit.
pub(super) fn written(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Count => decimals(value, 0),
        Unit::PerSecond => decimals(rounded(value), 3) + " /s",
        Unit::Percent => decimals(value, 1) + " %",
        Unit::Time => time(value),
    }
}

/// Beside a tick of an axis that says its unit: short.
pub(super) fn tick(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Count => short(value, 1),
        Unit::PerSecond => short(value, 1_000),
        Unit::Percent => decimals(value, 1) + " %",
        Unit::Time if value == 0 => "0".to_owned(),
        Unit::Time => time(value),
    }
}

/// How far it is from one value to another, and in relation to the first.
pub(super) fn difference(from: u64, to: u64, unit: Unit) -> String {
    let sign = match from.cmp(&to) {
        std::cmp::Ordering::Less => "+",
        std::cmp::Ordering::Equal => return "none".to_owned(),
        std::cmp::Ordering::Greater => "−",
    };
    let by = from.abs_diff(to);
    match unit {
        Unit::Percent => format!("{sign}{} points", decimals(by, 1)),
        _ if from == 0 => format!("{sign}{}", written(by, unit)),
        _ => format!(
            "{sign}{} ({sign}{})",
            written(by, unit),
            written(part(by, from, 1_000), Unit::Percent)
        ),
    }
}

/// That part of a whole, in so many parts of it; 0 of nothing.
pub(super) fn part(of: u64, whole: u64, parts: u64) -> u64 {
    let whole = u128::from(whole);
    let exact = (u128::from(of) * u128::from(parts) + whole / 2).checked_div(whole);
    u64::try_from(exact.unwrap_or(0)).unwrap_or(u64::MAX)
}

/// A moment of a run.
pub(super) fn moment(at: Micros) -> String {
    decimals(at, 6) + " s"
}

/// Three digits of a time, and the unit in which they are readable.
pub(super) fn time(micros: Micros) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => decimals(rounded(micros), 3) + " ms",
        _ => decimals(rounded(micros), 6) + " s",
    }
}

/// To three digits.
fn rounded(value: u64) -> u64 {
    let mut unit = 1;
    while value / unit >= 1_000 {
        unit *= 10;
    }
    (value / unit + u64::from(value % unit * 2 >= unit && unit > 1)) * unit
}

fn short(value: u64, one: u64) -> String {
    let places = one.ilog10();
    match value / one {
        0..10_000 => decimals(value, places),
        10_000..1_000_000 => decimals(value, places + 3) + "k",
        1_000_000..1_000_000_000 => decimals(value, places + 6) + "M",
        _ => decimals(value, places + 9) + "G",
    }
}

/// With so many decimal places, of which those at the end that are zero are left out.
fn decimals(value: u64, places: u32) -> String {
    let one = 10_u64.pow(places);
    let mut text = grouped(value / one);
    if !value.is_multiple_of(one) {
        let decimals = format!("{:0width$}", value % one, width = places as usize);
        text.push('.');
        text.push_str(decimals.trim_end_matches('0'));
    }
    text
}

fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_full() {
        assert_eq!(written(1_234_567, Unit::Count), "1,234,567");
        assert_eq!(written(0, Unit::Count), "0");
        assert_eq!(written(12_340, Unit::PerSecond), "12.3 /s");
        assert_eq!(written(1_005, Unit::Percent), "100.5 %");
        assert_eq!(written(u64::MAX, Unit::Count), "18,446,744,073,709,551,615");
    }

    #[test]
    fn times_have_three_digits() {
        let all = [7, 999, 1_000, 12_345, 999_999, 1_500_000, 123_456_789];
        let expected = ["7 µs", "999 µs", "1 ms", "12.3 ms", "1,000 ms", "1.5 s", "123 s"];
        assert_eq!(all.map(time), expected);
        assert_eq!(moment(12_345_600), "12.3456 s");
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick(2_000, Unit::Count), "2,000");
        assert_eq!(tick(1_500_000, Unit::Count), "1.5M");
        assert_eq!(tick(500, Unit::PerSecond), "0.5");
        assert_eq!(tick(20_000_000, Unit::PerSecond), "20k");
        assert_eq!(tick(0, Unit::Time), "0");
    }

    #[test]
    fn differences_say_which_way_and_how_much() {
        assert_eq!(difference(100, 150, Unit::Count), "+50 (+50 %)");
        assert_eq!(difference(2_000, 500, Unit::Time), "−1.5 ms (−75 %)");
        assert_eq!(difference(0, 5, Unit::Count), "+5");
        assert_eq!(difference(501, 250, Unit::Percent), "−25.1 points");
        assert_eq!(difference(5, 5, Unit::Time), "none");
    }

    #[test]
    fn parts_are_rounded_and_never_overflow() {
        assert_eq!(part(1, 3, 1_000), 333);
        assert_eq!(part(2, 3, 1_000), 667);
        assert_eq!(part(5, 0, 1_000), 0);
        assert_eq!(part(u64::MAX, 1, u64::MAX), u64::MAX);
    }
}
