//! What a route looks at: hosts, paths, methods and a share of the traffic.
//!
//! Patterns are checked once, when the file is read; matching compares bytes, allocates nothing and cannot fail. Paths are
//! compared as they came: nothing is decoded, no `//` is merged, no `..` resolved, because the server will not see them
//! otherwise either. A rule that *denies* a path is therefore no substitute for access control in the application.

use super::mistake::{Kind, Mistake, What};
use crate::policy::Draw;
use std::fmt;

/// Which hosts are meant. Case, a port and one final dot make no difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Exactly this host, in lower case.
    Exact(Box<str>),
    /// One or more labels before this suffix, which begins with a dot: `*.example.com` is kept as `.example.com`. The apex
    /// `example.com` itself is not meant.
    Under(Box<str>),
}

impl HostPattern {
    /// `example.com`, `*.example.com`, `192.0.2.1` or `[2001:db8::1]`.
    pub fn parse(text: &str) -> Result<HostPattern, Mistake> {
        let (name, at) = match text.strip_prefix("*.") {
            Some(rest) => (rest, 2),
            None => (text, 0),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        check_host(name).map_err(|mistake| Mistake::new(at + mistake.at, mistake.what))?;
        let lower = name.to_ascii_lowercase();
        Ok(if at == 0 {
            HostPattern::Exact(lower.into())
        } else {
            HostPattern::Under(format!(".{lower}").into())
        })
    }

    /// Whether `name` is meant: a host without its port and final dot, as [`host_name`] gives it.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            HostPattern::Exact(host) => name.eq_ignore_ascii_case(host.as_bytes()),
            HostPattern::Under(suffix) => match name.len().checked_sub(suffix.len()) {
                Some(labels) if labels > 0 => {
                    name[0] != b'.' && name[labels..].eq_ignore_ascii_case(suffix.as_bytes())
                }
                _ => false,
            },
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(host) => f.write_str(host),
            HostPattern::Under(suffix) => write!(f, "*{suffix}"),
        }
    }
}

/// The host of an authority: without its port and without a final dot, which names the same host (RFC 9110 §4.2.3 leaves
/// the comparison to the URI, RFC 3986 §3.2.2 calls the dot a matter of the resolver). Case is left as it came.
pub fn host_name(authority: &[u8]) -> &[u8] {
    let end = match authority.first() {
        Some(b'[') => authority
            .iter()
            .position(|byte| *byte == b']')
            .map_or(authority.len(), |at| at + 1),
        _ => authority
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(authority.len()),
    };
    let name = &authority[..end];
    name.strip_suffix(b".").unwrap_or(name)
}

fn check_host(name: &str) -> Result<(), Mistake> {
    if name.is_empty() {
        return Err(Mistake::new(0, What::Empty));
    }
    let (inner, shift) = match name.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, "")) => (address, 1),
            Some((address, rest)) if rest.starts_with(':') => {
                return Err(Mistake::new(address.len() + 2, What::Port));
            }
            _ => return Err(Mistake::new(0, What::Byte('[', Kind::Host))),
        },
        None => (name, 0),
    };
    let mut label_before = false;
    for (at, found) in inner.char_indices() {
        let fine = match found {
            ':' if shift == 0 => return Err(Mistake::new(at, What::Port)),
            ':' => true,
            '*' => return Err(Mistake::new(at + shift, What::Wildcard)),
            '.' => label_before,
            _ => found.is_ascii_alphanumeric() || found == '-' || found == '_',
        };
        if !fine {
            return Err(Mistake::new(at + shift, What::Byte(found, Kind::Host)));
        }
        label_before = found != '.';
    }
    Ok(())
}

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
