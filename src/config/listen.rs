//! Builds `[[listen]]`.

use super::address::{self, Place};
use super::errors::{At, Class, Problem, Report};
use super::headers::edits;
use super::model::{Address, ClientTimeouts, Forwarded, HeadLimits, Listen};
use super::names::{Names, Policies};
use super::read::{Fields, Text};
use super::resolve::Answers;
use super::route::routes;
use super::words::check_name;
use super::{defaults, units};
use crate::decide::route::{BackendRef, RouteTable};

/// What a listener refers to.
pub(super) struct Around<'a> {
    /// The backends.
    pub(super) backends: &'a Names<'a>,
    /// The policies.
    pub(super) policies: &'a Policies<'a>,
    /// Workers of the process.
    pub(super) workers: u16,
    /// Addresses of host names.
    pub(super) answers: &'a Answers,
}

impl Around<'_> {
    /// The backend of that name, or a report that there is none.
    pub(super) fn backend(&self, name: &Text<'_>, report: &mut Report) -> Option<BackendRef> {
        self.backends.find(name, report).map(BackendRef)
    }
}

/// Every listener, in file order.
pub(super) fn listeners(top: &Fields<'_>, around: &Around<'_>, report: &mut Report) -> Vec<Listen> {
    let tables = top.tables("listen", report);
    let mut names: Vec<(String, At)> = Vec::new();
    let mut bound: Vec<(Address, At)> = Vec::new();
    let mut listeners = Vec::new();
    for (at, fields) in tables.iter().enumerate() {
        let name = name(at, fields, &mut names, report);
        let bind = bind(fields, around, &mut bound, report);
        let (routes, route_names) = table(fields, around, report);
        listeners.push(Listen {
            name,
            bind,
            workers: workers(fields, around, report),
            timeouts: timeouts(fields, report),
            limits: limits(fields, report),
            session_private_max: fields.integer("max-session-srv-conns", report) as usize,
            routes,
            route_names,
            route_policy: fields
                .text("route-policy", report)
                .and_then(|name| around.policies.of_listener(&name, report)),
            request_edits: edits("request-headers", fields, report),
            response_edits: edits("response-headers", fields, report),
            forwarded: match fields.choice("x-forwarded", report) {
                "replace" => Forwarded::Replace,
                "off" => Forwarded::Off,
                _ => Forwarded::Append,
            },
            via: via(fields, report),
        });
    }
    listeners
}

fn name(at: usize, fields: &Fields<'_>, names: &mut Vec<(String, At)>, report: &mut Report) -> String {
    let given = fields.text("name", report);
    if let Some(text) = &given {
        check_name("the listener", text, "/", report);
    }
    let place = given.as_ref().map_or(fields.at.clone(), |text| text.at.clone());
    let name = given.map_or_else(|| format!("listen-{}", at + 1), |text| text.text.to_owned());
    if let Some((_, first)) = names.iter().find(|(known, _)| *known == name) {
        let problem = Problem::new(
            Class::Wrong,
            place.clone(),
            format!("two listeners are named \"{name}\""),
        );
        report.push(
            problem
                .expected("a name of its own is needed")
                .also(first.clone(), "the first one"),
        );
    }
    names.push((name.clone(), place));
    name
}

fn bind(
    fields: &Fields<'_>,
    around: &Around<'_>,
    bound: &mut Vec<(Address, At)>,
    report: &mut Report,
) -> Vec<Address> {
    let mut addresses = Vec::new();
    for text in fields.texts("bind", report) {
        let places = match address::read("bind", &text, report) {
            None => Vec::new(),
            Some(Place::Socket(address)) => vec![Address::Tcp(address)],
            Some(Place::Any(port)) => address::any(port).map(Address::Tcp).to_vec(),
            Some(Place::Unix(path)) => vec![Address::Unix(path)],
            Some(Place::Name(name, port)) => address::resolved(&text, &name, port, around.answers, report)
                .map(Address::Tcp)
                .into_iter()
                .collect(),
        };
        for address in places {
            // Port 0 is another port every time.
            let fixed = !matches!(&address, Address::Tcp(address) if address.port() == 0);
            if let Some((_, first)) = bound.iter().find(|(known, _)| fixed && *known == address) {
                let problem = Problem::new(
                    Class::Wrong,
                    text.at.clone(),
                    format!("`{address}` is bound twice"),
                );
                report.push(
                    problem
                        .expected("bound again here")
                        .also(first.clone(), "bound here"),
                );
            }
            bound.push((address.clone(), text.at.clone()));
            addresses.push(address);
        }
    }
    addresses
}

/// The file counts workers from 1, the program from 0.
fn workers(fields: &Fields<'_>, around: &Around<'_>, report: &mut Report) -> Vec<u16> {
    let mut workers: Vec<u16> = Vec::new();
    if let Some(value) = fields
        .raw("workers")
        .filter(|value| value.get_ref().as_array().is_some_and(|list| list.is_empty()))
    {
        report.wrong(
            value.span(),
            "`workers` is an empty list",
            "expected workers such as [1, 2]",
            "leave it out for all",
        );
    }
    for (number, at) in fields.integers("workers", report) {
        let worker = (number - 1) as u16; // 1…64 by its range
        if worker >= around.workers {
            let found = format!("there is no worker {number}");
            let expected = format!("expected 1 to {}", around.workers);
            report.wrong(
                at,
                found,
                expected,
                "`workers` of [process] says how many there are; the default is one per core",
            );
        } else if workers.contains(&worker) {
            report.wrong(at, format!("worker {number} is named twice"), "expected once", "");
        } else {
            workers.push(worker);
        }
    }
    workers
}

fn timeouts(fields: &Fields<'_>, report: &mut Report) -> ClientTimeouts {
    ClientTimeouts {
        http_request: fields.duration("timeout-http-request", report),
        inactivity: fields.duration("timeout-client", report),
        http_keep_alive: fields.duration("timeout-http-keep-alive", report),
        tunnel: fields.duration("timeout-tunnel", report),
    }
}

fn limits(fields: &Fields<'_>, report: &mut Report) -> HeadLimits {
    let head_max = fields.size("head-max", report);
    let line_max = fields.size("request-line-max", report);
    if let Some(value) = fields.raw("request-line-max").filter(|_| line_max > head_max) {
        let found = format!(
            "`request-line-max` is {}, above `head-max`",
            units::show_size(line_max)
        );
        let problem = Problem::new(Class::Wrong, value.span(), found);
        let problem = problem.expected(format!("expected at most {}", units::show_size(head_max)));
        report.push(match fields.raw("head-max") {
            Some(head) => problem.also(head.span(), "the whole head"),
            None => problem.help(format!(
                "the default of `head-max` is {}",
                units::show_size(defaults::HEAD_MAX)
            )),
        });
    }
    HeadLimits {
        head_max: head_max as usize,
        request_line_max: line_max.min(head_max) as usize,
        headers_max: fields.integer("headers-max", report) as usize,
    }
}

fn table(fields: &Fields<'_>, around: &Around<'_>, report: &mut Report) -> (RouteTable, Vec<Option<String>>) {
    let default = fields
        .text("backend", report)
        .and_then(|name| around.backend(&name, report));
    if !fields.is_meant("backend") && !fields.is_meant("route") {
        let problem = Problem::new(
            Class::Missing,
            fields.at.clone(),
            "the listener has neither a backend nor a route",
        );
        report.push(problem.expected("expected `backend = \"NAME\"` or a `[[listen.route]]`"));
    }
    let (names, routes) = routes(fields, around, report).into_iter().unzip();
    (RouteTable { routes, default }, names)
}

fn via(fields: &Fields<'_>, report: &mut Report) -> Option<String> {
    let Some(text) = fields.text("via", report) else {
        return Some(defaults::VIA.to_owned());
    };
    if text.text == "off" {
        return None;
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if text.text.is_empty() || !text.text.bytes().all(token) {
        let found = format!("`via` is \"{}\"", text.text.escape_debug());
        report.wrong(
            text.at,
            found,
            "expected a pseudonym of letters, digits, `-`, `.` or `_`, or \"off\"",
            "",
        );
        return None;
    }
    Some(text.text.to_owned())
}
