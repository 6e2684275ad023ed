//! What a route looks at besides the host: paths, methods and a share of the traffic.
//!
//! Patterns are checked once, when the file is read; matching compares bytes, allocates nothing and cannot fail. Paths are
//! compared as they came: nothing is decoded, no `//` is merged, no `..` resolved, because the server will not see them
//! otherwise either. A rule that *denies* a path is therefore no substitute for access control in the application.

use super::mistake::{Kind, Mistake, What};
use crate::policy::Draw;
use std::fmt;

/// Which paths are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// Exactly this path.
    Exact(Box<str>),
    /// This path and everything below it. A prefix ends on a segment border: `/v1` means `/v1` and `/v1/x`, not `/v10`;
    /// `/v1/` means `/v1/x` but not `/v1`; `/` means every path.
    Prefix(Box<str>),
}

impl PathPattern {
    /// Exactly `text`.
    pub fn exact(text: &str) -> Result<PathPattern, Mistake> {
        check_path(text).map(|()| PathPattern::Exact(text.into()))
    }

    /// `text` and everything below it.
    pub fn prefix(text: &str) -> Result<PathPattern, Mistake> {
        check_path(text).map(|()| PathPattern::Prefix(text.into()))
    }

    /// Whether `path`, as it came and without its query, is meant.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            PathPattern::Exact(exact) => path == exact.as_bytes(),
            PathPattern::Prefix(prefix) => match path.strip_prefix(prefix.as_bytes()) {
                Some(rest) => rest.is_empty() || rest[0] == b'/' || prefix.ends_with('/'),
                None => false,
            },
        }
    }

    /// The path as it was given.
    pub fn text(&self) -> &str {
        match self {
            PathPattern::Exact(text) | PathPattern::Prefix(text) => text,
        }
    }
}

fn check_path(text: &str) -> Result<(), Mistake> {
    if !text.starts_with('/') {
        return Err(Mistake::new(0, What::NoSlash));
    }
    match text
        .char_indices()
        .find(|(_, found)| !found.is_ascii_graphic() || "?#".contains(*found))
    {
        None => Ok(()),
        Some((at, '?')) => Err(Mistake::new(at, What::QueryInPath)),
        Some((at, '#')) => Err(Mistake::new(at, What::FragmentInPath)),
        Some((at, found)) => Err(Mistake::new(at, What::Byte(found, Kind::Path))),
    }
}

/// A method, compared byte by byte (RFC 9110 §9.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName(Box<str>);

impl MethodName {
    /// `GET`, or any other token. A standard method in small letters is refused: it would never match.
    pub fn parse(text: &str) -> Result<MethodName, Mistake> {
        check_token(text, Kind::Method)?;
        match STANDARD_METHODS
            .iter()
            .find(|name| name.eq_ignore_ascii_case(text))
        {
            Some(name) if *name != text => Err(Mistake::new(0, What::LowercaseMethod(name))),
            _ => Ok(MethodName(text.into())),
        }
    }

    /// Whether `method` is this one.
    pub fn matches(&self, method: &[u8]) -> bool {
        method == self.0.as_bytes()
    }

    /// The method as it was given.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// A token (RFC 9110 §5.6.2): names of fields and methods.
pub(super) fn check_token(text: &str, kind: Kind) -> Result<(), Mistake> {
    if text.is_empty() {
        return Err(Mistake::new(0, What::Empty));
    }
    match text.char_indices().find(|(_, found)| !is_token(*found)) {
        Some((at, found)) => Err(Mistake::new(at, What::Byte(found, kind))),
        None => Ok(()),
    }
}

pub(super) fn is_token(found: char) -> bool {
    found.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(found)
}

/// A part of the requests that would match otherwise, in millionths. Every rule draws for itself, once per request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// All requests.
    pub const WHOLE: u32 = 1_000_000;

    /// 0…1,000,000 millionths.
    pub fn millionths(millionths: u32) -> Result<Share, Mistake> {
        if millionths <= Share::WHOLE {
            Ok(Share(millionths))
        } else {
            Err(Mistake::new(0, What::Share))
        }
    }

    /// 0…100 percent, in steps of 0.0001.
    pub fn percent(percent: f64) -> Result<Share, Mistake> {
        let millionths = (percent * 10_000.0).round();
        let exact = (millionths / 10_000.0 - percent).abs() < 1e-9;
        if exact && (0.0..=1_000_000.0).contains(&millionths) {
            return Ok(Share(millionths as u32)); // whole and in range by the line above
        }
        Err(Mistake::new(0, What::Share))
    }

    /// In millionths.
    pub fn in_millionths(self) -> u32 {
        self.0
    }

    /// Whether this request belongs to the share. Draws unless the answer is certain.
    pub fn takes(self, draw: &mut impl Draw) -> bool {
        match self.0 {
            0 => false,
            Share::WHOLE => true,
            millionths => draw.draw(Share::WHOLE) < millionths,
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 10_000.0)
    }
}

const STANDARD_METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths() {
        let (exact, prefix) = (PathPattern::exact, PathPattern::prefix);
        let cases = [
            (exact("/v1"), "/v1", true),
            (exact("/v1"), "/v1/", false),
            (exact("/v1"), "/V1", false),
            (prefix("/v1"), "/v1", true),
            (prefix("/v1"), "/v1/", true),
            (prefix("/v1"), "/v1/x", true),
            (prefix("/v1"), "/v10", false),
            (prefix("/v1"), "/v1;p", false),
            (prefix("/v1"), "/V1/x", false),
            (prefix("/v1/"), "/v1", false),
            (prefix("/v1/"), "/v1/x", true),
            (prefix("/"), "/anything", true),
            (prefix("/"), "//", true),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(
                pattern.as_ref().unwrap().matches(path.as_bytes()),
                expected,
                "{pattern:?} {path}"
            );
        }
    }

    #[test]
    fn wrong_paths_say_where() {
        let cases = [
            ("", 0, What::NoSlash),
            ("v1", 0, What::NoSlash),
            ("/a?b", 2, What::QueryInPath),
            ("/a#b", 2, What::FragmentInPath),
            ("/a b", 2, What::Byte(' ', Kind::Path)),
            ("/é", 1, What::Byte('é', Kind::Path)),
        ];
        for (text, at, what) in cases {
            assert_eq!(PathPattern::prefix(text), Err(Mistake::new(at, what)), "{text}");
        }
    }

    #[test]
    fn methods_are_exact() {
        assert!(MethodName::parse("GET").unwrap().matches(b"GET"));
        assert!(!MethodName::parse("GET").unwrap().matches(b"get"));
        assert!(MethodName::parse("purge").unwrap().matches(b"purge"));
        assert_eq!(
            MethodName::parse("Get"),
            Err(Mistake::new(0, What::LowercaseMethod("GET")))
        );
        assert_eq!(
            MethodName::parse("GE T"),
            Err(Mistake::new(2, What::Byte(' ', Kind::Method)))
        );
    }

    #[test]
    fn shares_are_percents_in_millionths() {
        let cases = [
            (0.0, Some((0, "0%"))),
            (0.0001, Some((1, "0.0001%"))),
            (12.5, Some((125_000, "12.5%"))),
            (33.3333, Some((333_333, "33.3333%"))),
            (100.0, Some((1_000_000, "100%"))),
            (0.00001, None),
            (100.1, None),
            (-1.0, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ];
        for (percent, expected) in cases {
            let share = Share::percent(percent)
                .ok()
                .map(|share| (share.in_millionths(), share.to_string()));
            assert_eq!(
                share,
                expected.map(|(parts, text)| (parts, text.to_owned())),
                "{percent}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_within_it(text in any::<String>()) {
            for mistake in [
                PathPattern::prefix(&text).err(),
                MethodName::parse(&text).err(),
            ].into_iter().flatten() {
                prop_assert!(text.is_char_boundary(mistake.at), "{:?}", mistake);
            }
        }
    }
}
