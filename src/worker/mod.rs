//! One worker: a thread with its own poll, sessions, timers, buffers and statistics.
//!
//! A turn of the loop: *poll → clock → mark → parked → mail → expire → accept → run → report*. Marking does no work; what has
//! something to do is put on the run queue, of which at most *depth* sessions run before the next poll (SCH-1). A
//! session's step goes on until nothing moves or its rounds are spent; the worker never polls with a timeout while
//! work is pending.
//!
//! ```text
//!   accept.rs    new client connections, hand-off to less loaded workers
//!   client.rs    the client's side: heads, local answers, closing
//!   begin.rs     from a complete head to an exchange: route, edits, first bytes
//!   drive.rs     carries out what `decide::exchange` commands
//!   consult.rs   asks who gets the request
//!   queue.rs     slots, and waiting for one
//!   usher.rs     asks how a request may wait
//!   upstream.rs  the server's side: lend, take over, connect, close
//!   parking.rs   the keep rule, events of parked connections, servers that go
//!   private.rs   connections of one client alone
//!   idle.rs      purge and eviction
//!   sharing.rs   how the connections of one request may be shared
//!   usher.rs     what a policy says about a request that is about to wait
//!   preconnect.rs  connections that a plan wants to be there in advance
//!   relay.rs     bytes both ways: the hot path
//!   load_report.rs  what servers report about themselves
//!   deadline.rs  which limit ends the present phase
//!   report.rs    what a finished request leaves behind
//! ```

mod accept;
mod begin;
mod buffers;
mod client;
mod consult;
mod deadline;
mod drive;
mod edits;
mod idle;
mod load_report;
mod parking;
mod persist;
mod preconnect;
mod private;
mod queue;
mod relay;
mod report;
mod session;
mod sharing;
mod tables;
mod upstream;
mod usher;

use crate::decide::schedule;
use crate::http1::{RequestHead, ResponseHead};
use crate::net::{
    Accepted, Address, Connection, Key, Kind, Listener, Micros, Poller, Ready, Registrar, Slab, Waker, Wheel,
};
use crate::observe::batch::Batcher;
use crate::observe::messages::{Level, Messages};
use crate::policy::{BackendId, ServerId, ServerIndex, WorkerId};
use crate::shared::buffers::CommonBuffers;
use crate::shared::generation::{Generation, ListenerId};
use crate::shared::instances::Policies;
use crate::shared::key::KeyCache;
use crate::shared::mailbox::{Mailbox, Postbox, Wake};
use crate::shared::orders::{self, Order};
use crate::shared::process::Process;
use crate::shared::queue::Grants;
use crate::shared::server::Server;
use crate::shared::statistics::{PerWorker, WorkerStatistics};
use crate::shared::strays::Strays;
use session::{Live, Phase, Session, Upstream};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Everything that requests are handled by.
type Current = Generation<Connection, Address>;
/// Where the current generation is found.
type Published = orders::Published<Connection, Address>;
/// A client connection on its way to another worker.
type HandOff = (ListenerId, Accepted);

/// Gets a worker out of its poll.
#[derive(Debug)]
pub struct Alarm(pub Waker);

impl Wake for Alarm {
    fn wake(&self) {
        self.0.wake();
    }
}

/// What a worker is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its number.
    pub id: WorkerId,
    /// Its poll, whose waker its mailbox has.
    pub poller: Poller,
    /// Its mailbox.
    pub mailbox: Mailbox<Order<Listener, Batcher>, HandOff>,
    /// The way to each worker, in order.
    pub postboxes: Arc<[Postbox<Order<Listener, Batcher>, HandOff>]>,
    /// Where generations are published.
    pub published: Arc<Published>,
    /// What all workers share.
    pub process: Arc<Process>,
    /// What each worker counts of itself.
    pub statistics: Arc<PerWorker<WorkerStatistics>>,
    /// Operator messages.
    pub messages: Messages,
    /// The surplus of all workers' buffers.
    pub buffers: Arc<CommonBuffers>,
    /// The access log, if there is one.
    pub log: Option<Batcher>,
    /// The clock's zero, the same for all workers.
    pub epoch: Instant,
    /// Seed of this worker's random draws.
    pub seed: u64,
    /// Ways into every worker's poll, in order, to take a connection over.
    pub registrars: Arc<[Registrar]>,
    /// Slots that siblings have vacated.
    pub strays: Arc<Strays<Key>>,
    /// Its measures.
    pub measures: Measures,
}

/// The measures of a worker, from `config/defaults.rs`.
#[derive(Clone, Copy, Debug)]
pub struct Measures {
    /// Sessions run before the next poll (SCH-1), at least 1.
    pub depth: usize,
    /// Connections accepted per listener and turn (SCH-7), at least 1.
    pub max_accept: usize,
    /// How long accepting pauses when descriptors run out (SCH-7), in µs.
    pub accept_pause: Micros,
    /// Bytes read at once.
    pub scratch: usize,
    /// Bytes of a body that are held for another attempt (RT-7).
    pub held_body: usize,
    /// How long a client may take to close after we did (RFC 9112 §9.6), in µs.
    pub linger: Micros,
    /// How long a drain leaves a client between two requests, in µs.
    pub drain_grace: Micros,
    /// A client is handed off when loads differ by more than this … (SCH-8)
    pub hand_off_connections: u32,
    /// … and by more than one part in so many of the own load.
    pub hand_off_fraction: u32,
}

/// Rounds of one session's step before it goes to the end of the run queue.
const ROUNDS: u32 = 16;
/// How often the wall clock is read again, in µs.
const WALL_EVERY: Micros = 1_000_000;

/// Where a server is in a generation.
#[derive(Clone, Copy, Debug)]
struct Home {
    backend: u16,
    index: ServerIndex,
}

/// One worker thread's everything.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
    poller: Poller,
    ready: Vec<Ready>,
    mailbox: Mailbox<Order<Listener, Batcher>, HandOff>,
    postboxes: Arc<[Postbox<Order<Listener, Batcher>, HandOff>]>,
    process: Arc<Process>,
    own_statistics: Arc<PerWorker<WorkerStatistics>>,
    messages: Messages,
    tables: tables::Tables,
    /// By [`ServerId`]: every server of a generation in use.
    servers: Vec<Option<Arc<Server<Connection>>>>,
    /// By [`ServerId`]: where it is in the current generation.
    homes: Vec<Option<Home>>,
    registrars: Arc<[Registrar]>,
    strays: Arc<Strays<Key>>,
    stray_keys: Vec<Key>,
    keys: KeyCache,
    purges: idle::Purges,
    doomed: idle::Doomed,
    preconnects: preconnect::Preconnects,
    listeners: Vec<accept::Listening>,
    accept_resume: Micros,
    sessions: Slab<Session>,
    exchanges: Slab<Live>,
    upstreams: Slab<Upstream>,
    run: VecDeque<Key>,
    parked_events: Vec<Key>,
    wheel: Wheel,
    expired: Vec<(Key, Micros)>,
    buffers: buffers::Buffers,
    /// Read into, never kept: what is not consumed is copied to its session.
    scratch: Vec<u8>,
    /// Heads are parsed into these.
    request: RequestHead,
    response: ResponseHead,
    /// Header lines of ours, and heads and bodies that had to be written anew.
    additions: Vec<u8>,
    rewritten: Vec<u8>,
    outgoing: Vec<u8>,
    random: Random,
    policies: Policies,
    /// Whose waits ended in the present step.
    grants: Grants,
    /// Backends in which somebody may wait beside a free slot still.
    unfinished: Vec<BackendId>,
    /// By backend id.
    loads: Vec<queue::Load>,
    /// What a policy asked to see of the request that is being routed, and what it wants to edit.
    gathered: Vec<u8>,
    edits: crate::policy::Edits,
    log: Option<Batcher>,
    measures: Measures,
    epoch: Instant,
    now: Micros,
    wall_at_zero_ms: u64,
    wall_read: Micros,
    draining: bool,
    /// Until then clients between two requests are left alone in a drain.
    drain_grace_ends: Micros,
    stopping: bool,
}

impl Worker {
    /// A worker that accepts nothing yet.
    pub fn new(parts: Parts) -> Worker {
        let now = parts.epoch.elapsed().as_micros() as Micros;
        let mut worker = Worker {
            id: parts.id,
            poller: parts.poller,
            ready: Vec::with_capacity(256),
            mailbox: parts.mailbox,
            postboxes: parts.postboxes,
            process: parts.process,
            own_statistics: parts.statistics,
            messages: parts.messages,
            tables: tables::Tables::new(parts.published),
            servers: Vec::new(),
            homes: Vec::new(),
            registrars: parts.registrars,
            strays: parts.strays,
            stray_keys: Vec::new(),
            keys: KeyCache::default(),
            purges: idle::Purges::default(),
            doomed: idle::Doomed::default(),
            preconnects: preconnect::Preconnects::default(),
            listeners: Vec::new(),
            accept_resume: session::NEVER,
            sessions: Slab::default(),
            exchanges: Slab::default(),
            upstreams: Slab::default(),
            run: VecDeque::new(),
            parked_events: Vec::new(),
            wheel: Wheel::new(now),
            expired: Vec::new(),
            buffers: buffers::Buffers::new(parts.buffers),
            scratch: vec![0; parts.measures.scratch],
            request: RequestHead::default(),
            response: ResponseHead::default(),
            additions: Vec::with_capacity(512),
            rewritten: Vec::new(),
            outgoing: Vec::with_capacity(4096),
            random: Random(parts.seed | 1),
            policies: Policies::default(),
            grants: Grants::new(),
            unfinished: Vec::new(),
            loads: Vec::new(),
            gathered: Vec::new(),
            edits: crate::policy::Edits::default(),
            log: parts.log,
            measures: parts.measures,
            epoch: parts.epoch,
            now,
            wall_at_zero_ms: 0,
            wall_read: 0,
            draining: false,
            drain_grace_ends: 0,
            stopping: false,
        };
        worker.read_wall_clock();
        worker.learn_servers();
        worker.take_up_policies();
        worker.learn_preconnects();
        worker
    }

    /// Runs until it is told to stop, or to drain and nothing is left.
    pub fn run(mut self) {
        while !self.is_over() {
            if let Err(error) = self.turn() {
                // The poll itself failed: this worker cannot go on, and the process is better started again.
                self.messages.tell(
                    Level::Error,
                    "a worker cannot wait for events and ends",
                    &[("error", &error)],
                );
                break;
            }
        }
        self.flush_log();
        self.forget_pools();
    }

    fn is_over(&self) -> bool {
        let own = usize::from(self.id.0);
        self.stopping
            || self.draining
                && self.sessions.is_empty()
                && self.unfinished.is_empty()
                && self.process.nobody_hands_off()
                && self.postboxes[own].hand_offs_waiting() == 0
    }

    /// One turn of the loop.
    fn turn(&mut self) -> std::io::Result<()> {
        let mut ready = std::mem::take(&mut self.ready);
        let timeout = self.timeout();
        self.poller.wait(timeout, &mut ready)?;
        self.read_clock();
        for event in ready.drain(..) {
            self.mark(&event);
        }
        self.ready = ready;
        self.look_at_parked();
        self.read_mail();
        self.refresh();
        self.expire_timers();
        self.purge_idle();
        self.preconnect();
        self.close_doomed(self.measures.depth);
        self.free_strays();
        self.accept_all();
        self.run_sessions();
        self.finish_serving();
        self.flush_log();
        self.statistics().turns.count();
        Ok(())
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.run.is_empty()
            || !self.doomed.is_empty()
            || !self.unfinished.is_empty()
            || self.listeners.iter().any(|listening| listening.ready)
        {
            return Some(Duration::ZERO);
        }
        let next = self
            .wheel
            .next_deadline()
            .unwrap_or(session::NEVER)
            .min(self.accept_resume)
            .min(self.purges.next())
            .min(self.preconnects.next());
        if next == session::NEVER {
            return None;
        }
        Some(Duration::from_micros(next.saturating_sub(self.now)))
    }

    /// The one place where the loop reads the clock.
    fn read_clock(&mut self) {
        self.now = self.epoch.elapsed().as_micros() as Micros;
        if self.now.wrapping_sub(self.wall_read) > WALL_EVERY {
            self.read_wall_clock();
        }
    }

    /// Wall-clock time is only for the log: everything else runs on the monotonic clock.
    fn read_wall_clock(&mut self) {
        let wall = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        self.wall_at_zero_ms = (wall.as_millis() as u64).saturating_sub(self.now / 1000);
        self.wall_read = self.now;
    }

    fn mark(&mut self, event: &Ready) {
        let key = event.token.key;
        match event.token.kind {
            Kind::Wake => {}
            Kind::Listener => {
                if let Some(listening) = self.listeners.get_mut(key.slot as usize) {
                    listening.ready |= listening.key_generation == key.generation
                        && listening.is_open()
                        && self.accept_resume == session::NEVER;
                }
            }
            Kind::Client => {
                if let Some(session) = self.sessions.get_mut(key) {
                    session.stream.mark(event);
                    self.enqueue(key);
                }
            }
            Kind::Server => match self.upstreams.get_mut(key) {
                Some(Upstream::Lent {
                    connection, session, ..
                }) => {
                    connection.stream.mark(event);
                    let session = *session;
                    self.enqueue(session);
                }
                Some(
                    Upstream::Private { connection, .. }
                    | Upstream::Opening(preconnect::Opening { connection, .. }),
                ) => {
                    connection.stream.mark(event);
                    self.parked_events.push(key);
                }
                Some(Upstream::Parked { .. }) => self.parked_events.push(key),
                None => {}
            },
        }
    }

    /// Puts a session on the run queue, once.
    fn enqueue(&mut self, key: Key) {
        if let Some(session) = self.sessions.get_mut(key)
            && !session.queued
        {
            session.queued = true;
            self.run.push_back(key);
        }
    }

    fn read_mail(&mut self) {
        if !self.mailbox.silence() {
            return;
        }
        while let Some(order) = self.mailbox.receive() {
            self.obey(order);
        }
        while let Some((listener, accepted)) = self.mailbox.receive_hand_off() {
            self.statistics().hand_offs_taken.count();
            self.admit(listener, accepted);
        }
    }

    fn obey(&mut self, order: Order<Listener, Batcher>) {
        match order {
            Order::Listen(id, place, listener) => self.listen(id, place, listener),
            Order::Rename(place, id) => self.rename(place, id),
            Order::Unlisten(place, _done) => self.unlisten(Some(place)),
            Order::Woken(token) => self.woken(token),
            Order::Look => {}
            Order::Log(log) => self.log = log,
            Order::Stop => self.stopping = true,
            Order::Drain => self.drain(),
        }
    }

    /// Accepts no more, and looks at every session again, because its deadline may be nearer now.
    fn drain(&mut self) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        self.drain_grace_ends = self.now + self.measures.drain_grace;
        self.unlisten(None);
        let keys: Vec<Key> = self.sessions.keys().collect();
        keys.into_iter().for_each(|key| self.enqueue(key));
        // From here on this worker hands no client off; others may have waited for that.
        if self.process.stop_hand_offs() {
            self.postboxes
                .iter()
                .for_each(|post| drop(post.send(Order::Look)));
        }
    }

    fn expire_timers(&mut self) {
        let mut expired = std::mem::take(&mut self.expired);
        self.wheel.expire(self.now, self.measures.depth, &mut expired);
        for (key, at) in expired.drain(..) {
            self.guarded(key, |worker| worker.look(key, at));
        }
        self.expired = expired;
    }

    /// Before anything is lent: an event on a parked connection says nothing to who has it later.
    fn look_at_parked(&mut self) {
        while let Some(key) = self.parked_events.pop() {
            self.parked_event(key);
        }
    }

    fn run_sessions(&mut self) {
        for _ in 0..schedule::turn(self.run.len(), self.measures.depth) {
            let Some(key) = self.run.pop_front() else { break };
            if let Some(session) = self.sessions.get_mut(key) {
                session.queued = false;
                self.guarded(key, |worker| worker.step(key));
            }
        }
    }

    /// A panic in one session's step ends that session and nothing else (DESIGN §4).
    fn guarded(&mut self, key: Key, step: impl FnOnce(&mut Worker)) {
        if catch_unwind(AssertUnwindSafe(|| step(self))).is_err() {
            self.statistics().panics.count();
            self.messages
                .say(Level::Error, "a session ended in a panic of ours", &[]);
            self.scratch.resize(self.measures.scratch, 0);
            // What it had in hand may be the reason, and be met again.
            if catch_unwind(AssertUnwindSafe(|| self.abandon(key))).is_err() {
                self.close(key);
            }
        }
        self.send_grants();
    }

    /// Lets a session go on until nothing moves or its rounds are spent.
    fn step(&mut self, key: Key) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut rounds = ROUNDS;
        while self.advance(key, &mut scratch) {
            rounds -= 1;
            if rounds == 0 {
                self.enqueue(key);
                break;
            }
        }
        self.scratch = scratch;
        self.arm(key);
    }

    /// One round: whatever can move, moves once. `false` when nothing did.
    fn advance(&mut self, key: Key, scratch: &mut [u8]) -> bool {
        let flushed = self.flush_client(key);
        let Some(session) = self.sessions.get(key) else {
            return false;
        };
        let moved = match session.phase {
            Phase::Idle | Phase::Head(_) => self.read_request(key, scratch),
            Phase::Busy(exchange) => self.advance_exchange(key, exchange, scratch),
            Phase::Closing(manner) => self.advance_closing(key, manner, scratch),
        };
        flushed | moved
    }

    /// Takes up a newer generation and lets go of what the former had.
    fn refresh(&mut self) {
        let Some((former, generation)) = self.tables.refresh() else {
            return;
        };
        self.learn_servers();
        self.take_up_policies();
        self.pin_sessions(former, &generation);
        self.close_retired_pools(&generation);
        self.learn_preconnects();
        self.look_at_all_queues();
        self.tables.drop_if_unused(former);
    }

    /// Sessions of a listener that is gone end with the routes they came for.
    fn pin_sessions(&mut self, former: u32, generation: &Current) {
        let current = self.tables.get(self.tables.current()).clone();
        let gone = |id: ListenerId| current.listener(id).is_none() && generation.listener(id).is_some();
        let keys: Vec<Key> = self.sessions.keys().collect();
        for key in keys {
            let session = self.sessions.get_mut(key).expect("a key in use");
            if session.pinned.is_none() && gone(session.listener) {
                session.pinned = Some(former);
                self.tables.hold(former);
            }
        }
    }

    fn take_up_policies(&mut self) {
        let (worker, now) = (self.id, self.policy_now());
        let Worker { tables, policies, .. } = self;
        policies.take_up(tables.get(tables.current()), worker, now);
    }

    fn learn_servers(&mut self) {
        let generation = self.tables.get(self.tables.current()).clone();
        self.homes.fill(None);
        for (backend, entry) in generation.backends.iter().enumerate() {
            for (at, server) in entry.table.entries.iter().map(|known| &known.server).enumerate() {
                let ServerId(place) = server.id;
                let place = place as usize;
                if self.servers.len() <= place {
                    self.servers.resize_with(place + 1, || None);
                    self.homes.resize(place + 1, None);
                }
                self.servers[place].get_or_insert_with(|| server.clone());
                self.homes[place] = Some(Home {
                    backend: backend as u16,
                    index: ServerIndex(at as u16),
                });
            }
        }
    }

    fn server(&self, id: ServerId) -> &Arc<Server<Connection>> {
        self.servers[id.0 as usize]
            .as_ref()
            .expect("a server that a connection belongs to")
    }
}

/// The worker's random draws: xorshift64*, good enough to spread load and nothing else.
#[derive(Debug)]
struct Random(u64);

impl crate::policy::Draw for Random {
    fn draw(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
        ((u64::from(high) * u64::from(bound)) >> 32) as u32
    }
}
