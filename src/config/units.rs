//! How durations, sizes and shares are written in the file: read strictly, printed canonically.
//!
//! A number needs its unit where two readings are possible (a duration); a near miss ("10sec", "1.5h", "16KB")
//! is refused together with the spelling that would have been right. Pure, no spans: the caller knows the place.

use std::time::Duration;

/// A text that is not what was asked for, with the spelling that was probably meant.
#[derive(Debug, PartialEq, Eq)]
pub struct Misread {
    /// How it should have been written, if that can be told.
    pub meant: Option<String>,
}

/// The value, or what was probably meant.
pub type Read<T> = Result<T, Misread>;

/// What to say a duration looks like.
pub const DURATION_FORM: &str = "a duration such as \"10s\", \"250ms\", \"2m\" or \"1h\"";
/// What to say a duration with a sign looks like.
pub const OFFSET_FORM: &str = "a duration such as \"-500ms\", \"250ms\" or \"2s\"";
/// What to say a size looks like.
pub const SIZE_FORM: &str = "a size such as \"16KiB\" or \"1MiB\", or a number of bytes";
/// What to say a percentage looks like.
pub const PERCENT_FORM: &str = "a percentage such as 20 or \"20%\"";

/// Units of a duration in microseconds, largest first.
const DURATIONS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];
/// What people write for them elsewhere.
const DURATION_ALIASES: [(&str, &[&str]); 6] = [
    ("d", &["day", "days"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("m", &["min", "mins", "minute", "minutes"]),
    ("s", &["", "sec", "secs", "second", "seconds"]),
    (
        "ms",
        &["msec", "msecs", "milli", "millis", "millisecond", "milliseconds"],
    ),
    (
        "us",
        &["µs", "usec", "usecs", "micros", "microsecond", "microseconds"],
    ),
];
/// Units of a size in bytes, largest first.
const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const SIZE_ALIASES: [(&str, &[&str]); 4] = [
    ("GiB", &["g", "gb", "gib"]),
    ("MiB", &["m", "mb", "mib"]),
    ("KiB", &["k", "kb", "kib"]),
    ("B", &["b", "byte", "bytes"]),
];

/// Reads `10s`, `250ms`, `2m`, `1h`, `1d`, `50us`: one whole number and its unit.
pub fn duration(text: &str) -> Read<Duration> {
    measure(text, &DURATIONS, &DURATION_ALIASES).map(Duration::from_micros)
}

/// Reads a duration with or without a sign, as microseconds: `-500ms`, `+2s`, `1s`.
pub fn offset(text: &str) -> Read<i64> {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => ("-", &text[1..]),
        Some(b'+') => ("+", &text[1..]),
        _ => ("", text),
    };
    let micros = duration(digits)
        .map_err(|misread| Misread {
            meant: misread.meant.map(|meant| format!("{sign}{meant}")),
        })?
        .as_micros();
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    Ok(if sign == "-" { -micros } else { micros })
}

/// Reads `16KiB`, `1MiB`, `512B` or `8192` as bytes.
pub fn size(text: &str) -> Read<u64> {
    match text.parse() {
        Ok(bytes) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(bytes),
        _ => measure(text, &SIZES, &SIZE_ALIASES),
    }
}

/// Reads `20%` or `20` as whole percent.
pub fn percent(text: &str) -> Read<u64> {
    let number = text.strip_suffix('%').unwrap_or(text);
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        let meant = millionths(text.trim().trim_end_matches('%').trim()).map(|share| share / 10_000);
        return Err(Misread {
            meant: meant.map(|whole| format!("{whole}%")),
        });
    }
    number.parse().map_err(|_| Misread { meant: None })
}

/// Reads `12.5%`, `12.5` or `12` as millionths: 125000, 120000. At most 100 %, at most four decimals.
pub fn share(text: &str) -> Read<u32> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let meant =
        |text: &str| millionths(text.trim().trim_end_matches('%').trim()).map(|_| text.replace(' ', ""));
    millionths(number).ok_or_else(|| Misread {
        meant: meant(text).filter(|meant| meant != text),
    })
}

/// What the texts of durations match, as a regular expression.
pub fn duration_pattern() -> String {
    format!("^[0-9]+{}$", any_unit(&DURATIONS))
}

/// What the texts of durations with a sign match.
pub fn offset_pattern() -> String {
    format!("^[+-]?[0-9]+{}$", any_unit(&DURATIONS))
}

/// What the texts of sizes match.
pub fn size_pattern() -> String {
    format!("^[0-9]+{}?$", any_unit(&SIZES))
}

/// What the texts of whole percentages match.
pub const PERCENT_PATTERN: &str = "^[0-9]+%?$";
/// What the texts of shares match.
pub const SHARE_PATTERN: &str = "^[0-9]{1,3}([.][0-9]{1,4})?%?$";

/// Prints a duration with the largest unit that divides it.
pub fn show_duration(value: Duration) -> String {
    let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
    if micros == 0 {
        "0s".into()
    } else {
        show(micros, &DURATIONS)
    }
}

/// Prints microseconds with their sign and the largest unit that divides them.
pub fn show_offset(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    format!(
        "{sign}{}",
        show_duration(Duration::from_micros(micros.unsigned_abs()))
    )
}

/// Prints a size with the largest unit that divides it.
pub fn show_size(bytes: u64) -> String {
    show(bytes, &SIZES)
}

/// Prints millionths as a percentage: `12.5%`.
pub fn show_share(millionths: u32) -> String {
    let (whole, rest) = (millionths / 10_000, millionths % 10_000);
    if rest == 0 {
        return format!("{whole}%");
    }
    format!("{whole}.{}%", format!("{rest:04}").trim_end_matches('0'))
}

fn any_unit(units: &[(&str, u64)]) -> String {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    format!("({})", names.join("|"))
}

fn show(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, factor) = units
        .iter()
        .find(|(_, factor)| value.is_multiple_of(*factor))
        .unwrap_or(&units[units.len() - 1]);
    format!("{}{unit}", value / factor)
}

fn measure(text: &str, units: &[(&str, u64)], aliases: &[(&str, &[&str])]) -> Read<u64> {
    let end = text
        .find(|sign: char| !sign.is_ascii_digit())
        .unwrap_or(text.len());
    let factor = units
        .iter()
        .find(|(unit, _)| *unit == &text[end..])
        .map(|(_, factor)| *factor);
    let number: Option<u64> = text[..end].parse().ok();
    number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| Misread {
            meant: meant(text, units, aliases),
        })
}

/// What was probably meant: another name of the unit, a space, capitals, a fraction.
fn meant(text: &str, units: &[(&str, u64)], aliases: &[(&str, &[&str])]) -> Option<String> {
    let text = text.trim();
    let end = text
        .find(|sign: char| !sign.is_ascii_digit() && sign != '.')
        .unwrap_or(text.len());
    let unit = text[end..].trim().to_lowercase();
    let same = |name: &str| name.to_lowercase() == unit;
    let (name, _) = aliases
        .iter()
        .find(|(name, others)| same(name) || others.iter().any(|other| same(other)))?;
    let (_, factor) = units.iter().find(|(unit, _)| unit == name)?;
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    if fraction.len() > 6 || whole.is_empty() {
        return None;
    }
    let scale = 10_u64.pow(fraction.len() as u32);
    let parts = format!("{whole}{fraction}")
        .parse::<u64>()
        .ok()?
        .checked_mul(*factor)?;
    if !parts.is_multiple_of(scale) {
        None
    } else {
        Some(show_as(parts / scale, name, units))
    }
}

/// In the unit that was written if it comes out even, else in the largest that does.
fn show_as(value: u64, unit: &str, units: &[(&str, u64)]) -> String {
    match units
        .iter()
        .find(|(name, factor)| *name == unit && value.is_multiple_of(*factor))
    {
        Some((name, factor)) => format!("{}{name}", value / factor),
        None => show(value, units),
    }
}

fn millionths(number: &str) -> Option<u32> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() > 3 || fraction.len() > 4 {
        return None;
    }
    let value: u32 = format!("{whole}{fraction:0<4}").parse().ok()?;
    (value <= 1_000_000).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, micros) in [
            ("10s", 10_000_000),
            ("250ms", 250_000),
            ("2m", 120_000_000),
            ("1d", 86_400_000_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_micros(micros)), "{text}");
            assert_eq!(show_duration(Duration::from_micros(micros)), text);
        }
        assert_eq!(show_duration(Duration::from_millis(90_000)), "90s");
        assert_eq!(show_duration(Duration::ZERO), "0s");
    }

    #[test]
    fn a_near_miss_is_told() {
        let cases = [
            ("10", Some("10s")),
            ("10sec", Some("10s")),
            ("10 s", Some("10s")),
            ("1.5h", Some("90m")),
            ("1.5s", Some("1500ms")),
            ("2 Minutes", Some("2m")),
            ("fast", None),
            ("-1s", None),
            ("", None),
            ("99999999999999999999s", None),
        ];
        for (text, meant) in cases {
            assert_eq!(
                duration(text),
                Err(Misread {
                    meant: meant.map(str::to_owned)
                }),
                "{text}"
            );
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("16KiB"), Ok(16_384));
        assert_eq!(size("8192"), Ok(8_192));
        assert_eq!(
            size("16KB"),
            Err(Misread {
                meant: Some("16KiB".into())
            })
        );
        assert_eq!(
            size("16k"),
            Err(Misread {
                meant: Some("16KiB".into())
            })
        );
        assert_eq!(size("+5"), Err(Misread { meant: None }));
        assert_eq!(show_size(16_384), "16KiB");
        assert_eq!(show_size(1_500), "1500B");
    }

    #[test]
    fn percentages_and_shares() {
        assert_eq!(percent("20%"), Ok(20));
        assert_eq!(
            percent("20 %"),
            Err(Misread {
                meant: Some("20%".into())
            })
        );
        assert_eq!(share("12.5%"), Ok(125_000));
        assert_eq!(share("100"), Ok(1_000_000));
        assert_eq!(share("0.0001%"), Ok(1));
        for bad in ["101%", "1e1", "-1", "0.00001", ".5", ""] {
            assert!(share(bad).is_err(), "{bad}");
        }
        assert_eq!(show_share(125_000), "12.5%");
        assert_eq!(show_share(1), "0.0001%");
    }
}
