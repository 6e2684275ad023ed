//! One request at the origin, in the hands of a script, and the gate where scripts wait for the test.
//!
//! A script gets its [`Exchange`] as soon as the head has arrived and does what it likes: read the body or not, answer
//! early, in pieces, chunked, with interim responses, half-close, reset, stall, wait at a [`Gate`], echo a tunnel.
//! Nothing here fails when the proxy is gone: the exchange is over then, and what is still sent goes nowhere.

use super::origin::{SILENCE, Seen, Shared};
use super::wire::{Body, Head, Wire, hash};
use super::{PATIENCE, Why};
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Bytes of a body that a record keeps.
const KEPT: usize = 64 * 1024;

/// One request at the origin, in the hands of the script. When the script returns, what is left of the body is read
/// and the next request is awaited, unless the script ended the connection.
pub(crate) struct Exchange<'a> {
    wire: &'a mut Wire,
    shared: &'a Shared,
    record: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: Head,
    pub(crate) connection: u32,
    pub(crate) request: u32,
    body: Option<Body>,
    open: bool,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(
        wire: &'a mut Wire,
        shared: &'a Shared,
        head: Head,
        connection: u32,
        request: u32,
    ) -> Exchange<'a> {
        let mut parts = head.line.split(' ').map(str::to_owned);
        let method = parts.next().unwrap_or_default();
        let target = parts.next().unwrap_or_default();
        let mut seen = shared.seen.lock().expect("not poisoned");
        seen.push(Seen {
            connection,
            request,
            method: method.clone(),
            target: target.clone(),
            head: head.clone(),
            body: None,
            trailers: Vec::new(),
        });
        let record = seen.len() - 1;
        drop(seen);
        Exchange {
            wire,
            shared,
            record,
            method,
            target,
            head,
            connection,
            request,
            body: None,
            open: true,
        }
    }

    /// The whole body, read now if it was not; `None` when the connection ended before its end.
    pub(crate) fn body(&mut self) -> Option<&[u8]> {
        if self.body.is_none() && self.open {
            let body = match self.head.framing() {
                None => Some(Body::default()),
                Some(framing) => self.wire.body(framing, SILENCE).ok(),
            };
            if let Some(body) = &body {
                let mut seen = self.shared.seen.lock().expect("not poisoned");
                seen[self.record].body = Some(body.bytes[..body.bytes.len().min(KEPT)].to_vec());
                seen[self.record].trailers = body.trailers.clone();
            }
            self.open = body.is_some();
            self.body = body;
        }
        self.body.as_ref().map(|body| body.bytes.as_slice())
    }

    /// Whether another request may follow on the connection.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Waits until at least so many bytes of the body have arrived, raw, and leaves the rest unread.
    pub(crate) fn wait_for_body_bytes(&mut self, count: usize) {
        while self.open && self.wire.buffer.len() < count {
            self.open = self.wire.fill(SILENCE).is_ok();
        }
    }

    /// Sends exactly these bytes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.open = self.open && self.wire.stream.write(bytes.as_ref()).is_ok();
    }

    /// A complete response framed by length, after the whole request was read.
    pub(crate) fn answer(&mut self, status: u16, fields: &str, body: &[u8]) {
        self.body();
        self.answer_early(status, fields, body);
    }

    /// The same without reading the request's body.
    pub(crate) fn answer_early(&mut self, status: u16, fields: &str, body: &[u8]) {
        let length = match status {
            204 | 304 => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        self.send(self.answer_head(status, &format!("{fields}{length}")));
        if self.method != "HEAD" {
            self.send(body);
        }
    }

    /// A complete chunked response with these chunks and trailer lines, after the whole request was read.
    pub(crate) fn answer_chunked(&mut self, chunks: &[&[u8]], trailers: &str) {
        self.body();
        self.send(self.answer_head(200, "Transfer-Encoding: chunked\r\n"));
        for chunk in chunks {
            let mut piece = format!("{:x}\r\n", chunk.len()).into_bytes();
            piece.extend_from_slice(chunk);
            piece.extend_from_slice(b"\r\n");
            self.send(piece);
        }
        self.send(format!("0\r\n{trailers}\r\n"));
    }

    /// The body back again, with its digest.
    pub(crate) fn echo(&mut self) {
        let body = self.body().unwrap_or_default().to_vec();
        self.answer(200, &format!("X-Hash: {}\r\n", hash(&body)), &body);
    }

    /// A status line and these field lines, with the numbers of connection and request.
    pub(crate) fn answer_head(&self, status: u16, fields: &str) -> String {
        let (connection, request) = (self.connection, self.request);
        format!(
            "HTTP/1.1 {status} Scripted\r\nX-Connection: {connection}\r\nX-Request: {request}\r\n{fields}\r\n"
        )
    }

    /// Nothing for so long, or until the proxy ends the connection.
    pub(crate) fn stall(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.wire.fill(left) {
                Ok(()) => {}
                Err(broken) if broken.why == Why::Late => return,
                Err(_) => {
                    self.open = false;
                    return;
                }
            }
        }
    }

    /// Switches protocols and sends back whatever comes, until the other side ends.
    pub(crate) fn echo_tunnel(&mut self, protocol: &str) {
        self.body();
        self.send(self.answer_head(101, &format!("Connection: Upgrade\r\nUpgrade: {protocol}\r\n")));
        while self.open {
            let bytes = std::mem::take(&mut self.wire.buffer);
            self.send(bytes);
            if self.wire.fill(SILENCE).is_err() {
                self.close();
            }
        }
    }

    /// Ends the connection in the regular way.
    pub(crate) fn close(&mut self) {
        self.wire.stream.shutdown(Shutdown::Both);
        self.open = false;
    }

    /// Ends our direction and reads on.
    pub(crate) fn half_close(&mut self) {
        self.wire.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(&mut self) {
        self.wire.stream.reset_on_close();
        self.open = false;
    }

    /// Everything that still comes until the proxy ends its direction.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.open = false;
        self.wire.rest(SILENCE).unwrap_or_default()
    }
}

/// The script of a willing server: `echo` under `/echo`, else [`plain`].
pub(crate) fn willing(exchange: &mut Exchange) {
    if exchange.target.starts_with("/echo") {
        exchange.echo();
    } else {
        plain(exchange);
    }
}

/// 200 with the method and the target as the body.
pub(crate) fn plain(exchange: &mut Exchange) {
    let body = format!("{} {}\n", exchange.method, exchange.target);
    exchange.answer(200, "Content-Type: text/plain\r\n", body.as_bytes());
}

/// A place where scripts wait until the test lets them go.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    arrived: usize,
    open: bool,
}

impl Gate {
    /// Waits until the gate is open.
    pub(crate) fn wait(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().expect("not poisoned");
        state.arrived += 1;
        changed.notify_all();
        drop(
            changed
                .wait_timeout_while(state, SILENCE, |state| !state.open)
                .expect("not poisoned"),
        );
    }

    /// Waits until so many have arrived.
    #[track_caller]
    pub(crate) fn reached(&self, count: usize) {
        let (state, changed) = &*self.0;
        let state = state.lock().expect("not poisoned");
        let (state, waited) = changed
            .wait_timeout_while(state, PATIENCE, |state| state.arrived < count)
            .expect("not poisoned");
        assert!(
            !waited.timed_out(),
            "{} of {count} arrived at the gate",
            state.arrived
        );
    }

    /// Lets everyone pass, from now on.
    pub(crate) fn open(&self) {
        let (state, changed) = &*self.0;
        state.lock().expect("not poisoned").open = true;
        changed.notify_all();
    }
}
