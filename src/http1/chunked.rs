//! The chunked transfer coding (RFC 9112 §7.1), read strictly: CRLF only, 1…16 hexadecimal digits, nothing between size
//! and CRLF but extensions.
//!
//! ```text
//! Size ─digits─▶ SizeLf ─▶ Data ─▶ DataCr ─▶ DataLf ─▶ Size        a chunk
//!   ├─SP HTAB─▶ SizeSpace ─";"─▶ Extension ⇄ Quoted ⇄ Escaped       cut out, then SizeLf
//!   └─size 0──▶ SizeLf ─▶ Last ─CR─▶ LastLf ─▶ Done                 or ─▶ Trailers ─▶ Done
//! ```

use super::body::{Body, EXTENSIONS_MAX, Output, Phase, Step};
use super::trailers::Trailers;
use super::{BodyError, TrailerLimits};

/// Digits of a chunk size: what a `u64` holds.
const DIGITS_MAX: u8 = 16;

impl Body {
    pub(super) fn advance_chunked(
        &mut self,
        input: &[u8],
        rewritten: &mut Vec<u8>,
    ) -> Result<Step, BodyError> {
        let before = rewritten.len();
        let mut sieve = Sieve::new(input, rewritten, self.goes());
        match self.read_chunks(input, &mut sieve) {
            Ok(consumed) => Ok(Step {
                consumed,
                done: self.is_done(),
                output: sieve.finish(consumed),
            }),
            Err(error) => {
                rewritten.truncate(before);
                Err(error)
            }
        }
    }

    fn read_chunks(&mut self, input: &[u8], sieve: &mut Sieve<'_>) -> Result<usize, BodyError> {
        let mut at = 0;
        while at < input.len() && self.phase != Phase::Done {
            if let Some(taken) = self.read_plain(&input[at..]) {
                at += taken;
                sieve.turn(at, self.goes());
                continue;
            }
            match self.phase {
                Phase::Data => {
                    at += self.read_data(&input[at..]);
                    sieve.turn(at, self.goes());
                }
                Phase::Trailers => at += self.read_trailers(&input[at..], sieve)?,
                _ => {
                    self.phase = self.read_byte(input[at])?;
                    // A byte shares the fate of the phase that it leads to; when decoding, only data goes on.
                    sieve.turn(at + usize::from(self.decoding), self.goes());
                    at += usize::from(self.phase != Phase::Trailers);
                }
            }
        }
        Ok(at)
    }

    /// Whether bytes of this phase go on.
    fn goes(&self) -> bool {
        match self.phase {
            phase if self.decoding => phase == Phase::Data,
            Phase::SizeSpace | Phase::Extension | Phase::ExtensionQuoted | Phase::ExtensionEscaped => false,
            Phase::Trailers => false,
            _ => true,
        }
    }

    fn read_data(&mut self, input: &[u8]) -> usize {
        let taken = self.take_data(input);
        let earned = u16::try_from(taken / 16).unwrap_or(u16::MAX);
        self.extension_budget = self.extension_budget.saturating_add(earned).min(EXTENSIONS_MAX);
        if self.remaining == 0 {
            self.phase = Phase::DataCr;
        }
        taken
    }

    /// The common case at once, so that small chunks cost little: a whole CRLF or a whole size line without extension.
    fn read_plain(&mut self, input: &[u8]) -> Option<usize> {
        let (next, taken) = match (self.phase, input) {
            (Phase::DataCr, [b'\r', b'\n', ..]) => (Phase::Size, 2),
            (Phase::Last, [b'\r', b'\n', ..]) => (Phase::Done, 2),
            (Phase::Size, _) if self.digits == 0 => {
                let (size, taken) = plain_size(input)?;
                self.remaining = size;
                (if size == 0 { Phase::Last } else { Phase::Data }, taken)
            }
            _ => return None,
        };
        self.phase = next;
        self.digits = 0;
        Some(taken)
    }

    /// One byte outside of data and trailers; the phase behind it.
    fn read_byte(&mut self, byte: u8) -> Result<Phase, BodyError> {
        match (self.phase, byte) {
            (Phase::Size, _) => self.read_size(byte),
            (Phase::SizeLf, b'\n') if self.remaining == 0 => Ok(Phase::Last),
            (Phase::SizeLf, b'\n') => Ok(Phase::Data),
            (Phase::DataCr, b'\r') => Ok(Phase::DataLf),
            (Phase::DataLf, b'\n') => {
                self.digits = 0;
                Ok(Phase::Size)
            }
            (Phase::Last, b'\r') => Ok(Phase::LastLf),
            (Phase::Last, _) => Ok(Phase::Trailers),
            (Phase::LastLf, b'\n') => Ok(Phase::Done),
            (Phase::SizeLf, _) => Err(BodyError::ChunkSize),
            (Phase::DataCr | Phase::DataLf, _) => Err(BodyError::ChunkEnd),
            (Phase::LastLf, _) => Err(BodyError::MalformedTrailer),
            _ => self.read_extension(byte),
        }
    }

    fn read_size(&mut self, byte: u8) -> Result<Phase, BodyError> {
        match (byte as char).to_digit(16) {
            Some(digit) if self.digits < DIGITS_MAX => {
                self.digits += 1;
                self.remaining = self.remaining << 4 | u64::from(digit);
                Ok(Phase::Size)
            }
            None if self.digits > 0 && byte == b'\r' => Ok(Phase::SizeLf),
            None if self.digits > 0 && b" \t;".contains(&byte) => {
                self.phase = Phase::SizeSpace;
                self.read_extension(byte)
            }
            _ => Err(BodyError::ChunkSize),
        }
    }

    /// Extensions are dropped (RFC 9112 §7.1.1), so only their bytes are checked, not their order.
    fn read_extension(&mut self, byte: u8) -> Result<Phase, BodyError> {
        self.extension_budget = self
            .extension_budget
            .checked_sub(1)
            .ok_or(BodyError::ExtensionsTooLarge)?;
        match (self.phase, byte) {
            (Phase::SizeSpace, b' ' | b'\t') => Ok(Phase::SizeSpace),
            (Phase::SizeSpace, b';') => Ok(Phase::Extension),
            (Phase::SizeSpace, _) => Err(BodyError::ChunkSize),
            (Phase::Extension, b'\r') => Ok(Phase::SizeLf),
            (Phase::Extension, b'"') => Ok(Phase::ExtensionQuoted),
            (Phase::Extension, b' ' | b'\t' | b';' | b'=') => Ok(Phase::Extension),
            (Phase::Extension, _) if is_token(byte) => Ok(Phase::Extension),
            (Phase::ExtensionQuoted, b'"') => Ok(Phase::Extension),
            (Phase::ExtensionQuoted, b'\\') => Ok(Phase::ExtensionEscaped),
            (Phase::ExtensionQuoted | Phase::ExtensionEscaped, b'\t' | b' '..=b'~' | 0x80..) => {
                Ok(Phase::ExtensionQuoted)
            }
            _ => Err(BodyError::ChunkExtension),
        }
    }

    fn read_trailers(&mut self, input: &[u8], sieve: &mut Sieve<'_>) -> Result<usize, BodyError> {
        let limits: TrailerLimits = self.limits;
        let trailers = self
            .trailers
            .get_or_insert_with(|| Box::new(Trailers::new(limits)));
        let (taken, ended) = trailers.collect(input)?;
        if ended {
            if self.decoding {
                trailers.write(&mut Vec::new())?;
            } else {
                trailers.write(sieve.rewritten)?;
            }
            self.trailers = None;
            self.phase = Phase::Done;
        }
        Ok(taken)
    }
}

/// A size line of digits and CRLF: the size, and the length of the line.
fn plain_size(input: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (at, &byte) in input.iter().enumerate().take(usize::from(DIGITS_MAX) + 1) {
        match (byte as char).to_digit(16) {
            Some(digit) if at < usize::from(DIGITS_MAX) => size = size << 4 | u64::from(digit),
            None if at > 0 && input[at..].starts_with(b"\r\n") => return Some((size, at + 2)),
            _ => return None,
        }
    }
    None
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Keeps ranges of the input: nothing is copied until the first byte that does not go on.
struct Sieve<'a> {
    input: &'a [u8],
    rewritten: &'a mut Vec<u8>,
    /// Start of the range that goes on, while one does.
    from: Option<usize>,
    cut: bool,
}

impl<'a> Sieve<'a> {
    fn new(input: &'a [u8], rewritten: &'a mut Vec<u8>, goes: bool) -> Sieve<'a> {
        Sieve {
            input,
            rewritten,
            from: goes.then_some(0),
            cut: !goes,
        }
    }

    /// From `at` on, the input goes on or does not.
    fn turn(&mut self, at: usize, goes: bool) {
        match (self.from, goes) {
            (Some(from), false) => {
                self.rewritten.extend_from_slice(&self.input[from..at]);
                self.from = None;
                self.cut = true;
            }
            (None, true) => self.from = Some(at),
            _ => {}
        }
    }

    fn finish(self, end: usize) -> Output {
        if !self.cut {
            return Output::Verbatim(end);
        }
        if let Some(from) = self.from {
            self.rewritten.extend_from_slice(&self.input[from..end]);
        }
        Output::Rewritten
    }
}
