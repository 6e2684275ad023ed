//! Builds `[backend.NAME]` and its servers.

use super::address::{self, Place};
use super::balance::{balance, check_points};
use super::defaults;
use super::errors::{At, Class, Problem, Report};
use super::headers::edits;
use super::keys::Section;
use super::limits::{self, Given};
use super::model::{Address, Backend, LoadReport, LoadReports, Server, ServerTimeouts};
use super::names::Policies;
use super::persist;
use super::pool;
use super::read::{Fields, Text, Value};
use super::resolve::Answers;
use super::words::{check_name, kind};
use toml::de::DeValue;

/// Every backend, in file order.
pub(super) fn backends(
    named: Vec<(Text<'_>, Fields<'_>)>,
    policies: &Policies<'_>,
    answers: &Answers,
    report: &mut Report,
) -> Vec<Backend> {
    if let Some((name, _)) = named.get(defaults::SECTIONS_MAX) {
        let found = format!("more than {} backends", defaults::SECTIONS_MAX);
        report.wrong(name.at.clone(), found, "this one is too many", "");
    }
    named
        .into_iter()
        .map(|(name, fields)| backend(&name, &fields, policies, answers, report))
        .collect()
}

fn backend(
    name: &Text<'_>,
    fields: &Fields<'_>,
    policies: &Policies<'_>,
    answers: &Answers,
    report: &mut Report,
) -> Backend {
    check_name("the backend", name, "/", report);
    let (policy, balance) = balance(fields, policies, report);
    let reuse_policy = fields
        .text("reuse-policy", report)
        .and_then(|name| policies.beside(&[policy], &name, report));
    let queue_policy = fields
        .text("queue-policy", report)
        .and_then(|name| policies.beside(&[policy, reuse_policy], &name, report));
    let cookie = persist::cookie(fields, report);
    let given = Given::of(fields, report);
    let servers = servers(fields, &given, answers, report);
    persist::check(cookie.as_ref(), &servers, report);
    let servers: Vec<_> = servers.into_iter().map(|(server, _)| server).collect();
    check_points(&balance, &servers, fields, report);
    Backend {
        name: name.text.to_owned(),
        balance,
        policy,
        reuse_policy,
        queue_policy,
        pool: pool::pool(fields, report),
        attempts: limits::attempts(fields, report),
        limits: given.limits(),
        fullconn: limits::fullconn(fields, &servers, report),
        timeouts: timeouts(fields, report),
        all_backups: fields.flag("allbackups", report),
        slow_start: fields.given_duration("slowstart", report),
        prefer_last_server: fields.flag("prefer-last-server", report),
        cookie,
        load_report: load_reports(fields, report),
        servers,
        request_edits: edits("request-headers", fields, report),
        response_edits: edits("response-headers", fields, report),
    }
}

fn timeouts(fields: &Fields<'_>, report: &mut Report) -> ServerTimeouts {
    let connect = fields.duration("timeout-connect", report);
    let inactivity = fields.duration("timeout-server", report);
    // the default of the queue is the connect timeout.
    let queue = fields.given_duration("timeout-queue", report).unwrap_or(connect);
    ServerTimeouts {
        connect,
        inactivity,
        queue,
    }
}

fn load_reports(fields: &Fields<'_>, report: &mut Report) -> LoadReports {
    let passing = fields.raw("load-report").and_then(|value| match value.get_ref() {
        DeValue::Boolean(false) => None,
        DeValue::Boolean(true) => Some(LoadReport::Taken),
        DeValue::String(word) if word == "pass" => Some(LoadReport::Passed),
        other => {
            let found = match other {
                DeValue::String(word) => format!("`load-report` is \"{}\"", word.escape_debug()),
                other => format!("`load-report` is {}", kind(other)),
            };
            report.wrong(value.span(), found, "expected `true`, `false` or \"pass\"", "");
            None
        }
    });
    if let (None, Some(at)) = (passing, fields.key_at("load-report-max-age"))
        && !fields.has("load-report")
    {
        let problem = Problem::new(Class::Warning, at, "`load-report-max-age` has no effect here");
        report.push(problem.expected("without `load-report` nothing is read of what servers report"));
    }
    LoadReports {
        passing,
        age_max: fields.duration("load-report-max-age", report),
    }
}

fn servers(
    fields: &Fields<'_>,
    backend: &Given,
    answers: &Answers,
    report: &mut Report,
) -> Vec<(Server, At)> {
    let Some(value) = fields.raw("servers") else {
        return Vec::new();
    };
    let items: Vec<&Value<'_>> = match value.get_ref() {
        DeValue::Array(list) => list.iter().collect(),
        DeValue::String(_) | DeValue::Table(_) => vec![value],
        other => {
            let found = format!("`servers` is {}", kind(other));
            report.wrong(
                value.span(),
                found,
                "expected a list of addresses or of tables",
                "",
            );
            return Vec::new();
        }
    };
    if items.is_empty() {
        report.wrong(
            value.span(),
            "`servers` is an empty list",
            "expected at least one server",
            "",
        );
    }
    if let Some(extra) = items.get(defaults::SERVERS_MAX) {
        let found = format!("more than {} servers in one backend", defaults::SERVERS_MAX);
        report.wrong(extra.span(), found, "this one is too many (LB-13)", "");
    }
    let mut servers: Vec<(Server, At)> = Vec::new();
    let mut told = Vec::new();
    for item in items {
        if let Some((server, limits)) = server(item, backend, answers, report) {
            limits.check(&mut told, report);
            if let Some((_, first)) = servers.iter().find(|(other, _)| other.name == server.name) {
                twice(&server.name, item, first.clone(), report);
            }
            servers.push((server, item.span()));
        }
    }
    servers
}

fn twice(name: &str, value: &Value<'_>, first: At, report: &mut Report) {
    let problem = Problem::new(
        Class::Wrong,
        value.span(),
        format!("two servers are named \"{name}\""),
    )
    .expected("a name of its own is needed")
    .also(first, "the first one");
    report.push(match value.get_ref() {
        DeValue::String(_) => problem.help(format!(
            "write {{ name = \"…\", address = \"{name}\" }}, or `weight = 2` for twice the load"
        )),
        _ => problem,
    });
}

/// A server, and where its limits were given.
fn server(
    value: &Value<'_>,
    backend: &Given,
    answers: &Answers,
    report: &mut Report,
) -> Option<(Server, Given)> {
    let mut given = backend.clone();
    let server = match value.get_ref() {
        DeValue::String(text) => {
            let text = Text {
                text,
                at: value.span(),
            };
            let address = server_address("servers", &text, answers, report)?;
            check_name("the server", &text, "", report);
            Server {
                name: text.text.to_owned(),
                address,
                weight: defaults::WEIGHT as u16,
                limits: given.limits(),
                backup: false,
                cookie: None,
                tags: Vec::new(),
            }
        }
        DeValue::Table(table) => {
            let fields = Fields::of(Section::Server, table, value.span(), report);
            let weight = fields.integer("weight", report) as u16; // at most 256 by its range
            given = Given::of(&fields, report).or(backend);
            let backup = fields.flag("backup", report);
            let cookie = persist::value(&fields, report);
            let tags = tags(&fields, report);
            let named = fields.text("name", report);
            if let Some(name) = &named {
                check_name("the server", name, "", report);
            }
            let written = fields.text("address", report)?;
            let address = server_address("address", &written, answers, report)?;
            if named.is_none() {
                check_name("the server", &written, "", report);
            }
            Server {
                name: named.unwrap_or(written).text.to_owned(),
                address,
                weight,
                limits: given.limits(),
                backup,
                cookie,
                tags,
            }
        }
        other => {
            let expected = "expected \"HOST:PORT\", \"unix:PATH\" or { name, address, weight }";
            report.wrong(
                value.span(),
                format!("`servers` holds {}", kind(other)),
                expected,
                "",
            );
            return None;
        }
    };
    Some((server, given))
}

/// `{ name = "value" }`, in the order of the names.
fn tags(fields: &Fields<'_>, report: &mut Report) -> Vec<(String, String)> {
    let Some(value) = fields.raw("tags") else {
        return Vec::new();
    };
    let DeValue::Table(table) = value.get_ref() else {
        let found = format!("`tags` is {}", kind(value.get_ref()));
        report.wrong(
            value.span(),
            found,
            "expected a table such as { zone = \"eu\" }",
            "",
        );
        return Vec::new();
    };
    if table.len() > defaults::TAGS_MAX {
        let found = format!("{} tags of one server", table.len());
        report.wrong(
            value.span(),
            found,
            format!("expected at most {}", defaults::TAGS_MAX),
            "",
        );
    }
    let mut tags = Vec::new();
    for (name, value) in table.iter() {
        let name = Text {
            text: name.get_ref(),
            at: name.span(),
        };
        check_name("the tag", &name, "", report);
        tags.extend(tag(name.text, value, report).map(|text| (name.text.to_owned(), text)));
    }
    tags.sort();
    tags
}

fn tag(name: &str, value: &Value<'_>, report: &mut Report) -> Option<String> {
    let expected = format!("expected a string of at most {} bytes", defaults::NAME_MAX);
    let found = match value.get_ref() {
        DeValue::String(text) if text.len() > defaults::NAME_MAX => format!("has {} bytes", text.len()),
        DeValue::String(text) if text.chars().any(char::is_control) => "has a control character".to_owned(),
        DeValue::String(text) => return Some(text.clone().into_owned()),
        other => format!("is {}", kind(other)),
    };
    report.wrong(value.span(), format!("the tag `{name}` {found}"), expected, "");
    None
}

fn server_address(key: &str, text: &Text<'_>, answers: &Answers, report: &mut Report) -> Option<Address> {
    let address = match address::read(key, text, report)? {
        Place::Unix(path) => return Some(Address::Unix(path)),
        Place::Socket(address) => address,
        Place::Name(name, port) => address::resolved(text, &name, port, answers, report)?,
        Place::Any(port) => {
            let help = format!("for this machine write \"127.0.0.1:{port}\"");
            report.wrong(
                text.at.clone(),
                format!("a server cannot be \"{}\"", text.text),
                "expected one address",
                help,
            );
            return None;
        }
    };
    if address.port() == 0 {
        report.wrong(
            text.at.clone(),
            format!("a server cannot have port 0: \"{}\"", text.text),
            "expected a port from 1",
            "",
        );
        return None;
    }
    Some(Address::Tcp(address))
}
