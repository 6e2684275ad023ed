//! Wall-clock time as people write it: RFC 3339, UTC, with milliseconds.
//!
//! The access log and the operator's messages share this form. No time zone, no locale; the clock itself is an
//! argument. Dates before 1970 are shown as its first millisecond.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment that prints as `2026-03-01T12:14:14.655Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: u64,
}

impl Moment {
    /// Of a system time.
    pub fn of(time: SystemTime) -> Moment {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment {
            unix_ms: since.as_millis() as u64,
        }
    }

    /// Reads what is printed here, and no other spelling.
    pub fn parse(text: &str) -> Option<Moment> {
        let bytes = text.as_bytes();
        let marks = [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'.'),
            (23, b'Z'),
        ];
        if bytes.len() != 24 || marks.iter().any(|(at, mark)| bytes[*at] != *mark) {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = bytes[from..to].iter().all(u8::is_ascii_digit);
            digits.then(|| text[from..to].parse::<u64>().ok()).flatten()
        };
        let days = days(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
        let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
        (hour < 24 && minute < 60 && second < 60).then_some(Moment {
            unix_ms: seconds * 1000 + ms,
        })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.unix_ms / 1000;
        let (year, month, day) = civil(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let ms = self.unix_ms % 1000;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"
        )
    }
}

/// Year, month 1…12 and day 1…31 of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from March here, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_1970;
    let era = days / DAYS_PER_ERA;
    let day_of_era = days % DAYS_PER_ERA;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

/// The inverse of [`civil`]; none where there is no such day, or before 1970.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let year_from_march = year.checked_sub(u64::from(month <= 2))?;
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day.checked_sub(1)?;
    let year_of_era = year_from_march % 400;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = (year_from_march / 400 * DAYS_PER_ERA + day_of_era).checked_sub(DAYS_TO_1970)?;
    (civil(days) == (year, month, day)).then_some(days)
}

/// From 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;
/// 400 years.
const DAYS_PER_ERA: u64 = 146_097;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn known_moments() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_772_367_254_655, "2026-03-01T12:14:14.655Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Moment { unix_ms }.to_string(), text);
            assert_eq!(Moment::parse(text), Some(Moment { unix_ms }));
        }
    }

    /// Counts through the calendar by hand: an independent rule for the same thing.
    #[test]
    fn every_day_of_five_centuries_follows_the_one_before() {
        let mut expected = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(civil(days), expected, "day {days}");
            let (year, month, day) = expected;
            assert_eq!(super::days(year, month, day), Some(days));
            expected = next(expected);
        }
    }

    fn next((year, month, day): (u64, u64, u64)) -> (u64, u64, u64) {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        match (day < last, month < 12) {
            (true, _) => (year, month, day + 1),
            (false, true) => (year, month + 1, 1),
            (false, false) => (year + 1, 1, 1),
        }
    }

    #[test]
    fn no_other_spelling_is_read() {
        for text in [
            "",
            "2026-03-01T12:14:14.655",
            "2026-03-01 12:14:14.655Z",
            "2026-03-01T12:14:14.65éZ",
            "2026-03-01T12:14:14.+55Z",
            "2026-02-29T12:14:14.655Z",
            "2026-13-01T12:14:14.655Z",
            "2026-00-01T12:14:14.655Z",
            "2026-03-00T12:14:14.655Z",
            "2026-03-01T24:14:14.655Z",
            "1969-12-31T23:59:59.999Z",
            "0000-01-01T00:00:00.000Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_before_1970_is_its_first_moment() {
        assert_eq!(Moment::of(UNIX_EPOCH - Duration::from_secs(5)).unix_ms, 0);
        assert_eq!(Moment::of(UNIX_EPOCH + Duration::from_millis(1234)).unix_ms, 1234);
    }
}
