//! Reads a line of the form for people; its fields are those of [`mod@crate::observe::format`].
//!
//! Times come in ms with three decimals there, which is all of them. Host, method and target come with `\xNN` for what could break
//! the line.

use super::line::{Line, Read, end, misread, reuse};
use super::skipped::Why;
use crate::observe::calendar::Moment;
use crate::observe::record::Timers;

pub(super) fn line(text: &[u8]) -> Read {
    let foreign = || (Why::Foreign, beginning(text));
    let text = std::str::from_utf8(text).map_err(|_| foreign())?;
    let (fields, rest) = text.split_once(" {").ok_or_else(foreign)?;
    let (host, rest) = rest.split_once("} \"").ok_or_else(foreign)?;
    let (request, _) = rest.rsplit_once("\" ").ok_or_else(foreign)?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let Ok(fields) = <[&str; 10]>::try_from(fields) else {
        return Err(foreign());
    };
    if Moment::parse(within_brackets(fields[1]).unwrap_or_default()).is_none() {
        return Err(foreign());
    }
    parts(fields, host, request).map_err(misread)?.sendable()
}

/// Enough of a line to recognise it.
fn beginning(text: &[u8]) -> String {
    const SHOWN: usize = 60;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * SHOWN)]);
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().count() > SHOWN {
        shown.push('…');
    }
    shown
}

fn parts(fields: [&str; 10], host: &str, request: &str) -> Result<Line, String> {
    let [
        client,
        date,
        listener,
        chosen,
        timed,
        status,
        bytes,
        ended,
        retries,
        reused,
    ] = fields;
    let moment = within_brackets(date).and_then(Moment::parse);
    let (backend, server) = pair(chosen).ok_or_else(|| format!("{chosen} is no BACKEND/SERVER"))?;
    let (bytes_in, bytes_out) = pair(bytes).ok_or_else(|| format!("{bytes} is no IN/OUT"))?;
    let (method, target) = method_and_target(request);
    let word = reused.split([':', '>']).next().unwrap_or_default();
    Ok(Line {
        at_unix_ms: moment.ok_or_else(|| format!("{date} is no time"))?.unix_ms,
        client: match client {
            "unix" => None,
            client => Some(client.parse().map_err(|_| format!("{client} is no client"))?),
        },
        listener: listener.to_owned(),
        backend: or_none(backend),
        server: or_none(server),
        method: plain(method),
        host: plain(host),
        target: plain(target),
        status: number(status, "status")?,
        bytes_in: number(bytes_in, "number of bytes")?,
        bytes_out: number(bytes_out, "number of bytes")?,
        timers: timers(timed).ok_or_else(|| format!("{timed} is no TR/Tw/Tc/Tr/Ta"))?,
        retries: number(retries.trim_start_matches('+'), "number of retries")?,
        end: end(ended).ok_or_else(|| format!("{ended} is no end"))?,
        reuse: reuse(word).ok_or_else(|| format!("{reused} says nothing of a connection"))?,
    })
}

fn within_brackets(text: &str) -> Option<&str> {
    text.strip_prefix('[')?.strip_suffix(']')
}

fn pair(text: &str) -> Option<(&str, &str)> {
    text.split_once('/')
}

fn or_none(name: &str) -> String {
    if name == "-" {
        String::new()
    } else {
        name.to_owned()
    }
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no {what}"))
}

/// `METHOD TARGET HTTP/1.N`; nothing of a request that was not understood.
fn method_and_target(request: &str) -> (&str, &str) {
    let parts = request.split_once(' ').and_then(|(method, rest)| {
        let (target, version) = rest.rsplit_once(' ')?;
        version.starts_with("HTTP/").then_some((method, target))
    });
    parts.unwrap_or_default()
}

fn timers(text: &str) -> Option<Timers> {
    let mut phases = text.split('/').map(microseconds);
    let mut next = || phases.next().flatten();
    let (request, queue, connect) = (next()?, next()?, next()?);
    let (response, total) = (next()?, next()?);
    phases.next().is_none().then_some(Timers {
        request,
        queue,
        connect,
        response,
        total,
    })
}

fn microseconds(ms: &str) -> Option<i64> {
    if ms == "-1" {
        return Some(Timers::NOT_REACHED);
    }
    let (whole, rest) = ms.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(rest) || rest.len() != 3 {
        return None;
    }
    whole
        .parse::<i64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(rest.parse().ok()?)
}

/// Undoes `\xNN`; what is no UTF-8 becomes U+FFFD, as in the other form.
fn plain(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split("\\x");
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        match piece
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&piece.as_bytes()[2..]);
            }
            None => bytes.extend_from_slice(piece.as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "10.0.1.2:33317 [2026-03-01T12:14:14.655Z] web api/unix:/run/a 0.010/0.000/-1/1.690/2.109 200 120/2750 \
        -- +1 new:first_request>max {h} \"GET /a b HTTP/1.1\" -";

    fn told(from: &str, to: &str) -> (Why, String) {
        assert!(GOOD.contains(from));
        line(GOOD.replace(from, to).as_bytes()).unwrap_err()
    }

    #[test]
    fn every_field_is_found() {
        let line = line(GOOD.as_bytes()).unwrap();
        assert_eq!(
            (&*line.backend, &*line.server, line.retries),
            ("api", "unix:/run/a", 1)
        );
        assert_eq!(
            (&*line.method, &*line.target, line.reuse.word()),
            ("GET", "/a b", "new")
        );
        assert_eq!((line.timers.connect, line.timers.response), (-1, 1690));
    }

    #[test]
    fn the_field_that_is_wrong_is_told() {
        let wrong = |what: &str| (Why::Misread, what.to_owned());
        assert_eq!(told("10.0.1.2:", "10.0.1:"), wrong("10.0.1:33317 is no client"));
        assert_eq!(told(" 200 ", " OK "), wrong("OK is no status"));
        assert_eq!(told("120/2750", "120"), wrong("120 is no IN/OUT"));
        assert_eq!(
            told("1.690", "1.69"),
            wrong("0.010/0.000/-1/1.69/2.109 is no TR/Tw/Tc/Tr/Ta")
        );
        assert_eq!(
            told(" new:", " old:"),
            wrong("old:first_request>max says nothing of a connection")
        );
        assert_eq!(told("GET /a b HTTP/1.1", "<not understood>").0, Why::Request);
    }

    #[test]
    fn what_is_not_ours_is_shown() {
        let (why, what) = line("listening web 127.0.0.1:8080".as_bytes()).unwrap_err();
        assert_eq!((why, &*what), (Why::Foreign, "listening web 127.0.0.1:8080"));
        assert_eq!(told("2026-03-01T", "01/Mar/2026:").0, Why::Foreign);
        assert_eq!(line(b"\xff\x1b[2J").unwrap_err().1, "\u{fffd}\\u{1b}[2J");
        assert_eq!(
            line("é".repeat(500).as_bytes()).unwrap_err().1,
            format!("{}…", "é".repeat(60))
        );
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(plain("/\\x0a\\x22 \\x5cx\\xc3\\xa9\\xff"), "/\n\" \\xé\u{fffd}");
    }
}
