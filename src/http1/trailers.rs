//! Trailer fields behind the last chunk (RFC 9110 §6.5, RFC 9112 §7.1.2): collected within limits, checked as strictly as
//! header fields, freed of what may not stand there, and written afresh.

use super::BodyError;
use super::fields::write_line;

/// Limits of the trailers of one body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailerLimits {
    /// Bytes of all trailers with their line ends and the empty line.
    pub bytes_max: u16,
    /// Number of trailer fields, at most 64.
    pub fields_max: u16,
}

/// Most trailer fields, whatever [`TrailerLimits::fields_max`] says.
const FIELDS_MAX: usize = 64;

/// The trailers of one body, as far as they came.
#[derive(Debug)]
pub(super) struct Trailers {
    collected: Vec<u8>,
    line_start: usize,
    limits: TrailerLimits,
}

impl Trailers {
    pub(super) fn new(limits: TrailerLimits) -> Trailers {
        Trailers {
            collected: Vec::new(),
            line_start: 0,
            limits,
        }
    }

    /// Takes in what belongs to the trailers: how many bytes, and whether the empty line was among them.
    pub(super) fn collect(&mut self, input: &[u8]) -> Result<(usize, bool), BodyError> {
        let mut taken = 0;
        while taken < input.len() {
            let rest = &input[taken..];
            let line_end = memchr::memchr(b'\n', rest);
            let part = &rest[..line_end.map_or(rest.len(), |at| at + 1)];
            if self.collected.len() + part.len() > usize::from(self.limits.bytes_max) {
                return Err(BodyError::TrailersTooLarge);
            }
            self.collected.extend_from_slice(part);
            taken += part.len();
            if line_end.is_some() && self.end_line()? {
                return Ok((taken, true));
            }
        }
        Ok((taken, false))
    }

    /// A line is whole: whether it is the empty one.
    fn end_line(&mut self) -> Result<bool, BodyError> {
        let line = &self.collected[self.line_start..];
        if !line.ends_with(b"\r\n") {
            return Err(BodyError::MalformedTrailer);
        }
        let is_empty = line.len() == 2;
        self.line_start = self.collected.len();
        Ok(is_empty)
    }

    /// Appends the fields that may go on, and the empty line.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), BodyError> {
        let mut headers = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let most = usize::from(self.limits.fields_max).min(FIELDS_MAX);
        let parsed = httparse::parse_headers(&self.collected, &mut headers[..most]);
        let Ok(httparse::Status::Complete((_, fields))) = parsed else {
            let too_many = parsed == Err(httparse::Error::TooManyHeaders);
            return Err(if too_many {
                BodyError::TrailersTooLarge
            } else {
                BodyError::MalformedTrailer
            });
        };
        for field in fields.iter().filter(|field| may_trail(field.name)) {
            write_line(field.name.as_bytes(), field.value, out);
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// Whether a field may stand in trailers: not what frames, routes, modifies or authenticates a message, controls it, or
/// says how to process it (RFC 9110 §6.5.1); nor what a gateway says.
fn may_trail(name: &str) -> bool {
    !FORBIDDEN
        .iter()
        .any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}

const FORBIDDEN: [&str; 47] = [
    "age",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "content_length",
    "cookie",
    "date",
    "expect",
    "expires",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "retry-after",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "transfer_encoding",
    "upgrade",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-http-method-override",
    "x-real-ip",
];
