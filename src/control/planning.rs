//! Plans: policies that are asked on their own thread, while no request waits, and answer with a table.
//!
//! The planner thread wakes for the earliest tick, shows each planning policy its servers and how they did since the
//! time before, and publishes what comes back, at most one publication in 50 ms. A plan that its policy withdraws, or
//! whose lifetime ends without a successor, is taken back. A guest that loops holds up this thread until its deadline, and nobody else.

use super::registry::News;
use super::{Control, policies};
use crate::config::model;
use crate::policy::{Plan, PlanServer, PlanView, Planner, State, Table};
use crate::shared::generation::AttachedPolicy;
use crate::shared::statistics::ServerStatistics;
use crate::shared::table::Admin;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time between two publications of plans (DESIGN §4).
const PUBLICATION_MIN: Duration = Duration::from_millis(50);
/// How often it looks whether a policy that was replaced is still in use.
const RETIRED_LOOK: Duration = Duration::from_millis(500);
/// How much of a new latency goes into the smoothed one, for a window of one tick.
const LATENCY_GAIN: f64 = 0.3;

/// The planner thread's own.
pub struct Planning {
    control: Arc<Control>,
    epoch: Instant,
    seats: BTreeMap<String, Seat>,
}

/// A backend whose policy plans.
struct Seat {
    attached: Arc<AttachedPolicy>,
    planner: Option<Box<dyn Planner>>,
    next: Instant,
    ends: Option<Instant>,
    /// Generation of the servers that the last plan was made for.
    shown: u64,
    figures: BTreeMap<String, Figures>,
}

/// What was read of a server the time before.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    timed: u64,
    time: u64,
    completed: u64,
    failed: u64,
    /// Smoothed time to the first byte of a response, in µs.
    latency: Option<f64>,
}

impl Planning {
    /// A planner for the policies of a control. `epoch` is the clock's zero of the workers.
    pub fn new(control: Arc<Control>, epoch: Instant) -> Planning {
        Planning {
            control,
            epoch,
            seats: BTreeMap::new(),
        }
    }

    /// Plans until the process stops.
    pub fn run(mut self) {
        while !self.control.is_stopping() {
            let next = self.turn();
            let wait = next
                .saturating_duration_since(Instant::now())
                .max(PUBLICATION_MIN);
            self.control.wait_for_change(wait);
        }
    }

    /// Asks whoever is due; tells when to come again.
    fn turn(&mut self) -> Instant {
        self.take_seats();
        let now = Instant::now();
        let mut next = now + Duration::from_secs(3600);
        let mut all = Vec::new();
        for (backend, seat) in &mut self.seats {
            let mut plan = None;
            let changed = self.control.servers_generation(backend);
            let due = seat.next <= now || changed != seat.shown;
            if due {
                seat.shown = changed;
                seat.next = now + self.control.plan_interval(backend);
                if let Some(made) = seat.ask(&self.control, backend, now - self.epoch) {
                    let withdrawn = made.tiers.is_empty();
                    seat.ends = made
                        .lifetime
                        .filter(|_| !withdrawn)
                        .map(|lifetime| now + lifetime);
                    plan = Some((!withdrawn).then_some(made));
                }
            }
            if plan.is_none() && seat.ends.is_some_and(|ends| ends <= now) {
                seat.ends = None;
                plan = Some(None);
            }
            // A picker is shown the latencies of the day; a planner has just seen them.
            if plan.is_some() || due && seat.attached.attachment.offers().pick {
                all.push(News {
                    backend: backend.clone(),
                    plan,
                    latencies: seat.latencies(),
                });
            }
            next = next.min(seat.next).min(seat.ends.unwrap_or(next));
        }
        if !all.is_empty() {
            self.control.publish_news(&all);
        }
        if self.control.free_retired() {
            next = next.min(now + RETIRED_LOOK);
        }
        next
    }

    /// One seat for each backend whose policy plans now.
    fn take_seats(&mut self) {
        let wanted = self.control.planners();
        self.seats.retain(|backend, seat| {
            wanted
                .iter()
                .any(|(name, attached)| name == backend && Arc::ptr_eq(attached, &seat.attached))
        });
        let now = Instant::now();
        for (backend, attached) in wanted {
            self.seats.entry(backend).or_insert_with(|| Seat {
                attached,
                planner: None,
                next: now,
                ends: None,
                shown: 0,
                figures: BTreeMap::new(),
            });
        }
    }
}

impl Seat {
    /// Reads how the servers did; asks for a plan if the policy plans.
    fn ask(&mut self, control: &Control, backend: &str, now: Duration) -> Option<Plan> {
        let plans = self.attached.attachment.offers().plan;
        if plans && self.planner.is_none() {
            match self.attached.attachment.planner(now) {
                Ok(planner) => self.planner = Some(planner),
                Err(fault) => {
                    control.count_plan(&self.attached, Err(fault));
                    return None;
                }
            }
        }
        let generation = control.generation();
        let entry = generation
            .backends
            .iter()
            .find(|entry| *entry.table.name == *backend)?;
        let figures = &mut self.figures;
        let tags = control.tags(backend);
        let tags: Vec<Vec<(&str, &str)>> = tags.iter().map(|tags| lend(tags)).collect();
        let servers: Vec<PlanServer<'_>> = entry
            .table
            .entries
            .iter()
            .enumerate()
            .map(|(at, one)| {
                let figures = figures.entry(one.server.name.to_string()).or_default();
                let (completed, failed) = figures.take(&one.server.statistics);
                let counted = one.server.pool.need.read();
                PlanServer {
                    name: &one.server.name,
                    tags: tags.get(at).map_or(&[], Vec::as_slice),
                    weight: entry.table.weight(crate::policy::ServerIndex(at as u16)),
                    state: match one.state {
                        Admin::Ready => State::Ready,
                        Admin::Drain => State::Draining,
                        Admin::Maint => State::Maintenance,
                    },
                    limit: (one.limit != u32::MAX).then_some(one.limit),
                    in_flight: one.server.slots.served(),
                    queued: one.server.slots.waiting(),
                    idle: counted.idle,
                    latency: figures.latency.map(|us| Duration::from_micros(us as u64)),
                    completed,
                    failed,
                }
            })
            .collect();
        let planner = self.planner.as_mut()?;
        let answer = planner.plan(&PlanView {
            now,
            servers: &servers,
        });
        control.count_plan(
            &self.attached,
            answer.as_ref().map(Option::is_some).map_err(|fault| *fault),
        );
        answer.ok().flatten()
    }
}

impl Seat {
    fn latencies(&self) -> BTreeMap<String, i32> {
        let shown = |figures: &Figures| {
            figures
                .latency
                .map_or(-1, |us| us.min(f64::from(i32::MAX)) as i32)
        };
        self.figures
            .iter()
            .map(|(name, figures)| (name.clone(), shown(figures)))
            .collect()
    }
}

impl Figures {
    /// Responses, and failures, since the time before; moves the smoothed latency on.
    fn take(&mut self, statistics: &crate::shared::statistics::PerWorker<ServerStatistics>) -> (u64, u64) {
        let timed = statistics.sum(|own| own.timed_responses.read());
        let time = statistics.sum(|own| own.response_time.read());
        let responses = statistics.sum(|own| (1..=5).map(|class| own.responses.read(class)).sum());
        let without = statistics.sum(|own| {
            own.connect_failures.read()
                + own.reuse_aborts.read()
                + own.response_errors.read()
                + own.timeouts.read(crate::shared::statistics::Phase::Server)
        });
        let failed = without + statistics.sum(|own| own.responses.read(5));
        let completed = responses + without;
        if timed > self.timed {
            let mean = (time - self.time) as f64 / (timed - self.timed) as f64;
            self.latency = Some(self.latency.map_or(mean, |old| old + LATENCY_GAIN * (mean - old)));
        }
        let since = (
            completed.saturating_sub(self.completed),
            failed.saturating_sub(self.failed),
        );
        *self = Figures {
            timed,
            time,
            completed,
            failed,
            latency: self.latency,
        };
        since
    }
}

fn lend(tags: &[(String, String)]) -> Vec<(&str, &str)> {
    tags.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

impl Control {
    /// Backends whose policy plans or picks, with it.
    fn planners(&self) -> Vec<(String, Arc<AttachedPolicy>)> {
        let generation = self.published.load();
        let planning = generation.backends.iter().filter_map(|entry| {
            let policy = entry.policy.as_ref()?;
            let offers = policy.attached.attachment.offers();
            (offers.plan || offers.pick).then(|| (entry.table.name.to_string(), policy.attached.clone()))
        });
        planning.collect()
    }

    /// Rises when the servers of a backend are others, or other than they were; not with a plan.
    fn servers_generation(&self, backend: &str) -> u64 {
        self.state.lock().registry.servers_generation(backend)
    }

    fn plan_interval(&self, backend: &str) -> Duration {
        let state = self.state.lock();
        let attached = policies::attachments(&state.config)
            .find(|(kind, place, _)| *kind == policies::Kind::Backend && *place == backend);
        attached.map_or(Duration::from_secs(1), |(_, _, policy)| policy.interval)
    }

    fn tags(&self, backend: &str) -> Vec<Vec<(String, String)>> {
        let state = self.state.lock();
        let of =
            |backend: &model::Backend| backend.servers.iter().map(|server| server.tags.clone()).collect();
        state
            .config
            .backends
            .iter()
            .find(|one| one.name == backend)
            .map_or_else(Vec::new, of)
    }

    fn publish_news(&self, news: &[News]) {
        let mut state = self.state.lock();
        let generation = state.registry.with_news(&self.published.load(), news);
        self.published.store(Arc::new(generation));
        drop(state);
        self.wake_all();
    }
}
