//! Whole logs: what is written is what is read, and everything that can be wrong with a file.

use super::*;
use crate::observe::format::Format;
use crate::observe::record::{Record, Reuse, Timers};
use crate::observe::testing::{Folder, example_record, refused_record};

const BEGAN: u64 = 1_772_367_254_655;

/// A request that came so many ms after the first and took so many µs.
fn record(after_ms: u64, total_us: i64) -> Record<'static> {
    let timers = Timers {
        total: total_us,
        ..example_record().timers
    };
    Record {
        at_unix_ms: BEGAN + after_ms,
        timers,
        ..example_record()
    }
}

fn log(format: Format, records: &[Record<'_>]) -> Vec<u8> {
    let mut text = Vec::new();
    records.iter().for_each(|record| format.write(record, &mut text));
    text
}

fn read(text: &[u8]) -> Result<Recording, String> {
    read_from(text, "access.log", REQUESTS_MAX)
}

fn good(text: &[u8]) -> Recording {
    read(text).unwrap_or_else(|told| panic!("{told}"))
}

fn arrivals(recording: &Recording) -> Vec<u64> {
    recording.requests.iter().map(|request| request.at).collect()
}

#[test]
fn what_is_written_in_either_form_is_read() {
    let moved = Record {
        client: Some("[2001:db8::1]:5".parse().unwrap()),
        server: "b",
        host: b"",
        target: b"/\" {x} \\ \x7f",
        retries: 2,
        status: 0,
        reuse: Reuse::New,
        opened: "first_request",
        timers: Timers {
            response: Timers::NOT_REACHED,
            ..record(7, 9_000_000).timers
        },
        ..record(7, 9_000_000)
    };
    let unix = Record {
        client: None,
        backend: "",
        server: "",
        reuse: Reuse::None,
        ..record(3, 10)
    };
    for format in [Format::Json, Format::Human] {
        let recording = good(&log(format, &[moved.clone(), record(0, 2_109), unix.clone()]));
        assert_eq!(arrivals(&recording), [0, 3_000, 7_000]);
        assert_eq!((recording.began_unix_ms, recording.skipped.total()), (BEGAN, 0));
        assert_eq!(
            (
                recording.clients,
                recording.connections,
                recording.without_address
            ),
            (3, 3, 1)
        );
        let [first, second, third] = recording.requests[..] else {
            panic!("three")
        };
        let text = |text| recording.texts.get(text);
        assert_eq!(
            [
                first.listener,
                first.backend,
                first.server,
                first.method,
                first.host,
                first.target
            ]
            .map(text),
            ["web", "api", "a", "GET", "api.example.com", "/index.html?x=1"]
        );
        assert_eq!(
            (first.bytes_in, first.bytes_out, first.status, first.retries),
            (120, 2750, 200, 0)
        );
        let phases = [
            first.head,
            first.queue,
            first.connect,
            first.response,
            first.total,
        ];
        assert_eq!(phases.map(Took::us), [10, 0, 0, 1690, 2109].map(Some));
        assert_eq!((first.end, first.reuse), (*b"--", Reuse::Idle));
        assert_eq!(
            (text(second.backend), text(second.server), second.reuse),
            ("", "", Reuse::None)
        );
        assert_eq!((text(third.host), text(third.target)), ("", "/\" {x} \\ \x7f"));
        assert_eq!((third.retries, third.status, third.reuse), (2, 0, Reuse::New));
        assert_eq!((third.response.us(), third.total.us()), (None, Some(9_000_000)));
    }
}

#[test]
fn a_client_is_an_address_and_a_connection_has_a_port() {
    let from = |client: &str, after| Record {
        client: Some(client.parse().unwrap()),
        ..record(after, 10)
    };
    let recording = good(&log(
        Format::Json,
        &[
            from("10.0.0.1:1", 0),
            from("10.0.0.1:2", 1),
            from("10.0.0.2:1", 2),
            from("10.0.0.1:1", 3),
        ],
    ));
    let numbers = recording
        .requests
        .iter()
        .map(|request| (request.client, request.connection));
    assert_eq!(numbers.collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 2), (0, 0)]);
    assert_eq!((recording.clients, recording.connections), (2, 3));
}

#[test]
fn lines_stand_in_the_order_in_which_requests_ended() {
    let text = log(
        Format::Json,
        &[
            record(5, 1_000),
            record(6, 500),
            record(0, 60_000_000),
            record(59_000, 2_000_000),
        ],
    );
    assert_eq!(arrivals(&good(&text)), [0, 5_000, 6_000, 59_000_000]);
    // The same after `sort`.
    let text = log(
        Format::Json,
        &[record(0, 60_000_000), record(5, 1_000), record(6, 500)],
    );
    assert_eq!(arrivals(&good(&text)), [0, 5_000, 6_000]);
}

#[test]
fn requests_of_one_millisecond_stay_as_their_lines_are() {
    let at = |target: &'static [u8]| Record {
        target,
        ..record(0, 10)
    };
    let recording = good(&log(Format::Human, &[at(b"/2"), at(b"/1"), at(b"/3")]));
    let targets = recording
        .requests
        .iter()
        .map(|request| recording.texts.get(request.target));
    assert_eq!(targets.collect::<Vec<_>>(), ["/2", "/1", "/3"]);
}

#[test]
fn a_clock_that_is_set_back_is_told() {
    let text = log(
        Format::Json,
        &[record(3_600_000, 10), record(3_600_005, 10), record(0, 10)],
    );
    let told = read(&text).unwrap_err();
    assert!(
        told.starts_with("access.log:3: the time goes back by 3600 s here."),
        "{told}"
    );
    assert!(
        told.contains("`head -n 2 access.log` and `tail -n +3 access.log`"),
        "{told}"
    );
    // By less than what is common anyway.
    let text = log(Format::Json, &[record(9_000, 10), record(0, 10)]);
    assert_eq!(arrivals(&good(&text)), [0, 9_000_000]);
}

#[test]
fn other_ends_of_line_and_blank_ones_do_not_matter() {
    let text = String::from_utf8(log(Format::Human, &[record(0, 10), record(1, 10)])).unwrap();
    let recording = good(format!("\r\n{}\r\n", text.replace('\n', "\r\n")).as_bytes());
    assert_eq!(
        (arrivals(&recording), recording.skipped.total()),
        (vec![0, 1_000], 0)
    );
}

#[test]
fn the_last_line_may_be_cut() {
    for format in [Format::Json, Format::Human] {
        let text = log(format, &[record(0, 10), record(1, 10)]);
        let whole = good(&text[..text.len() - 1]);
        assert_eq!((whole.requests.len(), whole.skipped.total()), (2, 0));
        let cut = good(&text[..text.len() - 40]);
        assert_eq!((cut.requests.len(), cut.skipped.count(Why::CutOff)), (1, 1));
        assert_eq!(cut.skipped.examples()[0].line, 2);
    }
}

#[test]
fn what_cannot_be_read_is_counted_with_examples() {
    let mut text = b"listening web 127.0.0.1:8080\n".to_vec();
    text.extend(log(Format::Json, &[record(0, 10), refused_record()]));
    text.extend(log(Format::Human, &[record(1, 10), refused_record()]));
    let broken = String::from_utf8(log(Format::Json, &[record(2, 10)])).unwrap();
    text.extend(
        broken
            .replace("\"status\":200", "\"status\":\"200\"")
            .into_bytes(),
    );
    text.extend(b"\xff\xfe\x00\n");
    text.extend("x".repeat(lines::LINE_MAX + 5).into_bytes());
    text.extend(b"\n");
    let recording = good(&text);
    let reasons = [Why::Foreign, Why::Misread, Why::CutOff, Why::Request];
    let counts = reasons.map(|why| recording.skipped.count(why));
    assert_eq!((recording.requests.len(), counts), (2, [2, 2, 0, 2]));
    let examples = recording.skipped.examples();
    assert_eq!(
        examples.iter().map(|example| example.line).collect::<Vec<_>>(),
        [1, 3, 5, 6, 7]
    );
    assert_eq!(examples[3].what, "`status` is \"200\"");
}

#[test]
fn a_log_of_something_else_is_told() {
    for (text, expected) in [
        (
            "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 2326 \"-\" \"curl\"\n",
            "access.log:1: this is a line of the common or combined format",
        ),
        (
            "10.0.1.2:33317 [06/Feb/2009:12:14:14.655] in b/s 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {h} \"GET / HTTP/1.1\"\n",
            "access.log:1: this is a line of another proxy's log",
        ),
        (
            "{\"level\":\"info\",\"msg\":\"up\"}\n",
            "access.log:1: this is JSON, but no line",
        ),
        ("\u{1f}\u{8b}", "access.log:1: this is no line"),
    ] {
        let told = read(text.as_bytes()).unwrap_err();
        assert!(told.starts_with(expected), "{told}");
        assert!(
            told.contains("\nexpected an access log of this proxy: record one with `log = { format"),
            "{told}"
        );
    }
    // A long one is given up early.
    let told = read("hello\n".repeat(5_000).as_bytes()).unwrap_err();
    assert!(
        told.contains("skipped 1000 lines not of this log\n  line 1, not of this log: hello\n"),
        "{told}"
    );
}

#[test]
fn a_log_without_requests_is_told() {
    for text in ["", "\n\r\n"] {
        assert!(
            read(text.as_bytes())
                .unwrap_err()
                .starts_with("access.log: the log is empty")
        );
    }
    let told = read(&log(Format::Json, &[refused_record()])).unwrap_err();
    assert!(
        told.starts_with("access.log: no request of it can be sent again\nskipped 1 line of a request"),
        "{told}"
    );
    let text = log(Format::Json, &[record(0, 10)]);
    let told = read(&text[..text.len() - 9]).unwrap_err();
    assert!(
        told.contains("skipped 1 line not of this log\n  line 1, not of this log: no JSON: EOF"),
        "{told}"
    );
}

#[test]
fn there_is_a_most_of_requests() {
    let text = log(Format::Json, &[record(0, 10), record(1, 10), record(2, 10)]);
    let told = read_from(&text[..], "access.log", 2).unwrap_err();
    assert_eq!(
        told,
        "access.log:3: a recording has at most 2 requests; replay a part of it, such as `head -n 2 access.log`"
    );
    assert_eq!(read_from(&text[..], "access.log", 3).unwrap().requests.len(), 3);
}

#[test]
fn a_file_is_read_from_its_path() {
    let folder = Folder::new("recorded");
    let path = folder.file("access.log");
    std::fs::write(&path, log(Format::Json, &[record(0, 10)])).unwrap();
    assert_eq!(super::read(&path).unwrap().requests.len(), 1);
    let told = super::read(&folder.file("none.log")).unwrap_err();
    assert!(told.contains("none.log: cannot be read: "), "{told}");
    let told = super::read(&folder.file("")).unwrap_err();
    assert!(told.contains(":1: cannot be read: "), "{told}");
}
