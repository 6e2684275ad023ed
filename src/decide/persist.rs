//! Persistence by a cookie of ours: the first response names its server, and the client's next requests go there.
//!
//! ```text
//! request  ─ no cookie ──────────→ balanced          response ─→ Set-Cookie: NAME=value of its server; …
//!          ─ names nobody, or one
//!            in maintenance ─────→ balanced, counted          ─→ the same
//!          ─ names a server ─────→ that one, tied to it       ─→ nothing
//! ```
//!
//! The value is the server's own and says nothing of the client, so that nothing is remembered here: any process with
//! the same names understands it. The cookie comes before the algorithm and before a policy that picks (LB-52); a server
//! that drains or has weight 0 keeps the clients that it has (AC-42). A request that had to leave its server gets
//! the cookie of the one that answered.

use crate::http1::{RequestHead, cookie};
use crate::policy::ServerIndex;
use xxhash_rust::xxh3::xxh3_64;

/// The cookie of one backend, in one generation.
#[derive(Clone, Debug)]
pub struct Persistence {
    name: Box<str>,
    /// By server, in the order of the table.
    values: Box<[Box<[u8]>]>,
    /// Servers in the order of their values.
    sorted: Box<[ServerIndex]>,
    /// What follows the value in the field.
    attributes: Box<[u8]>,
    /// Whether a response that sets it is kept out of shared caches.
    private: bool,
}

/// How a client is to treat the cookie.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// `HttpOnly`: scripts do not see it.
    pub http_only: bool,
    /// `Secure`: it is sent over TLS only.
    pub secure: bool,
    /// `SameSite`.
    pub same_site: SameSite,
    /// `Path`.
    pub path: String,
    /// `Domain`; without one, the host that was asked.
    pub domain: Option<String>,
    /// `Max-Age` in seconds; without one, as long as the client's session lasts.
    pub max_age: Option<u64>,
    /// Whether a response that sets it says `Cache-Control: private`.
    pub private: bool,
}

/// Whether requests that come from other sites carry the cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameSite {
    /// Where they open a page.
    #[default]
    Lax,
    /// Never.
    Strict,
    /// Always; needs `Secure`.
    None,
}

impl SameSite {
    /// Its word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            SameSite::Lax => "lax",
            SameSite::Strict => "strict",
            SameSite::None => "none",
        }
    }
}

/// What the cookie of a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// There is none.
    Nothing,
    /// It names no server of the backend.
    Unknown,
    /// It names this one.
    Server(ServerIndex),
}

impl Persistence {
    /// The cookie of that name, a token. `values` are those of the servers in the order of the table, all different.
    pub fn new(name: &str, values: Vec<Vec<u8>>, attributes: &Attributes) -> Persistence {
        let mut sorted: Vec<_> = (0..values.len()).map(|at| ServerIndex(at as u16)).collect();
        sorted.sort_unstable_by_key(|server| &values[server.at()]);
        Persistence {
            name: name.into(),
            values: values.into_iter().map(Vec::into_boxed_slice).collect(),
            sorted: sorted.into(),
            attributes: attributes.render(),
            private: attributes.private,
        }
    }

    /// What a request asks for. `bytes` are those that `head` was parsed from.
    pub fn read(&self, head: &RequestHead, bytes: &[u8]) -> Named {
        let mut lines = head.values(bytes, b"cookie");
        match lines.find_map(|line| cookie(line, &self.name)) {
            None => Named::Nothing,
            Some(value) => self.find(value).map_or(Named::Unknown, Named::Server),
        }
    }

    fn find(&self, value: &[u8]) -> Option<ServerIndex> {
        let of = |server: &ServerIndex| &*self.values[server.at()];
        let at = self
            .sorted
            .binary_search_by(|server| of(server).cmp(value))
            .ok()?;
        Some(self.sorted[at])
    }

    /// Appends the lines that bind a client to a server.
    pub fn render(&self, server: ServerIndex, lines: &mut Vec<u8>) {
        lines.extend_from_slice(b"Set-Cookie: ");
        lines.extend_from_slice(self.name.as_bytes());
        lines.push(b'=');
        lines.extend_from_slice(&self.values[server.at()]);
        lines.extend_from_slice(&self.attributes);
        lines.extend_from_slice(b"\r\n");
        if self.private {
            lines.extend_from_slice(b"Cache-Control: private\r\n");
        }
    }
}

impl Attributes {
    /// `; Path=/; HttpOnly; …`, ready to stand behind the value.
    fn render(&self) -> Box<[u8]> {
        let mut text = format!("; Path={}", self.path);
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                text.push_str(&format!("; {name}={value}"));
            }
        };
        add("Domain", self.domain.clone());
        add("Max-Age", self.max_age.map(|seconds| seconds.to_string()));
        add(
            "SameSite",
            Some(match self.same_site {
                SameSite::Lax => "Lax".to_owned(),
                SameSite::Strict => "Strict".to_owned(),
                SameSite::None => "None".to_owned(),
            }),
        );
        if self.http_only {
            text.push_str("; HttpOnly");
        }
        if self.secure {
            text.push_str("; Secure");
        }
        text.into_bytes().into()
    }
}

/// The value of a server that was given none: a hash of its name, without a key, so that any process makes the same.
pub fn value_of(name: &str) -> String {
    format!("{:016x}", xxh3_64(name.as_bytes()))
}

/// Whether that can be the value of a cookie (RFC 6265 §4.1.1), and is not empty.
pub fn is_value(text: &str) -> bool {
    let octet = |byte: u8| matches!(byte, 0x21 | 0x23..=0x2B | 0x2D..=0x3A | 0x3C..=0x5B | 0x5D..=0x7E);
    !text.is_empty() && text.bytes().all(octet)
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use crate::http1::{Limits, parse_request};

    const LIMITS: Limits = Limits {
        head_max: 4096,
        request_line_max: 1024,
        headers_max: 16,
    };

    fn persistence(attributes: &Attributes) -> Persistence {
        let values = ["b", "c", "a"].map(|value| value.as_bytes().to_vec());
        Persistence::new("srv", values.into(), attributes)
    }

    fn read(cookies: &str) -> Named {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{cookies}\r\n");
        let mut head = RequestHead::default();
        parse_request(request.as_bytes(), &LIMITS, &mut head).unwrap();
        persistence(&Attributes::default()).read(&head, request.as_bytes())
    }

    /// LB-52.
    #[test]
    fn a_cookie_names_a_server_or_nobody() {
        let vectors = [
            ("", Named::Nothing),
            ("Cookie: other=a; srv2=b\r\n", Named::Nothing),
            ("Cookie: x=1; srv=b\r\n", Named::Server(ServerIndex(0))),
            (
                "Cookie: x=1\r\ncookie: srv=c;y\r\n",
                Named::Server(ServerIndex(1)),
            ),
            ("Cookie: srv=a\r\n", Named::Server(ServerIndex(2))),
            ("Cookie: srv=ab\r\n", Named::Unknown),
            ("Cookie: srv=\r\n", Named::Unknown),
            ("Cookie: SRV=a\r\n", Named::Nothing),
        ];
        for (cookies, named) in vectors {
            assert_eq!(read(cookies), named, "{cookies:?}");
        }
    }

    fn line(attributes: &Attributes) -> String {
        let mut lines = Vec::new();
        persistence(attributes).render(ServerIndex(1), &mut lines);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn what_binds_a_client() {
        let plain = Attributes {
            path: "/".into(),
            http_only: true,
            ..Attributes::default()
        };
        assert_eq!(
            line(&plain),
            "Set-Cookie: srv=c; Path=/; SameSite=Lax; HttpOnly\r\n"
        );
        let all = Attributes {
            http_only: true,
            secure: true,
            same_site: SameSite::None,
            path: "/app".into(),
            domain: Some("app.test".into()),
            max_age: Some(60),
            private: true,
        };
        assert_eq!(
            line(&all),
            "Set-Cookie: srv=c; Path=/app; Domain=app.test; Max-Age=60; SameSite=None; HttpOnly; Secure\r\n\
             Cache-Control: private\r\n"
        );
    }

    #[test]
    fn values_are_cookie_octets() {
        assert!(is_value("a-1.b") && is_value(&value_of("10.0.0.1:80")));
        for wrong in ["", "a b", "a;b", "a,b", "\"a\"", "ä", "a\\b"] {
            assert!(!is_value(wrong), "{wrong:?}");
        }
        assert_eq!(value_of("a"), value_of("a"));
        assert_ne!(value_of("a"), value_of("b"));
    }
}
