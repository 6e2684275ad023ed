//! The small parts of a redirect: status, cookie, and what becomes of the query.

use crate::decide::mistake::{Kind, Mistake, What};
use crate::decide::pattern::is_token;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_parts_are_refused() {
        assert_eq!(
            RedirectStatus::of(300),
            Err(Mistake::new(0, What::RedirectStatus))
        );
        for code in [301, 302, 303, 307, 308] {
            assert_eq!(RedirectStatus::of(code).map(RedirectStatus::code), Ok(code));
        }
        assert_eq!(
            Query::of(false, true),
            Err(Mistake::new(0, What::SlashAfterQuery))
        );
        for (text, at, what) in [
            ("", 0, What::Empty),
            ("=1", 0, What::Empty),
            ("a b", 1, What::Byte(' ', Kind::Cookie)),
            ("a=1;x", 3, What::Byte(';', Kind::Cookie)),
        ] {
            assert_eq!(CookieText::parse(text), Err(Mistake::new(at, what)), "{text}");
        }
    }
}
