//! How one record reads in the access log: pure text, no files.
//!
//! Two forms. *JSON*, one object a line, for machines: names are stable, fields are only ever added, a phase that was
//! not reached is `null`, times are whole µs. *Human*, one line in the order of LG-1, for eyes: times are ms, a phase
//! that was not reached is `-1`:
//!
//! ```text
//! CLIENT [DATE] LISTENER BACKEND/SERVER TR/Tw/Tc/Tr/Ta STATUS IN/OUT END RETRIES REUSE {HOST} "METHOD TARGET HTTP/1.1" CAUSE
//! ```
//!
//! Whatever a client sent is escaped: no request can break a line or forge another.

use super::calendar::Moment;
use super::record::{Dispatch, Record, Timers};
use std::io::Write;

/// The form of an access log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object.
    Json,
    /// One line for people.
    Human,
}

impl Format {
    /// Appends the line of a record, line feed included.
    pub fn write(self, record: &Record, out: &mut Vec<u8>) {
        match self {
            Format::Json => write_json(record, out),
            Format::Human => write_human(record, out),
        }
        out.push(b'\n');
    }
}

/// Formats into a buffer in memory, which cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)+) => {
        write!($out, $($arguments)+).expect("a Vec takes any bytes")
    };
}

fn write_json(record: &Record, out: &mut Vec<u8>) {
    put!(
        out,
        "{{\"time\":\"{}\",\"client\":",
        Moment {
            unix_ms: record.at_unix_ms
        }
    );
    match record.client {
        Some(client) => put!(out, "\"{client}\""),
        None => out.extend_from_slice(b"null"),
    }
    for (key, text) in [
        ("listener", record.listener.as_bytes()),
        ("backend", record.backend.as_bytes()),
        ("server", record.server.as_bytes()),
        ("method", record.method),
        ("host", record.host),
        ("target", record.target),
    ] {
        put!(out, ",\"{key}\":");
        json_text(text, out);
    }
    put!(out, ",\"version\":\"1.{}\",\"route\":", record.minor_version);
    match record.route {
        Some(route) => put!(out, "{}", u32::from(route) + 1),
        None => out.extend_from_slice(b"null"),
    }
    let (status, bytes_in, bytes_out) = (record.status, record.bytes_in, record.bytes_out);
    put!(
        out,
        ",\"status\":{status},\"bytes_in\":{bytes_in},\"bytes_out\":{bytes_out}"
    );
    for (phase, timer) in PHASES.iter().zip(timers(record)) {
        match timer {
            Timers::NOT_REACHED => put!(out, ",\"{phase}_us\":null"),
            us => put!(out, ",\"{phase}_us\":{us}"),
        }
    }
    let redispatched = record.dispatch == Dispatch::Redispatched;
    put!(
        out,
        ",\"retries\":{},\"redispatched\":{redispatched}",
        record.retries
    );
    for (queue, ahead) in [("server", record.ahead.server), ("backend", record.ahead.backend)] {
        match ahead {
            None => put!(out, ",\"ahead_{queue}\":null"),
            Some(ahead) => put!(out, ",\"ahead_{queue}\":{ahead}"),
        }
    }
    let [by, phase] = record.termination.letters();
    put!(out, ",\"end\":\"{by}{phase}\",\"reuse\":");
    json_text(absent_for_dash(record.reuse.word()), out);
    for (key, reason) in [("opened", record.opened), ("closed", record.closed)] {
        put!(out, ",\"{key}\":");
        json_text(reason.as_bytes(), out);
    }
    out.extend_from_slice(b",\"cause\":");
    json_text(record.cause.as_bytes(), out);
    out.push(b'}');
}

/// Names of the timers in JSON, in the order of [`timers`].
const PHASES: [&str; 5] = ["request", "queue", "connect", "response", "total"];

fn timers(record: &Record) -> [i64; 5] {
    let Timers {
        request,
        queue,
        connect,
        response,
        total,
    } = record.timers;
    [request, queue, connect, response, total]
}

fn absent_for_dash(word: &str) -> &[u8] {
    if word == "-" { b"" } else { word.as_bytes() }
}

/// A JSON string, or `null` for an empty text. Bytes that are no UTF-8 become U+FFFD.
fn json_text(text: &[u8], out: &mut Vec<u8>) {
    if text.is_empty() {
        out.extend_from_slice(b"null");
        return;
    }
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
                // Line and paragraph separators: some readers take them for an end of line.
                '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                    put!(out, "\\u{:04x}", u32::from(character));
                }
                _ => put!(out, "{character}"),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

fn write_human(record: &Record, out: &mut Vec<u8>) {
    match record.client {
        Some(client) => put!(out, "{client}"),
        None => out.extend_from_slice(b"unix"),
    }
    let moment = Moment {
        unix_ms: record.at_unix_ms,
    };
    let (listener, backend, server) = (dash(record.listener), dash(record.backend), dash(record.server));
    put!(out, " [{moment}] {listener} {backend}/{server} ");
    for (place, timer) in timers(record).into_iter().enumerate() {
        if place > 0 {
            out.push(b'/');
        }
        milliseconds(timer, out);
    }
    put!(out, " {} {}/{}", record.status, record.bytes_in, record.bytes_out);
    let plus = if record.dispatch == Dispatch::Redispatched {
        "+"
    } else {
        ""
    };
    let [by, phase] = record.termination.letters();
    put!(
        out,
        " {by}{phase} {plus}{} {}",
        record.retries,
        record.reuse.word()
    );
    for (sign, reason) in [(':', record.opened), ('>', record.closed)] {
        if !reason.is_empty() {
            put!(out, "{sign}{reason}");
        }
    }
    out.extend_from_slice(b" {");
    visible(record.host, out);
    out.extend_from_slice(b"} \"");
    if record.method.is_empty() {
        out.extend_from_slice(b"<not understood>");
    } else {
        visible(record.method, out);
        out.push(b' ');
        visible(record.target, out);
        put!(out, " HTTP/1.{}", record.minor_version);
    }
    put!(out, "\" {}", dash(record.cause));
}

fn dash(name: &str) -> &str {
    if name.is_empty() { "-" } else { name }
}

fn milliseconds(us: i64, out: &mut Vec<u8>) {
    match us {
        Timers::NOT_REACHED => out.extend_from_slice(b"-1"),
        us => put!(out, "{}.{:03}", us / 1000, (us % 1000).unsigned_abs()),
    }
}

/// Printable ASCII as it is, everything else and the marks of this format as `\xNN`.
fn visible(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'{' | b'}' => put!(out, "\\x{byte:02x}"),
            b' '..=b'~' => out.push(byte),
            _ => put!(out, "\\x{byte:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{EndedBy, Phase, Termination};
    use super::super::testing::{example_record as example, refused_record as refused};
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn line(format: Format, record: &Record) -> String {
        let mut out = Vec::new();
        format.write(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn human_lines() {
        assert_eq!(
            line(Format::Human, &example()),
            "10.0.1.2:33317 [2026-03-01T12:14:14.655Z] web api/a 0.010/0.000/0.000/1.690/2.109 200 120/2750 \
             -- 0 idle>max {api.example.com} \"GET /index.html?x=1 HTTP/1.1\" -\n"
        );
        assert_eq!(
            line(Format::Human, &refused()),
            "unix [2026-03-01T12:14:14.655Z] web -/- 0.055/-1/-1/-1/0.060 400 120/2750 \
             PR 0 - {} \"<not understood>\" bad_request_line\n"
        );
        let moved = Record {
            retries: 2,
            dispatch: Dispatch::Redispatched,
            termination: Termination {
                by: EndedBy::ServerTimeout,
                phase: Phase::Headers,
            },
            ..example()
        };
        assert!(line(Format::Human, &moved).contains(" sH +2 idle>max "));
    }

    #[test]
    fn a_json_line_in_full() {
        assert_eq!(
            line(Format::Json, &example()),
            "{\"time\":\"2026-03-01T12:14:14.655Z\",\"client\":\"10.0.1.2:33317\",\"listener\":\"web\",\
             \"backend\":\"api\",\"server\":\"a\",\"method\":\"GET\",\"host\":\"api.example.com\",\
             \"target\":\"/index.html?x=1\",\"version\":\"1.1\",\"route\":1,\"status\":200,\"bytes_in\":120,\
             \"bytes_out\":2750,\"request_us\":10,\"queue_us\":0,\"connect_us\":0,\"response_us\":1690,\
             \"total_us\":2109,\"retries\":0,\"redispatched\":false,\"ahead_server\":null,\"ahead_backend\":0,\
             \"end\":\"--\",\"reuse\":\"idle\",\"opened\":null,\"closed\":\"max\",\"cause\":null}\n"
        );
    }

    #[test]
    fn what_was_not_reached_is_null_in_json() {
        let object: Value = serde_json::from_str(&line(Format::Json, &refused())).unwrap();
        for key in [
            "client",
            "backend",
            "server",
            "method",
            "target",
            "route",
            "queue_us",
            "connect_us",
            "reuse",
            "opened",
            "closed",
        ] {
            assert_eq!(object[key], Value::Null, "{key}");
        }
        assert_eq!(object["request_us"], 55);
        assert_eq!(object["cause"], "bad_request_line");
        assert_eq!(object["end"], "PR");
    }

    #[test]
    fn a_target_cannot_forge_a_line() {
        let record = Record {
            target: b"/\n\"} \\ \x7f\xff",
            host: b"}{\r",
            ..example()
        };
        let human = line(Format::Human, &record);
        assert_eq!(human.matches('\n').count(), 1);
        assert!(
            human.contains("{\\x7d\\x7b\\x0d} \"GET /\\x0a\\x22\\x7d \\x5c \\x7f\\xff HTTP/1.1\""),
            "{human}"
        );
        let json = line(Format::Json, &record);
        assert_eq!(json.matches('\n').count(), 1);
        let object: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(object["target"], "/\n\"} \\ \x7f\u{fffd}");
    }

    proptest! {
        #[test]
        fn every_record_is_one_line_and_json_that_reads_back(
            target in proptest::collection::vec(any::<u8>(), 1..200),
            host in "\\PC{1,40}",
            timers in any::<[i32; 5]>(),
        ) {
            let [request, queue, connect, response, total] = timers.map(|timer| i64::from(timer).max(-1));
            let timers = Timers { request, queue, connect, response, total };
            let record = Record { target: &target, host: host.as_bytes(), timers, ..example() };
            for format in [Format::Json, Format::Human] {
                let line = line(format, &record);
                prop_assert_eq!(line.bytes().filter(|byte| *byte < b' ').count(), 1);
            }
            let object: Value = serde_json::from_str(&line(Format::Json, &record)).unwrap();
            prop_assert_eq!(&object["target"], &Value::from(String::from_utf8_lossy(&target).into_owned()));
            prop_assert_eq!(&object["host"], &Value::from(host));
            let total = (total >= 0).then_some(total);
            prop_assert_eq!(&object["total_us"], &Value::from(total));
        }
    }
}
