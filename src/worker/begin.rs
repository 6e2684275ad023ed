//! From a complete head to an exchange: route, edits, the request as it will go out, the first bytes of its body.

use super::Worker;
use super::client::Answered;
use super::consult::{Consulted, apply_edits};
use super::queue::Seat;
use super::session::{Account, Begun, Delivery, Keep, Live, Phase, TunnelEnds};
use super::usher::Ushering;
use crate::decide::attributes;
use crate::decide::cause::Cause;
use crate::decide::exchange::{Arrival, Asked, Event, Exchange, Idempotent};
use crate::decide::reuse::OpenReason;
use crate::decide::route::{self, Action, BackendRef, NO_ROUTE_STATUS, Outcome, Priority};
use crate::decide::template::ControlCharacter;
use crate::http1::{self, Body, BodyError, Framing, Method, Output, RequestHead, TrailerLimits};
use crate::net::{Address, Connection, Key};
use crate::policy::Message;
use crate::shared::generation::{AttachedPolicy, BackendEntry, ListenerEntry};
use std::sync::Arc;

/// Bounds of a trailer section.
pub(super) const TRAILERS: TrailerLimits = TrailerLimits {
    bytes_max: 8 << 10,
    fields_max: 64,
};

/// A request that is being begun: where it came from and what it asks.
pub(super) struct Incoming<'b> {
    pub(super) key: Key,
    /// The generation that it belongs to.
    pub(super) place: u32,
    pub(super) route: Option<u16>,
    pub(super) asked: route::Asked<'b>,
    pub(super) bytes: &'b [u8],
}

/// The route of a request, told without borrowing it.
enum Routed {
    Backend(BackendRef),
    Here,
    Nowhere,
    Denied,
}

/// Our answer when a route policy failed and `on-fault` is "deny".
const DENIED_STATUS: u16 = 503;

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
        let has_policy = listener.policy.is_some();
        let choice = listener.settings.routes.choose(&asked, random);
        let mut route = choice.route;
        let mut routed = match choice.outcome {
            _ if head.max_forwards == Some(0) => Routed::Nowhere,
            Outcome::Backend(backend) => Routed::Backend(backend),
            Outcome::NoRoute => Routed::Nowhere,
            Outcome::Redirect(_) | Outcome::Respond(_) | Outcome::Deny(_) => Routed::Here,
        };
        self.edits.clear();
        let denied = matches!(choice.outcome, Outcome::Deny(_));
        if has_policy && !denied && head.max_forwards != Some(0) {
            let chosen = match routed {
                Routed::Backend(backend) => Some(backend),
                _ => None,
            };
            match self.ask_router(key, place, head, bytes, chosen) {
                Consulted::NoOpinion => {}
                Consulted::Backend(backend) => routed = Routed::Backend(backend),
                Consulted::Rule(rule) => (route, routed) = (Some(rule), Routed::Here),
                Consulted::Denied => routed = Routed::Denied,
            }
        }
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
            Routed::Denied => return self.answer_plainly(key, DENIED_STATUS, head, bytes, account),
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

        let ties = self.read_ties(&incoming, backend, head);
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
        let response_edits = self.prepare_response_edits(&incoming, backend);
        let attributes = self.gather_for_picker(&incoming, backend, head);
        let ushering = Ushering::of(self.gather_for_usher(&incoming, backend, head));
        let mut sharing = match self.configured_sharing(&incoming, backend) {
            Ok(sharing) => sharing,
            Err(ControlCharacter) => {
                self.buffers.give(out);
                return self.answer_plainly(key, 400, head, bytes, account);
            }
        };
        self.ask_sharer(&incoming, backend, head, &mut sharing);
        let priority = self.priority_of(&incoming);
        self.tables.hold(place);
        let exchange = self.exchanges.insert(Live {
            machine: Exchange::new(effort),
            session: key,
            generation: place,
            backend: backend.0,
            begun: Begun {
                generation: place,
                backend: backend.0,
            },
            route,
            seat: Seat::new(priority),
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
            response_edits,
            attributes,
            ushering,
            ties,
            sharing,
            pool_key: None,
            asked: false,
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
        self.arrive(exchange);
        self.drive(exchange, Event::Start(Asked { idempotent, arrival }));
        consumed
    }

    /// Where a request stands in queues, by its route.
    fn priority_of(&self, incoming: &Incoming<'_>) -> Priority {
        let priority = || {
            let session = self.sessions.get(incoming.key)?;
            let listener = self.tables.get(incoming.place).listener(session.listener)?;
            let route = listener
                .settings
                .routes
                .routes
                .get(usize::from(incoming.route?))?;
            Some(route.priority)
        };
        priority().unwrap_or_default()
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

    /// What the backend's policy asked to see, if it is to be asked: kept for every attempt.
    fn gather_for_picker(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &RequestHead,
    ) -> Option<Vec<u8>> {
        self.gather(incoming, backend, head, |entry| {
            let attached = &entry.policy.as_ref()?.attached;
            attached.attachment.offers().pick.then_some(attached)
        })
    }

    /// What one policy of the backend asked to see, if it is to be asked.
    pub(super) fn gather(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &RequestHead,
        whose: impl FnOnce(&BackendEntry<Connection, Address>) -> Option<&Arc<AttachedPolicy>>,
    ) -> Option<Vec<u8>> {
        let Worker {
            tables,
            sessions,
            buffers,
            ..
        } = self;
        let generation = tables.get(incoming.place);
        let entry = &generation.backends[usize::from(backend.0)];
        let attached = whose(entry)?;
        let source = attributes::Source {
            head,
            bytes: incoming.bytes,
            client: incoming.asked.client,
            listener: &generation.listener(sessions.get(incoming.key)?.listener)?.name,
            backend: Some(&entry.table.name),
        };
        let mut gathered = buffers.small();
        attributes::gather(&attached.attachment.offers().attributes, source, &mut gathered);
        Some(gathered)
    }

    /// The lines that a route policy wants in an answer of ours.
    fn append_policy_lines(&self, listener: &ListenerEntry, lines: &mut Vec<u8>) {
        if let Some(policy) = &listener.policy {
            let headers = &policy.attachment.offers().headers;
            apply_edits(&self.edits, Message::Response, headers, |_| {}, lines);
        }
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
                    self.append_policy_lines(listener, &mut lines);
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
                self.append_policy_lines(listener, &mut lines);
                let body = (respond.content_type().as_bytes(), respond.body());
                (
                    respond.status(),
                    *b"LR",
                    self.compose(respond.status(), answered, &lines, Some(body)),
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
