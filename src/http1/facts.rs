//! The one pass over the fields of a head, the same for requests and responses: spans, classification, and what the
//! fields that matter say together. What follows from it is decided by [`super::request`] and [`super::response`].

use super::fields::{Field, Name};
use super::options::{Options, lists, members, same};
use super::refusal::FramingFault;
use super::{Framing, Span};

/// What the fields of a head say.
#[derive(Debug)]
pub(super) struct Facts {
    /// Number of `Host` lines and the value of the last.
    pub(super) hosts: u32,
    pub(super) host: Span,
    pub(super) options: Options,
    /// The value of `Content-Length`, if valid.
    pub(super) length: Option<u64>,
    /// Whether there is a `Transfer-Encoding`.
    pub(super) coded: bool,
    /// The first fault in the framing fields, which a response without content does not mind.
    pub(super) fault: Option<FramingFault>,
    /// Whether a kept line says the framing; otherwise the writer adds one.
    pub(super) framing_line: bool,
    /// There is an `Upgrade` that says to what.
    pub(super) upgrade: bool,
    /// `Upgrade` offers h2c: a server that took it would speak HTTP/2 behind our back.
    pub(super) h2c: bool,
    pub(super) expect: bool,
    pub(super) expects_continue: bool,
    /// `TE` names `trailers`.
    pub(super) trailers: bool,
    pub(super) max_forwards: Option<u32>,
    pub(super) look_alike: bool,
    /// Whether every line is kept and canonical.
    pub(super) verbatim: bool,
}

impl Facts {
    /// Reads the fields of a head that ends, without its empty line, at `end`, into `fields`.
    pub(super) fn read(
        bytes: &[u8],
        headers: &[httparse::Header<'_>],
        end: u32,
        fields: &mut Vec<Field>,
    ) -> Facts {
        let mut facts = Facts::new();
        fields.clear();
        fields.extend(headers.iter().enumerate().map(|(at, header)| {
            let name = Span::locate(bytes, header.name.as_bytes());
            let value = Span::locate(bytes, header.value);
            let next = headers
                .get(at + 1)
                .map_or(end, |next| Span::locate(bytes, next.name.as_bytes()).start);
            let known = Name::of(header.name.as_bytes());
            let keep = known == Name::Other || facts.take(known, header.value, value);
            let canonical = is_canonical(bytes, name, value, next);
            facts.verbatim &= keep & canonical;
            Field {
                name,
                value,
                line: Span {
                    start: name.start,
                    end: next,
                },
                known,
                keep,
                canonical,
            }
        }));
        facts
    }

    fn new() -> Facts {
        Facts {
            hosts: 0,
            host: Span::default(),
            options: Options::default(),
            length: None,
            coded: false,
            fault: None,
            framing_line: false,
            upgrade: false,
            h2c: false,
            expect: false,
            expects_continue: false,
            trailers: false,
            max_forwards: None,
            look_alike: false,
            verbatim: true,
        }
    }

    /// Takes in one field that matters; whether its line may go on.
    fn take(&mut self, known: Name, value: &[u8], span: Span) -> bool {
        match known {
            Name::Host => {
                self.hosts += 1;
                self.host = span;
            }
            Name::ContentLength => return self.take_length(value),
            Name::TransferEncoding => return self.take_coding(value),
            Name::Expect => {
                self.expect = true;
                self.expects_continue |= lists(value, b"100-continue");
            }
            Name::MaxForwards => self.max_forwards = decimal(value).and_then(|count| count.try_into().ok()),
            Name::LookAlike => self.look_alike = true,
            _ => return self.take_hop(known, value),
        }
        true
    }

    /// Fields of this hop (RFC 9110 §7.6.1).
    fn take_hop(&mut self, known: Name, value: &[u8]) -> bool {
        match known {
            Name::Connection => self.options.read(value),
            Name::Te => self.trailers |= lists(value, b"trailers"),
            Name::Upgrade => {
                self.upgrade |= !value.is_empty();
                self.h2c |= lists(value, b"h2c");
            }
            Name::KeepAlive | Name::ProxyConnection => {}
            _ => return true,
        }
        false
    }

    /// Equal lines are merged into the first (RFC 9112 §6.3 rule 5). A length with leading zeros is written afresh: some
    /// read it as octal.
    fn take_length(&mut self, value: &[u8]) -> bool {
        let length = decimal(value);
        match (self.length, length) {
            (_, None) => self.fail(FramingFault::LengthInvalid),
            (Some(first), Some(length)) if first != length => self.fail(FramingFault::LengthConflict),
            (Some(_), Some(_)) => false,
            (None, Some(_)) => {
                self.length = length;
                self.framing_line = value.len() == 1 || value[0] != b'0';
                self.framing_line
            }
        }
    }

    /// Only `chunked` alone is passed on, and in lower case (RFC 9112 §6.1, §7).
    fn take_coding(&mut self, value: &[u8]) -> bool {
        if std::mem::replace(&mut self.coded, true) {
            return self.fail(FramingFault::CodingInvalid);
        }
        if !same(value, b"chunked") {
            return self.fail(if chunked_is_last(value) {
                FramingFault::CodingUnsupported
            } else {
                FramingFault::CodingInvalid
            });
        }
        self.framing_line = value == b"chunked";
        self.framing_line
    }

    fn fail(&mut self, fault: FramingFault) -> bool {
        self.fault.get_or_insert(fault);
        false
    }

    /// The framing that the fields declare, once they are known to be sound; `otherwise` without any.
    pub(super) fn declared(&self, otherwise: Framing) -> Framing {
        match self.length {
            _ if self.coded => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => otherwise,
        }
    }
}

/// Whether other codings come before one final `chunked`.
fn chunked_is_last(value: &[u8]) -> bool {
    let mut codings = members(value);
    let chunked = codings.by_ref().position(|coding| same(coding, b"chunked"));
    chunked.is_some_and(|at| at > 0) && codings.next().is_none()
}

/// Whether a line is exactly `name ":" SP value CRLF`: then it may go on as it came.
fn is_canonical(bytes: &[u8], name: Span, value: Span, end: u32) -> bool {
    value.start == name.end + 2
        && end == value.end + 2
        && bytes[name.end as usize + 1] == b' '
        && bytes[value.end as usize] == b'\r'
}

/// Digits alone, at least one, below 2⁶⁴.
fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            None
        } else {
            sum.checked_mul(10)?.checked_add(u64::from(digit))
        }
    })
}

/// Where the lines of a whole head end and its empty line begins; `length` counts both.
pub(super) fn end_of_lines(bytes: &[u8], length: usize) -> u32 {
    let empty = if bytes[length - 2] == b'\r' { 2 } else { 1 };
    (length - empty) as u32
}

#[cfg(test)]
mod tests {
    use super::{chunked_is_last, decimal};

    #[test]
    fn decimals() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"010"), Some(10));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in [
            "",
            "18446744073709551616",
            "+5",
            "-5",
            "0x5",
            "5_0",
            "5.0",
            "5 0",
            "5;",
            "five",
            "5, 5",
            "\u{b2}5",
        ] {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn only_codings_under_a_final_chunked_are_unsupported_rather_than_wrong() {
        assert!(chunked_is_last(b"gzip, chunked"));
        for value in [
            "",
            "chunked, chunked",
            ",chunked",
            "chunked, gzip",
            "gzip",
            "xchunked",
            "gzip, chunked, chunked",
        ] {
            assert!(!chunked_is_last(value.as_bytes()), "{value}");
        }
    }
}
