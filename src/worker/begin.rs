//! From a complete head to an exchange: route, edits, the request as it will go out, the first bytes of its body.

use super::client::Answered;
use super::session::{Account, Delivery, Keep, Live, Phase, TunnelEnds};
use super::{Current, Worker};
use crate::decide::additions;
use crate::decide::cause::Cause;
use crate::decide::edit::Edits;
use crate::decide::exchange::{Arrival, Asked, Event, Exchange, Idempotent};
use crate::decide::reuse::OpenReason;
use crate::decide::route::{self, Action, BackendRef, NO_ROUTE_STATUS, Outcome};
use crate::http1::{
    self, Body, BodyError, Framing, Method, Output, RequestHead, ResponseHead, TrailerLimits,
};
use crate::net::Key;
use crate::shared::generation::ListenerId;

/// Bounds of a trailer section.
pub(super) const TRAILERS: TrailerLimits = TrailerLimits {
    bytes_max: 8 << 10,
    fields_max: 64,
};

/// A request that is being begun: where it came from and what it asks.
struct Incoming<'b> {
    key: Key,
    /// The generation that it belongs to.
    place: u32,
    route: Option<u16>,
    asked: route::Asked<'b>,
    bytes: &'b [u8],
}

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
        let session = self
            .sessions
            .get_mut(key)
            .expect("the session that sent the head");
        session.requests = session.requests.saturating_add(1);
        let (listener_id, client, since, pinned) = (
            session.listener,
            session.client,
            session.message_began(),
            session.pinned,
        );
        session.keep = if head.keep_alive && pinned.is_none() && !self.draining {
            Keep::Yes
        } else {
            Keep::No
        };
        if let Some(statistics) = self.listener_statistics(pinned, listener_id) {
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
        let listener = tables
            .get(place)
            .listener(listener_id)
            .expect("its limits were read");
        let choice = listener.settings.routes.choose(&asked, random);
        let route = choice.route;
        let routed = match choice.outcome {
            _ if head.max_forwards == Some(0) => Routed::Nowhere,
            Outcome::Backend(backend) => Routed::Backend(backend),
            Outcome::NoRoute => Routed::Nowhere,
            Outcome::Redirect(_) | Outcome::Respond(_) | Outcome::Deny(_) => Routed::Here,
        };
        let incoming = Incoming {
            key,
            place,
            route,
            asked,
            bytes,
        };
        let account = self.open_account(since, head, bytes);
        let backend = match routed {
            Routed::Backend(backend) => backend,
            Routed::Here => return self.answer_here(&incoming, head, account),
            Routed::Nowhere => {
                // RFC 9110 §7.6.2: the final recipient of OPTIONS is us; of TRACE too, which we do not do.
                let status = match (head.max_forwards, head.method) {
                    (Some(0), Method::Options) => 200,
                    (Some(0), _) => 501,
                    _ => NO_ROUTE_STATUS,
                };
                return self.answer_plainly(key, status, head, bytes, account);
            }
        };

        self.prepare_additions(&incoming, backend, head);
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
        let arrival = if body.is_done() {
            Arrival::Whole
        } else {
            Arrival::BodyFollows
        };
        let idempotent = if head.method.is_idempotent() {
            Idempotent::Yes
        } else {
            Idempotent::No
        };
        let effort = self.tables.get(place).backends[usize::from(backend.0)]
            .settings
            .effort;
        let response_lines = self.prepare_response_lines(&incoming, backend);
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
            delivery: Delivery::Nothing,
            head_length,
            input: Vec::new(),
            response_lines,
            server_keeps: false,
            decoded: false,
            open_reason: OpenReason::None,
            server_active: now,
            pause_until: 0,
            tunnel: TunnelEnds::default(),
            account: Account {
                bytes_in: consumed as u64,
                ..account
            },
        });
        let session = self
            .sessions
            .get_mut(key)
            .expect("the session that sent the head");
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
    fn prepare_additions(&mut self, incoming: &Incoming<'_>, backend: BackendRef, head: &mut RequestHead) {
        let Incoming {
            key,
            place,
            route,
            asked,
            bytes,
        } = incoming;
        let Worker {
            tables,
            sessions,
            additions,
            ..
        } = self;
        let session = sessions.get(*key).expect("the session that sent the head");
        let generation = tables.get(*place);
        let listener = &generation
            .listener(session.listener)
            .expect("its limits were read")
            .settings;
        let of_backend = &generation.backends[usize::from(backend.0)].settings.request_edits;
        additions::prepare(listener, *route, of_backend, asked, head, bytes, additions);
    }

    /// Header lines for the response, made while the request is at hand; `None` where nothing is edited.
    fn prepare_response_lines(&mut self, incoming: &Incoming<'_>, backend: BackendRef) -> Option<Vec<u8>> {
        let Incoming {
            key,
            place,
            route,
            asked,
            ..
        } = incoming;
        let session = self.sessions.get(*key)?;
        let all = response_edits(self.tables.get(*place), session.listener, *route, backend.0);
        if all.iter().flatten().all(|edits| edits.is_empty()) {
            return None;
        }
        let mut lines = self.buffers.small();
        let all = response_edits(self.tables.get(*place), session.listener, *route, backend.0);
        all.iter()
            .flatten()
            .for_each(|edits| edits.render(asked, &mut lines));
        Some(lines)
    }

    /// Applies the edits of a response: its own fields go, ours are in `additions`.
    pub(super) fn prepare_response_additions(
        &mut self,
        exchange: Key,
        head: &mut ResponseHead,
        bytes: &[u8],
    ) {
        self.additions.clear();
        let Worker {
            tables,
            sessions,
            exchanges,
            additions,
            ..
        } = self;
        let Some(live) = exchanges.get(exchange) else {
            return;
        };
        let Some(lines) = &live.response_lines else { return };
        let Some(session) = sessions.get(live.session) else {
            return;
        };
        let all = response_edits(
            tables.get(live.generation),
            session.listener,
            live.route,
            live.backend,
        );
        for edits in all.iter().flatten() {
            edits.drop_fields(|name| head.drop_named(bytes, name));
        }
        additions.extend_from_slice(lines);
    }

    /// A redirect, a fixed response or a deny: answered here, and nothing reaches a server.
    fn answer_here(&mut self, incoming: &Incoming<'_>, head: &RequestHead, account: Account) -> usize {
        let Incoming {
            key,
            place,
            route,
            asked,
            bytes,
        } = incoming;
        let generation = self.tables.get(*place).clone(); // not on the path of a forwarded request
        let session = self.sessions.get(*key).expect("the session that sent the head");
        let listener = generation
            .listener(session.listener)
            .expect("its limits were read");
        let route = usize::from(route.expect("only a rule answers here"));
        let mut lines = std::mem::take(&mut self.additions);
        lines.clear();
        let (answered, consumed) = self.answered(*key, head, bytes);
        let (status, termination, keep) = match &listener.settings.routes.routes[route].action {
            Action::Redirect(redirect) => match redirect.render(asked, &mut lines) {
                Ok(()) => {
                    let status = redirect.status.code();
                    (
                        status,
                        *b"LR",
                        self.compose(status, answered, &lines, Some((b"", b""))),
                    )
                }
                // RD-6: the value would have split the response.
                Err(_) => (400, *b"PR", self.compose(400, answered, b"", None)),
            },
            Action::Respond(respond) => {
                let body = (respond.content_type().as_bytes(), respond.body());
                (
                    respond.status(),
                    *b"LR",
                    self.compose(respond.status(), answered, b"", Some(body)),
                )
            }
            Action::Deny(status) => (*status, *b"PR", self.compose(*status, answered, b"", None)),
            Action::Backend(_) => unreachable!("a backend is not answered here"),
        };
        self.log_local(
            *key,
            account,
            status,
            termination,
            Some(route as u16),
            head.version,
        );
        self.deliver(*key, status, keep);
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
        let keep = self.compose(status, answered, b"", None);
        self.log_local(key, account, status, *b"SC", None, head.version);
        self.deliver(key, status, keep);
        consumed
    }

    /// The form of our answer. The connection is kept only if the whole request is here: its body is not read for an
    /// answer that does not depend on it.
    fn answered(&self, key: Key, head: &RequestHead, bytes: &[u8]) -> (Answered, usize) {
        let session = self.sessions.get(key).expect("the session that sent the head");
        let bodiless = matches!(head.framing, Framing::None | Framing::Length(0));
        let keep = if bodiless { session.keep } else { Keep::No };
        let answered = Answered {
            version: head.version,
            head_request: head.method == Method::Head,
            keep,
        };
        (answered, if bodiless { head.length } else { bytes.len() })
    }
}

/// Edits of a response, in the order they apply: listener, route, backend.
fn response_edits(
    generation: &Current,
    listener: ListenerId,
    route: Option<u16>,
    backend: u16,
) -> [Option<&Edits>; 3] {
    let listener = generation.listener(listener).map(|entry| &entry.settings);
    [
        listener.map(|settings| &settings.response_edits),
        listener
            .zip(route)
            .map(|(settings, at)| &settings.routes.routes[usize::from(at)].response_edits),
        Some(&generation.backends[usize::from(backend)].settings.response_edits),
    ]
}
