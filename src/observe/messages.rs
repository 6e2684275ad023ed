//! Messages to whoever operates the process: one line per event on standard error.
//!
//! ```text
//! 2026-03-01T12:14:14.655Z notice server state changed by="uid=0 pid=71" server=api/a state=drain
//! ```
//!
//! A message is a fixed sentence; what varies stands in its fields. It is queued for a thread that writes, so nobody
//! waits for a slow terminal; a full queue drops and counts. A worker says what traffic can cause any number of times
//! with [`Messages::say`], which lets a sentence through a few times in a while and then counts silently; what an
//! operator or a reload causes is told in full with [`Messages::tell`]. Nothing of a request's way depends on it.

use super::calendar::Moment;
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work that should.
    Error,
    /// Something works less well than it should, or soon will not.
    Warn,
    /// An operator's act and its effect.
    Notice,
    /// The ordinary course of things.
    Info,
    /// For the search of a fault.
    Debug,
}

impl Level {
    /// The word in the line.
    pub fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Notice => "notice",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// What varies in a message: names and values, in order.
pub type Fields<'a> = &'a [(&'a str, &'a dyn Display)];

/// Times one sentence is let through within [`WINDOW`].
pub const BURST: u64 = 10;
/// How long a sentence's burst lasts.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Lines that may wait for the thread that writes.
pub const QUEUE_MAX: usize = 1024;

/// Where messages are put in. Cheap to clone; all clones lead to the same place.
#[derive(Clone, Debug)]
pub struct Messages {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    lowest: Level,
    queue: Sender<Order>,
    dropped: AtomicU64,
    windows: Mutex<HashMap<&'static str, Window>>,
}

/// How often a sentence came in its current window.
#[derive(Debug)]
struct Window {
    began: SystemTime,
    count: u64,
}

#[derive(Debug)]
enum Order {
    Line(String),
    /// Answered once everything before it is written.
    Flush(Sender<()>),
}

impl Messages {
    /// Starts writing to standard error all messages that matter at least as much as `lowest`.
    pub fn to_stderr(lowest: Level) -> std::io::Result<Messages> {
        Messages::start(lowest, std::io::stderr())
    }

    /// Starts writing to `sink`. The thread ends with the last clone.
    pub fn start(lowest: Level, sink: impl Write + Send + 'static) -> std::io::Result<Messages> {
        let (queue, orders) = bounded(QUEUE_MAX);
        std::thread::Builder::new()
            .name("messages".into())
            .spawn(move || write_all(&orders, sink))?;
        let shared = Shared {
            lowest,
            queue,
            dropped: AtomicU64::new(0),
            windows: Mutex::default(),
        };
        Ok(Messages {
            shared: Arc::new(shared),
        })
    }

    /// Says what traffic may cause any number of times: bounded per sentence, never waits.
    pub fn say(&self, level: Level, sentence: &'static str, fields: Fields) {
        if level > self.shared.lowest {
            return;
        }
        let now = SystemTime::now();
        if let Some(suppressed) = self.admit(sentence, now) {
            self.queue(now, level, sentence, fields, suppressed);
        }
    }

    /// Tells what an operator, a reload or the start caused: every one, but never waits either.
    pub fn tell(&self, level: Level, sentence: &'static str, fields: Fields) {
        if level <= self.shared.lowest {
            self.queue(SystemTime::now(), level, sentence, fields, 0);
        }
    }

    /// Messages that found the queue full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything so far is written, at most this long. Before the process ends.
    pub fn flush(&self, patience: Duration) {
        let (done, written) = bounded(1);
        if self
            .shared
            .queue
            .send_timeout(Order::Flush(done), patience)
            .is_ok()
        {
            let _ = written.recv_timeout(patience);
        }
    }

    /// Whether this sentence may pass, and how many were held back since the last that did.
    fn admit(&self, sentence: &'static str, now: SystemTime) -> Option<u64> {
        let mut windows = self.shared.windows.lock();
        let window = windows.entry(sentence).or_insert(Window { began: now, count: 0 });
        // A clock that was set back ends the window as well.
        let over = now.duration_since(window.began).map_or(true, |age| age >= WINDOW);
        let suppressed = if over {
            window.count.saturating_sub(BURST)
        } else {
            0
        };
        if over {
            *window = Window { began: now, count: 0 };
        }
        window.count += 1;
        (window.count <= BURST).then_some(suppressed)
    }

    fn queue(&self, now: SystemTime, level: Level, sentence: &'static str, fields: Fields, suppressed: u64) {
        let line = line(Moment::of(now), level, sentence, fields, suppressed);
        if self.shared.queue.try_send(Order::Line(line)).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that writes. An error of the sink loses that line: there is no other place to say so.
fn write_all(orders: &Receiver<Order>, mut sink: impl Write) {
    for order in orders {
        match order {
            Order::Line(line) => {
                let _ = sink.write_all(line.as_bytes());
            }
            Order::Flush(done) => {
                let _ = sink.flush();
                let _ = done.send(());
            }
        }
    }
}

fn line(moment: Moment, level: Level, sentence: &str, fields: Fields, suppressed: u64) -> String {
    let mut line = format!("{moment} {} {sentence}", level.word());
    for (name, value) in fields {
        field(name, &value.to_string(), &mut line);
    }
    if suppressed > 0 {
        field("suppressed", &suppressed.to_string(), &mut line);
    }
    line.push('\n');
    line
}

/// Appends ` name=value`, the value in quotes if a reader could take it for something else.
fn field(name: &str, value: &str, line: &mut String) {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'=' | b'\\');
    let written = if !value.is_empty() && value.bytes().all(plain) {
        write!(line, " {name}={value}")
    } else {
        write!(line, " {name}={value:?}")
    };
    debug_assert!(written.is_ok(), "a String takes any text");
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sink, collecting};
    use super::*;
    use std::time::UNIX_EPOCH;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_line_has_one_form() {
        let moment = Moment {
            unix_ms: 1_772_367_254_655,
        };
        let fields: Fields = &[
            ("server", &"api/a"),
            ("state", &"two words"),
            ("left", &3),
            ("none", &""),
        ];
        assert_eq!(
            line(moment, Level::Notice, "state changed", fields, 4),
            "2026-03-01T12:14:14.655Z notice state changed server=api/a state=\"two words\" left=3 none=\"\" \
             suppressed=4\n"
        );
        let forged = line(moment, Level::Warn, "x", &[("value", &"a\nb=\"c\"")], 0);
        assert_eq!(
            forged,
            "2026-03-01T12:14:14.655Z warn x value=\"a\\nb=\\\"c\\\"\"\n"
        );
    }

    #[test]
    fn a_level_hides_what_matters_less() {
        let sink = Sink::default();
        let messages = Messages::start(Level::Notice, sink.clone()).unwrap();
        messages.say(Level::Info, "unseen", &[]);
        messages.tell(Level::Debug, "unseen", &[]);
        messages.say(Level::Notice, "seen", &[]);
        messages.tell(Level::Error, "told", &[]);
        messages.flush(PATIENCE);
        let words: Vec<_> = sink.text().lines().map(|line| line[25..].to_owned()).collect();
        assert_eq!(words, ["notice seen", "error told"]);
    }

    #[test]
    fn a_sentence_is_bounded_in_its_window_and_says_what_it_held_back() {
        let (messages, _sink) = collecting();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        for _ in 0..BURST {
            assert_eq!(messages.admit("busy", at(100)), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(messages.admit("busy", at(109)), None);
        }
        assert_eq!(messages.admit("other", at(109)), Some(0));
        assert_eq!(messages.admit("busy", at(110)), Some(7));
        assert_eq!(messages.admit("busy", at(110)), Some(0));
        assert_eq!(messages.admit("busy", at(50)), Some(0), "the clock was set back");
    }

    #[test]
    fn told_messages_are_not_bounded() {
        let (messages, sink) = collecting();
        for number in 0..BURST * 3 {
            messages.tell(Level::Error, "refused", &[("number", &number)]);
        }
        messages.flush(PATIENCE);
        assert_eq!(sink.text().lines().count() as u64, BURST * 3);
    }

    /// A sink that is stuck until it is let go.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_stuck_terminal_holds_nobody_up() {
        let (let_go, held) = std::sync::mpsc::channel();
        let messages = Messages::start(Level::Debug, Stuck(held)).unwrap();
        let told = QUEUE_MAX as u64 + 50;
        for _ in 0..told {
            messages.tell(Level::Error, "x", &[]);
        }
        // One line is in the hands of the thread, or still in the queue.
        assert!((49..=50).contains(&messages.dropped()), "{}", messages.dropped());
        drop(let_go);
        messages.flush(PATIENCE);
    }
}
