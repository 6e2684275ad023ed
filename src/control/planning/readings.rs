//! How the servers of a backend did since the time before: what plans are made from.

use crate::decide::reuse::Counted;
use crate::policy::{PlanServer, ServerIndex, State, Table};
use crate::shared::generation::BackendEntry;
use crate::shared::statistics::{PerWorker, Phase, ServerStatistics};
use crate::shared::table::Admin;
use std::collections::BTreeMap;
use std::time::Duration;

/// How much of a new latency goes into the smoothed one, for a window of one tick.
const LATENCY_GAIN: f64 = 0.3;

/// What was read of the servers of a backend, by their names.
#[derive(Debug, Default)]
pub(super) struct Readings(BTreeMap<String, Reading>);

/// What was read of one server the time before.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    timed: u64,
    time: u64,
    completed: u64,
    failed: u64,
    opened: u64,
    /// Smoothed time to the first byte of a response, in µs.
    latency: Option<f64>,
}

impl Readings {
    /// Reads all servers of a backend, whose tags stand in the table's order.
    pub(super) fn take<'a, C, A>(
        &mut self,
        entry: &'a BackendEntry<C, A>,
        tags: &'a [Vec<(&'a str, &'a str)>],
    ) -> Vec<PlanServer<'a>> {
        let servers = entry.table.entries.iter().enumerate();
        servers
            .map(|(at, one)| {
                let reading = self.0.entry(one.server.name.to_string()).or_default();
                let since = reading.take(&one.server.statistics);
                let Counted { used, idle, need, .. } = one.server.pool.need.read();
                PlanServer {
                    name: &one.server.name,
                    tags: tags.get(at).map_or(&[], Vec::as_slice),
                    weight: entry.table.weight(ServerIndex(at as u16)),
                    state: match one.state {
                        Admin::Ready => State::Ready,
                        Admin::Drain => State::Draining,
                        Admin::Maint => State::Maintenance,
                    },
                    limit: (one.limit != u32::MAX).then_some(one.limit),
                    in_flight: one.server.slots.served(),
                    queued: one.server.slots.waiting(),
                    used,
                    idle,
                    need,
                    opened: since.opened,
                    latency: reading.latency.map(|us| Duration::from_micros(us as u64)),
                    completed: since.completed,
                    failed: since.failed,
                }
            })
            .collect()
    }

    /// The smoothed latencies in µs, by server; −1 while unknown.
    pub(super) fn latencies(&self) -> BTreeMap<String, i32> {
        let shown = |reading: &Reading| {
            reading
                .latency
                .map_or(-1, |us| us.min(f64::from(i32::MAX)) as i32)
        };
        self.0
            .iter()
            .map(|(name, reading)| (name.clone(), shown(reading)))
            .collect()
    }
}

/// What happened between two readings.
struct Since {
    completed: u64,
    failed: u64,
    opened: u64,
}

impl Reading {
    /// What happened since the time before; moves the smoothed latency on.
    fn take(&mut self, statistics: &PerWorker<ServerStatistics>) -> Since {
        let timed = statistics.sum(|own| own.timed_responses.read());
        let time = statistics.sum(|own| own.response_time.read());
        let opened = statistics.sum(|own| own.connects.read());
        let (completed, failed) = ended(statistics);
        if timed > self.timed {
            let mean = (time - self.time) as f64 / (timed - self.timed) as f64;
            self.latency = Some(self.latency.map_or(mean, |old| old + LATENCY_GAIN * (mean - old)));
        }
        let since = Since {
            completed: completed.saturating_sub(self.completed),
            failed: failed.saturating_sub(self.failed),
            opened: opened.saturating_sub(self.opened),
        };
        *self = Reading {
            timed,
            time,
            completed,
            failed,
            opened,
            latency: self.latency,
        };
        since
    }
}

/// Requests that have ended, and those of them that failed.
pub(super) fn ended(statistics: &PerWorker<ServerStatistics>) -> (u64, u64) {
    let responses = statistics.sum(|own| (1..=5).map(|class| own.responses.read(class)).sum());
    let without = statistics.sum(|own| {
        own.connect_failures.read()
            + own.reuse_aborts.read()
            + own.response_errors.read()
            + own.timeouts.read(Phase::Server)
    });
    let failed = without + statistics.sum(|own| own.responses.read(5));
    (responses + without, failed)
}
