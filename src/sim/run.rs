//! The loop of a run: events in virtual time, workers that do one thing after another, clients that come back.

use super::agenda::{Agenda, Entry, Step};
use super::connections::{Connections, Name, Wrong};
use super::edits::OnTheWay;
use super::invariant::{Broken, Invariant};
use super::live::{Lives, Token};
use super::machine::Machines;
use super::message::Message;
use super::random::Dice;
use super::report::{Report, Second, Tally};
use super::steering::{Current, Steering};
use super::traffic::{There, Who};
use super::world::World;
use crate::decide::reuse::Descriptors;
use crate::decide::settings::Micros;
use crate::policy::{BackendId, Priority, ServerId, WorkerId};
use crate::shared::instances::Policies;
use crate::shared::key::{KeyCache, KeySecret};
use crate::shared::pool::Pool;
use crate::shared::queue::Grants;
use crate::shared::server::Server;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// One run.
pub(super) struct Run<'w> {
    pub(super) world: &'w World,
    pub(super) steering: &'w mut dyn Steering,
    pub(super) now: Micros,
    pub(super) agenda: Agenda,
    pub(super) dice: Dice,
    /// What is published.
    pub(super) current: Arc<Current>,
    pub(super) workers: Vec<VirtualWorker>,
    pub(super) machines: Machines,
    /// By id: all servers that there ever were.
    pub(super) servers: Vec<Arc<Server<Name>>>,
    pub(super) secret: KeySecret,
    pub(super) clients: Vec<Client>,
    pub(super) connections: Connections,
    pub(super) lives: Lives,
    /// Whose wait has ended otherwise, but will be told of.
    pub(super) late: BTreeSet<Token>,
    /// By server and worker: whether the purge timer runs.
    pub(super) armed: Vec<bool>,
    /// Requests that wait in a queue.
    pub(super) in_queues: u32,
    /// Requests so far.
    pub(super) asked: u64,
    /// What the step that is being done has cost its worker.
    pub(super) spent: Micros,
    /// Of this second.
    pub(super) tally: Tally,
    pub(super) report: Report,
    /// By traffic: what its newest request says.
    pub(super) messages: Vec<Message<'w>>,
    /// Where the request that is being begun stands in queues, by its route.
    pub(super) priority: Priority,
    /// What becomes of the fields of that request.
    pub(super) on_the_way: OnTheWay,
    /// By stream: of which traffic, and which of its clients.
    streams: Vec<(u16, u32)>,
    /// By traffic: its first client.
    pub(super) first_client: Vec<u32>,
    /// By traffic: requests so far.
    pub(super) arrived: Vec<u64>,
    /// Workers that have not taken up what is published.
    behind: u16,
    steps: u64,
}

/// A worker, and what waits for it.
#[derive(Debug)]
pub(super) struct VirtualWorker {
    pub(super) generation: Arc<Current>,
    pub(super) policies: Policies,
    pub(super) keys: KeyCache,
    pub(super) loads: BTreeMap<BackendId, Load>,
    busy: bool,
    waiting: VecDeque<Step>,
}

/// Requests of a worker in one backend that has a retry budget.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) live: u32,
    pub(super) trying: u32,
}

/// A client's session.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) worker: WorkerId,
    /// Requests of this session.
    pub(super) requests: u32,
    /// Those on their way.
    pub(super) on_their_way: u32,
    /// Private connections, and those attached to it.
    pub(super) own: Vec<Name>,
    /// Who had its last request (LB-51).
    pub(super) last: Option<(BackendId, ServerId)>,
    /// Whom its cookies name, backend by backend (LB-52).
    pub(super) cookies: Vec<(BackendId, ServerId)>,
}

const SECOND: Micros = 1_000_000;

impl<'w> Run<'w> {
    pub(super) fn new(world: &'w World, steering: &'w mut dyn Steering, seed: u64) -> Self {
        let current = steering.first();
        let worker = || VirtualWorker {
            generation: current.clone(),
            policies: Policies::default(),
            keys: KeyCache::default(),
            loads: BTreeMap::new(),
            busy: false,
            waiting: VecDeque::new(),
        };
        let mut run = Run {
            world,
            now: 0,
            agenda: Agenda::new(seed),
            dice: Dice::new(seed),
            workers: (0..world.workers).map(|_| worker()).collect(),
            machines: Machines::default(),
            servers: Vec::new(),
            secret: KeySecret::from_seed(seed),
            clients: Vec::new(),
            connections: Connections::new(0),
            lives: Lives::default(),
            late: BTreeSet::new(),
            armed: Vec::new(),
            in_queues: 0,
            asked: 0,
            spent: 0,
            tally: Tally::default(),
            report: Report::new(seed, world),
            messages: world.traffic.iter().map(|_| Message::default()).collect(),
            priority: Priority::default(),
            on_the_way: OnTheWay::default(),
            streams: Vec::new(),
            first_client: Vec::new(),
            arrived: vec![0; world.traffic.len()],
            behind: 0,
            steps: 0,
            steering,
            current,
        };
        run.learn_servers();
        run
    }

    pub(super) fn finish(mut self) -> Result<Report, Broken> {
        self.begin()?;
        while let Some(Entry { at, worker, step, .. }) = self.agenda.next() {
            if self.is_over_at(at) && self.lives.is_empty() {
                break;
            }
            self.pass_seconds(at)?;
            self.now = at;
            match step {
                Step::Resume => self.resume(worker)?,
                Step::Steer => self.steer()?,
                Step::Watch => self.look(),
                step => self.come(worker, step)?,
            }
        }
        self.end_last_second()?;
        self.drain()?;
        self.report.close(&self.servers);
        Ok(self.report)
    }

    fn begin(&mut self) -> Result<(), Broken> {
        for at in 0..self.workers.len() {
            let worker = &mut self.workers[at];
            worker
                .policies
                .take_up(&self.current, WorkerId(at as u16), Duration::ZERO);
        }
        self.enter_clients();
        if self.world.watch.step > 0 {
            self.agenda.enter(self.world.watch.step, WorkerId(0), Step::Watch);
        }
        self.steer()
    }

    fn enter_clients(&mut self) {
        let (world, workers) = (self.world, u32::from(self.world.workers));
        for (traffic, at) in world.traffic.iter().zip(0_u16..) {
            let first = self.clients.len() as u32;
            self.first_client.push(first);
            let clients =
                (first..first + traffic.clients()).map(|client| Client::of((client % workers) as u16));
            self.clients.extend(clients);
            match &traffic.who {
                Who::Clients(clients) => {
                    for stream in 0..clients.count * clients.streams {
                        let client = first + stream / clients.streams;
                        let begins = traffic.from + self.dice.before(clients.ramp);
                        let stream = self.streams.len() as u32;
                        self.streams.push((at, client));
                        let worker = self.clients[client as usize].worker;
                        self.agenda.enter(begins, worker, Step::Ask(stream));
                    }
                }
                Who::Open(open) => {
                    let begins = traffic.from + self.dice.time(open.gap);
                    self.agenda.enter(begins, WorkerId(0), Step::Arrive(at));
                }
                Who::Script(lines) => {
                    for (line, place) in lines.iter().zip(0..) {
                        let worker = self.clients[(first + line.client) as usize].worker;
                        self.agenda.enter(line.at, worker, Step::Scripted(at, place));
                    }
                }
            }
        }
    }

    /// Something comes to a worker: it does it, or has it wait.
    fn come(&mut self, worker: WorkerId, step: Step) -> Result<(), Broken> {
        if let Step::Arrive(traffic) = step {
            return self.arrive_openly(traffic);
        }
        let desk = &mut self.workers[usize::from(worker.0)];
        if desk.busy {
            desk.waiting.push_back(step);
            return Ok(());
        }
        self.perform(worker, step)
    }

    /// The worker is through with what it was at.
    fn resume(&mut self, worker: WorkerId) -> Result<(), Broken> {
        let at = usize::from(worker.0);
        self.workers[at].busy = false;
        while !self.workers[at].busy {
            let Some(step) = self.workers[at].waiting.pop_front() else {
                break;
            };
            self.perform(worker, step)?;
        }
        Ok(())
    }

    fn perform(&mut self, worker: WorkerId, step: Step) -> Result<(), Broken> {
        self.steps += 1;
        self.spent = 0;
        match step {
            Step::Ask(stream) => self.ask(worker, stream)?,
            Step::Scripted(..) | Step::Burst(..) if self.is_over() => {}
            Step::Scripted(traffic, line) => self.scripted(worker, traffic, line)?,
            Step::Burst(traffic, client) => self.request(worker, traffic, client, None, None)?,
            Step::Opened(token, attempt) => self.opened(token, attempt)?,
            Step::Refused(token, attempt) => self.refused(token, attempt)?,
            Step::Unreachable(token, attempt) => self.unreachable(token, attempt)?,
            Step::Answered(token, attempt) => self.answered(token, attempt)?,
            Step::Lost(token, attempt) => self.lost(token, attempt)?,
            Step::Late(token, attempt) => self.late_answer(token, attempt)?,
            Step::PauseOver(token, attempt) => self.pause_over(token, attempt)?,
            Step::Purge(server) => self.purge(worker, ServerId(server))?,
            Step::Told(token) => self.told(token)?,
            Step::Expired(token, attempt) => self.wait_expired(token, attempt)?,
            Step::Left(token, attempt) => self.leave_queue(token, attempt)?,
            Step::TakeUp => self.take_up(worker)?,
            Step::Resume | Step::Steer | Step::Watch | Step::Arrive(_) => {}
        }
        self.check_waiting()?;
        if self.spent > 0 {
            self.workers[usize::from(worker.0)].busy = true;
            self.agenda.enter(self.now + self.spent, worker, Step::Resume);
        }
        Ok(())
    }

    fn ask(&mut self, worker: WorkerId, stream: u32) -> Result<(), Broken> {
        let (at, client) = self.streams[stream as usize];
        let traffic = &self.world.traffic[usize::from(at)];
        let Who::Clients(clients) = &traffic.who else {
            unreachable!("only clients have streams")
        };
        if self.is_over() || self.now >= traffic.until {
            return Ok(());
        }
        let own = client - self.first_client[usize::from(at)];
        match clients.there(own, self.now) {
            None => Ok(()),
            Some(There::From(begins)) => {
                let begins = begins + self.dice.before(clients.think.mean());
                self.agenda.enter(begins, worker, Step::Ask(stream));
                Ok(())
            }
            Some(There::Now) => self.request(worker, at, client, Some(stream), None),
        }
    }

    /// Requests that come at a rate: these, and when the next ones do.
    fn arrive_openly(&mut self, at: u16) -> Result<(), Broken> {
        let traffic = &self.world.traffic[usize::from(at)];
        let Who::Open(open) = &traffic.who else {
            unreachable!("only open traffic comes at a rate")
        };
        if self.is_over() || self.now >= traffic.until {
            return Ok(());
        }
        let (gap, first) = (open.gap, self.first_client[usize::from(at)]);
        for _ in 0..open.burst.max(1) {
            let nth = &mut self.arrived[usize::from(at)];
            let client = first + (*nth % u64::from(open.clients.max(1))) as u32;
            *nth += 1;
            let worker = self.clients[client as usize].worker;
            self.come(worker, Step::Burst(at, client))?;
        }
        let next = self.now + self.dice.time(gap);
        self.agenda.enter(next, WorkerId(0), Step::Arrive(at));
        Ok(())
    }

    fn scripted(&mut self, worker: WorkerId, traffic: u16, line: u32) -> Result<(), Broken> {
        let Who::Script(lines) = &self.world.traffic[usize::from(traffic)].who else {
            unreachable!("only a script has lines")
        };
        let line = &lines[line as usize];
        let client = self.first_client[usize::from(traffic)] + line.client;
        self.request(worker, traffic, client, None, Some(line))
    }

    /// The stream of a client thinks, then asks again: after `least` at least.
    pub(super) fn think(&mut self, worker: WorkerId, stream: Option<u32>, least: Micros) {
        let Some(stream) = stream else {
            return;
        };
        let (traffic, _) = self.streams[stream as usize];
        if let Who::Clients(clients) = &self.world.traffic[usize::from(traffic)].who {
            let at = self.now + self.dice.time(clients.think).max(least);
            self.agenda.enter(at, worker, Step::Ask(stream));
        }
    }

    /// After how many requests this client comes back as a new one.
    pub(super) fn session_max(&self, stream: Option<u32>) -> Option<u32> {
        let (traffic, _) = self.streams[stream? as usize];
        match &self.world.traffic[usize::from(traffic)].who {
            Who::Clients(clients) => clients.session,
            Who::Open(_) | Who::Script(_) => None,
        }
    }

    fn asked_enough(&self) -> bool {
        self.asked >= self.world.requests_max
    }

    fn is_over(&self) -> bool {
        self.is_over_at(self.now)
    }

    fn is_over_at(&self, at: Micros) -> bool {
        self.asked_enough() || at >= self.world.duration
    }

    // ---- what is in force ----------------------------------------------------------------------------------------

    fn steer(&mut self) -> Result<(), Broken> {
        let turn = self.steering.turn(self.now);
        let notes = turn.notes.into_iter().map(|note| (self.now, note));
        self.report.notes.extend(notes);
        if let Some(generation) = turn.generation {
            self.publish(generation)?;
        }
        if turn.models {
            self.learn_models();
        }
        if let Some(next) = turn.next {
            self.agenda
                .enter(next.max(self.now + 1), WorkerId(0), Step::Steer);
        }
        Ok(())
    }

    /// As the control thread does it: queues are opened, the swap, those sent back whose server has gone.
    fn publish(&mut self, generation: Arc<Current>) -> Result<(), Broken> {
        generation.open_queues();
        let former = std::mem::replace(&mut self.current, generation);
        self.learn_servers();
        let mut grants = Grants::new();
        for (_, sent) in self.current.succeed(&former, &mut grants) {
            self.tally.sent_back += u64::from(sent);
        }
        self.tell_waits(grants);
        self.behind = self.world.workers;
        for worker in 0..self.world.workers {
            self.agenda.enter(self.now, WorkerId(worker), Step::TakeUp);
        }
        Ok(())
    }

    /// A worker looks at what is published.
    pub(super) fn take_up(&mut self, worker: WorkerId) -> Result<(), Broken> {
        let time = self.policy_now();
        let own = &mut self.workers[usize::from(worker.0)];
        if Arc::ptr_eq(&own.generation, &self.current) {
            return Ok(());
        }
        let former = std::mem::replace(&mut own.generation, self.current.clone());
        own.policies.take_up(&own.generation, worker, time);
        self.behind -= 1;
        self.close_retired(worker, &former)?;
        let current = self.current.clone();
        for entry in &current.backends {
            let mut grants = Grants::new();
            entry.table.look(&mut grants);
            self.tell_waits_of(&entry.table, grants);
        }
        Ok(())
    }

    /// Whether every worker has what is published.
    pub(super) fn is_settled(&self) -> bool {
        self.behind == 0
    }

    fn learn_servers(&mut self) {
        let current = self.current.clone();
        for entry in current.backends.iter().flat_map(|entry| &entry.table.entries) {
            let at = entry.server.id.0 as usize;
            while self.servers.len() <= at {
                self.servers.push(entry.server.clone());
            }
            self.servers[at] = entry.server.clone();
        }
        self.connections.make_room(self.servers.len());
        let places = self.servers.len() * usize::from(self.world.workers);
        self.armed.resize(places, false);
        self.learn_models();
    }

    fn learn_models(&mut self) {
        let steering = &*self.steering;
        self.machines.learn(&self.servers, |server| {
            steering.model(&server.backend, &server.name)
        });
    }

    /// The time as policies are told it.
    pub(super) fn policy_now(&self) -> Duration {
        Duration::from_micros(self.now)
    }

    // ---- seconds -------------------------------------------------------------------------------------------------

    /// Ends the seconds that are over at `at`; the last one may be a part of a second.
    fn pass_seconds(&mut self, at: Micros) -> Result<(), Broken> {
        while !self.all_seconds_are_over() {
            let ends = (self.report.seconds.len() as u64 + 1) * SECOND;
            let ends = ends.min(self.world.duration);
            if ends > at {
                break;
            }
            self.now = ends;
            self.end_second()?;
        }
        Ok(())
    }

    fn all_seconds_are_over(&self) -> bool {
        self.report.seconds.len() as u64 >= self.world.duration.div_ceil(SECOND)
    }

    /// Ends the last second, or adds to it what happened after it.
    fn end_last_second(&mut self) -> Result<(), Broken> {
        if !self.asked_enough() {
            self.pass_seconds(self.world.duration)?;
        }
        if !self.all_seconds_are_over() {
            return self.end_second();
        }
        let late = std::mem::take(&mut self.tally);
        if let Some(last) = self.report.seconds.last_mut() {
            last.tally += late;
        }
        Ok(())
    }

    fn end_second(&mut self) -> Result<(), Broken> {
        let mut second = Second {
            tally: std::mem::take(&mut self.tally),
            ..Second::default()
        };
        for at in 0..self.servers.len() {
            let server = ServerId(at as u32);
            self.check(server)?;
            self.check_shards(server)?;
            let counted = self.pool(server).need.read();
            second.used += counted.used;
            second.idle += counted.idle;
            second.need += counted.need;
        }
        self.report.seconds.push(second);
        Ok(())
    }

    /// Writes down how the servers stand.
    fn look(&mut self) {
        let queued = self
            .current
            .backends
            .iter()
            .map(|entry| entry.table.queued())
            .sum();
        self.report.look(self.now, &self.servers, queued);
        let next = self.now + self.world.watch.step;
        if next <= self.world.duration {
            self.agenda.enter(next, WorkerId(0), Step::Watch);
        }
    }

    // ---- what must hold ------------------------------------------------------------------------------------------

    pub(super) fn pool(&self, server: ServerId) -> &Pool<Name> {
        &self.servers[server.0 as usize].pool
    }

    pub(super) fn descriptors(&self) -> Descriptors {
        let marks = self.world.marks;
        Descriptors::new(self.connections.open_in_all(), marks.limit, marks.low, marks.high)
    }

    /// The counters of a server say what is there.
    pub(super) fn check(&self, server: ServerId) -> Result<(), Broken> {
        let (pool, there) = (self.pool(server), self.connections.of(server));
        let (counted, total) = (pool.need.read(), pool.total().read());
        if (counted.used, counted.idle, total) == (there.used, there.parked, there.in_all()) {
            return Ok(());
        }
        let seen = format!(
            "server {}: {counted:?} and {total} in all, but there are {there:?}",
            self.name_of(server)
        );
        Err(self.broken((Invariant::Counters, seen)))
    }

    fn check_shards(&self, server: ServerId) -> Result<(), Broken> {
        let (pool, there) = (self.pool(server), self.connections.of(server));
        let in_shards: u32 = (0..pool.workers())
            .map(|worker| pool.parked_by(WorkerId(worker)))
            .sum();
        if in_shards == there.parked && pool.idle() + pool.safe() == there.parked {
            return Ok(());
        }
        let seen = format!(
            "server {}: {in_shards} in shards, but {} are parked",
            self.name_of(server),
            there.parked
        );
        Err(self.broken((Invariant::Counters, seen)))
    }

    pub(super) fn name_of(&self, server: ServerId) -> &str {
        &self.servers[server.0 as usize].name
    }

    pub(super) fn broken(&self, (invariant, seen): Wrong) -> Broken {
        Broken {
            invariant,
            seed: self.report.seed,
            step: self.steps,
            at: self.now,
            seen,
            last: self.report.last_lines(),
        }
    }
}

impl Client {
    fn of(worker: u16) -> Self {
        Client {
            worker: WorkerId(worker),
            requests: 0,
            on_their_way: 0,
            own: Vec::new(),
            last: None,
            cookies: Vec::new(),
        }
    }
}
