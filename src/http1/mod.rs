//! HTTP/1.x: bytes ↔ messages. Pure: slices in, typed heads and ranges out; no socket, no clock, no state between calls
//! except in [`Body`].
//!
//! A head is parsed once into spans of the slice it came in ([`RequestHead`], [`ResponseHead`]), marked for what may go on,
//! and written from those spans: lines in canonical form are copied as they came, whatever else is refused or
//! serialised afresh. So what leaves is one unambiguous message, whatever arrived: one `Host`, one framing, CRLF only,
//! no field of the other hop.
//!
//! ```text
//! parse_request → RequestHead → (edits: drop_named) → write_request      Body::advance for what follows the head
//! parse_response → ResponseHead → (edits) → write_response               write_reply for answers of our own
//! ```
//! Heads are owned by the caller and used again: after the first few messages nothing here allocates, trailers apart.

mod authority;
mod body;
mod chunked;
mod facts;
mod fields;
mod options;
mod pairs;
mod refusal;
mod reply;
mod request;
mod response;
mod target;
mod trailers;
mod write;

pub use body::{Body, Output, Step};
pub use fields::{Field, Name};
pub use pairs::{cookie, parameter};
pub use refusal::{BadResponse, BodyError, Refusal};
pub use reply::{CONTINUE, reason_phrase, write_reply};
pub use request::{HostLine, Method, RequestHead, empty_lines, parse_request};
pub use response::{RequestContext, ResponseHead, parse_response};
pub use target::TargetForm;
pub use trailers::TrailerLimits;
pub use write::{write_request, write_response};

/// Most header fields that a head may have, whatever [`Limits::headers_max`] says.
pub const FIELDS_MAX: usize = 256;

/// A range of the slice that was parsed. Meaningless for any other slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes of the span. `bytes` is the slice that was parsed.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }

    /// Whether the span has no byte.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Where `part`, a sub-slice of `whole`, lies in it.
    fn locate(whole: &[u8], part: &[u8]) -> Span {
        let start = (part.as_ptr() as usize - whole.as_ptr() as usize) as u32;
        Span {
            start,
            end: start + part.len() as u32,
        }
    }
}

/// Limits of a message's head. All sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The whole head, from its first byte (empty lines before it included) to its empty line.
    pub head_max: usize,
    /// The request line without its line end. Not used for responses.
    pub request_line_max: usize,
    /// Number of header fields, 1…[`FIELDS_MAX`].
    pub headers_max: usize,
}

/// The versions we speak (RFC 9112 §2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunks, no interim responses, connections close unless agreed.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// How the end of a message's body is found (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// So many bytes, 0 included.
    Length(u64),
    /// The chunked transfer coding, and no other.
    Chunked,
    /// Until the connection closes. Responses only: a request is never framed so.
    UntilClose,
}

/// What a head parser found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head is whole and the given head describes it.
    Complete,
    /// The end is not there yet: call again with the same bytes and more. The given head says nothing.
    Partial,
}

/// What becomes of the client's connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientConnection {
    /// Another request may follow.
    KeepAlive,
    /// The connection ends with this response.
    Close,
}
