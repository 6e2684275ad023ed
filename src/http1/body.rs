//! The body of a message, as a reader that is fed what arrives and says what goes on.
//!
//! Nothing is buffered: the answer is a range of the input that may be sent as it came ([`Output::Verbatim`]), or bytes
//! that were appended to the caller's buffer because something of the input does not go on ([`Output::Rewritten`]). A
//! chunked body in plain chunks is always verbatim; chunk extensions are cut out, trailers are collected, checked and
//! written afresh. After an error the message cannot be continued: its connection has to close.

use super::trailers::Trailers;
use super::{BodyError, Framing, TrailerLimits};

/// One message's body on its way.
#[derive(Debug)]
pub struct Body {
    /// Bytes left of the body, or of the current chunk.
    pub(super) remaining: u64,
    pub(super) framing: Framing,
    /// Trailers so far, once there is one.
    pub(super) trailers: Option<Box<Trailers>>,
    pub(super) limits: TrailerLimits,
    /// Bytes of chunk extensions that may still come.
    pub(super) extension_budget: u16,
    pub(super) phase: Phase,
    /// Digits of the current chunk size so far.
    pub(super) digits: u8,
    /// Whether only the data of the chunks goes on.
    pub(super) decoding: bool,
}

/// Where in the body the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Size,
    /// White space between size and extension.
    SizeSpace,
    Extension,
    ExtensionQuoted,
    ExtensionEscaped,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// Behind the last chunk: a trailer or the end.
    Last,
    LastLf,
    Trailers,
    Done,
}

/// What became of one piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that belong to this body.
    pub consumed: usize,
    /// Whether the body is complete. What follows in the input is not of this message.
    pub done: bool,
    /// What goes on.
    pub output: Output,
}

/// What of the input goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// So many bytes from the start of the input, which is all that was consumed.
    Verbatim(usize),
    /// What was appended to the caller's buffer, perhaps nothing.
    Rewritten,
}

/// Extensions that may come before any data, in bytes; every 16 bytes of data earn one more, up to this again. Room for a
/// signature on every chunk of an upload, none for a flood of them.
pub(super) const EXTENSIONS_MAX: u16 = 16 * 1024;

impl Body {
    /// A reader for a body of this framing.
    pub fn new(framing: Framing, limits: TrailerLimits) -> Body {
        let (phase, remaining) = match framing {
            Framing::None | Framing::Length(0) => (Phase::Done, 0),
            Framing::Length(length) => (Phase::Data, length),
            Framing::UntilClose => (Phase::Data, 0),
            Framing::Chunked => (Phase::Size, 0),
        };
        Body {
            remaining,
            framing,
            trailers: None,
            limits,
            extension_budget: EXTENSIONS_MAX,
            phase,
            digits: 0,
            decoding: false,
        }
    }

    /// A reader that lets only the data of chunks go on, for a client that knows no chunks. Trailers are checked and
    /// dropped.
    pub fn decoding(framing: Framing, limits: TrailerLimits) -> Body {
        Body {
            decoding: true,
            ..Body::new(framing, limits)
        }
    }

    /// Takes in the next piece of the connection's bytes. What has to be written afresh is appended to `rewritten`; on an
    /// error nothing is.
    pub fn advance(&mut self, input: &[u8], rewritten: &mut Vec<u8>) -> Result<Step, BodyError> {
        let consumed = match self.framing {
            Framing::None => 0,
            Framing::UntilClose => input.len(),
            Framing::Length(_) => self.take_data(input),
            Framing::Chunked => return self.advance_chunked(input, rewritten),
        };
        if self.remaining == 0 && self.framing != Framing::UntilClose {
            self.phase = Phase::Done;
        }
        Ok(Step {
            consumed,
            done: self.is_done(),
            output: Output::Verbatim(consumed),
        })
    }

    /// Uses up what belongs to the data of the body or chunk.
    pub(super) fn take_data(&mut self, input: &[u8]) -> usize {
        let taken = usize::try_from(self.remaining).map_or(input.len(), |left| left.min(input.len()));
        self.remaining -= taken as u64;
        taken
    }

    /// Whether all of the body was taken in.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// How the body is framed.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Whether the message is complete when the connection ends here (RFC 9112 §8). Otherwise it is cut short, and whoever
    /// gets it has to be able to tell.
    pub fn is_complete_at_close(&self) -> bool {
        self.is_done() || self.framing == Framing::UntilClose
    }

    /// Bytes of the body that are still to come, where they are known beforehand.
    pub fn remaining(&self) -> Option<u64> {
        matches!(self.framing, Framing::None | Framing::Length(_)).then_some(self.remaining)
    }
}

#[cfg(test)]
mod tests;
