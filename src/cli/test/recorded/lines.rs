//! Cuts a file into lines without ever holding more than one of them, of a bounded length.

use std::io::{self, BufRead, Read};

/// Bytes of a line, at most. The longest target of the log, all of it escaped, is a fifth of it.
pub(super) const LINE_MAX: usize = 64 << 10;

/// The lines of a file.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

/// A line that is not blank.
pub(super) enum Piece<'a> {
    /// One of a bearable length, without its end.
    Line {
        /// Its bytes.
        text: &'a [u8],
        /// Whether an end of line came behind it.
        ended: bool,
    },
    /// The beginning of a longer one.
    TooLong(&'a [u8]),
}

/// The file could not be read any further.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) line: u64,
    pub(super) error: io::Error,
}

impl Piece<'_> {
    /// Whether the file went on behind it.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self, Piece::TooLong(_) | Piece::Line { ended: true, .. })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Piece::Line { text, .. } | Piece::TooLong(text) => text,
        }
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(input: R) -> Lines<R> {
        Lines {
            input,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// The next line that is not blank, with its number from 1; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Piece<'_>)>, Broken> {
        loop {
            self.number += 1;
            if self.fill().map_err(|error| self.broken(error))? == 0 {
                return Ok(None);
            }
            if self.is_too_long() {
                self.pass_over().map_err(|error| self.broken(error))?;
                break;
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let piece = match self.is_too_long() {
            true => Piece::TooLong(&self.buffer[..LINE_MAX]),
            false => Piece::Line {
                text: self.buffer.trim_ascii_end(),
                ended: self.buffer.ends_with(b"\n"),
            },
        };
        Ok(Some((self.number, piece)))
    }

    fn is_too_long(&self) -> bool {
        self.buffer.len() > LINE_MAX && !self.buffer.ends_with(b"\n")
    }

    /// Reads up to the end of a line, or one byte more than may be; how many.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.clear();
        let mut some = self.input.by_ref().take(LINE_MAX as u64 + 1);
        some.read_until(b'\n', &mut self.buffer)
    }

    fn broken(&self, error: io::Error) -> Broken {
        Broken {
            line: self.number,
            error,
        }
    }

    /// Leaves out the rest of a line.
    fn pass_over(&mut self) -> io::Result<()> {
        loop {
            let rest = self.input.fill_buf()?;
            let end = memchr::memchr(b'\n', rest);
            let (count, over) = match end {
                Some(at) => (at + 1, true),
                None => (rest.len(), rest.is_empty()),
            };
            self.input.consume(count);
            if over {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, String)> {
        let mut lines = Lines::of(text);
        let mut all = Vec::new();
        while let Some((number, piece)) = lines.next().unwrap() {
            let told = match piece {
                Piece::Line { text, ended: true } => String::from_utf8_lossy(text).into_owned(),
                Piece::Line { text, ended: false } => format!("{}…", String::from_utf8_lossy(text)),
                Piece::TooLong(_) => "too long".to_owned(),
            };
            all.push((number, told));
        }
        all
    }

    fn expected(lines: &[(u64, &str)]) -> Vec<(u64, String)> {
        lines
            .iter()
            .map(|(number, text)| (*number, (*text).to_owned()))
            .collect()
    }

    #[test]
    fn both_ends_of_line_and_blank_lines() {
        assert_eq!(
            all(b"a\r\n\n  \r\nb\nc"),
            expected(&[(1, "a"), (4, "b"), (5, "c…")])
        );
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n\n"), []);
        assert_eq!(all(b"\n "), []);
        assert_eq!(all(" ".repeat(LINE_MAX).as_bytes()), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let long = "x".repeat(3 * LINE_MAX);
        let text = format!("a\n{long}\nb\n{long}");
        assert_eq!(
            all(text.as_bytes()),
            expected(&[(1, "a"), (2, "too long"), (3, "b"), (4, "too long")])
        );
        let longest = "x".repeat(LINE_MAX);
        assert_eq!(all(format!("{longest}\nb\n").as_bytes()).len(), 2);
        assert_eq!(all(format!("{longest}\n").as_bytes())[0].1.len(), LINE_MAX);
    }
}
