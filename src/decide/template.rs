//! Text with holes that a request fills: values of header edits and targets of redirects.
//!
//! `{host}` (without port), `{authority}` (with port), `{path}`, `{query}` (without `?`), `{client-ip}`, `{method}` and
//! `{scheme}`; a literal brace is doubled. Parsed once, rendered by appending to a buffer of the worker. What was rendered
//! never holds a control character (RD-6): a literal one is refused when the template is made, one that a request brings is
//! refused when it is rendered, and then the buffer is as it was.

use super::asked::Asked;
use super::mistake::{Mistake, What};
use std::fmt;

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: Box<str>,
    pieces: Box<[Piece]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    Hole(Placeholder),
}

/// What a request can fill in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// The host without its port, as the client wrote it; empty if there was none.
    Host,
    /// The host with the port, if the client sent one.
    Authority,
    /// The path as it came.
    Path,
    /// The query without its `?`.
    Query,
    /// The client's address; empty for a client on a Unix socket.
    ClientIp,
    /// The method.
    Method,
    /// `http` or `https`: how the client came to us.
    Scheme,
}

/// A value that the request would have smuggled a control character into (RD-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlCharacter;

impl Template {
    /// Reads a template; a [`Mistake`] points at the byte.
    pub fn parse(text: &str) -> Result<Template, Mistake> {
        if let Some(at) = text.bytes().position(|byte| byte.is_ascii_control()) {
            return Err(Mistake::new(at, What::ControlCharacter));
        }
        if text.starts_with(' ') || text.ends_with(' ') {
            let at = if text.starts_with(' ') {
                0
            } else {
                text.trim_end_matches(' ').len()
            };
            return Err(Mistake::new(at, What::OuterSpace));
        }
        Ok(Template {
            source: text.into(),
            pieces: pieces(text)?.into(),
        })
    }

    /// Appends the text for this request. On an error nothing was appended.
    pub fn render(&self, asked: &Asked<'_>, out: &mut Vec<u8>) -> Result<(), ControlCharacter> {
        let start = out.len();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Hole(hole) => hole.render(asked, out),
            }
        }
        refuse_control(out, start)
    }

    /// Whether [`Template::render`] would append nothing for this request.
    pub fn is_empty_for(&self, asked: &Asked<'_>) -> bool {
        self.pieces.iter().all(|piece| match piece {
            Piece::Text(_) => false,
            Piece::Hole(hole) => hole.is_empty_for(asked),
        })
    }

    /// Whether it says the same for every request.
    pub fn is_fixed(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
    }

    /// The text that stands before the first placeholder.
    pub fn leading_text(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => "",
        }
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// Takes back everything from `start` on if a control character is in it.
pub(super) fn refuse_control(out: &mut Vec<u8>, start: usize) -> Result<(), ControlCharacter> {
    if out[start..].iter().any(|byte| byte.is_ascii_control()) {
        out.truncate(start);
        return Err(ControlCharacter);
    }
    Ok(())
}

fn pieces(text: &str) -> Result<Vec<Piece>, Mistake> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let here = text.len() - rest.len() + at;
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            literal.push_str(brace);
            rest = after;
        } else if brace == "}" {
            return Err(Mistake::new(here, What::CloseBrace));
        } else {
            let (name, after) = rest.split_once('}').ok_or(Mistake::new(here, What::OpenBrace))?;
            let hole = Placeholder::named(name)
                .ok_or_else(|| Mistake::new(here + 1, What::UnknownPlaceholder(name.to_owned())))?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal).into()));
            }
            pieces.push(Piece::Hole(hole));
            rest = after;
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal.into()));
    }
    Ok(pieces)
}

impl Placeholder {
    /// Every name that may stand between braces.
    pub const NAMES: [&'static str; 7] = [
        "host",
        "authority",
        "path",
        "query",
        "client-ip",
        "method",
        "scheme",
    ];

    fn named(name: &str) -> Option<Placeholder> {
        Some(match name {
            "host" => Placeholder::Host,
            "authority" => Placeholder::Authority,
            "path" => Placeholder::Path,
            "query" => Placeholder::Query,
            "client-ip" => Placeholder::ClientIp,
            "method" => Placeholder::Method,
            "scheme" => Placeholder::Scheme,
            _ => return None,
        })
    }

    fn bytes<'a>(self, asked: &Asked<'a>) -> &'a [u8] {
        match self {
            Placeholder::Host => asked.host_name(),
            Placeholder::Authority => asked.host,
            Placeholder::Path => asked.path(),
            Placeholder::Query => asked.query.unwrap_or_default(),
            Placeholder::ClientIp => b"",
            Placeholder::Method => asked.method,
            Placeholder::Scheme => asked.scheme.as_bytes(),
        }
    }

    fn is_empty_for(self, asked: &Asked<'_>) -> bool {
        match self {
            Placeholder::ClientIp => asked.client.is_none(),
            other => other.bytes(asked).is_empty(),
        }
    }

    fn render(self, asked: &Asked<'_>, out: &mut Vec<u8>) {
        match self {
            Placeholder::ClientIp => asked.write_client(out),
            other => out.extend_from_slice(other.bytes(asked)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASKED: Asked<'static> = Asked {
        method: b"GET",
        host: b"Example.com:8080",
        path: b"/a/b",
        query: Some(b"x=1"),
        client: Some(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))),
        scheme: "http",
    };

    fn rendered(text: &str, asked: &Asked<'_>) -> String {
        let mut out = b">".to_vec();
        Template::parse(text).unwrap().render(asked, &mut out).unwrap();
        String::from_utf8(out).unwrap().split_off(1)
    }

    #[test]
    fn holes_are_filled() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            ("{scheme}://{host}{path}?{query}", "http://Example.com/a/b?x=1"),
            ("{authority}", "Example.com:8080"),
            ("{client-ip} {method}", "192.0.2.7 GET"),
            ("{{host}}", "{host}"),
            ("{{{host}}}", "{Example.com}"),
            ("}}{{", "}{"),
        ];
        for (text, expected) in cases {
            assert_eq!(rendered(text, &ASKED), expected, "{text}");
        }
    }

    #[test]
    fn what_a_request_lacks_is_empty() {
        let bare = Asked {
            host: b"",
            path: b"",
            query: None,
            client: None,
            ..ASKED
        };
        for (text, expected) in [("{host}{authority}{query}{client-ip}", ""), ("{path}", "/")] {
            assert_eq!(rendered(text, &bare), expected, "{text}");
            assert_eq!(
                Template::parse(text).unwrap().is_empty_for(&bare),
                expected.is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn an_address_of_the_other_family_is_written_as_its_own() {
        let mapped = Asked {
            client: Some("::ffff:192.0.2.7".parse().unwrap()),
            ..ASKED
        };
        assert_eq!(rendered("{client-ip}", &mapped), "192.0.2.7");
    }

    #[test]
    fn mistakes_say_where() {
        let cases = [
            ("ab{path", 2, What::OpenBrace),
            ("ab}c", 2, What::CloseBrace),
            ("{path}}", 6, What::CloseBrace),
            ("x {pth}", 3, What::UnknownPlaceholder("pth".to_owned())),
            ("{}", 1, What::UnknownPlaceholder(String::new())),
            ("a\r\nb", 1, What::ControlCharacter),
            (" a", 0, What::OuterSpace),
            ("a ", 1, What::OuterSpace),
        ];
        for (text, at, what) in cases {
            assert_eq!(Template::parse(text), Err(Mistake::new(at, what)), "{text:?}");
        }
    }

    #[test]
    fn every_name_is_known() {
        for name in Placeholder::NAMES {
            assert!(
                Template::parse(&format!("{{{name}}}")).is_ok_and(|template| !template.is_fixed()),
                "{name}"
            );
        }
    }

    /// RD-6.
    #[test]
    fn a_control_character_of_the_request_is_refused_and_leaves_no_trace() {
        let mut out = b"before".to_vec();
        let template = Template::parse("/x{path}").unwrap();
        for path in [&b"/a\r\nSet-Cookie: a"[..], b"/\0", b"/\x7f", b"/\t"] {
            assert_eq!(
                template.render(&Asked { path, ..ASKED }, &mut out),
                Err(ControlCharacter)
            );
            assert_eq!(out, b"before");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_within_it(text in ".{0,20}|[{}a-z]{0,12}") {
            match Template::parse(&text) {
                Ok(template) => prop_assert_eq!(template.source(), text),
                Err(mistake) => prop_assert!(text.is_char_boundary(mistake.at), "{:?}", mistake),
            }
        }

        #[test]
        fn doubled_braces_are_literal(text in "[{}a-z/ü-]{0,20}") {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(rendered(&escaped, &ASKED), text);
        }

        /// RD-6 for whatever a request holds; and being empty is what rendering nothing is.
        #[test]
        fn what_is_rendered_can_be_sent(
            holes in prop::collection::vec(prop::sample::select(&Placeholder::NAMES[..]), 0..4),
            path in prop::collection::vec(any::<u8>(), 0..6),
            query in prop::option::of(prop::collection::vec(any::<u8>(), 0..3)),
        ) {
            let template: String = holes.iter().map(|name| format!("{{{name}}}")).collect();
            let template = Template::parse(&template).unwrap();
            let asked = Asked { path: &path, query: query.as_deref(), host: b"", ..ASKED };
            let mut out = Vec::new();
            if template.render(&asked, &mut out).is_ok() {
                prop_assert!(!out.iter().any(u8::is_ascii_control));
                prop_assert_eq!(out.is_empty(), template.is_empty_for(&asked));
            } else {
                prop_assert!(out.is_empty());
            }
        }
    }
}
