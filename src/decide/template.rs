//! Text with holes that a request fills: values of header edits and targets of redirects.
//!
//! `{host}` (without port), `{authority}` (with port), `{path}`, `{query}` (without `?`), `{client-ip}`, `{method}` and
//! `{scheme}`; a literal brace is doubled. Parsed once, rendered by appending to a buffer of the worker. What was rendered
//! never holds a control character (RD-6): a literal one is refused when the template is made, one that a request brings is
//! refused when it is rendered, and then the buffer is as it was.

use super::mistake::{Mistake, What};
use super::route::Asked;
use std::fmt;
use std::io::Write;

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
        match (self, asked.client) {
            (Placeholder::ClientIp, Some(client)) => {
                write!(out, "{}", client.to_canonical()).expect("a Vec takes everything");
            }
            (other, _) => out.extend_from_slice(other.bytes(asked)),
        }
    }
}
