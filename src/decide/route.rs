//! Who answers a request: the rules of a listener, in order; the first that matches wins.
//!
//! A rule matches when each of its conditions does: one of its hosts, one of its paths, one of its methods, and then its share
//! of the traffic, which is drawn last and at most once per rule and request. A redirect that would lead nowhere
//! (`ignore-empty`, RD-1) counts as not matching. Without a match the default backend answers; without one there is no route,
//! and the client gets [`NO_ROUTE_STATUS`]. Choosing allocates nothing: a [`Choice`] borrows from the table.

use super::edit::Edits;
use super::mistake::{Kind, Mistake, What};
pub use super::pattern::{HostPattern, MethodName, PathPattern, Share, host_name};
use super::redirect::Redirect;
use crate::policy::Draw;
use std::net::IpAddr;

/// The status where no rule matches and no default backend is named: as HAProxy, 503 rather than 404, because the resource
/// may well exist; it is the proxy that has nobody to ask.
pub const NO_ROUTE_STATUS: u16 = 503;

/// The most rules of one listener.
pub const ROUTES_MAX: usize = 65_535;

/// The rules of one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteTable {
    /// In the order of the file; at most [`ROUTES_MAX`].
    pub routes: Vec<Route>,
    /// Who answers when no rule matches.
    pub default: Option<BackendRef>,
}

/// A backend, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendRef(pub u16);

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// When it matches.
    pub matcher: Matcher,
    /// What happens then.
    pub action: Action,
    /// Edits of the request, after those of the listener.
    pub request_edits: Edits,
    /// Edits of the response, after those of the listener.
    pub response_edits: Edits,
}

/// The conditions of a rule; all must hold. The default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// Any of these; empty for all, and for requests without a host.
    pub hosts: Vec<HostPattern>,
    /// Any of these; empty for all.
    pub paths: Vec<PathPattern>,
    /// Any of these; empty for all.
    pub methods: Vec<MethodName>,
    /// This part of what matched otherwise.
    pub share: Option<Share>,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A server of this backend answers.
    Backend(BackendRef),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// The proxy answers.
    Respond(Respond),
    /// The proxy refuses, with this status ([`Action::deny`]).
    Deny(u16),
}

impl Action {
    /// A refusal with a status from 400 to 599.
    pub fn deny(status: u16) -> Result<Action, Mistake> {
        match status {
            400..=599 => Ok(Action::Deny(status)),
            _ => Err(Mistake::new(0, What::Status(400, 599))),
        }
    }
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Respond {
    status: u16,
    content_type: Box<str>,
    body: Box<[u8]>,
}

impl Respond {
    /// A status from 200 to 599, with a body where the status has one (RFC 9110 §6.4.1).
    pub fn new(status: u16, content_type: &str, body: &[u8]) -> Result<Respond, Mistake> {
        if !(200..=599).contains(&status) {
            return Err(Mistake::new(0, What::Status(200, 599)));
        }
        if matches!(status, 204 | 205 | 304) && !body.is_empty() {
            return Err(Mistake::new(0, What::BodyForbidden(status)));
        }
        check_content_type(content_type)?;
        Ok(Respond {
            status,
            content_type: content_type.into(),
            body: body.into(),
        })
    }

    /// 200…599.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of `Content-Type`.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// The content; may be empty.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

fn check_content_type(text: &str) -> Result<(), Mistake> {
    if !text.contains('/') {
        return Err(Mistake::new(0, What::Empty));
    }
    match text.char_indices().find(|(_, found)| !matches!(found, ' '..='~')) {
        Some((at, found)) => Err(Mistake::new(at, What::Byte(found, Kind::ContentType))),
        None => Ok(()),
    }
}

/// What a request asks for, as far as rules and templates look at it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The method as it came.
    pub method: &'a [u8],
    /// Host and perhaps port, without user information; empty if there was none.
    pub host: &'a [u8],
    /// The path as it came, without query; empty (absolute form without path) and `*` count as `/`.
    pub path: &'a [u8],
    /// The query without `?`; `None` if there was no `?`.
    pub query: Option<&'a [u8]>,
    /// The client's address; `None` on a Unix socket.
    pub client: Option<IpAddr>,
    /// `http` or `https`: how the client came to us.
    pub scheme: &'static str,
}

impl<'a> Asked<'a> {
    /// The host without port and final dot.
    pub fn host_name(&self) -> &'a [u8] {
        host_name(self.host)
    }

    /// The path, `/` where the target has none (RFC 9112 §3.2.1) or is `*`.
    pub fn path(&self) -> &'a [u8] {
        if self.path.first() == Some(&b'/') {
            self.path
        } else {
            b"/"
        }
    }
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'t> {
    /// The rule that matched, by its place in [`RouteTable::routes`]; `None` for the default and for no route.
    pub route: Option<u16>,
    /// What happens.
    pub outcome: Outcome<'t>,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'t> {
    /// A server of this backend answers.
    Backend(BackendRef),
    /// The client is sent elsewhere.
    Redirect(&'t Redirect),
    /// The proxy answers.
    Respond(&'t Respond),
    /// The proxy refuses, with this status.
    Deny(u16),
    /// Nobody answers: [`NO_ROUTE_STATUS`].
    NoRoute,
}

impl RouteTable {
    /// The first rule that matches, else the default.
    pub fn choose(&self, asked: &Asked<'_>, draw: &mut impl Draw) -> Choice<'_> {
        let host = asked.host_name();
        for (at, route) in (0u16..).zip(&self.routes) {
            if route.takes(host, asked, draw) {
                return Choice {
                    route: Some(at),
                    outcome: route.action.outcome(),
                };
            }
        }
        let outcome = self.default.map_or(Outcome::NoRoute, Outcome::Backend);
        Choice { route: None, outcome }
    }
}

impl Route {
    fn takes(&self, host: &[u8], asked: &Asked<'_>, draw: &mut impl Draw) -> bool {
        let skipped = matches!(&self.action, Action::Redirect(redirect) if redirect.is_skipped(asked));
        !skipped && self.matcher.matches(host, asked, draw)
    }
}

impl Matcher {
    fn matches(&self, host: &[u8], asked: &Asked<'_>, draw: &mut impl Draw) -> bool {
        let any_host = || self.hosts.iter().any(|pattern| pattern.matches(host));
        let any_path = || self.paths.iter().any(|pattern| pattern.matches(asked.path()));
        let any_method = || self.methods.iter().any(|method| method.matches(asked.method));
        (self.methods.is_empty() || any_method())
            && (self.paths.is_empty() || any_path())
            && (self.hosts.is_empty() || any_host())
            && self.share.is_none_or(|share| share.takes(draw))
    }
}

impl Action {
    fn outcome(&self) -> Outcome<'_> {
        match self {
            Action::Backend(backend) => Outcome::Backend(*backend),
            Action::Redirect(redirect) => Outcome::Redirect(redirect),
            Action::Respond(respond) => Outcome::Respond(respond),
            Action::Deny(status) => Outcome::Deny(*status),
        }
    }
}
