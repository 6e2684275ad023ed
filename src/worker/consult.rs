//! Asks who gets a request: the one place on the request path where something other than the core decides.
//!
//! A policy is asked first, if there is one and it wants to be; whatever it says is checked against the table, and
//! without a usable answer the core decides as if there were no policy. Every answer is counted by who gave it.

use super::Worker;
use super::begin::Incoming;
use super::queue::Moved;
use crate::decide::attributes::{self, Source};
use crate::decide::exchange::{Bond, Chosen, Tie, Wish};
use crate::decide::reuse::Looser;
use crate::decide::route::BackendRef;
use crate::decide::sharing::Sharing;
use crate::http1::RequestHead;
use crate::net::Key;
use crate::observe::messages::Level;
use crate::policy::{Asked, Draw, Edits, Fault, Nth, RouteAsked, ServerIndex, Target};
use crate::shared::generation::OnFault;
use crate::shared::instances;
use crate::shared::table::{self, Source as Decider};
use std::time::Duration;

/// What a route policy wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consulted {
    /// What the rules chose.
    NoOpinion,
    /// This backend.
    Backend(BackendRef),
    /// The answer of this rule.
    Rule(u16),
    /// It failed, and the operator wants no answer then.
    Denied,
}

impl Worker {
    /// The server for a request, from the current table of its backend.
    pub(super) fn choose(&mut self, exchange: Key, wish: Wish) -> Chosen {
        let Some((avoid, gone)) = self.renew_table(exchange, wish.avoid) else {
            return Chosen::Nobody;
        };
        let Some(live) = self.exchanges.get(exchange) else {
            return Chosen::Nobody;
        };
        if gone == Gone::Yes && live.seat.sent_back {
            return Chosen::Nobody; // it has waited for what will not come
        }
        if wish.tie == Tie::Kept && !live.seat.turned_away {
            // POOL-62: a client that has authenticated itself on a connection stays with it, whoever else is there.
            if avoid.is_none() {
                if let Some(server) = self.authenticated_server(exchange) {
                    return Chosen::Server(self.stay_with(exchange, server), Bond::Tied);
                }
                // LB-52: a cookie comes before whoever else might choose. LB-3: not where it has just failed.
                if let Some(server) = self.server_of_cookie(exchange) {
                    return Chosen::Server(self.settle(exchange, server), Bond::Tied);
                }
                if let Some(server) = self.last_server(exchange) {
                    return Chosen::Server(self.stay_with(exchange, server), Bond::Loose);
                }
            }
            if let Some(server) = self.ask_picker(exchange, avoid) {
                return self.follow_pick(exchange, server);
            }
        }
        self.balance(exchange, avoid, wish.tie)
    }

    /// Goes on with the current table, and tells who is to be avoided there.
    fn renew_table(
        &mut self,
        exchange: Key,
        avoid: Option<ServerIndex>,
    ) -> Option<(Option<ServerIndex>, Gone)> {
        match self.move_to_current(exchange) {
            Moved::Same => Some((avoid, Gone::No)),
            Moved::Gone => Some((avoid, Gone::Yes)),
            Moved::From(former, backend) => {
                let live = self.exchanges.get(exchange)?;
                let (was, now) = (
                    &former.backends[usize::from(backend)].table,
                    &self.backend(live).table,
                );
                let find = |server| now.find_near(was.at(server).server.id, server);
                Some((avoid.and_then(find), Gone::No))
            }
        }
    }

    fn follow_pick(&mut self, exchange: Key, server: ServerIndex) -> Chosen {
        let worker = self.id;
        if let Some(live) = self.exchanges.get(exchange) {
            self.backend(live).statistics.of(worker).by_pick.count();
        }
        Chosen::Server(self.settle(exchange, server), Bond::Preferred)
    }

    /// The choice of the plan, or of the configured algorithm.
    fn balance(&mut self, exchange: Key, avoid: Option<ServerIndex>, tie: Tie) -> Chosen {
        let worker = self.id;
        let Worker {
            tables,
            exchanges,
            random,
            ..
        } = self;
        let Some(live) = exchanges.get_mut(exchange) else {
            return Chosen::Nobody;
        };
        live.asked = false;
        let entry = &tables.get(live.generation).backends[usize::from(live.backend)];
        let number = table::hashed(live.ties.number, tie, avoid, live.seat.turned_away);
        let balanced = entry.table.balance(avoid, number, random);
        let statistics = entry.statistics.of(worker);
        match balanced.source {
            Some(Decider::Plan) => statistics.by_plan.count(),
            Some(Decider::Native) => statistics.by_native.count(),
            None => {}
        }
        if let Chosen::Server(server, _) = balanced.chosen {
            live.account.server = Some(server);
        }
        balanced.chosen
    }

    fn stay_with(&mut self, exchange: Key, server: ServerIndex) -> ServerIndex {
        let worker = self.id;
        if let Some(live) = self.exchanges.get(exchange) {
            self.backend(live).statistics.of(worker).by_session.count();
        }
        self.settle(exchange, server)
    }

    /// It is that server, and no balancer knows of it.
    fn settle(&mut self, exchange: Key, server: ServerIndex) -> ServerIndex {
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.asked = true;
            live.account.server = Some(server);
        }
        server
    }

    /// The answer of the backend's policy, if it has one that can be followed.
    fn ask_picker(&mut self, exchange: Key, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let (worker, now) = (self.id, self.policy_now());
        let Worker {
            tables,
            exchanges,
            random,
            policies,
            ..
        } = self;
        let live = exchanges.get(exchange)?;
        let gathered = live.attributes.as_ref()?;
        // Its instance knows the servers of the current table only.
        if live.generation != tables.current() {
            return None;
        }
        let table = &tables.get(live.generation).backends[usize::from(live.backend)].table;
        let (policy, attached) = policies.picker(table.id.0 as usize)?.ask(now)?;
        let count = attached.attachment.offers().attributes.len();
        let values = attributes::values(gathered, count);
        let asked = Asked {
            now,
            seed: seed(random),
            attributes: &values[..count],
        };
        let answer = instances::pick(policy, attached, worker, &asked, avoid, &**table);
        self.after_guest(answer.err());
        answer.ok().flatten()
    }

    /// What the listener's policy wants, after its rules have chosen. Its edits are in `edits`.
    pub(super) fn ask_router(
        &mut self,
        key: Key,
        place: u32,
        head: &RequestHead,
        bytes: &[u8],
        chosen: Option<BackendRef>,
    ) -> Consulted {
        let (worker, now) = (self.id, self.policy_now());
        let Worker {
            tables,
            sessions,
            random,
            policies,
            edits,
            gathered,
            ..
        } = self;
        edits.clear();
        let Some(session) = sessions.get(key).filter(|_| place == tables.current()) else {
            return Consulted::NoOpinion;
        };
        let Some(entry) = tables.get(place).listener(session.listener) else {
            return Consulted::NoOpinion;
        };
        let Some(instance) = policies.router(session.listener) else {
            return Consulted::NoOpinion;
        };
        let Some((policy, attached)) = instance.ask(now) else {
            return refused(entry.policy.as_ref().map(|attached| attached.on_fault));
        };
        let offers = attached.attachment.offers();
        let client = session.client.ip();
        let source = Source {
            head,
            bytes,
            client: (!client.is_unspecified()).then_some(client),
            listener: &entry.name,
            backend: chosen.map(|at| &*tables.get(place).backends[usize::from(at.0)].table.name),
        };
        gathered.clear();
        attributes::gather(&offers.attributes, source, gathered);
        let host_at = gathered.len();
        attributes::append_host(head.authority(bytes), gathered);
        let (texts, host) = gathered.split_at(host_at);
        let count = offers.attributes.len();
        let values = attributes::values(texts, count);
        let asked = RouteAsked {
            asked: Asked {
                now,
                seed: seed(random),
                attributes: &values[..count],
            },
            method: head.method_name(bytes),
            host,
            path: head.path(bytes),
        };
        let answer = instances::route(policy, attached, worker, &asked, edits);
        let named = &entry.settings.named;
        let consulted = match &answer {
            Ok(routed) => match routed.target {
                None => Consulted::NoOpinion,
                Some(Target::Backend(backend)) => Consulted::Backend(BackendRef(backend)),
                Some(Target::Redirect(at)) => Consulted::Rule(named.redirects[usize::from(at)]),
                Some(Target::Respond(at)) => Consulted::Rule(named.responses[usize::from(at)]),
            },
            Err(fault) => {
                debug_assert!(
                    edits.is_empty(),
                    "a route that ended with {fault:?} edits nothing"
                );
                refused(Some(attached.on_fault))
            }
        };
        self.after_guest(answer.err());
        consulted
    }

    /// What the backend's policy wants of the request's connections, if it is asked about them: put into `sharing`, which
    /// is as configured.
    pub(super) fn ask_sharer(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &RequestHead,
        sharing: &mut Sharing,
    ) {
        let generation = self.tables.get(incoming.place);
        let entry = &generation.backends[usize::from(backend.0)];
        if let Some(attached) = &entry.reuse_policy
            && attached.attachment.offers().reuse
        {
            let fault = self.follow_sharer(incoming, backend, head, sharing);
            self.after_guest(fault);
        }
    }

    fn follow_sharer(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &RequestHead,
        sharing: &mut Sharing,
    ) -> Option<Fault> {
        let (worker, now) = (self.id, self.policy_now());
        let Worker {
            tables,
            sessions,
            random,
            policies,
            gathered,
            buffers,
            messages,
            ..
        } = self;
        let generation = tables.get(incoming.place);
        let entry = &generation.backends[usize::from(backend.0)];
        let wanted = entry.reuse_policy.as_ref()?;
        let (policy, attached) = policies.of_backend(entry.table.id, wanted)?.ask(now)?;
        let offers = attached.attachment.offers();
        let session = sessions.get(incoming.key)?;
        let source = Source {
            head,
            bytes: incoming.bytes,
            client: incoming.asked.client,
            listener: &generation.listener(session.listener)?.name,
            backend: Some(&entry.table.name),
        };
        gathered.clear();
        attributes::gather(&offers.attributes, source, gathered);
        let count = offers.attributes.len();
        let values = attributes::values(gathered, count);
        let asked = Asked {
            now,
            seed: seed(random),
            attributes: &values[..count],
        };
        let nth = if session.requests == 1 {
            Nth::First
        } else {
            Nth::Later
        };
        let statistics = attached.statistics.of(worker);
        statistics.calls.count();
        let preference = match policy.prefer(&asked, nth) {
            Ok(Some(preference)) => preference,
            Ok(None) => {
                statistics.abstained.count();
                return None;
            }
            Err(fault) => {
                instances::count(attached, worker, fault);
                return Some(fault);
            }
        };
        let allowed = entry.settings.pool.overriding;
        if let Err(Looser) = sharing.follow(&preference, &values, allowed, || buffers.small()) {
            instances::count(attached, worker, Fault::Looser);
            let fields: crate::observe::messages::Fields = &[
                ("policy", &attached.name),
                ("at", &entry.table.name),
                ("reason", &Fault::Looser.word()),
            ];
            messages.say(Level::Warn, "a wish of a policy was not granted", fields);
        }
        None
    }

    /// The time as policies are told it.
    pub(super) fn policy_now(&self) -> Duration {
        Duration::from_micros(self.now)
    }

    /// A guest that was cut has used up time that the turn's clock does not know of (decision 0004).
    pub(super) fn after_guest(&mut self, fault: Option<Fault>) {
        if fault.is_some() {
            self.read_clock();
        }
    }
}

/// Whether the backend has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    No,
    Yes,
}

fn refused(on_fault: Option<OnFault>) -> Consulted {
    match on_fault {
        Some(OnFault::Deny) => Consulted::Denied,
        Some(OnFault::Fallback) | None => Consulted::NoOpinion,
    }
}

pub(super) fn seed(random: &mut impl Draw) -> u64 {
    u64::from(random.draw(u32::MAX)) << 32 | u64::from(random.draw(u32::MAX))
}

/// Edits of a policy, applied to a head: its own fields go, ours are added to `lines`.
pub(super) fn apply_edits(
    edits: &Edits,
    message: crate::policy::Message,
    headers: &[Box<str>],
    mut drop: impl FnMut(&[u8]),
    lines: &mut Vec<u8>,
) {
    use crate::policy::Change;
    for (edit, value) in edits.iter().filter(|(edit, _)| edit.message == message) {
        let name = &headers[usize::from(edit.header)];
        if edit.change != Change::Append {
            drop(name.as_bytes());
            crate::decide::edit::drop_lines(lines, name.as_bytes());
        }
        if edit.change != Change::Remove {
            lines.extend_from_slice(name.as_bytes());
            lines.extend_from_slice(b": ");
            lines.extend_from_slice(value.as_bytes());
            lines.extend_from_slice(b"\r\n");
        }
    }
}
