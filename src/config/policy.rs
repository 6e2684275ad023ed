//! Builds `[policy.NAME]`. The component itself is not looked at here.

use super::balance::native;
use super::errors::{Class, Problem, Report};
use super::model::{FilePath, Grants, OnFault, Policy};
use super::read::{Fields, Text, Value};
use super::units::show_duration;
use super::words::{check_name, did_you_mean, kind};
use super::{defaults, keys, units};
use crate::policy::Grant;
use serde_json::Value as Json;
use std::path::Path;
use std::time::Duration;
use toml::de::{DeTable, DeValue};

/// Every policy, in file order. Relative paths begin at `folder`.
pub(super) fn policies(
    named: Vec<(Text<'_>, Fields<'_>)>,
    folder: &Path,
    report: &mut Report,
) -> Vec<Policy> {
    if let Some((name, _)) = named.get(defaults::SECTIONS_MAX) {
        let found = format!("more than {} policies", defaults::SECTIONS_MAX);
        report.wrong(name.at.clone(), found, "this one is too many", "");
    }
    named
        .into_iter()
        .map(|(name, fields)| policy(&name, &fields, folder, report))
        .collect()
}

fn policy(name: &Text<'_>, fields: &Fields<'_>, folder: &Path, report: &mut Report) -> Policy {
    check_name("the policy", name, "/", report);
    let deadline = fields.duration("deadline", report);
    Policy {
        name: name.text.to_owned(),
        component: path("component", fields, folder, report).unwrap_or_default(),
        config_json: config(fields, report),
        fallback: native("fallback", fields, report),
        on_fault: match fields.choice("on-fault", report) {
            "deny" => OnFault::Deny,
            _ => OnFault::Fallback,
        },
        deadline,
        mean_max: mean(fields, deadline, report),
        memory_max: fields.size("memory-max", report) as usize,
        interval: fields.duration("interval", report),
        grants: grants(fields, report),
        sha256: digest(fields, report),
    }
}

/// A word that is no grant is reported with those that are.
fn grants(fields: &Fields<'_>, report: &mut Report) -> Grants {
    let words = fields.texts("grants", report);
    let known = words.iter().filter_map(|word| {
        let grant = Grant::parse(word.text);
        if grant.is_none() {
            let words = Grant::ALL.map(|grant| format!("\"{}\"", grant.word()));
            let found = format!("`grants` holds \"{}\"", word.text.escape_debug());
            let near = did_you_mean(keys::nearest(word.text, Grant::ALL.map(Grant::word)), "\"");
            report.wrong(
                word.at.clone(),
                found,
                format!("expected {}", words.join(" or ")),
                near,
            );
        }
        grant
    });
    known.collect()
}

/// The path under that key.
pub(super) fn path(name: &str, fields: &Fields<'_>, folder: &Path, report: &mut Report) -> Option<FilePath> {
    let text = fields.text(name, report)?;
    if text.text.is_empty() || text.text.contains('\0') {
        let found = format!("`{name}` is \"{}\"", text.text.escape_debug());
        report.wrong(text.at, found, "expected a path", "");
        return None;
    }
    Some(FilePath {
        written: text.text.to_owned(),
        path: folder.join(text.text),
    })
}

fn mean(fields: &Fields<'_>, deadline: Duration, report: &mut Report) -> Duration {
    let mean = fields.duration("mean-max", report);
    if let Some(value) = fields.raw("mean-max").filter(|_| mean > deadline) {
        let found = format!("`mean-max` is {}, above `deadline`", show_duration(mean));
        let problem = Problem::new(Class::Warning, value.span(), found);
        let problem = problem.expected(format!("calls are cut after {} already", show_duration(deadline)));
        report.push(match fields.raw("deadline") {
            Some(given) => problem.also(given.span(), "the deadline of each call"),
            None => problem,
        });
    }
    mean
}

fn digest(fields: &Fields<'_>, report: &mut Report) -> Option<[u8; 32]> {
    let text = fields.text("sha256", report)?;
    let mut digest = [0; 32];
    let digits = text.text.as_bytes();
    let is_digest = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
    if !is_digest {
        let found = format!("`sha256` is \"{}\"", text.text.escape_debug());
        let help = match text.text.split_once(':') {
            Some((_, rest)) if rest.len() == 64 => format!("write \"{rest}\""),
            _ => "`sha256sum FILE` prints it".to_owned(),
        };
        report.wrong(text.at, found, "expected 64 hexadecimal digits", help);
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(digits.chunks(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
        *byte = nibble(pair[0]) << 4 | nibble(pair[1]);
    }
    Some(digest)
}

/// The policy's own table as JSON.
fn config(fields: &Fields<'_>, report: &mut Report) -> String {
    let none = || "{}".to_owned();
    let Some(value) = fields.raw("config") else {
        return none();
    };
    let DeValue::Table(given) = value.get_ref() else {
        let expected = "expected a table such as { window = \"5s\" }";
        let found = format!("`config` is {}", kind(value.get_ref()));
        report.wrong(value.span(), found, expected, "");
        return none();
    };
    let text = table(given, report).to_string();
    if text.len() > defaults::POLICY_CONFIG_MAX {
        let found = format!("`config` has {} bytes as JSON", text.len());
        let expected = format!(
            "expected at most {}",
            units::show_size(defaults::POLICY_CONFIG_MAX as u64)
        );
        report.wrong(value.span(), found, expected, "");
        return none();
    }
    text
}

fn table(given: &DeTable<'_>, report: &mut Report) -> Json {
    let pairs = given.iter();
    pairs
        .map(|(name, value)| (name.get_ref().to_string(), json(value, report)))
        .collect()
}

/// What JSON cannot say is reported.
fn json(value: &Value<'_>, report: &mut Report) -> Json {
    match value.get_ref() {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Boolean(flag) => Json::from(*flag),
        DeValue::Datetime(date) => Json::from(date.to_string()),
        DeValue::Array(list) => list.iter().map(|value| json(value, report)).collect(),
        DeValue::Table(given) => table(given, report),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Json::from(number),
            Err(_) => refused(
                value,
                number.to_string(),
                "a whole number of at most 64 bits",
                report,
            ),
        },
        DeValue::Float(number) => {
            let read = number.as_str().parse().ok();
            match read.and_then(serde_json::Number::from_f64) {
                Some(number) => Json::Number(number),
                None => refused(value, number.to_string(), "a number that JSON can write", report),
            }
        }
    }
}

fn refused(value: &Value<'_>, found: String, expected: &str, report: &mut Report) -> Json {
    report.wrong(
        value.span(),
        format!("`config` holds {found}"),
        format!("expected {expected}"),
        "",
    );
    Json::Null
}
