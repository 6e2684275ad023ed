//! Who answers a request: the rules of a listener, in order; the first that matches wins.
//!
//! A rule matches when each of its conditions does: one of its hosts, one of its paths, one of its methods, and then its share
//! of the traffic, which is drawn last and at most once per rule and request. A redirect that would lead nowhere
//! (`ignore-empty`, RD-1) counts as not matching. Without a match the default backend answers; without one there is no route,
//! and the client gets [`NO_ROUTE_STATUS`]. Choosing allocates nothing: a [`Choice`] borrows from the table.

use super::edit::Edits;
use crate::policy::Draw;

pub use super::action::{Action, BackendRef, NO_ROUTE_STATUS, Outcome, Respond};
pub use super::asked::{Asked, host_name};
pub use super::host::HostPattern;
pub use super::pattern::{MethodName, PathPattern, Share};
pub use crate::policy::Priority;

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
    /// Where its requests stand in a queue.
    pub priority: Priority,
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

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'t> {
    /// The rule that matched, by its place in [`RouteTable::routes`]; `None` for the default and for no route.
    pub route: Option<u16>,
    /// What happens.
    pub outcome: Outcome<'t>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::redirect::{Redirect, RedirectStatus, Target};
    use crate::decide::template::Template;
    use proptest::prelude::*;

    /// Gives these numbers in turn, and panics when asked once too often.
    struct Drawn(Vec<u32>);

    impl Draw for Drawn {
        fn draw(&mut self, bound: u32) -> u32 {
            let drawn = self.0.remove(0);
            assert!(drawn < bound);
            drawn
        }
    }

    fn asked<'a>(method: &'a str, host: &'a str, path: &'a str) -> Asked<'a> {
        let (method, host, path) = (method.as_bytes(), host.as_bytes(), path.as_bytes());
        Asked {
            method,
            host,
            path,
            query: None,
            client: None,
            scheme: "http",
        }
    }

    fn to(backend: u16, matcher: Matcher) -> Route {
        doing(Action::Backend(BackendRef(backend)), matcher)
    }

    fn doing(action: Action, matcher: Matcher) -> Route {
        Route {
            matcher,
            action,
            request_edits: Edits::default(),
            response_edits: Edits::default(),
            priority: Priority::default(),
        }
    }

    fn matcher(host: &str, prefix: &str, method: &str) -> Matcher {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Matcher {
            hosts: some(host)
                .iter()
                .map(|text| HostPattern::parse(text).unwrap())
                .collect(),
            paths: some(prefix)
                .iter()
                .map(|text| PathPattern::prefix(text).unwrap())
                .collect(),
            methods: some(method)
                .iter()
                .map(|text| MethodName::parse(text).unwrap())
                .collect(),
            share: None,
        }
    }

    fn shared(percent: f64) -> Matcher {
        Matcher {
            share: Some(Share::percent(percent).unwrap()),
            ..Matcher::default()
        }
    }

    #[test]
    fn the_first_rule_whose_conditions_all_hold_wins() {
        let table = RouteTable {
            routes: vec![
                to(0, matcher("api.example.com", "/v1", "")),
                to(1, matcher("*.example.com", "", "POST")),
                doing(Action::Deny(403), matcher("", "/secret", "")),
                to(2, matcher("api.example.com", "", "")),
            ],
            default: Some(BackendRef(9)),
        };
        let cases = [
            (
                asked("GET", "API.example.com:80", "/v1/x"),
                Some(0),
                Outcome::Backend(BackendRef(0)),
            ),
            (
                asked("POST", "api.example.com", "/v1"),
                Some(0),
                Outcome::Backend(BackendRef(0)),
            ),
            (
                asked("POST", "api.example.com", "/v10"),
                Some(1),
                Outcome::Backend(BackendRef(1)),
            ),
            (
                asked("GET", "api.example.com.", "/secret"),
                Some(2),
                Outcome::Deny(403),
            ),
            (
                asked("GET", "api.example.com", "/"),
                Some(3),
                Outcome::Backend(BackendRef(2)),
            ),
            (
                asked("POST", "example.com", "/"),
                None,
                Outcome::Backend(BackendRef(9)),
            ),
            (asked("GET", "", "/v1"), None, Outcome::Backend(BackendRef(9))),
        ];
        for (request, route, outcome) in cases {
            assert_eq!(
                table.choose(&request, &mut Drawn(vec![])),
                Choice { route, outcome },
                "{request:?}"
            );
        }
    }

    #[test]
    fn without_match_and_default_there_is_no_route() {
        let table = RouteTable::default();
        let choice = table.choose(&asked("GET", "a", "/"), &mut Drawn(vec![]));
        assert_eq!(
            choice,
            Choice {
                route: None,
                outcome: Outcome::NoRoute
            }
        );
    }

    #[test]
    fn a_target_without_path_is_the_root() {
        let table = RouteTable {
            routes: vec![to(0, matcher("", "/", ""))],
            default: None,
        };
        for path in ["", "*", "/"] {
            assert_eq!(
                table
                    .choose(&asked("OPTIONS", "a", path), &mut Drawn(vec![]))
                    .route,
                Some(0),
                "{path:?}"
            );
        }
    }

    #[test]
    fn each_share_is_drawn_once_and_only_when_all_else_holds() {
        let of_posts = Matcher {
            share: Share::millionths(500_000).ok(),
            ..matcher("", "", "POST")
        };
        let table = RouteTable {
            routes: vec![to(0, of_posts), to(1, shared(20.0)), to(2, shared(20.0))],
            default: None,
        };
        let cases: [(&str, &[u32], Option<u16>); 5] = [
            ("GET", &[199_999], Some(1)),
            ("GET", &[200_000, 199_999], Some(2)),
            ("GET", &[200_000, 200_000], None),
            ("POST", &[499_999], Some(0)),
            ("POST", &[500_000, 999_999, 0], Some(2)),
        ];
        for (method, numbers, route) in cases {
            let mut draw = Drawn(numbers.to_vec());
            assert_eq!(
                table.choose(&asked(method, "a", "/"), &mut draw).route,
                route,
                "{method} {numbers:?}"
            );
            assert!(draw.0.is_empty(), "{method} {numbers:?}: drawn too seldom");
        }
    }

    #[test]
    fn nothing_and_everything_are_certain() {
        let table = RouteTable {
            routes: vec![to(0, shared(0.0)), to(1, shared(100.0))],
            default: None,
        };
        assert_eq!(
            table.choose(&asked("GET", "a", "/"), &mut Drawn(vec![])).route,
            Some(1)
        );
    }

    #[test]
    fn a_redirect_that_leads_nowhere_is_skipped_before_its_share_is_drawn() {
        let target = Target::Location {
            to: Template::parse("{query}").unwrap(),
            keep_query: false,
            ignore_empty: true,
        };
        let redirect = Redirect {
            target,
            status: RedirectStatus::Found,
            cookie: None,
        };
        let table = RouteTable {
            routes: vec![doing(Action::Redirect(redirect), shared(50.0))],
            default: Some(BackendRef(1)),
        };
        let empty = asked("GET", "a", "/");
        assert_eq!(
            table.choose(&empty, &mut Drawn(vec![])).outcome,
            Outcome::Backend(BackendRef(1))
        );
        let with_query = Asked {
            query: Some(b"/there"),
            ..empty
        };
        assert_eq!(table.choose(&with_query, &mut Drawn(vec![0])).route, Some(0));
    }

    proptest! {
        /// Against the sentence itself: the first rule of which host, path and method hold.
        #[test]
        fn choosing_agrees_with_its_sentence(
            rules in prop::collection::vec(("(|a|b|\\*\\.a)", "(|/|/a|/a/|/a/b)", "(|GET|PUT)"), 0..6),
            host in "(|a|b|x\\.a|A|x\\.A)(:80)?",
            path in "/(a|b|ab)?/?b?",
            method in "(GET|PUT|X)",
        ) {
            let routes = rules.iter().map(|(host, path, method)| to(0, matcher(host, path, method))).collect();
            let name = host.trim_end_matches(":80").to_lowercase();
            let below = |prefix: &str| path == prefix || path.starts_with(&format!("{}/", prefix.trim_end_matches('/')));
            let expected = rules.iter().position(|(pattern, prefix, only)| {
                let host_holds = match pattern.strip_prefix('*') {
                    Some(suffix) => name.ends_with(suffix) && name != suffix,
                    None => pattern.is_empty() || *pattern == name,
                };
                host_holds && (prefix.is_empty() || below(prefix)) && (only.is_empty() || *only == method)
            });
            let table = RouteTable { routes, default: None };
            let chosen = table.choose(&asked(&method, &host, &path), &mut Drawn(vec![])).route;
            prop_assert_eq!(chosen.map(usize::from), expected);
        }
    }
}
