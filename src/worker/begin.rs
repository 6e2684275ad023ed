//! From a complete head to an exchange: route, edits, the request as it will go out, the first bytes of its body.

use super::Worker;
use super::client::Answered;
use super::session::{Account, Keep, Live, Phase, TunnelEnds};
use crate::decide::cause::Cause;
use crate::decide::exchange::{Arrival, Asked, Event, Exchange, Idempotent};
use crate::decide::reuse::OpenReason;
use crate::decide::route::{self, Action, BackendRef, NO_ROUTE_STATUS, Outcome};
use crate::decide::settings::{Forwarded, VIA_MINOR};
use crate::http1::{self, Body, BodyError, Framing, Method, Output, RequestHead, TrailerLimits, Version};
use crate::net::Key;
use std::io::Write;

/// Bounds of a trailer section.
pub(super) const TRAILERS: TrailerLimits = TrailerLimits { bytes_max: 8 << 10, fields_max: 64 };

/// The route of a request, told without borrowing it.
enum Routed {
    Backend(BackendRef),
    Here,
    Nowhere,
}

impl Worker {
    /// Begins to serve the request at the start of `bytes`; tells how many of them are used up.
    pub(super) fn begin(&mut self, key: Key, place: u32, head: &mut RequestHead, bytes: &[u8]) -> usize {
        let now = self.now;
        let session = self.sessions.get_mut(key).expect("the session that sent the head");
        session.requests = session.requests.saturating_add(1);
        let (listener_id, client, since, pinned) =
            (session.listener, session.client, session.since, session.pinned);
        session.keep = if head.keep_alive && pinned.is_none() && !self.draining { Keep::Yes } else { Keep::No };
        if let Some(statistics) = self.listener_statistics(listener_id) {
            statistics.requests.count();
        }
        let asked = route::Asked {
            method: head.method_name(bytes),
            host: head.authority(bytes),
            path: head.path(bytes),
            query: head.query(bytes),
            client: (!client.ip().is_unspecified()).then(|| client.ip()),
            scheme: "http",
        };
        let Worker { tables, random, .. } = self;
        let listener = tables.get(place).listener(listener_id).expect("its limits were read");
        let choice = listener.settings.routes.choose(&asked, random);
        let route = choice.route;
        let routed = match choice.outcome {
            _ if head.max_forwards == Some(0) => Routed::Nowhere,
            Outcome::Backend(backend) => Routed::Backend(backend),
            Outcome::NoRoute => Routed::Nowhere,
            Outcome::Redirect(_) | Outcome::Respond(_) | Outcome::Deny(_) => Routed::Here,
        };
        let account = self.open_account(since, head, bytes);
        let backend = match routed {
            Routed::Backend(backend) => backend,
            Routed::Here => return self.answer_here(key, place, route, &asked, head, bytes, account),
            Routed::Nowhere => {
                let status = if head.max_forwards == Some(0) { 200 } else { NO_ROUTE_STATUS };
                return self.answer_plainly(key, status, head, bytes, account);
            }
        };

        self.prepare_additions(key, place, route, backend, &asked, head, bytes);
        let mut out = self.buffers.small();
        http1::write_request(bytes, head, &self.additions, &mut out);
        let head_length = out.len();
        let mut body = Body::new(head.framing, TRAILERS);
        let first = match self.first_body_bytes(&mut body, &bytes[head.length..], &mut out) {
            Ok(consumed) => consumed,
            Err(error) => {
                self.buffers.give(out);
                return self.refuse_body(key, error, bytes.len());
            }
        };
        let consumed = head.length + first;
        let arrival = if body.is_done() { Arrival::Whole } else { Arrival::BodyFollows };
        let idempotent = if head.method.is_idempotent() { Idempotent::Yes } else { Idempotent::No };
        let settings = &self.tables.get(place).backends[usize::from(backend.0)].settings;
        let effort = settings.effort;
        self.tables.hold(place);
        let exchange = self.exchanges.insert(Live {
            machine: Exchange::new(effort),
            session: key,
            generation: place,
            backend: backend.0,
            route,
            upstream: None,
            method: head.method,
            version: head.version,
            upgrade: head.upgrade,
            request_body: body,
            response_body: Body::new(Framing::None, TRAILERS),
            out,
            sent: 0,
            head_length,
            input: Vec::new(),
            server_keeps: false,
            decoded: false,
            open_reason: OpenReason::None,
            server_active: now,
            pause_until: 0,
            tunnel: TunnelEnds::default(),
            account: Account { bytes_in: consumed as u64, ..account },
        });
        let session = self.sessions.get_mut(key).expect("the session that sent the head");
        session.phase = Phase::Busy(exchange);
        self.drive(exchange, Event::Start(Asked { idempotent, arrival }));
        consumed
    }

    fn first_body_bytes(
        &mut self,
        body: &mut Body,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, BodyError> {
        if bytes.is_empty() || body.is_done() {
            return Ok(0);
        }
        let step = body.advance(bytes, out)?;
        if let Output::Verbatim(n) = step.output {
            out.extend_from_slice(&bytes[..n]);
        }
        Ok(step.consumed)
    }

    fn refuse_body(&mut self, key: Key, error: BodyError, consumed: usize) -> usize {
        self.refuse(key, Cause::Body(error));
        consumed
    }

    /// Header lines of ours, after the client's own were dropped where they are not to go on.
    fn prepare_additions(
        &mut self,
        key: Key,
        place: u32,
        route: Option<u16>,
        backend: BackendRef,
        asked: &route::Asked<'_>,
        head: &mut RequestHead,
        bytes: &[u8],
    ) {
        let Worker { tables, sessions, additions, .. } = self;
        let session = sessions.get(key).expect("the session that sent the head");
        let generation = tables.get(place);
        let listener = &generation.listener(session.listener).expect("its limits were read").settings;
        additions.clear();
        if !listener.via.is_empty() {
            additions.extend_from_slice(&listener.via);
            if head.version == Version::Http10 {
                additions[VIA_MINOR] = b'0';
            }
        }
        if listener.forwarded != Forwarded::Off {
            if listener.forwarded == Forwarded::Replace {
                head.drop_named(bytes, b"X-Forwarded-For");
            }
            head.drop_named(bytes, b"X-Forwarded-Proto");
            head.drop_named(bytes, b"X-Forwarded-Host");
            if let Some(client) = asked.client {
                let _ = write!(additions, "X-Forwarded-For: {client}\r\n");
            }
            additions.extend_from_slice(b"X-Forwarded-Proto: http\r\n");
            if !asked.host.is_empty() {
                additions.extend_from_slice(b"X-Forwarded-Host: ");
                additions.extend_from_slice(asked.host);
                additions.extend_from_slice(b"\r\n");
            }
        }
        let of_route = route.map(|at| &listener.routes.routes[usize::from(at)].request_edits);
        let of_backend = &generation.backends[usize::from(backend.0)].settings.request_edits;
        for edits in [Some(&listener.request_edits), of_route, Some(of_backend)].into_iter().flatten() {
            if !edits.is_empty() {
                edits.apply(asked, |name| head.drop_named(bytes, name), additions);
            }
        }
    }

    /// A redirect, a fixed response or a deny: answered here, and nothing reaches a server.
    fn answer_here(
        &mut self,
        key: Key,
        place: u32,
        route: Option<u16>,
        asked: &route::Asked<'_>,
        head: &RequestHead,
        bytes: &[u8],
        account: Account,
    ) -> usize {
        let generation = self.tables.get(place).clone(); // not on the path of a forwarded request
        let session = self.sessions.get(key).expect("the session that sent the head");
        let listener = generation.listener(session.listener).expect("its limits were read");
        let route = usize::from(route.expect("only a rule answers here"));
        let mut lines = std::mem::take(&mut self.additions);
        lines.clear();
        let (answered, consumed) = self.answered(key, head, bytes);
        match &listener.settings.routes.routes[route].action {
            Action::Redirect(redirect) => match redirect.render(asked, &mut lines) {
                Ok(()) => {
                    self.log_local(key, account, redirect.status.code(), *b"LR", Some(route as u16), head.version);
                    self.reply(key, redirect.status.code(), answered, &lines, Some((b"", b"")));
                }
                // RD-6: the value would have split the response.
                Err(_) => {
                    self.log_local(key, account, 400, *b"PR", Some(route as u16), head.version);
                    self.reply(key, 400, answered, b"", None);
                }
            },
            Action::Respond(respond) => {
                self.log_local(key, account, respond.status(), *b"LR", Some(route as u16), head.version);
                let body = (respond.content_type().as_bytes(), respond.body());
                self.reply(key, respond.status(), answered, b"", Some(body));
            }
            Action::Deny(status) => {
                self.log_local(key, account, *status, *b"PR", Some(route as u16), head.version);
                self.reply(key, *status, answered, b"", None);
            }
            Action::Backend(_) => unreachable!("a backend is not answered here"),
        }
        self.additions = lines;
        consumed
    }

    fn answer_plainly(
        &mut self,
        key: Key,
        status: u16,
        head: &RequestHead,
        bytes: &[u8],
        account: Account,
    ) -> usize {
        let (answered, consumed) = self.answered(key, head, bytes);
        self.log_local(key, account, status, *b"SC", None, head.version);
        self.reply(key, status, answered, b"", None);
        consumed
    }

    /// The form of our answer. The connection is kept only if the whole request is here: its body is not read for an
    /// answer that does not depend on it.
    fn answered(&self, key: Key, head: &RequestHead, bytes: &[u8]) -> (Answered, usize) {
        let session = self.sessions.get(key).expect("the session that sent the head");
        let bodiless = matches!(head.framing, Framing::None | Framing::Length(0));
        let keep = if bodiless { session.keep } else { Keep::No };
        let answered = Answered { version: head.version, head_request: head.method == Method::Head, keep };
        (answered, if bodiless { head.length } else { bytes.len() })
    }
}
