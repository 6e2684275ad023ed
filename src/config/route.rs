//! Builds `[[listen.route]]`: what it takes and what it does.

use super::defaults;
use super::errors::{At, Class, Problem, Report};
use super::headers::edits;
use super::keys::Section;
use super::listen::Around;
use super::read::{Fields, Text};
use super::words::{check_name, refused};
use crate::decide::mistake::Mistake;
use crate::decide::redirect::{Cookie, CookieText, Query, Redirect, RedirectStatus, Target};
use crate::decide::route::{
    Action, HostPattern, Matcher, MethodName, PathPattern, Priority, ROUTES_MAX, Respond, Route, Share,
};
use crate::decide::template::Template;

/// The routes of a listener with their names, in order. A wrong one is reported and left out.
pub(super) fn routes(
    listen: &Fields<'_>,
    around: &Around<'_>,
    report: &mut Report,
) -> Vec<(Option<String>, Route)> {
    let tables = listen.tables("route", report);
    if let Some(extra) = tables.get(ROUTES_MAX) {
        report.wrong(
            extra.at.clone(),
            format!("more than {ROUTES_MAX} routes"),
            "this one is too many",
            "",
        );
    }
    let mut routes = Vec::new();
    let mut names: Vec<Text<'_>> = Vec::new();
    let mut everything: Option<At> = None;
    for fields in &tables {
        if let Some(taken) = &everything {
            let problem = Problem::new(Class::Warning, fields.at.clone(), "this route is never reached");
            report.push(problem.also(taken.clone(), "takes every request"));
        }
        let name = name(fields, &mut names, report);
        if let Some(route) = route(fields, around, report) {
            if takes_everything(&route) && everything.is_none() {
                everything = Some(fields.at.clone());
            }
            routes.push((name, route));
        }
    }
    routes
}

/// What a policy calls the route.
fn name<'a>(fields: &Fields<'a>, names: &mut Vec<Text<'a>>, report: &mut Report) -> Option<String> {
    let name = fields.text("name", report)?;
    check_name("the route", &name, "", report);
    if let Some(first) = names.iter().find(|known| known.text == name.text) {
        let found = format!("two routes of the listener are named \"{}\"", name.text);
        let problem = Problem::new(Class::Wrong, name.at.clone(), found);
        report.push(
            problem
                .expected("a name of its own is needed")
                .also(first.at.clone(), "the first one"),
        );
    }
    if !["redirect", "respond"].iter().any(|kind| fields.is_meant(kind)) {
        let problem = Problem::new(Class::Warning, name.at.clone(), "`name` has no effect here");
        report.push(
            problem.expected("a policy chooses a `redirect` or a `respond` by it; backends have names"),
        );
    }
    names.push(name.clone());
    Some(name.text.to_owned())
}

fn takes_everything(route: &Route) -> bool {
    let passes = matches!(
        &route.action,
        Action::Redirect(Redirect {
            target: Target::Location {
                ignore_empty: true,
                ..
            },
            ..
        })
    );
    route.matcher == Matcher::default() && !passes
}

fn route(fields: &Fields<'_>, around: &Around<'_>, report: &mut Report) -> Option<Route> {
    let matcher = fields
        .table("match", report)
        .map(|fields| matcher(&fields, report))
        .unwrap_or_default();
    let request_edits = edits("request-headers", fields, report);
    let response_edits = edits("response-headers", fields, report);
    let priority = Priority {
        class: fields.given_signed("priority-class", report).unwrap_or_default() as i16, // ±2047 by its range
        offset: fields.given_offset("priority-offset", report).unwrap_or_default(),
    };
    let action = action(fields, around, report)?;
    if !matches!(action, Action::Backend(_)) {
        for name in [
            "request-headers",
            "response-headers",
            "priority-class",
            "priority-offset",
        ] {
            if let Some(at) = fields.key_at(name) {
                let problem = Problem::new(Class::Warning, at, format!("`{name}` has no effect here"));
                report.push(problem.expected("this route answers by itself, no server is asked"));
            }
        }
    }
    Some(Route {
        matcher,
        action,
        request_edits,
        response_edits,
        priority,
    })
}

fn matcher(fields: &Fields<'_>, report: &mut Report) -> Matcher {
    let mut paths = each("path", fields, PathPattern::exact, report);
    paths.extend(each("path-prefix", fields, PathPattern::prefix, report));
    Matcher {
        hosts: each("host", fields, HostPattern::parse, report),
        paths,
        methods: each("method", fields, MethodName::parse, report),
        share: fields
            .share("share", report)
            .and_then(|millionths| Share::millionths(millionths).ok()),
    }
}

fn each<T>(
    name: &str,
    fields: &Fields<'_>,
    read: impl Fn(&str) -> Result<T, Mistake>,
    report: &mut Report,
) -> Vec<T> {
    let texts = fields.texts(name, report);
    texts
        .iter()
        .filter_map(|text| read_with(name, text, &read, report))
        .collect()
}

fn read_with<T>(
    name: &str,
    text: &Text<'_>,
    read: impl Fn(&str) -> Result<T, Mistake>,
    report: &mut Report,
) -> Option<T> {
    read(text.text)
        .map_err(|mistake| refused(&format!("`{name}`"), text, &mistake, report))
        .ok()
}

fn action(fields: &Fields<'_>, around: &Around<'_>, report: &mut Report) -> Option<Action> {
    match exactly_one(
        fields,
        "the route",
        "the route does nothing",
        Section::Route.one_of(),
        report,
    )? {
        "backend" => around
            .backend(&fields.text("backend", report)?, report)
            .map(Action::Backend),
        "redirect" => redirect(&fields.table("redirect", report)?, report).map(Action::Redirect),
        "respond" => respond(&fields.table("respond", report)?, report).map(Action::Respond),
        _ => Action::deny(fields.given_integer("deny", report)?.0 as u16).ok(), // 400…599 by its range
    }
}

/// Which one of some keys is given; none or several is a mistake.
fn exactly_one(
    fields: &Fields<'_>,
    what: &str,
    none: &str,
    names: &[&'static str],
    report: &mut Report,
) -> Option<&'static str> {
    let given: Vec<&'static str> = names.iter().copied().filter(|name| fields.has(name)).collect();
    let expected = format!(
        "expected one of {}",
        names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    match given.as_slice() {
        [one] => Some(one),
        [] => {
            if !names.iter().any(|name| fields.is_meant(name)) {
                report.push(Problem::new(Class::Missing, fields.at.clone(), none).expected(expected));
            }
            None
        }
        [first, second, ..] => {
            let at = |name| fields.key_at(name).unwrap_or(fields.at.clone());
            let found = format!("{what} has both `{first}` and `{second}`");
            let problem = Problem::new(Class::Wrong, at(second), found).expected(expected);
            report.push(problem.also(at(first), "given already"));
            None
        }
    }
}

fn respond(fields: &Fields<'_>, report: &mut Report) -> Option<Respond> {
    let (status, status_at) = fields.given_integer("status", report)?;
    let body = fields.text("body", report);
    let content_type = fields.text("content-type", report);
    if let Some(body) = body
        .as_ref()
        .filter(|body| body.text.len() > defaults::RESPOND_BODY_MAX)
    {
        let found = format!("`body` has {} bytes", body.text.len());
        report.wrong(
            body.at.clone(),
            found,
            format!("expected at most {}", defaults::RESPOND_BODY_MAX),
            "",
        );
    }
    let text = body.as_ref().map(|body| body.text);
    let (plain, standard) = (defaults::RESPOND_CONTENT_TYPE, format!("{status}\n"));
    // A status that never has a body gets none unasked (RFC 9110 §6.4.1).
    let content = text.unwrap_or(if matches!(status, 204 | 205 | 304) {
        ""
    } else {
        &standard
    });
    let kind = content_type.as_ref().map_or(plain, |kind| kind.text);
    let made = Respond::new(status as u16, kind, content.as_bytes());
    made.map_err(|mistake| match (&content_type, &body) {
        (Some(kind), _) if Respond::new(status as u16, plain, content.as_bytes()).is_ok() => {
            refused("`content-type`", kind, &mistake, report);
        }
        (_, Some(body)) => report.wrong(body.at.clone(), mistake.to_string(), "expected no `body`", ""),
        _ => report.wrong(status_at, mistake.to_string(), "", ""),
    })
    .ok()
}

fn redirect(fields: &Fields<'_>, report: &mut Report) -> Option<Redirect> {
    let status = status(fields, report);
    let cookie = cookie(fields, report);
    let way = exactly_one(
        fields,
        "the redirect",
        "the redirect leads nowhere",
        Section::Redirect.one_of(),
        report,
    )?;
    let useless: &[&str] = match way {
        "location" => &["drop-query", "append-slash"],
        _ => &["keep-query", "ignore-empty"],
    };
    for (name, at) in useless
        .iter()
        .filter_map(|name| Some((name, fields.key_at(name)?)))
    {
        let home = if way == "location" {
            "`prefix` or `scheme`"
        } else {
            "`location`"
        };
        report.wrong(
            at,
            format!("`{name}` has no meaning with `{way}`"),
            format!("it belongs to {home}"),
            "",
        );
    }
    let text = fields.text(way, report)?;
    let to = read_with(way, &text, Template::parse, report)?;
    let target = match way {
        "location" => {
            let (keep_query, ignore_empty) = (
                fields.flag("keep-query", report),
                fields.flag("ignore-empty", report),
            );
            Target::Location {
                to,
                keep_query,
                ignore_empty,
            }
        }
        "prefix" => Target::Prefix {
            to,
            query: query(fields, report)?,
        },
        _ => {
            scheme_alone(&text, report)?;
            Target::Scheme {
                to,
                query: query(fields, report)?,
            }
        }
    };
    Some(Redirect {
        target,
        status: status?,
        cookie,
    })
}

fn status(fields: &Fields<'_>, report: &mut Report) -> Option<RedirectStatus> {
    let code = fields.integer("code", report) as u16; // 301…308 by its range
    let wrong = |mistake: Mistake| {
        let at = fields.raw("code").map_or(fields.at.clone(), |value| value.span());
        report.wrong(at, format!("`code` is {code}"), mistake.to_string(), "");
    };
    RedirectStatus::of(code).map_err(wrong).ok()
}

fn query(fields: &Fields<'_>, report: &mut Report) -> Option<Query> {
    let (drop, slash) = (
        fields.flag("drop-query", report),
        fields.flag("append-slash", report),
    );
    let wrong = |mistake: Mistake| {
        let at = fields.key_at("append-slash").unwrap_or(fields.at.clone());
        report.wrong(
            at,
            "`append-slash` without `drop-query`",
            mistake.to_string(),
            "add `drop-query = true`",
        );
    };
    Query::of(drop, slash).map_err(wrong).ok()
}

/// `https`, not `https://`.
fn scheme_alone(text: &Text<'_>, report: &mut Report) -> Option<()> {
    let Some((scheme, _)) = text.text.split_once(':') else {
        return Some(());
    };
    let help = format!("write \"{scheme}\"");
    report.wrong(
        text.at.clone(),
        format!("`scheme` is \"{}\"", text.text),
        "expected the scheme alone",
        help,
    );
    None
}

fn cookie(fields: &Fields<'_>, report: &mut Report) -> Option<Cookie> {
    let read = |name: &str, report: &mut Report| {
        let text = fields.text(name, report)?;
        read_with(name, &text, CookieText::parse, report).map(|cookie| (cookie, text.at))
    };
    match (read("set-cookie", report), read("clear-cookie", report)) {
        (Some((_, first)), Some((_, second))) => {
            let found = "the redirect both sets and clears a cookie";
            report.push(
                Problem::new(Class::Wrong, second, found)
                    .expected("expected one of them")
                    .also(first, "given already"),
            );
            None
        }
        (Some((set, _)), None) => Some(Cookie::Set(set)),
        (None, Some((clear, at))) if clear.text().contains('=') => {
            let found = format!("`clear-cookie` is \"{}\"", clear.text());
            report.wrong(at, found, "expected the name of a cookie alone", "");
            None
        }
        (None, clear) => clear.map(|(clear, _)| Cookie::Clear(clear)),
    }
}
