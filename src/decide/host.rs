//! Host patterns of a route: one host, or everything below one.
//!
//! Compared as bytes without case; a port and one final dot make no difference, on either side. Allocates nothing.

use super::mistake::{Kind, Mistake, What};
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

    /// Whether `name` is meant: a host without its port and final dot, as `host_name` gives it.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            HostPattern::Exact(host) => name.eq_ignore_ascii_case(host.as_bytes()),
            HostPattern::Under(suffix) => match name.len().checked_sub(suffix.len()) {
                // The suffix begins with a dot: with nothing before it, the first test fails.
                Some(labels) => name[0] != b'.' && name[labels..].eq_ignore_ascii_case(suffix.as_bytes()),
                None => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::asked::host_name;
    use proptest::prelude::*;

    fn host_matches(pattern: &str, authority: &str) -> bool {
        HostPattern::parse(pattern)
            .unwrap()
            .matches(host_name(authority.as_bytes()))
    }

    #[test]
    fn hosts() {
        let cases = [
            ("example.com", "example.com", true),
            ("Example.COM", "eXample.com:8080", true),
            ("example.com", "example.com.", true),
            ("example.com.", "example.com.:80", true),
            ("example.com", "www.example.com", false),
            ("example.com", "", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "A.b.Example.com:1", true),
            ("*.example.com", "aexample.com", false),
            ("*.example.com", "a.example.com.evil.test", false),
            ("192.0.2.1", "192.0.2.1:80", true),
            ("[2001:db8::1]", "[2001:DB8::1]:80", true),
            ("[2001:db8::1]", "[2001:db8::2]", false),
        ];
        for (pattern, authority, expected) in cases {
            assert_eq!(
                host_matches(pattern, authority),
                expected,
                "{pattern} {authority}"
            );
        }
    }

    #[test]
    fn wrong_hosts_say_where() {
        let cases = [
            ("", 0, What::Empty),
            ("*.", 2, What::Empty),
            ("*", 0, What::Wildcard),
            ("a.*.b", 2, What::Wildcard),
            ("*a.b", 0, What::Wildcard),
            ("a.b:80", 3, What::Port),
            ("*.a.b:80", 5, What::Port),
            ("[::1]:80", 5, What::Port),
            ("[::1", 0, What::Byte('[', Kind::Host)),
            ("a..b", 2, What::Byte('.', Kind::Host)),
            (".a", 0, What::Byte('.', Kind::Host)),
            ("http://a", 4, What::Port),
            ("a b", 1, What::Byte(' ', Kind::Host)),
            ("bücher.example", 1, What::Byte('ü', Kind::Host)),
        ];
        for (text, at, what) in cases {
            assert_eq!(HostPattern::parse(text), Err(Mistake::new(at, what)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn case_port_and_final_dot_make_no_difference(
            pattern in "(\\*\\.)?[a-c]{1,2}(\\.[a-c]){0,2}",
            host in "[a-c]{1,2}(\\.[a-c]){0,3}",
            port in prop::option::of(any::<u16>()),
            dot in prop::bool::ANY,
        ) {
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            let other = format!("{}{}{port}", host.to_uppercase(), if dot { "." } else { "" });
            prop_assert_eq!(host_matches(&pattern, &host), host_matches(&pattern.to_uppercase(), &other));
        }

        #[test]
        fn what_is_shown_is_what_was_read(pattern in "(\\*\\.)?[a-z]{1,3}(\\.[a-z]{1,3}){0,3}") {
            let parsed = HostPattern::parse(&pattern).unwrap();
            prop_assert_eq!(parsed.to_string(), pattern);
        }

        #[test]
        fn any_text_is_read_or_refused_within_it(text in "\\PC{0,12}|[a*.:\\[\\]]{0,8}") {
            if let Err(mistake) = HostPattern::parse(&text) {
                prop_assert!(text.is_char_boundary(mistake.at), "{:?}", mistake);
            }
        }
    }
}
