//! Builds what `[backend.NAME]` says of connections to its servers, and of second attempts.

use super::errors::{Class, Problem, Report};
use super::keys;
use super::model::{KeepRule, Mode, Override, Pool, RetryOn};
use super::read::Fields;
use super::words::{did_you_mean, refused};
use crate::decide::template::Template;
use std::net::IpAddr;

pub(super) fn pool(fields: &Fields<'_>, report: &mut Report) -> Pool {
    let given = |name: &str, report: &mut Report| {
        let number = fields.given_integer(name, report);
        number.map(|(number, _)| number.min(u64::from(u32::MAX)) as u32)
    };
    let low = fields.integer("pool-low-conn", report) as u32; // at most a million by its range
    let max = given("pool-max-conn", report);
    if max.is_some_and(|max| max > 0 && max < low) {
        crossed(fields, low, max.unwrap_or(0), report);
    }
    Pool {
        reuse: match fields.choice("reuse", report) {
            "never" => Mode::Never,
            "aggressive" => Mode::Aggressive,
            "always" => Mode::Always,
            _ => Mode::Safe,
        },
        overriding: match fields.choice("reuse-override", report) {
            "allow" => Override::Allowed,
            _ => Override::Refused,
        },
        low,
        max,
        purge_delay: fields.duration("pool-purge-delay", report),
        keep: match fields.choice("pool-keep", report) {
            "equal" => KeepRule::EqualShare,
            _ => KeepRule::Plain,
        },
        max_reuse: given("max-reuse", report),
        strict_max: given("strict-maxconn", report),
        name: name(fields, report),
        source: source(fields, report),
        prefer_idle: fields.flag("prefer-idle", report),
    }
}

/// A reserve that the limit does not let exist.
fn crossed(fields: &Fields<'_>, low: u32, max: u32, report: &mut Report) {
    let at = |name: &str| fields.raw(name).map(|value| value.span());
    let (Some(low_at), Some(max_at)) = (at("pool-low-conn"), at("pool-max-conn")) else {
        return;
    };
    let found = format!("`pool-low-conn` is {low}, above `pool-max-conn` with {max}");
    let problem = Problem::new(Class::Wrong, low_at, found).expected("expected low ≤ max (POOL-22, POOL-32)");
    let help = "below the reserve no worker takes over another's connection: it would never be full";
    report.push(problem.also(max_at, "the limit").help(help));
}

fn name(fields: &Fields<'_>, report: &mut Report) -> Option<Template> {
    let text = fields.text("pool-conn-name", report)?;
    Template::parse(text.text)
        .map_err(|mistake| refused("`pool-conn-name`", &text, &mistake, report))
        .ok()
}

fn source(fields: &Fields<'_>, report: &mut Report) -> Option<IpAddr> {
    let text = fields.text("source", report)?;
    let address = text.text.parse::<IpAddr>().ok();
    if address.is_none() {
        let found = format!("`source` is \"{}\"", text.text.escape_debug());
        let help = "a port is not given: the system picks one for each connection";
        report.wrong(
            text.at,
            found,
            "expected an IP address such as \"192.0.2.7\"",
            help,
        );
    }
    address
}

const CAUSES: [&str; 4] = ["conn-failure", "empty-response", "response-timeout", "none"];

pub(super) fn retry_on(fields: &Fields<'_>, report: &mut Report) -> RetryOn {
    if !fields.has("retry-on") {
        return RetryOn::default();
    }
    let mut on = RetryOn::NOTHING;
    let causes = fields.texts("retry-on", report);
    for cause in &causes {
        match cause.text {
            "conn-failure" => on.conn_failure = true,
            "empty-response" => on.empty_response = true,
            "response-timeout" => on.response_timeout = true,
            "none" if causes.len() == 1 => {}
            "none" => {
                let found = "`retry-on` has \"none\" beside other words";
                report.wrong(cause.at.clone(), found, "expected it alone, or not at all", "");
            }
            word => {
                let found = format!("`retry-on` has \"{}\"", word.escape_debug());
                let near = did_you_mean(keys::nearest(word, CAUSES), "\"");
                let expected =
                    "expected \"conn-failure\", \"empty-response\", \"response-timeout\" or \"none\"";
                report.wrong(cause.at.clone(), found, expected, near);
            }
        }
    }
    on
}
