//! Reads single values of a table: durations, sizes, numbers, words, texts.
//!
//! Each getter takes the form, the range and the default from the table of keys; a value that is absent or wrong falls back
//! to the default (or to nothing), and what is wrong is in the report.

use super::errors::{At, Report};
use super::keys::{self, Default, Form, Key, State};
use super::read::{Fields, Text, Value};
use super::units::{self, Misread};
use super::words::{did_you_mean, kind, not_yet, one_of, shown};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::de::DeValue;

impl<'a> Fields<'a> {
    /// A duration within the key's range, if given and right.
    pub(super) fn given_duration(&self, name: &str, report: &mut Report) -> Option<Duration> {
        let Form::Duration(range) = &self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        let read = match value.get_ref() {
            DeValue::String(text) => units::duration(text),
            DeValue::Integer(number) => Err(Misread {
                meant: Some(format!("{number}s\" or \"{number}ms")),
            }),
            other => return self.mismatch(name, value, other, units::DURATION_FORM, report),
        };
        let read = self.understood(name, value, read, units::DURATION_FORM, report)?;
        self.within(name, value, read, range, units::show_duration, report)
    }

    /// A duration or its default.
    pub(super) fn duration(&self, name: &str, report: &mut Report) -> Duration {
        let Default::Duration(default) = self.key(name).default else {
            self.misused(name)
        };
        self.given_duration(name, report).unwrap_or(default)
    }

    /// A size in bytes or its default.
    pub(super) fn size(&self, name: &str, report: &mut Report) -> u64 {
        let Key {
            form: Form::Size(range),
            default: Default::Size(default),
            ..
        } = self.key(name)
        else {
            self.misused(name)
        };
        let Some(value) = self.raw(name) else {
            return *default;
        };
        let read = match value.get_ref() {
            DeValue::String(text) => units::size(text),
            DeValue::Integer(number) => units::size(&number.to_string()),
            other => {
                return self
                    .mismatch(name, value, other, units::SIZE_FORM, report)
                    .unwrap_or(*default);
            }
        };
        self.understood(name, value, read, units::SIZE_FORM, report)
            .and_then(|read| self.within(name, value, read, range, units::show_size, report))
            .unwrap_or(*default)
    }

    /// A whole number that may be negative, within the key's range, if given and right.
    pub(super) fn given_signed(&self, name: &str, report: &mut Report) -> Option<i64> {
        let Form::Signed(range) = &self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        let DeValue::Integer(number) = value.get_ref() else {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            return self.mismatch(name, value, value.get_ref(), &expected, report);
        };
        match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => self.within(name, value, number, range, |bound| bound.to_string(), report),
            Err(_) => self.outside(name, value, number, range, |bound| bound.to_string(), report),
        }
    }

    /// A duration that may be negative, in µs, within the key's range, if given and right.
    pub(super) fn given_offset(&self, name: &str, report: &mut Report) -> Option<i64> {
        let Form::Offset(range) = &self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        let read = match value.get_ref() {
            DeValue::String(text) => units::offset(text),
            DeValue::Integer(number) => Err(Misread {
                meant: Some(format!("{number}ms\" or \"{number}s")),
            }),
            other => return self.mismatch(name, value, other, units::OFFSET_FORM, report),
        };
        let read = self.understood(name, value, read, units::OFFSET_FORM, report)?;
        self.within(name, value, read, range, units::show_offset, report)
    }

    /// Whole percent or its default.
    pub(super) fn percent(&self, name: &str, report: &mut Report) -> u64 {
        let Key {
            form: Form::Percent(range),
            default: Default::Integer(default),
            ..
        } = self.key(name)
        else {
            self.misused(name)
        };
        let Some(value) = self.raw(name) else {
            return *default;
        };
        let read = match value.get_ref() {
            DeValue::String(text) => units::percent(text),
            DeValue::Integer(number) => units::percent(&number.to_string()),
            other => {
                return self
                    .mismatch(name, value, other, units::PERCENT_FORM, report)
                    .unwrap_or(*default);
            }
        };
        self.understood(name, value, read, units::PERCENT_FORM, report)
            .and_then(|read| self.within(name, value, read, range, |percent| format!("{percent}%"), report))
            .unwrap_or(*default)
    }

    /// A share in millionths, if given and right.
    pub(super) fn share(&self, name: &str, report: &mut Report) -> Option<u32> {
        let Form::Share = self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        let expected = "a percentage from 0 to 100 with at most four decimals, such as \"12.5%\"";
        let read = match value.get_ref() {
            DeValue::String(text) => units::share(text),
            DeValue::Integer(number) => units::share(&number.to_string()),
            DeValue::Float(number) => units::share(number.as_str()),
            other => return self.mismatch(name, value, other, expected, report),
        };
        self.understood(name, value, read, expected, report)
    }

    /// A whole number within the key's range, if given and right.
    pub(super) fn given_integer(&self, name: &str, report: &mut Report) -> Option<(u64, At)> {
        let Form::Integer(range) = &self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        self.integer_of(name, value, range, report)
            .map(|number| (number, value.span()))
    }

    /// A whole number or its default.
    pub(super) fn integer(&self, name: &str, report: &mut Report) -> u64 {
        let Default::Integer(default) = self.key(name).default else {
            self.misused(name)
        };
        self.given_integer(name, report)
            .map_or(default, |(number, _)| number)
    }

    /// Whole numbers of a list; wrong ones are left out.
    pub(super) fn integers(&self, name: &str, report: &mut Report) -> Vec<(u64, At)> {
        let Form::Integers(range) = &self.key(name).form else {
            self.misused(name)
        };
        let Some(value) = self.raw(name) else {
            return Vec::new();
        };
        let DeValue::Array(list) = value.get_ref() else {
            self.mismatch::<()>(
                name,
                value,
                value.get_ref(),
                "a list of whole numbers such as [1, 2]",
                report,
            );
            return Vec::new();
        };
        let number =
            |value: &'a Value<'a>| Some((self.integer_of(name, value, range, report)?, value.span()));
        list.iter().filter_map(number).collect()
    }

    /// A flag, if given and right.
    pub(super) fn given_flag(&self, name: &str, report: &mut Report) -> Option<bool> {
        let Form::Flag = self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        match value.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            other => self.mismatch(name, value, other, "`true` or `false`", report),
        }
    }

    /// A flag or its default.
    pub(super) fn flag(&self, name: &str, report: &mut Report) -> bool {
        let Default::Flag(default) = self.key(name).default else {
            self.misused(name)
        };
        self.given_flag(name, report).unwrap_or(default)
    }

    /// One of the words of a choice, or the default one.
    pub(super) fn choice(&self, name: &str, report: &mut Report) -> &'static str {
        let Key {
            form: Form::Choice(words),
            default: Default::Word(default),
            ..
        } = self.key(name)
        else {
            self.misused(name)
        };
        let Some(value) = self.raw(name) else {
            return default;
        };
        let built = words
            .iter()
            .filter(|word| word.state == State::Built)
            .map(|word| word.text);
        let expected = one_of(built);
        let DeValue::String(text) = value.get_ref() else {
            return self
                .mismatch(name, value, value.get_ref(), &expected, report)
                .unwrap_or(default);
        };
        match words.iter().find(|word| word.text == text) {
            Some(word) if word.state == State::Built => return word.text,
            Some(word) => {
                let what = format!("`{name} = \"{}\"`", word.text);
                report.push(not_yet(what, value.span()).expected(format!("expected {expected}")));
            }
            None => {
                let found = format!("`{name}` is \"{text}\"");
                let near = keys::nearest(text, words.iter().map(|word| word.text));
                report.wrong(
                    value.span(),
                    found,
                    format!("expected {expected}"),
                    did_you_mean(near, "\""),
                );
            }
        }
        default
    }

    /// A string, if given and one.
    pub(super) fn text(&self, name: &str, report: &mut Report) -> Option<Text<'a>> {
        let Form::Text(what) = self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        match value.get_ref() {
            DeValue::String(text) => Some(Text {
                text,
                at: value.span(),
            }),
            other => self.mismatch(name, value, other, &format!("a string: {what}"), report),
        }
    }

    /// A string or the strings of a list; others are left out.
    pub(super) fn texts(&self, name: &str, report: &mut Report) -> Vec<Text<'a>> {
        let what = match &self.key(name).form {
            Form::Texts(what) => (*what).to_owned(),
            Form::Words(words) => one_of(words.iter().map(|word| word.text)),
            _ => self.misused(name),
        };
        match self.raw(name) {
            None => Vec::new(),
            Some(value) => strings(value, &format!("`{name}`"), &what, report),
        }
    }

    fn integer_of(
        &self,
        name: &str,
        value: &Value<'_>,
        range: &RangeInclusive<u64>,
        report: &mut Report,
    ) -> Option<u64> {
        let DeValue::Integer(number) = value.get_ref() else {
            let expected = format!("a whole number from {} to {}", range.start(), range.end());
            return self.mismatch(name, value, value.get_ref(), &expected, report);
        };
        match u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|number| range.contains(number))
        {
            Some(number) => Some(number),
            None => self.outside(name, value, number, range, |bound| bound.to_string(), report),
        }
    }

    fn understood<T>(
        &self,
        name: &str,
        value: &Value<'_>,
        read: units::Read<T>,
        expected: &str,
        report: &mut Report,
    ) -> Option<T> {
        let misread = match read {
            Ok(read) => return Some(read),
            Err(misread) => misread,
        };
        let help = misread
            .meant
            .map_or(String::new(), |meant| format!("write \"{meant}\""));
        report.wrong(
            value.span(),
            format!("`{name}` is {}", shown(value.get_ref())),
            format!("expected {expected}"),
            help,
        );
        None
    }

    fn within<T: PartialOrd + Copy>(
        &self,
        name: &str,
        value: &Value<'_>,
        read: T,
        range: &RangeInclusive<T>,
        show: impl Fn(T) -> String,
        report: &mut Report,
    ) -> Option<T> {
        if range.contains(&read) {
            Some(read)
        } else {
            self.outside(name, value, show(read), range, show, report)
        }
    }

    fn outside<T: Copy>(
        &self,
        name: &str,
        value: &Value<'_>,
        read: impl Display,
        range: &RangeInclusive<T>,
        show: impl Fn(T) -> String,
        report: &mut Report,
    ) -> Option<T> {
        let expected = format!("expected {} to {}", show(*range.start()), show(*range.end()));
        report.wrong(
            value.span(),
            format!("`{name}` is {read}, which is out of range"),
            expected,
            "",
        );
        None
    }
}

/// A string or the strings of a list; what is neither is reported and left out.
pub(super) fn strings<'a>(
    value: &'a Value<'a>,
    name: &str,
    what: &str,
    report: &mut Report,
) -> Vec<Text<'a>> {
    let list: Vec<&'a Value<'a>> = match value.get_ref() {
        DeValue::Array(list) => list.iter().collect(),
        _ => vec![value],
    };
    if list.is_empty() {
        report.wrong(
            value.span(),
            format!("{name} is an empty list"),
            format!("expected {what}"),
            "",
        );
    }
    let mut texts = Vec::new();
    for item in list {
        match item.get_ref() {
            DeValue::String(text) => texts.push(Text {
                text,
                at: item.span(),
            }),
            other => {
                let verb = if std::ptr::eq(item, value) { "is" } else { "holds" };
                report.wrong(
                    item.span(),
                    format!("{name} {verb} {}", kind(other)),
                    format!("expected a string: {what}"),
                    "",
                );
            }
        }
    }
    texts
}
