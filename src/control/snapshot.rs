//! Sums the workers' shards into one picture for metrics, commands and the demo.

use super::Control;
use super::kept::Kept;
use crate::decide::balance::Algorithm;
use crate::decide::cause::Cause;
use crate::decide::reuse::{CloseReason, OpenReason};
use crate::net::{Address, Connection};
use crate::observe::snapshot::{
    Backend, Count, Listener, LogCounts, Policy, Process, Queue, Server, ServerTotals, Snapshot, State,
    StatusClasses, Worker,
};

use crate::policy::{Fault, NumberKind};
use crate::shared::generation::AttachedPolicy;
use crate::shared::generation::{BackendEntry, ListenerEntry};
use crate::shared::statistics::{
    self, BackendStatistics, Counter, PerWorker, Phase, QueueStatistics, ServerStatistics,
};
use crate::shared::table::{Admin, Entry};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

impl Control {
    /// All numbers, now.
    pub fn take_snapshot(&self) -> Snapshot {
        let generation = self.published.load();
        let state = self.state.lock();
        let listeners = generation.listeners.iter().flatten().map(|entry| {
            let of_it = state.bound.iter().filter(|bound| *bound.listener == *entry.name);
            listener(entry, of_it.map(|bound| bound.address.to_string()).collect())
        });
        let loads: Vec<u64> = self.process.loads().map(|(_, load)| u64::from(load)).collect();
        Snapshot {
            process: self.process_numbers(generation.number, state.policies.replaced()),
            workers: self
                .statistics
                .iter()
                .enumerate()
                .map(|(at, own)| worker(at, own, loads[at]))
                .collect(),
            listeners: listeners.collect(),
            backends: generation.backends.iter().map(backend).collect(),
            policies: state.policies.with_kept().map(policy).collect(),
        }
    }

    fn process_numbers(&self, generation: u64, policies_replaced: u64) -> Process {
        let log = self.log.lock();
        Process {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            started: self.started,
            taken: SystemTime::now(),
            generation,
            failed_reloads: self.failed_reloads.load(Ordering::Relaxed),
            stopping: self.stopping.load(Ordering::Relaxed),
            descriptors: open_descriptors(),
            descriptor_limit: u64::from(self.process.descriptor_limit()),
            log: log.as_ref().map_or_else(LogCounts::default, |log| log.counts()),
            messages_dropped: self.messages.dropped(),
            policies_replaced,
        }
    }
}

/// Descriptors that are open now.
fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

fn worker(at: usize, own: &statistics::WorkerStatistics, sessions: u64) -> Worker {
    Worker {
        number: at as u16 + 1,
        turns: own.turns.read(),
        accepts: own.accepts.read(),
        hand_offs_given: own.hand_offs_given.read(),
        hand_offs_taken: own.hand_offs_taken.read(),
        sessions,
        takeovers: own.takeovers.read(),
        panics: own.panics.read(),
        accept_pauses: own.accept_pauses.read(),
    }
}

fn listener(entry: &ListenerEntry, addresses: Vec<String>) -> Listener {
    let all = &entry.statistics;
    Listener {
        name: entry.name.to_string(),
        addresses,
        connections: all.sum(|own| own.connections.read()),
        sessions: all.sum(|own| own.sessions.read()),
        requests: all.sum(|own| own.requests.read()),
        refused: Cause::all()
            .map(|cause| Count {
                cause: cause.word(),
                total: all.sum(|own| own.refused[cause.index()].read()),
            })
            .collect(),
        replies: classes(|class| all.sum(|own| own.replies.read(class))),
        timeouts: phases(|phase| all.sum(|own| own.timeouts.read(phase))),
        bytes_in: all.sum(|own| own.bytes_in.read()),
        bytes_out: all.sum(|own| own.bytes_out.read()),
    }
}

fn backend(entry: &BackendEntry<Connection, Address>) -> Backend {
    let table = &entry.table;
    let servers = table.entries.iter().zip(entry.addresses.iter());
    let choices = &entry.statistics;
    let choice = |cause, of: fn(&BackendStatistics) -> &Counter| Count {
        cause,
        total: choices.sum(|own| of(own).read()),
    };
    Backend {
        choices: vec![
            choice("plan", |own| &own.by_plan),
            choice("pick", |own| &own.by_pick),
            choice("native", |own| &own.by_native),
            choice("session", |own| &own.by_session),
            choice("cookie", |own| &own.by_cookie),
        ],
        cookies_missed: vec![
            choice("unknown", |own| &own.cookie_unknown),
            choice("unavailable", |own| &own.cookie_unavailable),
        ],
        name: table.name.to_string(),
        balance: match table.algorithm() {
            Algorithm::Random(draws) => format!("random({draws})"),
            other => other.word().to_owned(),
        },
        waiting: u64::from(table.queued()),
        queue: queue(&entry.statistics, |own| &own.queue),
        budget_spent: choices.sum(|own| own.budget_spent.read()),
        servers: servers
            .map(|(entry, address)| server(entry, address.to_string()))
            .collect(),
    }
}

fn policy((name, place, attached, kept): (&str, &str, &Arc<AttachedPolicy>, &Kept)) -> Policy {
    let all = &attached.statistics;
    let numbers = kept.read();
    let of_kind = |kind| {
        let named = numbers.iter().filter(move |(number, _)| number.kind == kind);
        named.map(|(number, value)| (number.name.to_string(), *value))
    };
    Policy {
        name: name.to_owned(),
        attachment: place.to_owned(),
        calls: all.sum(|own| own.calls.read()),
        remembered: all.sum(|own| own.remembered.read()),
        abstained: all.sum(|own| own.abstained.read()),
        unusable: all.sum(|own| own.unusable.read()),
        rejected: all.sum(|own| own.rejected.read()),
        faults: Fault::ALL
            .iter()
            .map(|fault| Count {
                cause: fault.word(),
                total: all.sum(|own| own.faults[fault.index()].read()),
            })
            .collect(),
        counters: of_kind(NumberKind::Counter)
            .map(|(name, total)| (name, total as u64)) // it was never below zero
            .collect(),
        gauges: of_kind(NumberKind::Gauge).collect(),
    }
}

fn server(entry: &Entry<Connection>, address: String) -> Server {
    let server = &entry.server;
    let counted = server.pool.need.read();
    Server {
        name: server.name.to_string(),
        address,
        weight: entry.weight,
        state: match entry.state {
            Admin::Ready => State::Ready,
            Admin::Drain => State::Drain,
            Admin::Maint => State::Maint,
        },
        served: u64::from(server.slots.served()),
        waiting: u64::from(server.slots.waiting()),
        queue: queue(&server.statistics, |own| &own.queue),
        limit: (entry.limit != u32::MAX).then_some(u64::from(entry.limit)),
        used: u64::from(counted.used),
        max_used: u64::from(counted.max_used),
        need: u64::from(counted.need),
        idle: u64::from(server.pool.idle()),
        safe: u64::from(server.pool.safe()),
        totals: totals(&server.statistics),
    }
}

fn queue<T>(all: &PerWorker<T>, of: impl Fn(&T) -> &QueueStatistics) -> Queue {
    let end = |cause, number: fn(&QueueStatistics) -> &Counter| Count {
        cause,
        total: all.sum(|own| number(of(own)).read()),
    };
    Queue {
        longest: all.peak(|own| of(own).longest.read()),
        waits: all.sum(|own| of(own).entered.read()),
        time: all.sum(|own| of(own).time.read()),
        ends: vec![
            end("timeout", |queue| &queue.timeouts),
            end("client_abort", |queue| &queue.aborted),
            end("requeued", |queue| &queue.sent_back),
            end("full", |queue| &queue.full),
            end("not_admitted", |queue| &queue.rejected),
        ],
    }
}

fn totals(all: &PerWorker<ServerStatistics>) -> ServerTotals {
    let sum = |of: fn(&ServerStatistics) -> &Counter| all.sum(|own| of(own).read());
    ServerTotals {
        requests: sum(|own| &own.requests),
        connects: sum(|own| &own.connects),
        reuses: sum(|own| &own.reuses),
        takeovers: sum(|own| &own.takeovers),
        connect_failures: sum(|own| &own.connect_failures),
        reuse_aborts: sum(|own| &own.reuse_aborts),
        retries: sum(|own| &own.retries),
        redispatches: sum(|own| &own.redispatches),
        responses: classes(|class| all.sum(|own| own.responses.read(class))),
        response_errors: sum(|own| &own.response_errors),
        load_reports: load_reports(
            sum(|own| &own.load_reports),
            sum(|own| &own.load_reports_malformed),
        ),
        bytes_in: sum(|own| &own.bytes_in),
        bytes_out: sum(|own| &own.bytes_out),
        timed_responses: sum(|own| &own.timed_responses),
        response_time: sum(|own| &own.response_time),
        timeouts: phases(|phase| all.sum(|own| own.timeouts.read(phase))),
        opens: OpenReason::ALL
            .iter()
            .map(|reason| Count {
                cause: reason.word(),
                total: all.sum(|own| own.opens[reason.index()].read()),
            })
            .collect(),
        closes: CloseReason::ALL
            .iter()
            .map(|reason| Count {
                cause: reason.word(),
                total: all.sum(|own| own.closes[reason.index()].read()),
            })
            .collect(),
    }
}

fn load_reports(all: u64, malformed: u64) -> Vec<Count> {
    let count = |cause, total| Count { cause, total };
    vec![
        count("read", all.saturating_sub(malformed)),
        count("malformed", malformed),
    ]
}

fn classes(of: impl Fn(usize) -> u64) -> StatusClasses {
    StatusClasses {
        by_class: [of(1), of(2), of(3), of(4), of(5)],
        other: of(0),
    }
}

fn phases(of: impl Fn(Phase) -> u64) -> Vec<Count> {
    Phase::ALL
        .iter()
        .map(|phase| Count {
            cause: phase.word(),
            total: of(*phase),
        })
        .collect()
}
