//! Redirects: where a client is sent instead of to a server (RD-1 to RD-6).
//!
//! A redirect renders the header lines of its answer; status line, `Content-Length: 0` and the connection's own fields are
//! written by whoever sends it (RD-5). A request cannot steer the client to another site with a path such as
//! `//elsewhere.example`: where the target begins with the request's path, its leading slashes are reduced to one.

use super::mistake::{Kind, Mistake, What};
use super::pattern::is_token;
use super::route::Asked;
use super::template::{ControlCharacter, Template, refuse_control};

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

/// What becomes of the request's query in a prefix or scheme redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// It stays.
    Keep,
    /// It is left out (`drop-query`).
    Drop,
    /// It is left out, and the path ends with a slash (`drop-query`, `append-slash`).
    DropAndSlash,
}

impl Query {
    /// From the two options; `append-slash` alone would put its slash into the query.
    pub fn of(drop_query: bool, append_slash: bool) -> Result<Query, Mistake> {
        match (drop_query, append_slash) {
            (false, false) => Ok(Query::Keep),
            (true, false) => Ok(Query::Drop),
            (true, true) => Ok(Query::DropAndSlash),
            (false, true) => Err(Mistake::new(0, What::SlashAfterQuery)),
        }
    }
}

/// The status of a redirect (RD-4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectStatus {
    /// 301 Moved Permanently.
    MovedPermanently,
    /// 302 Found, the default.
    #[default]
    Found,
    /// 303 See Other.
    SeeOther,
    /// 307 Temporary Redirect.
    TemporaryRedirect,
    /// 308 Permanent Redirect.
    PermanentRedirect,
}

impl RedirectStatus {
    /// 301, 302, 303, 307 or 308.
    pub fn of(code: u16) -> Result<RedirectStatus, Mistake> {
        Ok(match code {
            301 => RedirectStatus::MovedPermanently,
            302 => RedirectStatus::Found,
            303 => RedirectStatus::SeeOther,
            307 => RedirectStatus::TemporaryRedirect,
            308 => RedirectStatus::PermanentRedirect,
            _ => return Err(Mistake::new(0, What::RedirectStatus)),
        })
    }

    /// The number on the status line.
    pub fn code(self) -> u16 {
        match self {
            RedirectStatus::MovedPermanently => 301,
            RedirectStatus::Found => 302,
            RedirectStatus::SeeOther => 303,
            RedirectStatus::TemporaryRedirect => 307,
            RedirectStatus::PermanentRedirect => 308,
        }
    }

    /// Whether the answer says `Cache-Control: no-cache` (RD-5): the temporary ones.
    pub fn is_temporary(self) -> bool {
        matches!(
            self,
            RedirectStatus::Found | RedirectStatus::SeeOther | RedirectStatus::TemporaryRedirect
        )
    }
}

/// The cookie of a redirect (RD-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cookie {
    /// `Set-Cookie: NAME=value; path=/;`
    Set(CookieText),
    /// The same with `Max-Age=0`.
    Clear(CookieText),
}

/// `NAME` or `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieText(Box<str>);

impl CookieText {
    /// A token, then perhaps `=` and printable ASCII but space, quotation mark, comma, semicolon, backslash (RFC 6265 §4.1.1).
    pub fn parse(text: &str) -> Result<CookieText, Mistake> {
        let name_end = text.find('=').unwrap_or(text.len());
        if name_end == 0 {
            return Err(Mistake::new(0, What::Empty));
        }
        let wrong = text.char_indices().find(|(at, found)| {
            let fine = if *at < name_end {
                is_token(*found)
            } else {
                found.is_ascii_graphic()
            };
            !fine || "\",;\\".contains(*found)
        });
        match wrong {
            Some((at, found)) => Err(Mistake::new(at, What::Byte(found, Kind::Cookie))),
            None => Ok(CookieText(text.into())),
        }
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.0
    }
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
