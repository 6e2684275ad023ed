//! How servers did in the last window: 5 to 10 s, in two halves, looked at twice a second and only where a policy reads it.
//!
//! ```text
//!      older          middle          now
//! ───────┼──── 5 s ─────┼── up to 5 s ──┤        the window is older … now
//! ```
//!
//! Workers only count; every half the readings move on by one place.

use super::readings::ended;
use crate::policy::{Measure, ServerId, Windowed};
use crate::shared::generation::{BackendEntry, Generation};
use crate::shared::latencies::Counts;
use crate::shared::server::Server;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Half of a window.
const HALF: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// The servers whose windows somebody reads.
#[derive(Debug, Default)]
pub(super) struct Windows {
    servers: BTreeMap<ServerId, Readings>,
    next: Option<Instant>,
}

/// What was read of one server.
#[derive(Debug)]
struct Readings {
    older: Reading,
    middle: Reading,
    /// When the middle was.
    at: Instant,
}

#[derive(Clone, Debug, Default)]
struct Reading {
    latencies: Counts,
    completed: u64,
    failed: u64,
}

impl Windows {
    /// Looks if it is time to; tells when to come again, if ever.
    pub(super) fn turn<C, A>(&mut self, generation: &Generation<C, A>, now: Instant) -> Option<Instant> {
        let mut watched = generation
            .backends
            .iter()
            .filter(|entry| is_watched(entry))
            .peekable();
        if watched.peek().is_none() {
            *self = Windows::default();
            return None;
        }
        if let Some(next) = self.next.filter(|next| *next > now) {
            return Some(next);
        }
        let mut former = std::mem::take(&mut self.servers);
        for one in watched.flat_map(|entry| &entry.table.entries) {
            let known = former.remove(&one.server.id);
            let mut readings = known.unwrap_or_else(|| Readings::begin(&one.server, now));
            readings.look(&one.server, now);
            self.servers.insert(one.server.id, readings);
        }
        self.next = Some(now + LOOK);
        self.next
    }
}

/// Whether a policy of that backend reads what happened in a window.
fn is_watched<C, A>(entry: &BackendEntry<C, A>) -> bool {
    let mut measures = entry
        .policies()
        .flat_map(|attached| &attached.attachment.offers().measures);
    measures.any(|measure| matches!(measure, Measure::Window(_)))
}

impl Readings {
    fn begin<C>(server: &Server<C>, now: Instant) -> Readings {
        server.statistics.iter().for_each(|own| own.latencies.begin());
        let first = Reading::of(server);
        Readings {
            older: first.clone(),
            middle: first,
            at: now,
        }
    }

    fn look<C>(&mut self, server: &Server<C>, now: Instant) {
        let current = Reading::of(server);
        let latencies = current.latencies.since(&self.older.latencies);
        let completed = current.completed.saturating_sub(self.older.completed);
        let failed = current.failed.saturating_sub(self.older.failed);
        let failures = (failed.min(completed) * 10_000).checked_div(completed);
        let window = &server.window;
        window.set(Windowed::Median, latencies.percentile(50));
        window.set(Windowed::Tail, latencies.percentile(99));
        window.set(Windowed::Failures, failures.map(|share| share as u32)); // at most 10,000
        if now.saturating_duration_since(self.at) >= HALF {
            self.older = std::mem::replace(&mut self.middle, current);
            self.at = now;
        }
    }
}

impl Reading {
    fn of<C>(server: &Server<C>) -> Reading {
        let (completed, failed) = ended(&server.statistics);
        let mut latencies = Counts::default();
        server
            .statistics
            .iter()
            .for_each(|own| latencies.add(&own.latencies));
        Reading {
            latencies,
            completed,
            failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::WorkerId;

    struct Watched {
        server: Server<()>,
        readings: Readings,
        now: Instant,
    }

    impl Watched {
        fn new() -> Watched {
            let server = Server::new(ServerId(0), "app", "a", 2);
            let now = Instant::now();
            let mut readings = Readings::begin(&server, now);
            readings.look(&server, now);
            Watched {
                server,
                readings,
                now,
            }
        }

        /// Responses of a worker, with that status and time.
        fn answers(&self, worker: u16, count: u32, status: u16, microseconds: u64) {
            let statistics = self.server.statistics.of(WorkerId(worker));
            (0..count).for_each(|_| statistics.responded(status, microseconds));
        }

        /// Median, tail and failures after so many more seconds, with a look at each half second.
        fn after(&mut self, seconds: u32) -> [Option<u32>; 3] {
            for _ in 0..2 * seconds {
                self.now += LOOK;
                self.readings.look(&self.server, self.now);
            }
            Windowed::ALL.map(|measure| self.server.window.read(measure))
        }
    }

    #[test]
    fn a_window_ends_with_its_halves() {
        let mut watched = Watched::new();
        assert_eq!(watched.after(1), [None; 3], "nothing has happened");
        watched.answers(0, 90, 200, 1000);
        watched.answers(1, 9, 200, 3000);
        watched.answers(1, 1, 503, 100_000);
        let all = [Some(1023), Some(3071), Some(100)];
        assert_eq!(watched.after(1), all);
        assert_eq!(watched.after(5), all, "in the older half by now");
        watched.answers(0, 1, 200, 2000);
        assert_eq!(watched.after(5), [Some(2047), Some(2047), Some(0)]);
        assert_eq!(watched.after(10), [None; 3], "and all is forgotten");
    }

    #[test]
    fn a_server_that_never_answers_only_fails() {
        let mut watched = Watched::new();
        watched.server.statistics.of(WorkerId(0)).connect_failures.add(3);
        assert_eq!(watched.after(1), [None, None, Some(10_000)]);
    }
}
