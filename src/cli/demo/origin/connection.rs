//! One connection of a demo origin: read a request, wait, answer, again.
//!
//! One request at a time; what a pipelining client sends ahead stays in `input`. While an answer waits or goes out nothing is
//! read, so a client that does not read is not read from. Before the end what still comes is read away, because closing on unread
//! bytes would reset the connection and take the answer with it.
//!
//! ```text
//! Reading ──request──▶ Waiting ──due──▶ Writing ──sent──▶ Reading │ Draining ──end or due──▶ closed
//! ```

use super::Server;
use super::request::{self, Answer, Missing, Request, SLOW, Taken};
use super::response::{self, Facts};
use mio::net::TcpStream;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

/// How long the end of a closing connection is waited for.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// A client of an origin.
pub(super) struct Connection {
    stream: TcpStream,
    /// Which of the origins it came to.
    pub(super) server: usize,
    /// Counted over all origins; tells a timer of this connection from one of its slot's former owner.
    pub(super) serial: u64,
    /// Connections its origin had accepted when it came.
    number: u64,
    requests: u64,
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    /// Bytes of `/large` still to send after `output`.
    large_left: usize,
    invited: bool,
    /// Whether reading may yield something.
    readable: bool,
    /// Whether the client has sent its last byte: then even a short read does not mean that nothing is left to learn.
    ended: bool,
    phase: Phase,
}

enum Phase {
    Reading,
    Waiting(Request),
    Writing(Then),
    Draining,
}

#[derive(Clone, Copy)]
enum Then {
    Read,
    End,
}

/// What a connection needs next.
pub(super) enum Next {
    /// Its socket's next event.
    Event,
    /// [`Connection::due`] after this time.
    Timer(Duration),
    /// To be dropped.
    Close,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, server: usize, serial: u64, number: u64) -> Connection {
        Connection {
            stream,
            server,
            serial,
            number,
            requests: 0,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            large_left: 0,
            invited: false,
            readable: true,
            ended: false,
            phase: Phase::Reading,
        }
    }

    /// The socket has news; `ended` if among them that the client sends no more.
    pub(super) fn mark(&mut self, ended: bool) {
        self.readable = true;
        self.ended |= ended;
    }

    /// Goes on until it would have to wait.
    pub(super) fn step(&mut self, server: &mut Server, scratch: &mut [u8]) -> Next {
        loop {
            match self.phase {
                Phase::Waiting(_) => return Next::Event,
                Phase::Reading => match request::take(&self.input) {
                    Taken::Whole(request, length) => return self.wait(request, length, server),
                    Taken::Partial(missing) => {
                        if missing == Missing::Invitation {
                            self.invite();
                        }
                        match self.read(scratch) {
                            Ok(0) => return Next::Close,
                            Ok(length) => self.input.extend_from_slice(&scratch[..length]),
                            Err(error) => return next_after(&error),
                        }
                    }
                    Taken::Wrong(status) => {
                        response::refuse(status, &mut self.output);
                        self.phase = Phase::Writing(Then::End);
                    }
                },
                Phase::Writing(then) => match (self.write(), then) {
                    (Ok(()), Then::Read) => self.phase = Phase::Reading,
                    (Ok(()), Then::End) => return self.end(),
                    (Err(error), _) => return next_after(&error),
                },
                Phase::Draining => match self.read(scratch) {
                    Ok(0) => return Next::Close,
                    Ok(_) => {}
                    Err(error) => return next_after(&error),
                },
            }
        }
    }

    /// Its time has come: the answer goes out, or the draining ends.
    pub(super) fn due(&mut self, server: &mut Server, date: &str, scratch: &mut [u8]) -> Next {
        match std::mem::replace(&mut self.phase, Phase::Reading) {
            Phase::Waiting(request) => {
                self.answer(&request, server, date);
                self.step(server, scratch)
            }
            Phase::Draining => Next::Close,
            other => {
                self.phase = other;
                Next::Event
            }
        }
    }

    fn wait(&mut self, request: Request, length: usize, server: &mut Server) -> Next {
        self.input.drain(..length);
        self.invited = false;
        let delay = if request.answer == Answer::LateLine {
            SLOW
        } else {
            server.draw_delay()
        };
        self.phase = Phase::Waiting(request);
        Next::Timer(delay)
    }

    fn answer(&mut self, request: &Request, server: &mut Server, date: &str) {
        self.requests += 1;
        let facts = Facts {
            server: server.name,
            total: server.count_request(),
            connection: self.number,
            request: self.requests,
            date,
        };
        self.large_left = response::respond(request, &facts, &mut self.output);
        self.phase = Phase::Writing(if request.keep_alive { Then::Read } else { Then::End });
    }

    fn invite(&mut self) {
        if !std::mem::replace(&mut self.invited, true) {
            // An empty socket buffer takes 25 bytes; if not, the client sends its body after its own time-out.
            let _ = self.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    fn end(&mut self) -> Next {
        let _ = self.stream.shutdown(std::net::Shutdown::Write); // fails only if the client is gone, which reading shows
        self.input = Vec::new();
        self.phase = Phase::Draining;
        Next::Timer(DRAIN_MAX)
    }

    /// A read shorter than the buffer has emptied the socket, so the next one waits for an event.
    fn read(&mut self, scratch: &mut [u8]) -> io::Result<usize> {
        if !self.readable {
            return Err(ErrorKind::WouldBlock.into());
        }
        let length = retry(|| self.stream.read(scratch))?;
        self.readable = self.ended || length == scratch.len();
        Ok(length)
    }

    fn write(&mut self) -> io::Result<()> {
        while self.sent < self.output.len() {
            self.sent += retry(|| self.stream.write(&self.output[self.sent..]))?;
        }
        self.output.clear();
        self.sent = 0;
        while self.large_left > 0 {
            let from = response::LARGE_LENGTH - self.large_left;
            self.large_left -= retry(|| self.stream.write(&response::large()[from..]))?;
        }
        Ok(())
    }

    /// For the poller.
    pub(super) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }
}

fn next_after(error: &io::Error) -> Next {
    if error.kind() == ErrorKind::WouldBlock {
        Next::Event
    } else {
        Next::Close
    }
}

fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
