//! The thread of the demo's origins: poll, accept, step, expire.
//!
//! Sockets register once for both directions. A delay is an entry of a heap, which names a slot and the serial number of the
//! connection it was made for; if another connection is there by now, nothing happens. Tokens are listeners first, then slots.

use super::connection::{Connection, Next};
use super::{Server, Shared};
use mio::{Events, Interest, Poll, Token};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// The thread's state: sockets, connections by slot, and what is due when.
pub(super) struct Turning {
    poll: Poll,
    servers: Vec<Server>,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    timers: BinaryHeap<Reverse<(Instant, usize, u64)>>,
    serial: u64,
    /// Accepting failed for want of descriptors and is tried again every turn.
    starved: bool,
    date: (u64, String),
    now: Instant,
    scratch: Vec<u8>,
    shared: Arc<Shared>,
}

impl Turning {
    pub(super) fn new(poll: Poll, servers: Vec<Server>, shared: Arc<Shared>) -> Turning {
        Turning {
            poll,
            servers,
            connections: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            serial: 0,
            starved: false,
            date: (0, String::new()),
            now: Instant::now(),
            scratch: vec![0; 64 * 1024],
            shared,
        }
    }

    pub(super) fn run(&mut self) {
        let mut events = Events::with_capacity(1024);
        while !self.shared.stop.load(Ordering::Acquire) {
            match self.poll.poll(&mut events, self.sleep_max()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return eprintln!("demo origins: poll: {error}"),
                Ok(()) => self.read_clocks(),
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    Token(at) if at < self.servers.len() => self.accept(at),
                    Token(at) => self.event(
                        at - self.servers.len(),
                        event.is_read_closed() || event.is_error(),
                    ),
                }
            }
            if std::mem::take(&mut self.starved) {
                (0..self.servers.len()).for_each(|at| self.accept(at));
            }
            self.expire();
        }
    }

    /// The poller counts in milliseconds and rounds up; timers are due half of one early, so that the mean is right.
    fn sleep_max(&self) -> Option<Duration> {
        let timer = self
            .timers
            .peek()
            .map(|Reverse((due, ..))| due.saturating_duration_since(self.now + EARLY));
        if self.starved {
            Some(timer.unwrap_or(ACCEPT_PAUSE).min(ACCEPT_PAUSE))
        } else {
            timer
        }
    }

    fn read_clocks(&mut self) {
        self.now = Instant::now();
        let wall = SystemTime::now();
        let second = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        if self.date.0 != second {
            self.date = (second, httpdate::fmt_http_date(wall));
        }
    }

    fn accept(&mut self, at: usize) {
        loop {
            let mut stream = match self.servers[at].listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) =>
                {
                    continue;
                }
                Err(_) => return self.starved = true,
            };
            let slot = self.free.pop().unwrap_or(self.connections.len());
            let token = Token(self.servers.len() + slot);
            let both = Interest::READABLE | Interest::WRITABLE;
            let ready = stream
                .set_nodelay(true)
                .and_then(|()| self.poll.registry().register(&mut stream, token, both));
            if ready.is_err() {
                self.free.push(slot);
                continue;
            }
            self.serial += 1;
            self.servers[at].accepted += 1;
            let connection = Connection::new(stream, at, self.serial, self.servers[at].accepted);
            match self.connections.get_mut(slot) {
                Some(place) => *place = Some(connection),
                None => self.connections.push(Some(connection)),
            }
            self.event(slot, false);
        }
    }

    fn event(&mut self, slot: usize, ended: bool) {
        if let Some(Some(connection)) = self.connections.get_mut(slot) {
            connection.mark(ended);
            let next = connection.step(&mut self.servers[connection.server], &mut self.scratch);
            self.follow(slot, next);
        }
    }

    fn expire(&mut self) {
        while let Some(Reverse((due, slot, serial))) = self.timers.peek().copied()
            && due <= self.now + EARLY
        {
            self.timers.pop();
            if let Some(Some(connection)) = self.connections.get_mut(slot)
                && connection.serial == serial
            {
                let server = &mut self.servers[connection.server];
                let next = connection.due(server, &self.date.1, &mut self.scratch);
                self.follow(slot, next);
            }
        }
    }

    fn follow(&mut self, slot: usize, next: Next) {
        let Some(connection) = &mut self.connections[slot] else {
            return;
        };
        match next {
            Next::Event => {}
            Next::Timer(delay) => self
                .timers
                .push(Reverse((self.now + delay, slot, connection.serial))),
            Next::Close => {
                let _ = self.poll.registry().deregister(connection.stream()); // closing does it as well
                self.connections[slot] = None;
                self.free.push(slot);
            }
        }
    }
}

/// The token of the waker that ends the thread.
pub(super) const WAKER: Token = Token(usize::MAX);
/// Half of what the poller can tell apart.
pub(super) const EARLY: Duration = Duration::from_micros(500);
/// Until accepting is tried again when descriptors are short.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
