//! Redirects: where a client is sent instead of to a server (RD-1 to RD-6).
//!
//! A redirect renders the header lines of its answer; status line, `Content-Length: 0` and the connection's own fields are
//! written by whoever sends it (RD-5). A request cannot steer the client to another site with a path such as
//! `//elsewhere.example`: where the target begins with the request's path, its leading slashes are reduced to one.

use super::asked::Asked;
use super::template::{ControlCharacter, Template, refuse_control};

mod parts;

pub use parts::{Cookie, CookieText, Query, RedirectStatus};

/// One redirect rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Where to.
    pub target: Target,
    /// With which status.
    pub status: RedirectStatus,
    /// With which cookie set or cleared.
    pub cookie: Option<Cookie>,
}

/// How the `Location` is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The template (RD-1).
    Location {
        /// The whole `Location`.
        to: Template,
        /// Whether the request's query is appended.
        keep_query: bool,
        /// Whether the rule is skipped when the template renders to nothing.
        ignore_empty: bool,
    },
    /// The template, then the request's path and query (RD-2). The literal `/` adds nothing.
    Prefix {
        /// What stands before the path.
        to: Template,
        /// What becomes of the query.
        query: Query,
    },
    /// The template, `://`, the request's host, path and query (RD-3).
    Scheme {
        /// The scheme, as `https`.
        to: Template,
        /// What becomes of the query.
        query: Query,
    },
}

impl Redirect {
    /// Whether the rule is skipped for this request (`ignore-empty`, RD-1).
    pub fn is_skipped(&self, asked: &Asked<'_>) -> bool {
        match &self.target {
            Target::Location {
                to,
                ignore_empty: true,
                ..
            } => to.is_empty_for(asked),
            _ => false,
        }
    }

    /// Appends `Location`, `Cache-Control` and `Set-Cookie` lines. On an error (RD-6; the answer is 400) nothing was appended.
    pub fn render(&self, asked: &Asked<'_>, lines: &mut Vec<u8>) -> Result<(), ControlCharacter> {
        let before = lines.len();
        lines.extend_from_slice(b"Location: ");
        let start = lines.len();
        if let Err(error) = self.render_location(asked, lines) {
            lines.truncate(before);
            return Err(error);
        }
        self.stay_here(start, lines);
        lines.extend_from_slice(b"\r\n");
        if self.status.is_temporary() {
            lines.extend_from_slice(b"Cache-Control: no-cache\r\n");
        }
        self.render_cookie(lines);
        Ok(())
    }

    fn render_location(&self, asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), ControlCharacter> {
        let start = out.len();
        match &self.target {
            Target::Location { to, keep_query, .. } => {
                to.render(asked, out)?;
                if *keep_query {
                    append_query(asked, start, out);
                }
            }
            Target::Prefix { to, query } => {
                if to.source() != "/" {
                    to.render(asked, out)?;
                }
                append_rest(asked, *query, out);
            }
            Target::Scheme { to, query } => {
                to.render(asked, out)?;
                out.extend_from_slice(b"://");
                out.extend_from_slice(asked.host);
                append_rest(asked, *query, out);
            }
        }
        refuse_control(out, start)
    }

    /// Reduces `//elsewhere` and `/\elsewhere`, which name another site, to one slash, unless the rule itself says so.
    fn stay_here(&self, start: usize, out: &mut Vec<u8>) {
        let (Target::Location { to, .. } | Target::Prefix { to, .. } | Target::Scheme { to, .. }) =
            &self.target;
        let slashes = out[start..]
            .iter()
            .take_while(|byte| matches!(byte, b'/' | b'\\'))
            .count();
        if slashes > 1 && !to.leading_text().starts_with("//") {
            out.drain(start + 1..start + slashes);
        }
    }

    fn render_cookie(&self, out: &mut Vec<u8>) {
        let (text, end) = match &self.cookie {
            None => return,
            Some(Cookie::Set(text)) => (text, "; path=/;\r\n"),
            Some(Cookie::Clear(text)) => (text, "; path=/; Max-Age=0;\r\n"),
        };
        for part in ["Set-Cookie: ", text.text(), end] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

/// `keep-query` (RD-1): behind `?`, or behind `&` if there is a query already, or at once behind a final `?`.
fn append_query(asked: &Asked<'_>, start: usize, out: &mut Vec<u8>) {
    let Some(query) = asked.query.filter(|query| !query.is_empty()) else {
        return;
    };
    let location = &out[start..];
    if !location.contains(&b'?') {
        out.push(b'?');
    } else if !location.ends_with(b"?") {
        out.push(b'&');
    }
    out.extend_from_slice(query);
}

/// Path and query of the request (RD-2, RD-3).
fn append_rest(asked: &Asked<'_>, query: Query, out: &mut Vec<u8>) {
    out.extend_from_slice(asked.path());
    match (query, asked.query) {
        (Query::Keep, Some(text)) => {
            out.push(b'?');
            out.extend_from_slice(text);
        }
        (Query::DropAndSlash, _) if !out.ends_with(b"/") => out.push(b'/'),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked<'a>(host: &'a str, path: &'a str, query: Option<&'a str>) -> Asked<'a> {
        let query = query.map(str::as_bytes);
        Asked {
            method: b"GET",
            host: host.as_bytes(),
            path: path.as_bytes(),
            query,
            client: None,
            scheme: "http",
        }
    }

    fn location(to: &str, keep_query: bool) -> Target {
        Target::Location {
            to: Template::parse(to).unwrap(),
            keep_query,
            ignore_empty: false,
        }
    }

    fn prefix(to: &str, query: Query) -> Target {
        Target::Prefix {
            to: Template::parse(to).unwrap(),
            query,
        }
    }

    fn scheme(to: &str, query: Query) -> Target {
        Target::Scheme {
            to: Template::parse(to).unwrap(),
            query,
        }
    }

    fn lines(target: Target, status: u16, cookie: Option<Cookie>, asked: &Asked<'_>) -> String {
        let redirect = Redirect {
            target,
            status: RedirectStatus::of(status).unwrap(),
            cookie,
        };
        let mut lines = Vec::new();
        redirect.render(asked, &mut lines).unwrap();
        String::from_utf8(lines).unwrap()
    }

    /// RD-1, RD-2, RD-3.
    #[test]
    fn locations() {
        let with = asked("h.example:81", "/p/q", Some("x=1"));
        let without = asked("h.example", "/p", None);
        let cases = [
            (
                location("https://{host}{path}", false),
                with,
                "https://h.example/p/q",
            ),
            (location("/new", true), with, "/new?x=1"),
            (location("/new?", true), with, "/new?x=1"),
            (location("/new?y", true), with, "/new?y&x=1"),
            (location("/new", true), without, "/new"),
            (location("/new", true), asked("h", "/p", Some("")), "/new"),
            (prefix("/new", Query::Keep), with, "/new/p/q?x=1"),
            (prefix("/new", Query::Drop), with, "/new/p/q"),
            (
                prefix("https://o.example", Query::DropAndSlash),
                with,
                "https://o.example/p/q/",
            ),
            (prefix("/", Query::Keep), with, "/p/q?x=1"),
            (
                prefix("/", Query::DropAndSlash),
                asked("h", "/p/", Some("x")),
                "/p/",
            ),
            (scheme("https", Query::Keep), with, "https://h.example:81/p/q?x=1"),
            (
                scheme("https", Query::DropAndSlash),
                without,
                "https://h.example/p/",
            ),
            (scheme("https", Query::Keep), asked("", "", None), "https:///"),
        ];
        for (target, request, expected) in cases {
            let shown = format!("{target:?} {request:?}");
            assert_eq!(
                lines(target, 301, None, &request),
                format!("Location: {expected}\r\n"),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_path_cannot_lead_to_another_site() {
        for path in [
            "//evil.example/x",
            "/\\evil.example/x",
            "///evil.example/x",
            "/\\/evil.example/x",
        ] {
            let request = asked("h", path, None);
            for target in [
                prefix("/", Query::Keep),
                prefix("", Query::Keep),
                location("{path}", false),
            ] {
                assert_eq!(
                    lines(target, 301, None, &request),
                    "Location: /evil.example/x\r\n",
                    "{path}"
                );
            }
        }
        let meant = location("//cdn.example{path}", false);
        assert_eq!(
            lines(meant, 301, None, &asked("h", "/x", None)),
            "Location: //cdn.example/x\r\n"
        );
    }

    /// RD-4, RD-5.
    #[test]
    fn temporary_redirects_are_not_cached_and_cookies_follow() {
        let request = asked("h", "/p", None);
        let cookie = |text| CookieText::parse(text).unwrap();
        let cases = [
            (
                301,
                Some(Cookie::Set(cookie("A=1"))),
                "Set-Cookie: A=1; path=/;\r\n",
            ),
            (
                308,
                Some(Cookie::Clear(cookie("A="))),
                "Set-Cookie: A=; path=/; Max-Age=0;\r\n",
            ),
            (302, None, "Cache-Control: no-cache\r\n"),
            (303, None, "Cache-Control: no-cache\r\n"),
            (
                307,
                Some(Cookie::Set(cookie("A"))),
                "Cache-Control: no-cache\r\nSet-Cookie: A; path=/;\r\n",
            ),
        ];
        for (status, cookie, rest) in cases {
            let shown = lines(location("/n", false), status, cookie, &request);
            assert_eq!(shown, format!("Location: /n\r\n{rest}"), "{status}");
        }
    }

    proptest! {
        /// RD-6, and never another site, whatever bytes the request holds.
        #[test]
        fn one_location_line_or_nothing(
            path in prop::collection::vec(prop::sample::select(&b"/\\a.\r\n\0?"[..]), 0..8),
            query in prop::option::of(prop::collection::vec(prop::sample::select(&b"a/\n&"[..]), 0..3)),
            kind in 0..3,
        ) {
            let target = match kind {
                0 => location("{path}", true),
                1 => prefix("/", Query::Keep),
                _ => prefix("", Query::DropAndSlash),
            };
            let redirect = Redirect { target, status: RedirectStatus::MovedPermanently, cookie: None };
            let request = Asked { path: &path, query: query.as_deref(), ..asked("h", "/", None) };
            let mut lines = b"X: y\r\n".to_vec();
            let result = redirect.render(&request, &mut lines);
            let rendered = &lines[b"X: y\r\n".len()..];
            if result.is_err() {
                prop_assert!(rendered.is_empty());
                return Ok(());
            }
            let value = rendered.strip_prefix(b"Location: ").and_then(|rest| rest.strip_suffix(b"\r\n")).unwrap();
            prop_assert!(!value.iter().any(u8::is_ascii_control));
            prop_assert!(value[0] == b'/' && !matches!(value.get(1), Some(b'/' | b'\\')), "{:?}", value);
        }
    }
}
