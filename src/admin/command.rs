//! The words of a command line: read, bounded, understood.
//!
//! Words are separated by white space, commands by `;`. There is no quoting; names in the configuration that hold white
//! space or `;` cannot be said here. Whatever is not understood is answered with one line that shows what was expected.

use crate::observe::snapshot::State;
use std::io::{ErrorKind, Read};

/// Most bytes of a line; 4 KiB.
pub const LINE_MAX: usize = 4096;
/// Most words of a command.
pub const WORDS_MAX: usize = 64;

/// Something that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `help`.
    Help,
    /// `show stat`: one line per listener, server and backend (ST-4).
    ShowStat(Form),
    /// `show version`.
    ShowVersion,
    /// `set server BACKEND/SERVER state|weight|maxconn VALUE` (CLI-3).
    SetServer {
        /// Name of the backend.
        backend: String,
        /// Name of the server.
        server: String,
        /// What it shall be.
        setting: Setting,
    },
}

/// What can be decided about a server at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Its state.
    State(State),
    /// Its weight, at most [`WEIGHT_MAX`] (LB-1).
    Weight(u16),
    /// Requests at a time, 1 to [`MAXCONN_MAX`] (Q-3).
    Maxconn(u32),
}

/// The greatest weight.
pub const WEIGHT_MAX: u16 = 256;
/// The greatest limit.
pub const MAXCONN_MAX: u32 = 1_000_000;

/// How numbers are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Comma-separated, a header first.
    Csv,
    /// One JSON object.
    Json,
}

/// Every command with its one-line help.
pub const HELP: &[(&str, &str)] = &[
    ("help", "this list"),
    (
        "set server BACKEND/SERVER maxconn NUMBER",
        "how many requests it takes at a time",
    ),
    (
        "set server BACKEND/SERVER state ready|drain|maint",
        "whether it takes requests",
    ),
    (
        "set server BACKEND/SERVER weight NUMBER",
        "its part of the load, 0 to 256",
    ),
    (
        "show stat",
        "numbers of listeners, servers and backends, comma-separated",
    ),
    ("show stat json", "the same and more as JSON"),
    ("show version", "the version of the running process"),
];

/// Why a line or a command is not obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The line is longer than [`LINE_MAX`].
    LineTooLong,
    /// The line is not UTF-8.
    NotText,
    /// No whole line came before the deadline.
    TooLate,
    /// The connection ended before a line came.
    Nothing,
    /// The command has more words than [`WORDS_MAX`].
    TooManyWords,
    /// There is no such command.
    Unknown(String),
    /// The command was understood up to here.
    Expected {
        /// What should have come.
        expected: &'static str,
        /// What came, if anything.
        found: Option<String>,
    },
    /// It was understood and cannot be done.
    Impossible(String),
}

impl Refusal {
    /// The answer: `error: `, one line, an empty line.
    pub fn text(&self) -> String {
        let reason = match self {
            Refusal::LineTooLong => format!("a line has at most {LINE_MAX} bytes"),
            Refusal::NotText => "the line is not UTF-8".into(),
            Refusal::TooLate => "no command came in time".into(),
            Refusal::Nothing => "no command came".into(),
            Refusal::TooManyWords => format!("a command has at most {WORDS_MAX} words"),
            Refusal::Unknown(words) => format!("unknown command {words:?}; try `help`"),
            Refusal::Expected {
                expected,
                found: Some(found),
            } => format!("expected {expected}, found {found:?}"),
            Refusal::Expected {
                expected,
                found: None,
            } => format!("expected {expected}"),
            Refusal::Impossible(reason) => reason.lines().collect::<Vec<_>>().join(" "),
        };
        format!("error: {reason}\n\n")
    }
}

/// Reads up to the first line feed, or to the end of the stream. What follows is not looked at.
pub fn read_line(stream: &mut impl Read) -> Result<String, Refusal> {
    let mut bytes = Vec::with_capacity(256);
    let mut piece = [0; 256];
    loop {
        let length = match stream.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::TimedOut => return Err(Refusal::TooLate),
            Err(_) => return Err(Refusal::Nothing),
        };
        let end = memchr::memchr(b'\n', &piece[..length]);
        bytes.extend_from_slice(&piece[..end.unwrap_or(length)]);
        if bytes.len() > LINE_MAX {
            return Err(Refusal::LineTooLong);
        }
        if length == 0 && bytes.is_empty() {
            return Err(Refusal::Nothing);
        }
        if end.is_some() || length == 0 {
            return String::from_utf8(bytes).map_err(|_| Refusal::NotText);
        }
    }
}

/// The commands of a line, in order. An empty line asks for help.
pub fn parse_line(line: &str) -> Vec<Result<Command, Refusal>> {
    let commands: Vec<_> = line
        .split(';')
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect();
    if commands.is_empty() {
        return vec![Ok(Command::Help)];
    }
    commands.into_iter().map(parse).collect()
}

fn parse(text: &str) -> Result<Command, Refusal> {
    let words: Vec<_> = text.split_whitespace().take(WORDS_MAX + 1).collect();
    if words.len() > WORDS_MAX {
        return Err(Refusal::TooManyWords);
    }
    let (command, rest) = match words.as_slice() {
        ["help", rest @ ..] => (Command::Help, rest),
        ["show", "version", rest @ ..] => (Command::ShowVersion, rest),
        ["show", "stat", "json", rest @ ..] => (Command::ShowStat(Form::Json), rest),
        ["show", "stat", rest @ ..] => (Command::ShowStat(Form::Csv), rest),
        ["show", rest @ ..] => return Err(expected("`stat` or `version`", rest)),
        ["set", "server", rest @ ..] => return parse_set_server(rest),
        ["set", rest @ ..] => return Err(expected("`server`", rest)),
        [first, ..] => return Err(Refusal::Unknown((*first).to_owned())),
        [] => (Command::Help, &[][..]),
    };
    end(rest)?;
    Ok(command)
}

fn parse_set_server(words: &[&str]) -> Result<Command, Refusal> {
    let (name, words) = words
        .split_first()
        .ok_or_else(|| expected("BACKEND/SERVER", words))?;
    // A server may be named by its address, and a Unix socket's has slashes: the first one separates.
    let (backend, server) = name
        .split_once('/')
        .ok_or_else(|| expected("BACKEND/SERVER", &[name]))?;
    let (property, words) = words.split_first().unwrap_or((&"", &[]));
    let value = words.first();
    let read = match *property {
        "state" => value
            .and_then(|word| state(word))
            .ok_or("`ready`, `drain` or `maint`"),
        "weight" => value
            .and_then(|word| weight(word))
            .ok_or("a number from 0 to 256"),
        "maxconn" => value
            .and_then(|word| maxconn(word))
            .ok_or("a number from 1 to 1000000"),
        "" => return Err(expected("`state`, `weight` or `maxconn`", &[])),
        other => return Err(expected("`state`, `weight` or `maxconn`", &[other])),
    };
    let setting = read.map_err(|form| expected(form, words))?;
    end(&words[1..])?;
    Ok(Command::SetServer {
        backend: backend.into(),
        server: server.into(),
        setting,
    })
}

fn state(word: &str) -> Option<Setting> {
    let state = State::ALL.into_iter().find(|state| state.word() == word)?;
    Some(Setting::State(state))
}

fn weight(word: &str) -> Option<Setting> {
    let weight = word.parse().ok().filter(|weight| *weight <= WEIGHT_MAX)?;
    Some(Setting::Weight(weight))
}

fn maxconn(word: &str) -> Option<Setting> {
    let maxconn = word
        .parse()
        .ok()
        .filter(|maxconn| (1..=MAXCONN_MAX).contains(maxconn))?;
    Some(Setting::Maxconn(maxconn))
}

fn end(rest: &[&str]) -> Result<(), Refusal> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(expected("the end of the command", rest))
    }
}

fn expected(expected: &'static str, found: &[&str]) -> Refusal {
    Refusal::Expected {
        expected,
        found: found.first().map(|word| (*word).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Result<Command, Refusal> {
        let mut commands = parse_line(text);
        assert_eq!(commands.len(), 1);
        commands.remove(0)
    }

    #[test]
    fn what_is_understood() {
        let set_to = |backend: &str, server: &str, setting| Command::SetServer {
            backend: backend.into(),
            server: server.into(),
            setting,
        };
        let set = |backend, server, state| set_to(backend, server, Setting::State(state));
        for (text, command) in [
            ("", Command::Help),
            (" ; ;", Command::Help),
            ("help", Command::Help),
            ("  show   stat\t", Command::ShowStat(Form::Csv)),
            ("show stat json\r", Command::ShowStat(Form::Json)),
            ("show version", Command::ShowVersion),
            ("set server api/a state drain", set("api", "a", State::Drain)),
            (
                "set server api/a weight 256",
                set_to("api", "a", Setting::Weight(256)),
            ),
            (
                "set server api/a maxconn 20",
                set_to("api", "a", Setting::Maxconn(20)),
            ),
            (
                "set server api/127.0.0.1:80 state ready",
                set("api", "127.0.0.1:80", State::Ready),
            ),
            (
                "set server api/unix:/run/a state maint",
                set("api", "unix:/run/a", State::Maint),
            ),
        ] {
            assert_eq!(one(text), Ok(command), "{text}");
        }
        assert_eq!(parse_line("show stat; help ;what").len(), 3);
    }

    #[test]
    fn what_is_not_says_what_was_expected() {
        for (text, answer) in [
            ("hlep", "unknown command \"hlep\"; try `help`"),
            ("help me", "expected the end of the command, found \"me\""),
            ("show", "expected `stat` or `version`"),
            ("show stat csv", "expected the end of the command, found \"csv\""),
            ("set", "expected `server`"),
            ("set weight api/a 3", "expected `server`, found \"weight\""),
            ("set server", "expected BACKEND/SERVER"),
            ("set server api", "expected BACKEND/SERVER, found \"api\""),
            ("set server api/a", "expected `state`, `weight` or `maxconn`"),
            (
                "set server api/a colour 3",
                "expected `state`, `weight` or `maxconn`, found \"colour\"",
            ),
            (
                "set server api/a weight 257",
                "expected a number from 0 to 256, found \"257\"",
            ),
            (
                "set server api/a maxconn 0",
                "expected a number from 1 to 1000000, found \"0\"",
            ),
            ("set server api/a maxconn", "expected a number from 1 to 1000000"),
            ("set server api/a state", "expected `ready`, `drain` or `maint`"),
            (
                "set server api/a state up",
                "expected `ready`, `drain` or `maint`, found \"up\"",
            ),
            (
                "set server api/a state ready now",
                "expected the end of the command, found \"now\"",
            ),
        ] {
            assert_eq!(
                one(text).unwrap_err().text(),
                format!("error: {answer}\n\n"),
                "{text}"
            );
        }
        assert_eq!(one(&"a ".repeat(WORDS_MAX + 1)), Err(Refusal::TooManyWords));
        let long_reason = Refusal::Impossible("two\nlines".into());
        assert_eq!(long_reason.text(), "error: two lines\n\n");
    }

    #[test]
    fn help_shows_nothing_that_is_not_understood() {
        for (command, _) in HELP {
            let example = command
                .replace("BACKEND/SERVER", "api/a")
                .replace("NUMBER", "5")
                .replace("ready|drain|maint", "ready");
            assert!(one(&example).is_ok(), "{command}");
        }
    }

    #[test]
    fn a_line_is_bounded() {
        assert_eq!(read_line(&mut &b"show stat\nmore"[..]), Ok("show stat".into()));
        assert_eq!(read_line(&mut &b"help"[..]), Ok("help".into()));
        assert_eq!(read_line(&mut &b"\n"[..]), Ok(String::new()));
        assert_eq!(read_line(&mut &b""[..]), Err(Refusal::Nothing));
        assert_eq!(read_line(&mut &b"\xff\n"[..]), Err(Refusal::NotText));
        assert_eq!(
            read_line(&mut &[b'x'; LINE_MAX + 1][..]),
            Err(Refusal::LineTooLong)
        );
        assert_eq!(read_line(&mut std::io::repeat(b'x')), Err(Refusal::LineTooLong));
        let longest = [b'x'; LINE_MAX];
        assert_eq!(read_line(&mut &longest[..]).map(|line| line.len()), Ok(LINE_MAX));
    }

    proptest! {
        #[test]
        fn every_refusal_is_one_line(text in "[ -~\\n\\PC]{0,60}") {
            for command in parse_line(&text) {
                if let Err(refusal) = command {
                    prop_assert_eq!(refusal.text().lines().count(), 2, "{}", refusal.text());
                }
            }
        }
    }
}
