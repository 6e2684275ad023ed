//! Who gets a request: rules, sessions, policies and balancers, asked in the order in which a worker of the proxy asks them.

use super::decision::{Chooser, End};
use super::invariant::Broken;
use super::live::Token;
use super::run::Run;
use super::steering::{Current, Nowhere};
use crate::decide::attributes::{self, Source};
use crate::decide::exchange::{Bond, Chosen, Tie, Wish};
use crate::decide::reuse::Looser;
use crate::decide::route::{self, BackendRef, Outcome};
use crate::decide::settings::PreferLast;
use crate::decide::sharing::Sharing;
use crate::decide::usher::{AboutToWait, Admission, Said};
use crate::http1::RequestHead;
use crate::policy::{
    Asked, Draw, Fault, Nth, Policy, Priority, RouteAsked, ServerIndex, Table, Target, Waits, WorkerId,
};
use crate::shared::generation::{AttachedPolicy, BackendEntry, ListenerEntry, OnFault};
use crate::shared::instances;
use crate::shared::table::{self, Admin, Source as Decider};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A backend as a run has it.
pub(super) type Entry = BackendEntry<super::connections::Name, Nowhere>;

/// Whose request is being begun. What it says is the newest message of its traffic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) worker: WorkerId,
    pub(super) client: u32,
    pub(super) traffic: u16,
    /// Where it comes in; `None` where nobody looks at it.
    pub(super) listener: Option<u16>,
}

impl Run<'_> {
    // ---- the backend ---------------------------------------------------------------------------------------------

    /// The backend of a request, and where its requests stand in queues.
    pub(super) fn route(&mut self, asking: Asking, generation: &Current) -> Result<u16, End> {
        self.priority = Priority::default();
        self.on_the_way.clear();
        let Some((at, entry)) = asking.listener.and_then(|at| listener_of(generation, at)) else {
            return if generation.backends.is_empty() {
                Err(End::NoRoute)
            } else {
                Ok(0)
            };
        };
        let routes = &entry.settings.routes;
        let asked = if routes.routes.is_empty() {
            UNREAD
        } else {
            asked(self.messages[usize::from(asking.traffic)].head(), asking.client)
        };
        let choice = routes.choose(&asked, &mut self.dice);
        if let Some(rule) = choice.route {
            self.priority = routes.routes[usize::from(rule)].priority;
            self.on_the_way.route = Some(rule);
        }
        let chosen = match choice.outcome {
            Outcome::Backend(backend) => Ok(backend.0),
            Outcome::NoRoute => Err(End::NoRoute),
            Outcome::Deny(_) => return Err(End::Rule),
            Outcome::Redirect(_) | Outcome::Respond(_) => Err(End::Rule),
        };
        self.ask_router(asking, (at, entry), generation, chosen)
    }

    fn ask_router(
        &mut self,
        asking: Asking,
        (at, listener): (u16, &ListenerEntry),
        generation: &Current,
        chosen: Result<u16, End>,
    ) -> Result<u16, End> {
        let Some(wanted) = &listener.policy else {
            return chosen;
        };
        let Asking { worker, client, .. } = asking;
        let now = self.policy_now();
        let own = &mut self.workers[usize::from(worker.0)];
        let instance = own.policies.router(crate::shared::generation::ListenerId(at));
        let Some((policy, attached)) = instance.and_then(|instance| instance.ask(now)) else {
            return match wanted.on_fault {
                OnFault::Fallback => chosen,
                OnFault::Deny => Err(End::Rule),
            };
        };
        let (head, bytes) = self.messages[usize::from(asking.traffic)].head();
        let backend = chosen
            .ok()
            .map(|at| &*generation.backends[usize::from(at)].table.name);
        let source = Source {
            head,
            bytes,
            client: Some(address(client)),
            listener: &listener.name,
            backend,
        };
        let offers = attached.attachment.offers();
        let (mut gathered, mut host) = (Vec::new(), Vec::new());
        attributes::gather(&offers.attributes, source, &mut gathered);
        attributes::append_host(head.authority(bytes), &mut host);
        let values = attributes::values(&gathered, offers.attributes.len());
        let asked = RouteAsked {
            asked: Asked {
                now,
                seed: seed(&mut self.dice),
                attributes: &values[..offers.attributes.len()],
            },
            method: head.method_name(bytes),
            host: &host,
            path: head.path(bytes),
        };
        let edits = &mut self.on_the_way.edits;
        let answer = instances::route(policy, attached, worker, &asked, edits);
        self.report.asked(&attached.name, || policy.usage());
        match answer {
            Ok(routed) => match routed.target {
                None => chosen,
                Some(Target::Backend(backend)) => Ok(backend),
                Some(Target::Redirect(_) | Target::Respond(_)) => Err(End::Rule),
            },
            Err(_) => match attached.on_fault {
                OnFault::Fallback => chosen,
                OnFault::Deny => Err(End::Rule),
            },
        }
    }

    // ---- what is known of it before a server is chosen -----------------------------------------------------------

    /// Its hash: of what is configured; of its client, where nobody says of what.
    pub(super) fn hash_of(&mut self, asking: Asking, entry: &Entry) -> Option<u64> {
        match (&entry.settings.hashed, asking.listener) {
            (Some(of), Some(_)) => {
                let (head, bytes) = self.messages[usize::from(asking.traffic)].head();
                of.hash(head, bytes, Some(address(asking.client)))
            }
            _ => Some(xxh3_64(&asking.client.to_le_bytes())),
        }
    }

    /// What the policies of its backend asked to see: the one that picks, and the one that is asked about its waiting.
    pub(super) fn gather(&mut self, asking: Asking, entry: &Entry) -> [Option<Vec<u8>>; 2] {
        let picker = entry.policy.as_ref().map(|policy| &policy.attached);
        let picker = picker.filter(|attached| attached.attachment.offers().pick);
        [picker, entry.queue_policy.as_ref()]
            .map(|attached| attached.map(|attached| self.gathered(attached, asking, entry)))
    }

    fn gathered(&mut self, attached: &AttachedPolicy, asking: Asking, entry: &Entry) -> Vec<u8> {
        let mut gathered = Vec::new();
        let wanted = &attached.attachment.offers().attributes;
        if wanted.is_empty() {
            return gathered;
        }
        if asking.listener.is_some() {
            let (head, bytes) = self.messages[usize::from(asking.traffic)].head();
            let source = Source {
                head,
                bytes,
                client: Some(address(asking.client)),
                listener: LISTENER,
                backend: Some(&entry.table.name),
            };
            attributes::gather(wanted, source, &mut gathered);
        } else {
            // There is no head to look at: the request has none of them.
            gathered.resize(wanted.len() * 8, 0xff);
        }
        gathered
    }

    /// How the connections of a request are shared: as configured, or as its backend's policy wishes.
    pub(super) fn sharing(&mut self, asking: Asking, entry: &Entry) -> Sharing {
        let Asking { worker, client, .. } = asking;
        let settings = &entry.settings.pool;
        let mut sharing = Sharing::configured(settings.mode, self.pool_name(asking, entry));
        let Some(wanted) = &entry.reuse_policy else {
            return sharing;
        };
        if !wanted.attachment.offers().reuse {
            return sharing;
        }
        let gathered = self.gathered(wanted, asking, entry);
        let count = wanted.attachment.offers().attributes.len();
        let values = attributes::values(&gathered, count);
        let nth = if self.clients[client as usize].requests == 0 {
            Nth::First
        } else {
            Nth::Later
        };
        let preference = self.put(worker, entry, wanted, &values[..count], |policy, asked| {
            policy.prefer(asked, nth)
        });
        if let Some(preference) = preference
            && let Err(Looser) = sharing.follow(&preference, &values, settings.overriding, Vec::new)
        {
            instances::count(wanted, worker, Fault::Looser);
        }
        sharing
    }

    /// `pool-conn-name`.
    fn pool_name(&mut self, asking: Asking, entry: &Entry) -> Option<Vec<u8>> {
        let template = entry.settings.pool.name.as_ref()?;
        asking.listener?;
        let asked = asked(self.messages[usize::from(asking.traffic)].head(), asking.client);
        let mut name = Vec::new();
        template.render(&asked, &mut name).ok().map(|()| name)
    }

    /// Puts one question to a policy of a backend, and counts what comes of it.
    fn put<R>(
        &mut self,
        worker: WorkerId,
        entry: &Entry,
        wanted: &Arc<AttachedPolicy>,
        attributes: &[Option<&[u8]>],
        question: impl FnOnce(&mut dyn Policy, &Asked<'_>) -> Result<Option<R>, Fault>,
    ) -> Option<R> {
        let now = self.policy_now();
        let own = &mut self.workers[usize::from(worker.0)];
        let (policy, attached) = own.policies.of_backend(entry.table.id, wanted)?.ask(now)?;
        let asked = Asked {
            now,
            seed: seed(&mut self.dice),
            attributes,
        };
        let statistics = attached.statistics.of(worker);
        statistics.calls.count();
        let answer = question(policy, &asked);
        self.report.asked(&attached.name, || policy.usage());
        match &answer {
            Ok(Some(_)) => {}
            Ok(None) => statistics.abstained.count(),
            Err(fault) => instances::count(attached, worker, *fault),
        }
        answer.ok().flatten()
    }

    // ---- the server ----------------------------------------------------------------------------------------------

    /// The server for a request, from the current table of its backend.
    pub(super) fn choose(&mut self, token: Token, wish: Wish) -> Result<Chosen, Broken> {
        let Some(avoid) = self.renew_table(token, wish.avoid) else {
            return Ok(Chosen::Nobody);
        };
        let live = self.lives.get(token).expect("it chooses");
        let free = live.seat.turned_away || wish.tie != Tie::Kept;
        if !free && let Some(server) = self.needed(token) {
            return Ok(self.settle(token, server, Chooser::Client, Bond::Tied));
        }
        if !free {
            if avoid.is_none() {
                if let Some(server) = self.server_of_cookie(token) {
                    return Ok(self.settle(token, server, Chooser::Cookie, Bond::Tied));
                }
                if let Some(server) = self.last_server(token) {
                    return Ok(self.settle(token, server, Chooser::Last, Bond::Loose));
                }
            }
            if let Some(server) = self.ask_picker(token, avoid) {
                return Ok(self.settle(token, server, Chooser::Pick, Bond::Preferred));
            }
        }
        Ok(self.balance(token, avoid, wish.tie))
    }

    /// Goes on with the current table, and tells who is to be avoided there; `None` where the backend has gone.
    fn renew_table(&mut self, token: Token, avoid: Option<ServerIndex>) -> Option<Option<ServerIndex>> {
        let live = self.lives.get(token)?;
        if self.is_current(live) {
            return Some(avoid);
        }
        let former = live.entry().table.clone();
        if !self.move_to_current(token) {
            let live = self.lives.get(token)?;
            return (!live.seat.sent_back).then_some(avoid);
        }
        let now = self.lives.get(token)?.entry().table.clone();
        if Arc::ptr_eq(&former, &now) {
            return Some(avoid);
        }
        Some(avoid.and_then(|server| now.find_near(former.at(server).server.id, server)))
    }

    fn needed(&self, token: Token) -> Option<ServerIndex> {
        let live = self.lives.get(token)?;
        let table = &live.entry().table;
        let server = table.find(live.needs?)?;
        (table.at(server).state != Admin::Maint && table.has_usable()).then_some(server)
    }

    /// LB-52.
    fn server_of_cookie(&self, token: Token) -> Option<ServerIndex> {
        let live = self.lives.get(token)?;
        let table = &live.entry().table;
        table
            .find(live.cookie?)
            .filter(|server| table.takes_tied(*server))
    }

    /// LB-51.
    fn last_server(&self, token: Token) -> Option<ServerIndex> {
        let live = self.lives.get(token)?;
        let entry = live.entry();
        if entry.settings.last == PreferLast::No {
            return None;
        }
        let (backend, id) = self.clients[live.client as usize].last?;
        let table = &entry.table;
        let server = table.find(id).filter(|_| backend == table.id)?;
        (table.usable(server) && !table.saturated(server)).then_some(server)
    }

    /// The answer of the backend's policy, if it has one that can be followed.
    fn ask_picker(&mut self, token: Token, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let now = self.policy_now();
        let live = self.lives.get(token)?;
        let gathered = live.for_picker.as_ref()?;
        let own = &mut self.workers[usize::from(live.worker.0)];
        // Its instance knows the servers of the worker's table only.
        if !Arc::ptr_eq(&live.generation, &own.generation) {
            return None;
        }
        let table = &live.entry().table;
        let (policy, attached) = own.policies.picker(table.id.0 as usize)?.ask(now)?;
        let count = attached.attachment.offers().attributes.len();
        let values = attributes::values(gathered, count);
        let asked = Asked {
            now,
            seed: seed(&mut self.dice),
            attributes: &values[..count],
        };
        let picked = instances::pick(policy, attached, live.worker, &asked, avoid, &**table);
        self.report.asked(&attached.name, || policy.usage());
        picked.ok().flatten()
    }

    /// It is that server, and no balancer knows of it.
    fn settle(&mut self, token: Token, server: ServerIndex, chooser: Chooser, bond: Bond) -> Chosen {
        let live = self.lives.get_mut(token).expect("it chooses");
        (live.asked, live.server) = (true, Some(server));
        self.note_choice(token, Some(server), chooser);
        Chosen::Server(server, bond)
    }

    /// The choice of the plan, or of the configured algorithm.
    fn balance(&mut self, token: Token, avoid: Option<ServerIndex>, tie: Tie) -> Chosen {
        let live = self.lives.get_mut(token).expect("it chooses");
        live.asked = false;
        let number = table::hashed(live.hash, tie, avoid, live.seat.turned_away);
        let balanced = live.entry().table.balance(avoid, number, &mut self.dice);
        let chooser = match balanced.source {
            Some(Decider::Plan) => Chooser::Plan,
            Some(Decider::Native) => Chooser::Native,
            None => Chooser::Queue,
        };
        match balanced.chosen {
            Chosen::Server(server, _) => {
                self.lives.get_mut(token).expect("looked up above").server = Some(server);
                self.note_choice(token, Some(server), chooser);
            }
            Chosen::Anyone | Chosen::Nobody => self.note_choice(token, None, Chooser::Queue),
        }
        balanced.chosen
    }

    // ---- those who are about to wait -----------------------------------------------------------------------------

    /// What is said of a request that is about to wait; asked the first time.
    pub(super) fn usher(&mut self, token: Token, about: &AboutToWait) -> Said {
        let live = self.lives.get(token).expect("it is about to wait");
        if let Some(said) = live.said {
            return said;
        }
        let said = self.ask_usher(token, about);
        self.lives.get_mut(token).expect("looked up above").said = Some(said);
        said
    }

    fn ask_usher(&mut self, token: Token, about: &AboutToWait) -> Said {
        let mut said = Said::default();
        let (now, live) = (self.now, self.lives.get(token).expect("it is about to wait"));
        let (worker, generation, backend) = (live.worker, live.generation.clone(), live.backend);
        let entry = &generation.backends[usize::from(backend)];
        let (Some(wanted), Some(gathered)) = (&entry.queue_policy, live.for_usher.clone()) else {
            return said;
        };
        let offers = wanted.attachment.offers();
        let values = attributes::values(&gathered, offers.attributes.len());
        let values = &values[..offers.attributes.len()];
        let mut waits = Waits {
            server: about.server,
            queued: about.queued,
            priority: about.priority,
        };
        if offers.classify
            && let Some(standing) = self.put(worker, entry, wanted, values, |policy, asked| {
                policy.classify(asked, &waits)
            })
        {
            said.classified(standing, now);
        }
        waits.priority = said.priority(about.priority);
        if offers.admit
            && let Some(verdict) = self.put(worker, entry, wanted, values, |policy, asked| {
                policy.admit(asked, &waits)
            })
        {
            said.judged(verdict, now);
            if said.admission() != Admission::Accepted {
                wanted.statistics.of(worker).rejected.count();
            }
        }
        said
    }
}

/// A request as rules and templates see it.
pub(super) fn asked<'r>((head, bytes): (&RequestHead, &'r [u8]), client: u32) -> route::Asked<'r> {
    route::Asked {
        method: head.method_name(bytes),
        host: head.authority(bytes),
        path: head.path(bytes),
        query: head.query(bytes),
        client: Some(address(client)),
        scheme: "http",
    }
}

/// A request at which nobody looks.
const UNREAD: route::Asked<'static> = route::Asked {
    method: b"",
    host: b"",
    path: b"",
    query: None,
    client: None,
    scheme: "http",
};

/// The listener that requests come to: the one of that place, or the only one.
pub(super) fn listener_of(generation: &Current, at: u16) -> Option<(u16, &ListenerEntry)> {
    Some((at, generation.listeners.get(usize::from(at))?.as_ref()?))
}

fn seed(dice: &mut impl Draw) -> u64 {
    u64::from(dice.draw(u32::MAX)) << 32 | u64::from(dice.draw(u32::MAX))
}

/// The name of the listener that policies of backends are told.
const LISTENER: &str = "scenario";

/// The address of a client.
fn address(client: u32) -> IpAddr {
    let [_, b, c, d] = client.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, b, c, d))
}

/// Where a backend is among others.
pub(super) fn place_of(generation: &Current, id: crate::policy::BackendId) -> Option<BackendRef> {
    let at = generation
        .backends
        .iter()
        .position(|entry| entry.table.id == id)?;
    Some(BackendRef(at as u16))
}
