//! What can be wrong in a text that becomes a pattern, a template, an edit or a redirect.
//!
//! One error type for these small languages, so that whoever reads a file can point at the byte: [`Mistake::at`] counts bytes
//! from the start of the text that was given. What was found is in the sentence, what was expected as well.

use std::fmt;

/// A text that was refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Byte offset into the text that was given; 0 where the whole text is meant.
    pub at: usize,
    /// What is wrong there.
    pub what: What,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// `{` without its `}`.
    OpenBrace,
    /// `}` without its `{`.
    CloseBrace,
    /// `{name}` that nobody knows; the name.
    UnknownPlaceholder(String),
    /// A control character where text goes onto the wire (RD-6).
    ControlCharacter,
    /// White space at the start or the end of a value: a reader of the field would not see it (RFC 9110 §5.5).
    OuterSpace,
    /// Nothing where something is needed.
    Empty,
    /// A byte that this kind of name cannot hold.
    Byte(char, Kind),
    /// A field that only the proxy itself may write: it belongs to one connection, or says where a message ends.
    ReservedField(String),
    /// The `Host` field: a server is asked for the host that the client named.
    HostField,
    /// Not of the form `type/subtype` (RFC 9110 §8.3.1).
    ContentType,
    /// A port behind a host pattern: matching looks at the name only.
    Port,
    /// A `*` that is not a whole first label.
    Wildcard,
    /// A path that does not begin with `/`.
    NoSlash,
    /// A `?` in a path pattern: matching looks at the path only.
    QueryInPath,
    /// A `#` in a path pattern: clients never send one.
    FragmentInPath,
    /// A standard method, but not in capitals; how it is written. Methods are case-sensitive (RFC 9110 §9.1).
    LowercaseMethod(&'static str),
    /// A share outside 0…100 percent, or finer than a millionth.
    Share,
    /// A status outside the range that is allowed here: first, last.
    Status(u16, u16),
    /// A redirect with a status other than 301, 302, 303, 307, 308 (RD-4).
    RedirectStatus,
    /// A body with a status that never has one (RFC 9110 §6.4.1); the status.
    BodyForbidden(u16),
    /// A slash would land behind the query (RD-2).
    SlashAfterQuery,
}

/// The kinds of names that have an alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A field name (RFC 9110 §5.1).
    FieldName,
    /// A method (RFC 9110 §9.1).
    Method,
    /// A host name, an IPv4 address or an IPv6 address in brackets.
    Host,
    /// A path as clients send it: percent-encoded, no white space (RFC 3986 §3.3).
    Path,
    /// A cookie: `NAME` or `NAME=value` (RFC 6265 §4.1.1).
    Cookie,
    /// A media type (RFC 9110 §8.3.1).
    ContentType,
}

impl Mistake {
    /// `what` at byte `at`.
    pub fn new(at: usize, what: What) -> Mistake {
        Mistake { at, what }
    }
}

impl std::error::Error for Mistake {}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what.fmt(f)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::OpenBrace => f.write_str("`{` is never closed; a literal brace is written `{{`"),
            What::CloseBrace => f.write_str("`}` closes nothing; a literal brace is written `}}`"),
            What::UnknownPlaceholder(name) => write!(f, "unknown placeholder `{{{name}}}`"),
            What::ControlCharacter => f.write_str("a control character cannot be sent in a field"),
            What::OuterSpace => f.write_str("white space at the start or the end of a value is not sent"),
            What::Empty => f.write_str("is empty"),
            What::Byte(found, kind) => write!(f, "`{}` cannot stand in {kind}", found.escape_default()),
            What::ReservedField(name) => {
                write!(
                    f,
                    "`{name}` is written by the proxy alone: it belongs to one connection or frames a message"
                )
            }
            What::HostField => f.write_str("not yet: `Host` goes on as the client sent it"),
            What::ContentType => f.write_str("expected a media type such as `text/plain`"),
            What::Port => f.write_str("a host is matched without its port"),
            What::Wildcard => {
                f.write_str("`*` stands for whole labels at the start only, as in `*.example.com`")
            }
            What::NoSlash => f.write_str("a path begins with `/`"),
            What::QueryInPath => f.write_str("a path is matched without its query"),
            What::FragmentInPath => f.write_str("clients never send a fragment"),
            What::LowercaseMethod(name) => write!(f, "methods are case-sensitive; did you mean `{name}`?"),
            What::Share => f.write_str("a share is 0 to 100 percent, in steps of 0.0001"),
            What::Status(first, last) => write!(f, "expected a status from {first} to {last}"),
            What::RedirectStatus => f.write_str("a redirect has status 301, 302, 303, 307 or 308"),
            What::BodyForbidden(status) => write!(f, "a response with status {status} has no body"),
            What::SlashAfterQuery => {
                f.write_str("append-slash needs drop-query: the slash would land in the query")
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::FieldName => "a header name",
            Kind::Method => "a method",
            Kind::Host => "a host",
            Kind::Path => "a path",
            Kind::Cookie => "a cookie",
            Kind::ContentType => "a content type",
        })
    }
}
