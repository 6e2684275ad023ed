//! What a run showed.

use super::decision::{Chooser, Decision};
use super::delays::Delays;
use super::sample::{Sample, Sampled};
use super::world::{Watch, World};
use crate::decide::exchange::Failure;
use crate::decide::reuse::{CloseReason, OpenReason};
use crate::decide::settings::Micros;
use crate::policy::{ServerId, Usage, WorkerId};
use crate::shared::server::Server;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::{AddAssign, Range};
use std::sync::Arc;

/// Decisions that are shown with a broken invariant.
const LAST_LINES: usize = 20;

/// What a run showed. Its text ([`fmt::Display`]) is the same for the same cluster and seed, on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed of the run.
    pub seed: u64,
    /// Second by second of virtual time. Responses to what was still on its way when the time was over are in the last
    /// one.
    pub seconds: Vec<Second>,
    /// Connections that each worker has taken over.
    pub taken_by: Vec<u64>,
    /// Connections that each worker has lost to others.
    pub given_by: Vec<u64>,
    /// Requests that each server has had, by id.
    pub served_by: Vec<u64>,
    /// The servers' backends and names, by id.
    pub servers: Vec<(String, String)>,
    /// How long those who waited and got a slot have waited.
    pub delays: Delays,
    /// From a request to its response, waits and further attempts included.
    pub latency: Delays,
    /// Requests that got no response of a server, by [`Failure::index`].
    pub failures: [u64; Failure::COUNT],
    /// The first decisions ([`Watch::first`](super::Watch::first)).
    pub decisions: Vec<Decision>,
    /// The last ones ([`Watch::last`](super::Watch::last)).
    pub last: VecDeque<Decision>,
    /// How many there were in all.
    pub decided: u64,
    /// What happened to the cluster, and when.
    pub notes: Vec<(Micros, String)>,
    /// How the servers stood, once in each [`Watch::step`](super::Watch::step).
    pub samples: Vec<Sample>,
    /// By key: who had it last before the instant that parts the run, and after it.
    keys: BTreeMap<Box<str>, [Option<ServerId>; 2]>,
    /// The most work that a call took, by policy.
    fuel: BTreeMap<Box<str>, u64>,
    watch: Watch,
    sampled: Sampled,
}

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// What happened in it.
    pub tally: Tally,
    /// Connections in use at its end, all servers together.
    pub used: u32,
    /// Connections parked at its end, all servers together.
    pub idle: u32,
    /// The estimated need at its end, all servers together.
    pub need: u32,
}

/// What happened in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that had a connection.
    pub requests: u64,
    /// Those that had one that was there: parked, private, or with a free stream.
    pub reused: u64,
    /// Of these, by a take-over from a sibling.
    pub taken_over: u64,
    /// Of these, by one more stream of a busy connection.
    pub joined: u64,
    /// Requests that got nothing: no server, or no connection under `strict-maxconn`.
    pub refused: u64,
    /// Requests that had to wait for a slot.
    pub waited: u64,
    /// Those whose time was up meanwhile.
    pub timed_out: u64,
    /// Those whose client left meanwhile.
    pub left: u64,
    /// Waits that were sent back to choose again.
    pub sent_back: u64,
    /// Further attempts at the same server.
    pub retries: u64,
    /// Further attempts at another one (RT-6).
    pub redispatches: u64,
    /// Reused connections that died before a response, without another attempt (POOL-16).
    pub reuse_aborts: u64,
    /// Connects that were refused or took too long.
    pub connect_failures: u64,
    /// Connections that ended, or stayed silent for too long, in the place of a response.
    pub lost: u64,
    /// Responses with a status of 500 or more.
    pub errors: u64,
    /// Requests that a rule answered.
    pub by_rule: u64,
    chosen: [u64; Chooser::COUNT],
    opened: [u64; OpenReason::COUNT],
    closed: [u64; CloseReason::COUNT],
}

impl Report {
    pub(super) fn new(seed: u64, world: &World) -> Report {
        let workers = usize::from(world.workers);
        Report {
            seed,
            seconds: Vec::new(),
            taken_by: vec![0; workers],
            given_by: vec![0; workers],
            served_by: Vec::new(),
            servers: Vec::new(),
            delays: Delays::default(),
            latency: Delays::default(),
            failures: [0; Failure::COUNT],
            decisions: Vec::new(),
            last: VecDeque::new(),
            decided: 0,
            notes: Vec::new(),
            samples: Vec::new(),
            keys: BTreeMap::new(),
            fuel: BTreeMap::new(),
            watch: world.watch,
            sampled: Sampled::default(),
        }
    }

    /// Whether decisions are written down.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.first + self.watch.last > 0
    }

    pub(super) fn tell(&mut self, decision: &Decision) {
        self.decided += 1;
        if self.decisions.len() < self.watch.first {
            self.decisions.push(decision.clone());
        } else if self.watch.last > 0 {
            if self.last.len() == self.watch.last {
                self.last.pop_front();
            }
            self.last.push_back(decision.clone());
        }
    }

    /// What was decided last.
    pub(super) fn last_lines(&self) -> Vec<String> {
        let all = self.decisions.iter().chain(&self.last);
        let skipped = (self.decisions.len() + self.last.len()).saturating_sub(LAST_LINES);
        all.skip(skipped).map(ToString::to_string).collect()
    }

    pub(super) fn served(&mut self, server: ServerId) {
        let at = server.0 as usize;
        if self.served_by.len() <= at {
            self.served_by.resize(at + 1, 0);
        }
        self.served_by[at] += 1;
        if self.watch.step > 0 {
            self.sampled.served(at);
        }
    }

    /// Whether it is to be known which server has which key.
    pub(super) fn watches_keys(&self) -> bool {
        self.watch.keys.is_some()
    }

    pub(super) fn keyed(&mut self, now: Micros, key: &str, server: ServerId) {
        if let Some(split) = self.watch.keys {
            let seen = self.keys.entry(key.into()).or_default();
            seen[usize::from(now >= split.at)] = Some(server);
        }
    }

    /// Keys that another server had after the instant than before it, of those that were seen on both sides.
    pub fn moved_keys(&self) -> (u64, u64) {
        let both = self
            .keys
            .values()
            .filter_map(|[before, after]| Some((*before)? != (*after)?));
        both.fold((0, 0), |(moved, seen), has_moved| {
            (moved + u64::from(has_moved), seen + 1)
        })
    }

    /// A policy was asked something.
    pub(super) fn asked(&mut self, policy: &str, usage: impl FnOnce() -> Usage) {
        if self.watch.fuel
            && let Some(fuel) = usage().fuel
        {
            let most = self.fuel.entry(policy.into()).or_default();
            *most = (*most).max(fuel.used);
        }
    }

    /// The most work that a call of a policy took on a worker; nothing where that was not watched.
    pub fn fuel_of(&self, policy: &str) -> Option<u64> {
        self.fuel.get(policy).copied()
    }

    pub(super) fn answered(&mut self, took: Micros) {
        self.latency.add(took);
        if self.watch.step > 0 {
            self.sampled.latency.add(took);
        }
    }

    pub(super) fn waited(&mut self, time: Micros) {
        self.delays.add(time);
        if self.watch.step > 0 {
            self.sampled.queueing.add(time);
        }
    }

    pub(super) fn failed(&mut self, failure: Failure) {
        self.failures[failure.index()] += 1;
        self.sampled.failed += 1;
    }

    pub(super) fn lent(&mut self, is_new: bool) {
        let count = if is_new {
            &mut self.sampled.opened
        } else {
            &mut self.sampled.reused
        };
        *count += 1;
    }

    pub(super) fn taken_over(&mut self, by: WorkerId, from: WorkerId) {
        self.taken_by[usize::from(by.0)] += 1;
        self.given_by[usize::from(from.0)] += 1;
    }

    /// Writes down how the servers stand.
    pub(super) fn look<C>(&mut self, now: Micros, servers: &[Arc<Server<C>>], queued: u32) {
        let sampled = std::mem::take(&mut self.sampled);
        self.samples.push(sampled.sample(now, servers, queued));
    }

    /// The run is over.
    pub(super) fn close<C>(&mut self, servers: &[Arc<Server<C>>]) {
        let name = |server: &Arc<Server<C>>| (server.backend.to_string(), server.name.to_string());
        self.servers = servers.iter().map(name).collect();
        self.served_by.resize(servers.len(), 0);
    }

    /// What happened in all.
    pub fn total(&self) -> Tally {
        self.between(0..self.seconds.len())
    }

    /// What happened in these seconds; those that are not there count nothing.
    pub fn between(&self, seconds: Range<usize>) -> Tally {
        let mut sum = Tally::default();
        for second in self.seconds.iter().take(seconds.end).skip(seconds.start) {
            sum += second.tally;
        }
        sum
    }
}

impl Tally {
    /// Connections that were opened for that reason.
    pub fn opened_for(&self, reason: OpenReason) -> u64 {
        self.opened[reason.index()]
    }

    /// Connections that were closed for that reason.
    pub fn closed_for(&self, reason: CloseReason) -> u64 {
        self.closed[reason.index()]
    }

    /// Connections that were opened.
    pub fn opened(&self) -> u64 {
        self.opened.iter().sum()
    }

    /// Connections that were closed.
    pub fn closed(&self) -> u64 {
        self.closed.iter().sum()
    }

    /// Requests with a connection that was there already, in percent; 0 without requests.
    pub fn reuse_percent(&self) -> f64 {
        self.of_requests(self.reused, 100)
    }

    /// So many of so many requests: `of_requests(tally.opened(), 1_000)` is connections opened per 1,000 requests. 0
    /// without requests.
    pub fn of_requests(&self, part: u64, scale: u32) -> f64 {
        part as f64 * f64::from(scale) / self.requests.max(1) as f64
    }

    /// Requests of which that one chose the server.
    pub fn chosen_by(&self, chooser: Chooser) -> u64 {
        self.chosen[chooser.index()]
    }

    pub(super) fn choose(&mut self, chooser: Chooser) {
        self.chosen[chooser.index()] += 1;
    }

    pub(super) fn open(&mut self, reason: OpenReason) {
        self.opened[reason.index()] += 1;
    }

    pub(super) fn close(&mut self, reason: CloseReason) {
        self.closed[reason.index()] += 1;
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.reused += other.reused;
        self.taken_over += other.taken_over;
        self.joined += other.joined;
        self.refused += other.refused;
        self.waited += other.waited;
        self.timed_out += other.timed_out;
        self.left += other.left;
        self.sent_back += other.sent_back;
        self.retries += other.retries;
        self.redispatches += other.redispatches;
        self.reuse_aborts += other.reuse_aborts;
        self.connect_failures += other.connect_failures;
        self.lost += other.lost;
        self.errors += other.errors;
        self.by_rule += other.by_rule;
        let add =
            |sum: &mut [u64], more: &[u64]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.opened, &other.opened);
        add(&mut self.closed, &other.closed);
        add(&mut self.chosen, &other.chosen);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.seconds.last().copied().unwrap_or_default();
        writeln!(f, "seed {}, {} s", self.seed, self.seconds.len())?;
        write!(f, "{}", self.total())?;
        writeln!(
            f,
            "at the end: {} used, {} idle, {} needed",
            last.used, last.idle, last.need
        )?;
        if self.delays.count() > 0 {
            let [half, most] = [50, 99].map(|percent| self.delays.percentile(percent));
            writeln!(
                f,
                "delay in queues: {half} µs at the median, {most} at the 99th percentile, {} at most",
                self.delays.most()
            )?;
        }
        writeln!(f, "taken over by {:?} from {:?}", self.taken_by, self.given_by)?;
        self.decisions
            .iter()
            .try_for_each(|decision| writeln!(f, "{decision}"))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "requests {}, reused {} ({:.2} %), taken over {}, joined {}, refused {}",
            self.requests,
            self.reused,
            self.reuse_percent(),
            self.taken_over,
            self.joined,
            self.refused
        )?;
        if self.waited > 0 {
            writeln!(
                f,
                "waited {}: {} timed out, {} left, {} sent back",
                self.waited, self.timed_out, self.left, self.sent_back
            )?;
        }
        write!(f, "opened {}", self.opened())?;
        for reason in OpenReason::ALL
            .iter()
            .filter(|reason| self.opened_for(**reason) > 0)
        {
            write!(f, ", {} {}", reason.word(), self.opened_for(*reason))?;
        }
        write!(f, "\nclosed {}", self.closed())?;
        for reason in CloseReason::ALL
            .iter()
            .filter(|reason| self.closed_for(**reason) > 0)
        {
            write!(f, ", {} {}", reason.word(), self.closed_for(*reason))?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Span;

    fn second(requests: u64, reused: u64) -> Second {
        let mut tally = Tally {
            requests,
            reused,
            ..Tally::default()
        };
        (reused..requests).for_each(|_| tally.open(OpenReason::None));
        Second {
            tally,
            ..Second::default()
        }
    }

    #[test]
    fn seconds_add_up() {
        let cluster =
            super::super::Cluster::new(1, 1, super::super::VirtualServer::answering(Span::Constant(1)));
        let report = Report {
            seconds: vec![second(10, 5), second(10, 9), second(20, 20)],
            ..Report::new(1, &cluster.world())
        };
        let total = report.total();
        assert_eq!((total.requests, total.opened(), total.closed()), (40, 6, 0));
        assert_eq!(total.reuse_percent(), 85.0);
        assert_eq!(report.between(1..9).opened_for(OpenReason::None), 1);
        assert_eq!(report.between(1..2).of_requests(1, 1_000), 100.0);
        assert_eq!(Tally::default().reuse_percent(), 0.0);
    }
}
