//! The head of a response: its framing (RFC 9112 §6.3), what of it concerns the server's connection only, and whether it
//! may go to the client just as it came, which is the common case.

use super::facts::{Facts, end_of_lines};
use super::fields::{self, Field, Name};
use super::options::NAMED_MAX;
use super::{BadResponse, ClientConnection, FIELDS_MAX, Framing, Limits, Method, Parsed, Span, Version};
use std::mem::MaybeUninit;

/// What the meaning of a response depends on.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext {
    /// The method of the request that it answers.
    pub method: Method,
    /// Whether that request asked for an upgrade ([`super::RequestHead::upgrade`]).
    pub upgrade: bool,
    /// The client's version.
    pub client: Version,
}

/// A response's head that may be forwarded. Owned by the caller and used again for the next one.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    /// Bytes from the start of the parsed slice to the end of the head's empty line.
    pub length: usize,
    /// 100…999.
    pub status: u16,
    /// The server's version.
    pub version: Version,
    /// How the body that follows is framed; `None` for HEAD, 1xx, 204, 304 whatever the fields say.
    pub framing: Framing,
    /// Whether the server's connection may carry another request after this response.
    pub keep_alive: bool,
    /// The server switches protocols (101), as it was asked to: what follows is a tunnel.
    pub switching: bool,
    /// Whether all of `bytes[..length]` may be sent as it came; see [`Self::goes_verbatim`].
    pub verbatim: bool,
    /// The fields in order.
    pub fields: Vec<Field>,
    /// The status line, if it goes on as it came; else an empty span.
    pub(super) line: Span,
    /// The reason phrase, which may be empty.
    pub(super) phrase: Span,
    /// Whether a kept line says the framing.
    pub(super) framing_line: bool,
    /// Whether `Upgrade` goes on: with 101, and with 426, which is nothing without it (RFC 9110 §15.5.22).
    pub(super) upgrade_line: bool,
}

impl ResponseHead {
    /// Whether this is an interim response (1xx without 101): HTTP/1.0 clients must not get it, and another response
    /// follows (RFC 9110 §15.2).
    pub fn is_interim(&self) -> bool {
        self.status < 200 && !self.switching
    }

    /// What can become of the client's connection, if `wish` is what we want: a body that ends with the connection needs
    /// its close, and so does a chunked one for a client that knows no chunks.
    pub fn connection_for(&self, client: Version, wish: ClientConnection) -> ClientConnection {
        match self.framing {
            Framing::UntilClose => ClientConnection::Close,
            Framing::Chunked if client == Version::Http10 => ClientConnection::Close,
            _ => wish,
        }
    }

    /// Whether the head may be sent as it came, `bytes[..length]`, instead of being written.
    pub fn goes_verbatim(&self, connection: ClientConnection, client: Version, additions: &[u8]) -> bool {
        self.verbatim
            && additions.is_empty()
            && client == Version::Http11
            && self.connection_for(client, connection) == ClientConnection::KeepAlive
    }

    /// The first kept value of the field of this name, in any letter case.
    pub fn find<'a>(&'a self, bytes: &'a [u8], name: &'a [u8]) -> Option<&'a [u8]> {
        self.values(bytes, name).next()
    }

    /// The kept values of all fields of this name, in order.
    pub fn values<'a>(&'a self, bytes: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        fields::values(bytes, &self.fields, name)
    }

    /// Marks all fields of this name as not kept. The framing fields cannot be dropped.
    pub fn drop_named(&mut self, bytes: &[u8], name: &[u8]) {
        if fields::drop_named(bytes, &mut self.fields, name) {
            self.verbatim = false;
        }
    }

    /// The status line is in place and canonical, or else its parts are.
    fn settle_line(&mut self, bytes: &[u8], start: usize, end: u32) {
        let end = self.fields.first().map_or(end, |field| field.line.start);
        let ended = if bytes[end as usize - 2] == b'\r' { 2 } else { 1 };
        let phrase = (start + "HTTP/1.1 200 ".len()) as u32;
        let text_end = end - ended;
        self.phrase = Span {
            start: phrase.min(text_end),
            end: text_end,
        };
        let canonical = self.version == Version::Http11 && ended == 2 && phrase <= text_end;
        self.line = if canonical {
            Span {
                start: start as u32,
                end,
            }
        } else {
            Span::default()
        };
    }

    fn settle(&mut self, bytes: &[u8], facts: &Facts, context: RequestContext) -> Result<(), BadResponse> {
        let may_switch = context.upgrade && self.version == Version::Http11;
        if self.status == 101 && !may_switch {
            return Err(BadResponse::UnaskedUpgrade);
        }
        self.switching = self.status == 101;
        self.upgrade_line = facts.upgrade && (self.switching || self.status == 426);
        self.framing_line = facts.framing_line;
        self.framing = self.settle_framing(facts, context)?;
        self.keep_alive = facts.options.persist(self.version)
            && self.framing != Framing::UntilClose
            && !(facts.coded && facts.length.is_some());
        if facts.options.named > 0 {
            fields::drop_options(bytes, &mut self.fields);
        }
        if self.upgrade_line {
            fields::mark(&mut self.fields, Name::Upgrade, true);
        }
        Ok(())
    }

    /// RFC 9112 §6.3, rules 1 to 8 without CONNECT. A length beside `chunked` is removed, and the connection is not used
    /// again (rule 3).
    fn settle_framing(&mut self, facts: &Facts, context: RequestContext) -> Result<Framing, BadResponse> {
        if self.status < 200 || self.status == 204 {
            fields::mark(&mut self.fields, Name::ContentLength, false);
            fields::mark(&mut self.fields, Name::TransferEncoding, false);
            self.verbatim &= facts.length.is_none() && !facts.coded;
            return Ok(Framing::None);
        }
        if let Some(fault) = facts.fault {
            return Err(fault.into());
        }
        if facts.coded && self.version == Version::Http10 {
            return Err(BadResponse::CodingInHttp10);
        }
        if facts.coded && facts.length.is_some() {
            fields::mark(&mut self.fields, Name::ContentLength, false);
            self.framing_line = self
                .fields
                .iter()
                .any(|field| field.known == Name::TransferEncoding && field.keep);
            self.verbatim = false;
        }
        if context.method == Method::Head || self.status == 304 {
            return Ok(Framing::None);
        }
        Ok(facts.declared(Framing::UntilClose))
    }
}

/// Parses the head at the start of `bytes`, which answers a request of this context.
///
/// On `Complete`, `head` describes it and [`ResponseHead::length`] bytes are used up; after an interim response the next
/// head follows. On an error or `Partial`, `head` means nothing.
pub fn parse_response(
    bytes: &[u8],
    limits: &Limits,
    context: RequestContext,
    head: &mut ResponseHead,
) -> Result<Parsed, BadResponse> {
    let window = &bytes[..bytes.len().min(limits.head_max)];
    let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let most = limits.headers_max.min(FIELDS_MAX);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut response, window, &mut headers[..most])
    {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= limits.head_max => {
            return Err(BadResponse::HeadTooLarge);
        }
        Ok(httparse::Status::Partial) => return Ok(Parsed::Partial),
        Err(error) => return Err(bad(error)),
    };
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(BadResponse::MalformedStatusLine);
    };
    if status < 100 {
        return Err(BadResponse::StatusOutOfRange);
    }
    head.length = length;
    head.status = status;
    head.version = if version == 0 {
        Version::Http10
    } else {
        Version::Http11
    };
    let end = end_of_lines(bytes, length);
    let facts = Facts::read(bytes, response.headers, end, &mut head.fields);
    if facts.options.named > NAMED_MAX {
        return Err(BadResponse::TooManyOptions);
    }
    let start = super::empty_lines(bytes);
    head.settle_line(bytes, start, end);
    let whole = start == 0 && !head.line.is_empty() && end as usize + 2 == length;
    head.verbatim = facts.verbatim && whole && context.client == Version::Http11;
    head.settle(bytes, &facts, context)?;
    Ok(Parsed::Complete)
}

fn bad(error: httparse::Error) -> BadResponse {
    match error {
        httparse::Error::HeaderName => BadResponse::MalformedFieldName,
        httparse::Error::HeaderValue => BadResponse::MalformedFieldValue,
        httparse::Error::NewLine => BadResponse::MalformedLineEnd,
        httparse::Error::TooManyHeaders => BadResponse::TooManyFields,
        httparse::Error::Status | httparse::Error::Token | httparse::Error::Version => {
            BadResponse::MalformedStatusLine
        }
    }
}

#[cfg(test)]
mod tests;
