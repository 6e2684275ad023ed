//! Bytes both ways: the hot path. Knows neither policies nor the log.
//!
//! Each round reads one side once into the worker's scratch and writes to the other side from where the bytes lie;
//! only what did not fit is kept. While something is kept for one side, the other is not read: back-pressure is not
//! reading, and memory is bounded by one scratch per direction.

use super::Worker;
use super::begin::TRAILERS;
use super::session::{Delivery, Keep, Live};
use crate::decide::cause::Cause;
use crate::decide::exchange::{Afterwards, Event, RequestSide, ResponseSide, ServerSide};
use crate::http1::{
    self, Body, ClientConnection, Framing, Limits, Output, Parsed, RequestContext, ResponseHead, Version,
};
use crate::net::{Key, Read};
use std::io;

/// A body part up to this is copied behind its rewritten head and goes out with it; a larger one is written from
/// where it lies.
const COPIED_MAX: usize = 4 << 10;
/// Limits of a response's head; beyond them it is no response.
const RESPONSE_LIMITS: Limits = Limits {
    head_max: 60 << 10,
    request_line_max: 8 << 10,
    headers_max: 256,
};

impl Worker {
    /// One round of a request in progress.
    pub(super) fn advance_exchange(&mut self, key: Key, exchange: Key, scratch: &mut [u8]) -> bool {
        if self
            .sessions
            .get(key)
            .is_some_and(|session| session.stream.is_dead())
        {
            self.drive(exchange, Event::ClientGone);
            return true;
        }
        let Some(live) = self.exchanges.get(exchange) else {
            return false;
        };
        match (live.machine.server(), live.machine.response()) {
            (ServerSide::Waiting(..), _) => self.advance_waiting(key, exchange),
            (ServerSide::Connecting(server), _) => self.check_connect(exchange, server),
            (ServerSide::Holding(..), ResponseSide::Tunnel) => self.relay_tunnel(key, exchange, scratch),
            (ServerSide::Holding(..), _) => {
                let sent = self.send_rest(exchange);
                let asked = self.relay_request(key, exchange, scratch);
                let answered = self.relay_response(key, exchange, scratch);
                sent | asked | answered
            }
            _ => false,
        }
    }

    /// Sends what is held of the request, from its first byte, on a connection that was just lent or opened.
    pub(super) fn send_held(&mut self, exchange: Key) {
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.sent = 0;
            live.delivery = Delivery::Nothing;
            self.send_rest(exchange);
        }
    }

    /// Sends what the server did not take before.
    fn send_rest(&mut self, exchange: Key) -> bool {
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return false;
        };
        if live.all_sent() || live.delivery == Delivery::Broken {
            return false;
        }
        let out = std::mem::take(&mut live.out);
        let sent = live.sent;
        let written = self.write_server(exchange, &out[sent..]);
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return true;
        };
        live.out = out;
        match written {
            Ok(0) => false,
            Ok(n) => {
                live.sent += n;
                if live.all_sent() {
                    if !live.machine.wants_held() {
                        live.forget_sent();
                    }
                    if live.machine.request() == RequestSide::Arriving {
                        let session = live.session;
                        self.await_client(session);
                    }
                }
                true
            }
            Err(_) => {
                self.stop_sending(exchange);
                true
            }
        }
    }

    /// The server broke the connection while the request was being sent. It may have answered before, as early refusals
    /// of uploads do: that is read first, and the end behind it tells the machine.
    fn stop_sending(&mut self, exchange: Key) {
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return;
        };
        if live.delivery == Delivery::Nothing {
            return self.drive(exchange, Event::ServerGone); // what it said is no answer to this request
        }
        live.delivery = Delivery::Broken;
        if let Some(stream) = self.upstream_stream(exchange) {
            stream.expect_end();
        }
    }

    /// The client was not read while the server was behind, or not there yet: its time counts from now.
    fn await_client(&mut self, key: Key) {
        if let Some(session) = self.sessions.get_mut(key) {
            session.active = self.now;
        }
    }

    fn write_server(&mut self, exchange: Key, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = self.upstream_stream(exchange) else {
            return Ok(0);
        };
        let n = stream.write(bytes)?;
        if n > 0 {
            let now = self.now;
            let live = self
                .exchanges
                .get_mut(exchange)
                .expect("its stream was just written to");
            live.server_active = now;
            live.delivery = Delivery::Begun;
            live.machine.on(Event::Written);
        }
        Ok(n)
    }

    /// The request's body, from the client to the server.
    fn relay_request(&mut self, key: Key, exchange: Key, scratch: &mut [u8]) -> bool {
        let Some(live) = self.exchanges.get(exchange) else {
            return false;
        };
        if live.machine.request() == RequestSide::Complete
            || !live.all_sent()
            || live.delivery == Delivery::Broken
        {
            return false;
        }
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        match session.stream.read(scratch) {
            Read::Bytes(n) => {
                session.active = self.now;
                self.request_bytes(key, exchange, &scratch[..n]);
                true
            }
            Read::Empty => false,
            // The request can never be complete (RFC 9112 §8).
            Read::End => {
                self.drive(exchange, Event::BadRequest);
                true
            }
            Read::Failed(_) => {
                self.drive(exchange, Event::ClientGone);
                true
            }
        }
    }

    fn request_bytes(&mut self, key: Key, exchange: Key, bytes: &[u8]) {
        let mut rewritten = std::mem::take(&mut self.rewritten);
        rewritten.clear();
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("the exchange that is relayed");
        match live.request_body.advance(bytes, &mut rewritten) {
            Ok(step) => {
                live.account.bytes_in += step.consumed as u64;
                let outgoing = match step.output {
                    Output::Verbatim(n) => &bytes[..n],
                    Output::Rewritten => &rewritten,
                };
                if step.done {
                    live.machine.on(Event::RequestComplete);
                }
                self.send_body(exchange, outgoing);
                self.keep_copy(key, &bytes[step.consumed..]);
            }
            Err(error) => {
                self.count_cause(key, Cause::Body(error));
                self.drive(exchange, Event::BadRequest);
            }
        }
        self.rewritten = rewritten;
    }

    /// Sends a part of the body; all that came before it has gone. A part that may have to be sent again is kept.
    fn send_body(&mut self, exchange: Key, bytes: &[u8]) {
        let held_max = self.measures.held_body;
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("the exchange that is relayed");
        if live.machine.wants_held() {
            if live.out.len() - live.head_length + bytes.len() <= held_max {
                live.out.extend_from_slice(bytes);
                self.send_rest(exchange);
                return;
            }
            live.machine.on(Event::HeldLost);
        }
        live.forget_sent();
        match self.write_server(exchange, bytes) {
            Ok(n) => {
                let live = self.exchanges.get_mut(exchange).expect("it was just written to");
                live.out.extend_from_slice(&bytes[n..]);
            }
            Err(_) => self.stop_sending(exchange),
        }
    }

    /// The response, from the server to the client.
    fn relay_response(&mut self, key: Key, exchange: Key, scratch: &mut [u8]) -> bool {
        if self.sessions.get(key).is_none_or(|session| session.has_output()) {
            return false;
        }
        let now = self.now;
        let Some(stream) = self.upstream_stream(exchange) else {
            return false;
        };
        let read = stream.read(scratch);
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return false;
        };
        match read {
            Read::Bytes(n) => {
                live.server_active = now;
                live.account.server_bytes += n as u64;
                if !live.awaited() {
                    self.response_bytes(key, exchange, &scratch[..n]);
                } else if live.input.is_empty() {
                    self.response_head_bytes(key, exchange, &scratch[..n]);
                } else {
                    live.input.extend_from_slice(&scratch[..n]);
                    // A head ends with a line end: without a new one there is nothing to learn, unless it is too long.
                    let may_end = memchr::memchr(b'\n', &scratch[..n]).is_some();
                    if may_end || live.input.len() > RESPONSE_LIMITS.head_max {
                        let input = std::mem::take(&mut live.input);
                        self.response_head_bytes(key, exchange, &input);
                        self.buffers.give(input);
                    }
                }
                true
            }
            Read::Empty if live.delivery == Delivery::Broken => {
                self.drive(exchange, Event::ServerGone);
                true
            }
            Read::Empty => false,
            Read::End if live.ends_with_close() => {
                self.drive(exchange, Event::ResponseComplete(Afterwards::Ended));
                true
            }
            Read::End | Read::Failed(_) if live.awaited() && !live.input.is_empty() => {
                self.drive(exchange, Event::BadResponse);
                true
            }
            Read::End | Read::Failed(_) => {
                self.drive(exchange, Event::ServerGone);
                true
            }
        }
    }

    /// Heads at the start of `bytes`: interim ones, then the final one.
    fn response_head_bytes(&mut self, key: Key, exchange: Key, mut bytes: &[u8]) {
        let mut head = std::mem::take(&mut self.response);
        while let Some(live) = self.exchanges.get_mut(exchange) {
            let client = live.version;
            let context = RequestContext {
                method: live.method,
                upgrade: live.upgrade,
                client,
            };
            match http1::parse_response(bytes, &RESPONSE_LIMITS, context, &mut head) {
                Ok(Parsed::Partial) => {
                    if !bytes.is_empty() {
                        live.input = self.buffers.small();
                        live.input.extend_from_slice(bytes);
                    }
                    break;
                }
                Ok(Parsed::Complete) if head.is_interim() => {
                    // From here on the server has begun to answer: no other attempt.
                    live.machine.on(Event::HeldLost);
                    if self.forward_interim(key, &head, client, bytes).is_err() {
                        self.drive(exchange, Event::ClientGone);
                        break;
                    }
                    bytes = &bytes[head.length..];
                }
                Ok(Parsed::Complete) => {
                    self.response_head(key, exchange, &mut head, bytes);
                    break;
                }
                Err(bad) => {
                    self.count_bad_response(exchange, bad);
                    self.drive(exchange, Event::BadResponse);
                    break;
                }
            }
        }
        self.response = head;
    }

    /// HTTP/1.0 knows no interim responses (RFC 9110 §15.2).
    fn forward_interim(
        &mut self,
        key: Key,
        head: &ResponseHead,
        client: Version,
        bytes: &[u8],
    ) -> io::Result<()> {
        if client == Version::Http10 {
            return Ok(());
        }
        let mut out = std::mem::take(&mut self.outgoing);
        out.clear();
        http1::write_response(bytes, head, ClientConnection::KeepAlive, client, b"", &mut out);
        let sent = self.write_client(key, &[&out]);
        self.outgoing = out;
        sent
    }

    /// The final head and what came with it. In the usual case both leave in one write, from where they lie.
    fn response_head(&mut self, key: Key, exchange: Key, head: &mut ResponseHead, bytes: &[u8]) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("the exchange that is answered");
        let client = live.version;
        let complete = live.machine.request() == RequestSide::Complete;
        if self.draining || !complete {
            session.keep = Keep::No;
        }
        let wish = match session.keep {
            Keep::Yes => ClientConnection::KeepAlive,
            Keep::No => ClientConnection::Close,
        };
        let connection = head.connection_for(client, wish);
        if connection == ClientConnection::Close {
            session.keep = Keep::No;
        }
        if matches!(head.status, 401 | 407) {
            self.look_for_authentication(exchange, head, bytes);
        }
        self.take_load_report(exchange, head, bytes);
        let live = self.exchanges.get_mut(exchange).expect("looked up above");
        live.account.status = head.status;
        live.account.response_began = self.now;
        live.server_keeps = head.keep_alive;
        live.decoded = head.framing == Framing::Chunked && client == Version::Http10;
        live.response_body = if live.decoded {
            Body::decoding(head.framing, TRAILERS)
        } else {
            Body::new(head.framing, TRAILERS)
        };

        let mut rewritten = std::mem::take(&mut self.rewritten);
        rewritten.clear();
        let rest = &bytes[head.length..];
        if head.switching {
            self.switch(key, exchange, head, bytes);
            self.rewritten = rewritten;
            return;
        }
        match live.response_body.advance(rest, &mut rewritten) {
            Ok(step) => {
                self.prepare_response_additions(exchange, head, bytes);
                self.bind_client(exchange);
                let body = match step.output {
                    Output::Verbatim(n) => &rest[..n],
                    Output::Rewritten => &rewritten,
                };
                let verbatim = head.goes_verbatim(connection, client, &self.additions);
                let sent = match step.output {
                    Output::Verbatim(n) if verbatim => self.write_client(key, &[&bytes[..head.length + n]]),
                    _ => self.write_head_and_body(key, head, bytes, connection, client, body),
                };
                self.account_sent(exchange, body.len() + head.length);
                let live = self
                    .exchanges
                    .get_mut(exchange)
                    .expect("the exchange that is answered");
                live.machine.on(Event::ResponseStarted);
                match sent {
                    Err(_) => self.drive(exchange, Event::ClientGone),
                    Ok(()) if step.done => self.response_done(exchange, rest.len() - step.consumed),
                    Ok(()) => {}
                }
            }
            Err(_) => self.drive(exchange, Event::BadResponse),
        }
        self.rewritten = rewritten;
    }

    fn write_head_and_body(
        &mut self,
        key: Key,
        head: &ResponseHead,
        bytes: &[u8],
        connection: ClientConnection,
        client: Version,
        body: &[u8],
    ) -> io::Result<()> {
        let mut out = std::mem::take(&mut self.outgoing);
        out.clear();
        http1::write_response(bytes, head, connection, client, &self.additions, &mut out);
        let sent = if body.len() <= COPIED_MAX {
            out.extend_from_slice(body);
            self.write_client(key, &[&out])
        } else {
            self.write_client(key, &[&out, body])
        };
        self.outgoing = out;
        sent
    }

    /// The body of the response.
    fn response_bytes(&mut self, key: Key, exchange: Key, bytes: &[u8]) {
        let mut rewritten = std::mem::take(&mut self.rewritten);
        rewritten.clear();
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("the exchange that is answered");
        match live.response_body.advance(bytes, &mut rewritten) {
            Ok(step) => {
                let outgoing = match step.output {
                    Output::Verbatim(n) => &bytes[..n],
                    Output::Rewritten => &rewritten[..],
                };
                live.account.bytes_out += outgoing.len() as u64;
                match self.write_client(key, &[outgoing]) {
                    Err(_) => self.drive(exchange, Event::ClientGone),
                    Ok(()) if step.done => self.response_done(exchange, bytes.len() - step.consumed),
                    Ok(()) => {}
                }
            }
            Err(_) => self.drive(exchange, Event::BadResponse),
        }
        self.rewritten = rewritten;
    }

    fn response_done(&mut self, exchange: Key, excess: usize) {
        let live = self
            .exchanges
            .get(exchange)
            .expect("the exchange that is answered");
        let afterwards = if excess > 0 {
            Afterwards::ExcessData
        } else if live.server_keeps && live.all_sent() && live.delivery != Delivery::Broken {
            Afterwards::Reusable
        } else {
            Afterwards::Ended
        };
        self.drive(exchange, Event::ResponseComplete(afterwards));
    }

    fn account_sent(&mut self, exchange: Key, bytes: usize) {
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.account.bytes_out += bytes as u64;
        }
    }

    /// The server agreed to another protocol: from here on bytes go both ways as they come (RFC 9110 §7.8).
    fn switch(&mut self, key: Key, exchange: Key, head: &ResponseHead, bytes: &[u8]) {
        let client = Version::Http11;
        let mut out = std::mem::take(&mut self.outgoing);
        out.clear();
        http1::write_response(bytes, head, ClientConnection::KeepAlive, client, b"", &mut out);
        out.extend_from_slice(&bytes[head.length..]);
        let sent = self.write_client(key, &[&out]);
        self.account_sent(exchange, out.len());
        self.outgoing = out;
        let early = match self.sessions.get_mut(key) {
            Some(session) => {
                session.keep = Keep::No;
                session.unseen = false;
                std::mem::take(&mut session.input)
            }
            None => Vec::new(),
        };
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("the exchange that switches");
        live.machine.on(Event::Switched);
        if live.all_sent() {
            live.forget_sent();
        }
        live.out.extend_from_slice(&early);
        self.buffers.give(early);
        if sent.is_err() {
            self.drive(exchange, Event::ClientGone);
        }
    }

    /// Both ways at once, until both sides have ended.
    fn relay_tunnel(&mut self, key: Key, exchange: Key, scratch: &mut [u8]) -> bool {
        let sent = self.send_rest(exchange);
        let out = self.tunnel_from_client(key, exchange, scratch);
        let back = self.tunnel_from_server(key, exchange, scratch);
        let Some(live) = self.exchanges.get(exchange) else {
            return true;
        };
        let flushed = live.all_sent()
            && self
                .sessions
                .get(key)
                .is_some_and(|session| !session.has_output());
        if live.tunnel.client && live.tunnel.server && flushed {
            self.drive(exchange, Event::ServerGone);
            return true;
        }
        sent | out | back
    }

    fn tunnel_from_client(&mut self, key: Key, exchange: Key, scratch: &mut [u8]) -> bool {
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return false;
        };
        if !live.all_sent() || live.tunnel.client {
            return false;
        }
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        match session.stream.read(scratch) {
            Read::Bytes(n) => {
                session.active = self.now;
                live.account.bytes_in += n as u64;
                live.forget_sent();
                match self.write_server(exchange, &scratch[..n]) {
                    Ok(sent) => {
                        let live = self.exchanges.get_mut(exchange).expect("it was just written to");
                        live.out.extend_from_slice(&scratch[sent..n]);
                    }
                    Err(_) => self.drive(exchange, Event::ServerGone),
                }
                true
            }
            Read::Empty => false,
            Read::End => {
                live.tunnel.client = true;
                let ended = self
                    .upstream_stream(exchange)
                    .is_none_or(|stream| stream.end().is_ok());
                if !ended {
                    self.drive(exchange, Event::ServerGone);
                }
                true
            }
            Read::Failed(_) => {
                self.drive(exchange, Event::ClientGone);
                true
            }
        }
    }

    fn tunnel_from_server(&mut self, key: Key, exchange: Key, scratch: &mut [u8]) -> bool {
        if self.sessions.get(key).is_none_or(|session| session.has_output()) {
            return false;
        }
        let now = self.now;
        let ended = self.exchanges.get(exchange).is_none_or(|live| live.tunnel.server);
        let Some(stream) = self.upstream_stream(exchange) else {
            return false;
        };
        if ended {
            return false;
        }
        let read = stream.read(scratch);
        let live = self
            .exchanges
            .get_mut(exchange)
            .expect("its stream was just read");
        match read {
            Read::Bytes(n) => {
                live.server_active = now;
                live.account.server_bytes += n as u64;
                live.account.bytes_out += n as u64;
                if self.write_client(key, &[&scratch[..n]]).is_err() {
                    self.drive(exchange, Event::ClientGone);
                }
                true
            }
            Read::Empty => false,
            Read::End => {
                live.tunnel.server = true;
                let session = self.sessions.get_mut(key).expect("looked up above");
                if session.stream.end().is_err() {
                    self.drive(exchange, Event::ClientGone);
                }
                true
            }
            Read::Failed(_) => {
                self.drive(exchange, Event::ServerGone);
                true
            }
        }
    }
}

impl Live {
    /// What has gone is no longer needed.
    fn forget_sent(&mut self) {
        self.out.clear();
        self.sent = 0;
        self.head_length = 0;
    }

    /// Whether the end of the connection is the end of the response.
    fn ends_with_close(&self) -> bool {
        self.machine.response() == ResponseSide::Arriving
            && self.response_body.framing() == Framing::UntilClose
    }
}
