//! The loop of a run: events in virtual time, workers that do one thing after another, clients that come back.

use super::agenda::{Agenda, Entry, Step};
use super::cluster::There;
use super::connections::{Connections, Name, Wrong};
use super::invariant::{Broken, Invariant};
use super::random::Dice;
use super::report::{Delays, Report, Second, Tally};
use super::waiting::{Ended, Waits};
use super::{Cluster, Load};
use crate::decide::reuse::Descriptors;
use crate::decide::settings::Micros;
use crate::policy::{BackendId, ServerId, ServerIndex, WorkerId};
use crate::shared::key::{KeySecret, Parts, PoolKey};
use crate::shared::pool::Pool;
use crate::shared::server::Server;
use crate::shared::table::{BackendTable, Entry as TableEntry};
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;

/// One run.
#[derive(Debug)]
pub(super) struct Run<'c> {
    pub(super) cluster: &'c Cluster,
    pub(super) now: Micros,
    pub(super) agenda: Agenda,
    pub(super) dice: Dice,
    pub(super) table: Arc<BackendTable<Name>>,
    pub(super) key: PoolKey,
    pub(super) clients: Vec<Client>,
    pub(super) connections: Connections,
    pub(super) exchanges: Slab<Exchange>,
    pub(super) waits: Waits,
    /// By worker and server: whether the purge timer runs.
    pub(super) armed: Vec<bool>,
    /// Requests so far.
    pub(super) asked: u64,
    /// Of this second.
    pub(super) tally: Tally,
    pub(super) report: Report,
    workers: Vec<VirtualWorker>,
    steps: u64,
}

/// A worker, and what waits for it.
#[derive(Clone, Debug, Default)]
struct VirtualWorker {
    busy: bool,
    waiting: VecDeque<Step>,
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
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) client: u32,
    /// Which of the client's streams goes on when it is over.
    pub(super) stream: Option<u32>,
    pub(super) server: ServerIndex,
    pub(super) connection: Name,
}

const SECOND: Micros = 1_000_000;

impl<'c> Run<'c> {
    pub(super) fn new(cluster: &'c Cluster, seed: u64) -> Self {
        let workers = usize::from(cluster.workers);
        let clients = match &cluster.load {
            Load::Clients(clients) => clients.count,
            Load::Script(lines) => lines.iter().map(|line| line.client + 1).max().unwrap_or(0),
        };
        Run {
            cluster,
            now: 0,
            agenda: Agenda::new(seed),
            dice: Dice::new(seed),
            table: table(cluster),
            key: PoolKey::new(&KeySecret::from_seed(seed), &Parts::default()),
            clients: (0..clients)
                .map(|client| Client::of((client % u32::from(cluster.workers)) as u16))
                .collect(),
            connections: Connections::new(cluster.servers.len()),
            exchanges: Slab::new(),
            waits: Waits::default(),
            armed: vec![false; workers * cluster.servers.len()],
            asked: 0,
            tally: Tally::default(),
            report: Report {
                seed,
                seconds: Vec::new(),
                taken_by: vec![0; workers],
                given_by: vec![0; workers],
                served_by: vec![0; cluster.servers.len()],
                delays: Delays::default(),
                decisions: Vec::new(),
            },
            workers: vec![VirtualWorker::default(); workers],
            steps: 0,
        }
    }

    pub(super) fn finish(mut self) -> Result<Report, Broken> {
        self.begin();
        while let Some(Entry { at, worker, step, .. }) = self.agenda.next() {
            if (self.asked_enough() || at >= self.cluster.duration) && self.is_idle() {
                break;
            }
            self.pass_seconds(at)?;
            self.now = at;
            match step {
                Step::Resume => self.resume(worker)?,
                Step::Change(change) => self.change(change)?,
                step => self.come(worker, step)?,
            }
        }
        self.end_last_second()?;
        self.drain()?;
        Ok(self.report)
    }

    fn is_idle(&self) -> bool {
        self.exchanges.is_empty() && self.waits.is_empty()
    }

    fn begin(&mut self) {
        for (change, place) in self.cluster.changes.iter().zip(0..) {
            self.agenda.enter(change.at, WorkerId(0), Step::Change(place));
        }
        match &self.cluster.load {
            Load::Clients(clients) => {
                for stream in 0..clients.count * clients.streams {
                    let worker = self.clients[(stream / clients.streams) as usize].worker;
                    let at = self.dice.before(clients.ramp);
                    self.agenda.enter(at, worker, Step::Ask(stream));
                }
            }
            Load::Script(lines) => {
                for (line, place) in lines.iter().zip(0..) {
                    let worker = self.clients[line.client as usize].worker;
                    self.agenda.enter(line.at, worker, Step::Scripted(place));
                }
            }
        }
    }

    /// Something comes to a worker: it does it, or has it wait.
    fn come(&mut self, worker: WorkerId, step: Step) -> Result<(), Broken> {
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
        let cost = match step {
            Step::Ask(stream) => self.ask(worker, stream)?,
            Step::Scripted(_) if self.is_over() => 0,
            Step::Scripted(line) => {
                let Load::Script(lines) = &self.cluster.load else {
                    unreachable!("only a script has lines")
                };
                self.request(worker, lines[line as usize].client, None)?
            }
            Step::Opened(exchange) => self.opened(exchange)?,
            Step::Answered(exchange) => self.answered(exchange)?,
            Step::Purge(server) => self.purge(worker, ServerIndex(server))?,
            Step::Told(wait) => self.told(wait)?,
            Step::Expired(wait) => self.end_wait(wait, Ended::Expired)?,
            Step::Left(wait) => self.end_wait(wait, Ended::Left)?,
            Step::Resume | Step::Change(_) => 0,
        };
        self.check_waiting()?;
        if cost > 0 {
            self.workers[usize::from(worker.0)].busy = true;
            self.agenda.enter(self.now + cost, worker, Step::Resume);
        }
        Ok(())
    }

    fn ask(&mut self, worker: WorkerId, stream: u32) -> Result<Micros, Broken> {
        let Load::Clients(clients) = &self.cluster.load else {
            unreachable!("only clients have streams")
        };
        let client = stream / clients.streams;
        match clients.there(client, self.now) {
            _ if self.is_over() => Ok(0),
            None => Ok(0),
            Some(There::From(begins)) => {
                let at = begins + self.dice.before(clients.think.mean());
                self.agenda.enter(at, worker, Step::Ask(stream));
                Ok(0)
            }
            Some(There::Now) => self.request(worker, client, Some(stream)),
        }
    }

    /// The stream of a client thinks, then asks again: after `least` at least.
    pub(super) fn think(&mut self, worker: WorkerId, stream: Option<u32>, least: Micros) {
        if let (Load::Clients(clients), Some(stream)) = (&self.cluster.load, stream) {
            let at = self.now + self.dice.time(clients.think).max(least);
            self.agenda.enter(at, worker, Step::Ask(stream));
        }
    }

    fn asked_enough(&self) -> bool {
        self.asked >= self.cluster.requests_max
    }

    fn is_over(&self) -> bool {
        self.asked_enough() || self.now >= self.cluster.duration
    }

    /// Ends the seconds that are over at `at`; the last one may be a part of a second.
    fn pass_seconds(&mut self, at: Micros) -> Result<(), Broken> {
        while !self.all_seconds_are_over() {
            let ends = (self.report.seconds.len() as u64 + 1) * SECOND;
            let ends = ends.min(self.cluster.duration);
            if ends > at {
                break;
            }
            self.now = ends;
            self.end_second()?;
        }
        Ok(())
    }

    fn all_seconds_are_over(&self) -> bool {
        self.report.seconds.len() as u64 >= self.cluster.duration.div_ceil(SECOND)
    }

    /// Ends the last second, or adds to it what happened after it.
    fn end_last_second(&mut self) -> Result<(), Broken> {
        if !self.asked_enough() {
            self.pass_seconds(self.cluster.duration)?;
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
        for at in 0..self.cluster.servers.len() {
            let server = ServerIndex(at as u16);
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

    pub(super) fn pool(&self, server: ServerIndex) -> &Pool<Name> {
        &self.table.at(server).server.pool
    }

    pub(super) fn descriptors(&self) -> Descriptors {
        let (used, limit) = (self.connections.open_in_all(), self.cluster.descriptor_limit);
        Descriptors::new(used, limit, 20, 25)
    }

    /// The counters of a server say what is there.
    pub(super) fn check(&self, server: ServerIndex) -> Result<(), Broken> {
        let (pool, there) = (self.pool(server), self.connections.of(server));
        let (counted, total) = (pool.need.read(), pool.total().read());
        if (counted.used, counted.idle, total) == (there.used, there.parked, there.in_all()) {
            return Ok(());
        }
        let seen = format!(
            "server {}: {counted:?} and {total} in all, but there are {there:?}",
            server.0
        );
        Err(self.broken((Invariant::Counters, seen)))
    }

    fn check_shards(&self, server: ServerIndex) -> Result<(), Broken> {
        let (pool, there) = (self.pool(server), self.connections.of(server));
        let in_shards: u32 = (0..pool.workers())
            .map(|worker| pool.parked_by(WorkerId(worker)))
            .sum();
        if in_shards == there.parked && pool.idle() + pool.safe() == there.parked {
            return Ok(());
        }
        let seen = format!(
            "server {}: {in_shards} in shards, but {} are parked",
            server.0, there.parked
        );
        Err(self.broken((Invariant::Counters, seen)))
    }

    pub(super) fn broken(&self, (invariant, seen): Wrong) -> Broken {
        Broken {
            invariant,
            seed: self.report.seed,
            step: self.steps,
            at: self.now,
            seen,
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
        }
    }
}

fn table(cluster: &Cluster) -> Arc<BackendTable<Name>> {
    let entries = cluster.servers.iter().zip(0..).map(|(server, at)| TableEntry {
        weight: server.weight,
        limit: server.limit,
        queueing: server.queueing,
        ..TableEntry::new(Arc::new(Server::new(
            ServerId(at),
            "simulated",
            &format!("s{at}"),
            cluster.workers,
        )))
    });
    let table = BackendTable::first(BackendId(0), "simulated", cluster.balance, entries.collect());
    table.open();
    Arc::new(table)
}
