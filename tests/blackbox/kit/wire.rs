//! One socket and what has come in on it: heads and bodies read strictly, each wait with a deadline.
//!
//! Used by both ends, the client and the origin. It is deliberately stricter than RFC 9112 asks of a recipient: only
//! CRLF ends a line and only lower bounds of the grammar pass, since what it reads was written by the proxy.

use super::stream::Stream;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Why a read did not get what it wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The peer ended its direction in the regular way.
    Closed,
    /// The connection was reset.
    Reset,
    /// The deadline passed.
    Late,
    /// What came is not HTTP/1.1 as we demand it.
    Malformed(String),
}

/// A read that did not get what it wanted, and the bytes that had come.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) why: Why,
    pub(crate) got: Vec<u8>,
}

impl std::fmt::Debug for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = &self.got[..self.got.len().min(400)];
        write!(
            f,
            "{:?} after {} bytes: {:?}",
            self.why,
            self.got.len(),
            String::from_utf8_lossy(shown)
        )
    }
}

/// Start line and fields of one message, one character a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) line: String,
    pub(crate) fields: Vec<(String, String)>,
}

impl Head {
    /// The value of the only field of that name; fails the test if it was sent twice.
    #[track_caller]
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let values = self.values(name);
        assert!(values.len() < 2, "{name} came {} times: {values:?}", values.len());
        values.first().copied()
    }

    /// The values of all fields of that name, in order.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let named = self
            .fields
            .iter()
            .filter(|(field, _)| field.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Whether a comma-separated field names that token.
    pub(crate) fn names(&self, field: &str, token: &str) -> bool {
        let mut tokens = self.values(field).into_iter().flat_map(|value| value.split(','));
        tokens.any(|each| each.trim().eq_ignore_ascii_case(token))
    }

    /// How the body is framed if there is one (RFC 9112 §6); `None` without any framing field.
    pub(crate) fn framing(&self) -> Option<Framing> {
        let length = self.value("content-length");
        let coded = self.value("transfer-encoding");
        assert!(
            length.is_none() || coded.is_none(),
            "both framings: {:?}",
            self.fields
        );
        match (length, coded) {
            (Some(length), _) => Some(Framing::Length(length.parse().expect("a length"))),
            (_, Some(coding)) => {
                assert!(
                    coding.eq_ignore_ascii_case("chunked"),
                    "transfer-coding {coding:?}"
                );
                Some(Framing::Chunked)
            }
            _ => None,
        }
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    UntilClose,
}

/// One body, decoded, with its trailer fields; their names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

/// A socket with the bytes that have come and are not consumed.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) stream: Stream,
    pub(crate) buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: Stream) -> Wire {
        Wire {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Waits at most so long for more bytes. Every other read takes that as the longest silence, not as its whole time.
    pub(crate) fn fill(&mut self, wait: Duration) -> Result<(), Broken> {
        let mut piece = [0; 64 * 1024];
        let until = Instant::now() + wait;
        loop {
            let wait = until.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return Err(self.broken(Why::Late));
            }
            match self.stream.read(&mut piece, wait) {
                Ok(0) => return Err(self.broken(Why::Closed)),
                Ok(count) => {
                    self.buffer.extend_from_slice(&piece[..count]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return Err(self.broken(Why::Reset)),
            }
        }
    }

    /// One whole head.
    pub(crate) fn head(&mut self, wait: Duration) -> Result<Head, Broken> {
        let length = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at;
            }
            self.fill(wait)?;
        };
        let head: Vec<u8> = self.buffer.drain(..length + 4).collect();
        let mut lines = latin1(&head[..length])
            .split("\r\n")
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter();
        let line = lines.next().unwrap_or_default();
        let fields = lines.map(|each| field(&each)).collect::<Result<Vec<_>, _>>();
        match fields {
            Ok(fields) if !line.contains(['\r', '\n']) => Ok(Head { line, fields }),
            Ok(_) => Err(Broken {
                why: Why::Malformed(format!("start line {line:?}")),
                got: head,
            }),
            Err(what) => Err(Broken {
                why: Why::Malformed(what),
                got: head,
            }),
        }
    }

    /// One whole body, decoded. What came of a broken one is in the error.
    pub(crate) fn body(&mut self, framing: Framing, wait: Duration) -> Result<Body, Broken> {
        match framing {
            Framing::Length(length) => {
                while self.buffer.len() < length {
                    self.fill(wait)?;
                }
                Ok(Body {
                    bytes: self.buffer.drain(..length).collect(),
                    ..Body::default()
                })
            }
            Framing::Chunked => self.chunked(wait),
            Framing::UntilClose => Ok(Body {
                bytes: self.rest(wait)?,
                ..Body::default()
            }),
        }
    }

    /// Everything up to the regular end of the stream.
    pub(crate) fn rest(&mut self, wait: Duration) -> Result<Vec<u8>, Broken> {
        loop {
            match self.fill(wait) {
                Ok(()) => {}
                Err(broken) if broken.why == Why::Closed => return Ok(std::mem::take(&mut self.buffer)),
                Err(broken) => return Err(broken),
            }
        }
    }

    fn chunked(&mut self, wait: Duration) -> Result<Body, Broken> {
        let mut body = Body::default();
        loop {
            let line = self.line(wait)?;
            let digits = line.split(';').next().unwrap_or_default();
            let hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let Some(size) = hexadecimal
                .then(|| usize::from_str_radix(digits, 16).ok())
                .flatten()
            else {
                return Err(self.broken(Why::Malformed(format!("chunk size {line:?}"))));
            };
            if size == 0 {
                break;
            }
            while self.buffer.len() < size + 2 {
                self.fill(wait)?;
            }
            if &self.buffer[size..size + 2] != b"\r\n" {
                return Err(self.broken(Why::Malformed("no CRLF after chunk data".to_owned())));
            }
            body.bytes.extend(self.buffer.drain(..size));
            self.buffer.drain(..2);
        }
        loop {
            let line = self.line(wait)?;
            if line.is_empty() {
                return Ok(body);
            }
            let (name, value) = field(&line).map_err(|what| self.broken(Why::Malformed(what)))?;
            body.trailers.push((name.to_ascii_lowercase(), value));
        }
    }

    fn line(&mut self, wait: Duration) -> Result<String, Broken> {
        loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                let line = latin1(&self.buffer[..at]);
                self.buffer.drain(..at + 2);
                return Ok(line);
            }
            self.fill(wait)?;
        }
    }

    fn broken(&self, why: Why) -> Broken {
        Broken {
            why,
            got: self.buffer.clone(),
        }
    }
}

/// The digest by which a body is compared at both ends.
pub(crate) fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", xxhash_rust::xxh3::xxh3_128(bytes))
}

fn field(line: &str) -> Result<(String, String), String> {
    let token =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    match line.split_once(':') {
        Some((name, value)) if token(name) && !value.contains(['\r', '\n', '\0']) => {
            Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
        }
        _ => Err(format!("field line {line:?}")),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
