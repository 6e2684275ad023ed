//! What several tests of this module and of `admin` need: folders that go away, messages that are kept, examples.

use super::messages::{Level, Messages};
use super::record::{Ahead, Dispatch, EndedBy, Phase, Record, Reuse, Termination, Timers};
use super::snapshot::{
    Backend, Count, Listener, LogCounts, Policy, Process, Queue, Server, ServerTotals, Snapshot, State,
    StatusClasses, Worker,
};
use parking_lot::Mutex;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Longer than anything in a test may take.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Collects what is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Messages that go to a sink, all levels.
pub(crate) fn collecting() -> (Messages, Sink) {
    let sink = Sink::default();
    (Messages::start(Level::Debug, sink.clone()).unwrap(), sink)
}

/// A folder of one test, removed with it.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("forebay-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Looks again and again, for a bounded time.
pub(crate) fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !reached() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A request that went well.
pub(crate) fn example_record() -> Record<'static> {
    Record {
        at_unix_ms: 1_772_367_254_655,
        client: Some("10.0.1.2:33317".parse().unwrap()),
        listener: "web",
        backend: "api",
        server: "a",
        route: Some(0),
        method: b"GET",
        host: b"api.example.com",
        target: b"/index.html?x=1",
        minor_version: 1,
        status: 200,
        bytes_in: 120,
        bytes_out: 2750,
        timers: Timers {
            request: 10,
            queue: 0,
            connect: 0,
            response: 1690,
            total: 2109,
        },
        retries: 0,
        ahead: Ahead {
            server: None,
            backend: Some(0),
        },
        dispatch: Dispatch::First,
        termination: Termination::NORMAL,
        reuse: Reuse::Idle,
        opened: "",
        closed: "max",
        cause: "",
    }
}

/// A request that was never understood.
pub(crate) fn refused_record() -> Record<'static> {
    Record {
        client: None,
        backend: "",
        server: "",
        route: None,
        method: b"",
        host: b"",
        target: b"",
        status: 400,
        timers: Timers {
            request: 55,
            total: 60,
            ..Timers::default()
        },
        termination: Termination {
            by: EndedBy::Proxy,
            phase: Phase::Request,
        },
        reuse: Reuse::None,
        closed: "",
        cause: "bad_request_line",
        ..example_record()
    }
}

/// A snapshot in which every number is different, so that a mix-up shows.
pub(crate) fn example_snapshot() -> Snapshot {
    Snapshot {
        process: Process {
            version: "1.2.3",
            pid: 4242,
            started: UNIX_EPOCH + Duration::from_secs(1000),
            taken: UNIX_EPOCH + Duration::from_secs(1090),
            generation: 3,
            failed_reloads: 1,
            descriptors: 77,
            descriptor_limit: 1024,
            log: LogCounts {
                written: 500,
                dropped: 6,
                failed: 7,
            },
            messages_dropped: 8,
            policies_replaced: 1,
            ..Process::default()
        },
        workers: (1..=2).map(worker).collect(),
        listeners: vec![listener()],
        policies: vec![Policy {
            name: "steady".to_owned(),
            attachment: "api".to_owned(),
            calls: 900,
            remembered: 700,
            abstained: 3,
            unusable: 2,
            rejected: 1,
            faults: vec![Count {
                cause: "deadline",
                total: 1,
            }],
            counters: vec![("hits".to_owned(), 11), ("misses".to_owned(), 12)],
            gauges: vec![("depth".to_owned(), -3)],
        }],
        backends: vec![Backend {
            queue: queue(90),
            budget_spent: 95,
            choices: vec![
                Count {
                    cause: "plan",
                    total: 700,
                },
                Count {
                    cause: "pick",
                    total: 200,
                },
                Count {
                    cause: "native",
                    total: 100,
                },
            ],
            cookies_missed: vec![Count {
                cause: "unknown",
                total: 4,
            }],
            name: "api".into(),
            balance: "leastconn".into(),
            waiting: 2,
            servers: vec![
                server("a", State::Ready, 1000),
                server("b", State::Drain, 2000),
                server("c", State::Maint, 3000),
            ],
        }],
    }
}

fn worker(number: u16) -> Worker {
    let base = 10_000 * u64::from(number);
    Worker {
        number,
        turns: base,
        accepts: base + 1,
        hand_offs_given: base + 2,
        hand_offs_taken: base + 3,
        sessions: base + 4,
        takeovers: base + 15,
        panics: base + 5,
        accept_pauses: base + 6,
    }
}

fn listener() -> Listener {
    Listener {
        name: "web".into(),
        addresses: vec!["127.0.0.1:8080".into(), "[::1]:8080".into()],
        connections: 31,
        sessions: 32,
        requests: 33,
        refused: vec![
            Count {
                cause: "bad_host",
                total: 34,
            },
            Count {
                cause: "head_too_large",
                total: 35,
            },
        ],
        replies: StatusClasses {
            by_class: [36, 37, 38, 39, 40],
            other: 41,
        },
        timeouts: vec![Count {
            cause: "http_request",
            total: 42,
        }],
        bytes_in: 43,
        bytes_out: 44,
    }
}

fn queue(base: u64) -> Queue {
    Queue {
        longest: base,
        waits: base + 1,
        time: (base + 1) * 2_000,
        ends: vec![
            Count {
                cause: "timeout",
                total: base + 2,
            },
            Count {
                cause: "full",
                total: base + 3,
            },
        ],
    }
}

fn server(name: &str, state: State, base: u64) -> Server {
    Server {
        name: name.into(),
        address: format!("10.0.0.1:{base}"),
        weight: 2,
        state,
        served: base + 1,
        waiting: base + 2,
        limit: (state == State::Ready).then_some(base + 3),
        used: base + 4,
        max_used: base + 5,
        need: base + 6,
        queue: queue(base + 50),
        idle: base + 7,
        safe: base + 8,
        totals: ServerTotals {
            requests: base + 11,
            connects: base + 12,
            reuses: base + 13,
            takeovers: base + 21,
            connect_failures: base + 14,
            reuse_aborts: base + 15,
            retries: base + 16,
            redispatches: base + 17,
            responses: StatusClasses {
                by_class: [base + 21, base + 22, base + 23, base + 24, base + 25],
                other: 1,
            },
            bytes_in: base + 31,
            bytes_out: base + 32,
            response_errors: base + 26,
            load_reports: vec![
                Count {
                    cause: "read",
                    total: base + 27,
                },
                Count {
                    cause: "malformed",
                    total: 2,
                },
            ],
            timed_responses: base / 10,
            response_time: base * 1000,
            timeouts: vec![Count {
                cause: "connect",
                total: base + 44,
            }],
            opens: vec![Count {
                cause: "none",
                total: base + 41,
            }],
            closes: vec![
                Count {
                    cause: "remote",
                    total: base + 42,
                },
                Count {
                    cause: "purge",
                    total: base + 43,
                },
            ],
        },
    }
}
