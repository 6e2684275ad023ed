//! The head of a request: everything a gateway must check before another party sees it (RFC 9112 §3, §5, §6).
//!
//! [`parse_request`] answers `Complete` only for a head that can be forwarded; each rule that it fails has its own
//! [`Refusal`]. It does not look at the body and keeps no state: a partial head is parsed again with more bytes.

use super::authority::is_authority;
use super::facts::{Facts, end_of_lines};
use super::fields::{self, Field, Name};
use super::options::NAMED_MAX;
use super::target::read_target;
use super::{FIELDS_MAX, Framing, Limits, Parsed, Refusal, Span, TargetForm, Version};
use std::mem::MaybeUninit;

/// Request methods that this program tells apart. Their names are case-sensitive (RFC 9110 §9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// GET.
    #[default]
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
    /// PATCH.
    Patch,
    /// TRACE.
    Trace,
    /// CONNECT: always refused.
    Connect,
    /// Any other token, forwarded as it is.
    Other,
}

impl Method {
    /// The method of this name.
    pub fn of(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"PATCH" => Method::Patch,
            b"TRACE" => Method::Trace,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        }
    }

    /// Whether the request asks for no change of state (RFC 9110 §9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Whether sending the request twice does what sending it once does (RFC 9110 §9.2.2).
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

/// Where the `Host` line of the forwarded request comes from (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostLine {
    /// The client's line goes on.
    #[default]
    Field,
    /// The authority of an absolute target, which wins over a different or missing line.
    Authority,
    /// HTTP/1.0 without one: an empty `Host` is added.
    Absent,
    /// The line was dropped by an edit; the edit's addition takes its place.
    Edited,
}

/// A request's head that may be forwarded. Owned by the caller and used again for the next one.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// Bytes from the start of the parsed slice to the end of the head's empty line.
    pub length: usize,
    /// The method.
    pub method: Method,
    /// The method's name as it came: a token.
    pub method_text: Span,
    /// The whole target as it came.
    pub target: Span,
    /// How the target was written.
    pub form: TargetForm,
    /// The path within the target, without query; [`Self::path`] fills in an empty one.
    pub path: Span,
    /// What follows the target's first question mark; [`Self::query`] tells an empty query from none.
    pub query: Span,
    /// The authority of an absolute target, else the value of `Host`, which may be empty: host and port, no user information.
    pub authority: Span,
    /// The client's version.
    pub version: Version,
    /// `None`, `Length` (above 0 or not) or `Chunked`.
    pub framing: Framing,
    /// Whether the client wants to keep its connection (RFC 9112 §9.3).
    pub keep_alive: bool,
    /// Whether the client may be waiting for `100 Continue`: HTTP/1.1 and a body follows (RFC 9110 §10.1.1).
    pub expects_continue: bool,
    /// Whether a 101 may answer: HTTP/1.1, `Connection` names `upgrade`, `Upgrade` says to what, and there is no body.
    pub upgrade: bool,
    /// Whether the client takes trailers (`TE: trailers`, RFC 9110 §10.1.4).
    pub trailers: bool,
    /// `Max-Forwards` of OPTIONS or TRACE. At 0 the request must be answered here (RFC 9110 §7.6.2).
    pub max_forwards: Option<u32>,
    /// Where the forwarded `Host` comes from.
    pub host_line: HostLine,
    /// The fields in order.
    pub fields: Vec<Field>,
    /// The request line, if it goes on as it came; else an empty span.
    pub(super) line: Span,
    /// Whether a kept line says the framing.
    pub(super) framing_line: bool,
}

impl RequestHead {
    /// The method's name.
    pub fn method_name<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        self.method_text.of(bytes)
    }

    /// The path that is forwarded, without query: never empty; `*` for OPTIONS about the server as a whole
    /// (RFC 9112 §3.2.4).
    pub fn path<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.path.of(bytes) {
            [] if self.method == Method::Options && self.query(bytes).is_none() => b"*",
            [] => b"/",
            path => path,
        }
    }

    /// The query without its question mark, if there is one; it may be empty.
    pub fn query<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        (self.path.end < self.target.end).then(|| self.query.of(bytes))
    }

    /// Host and optional port of the request.
    pub fn authority<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        self.authority.of(bytes)
    }

    /// The first kept value of the field of this name, in any letter case.
    pub fn find<'a>(&'a self, bytes: &'a [u8], name: &'a [u8]) -> Option<&'a [u8]> {
        self.values(bytes, name).next()
    }

    /// The kept values of all fields of this name, in order.
    pub fn values<'a>(&'a self, bytes: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        fields::values(bytes, &self.fields, name)
    }

    /// Marks all fields of this name as not kept. The framing fields cannot be dropped; after `Host` was, the caller's
    /// additions give the new one.
    pub fn drop_named(&mut self, bytes: &[u8], name: &[u8]) {
        fields::drop_named(bytes, &mut self.fields, name);
        if Name::of(name) == Name::Host {
            self.host_line = HostLine::Edited;
        }
    }

    /// What the fields mean for this request; they are read already.
    fn settle(&mut self, bytes: &[u8], facts: &Facts) {
        let newer = self.version == Version::Http11;
        let has_body = !matches!(self.framing, Framing::None | Framing::Length(0));
        self.keep_alive = facts.options.persist(self.version);
        self.expects_continue = facts.expects_continue && newer && has_body;
        let asks = facts.upgrade && !facts.h2c && facts.options.upgrade;
        self.upgrade = asks && newer && self.framing == Framing::None;
        self.trailers = facts.trailers && newer;
        self.framing_line = facts.framing_line;
        if facts.options.named > 0 {
            fields::drop_options(bytes, &mut self.fields);
        }
        if facts.expects_continue && !self.expects_continue {
            fields::mark(&mut self.fields, Name::Expect, false);
        }
        if self.upgrade {
            fields::mark(&mut self.fields, Name::Upgrade, true);
        }
        self.max_forwards = facts
            .max_forwards
            .filter(|_| matches!(self.method, Method::Options | Method::Trace));
        if self.max_forwards.is_some() {
            fields::mark(&mut self.fields, Name::MaxForwards, false);
        }
    }

    /// Which authority the request has and who says so on.
    fn settle_host(&mut self, bytes: &[u8], authority: Span, facts: &Facts) {
        let same = facts.hosts > 0 && (authority.is_empty() || authority.of(bytes) == facts.host.of(bytes));
        self.authority = if authority.is_empty() {
            facts.host
        } else {
            authority
        };
        self.host_line = match (same, authority.is_empty()) {
            (true, _) => HostLine::Field,
            (false, false) => HostLine::Authority,
            (false, true) => HostLine::Absent,
        };
        if self.host_line == HostLine::Authority {
            fields::mark(&mut self.fields, Name::Host, false);
        }
    }
}

/// Parses the head at the start of `bytes`; empty lines before it are skipped (RFC 9112 §2.2).
///
/// On `Complete`, `head` describes it and [`RequestHead::length`] bytes are used up. Too large a head is refused as soon
/// as it is known to be. On an error or `Partial`, `head` means nothing.
pub fn parse_request(bytes: &[u8], limits: &Limits, head: &mut RequestHead) -> Result<Parsed, Refusal> {
    let window = &bytes[..bytes.len().min(limits.head_max)];
    let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let most = limits.headers_max.min(FIELDS_MAX);
    let length = match request.parse_with_uninit_headers(window, &mut headers[..most]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return incomplete(bytes, limits),
        Err(error) => return refuse(error, bytes, limits),
    };
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(Refusal::MalformedRequestLine);
    };
    head.length = length;
    head.method = Method::of(method.as_bytes());
    head.method_text = Span::locate(bytes, method.as_bytes());
    head.target = Span::locate(bytes, target.as_bytes());
    head.version = if version == 0 {
        Version::Http10
    } else {
        Version::Http11
    };
    let end = end_of_lines(bytes, length);
    let facts = Facts::read(bytes, request.headers, end, &mut head.fields);
    check_request_line(bytes, limits, head)?;
    check_fields(bytes, head, &facts)?;
    let target = read_target(bytes, head.target, head.method)?;
    head.form = target.form;
    head.path = target.path;
    head.query = Span {
        start: (target.path.end + 1).min(head.target.end),
        end: head.target.end,
    };
    head.framing = facts.declared(Framing::None);
    head.settle(bytes, &facts);
    head.settle_host(bytes, target.authority, &facts);
    Ok(Parsed::Complete)
}

/// Number of bytes of empty lines at the start of `bytes`, which a connection between two requests may throw away
/// (RFC 9112 §2.2).
pub fn empty_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &bytes[at..] {
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => return at,
        }
    }
}

/// Length, method, and whether the line may go on as it came: canonical, and what we would write ourselves.
fn check_request_line(bytes: &[u8], limits: &Limits, head: &mut RequestHead) -> Result<(), Refusal> {
    let start = head.method_text.start;
    let end = head.target.end + " HTTP/1.1".len() as u32;
    if (end - start) as usize > limits.request_line_max {
        return Err(Refusal::RequestLineTooLong);
    }
    if head.method == Method::Connect {
        return Err(Refusal::ConnectMethod);
    }
    let as_it_came = head.version == Version::Http11
        && matches!(bytes[head.target.start as usize], b'/' | b'*')
        && bytes[end as usize] == b'\r';
    head.line = if as_it_came {
        Span { start, end: end + 2 }
    } else {
        Span::default()
    };
    Ok(())
}

fn check_fields(bytes: &[u8], head: &RequestHead, facts: &Facts) -> Result<(), Refusal> {
    match facts.hosts {
        0 if head.version == Version::Http11 => return Err(Refusal::HostMissing),
        0 => {}
        1 if facts.host.is_empty() || is_authority(facts.host.of(bytes)) => {}
        1 => return Err(Refusal::HostInvalid),
        _ => return Err(Refusal::HostRepeated),
    }
    if let Some(fault) = facts.fault {
        return Err(fault.into());
    }
    match () {
        () if facts.look_alike => Err(Refusal::FramingLookAlike),
        () if facts.options.named > NAMED_MAX => Err(Refusal::TooManyOptions),
        () if facts.coded && head.version == Version::Http10 => Err(Refusal::CodingInHttp10),
        () if facts.coded && facts.length.is_some() => Err(Refusal::FramingConflict),
        () => Ok(()),
    }
}

/// A head whose end is not there: is it too large already?
fn incomplete(bytes: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
    let line = first_line(bytes);
    if line.text.len() > limits.request_line_max {
        Err(Refusal::RequestLineTooLong)
    } else if bytes.len() >= limits.head_max {
        Err(Refusal::HeadTooLarge)
    } else {
        Ok(Parsed::Partial)
    }
}

fn refuse(error: httparse::Error, bytes: &[u8], limits: &Limits) -> Result<Parsed, Refusal> {
    let line = first_line(bytes);
    if line.text.len() > limits.request_line_max {
        return Err(Refusal::RequestLineTooLong);
    }
    Err(match error {
        httparse::Error::Version if !line.is_whole => return incomplete(bytes, limits),
        httparse::Error::Version if has_other_version(line.text) => Refusal::UnsupportedVersion,
        httparse::Error::HeaderName => Refusal::MalformedFieldName,
        httparse::Error::HeaderValue => Refusal::MalformedFieldValue,
        httparse::Error::NewLine => Refusal::MalformedLineEnd,
        httparse::Error::TooManyHeaders => Refusal::TooManyFields,
        httparse::Error::Version | httparse::Error::Token | httparse::Error::Status => {
            Refusal::MalformedRequestLine
        }
    })
}

/// The first line that is not empty, as far as it came, without its line end.
struct FirstLine<'a> {
    text: &'a [u8],
    is_whole: bool,
}

fn first_line(bytes: &[u8]) -> FirstLine<'_> {
    let rest = &bytes[empty_lines(bytes)..];
    let end = memchr::memchr(b'\n', rest);
    let line = &rest[..end.unwrap_or(rest.len())];
    FirstLine {
        text: line.strip_suffix(b"\r").unwrap_or(line),
        is_whole: end.is_some(),
    }
}

/// Whether the line is a request line whose version is well-formed: then it is another one than ours (RFC 9112 §2.3).
fn has_other_version(line: &[u8]) -> bool {
    let mut parts = line.split(|&byte| byte == b' ');
    let (method, target, version) = (parts.next(), parts.next(), parts.next());
    let well_formed = matches!(version, Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
        if major.is_ascii_digit() && minor.is_ascii_digit());
    let given = |part: Option<&[u8]>| part.is_some_and(|part| !part.is_empty());
    well_formed && parts.next().is_none() && given(method) && given(target)
}

#[cfg(test)]
mod tests;
