//! Changes to the header fields of a message on its way: set, add, remove.
//!
//! Edits work in two halves, because a message is never rebuilt: fields that came are only *marked* as not going on
//! ([`Edits::drop_fields`]), and ours are appended as ready lines ([`Edits::render`]) that are written behind them. So a set
//! of a later list (route after listener, backend after route) also takes back what an earlier list added. Fields that frame a
//! message or belong to one connection cannot be named at all (RFC 9110 §7.6.1): the proxy writes them itself.

use super::mistake::{Kind, Mistake, What};
use super::pattern::check_token;
use super::route::Asked;
use super::template::Template;

/// A list of edits, applied in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// In the order of the file.
    pub list: Vec<Edit>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Every field of that name goes, then one with this value is added.
    Set(FieldName, Template),
    /// One more field.
    Add(FieldName, Template),
    /// Every field of that name goes.
    Remove(FieldName),
}

/// The name of a field that may be edited; written as it was given, compared without case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName(Box<str>);

impl FieldName {
    /// Any token but the names that only the proxy writes.
    pub fn parse(text: &str) -> Result<FieldName, Mistake> {
        check_token(text, Kind::FieldName)?;
        if RESERVED.iter().any(|name| name.eq_ignore_ascii_case(text)) {
            return Err(Mistake::new(0, What::ReservedField(text.to_owned())));
        }
        Ok(FieldName(text.into()))
    }

    /// As it was given.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Edits {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether every value is the same for every request, so that the request need not be at hand.
    pub fn is_fixed(&self) -> bool {
        self.list.iter().all(|edit| match edit {
            Edit::Set(_, value) | Edit::Add(_, value) => value.is_fixed(),
            Edit::Remove(_) => true,
        })
    }

    /// Both halves: [`Edits::drop_fields`], then [`Edits::render`].
    pub fn apply(&self, asked: &Asked<'_>, drop: impl FnMut(&[u8]), lines: &mut Vec<u8>) {
        self.drop_fields(drop);
        self.render(asked, lines);
    }

    /// Names every field of the message that does not go on; `drop` is called with each name.
    pub fn drop_fields(&self, mut drop: impl FnMut(&[u8])) {
        for edit in &self.list {
            if let Edit::Set(name, _) | Edit::Remove(name) = edit {
                drop(name.0.as_bytes());
            }
        }
    }

    /// Appends our fields to `lines`, which holds whole lines only (`Name: value` CRLF), and takes back those that were
    /// there before and are set or removed now. A value that would hold a control character is left out (RD-6).
    pub fn render(&self, asked: &Asked<'_>, lines: &mut Vec<u8>) {
        for edit in &self.list {
            match edit {
                Edit::Set(name, value) => {
                    drop_lines(lines, name.0.as_bytes());
                    add_line(name, value, asked, lines);
                }
                Edit::Add(name, value) => add_line(name, value, asked, lines),
                Edit::Remove(name) => drop_lines(lines, name.0.as_bytes()),
            }
        }
    }
}

fn add_line(name: &FieldName, value: &Template, asked: &Asked<'_>, lines: &mut Vec<u8>) {
    let start = lines.len();
    lines.extend_from_slice(name.0.as_bytes());
    lines.extend_from_slice(b": ");
    match value.render(asked, lines) {
        Ok(()) => lines.extend_from_slice(b"\r\n"),
        Err(_) => lines.truncate(start),
    }
}

fn drop_lines(lines: &mut Vec<u8>, name: &[u8]) {
    let mut start = 0;
    while let Some(at) = memchr::memchr(b'\n', &lines[start..]) {
        let end = start + at + 1;
        if is_named(&lines[start..end], name) {
            lines.drain(start..end);
        } else {
            start = end;
        }
    }
}

fn is_named(line: &[u8], name: &[u8]) -> bool {
    line.get(name.len()) == Some(&b':') && line[..name.len()].eq_ignore_ascii_case(name)
}

/// Fields of one connection (RFC 9110 §7.6.1), fields that frame the message (RFC 9112 §6), and those whose meaning the
/// proxy takes part in.
const RESERVED: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "trailers",
    "transfer-encoding",
    "upgrade",
];
