//! The client's side of a session: reading heads, answers of our own, writing, closing.

use super::Worker;
use super::session::{Due, Keep, Manner, Phase};
use crate::decide::cause::Cause;
use crate::decide::exchange::{Event, Timer};
use crate::decide::reuse::CloseReason;
use crate::http1::{self, ClientConnection, Limits, Parsed, Version};
use crate::net::{Key, Read};
use crate::shared::statistics;
use std::io::IoSlice;

/// The message that we answer to: what of it decides the answer's form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) version: Version,
    pub(super) head_request: bool,
    pub(super) keep: Keep,
}

/// Nothing was understood of the message: the form that every client understands.
const UNKNOWN: Answered = Answered {
    version: Version::Http11,
    head_request: false,
    keep: Keep::No,
};

impl Worker {
    /// Reads the next request's head, or closes an idle connection that has ended.
    pub(super) fn read_request(&mut self, key: Key, scratch: &mut [u8]) -> bool {
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        if session.has_output() {
            return false; // the last answer first: back-pressure is not reading
        }
        if std::mem::take(&mut session.unseen) {
            let input = std::mem::take(&mut session.input);
            let consumed = self.take_head(key, &input, input.len());
            self.keep_rest(key, input, consumed);
            return true;
        }
        match session.stream.read(scratch) {
            Read::Bytes(n) if session.input.is_empty() => {
                session.active = self.now;
                let consumed = self.take_head(key, &scratch[..n], n);
                self.keep_copy(key, &scratch[consumed..n]);
                true
            }
            Read::Bytes(n) => {
                session.active = self.now;
                let mut input = std::mem::take(&mut session.input);
                input.extend_from_slice(&scratch[..n]);
                let consumed = self.take_head(key, &input, n);
                self.keep_rest(key, input, consumed);
                true
            }
            Read::Empty => false,
            Read::End if matches!(session.phase, Phase::Head(_)) => {
                self.refuse(key, Cause::Incomplete);
                true
            }
            Read::End | Read::Failed(_) => {
                self.close(key);
                false
            }
        }
    }

    /// Keeps what a request left of the bytes it came with, in the buffer they are in.
    fn keep_rest(&mut self, key: Key, mut input: Vec<u8>, consumed: usize) {
        input.drain(..consumed);
        match self.sessions.get_mut(key) {
            Some(session) if !input.is_empty() => {
                session.unseen = !matches!(session.phase, Phase::Head(_));
                session.input = input;
            }
            _ => self.buffers.give(input),
        }
    }

    /// Keeps a copy of bytes that lie in the scratch.
    pub(super) fn keep_copy(&mut self, key: Key, rest: &[u8]) {
        if rest.is_empty() || self.sessions.get(key).is_none() {
            return;
        }
        let mut input = self.buffers.small();
        input.extend_from_slice(rest);
        self.keep_rest(key, input, 0);
    }

    /// Looks for a whole head at the start of `bytes`, the last `fresh` of which were never looked at; tells how many
    /// bytes are used up.
    fn take_head(&mut self, key: Key, bytes: &[u8], fresh: usize) -> usize {
        let Some((place, limits)) = self.limits(key) else {
            self.close(key);
            return bytes.len();
        };
        let session = self.sessions.get_mut(key).expect("the limits are this session's");
        if session.phase == Phase::Idle {
            session.phase = Phase::Head(self.now);
        }
        // A head ends with a line end: without a new one there is nothing to learn, unless it is too long.
        let may_end = memchr::memchr(b'\n', &bytes[bytes.len() - fresh..]).is_some();
        if !may_end && bytes.len() <= limits.request_line_max {
            return 0;
        }
        let mut head = std::mem::take(&mut self.request);
        let consumed = match http1::parse_request(bytes, &limits, &mut head) {
            Ok(Parsed::Complete) => self.begin(key, place, &mut head, bytes),
            Ok(Parsed::Partial) => self.skip_empty_lines(key, bytes),
            Err(refusal) => {
                self.refuse(key, Cause::Head(refusal));
                bytes.len()
            }
        };
        self.request = head;
        consumed
    }

    /// Empty lines between requests are no request: a client that sends only those is idle (RFC 9112 §2.2), and has
    /// been since before them.
    fn skip_empty_lines(&mut self, key: Key, bytes: &[u8]) -> usize {
        let empty = http1::empty_lines(bytes);
        if empty == bytes.len()
            && let Some(session) = self.sessions.get_mut(key)
        {
            session.phase = Phase::Idle;
        }
        empty
    }

    /// The generation a session's next request belongs to, and its listener's limits there.
    fn limits(&self, key: Key) -> Option<(u32, Limits)> {
        let session = self.sessions.get(key)?;
        let place = session.pinned.unwrap_or(self.tables.current());
        let listener = self.tables.get(place).listener(session.listener)?;
        Some((place, listener.settings.limits))
    }

    /// Answers a message that is none, and closes.
    pub(super) fn refuse(&mut self, key: Key, cause: Cause) {
        self.count_cause(key, cause);
        let keep = self.compose(cause.status(), UNKNOWN, b"", None);
        self.log_refused(key, cause);
        self.deliver(key, cause.status(), keep);
    }

    /// Writes a complete answer of ours into `outgoing`; tells what becomes of the connection.
    pub(super) fn compose(
        &mut self,
        status: u16,
        to: Answered,
        extra: &[u8],
        body: Option<(&[u8], &[u8])>,
    ) -> Keep {
        let keep = if self.draining || to.keep == Keep::No {
            Keep::No
        } else {
            Keep::Yes
        };
        let connection = match keep {
            Keep::Yes => ClientConnection::KeepAlive,
            Keep::No => ClientConnection::Close,
        };
        self.outgoing.clear();
        let out = &mut self.outgoing;
        http1::write_reply(out, status, to.version, connection, to.head_request, extra, body);
        keep
    }

    /// Sends the answer that was composed.
    pub(super) fn deliver(&mut self, key: Key, status: u16, keep: Keep) {
        let out = std::mem::take(&mut self.outgoing);
        self.count_reply(key, status, out.len() as u64);
        let sent = self.write_client(key, &[&out]);
        self.outgoing = out;
        match sent {
            Err(_) => self.close(key),
            Ok(()) if keep == Keep::Yes => self.next_request(key),
            Ok(()) => self.begin_closing(key, Manner::Linger),
        }
    }

    /// The session waits for its next request; pipelined bytes may hold it already.
    pub(super) fn next_request(&mut self, key: Key) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.phase = Phase::Idle;
        session.since = self.now;
        session.active = self.now;
    }

    /// Nothing more is read as a request.
    pub(super) fn begin_closing(&mut self, key: Key, manner: Manner) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        session.phase = Phase::Closing(manner);
        session.since = self.now;
        session.unseen = false;
        self.buffers.reclaim(&mut session.input);
    }

    /// Goes on with a close.
    pub(super) fn advance_closing(&mut self, key: Key, manner: Manner, scratch: &mut [u8]) -> bool {
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        if session.has_output() {
            if session.stream.is_dead() {
                self.close(key);
            }
            return false;
        }
        match manner {
            Manner::Plain => {
                self.close(key);
                false
            }
            Manner::Linger => {
                if session.stream.end().is_err() {
                    self.close(key);
                    return false;
                }
                session.phase = Phase::Closing(Manner::Draining);
                session.since = self.now;
                true
            }
            Manner::Draining => match session.stream.read(scratch) {
                Read::Bytes(_) => true,
                Read::Empty => false,
                Read::End | Read::Failed(_) => {
                    self.close(key);
                    false
                }
            },
        }
    }

    /// Writes the parts to the client at once; what it does not take is kept. An error means that it is gone.
    pub(super) fn write_client(&mut self, key: Key, parts: &[&[u8]]) -> std::io::Result<()> {
        let Some(session) = self.sessions.get_mut(key) else {
            return Ok(());
        };
        let mut sent = 0;
        if !session.has_output() {
            sent = match parts {
                [] => 0,
                [whole] => session.stream.write(whole)?,
                [head, body] => session
                    .stream
                    .write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?,
                _ => 0,
            };
            // Its time begins with what it does not take, if it had nothing to take before.
            session.active = self.now;
        }
        for part in parts {
            let skipped = sent.min(part.len());
            sent -= skipped;
            if skipped < part.len() {
                if session.output.capacity() == 0 {
                    session.output = self.buffers.large();
                }
                session.output.extend_from_slice(&part[skipped..]);
            }
        }
        Ok(())
    }

    /// Sends on what the client did not take before.
    pub(super) fn flush_client(&mut self, key: Key) -> bool {
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        if !session.has_output() || !session.stream.is_writable() {
            return false;
        }
        match session.stream.write(&session.output[session.output_sent..]) {
            Ok(0) => false,
            Ok(n) => {
                session.output_sent += n;
                session.active = self.now;
                if !session.has_output() {
                    session.output_sent = 0;
                    self.buffers.reclaim(&mut session.output);
                    self.await_server(key);
                }
                true
            }
            Err(_) => {
                self.client_lost(key);
                false
            }
        }
    }

    /// The server was not read while its client was behind: its time counts from now.
    fn await_server(&mut self, key: Key) {
        if let Some(Phase::Busy(exchange)) = self.sessions.get(key).map(|session| session.phase)
            && let Some(live) = self.exchanges.get_mut(exchange)
        {
            live.server_active = self.now;
        }
    }

    /// The client's connection broke.
    pub(super) fn client_lost(&mut self, key: Key) {
        match self.sessions.get(key).map(|session| session.phase) {
            Some(Phase::Busy(exchange)) => self.drive(exchange, Event::ClientGone),
            Some(_) => self.close(key),
            None => {}
        }
    }

    /// A phase took too long.
    pub(super) fn expire(&mut self, key: Key, due: Due) {
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let phase = session.phase;
        if let Some(statistics) = self.statistics_of(key) {
            match due {
                Due::KeepAlive => statistics.timeouts.count(statistics::Phase::KeepAlive),
                Due::Head => statistics.timeouts.count(statistics::Phase::HttpRequest),
                Due::Linger | Due::Phase(Timer::Client) => {
                    statistics.timeouts.count(statistics::Phase::Client)
                }
                Due::Phase(Timer::Server) => statistics.timeouts.count(statistics::Phase::Server),
                Due::Phase(Timer::Tunnel) => statistics.timeouts.count(statistics::Phase::Tunnel),
                Due::Phase(Timer::Queue) | Due::Pause => {}
            }
        }
        match (due, phase) {
            (Due::Head, _) => self.refuse(key, Cause::TooSlow),
            (Due::Phase(Timer::Queue), Phase::Busy(exchange)) => self.wait_expired(exchange),
            (Due::Phase(timer), Phase::Busy(exchange)) => self.drive(exchange, Event::Expired(timer)),
            (Due::Pause, Phase::Busy(exchange)) => self.drive(exchange, Event::PauseOver),
            _ => self.close(key),
        }
        self.enqueue(key);
    }

    /// Ends a session whose step panicked: everything it holds is given back without another look at its state.
    pub(super) fn abandon(&mut self, key: Key) {
        if let Some(Phase::Busy(exchange)) = self.sessions.get(key).map(|session| session.phase) {
            // The machine may believe that it has nothing left to close: its commands may not have been carried out.
            self.drop_upstream(exchange, CloseReason::Error);
            self.drive(exchange, Event::ClientGone);
            if let Some(mut live) = self.exchanges.remove(exchange) {
                self.leave_seat(&mut live);
                self.retire(live);
            }
        }
        self.close(key);
    }

    /// Closes a client connection on which no request is in progress.
    pub(super) fn close(&mut self, key: Key) {
        let Some(mut session) = self.sessions.remove(key) else {
            return;
        };
        for private in std::mem::take(&mut session.private) {
            self.close_private(private);
        }
        self.buffers.give(session.input);
        self.buffers.give(session.output);
        if let Some(statistics) = self.listener_statistics(session.pinned, session.listener) {
            statistics.sessions.lower();
        }
        if let Some(place) = session.pinned {
            self.tables.release(place);
        }
        self.process.set_load(self.id, self.sessions.len() as u32);
    }
}
