//! What is it, if it is no access log of ours? A guess from the first line, for the message.

/// How files begin that were compressed.
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "zcat"),
    (b"\x28\xb5\x2f\xfd", "zstdcat"),
    (b"BZh", "bzcat"),
    (b"\xfd7zXZ", "xzcat"),
];

/// A sentence about that line.
pub(super) fn guess(line: &[u8]) -> String {
    if let Some((_, tool)) = COMPRESSED.iter().find(|(magic, _)| line.starts_with(magic)) {
        return format!("this file is compressed: unpack it first, with `{tool}`");
    }
    if line.starts_with(b"{") {
        return "this is JSON, but no line of an access log of ours".to_owned();
    }
    let text = String::from_utf8_lossy(line);
    match text.split('[').skip(1).find_map(date) {
        Some(Date::WithZone) => "this is a line of the common or combined format of web servers".to_owned(),
        Some(Date::WithMilliseconds) => "this is a line of another proxy's log".to_owned(),
        None => "this is no line of an access log that we know".to_owned(),
    }
}

/// Dates of other logs.
enum Date {
    /// `10/Oct/2000:13:55:36 -0700]`
    WithZone,
    /// `10/Oct/2000:13:55:36.123]`
    WithMilliseconds,
}

fn date(text: &str) -> Option<Date> {
    let (date, _) = text.split_once(']')?;
    let (day, rest) = date.split_once(':')?;
    let is_day = day.len() == 11 && day.split('/').count() == 3;
    match rest.as_bytes().get(8) {
        Some(b' ') if is_day => Some(Date::WithZone),
        Some(b'.') if is_day => Some(Date::WithMilliseconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses() {
        for (line, expected) in [
            (
                "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a.gif HTTP/1.0\" 200 2326",
                "common or combined",
            ),
            (
                "haproxy[9]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 \"GET / HTTP/1.1\"",
                "another proxy",
            ),
            ("{\"ts\":1}", "JSON"),
            ("BZh91AY", "`bzcat`"),
            ("hello [world]", "no line"),
            ("a [b/c/d:e] [10/Oct/2000:13", "no line"),
        ] {
            assert!(
                guess(line.as_bytes()).contains(expected),
                "{line}: {}",
                guess(line.as_bytes())
            );
        }
        assert!(guess(b"\x1f\x8b\x08\x00").contains("`zcat`"));
    }
}
