//! Builds the cookie that a backend inserts, and what it says of each server.

use super::defaults::COOKIE_TEXT_MAX;
use super::errors::{At, Class, Problem, Report};
use super::model::{Cookie, SameSite, Server};
use super::read::{Fields, Text};
use crate::decide::persist::{is_value, value_of};
use crate::policy::is_token;
use std::collections::BTreeMap;

/// `cookie = { … }` of a backend.
pub(super) fn cookie(fields: &Fields<'_>, report: &mut Report) -> Option<Cookie> {
    let fields = fields.table("cookie", report)?;
    let name = fields.text("name", report);
    let secure = fields.flag("secure", report);
    let same_site = match fields.choice("same-site", report) {
        "strict" => SameSite::Strict,
        "none" => SameSite::None,
        _ => SameSite::Lax,
    };
    if let Some(value) = fields
        .raw("same-site")
        .filter(|_| same_site == SameSite::None && !secure)
    {
        let found = "`same-site = \"none\"` without `secure = true`";
        report.wrong(value.span(), found, "clients throw such a cookie away", "");
    }
    let cookie = Cookie {
        name: name
            .as_ref()
            .and_then(|name| named(name, report))
            .unwrap_or_default(),
        http_only: fields.flag("http-only", report),
        secure,
        same_site,
        path: text(
            "path",
            "a path that begins with `/`",
            |it| it.starts_with('/'),
            &fields,
            report,
        )
        .unwrap_or_else(|| "/".to_owned()),
        domain: text("domain", "a host name", is_host, &fields, report),
        max_age: fields.given_duration("max-age", report),
        private: fields.flag("private", report),
    };
    name.map(|_| cookie)
}

fn named(name: &Text<'_>, report: &mut Report) -> Option<String> {
    let good = is_token(name.text) && name.text.len() <= COOKIE_TEXT_MAX;
    if !good {
        let found = format!("`name` is \"{}\"", name.text.escape_debug());
        let expected = format!("expected a token of at most {COOKIE_TEXT_MAX} letters, digits, `-` or `_`");
        report.wrong(name.at.clone(), found, expected, "");
    }
    good.then(|| name.text.to_owned())
}

/// An attribute: nothing that would end it.
fn text(
    key: &str,
    what: &str,
    is: impl Fn(&str) -> bool,
    fields: &Fields<'_>,
    report: &mut Report,
) -> Option<String> {
    let text = fields.text(key, report)?;
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b';';
    let good = text.text.bytes().all(plain) && text.text.len() <= COOKIE_TEXT_MAX && is(text.text);
    if !good {
        let found = format!("`{key}` is \"{}\"", text.text.escape_debug());
        report.wrong(text.at, found, format!("expected {what}"), "");
    }
    good.then(|| text.text.to_owned())
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.')
}

/// `cookie = "…"` of a server.
pub(super) fn value(fields: &Fields<'_>, report: &mut Report) -> Option<String> {
    let text = fields.text("cookie", report)?;
    let good = is_value(text.text) && text.text.len() <= COOKIE_TEXT_MAX;
    if !good {
        let found = format!("`cookie` is \"{}\"", text.text.escape_debug());
        let expected = "expected printable characters without spaces, `\"`, `,`, `;` and `\\`";
        report.wrong(text.at, found, expected, "");
    }
    good.then(|| text.text.to_owned())
}

/// Two servers of one value could not be told apart; a value is nothing without a cookie.
pub(super) fn check(cookie: Option<&Cookie>, servers: &[(Server, At)], report: &mut Report) {
    let mut seen: BTreeMap<String, At> = BTreeMap::new();
    for (server, at) in servers {
        if cookie.is_none() && server.cookie.is_some() {
            let found = format!("server \"{}\" has a `cookie`, and its backend none", server.name);
            let help = "add `cookie = { name = \"…\" }` to the backend";
            report.wrong(at.clone(), found, "it would have no effect", help);
        }
        let value = server.cookie.clone().unwrap_or_else(|| value_of(&server.name));
        if let Some(first) = seen.get(&value).filter(|_| cookie.is_some()) {
            let found = format!("two servers have the cookie \"{value}\"");
            let problem = Problem::new(Class::Wrong, at.clone(), found);
            let problem = problem.expected("a value of its own is needed");
            report.push(problem.also(first.clone(), "the first one"));
        }
        seen.entry(value).or_insert_with(|| at.clone());
    }
}
