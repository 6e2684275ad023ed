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
        }
    }

    /// Counts through the calendar by hand: an independent rule for the same thing.
    #[test]
    fn every_day_of_five_centuries_follows_the_one_before() {
        let mut expected = (1970, 1, 1);
        for days in 0..200_000 {
            assert_eq!(civil(days), expected, "day {days}");
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
    fn a_time_before_1970_is_its_first_moment() {
        assert_eq!(Moment::of(UNIX_EPOCH - Duration::from_secs(5)).unix_ms, 0);
        assert_eq!(Moment::of(UNIX_EPOCH + Duration::from_millis(1234)).unix_ms, 1234);
    }
}
