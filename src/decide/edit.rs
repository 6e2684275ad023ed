//! Changes to the header fields of a message on its way: set, add, remove.
//!
//! Edits work in two halves, because a message is never rebuilt: fields that came are only *marked* as not going on
//! ([`Edits::drop_fields`]), and ours are appended as ready lines ([`Edits::render`]) that are written behind them. So a set
//! of a later list (route after listener, backend after route) also takes back what an earlier list added. Fields that frame a
//! message or belong to one connection cannot be named at all (RFC 9110 §7.6.1): the proxy writes them itself.

use super::asked::Asked;
use super::mistake::{Kind, Mistake, What};
use super::pattern::check_token;
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
        if text.eq_ignore_ascii_case("host") {
            return Err(Mistake::new(0, What::HostField));
        }
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

/// Removes the lines of that name, in any letter case, from whole header lines.
pub fn drop_lines(lines: &mut Vec<u8>, name: &[u8]) {
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
const RESERVED: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASKED: Asked<'static> = Asked {
        method: b"GET",
        host: b"a.example",
        path: b"/p",
        query: None,
        client: None,
        scheme: "http",
    };

    fn edit(verb: &str, name: &str, value: &str) -> Edit {
        let (name, value) = (FieldName::parse(name).unwrap(), Template::parse(value).unwrap());
        match verb {
            "set" => Edit::Set(name, value),
            "add" => Edit::Add(name, value),
            _ => Edit::Remove(name),
        }
    }

    fn applied(list: Vec<Edit>, before: &str) -> (Vec<String>, String) {
        let (mut dropped, mut lines) = (Vec::new(), before.as_bytes().to_vec());
        let note = |name: &[u8]| dropped.push(String::from_utf8(name.to_vec()).unwrap());
        Edits { list }.apply(&ASKED, note, &mut lines);
        (dropped, String::from_utf8(lines).unwrap())
    }

    #[test]
    fn set_replaces_add_adds_remove_removes() {
        let list = vec![
            edit("set", "X-Host", "{host}"),
            edit("add", "Set-Cookie", "a=1"),
            edit("add", "Set-Cookie", "b=2"),
            edit("remove", "Server", ""),
        ];
        let (dropped, lines) = applied(list, "Via: 1.1 forebay\r\n");
        assert_eq!(dropped, ["X-Host", "Server"]);
        assert_eq!(
            lines,
            "Via: 1.1 forebay\r\nX-Host: a.example\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
        );
    }

    #[test]
    fn a_later_edit_takes_back_what_an_earlier_one_added() {
        let before = "X-A: 1\r\nx-ab: 2\r\nX-a: 3\r\n";
        assert_eq!(
            applied(vec![edit("set", "x-A", "4")], before).1,
            "x-ab: 2\r\nx-A: 4\r\n"
        );
        assert_eq!(applied(vec![edit("remove", "X-A", "")], before).1, "x-ab: 2\r\n");
        assert_eq!(applied(vec![edit("remove", "X", "")], before).1, before);
    }

    #[test]
    fn a_value_that_cannot_be_sent_is_left_out_and_what_it_replaces_is_gone() {
        let asked = Asked {
            path: b"/\r\n",
            ..ASKED
        };
        let (mut dropped, mut lines) = (0, b"X-Path: old\r\n".to_vec());
        let edits = Edits {
            list: vec![edit("set", "X-Path", "{path}"), edit("add", "X-B", "b")],
        };
        edits.apply(&asked, |_| dropped += 1, &mut lines);
        assert_eq!((dropped, lines.as_slice()), (1, &b"X-B: b\r\n"[..]));
    }

    #[test]
    fn fields_of_the_proxy_cannot_be_named() {
        for name in [
            "Connection",
            "transfer-encoding",
            "CONTENT-LENGTH",
            "Upgrade",
            "Keep-Alive",
            "Expect",
            "TE",
        ] {
            let refused = Err(Mistake::new(0, What::ReservedField(name.to_owned())));
            assert_eq!(FieldName::parse(name), refused, "{name}");
        }
        assert_eq!(FieldName::parse("Host"), Err(Mistake::new(0, What::HostField)));
        assert_eq!(
            FieldName::parse("X Y"),
            Err(Mistake::new(1, What::Byte(' ', Kind::FieldName)))
        );
        assert_eq!(
            FieldName::parse("X:"),
            Err(Mistake::new(1, What::Byte(':', Kind::FieldName)))
        );
        assert_eq!(FieldName::parse(""), Err(Mistake::new(0, What::Empty)));
    }

    #[test]
    fn edits_without_holes_need_no_request() {
        assert!(
            Edits {
                list: vec![edit("set", "a", "b"), edit("remove", "c", "")]
            }
            .is_fixed()
        );
        assert!(
            !Edits {
                list: vec![edit("set", "a", "b"), edit("add", "c", "{host}")]
            }
            .is_fixed()
        );
    }

    proptest! {
        /// Against a list of pairs, where set, add and remove are one line each.
        #[test]
        fn lines_agree_with_a_list_of_fields(
            edits in prop::collection::vec(
                (prop::sample::select(vec!["set", "add", "remove"]), "[a-cA-C]{1,2}", "[a-z]{0,3}"), 0..12),
        ) {
            let mut model: Vec<(String, String)> = Vec::new();
            for (verb, name, value) in &edits {
                if *verb != "add" {
                    model.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                }
                if *verb != "remove" {
                    model.push((name.clone(), value.clone()));
                }
            }
            let expected: String = model.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let list = edits.iter().map(|(verb, name, value)| edit(verb, name, value)).collect();
            prop_assert_eq!(applied(list, "").1, expected);
        }
    }
}
