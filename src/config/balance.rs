//! Builds an algorithm: `balance` of a backend, `fallback` of a policy, `else` of a hash.

use super::defaults;
use super::errors::{Class, Problem, Report};
use super::keys::{self, Section};
use super::model::{Balance, HashBalance, HashKey, PolicyRef, Server};
use super::names::Policies;
use super::read::{Fields, Text, Value};
use super::words::{did_you_mean, kind};
use crate::decide::balance::WEIGHT_SCALE;
use crate::decide::balance::hash::{Affinity, Hash, Mapping, Otherwise};
use crate::decide::balance::key::KeyOf;
use crate::policy::is_token;
use toml::de::{DeTable, DeValue};

const ALGORITHMS: [&str; 5] = ["random", "roundrobin", "leastconn", "first", "sticky"];

/// The policy and what is used without it, or the algorithm alone.
pub(super) fn balance(
    fields: &Fields<'_>,
    policies: &Policies<'_>,
    report: &mut Report,
) -> (Option<PolicyRef>, Balance) {
    let (named, native) = algorithm("balance", fields, report);
    let asked = named.and_then(|name| policies.of_backend(&name, report));
    asked.map_or((None, native), |(policy, fallback)| (Some(policy), fallback))
}

/// An algorithm of ours, where a policy cannot stand.
pub(super) fn native(key: &str, fields: &Fields<'_>, report: &mut Report) -> Balance {
    let (policy, native) = algorithm(key, fields, report);
    if let Some(policy) = policy {
        let found = format!("`{key}` names policy \"{}\"", policy.text.escape_debug());
        report.wrong(policy.at, found, EXPECTED_NATIVE, "");
    }
    native
}

const EXPECTED: &str = "expected \"random\", \"roundrobin\", \"leastconn\", \"first\", \"sticky\", { random = N }, \
    { hash = … } or { policy = \"NAME\" }";
const EXPECTED_NATIVE: &str = "expected \"random\", \"roundrobin\", \"leastconn\", \"first\", \"sticky\", { random = N } \
    or { hash = … }";
const EXPECTED_ELSE: &str = "expected \"roundrobin\", \"leastconn\", \"random\", \"first\" or { random = N }";

/// The name of a policy, if there is one, and an algorithm.
fn algorithm<'a>(key: &str, fields: &Fields<'a>, report: &mut Report) -> (Option<Text<'a>>, Balance) {
    let default = || Balance::Random(defaults::RANDOM_DRAWS);
    let expected = if key == "balance" {
        EXPECTED
    } else {
        EXPECTED_NATIVE
    };
    let Some(value) = fields.raw(key) else {
        return (None, default());
    };
    match value.get_ref() {
        DeValue::String(word) => {
            let plain = plain(key, word, value, expected, report);
            (None, plain.unwrap_or_else(default))
        }
        DeValue::Table(table) => {
            let fields = table_of(key, table, value, expected, report);
            let draws = fields.given_integer("random", report);
            let policy = fields.text("policy", report);
            let hash = hash(&fields, report);
            let native = match (draws, hash) {
                (_, Some(hash)) => Balance::Hash(Box::new(hash)),
                (Some((draws, _)), None) => Balance::Random(draws as u8), // at most 16 by its range
                (None, None) => default(),
            };
            (policy, native)
        }
        other => {
            report.wrong(value.span(), format!("`{key}` is {}", kind(other)), expected, "");
            (None, default())
        }
    }
}

/// The long form: exactly one of the keys that say who chooses.
fn table_of<'a>(
    key: &str,
    table: &'a DeTable<'a>,
    value: &Value<'a>,
    expected: &str,
    report: &mut Report,
) -> Fields<'a> {
    let fields = Fields::of(Section::Balance, table, value.span(), report);
    if table.is_empty() {
        report.wrong(value.span(), format!("`{key}` is an empty table"), expected, "");
    }
    let at = |name: &str| fields.raw(name).map(|value| (name.to_owned(), value.span()));
    let choosers: Vec<_> = Section::Balance.one_of().iter().copied().filter_map(at).collect();
    if let [(one, one_at), (other, other_at), ..] = &choosers[..] {
        let found = format!("`{key}` has both `{one}` and `{other}`");
        let problem = Problem::new(Class::Wrong, one_at.clone(), found).expected("expected one of them");
        let help = match other.as_str() {
            "policy" => "`fallback` of the policy says what is used without it",
            _ => "",
        };
        report.push(problem.also(other_at.clone(), format!("the {other}")).help(help));
    }
    if !fields.is_meant("hash") {
        let of_hash = ["type", "bound", "affinity", "else", "hash-key", "function"];
        for (name, at) in of_hash
            .into_iter()
            .filter_map(|name| Some((name, fields.key_at(name)?)))
        {
            let found = format!("`{name}` stands without `hash`");
            report.wrong(at, found, "expected it beside `hash` only", "");
        }
    }
    fields
}

fn plain(key: &str, word: &str, value: &Value<'_>, expected: &str, report: &mut Report) -> Option<Balance> {
    match word {
        "random" => return Some(Balance::Random(defaults::RANDOM_DRAWS)),
        "roundrobin" => return Some(Balance::RoundRobin),
        "leastconn" => return Some(Balance::LeastConn),
        "first" => return Some(Balance::First),
        "sticky" => return Some(Balance::Sticky),
        word => {
            let found = format!("`{key}` is \"{}\"", word.escape_debug());
            let help = match hashes(word) {
                Some(hash) => format!("write {{ hash = {hash} }}"),
                None => did_you_mean(near_algorithm(word), "\""),
            };
            report.wrong(value.span(), found, expected, help);
        }
    }
    None
}

/// Algorithms have many names elsewhere.
fn near_algorithm(word: &str) -> Option<&'static str> {
    match word.to_lowercase().replace(['-', '_', ' '], "").as_str() {
        "rr" | "roundrobin" | "wrr" | "staticrr" => Some("roundrobin"),
        "leastconn" | "leastconnections" | "leastconnection" | "leastrequest" | "lc" => Some("leastconn"),
        "p2c" | "randomtwo" | "random2" | "twochoices" => Some("random"),
        _ => keys::nearest(word, ALGORITHMS),
    }
}

/// What other proxies call a hash.
fn hashes(word: &str) -> Option<&'static str> {
    match word.to_lowercase().replace(['-', '_', ' '], "").as_str() {
        "hash" | "source" | "sourceip" | "iphash" | "consistenthash" | "ringhash" | "maglev" => {
            Some("\"source\"")
        }
        "uri" | "urihash" => Some("\"uri\""),
        "hdr" | "header" => Some("{ header = \"NAME\" }"),
        "urlparam" => Some("{ query = \"NAME\" }"),
        _ => None,
    }
}

fn hash(fields: &Fields<'_>, report: &mut Report) -> Option<HashBalance> {
    let mapping = match fields.choice("type", report) {
        "map-based" => Mapping::Map,
        _ => Mapping::Consistent,
    };
    let bound = fields.given_integer("bound", report);
    let affinity = match fields.choice("affinity", report) {
        "maxconn" => Affinity::Maxconn,
        "maxqueue" => Affinity::Maxqueue,
        _ => Affinity::Always,
    };
    let by = match fields.choice("hash-key", report) {
        "address" => HashKey::Address,
        _ => HashKey::Name,
    };
    // There is one so far.
    let _ = fields.choice("function", report);
    let hash = Hash {
        mapping,
        bound: bound.map(|(percent, _)| percent as u16), // at most 10,000 by its range
        affinity,
        otherwise: otherwise(fields, report),
    };
    let of = key_of(fields.raw("hash")?, report)?;
    Some(HashBalance { of, hash, by })
}

const EXPECTED_HASH: &str = "expected \"source\", \"uri\", \"path\", or one of { header }, { cookie }, { query }, { path-prefix }, { path-part }";

/// What of a request is hashed.
fn key_of(value: &Value<'_>, report: &mut Report) -> Option<KeyOf> {
    let table = match value.get_ref() {
        DeValue::String(word) => match &**word {
            "source" => return Some(KeyOf::Source),
            "uri" => return Some(KeyOf::Uri),
            "path" => return Some(KeyOf::Path),
            word => {
                let found = format!("`hash` is \"{}\"", word.escape_debug());
                let help = match keys::nearest(word, ["source", "uri", "path"]) {
                    None if is_token(word) => format!("for a header write {{ header = \"{word}\" }}"),
                    near => did_you_mean(near, "\""),
                };
                report.wrong(value.span(), found, EXPECTED_HASH, help);
                return None;
            }
        },
        DeValue::Table(table) => table,
        other => {
            report.wrong(
                value.span(),
                format!("`hash` is {}", kind(other)),
                EXPECTED_HASH,
                "",
            );
            return None;
        }
    };
    let fields = Fields::of(Section::Hash, table, value.span(), report);
    if table.len() != 1 {
        let found = format!("`hash` has {} keys", table.len());
        report.wrong(value.span(), found, EXPECTED_HASH, "");
    }
    let named = |key: &str, report: &mut Report| {
        let text = fields.text(key, report)?;
        let good = match key {
            // As it is written in a query: nothing that ends a name there.
            "query" => !text.text.is_empty() && !text.text.contains(['&', '=', '#', ' ']),
            _ => is_token(text.text),
        };
        if !good {
            let found = format!("`{key}` is \"{}\"", text.text.escape_debug());
            let expected = format!(
                "expected the name of a {}",
                if key == "query" { "query parameter" } else { key }
            );
            report.wrong(text.at, found, expected, "");
        }
        good.then(|| text.text.into())
    };
    let (header, cookie, query) = (
        named("header", report),
        named("cookie", report),
        named("query", report),
    );
    let number = |key: &str, report: &mut Report| {
        fields.given_integer(key, report).map(|(number, _)| number as u16) // at most 64 by its range
    };
    let (prefix, part) = (number("path-prefix", report), number("path-part", report));
    header
        .map(KeyOf::Header)
        .or(cookie.map(KeyOf::Cookie))
        .or(query.map(KeyOf::Query))
        .or(prefix.map(KeyOf::PathPrefix))
        .or(part.map(KeyOf::PathPart))
}

fn otherwise(fields: &Fields<'_>, report: &mut Report) -> Otherwise {
    let Some(value) = fields.raw("else") else {
        return Otherwise::RoundRobin;
    };
    let balance = match value.get_ref() {
        DeValue::String(word) => plain("else", word, value, EXPECTED_ELSE, report),
        DeValue::Table(table) => {
            let inner = table_of("else", table, value, EXPECTED_ELSE, report);
            let draws = inner.given_integer("random", report);
            if table.len() != 1 || draws.is_none() && inner.raw("random").is_none() {
                let found = "`else` is a table of something else than `random`";
                report.wrong(value.span(), found, EXPECTED_ELSE, "");
            }
            draws.map(|(draws, _)| Balance::Random(draws as u8)) // at most 16 by its range
        }
        other => {
            report.wrong(
                value.span(),
                format!("`else` is {}", kind(other)),
                EXPECTED_ELSE,
                "",
            );
            None
        }
    };
    match balance {
        Some(Balance::Random(draws)) => Otherwise::Random(draws),
        Some(Balance::LeastConn) => Otherwise::LeastConn,
        Some(Balance::First) => Otherwise::First,
        Some(Balance::Sticky) => {
            let found = "`else` is \"sticky\"";
            report.wrong(value.span(), found, EXPECTED_ELSE, "");
            Otherwise::RoundRobin
        }
        Some(Balance::RoundRobin | Balance::Hash(_)) | None => Otherwise::RoundRobin,
    }
}

/// A ring has a point for each sixteenth of a weight: too many servers of too much weight are too many.
pub(super) fn check_points(balance: &Balance, servers: &[Server], fields: &Fields<'_>, report: &mut Report) {
    let Balance::Hash(hash) = balance else { return };
    let weights: u64 = servers.iter().map(|server| u64::from(server.weight)).sum();
    let points = weights * u64::from(WEIGHT_SCALE);
    if hash.hash.mapping == Mapping::Consistent && points > defaults::HASH_POINTS_MAX {
        let at = fields
            .raw("balance")
            .map_or_else(|| fields.at.clone(), |value| value.span());
        let most = defaults::HASH_POINTS_MAX / u64::from(WEIGHT_SCALE);
        let found = format!("the weights of all servers sum up to {weights}");
        let help = "divide all weights by the same number: only their proportion matters";
        report.wrong(at, found, format!("a consistent hash takes {most} (LB-42)"), help);
    }
}
