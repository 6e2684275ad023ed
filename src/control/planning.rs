//! Plans: policies that are asked on their own thread, while no request waits, and answer with a table, or with how many
//! connections there are to be.
//!
//! The planner thread wakes for the earliest tick, shows each planning policy its servers and how they did since the
//! time before, and publishes what comes back, at most one publication in 50 ms. A plan that its policy withdraws, or
//! whose lifetime ends without a successor, is taken back. A guest that loops holds up this thread until its deadline,
//! and nobody else.

mod readings;
mod windows;

use super::Control;
use super::registry::News;
use crate::config::{Config, model};
use crate::decide::reuse::Wishes;
use crate::net::{Address, Connection};
use crate::policy::{Fault, Live, Plan, PlanView, Planner, PoolWish, ServerId, Usage, WorkerId};
use crate::shared::generation::{AttachedPolicy, Generation};
use crate::shared::table::BackendTable;
use readings::Readings;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windows::Windows;

/// The shortest time between two publications of plans (DESIGN §4).
pub(super) const PUBLICATION_MIN: Duration = Duration::from_millis(50);
/// How often it looks whether a policy that was replaced is still in use.
const RETIRED_LOOK: Duration = Duration::from_millis(500);

/// The planner thread's own.
pub struct Planning {
    control: Arc<Control>,
    seats: Seats,
}

/// Who plans, and for whom. It is told the time, so that it may be another one than the clock's.
pub(super) struct Seats {
    /// The zero of the time that policies are told.
    epoch: Instant,
    /// By backend, and by what the policy is asked.
    seats: BTreeMap<Place, Seat>,
    windows: Windows,
}

/// A backend's name, and what its policy is asked.
type Place = (String, Asked);

/// What planners look at: the proxy that runs, or one that is simulated.
pub(super) trait Planned<C, A> {
    /// What requests are handled by now.
    fn generation(&self) -> Arc<Generation<C, A>>;
    /// Rises when the servers of a backend are others, or other than they were; not with a plan.
    fn servers_generation(&self, backend: &str) -> u64;
    /// The tags of a backend's servers, in the table's order.
    fn tags(&self, backend: &str) -> Vec<Vec<(String, String)>>;
    /// Counts what a planner answered: a plan, no opinion, or a fault.
    fn count_plan(&self, attached: &AttachedPolicy, answer: Result<bool, Fault>);
    /// What the last call of a planner took, where that is counted.
    fn took(&self, _: &AttachedPolicy, _: Usage) {}
}

/// A policy of a backend that plans.
struct Seat {
    attached: Arc<AttachedPolicy>,
    planner: Option<Box<dyn Planner>>,
    next: Instant,
    ends: Option<Instant>,
    /// Generation of the servers that the last plan was made for.
    shown: u64,
    /// What it wished of connections the last time, as it was published.
    wished: Option<Vec<(ServerId, Wishes)>>,
    readings: Readings,
}

/// What a policy of a backend is there for: one that is asked both is asked for the plan first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    /// For servers; its picker is shown latencies.
    Servers,
    /// For connections alone.
    Connections,
    /// For both.
    Both,
}

/// What a seat has to say.
#[derive(Default)]
struct Answers {
    plan: Option<Plan>,
    wishes: Option<Vec<(ServerId, Wishes)>>,
}

impl Planning {
    /// A planner for the policies of a control. `epoch` is the clock's zero of the workers.
    pub fn new(control: Arc<Control>, epoch: Instant) -> Planning {
        Planning {
            control,
            seats: Seats::new(epoch),
        }
    }

    /// Plans until the process stops.
    pub fn run(mut self) {
        while !self.control.is_stopping() {
            let seen = self.control.changes();
            let next = self.turn();
            let wait = next
                .saturating_duration_since(Instant::now())
                .max(PUBLICATION_MIN);
            self.control.wait_for_change(wait, seen);
        }
    }

    /// Asks whoever is due; tells when to come again.
    fn turn(&mut self) -> Instant {
        let now = Instant::now();
        let (all, mut next) = self.seats.turn(&*self.control, now);
        if !all.is_empty() {
            self.control.publish_news(&all);
        }
        if let Some(step) = self.control.step_ramps(now) {
            next = next.min(step);
        }
        if self.control.free_retired() {
            next = next.min(now + RETIRED_LOOK);
        }
        next
    }
}

impl Seats {
    pub(super) fn new(epoch: Instant) -> Seats {
        Seats {
            epoch,
            seats: BTreeMap::new(),
            windows: Windows::default(),
        }
    }

    /// Asks whoever is due; tells what is new, and when to come again.
    pub(super) fn turn<C, A>(&mut self, planned: &impl Planned<C, A>, now: Instant) -> (Vec<News>, Instant)
    where
        BackendTable<C>: Live + 'static,
    {
        let generation = planned.generation();
        self.take(planners(&generation), now);
        let mut next = now + Duration::from_secs(3600);
        // Before anybody is asked: plans are made from the latest.
        next = self
            .windows
            .turn(&generation, now)
            .map_or(next, |look| look.min(next));
        let mut all = Vec::new();
        for ((backend, asked), seat) in &mut self.seats {
            all.extend(seat.turn(planned, backend, *asked, now, self.epoch));
            next = next.min(seat.next).min(seat.ends.unwrap_or(next));
        }
        (all, next)
    }

    /// One seat for each policy that plans now. Who takes over from another one takes over what is known of the servers.
    fn take(&mut self, wanted: BTreeMap<Place, Arc<AttachedPolicy>>, now: Instant) {
        let mut former = std::mem::take(&mut self.seats);
        for (place, attached) in wanted {
            let seat = match former.remove(&place) {
                Some(seat) if Arc::ptr_eq(&attached, &seat.attached) => seat,
                other => Seat {
                    attached,
                    planner: None,
                    next: now,
                    ends: None,
                    shown: 0,
                    wished: None,
                    readings: other.map(|seat| seat.readings).unwrap_or_default(),
                },
            };
            self.seats.insert(place, seat);
        }
    }
}

impl Seat {
    /// Asks if it is time to; tells what is new.
    fn turn<C, A>(
        &mut self,
        planned: &impl Planned<C, A>,
        backend: &str,
        asked: Asked,
        now: Instant,
        epoch: Instant,
    ) -> Option<News>
    where
        BackendTable<C>: Live + 'static,
    {
        let (mut plan, mut wishes) = (None, None);
        let changed = planned.servers_generation(backend);
        let due = self.next <= now || changed != self.shown;
        if due {
            if changed != self.shown {
                self.wished = None;
            }
            self.shown = changed;
            self.next = now + self.attached.interval;
            let answers = self.ask(planned, backend, asked, now - epoch);
            if let Some(made) = answers.plan {
                let withdrawn = made.tiers.is_empty();
                let ends = made.lifetime.filter(|_| !withdrawn);
                self.ends = ends.map(|lifetime| now + lifetime);
                plan = Some((!withdrawn).then_some(made));
            }
            // The same again is nothing new: it would wake every worker for nothing.
            if answers.wishes.is_some() && answers.wishes != self.wished {
                self.wished.clone_from(&answers.wishes);
                wishes = answers.wishes;
            }
        }
        if plan.is_none() && self.ends.is_some_and(|ends| ends <= now) {
            self.ends = None;
            plan = Some(None);
        }
        // A picker is shown the latencies of the day; a planner has just seen them.
        let shows = plan.is_some() || due && asked != Asked::Connections && self.picks();
        (shows || wishes.is_some()).then(|| News {
            backend: backend.to_owned(),
            shown: self.shown,
            plan,
            wishes,
            latencies: (asked != Asked::Connections).then(|| self.readings.latencies()),
        })
    }

    fn picks(&self) -> bool {
        self.attached.attachment.offers().pick
    }

    /// Reads how the servers did; asks for what the policy plans.
    fn ask<C, A>(
        &mut self,
        planned: &impl Planned<C, A>,
        backend: &str,
        asked: Asked,
        now: Duration,
    ) -> Answers
    where
        BackendTable<C>: Live + 'static,
    {
        let offers = self.attached.attachment.offers();
        let for_plan = offers.plan && asked != Asked::Connections;
        let for_wishes = offers.reuse_plan && asked != Asked::Servers;
        if (for_plan || for_wishes) && self.planner.is_none() {
            match self.attached.attachment.planner(now) {
                Ok(planner) => self.planner = Some(planner),
                Err(fault) => {
                    planned.count_plan(&self.attached, Err(fault));
                    return Answers::default();
                }
            }
        }
        let generation = planned.generation();
        let mut entries = generation.backends.iter();
        let Some(entry) = entries.find(|entry| *entry.table.name == *backend) else {
            return Answers::default();
        };
        let tags = planned.tags(backend);
        let tags: Vec<Vec<(&str, &str)>> = tags.iter().map(|tags| lend(tags)).collect();
        let servers = self.readings.take(entry, &tags);
        let live: Arc<dyn Live> = entry.table.clone();
        let view = PlanView {
            now,
            servers: &servers,
            live: Some(&live),
        };
        let mut answers = Answers::default();
        let Some(planner) = &mut self.planner else {
            return answers;
        };
        if for_plan {
            let plan = planner.plan(&view);
            planned.took(&self.attached, planner.usage());
            planned.count_plan(
                &self.attached,
                plan.as_ref().map(Option::is_some).map_err(|it| *it),
            );
            answers.plan = plan.ok().flatten();
        }
        if for_wishes {
            let wishes = planner.plan_reuse(&view);
            planned.took(&self.attached, planner.usage());
            planned.count_plan(
                &self.attached,
                wishes.as_ref().map(Option::is_some).map_err(|it| *it),
            );
            let named = |wish: &PoolWish| (entry.table.at(wish.server).server.id, Wishes::from(wish));
            answers.wishes = wishes.ok().flatten().map(|list| list.iter().map(named).collect());
        }
        answers
    }
}

fn lend(tags: &[(String, String)]) -> Vec<(&str, &str)> {
    tags.iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Every policy that is asked for plans, or whose picker is shown latencies.
fn planners<C, A>(generation: &Generation<C, A>) -> BTreeMap<Place, Arc<AttachedPolicy>> {
    let mut planners = BTreeMap::new();
    for entry in &generation.backends {
        let servers = entry.policy.as_ref().map(|policy| &policy.attached);
        let connections = entry.reuse_policy.as_ref();
        let connections = connections.filter(|it| it.attachment.offers().reuse_plan);
        let both = servers
            .zip(connections)
            .is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let mut add = |asked, attached: Option<&Arc<AttachedPolicy>>| {
            let place = (entry.table.name.to_string(), asked);
            planners.extend(attached.map(|attached| (place, attached.clone())));
        };
        if both {
            add(Asked::Both, servers);
            continue;
        }
        let plans = |it: &&Arc<AttachedPolicy>| {
            let offers = it.attachment.offers();
            offers.plan || offers.pick
        };
        add(Asked::Servers, servers.filter(plans));
        add(Asked::Connections, connections);
    }
    planners
}

/// The tags of a backend's servers, in the order of the configuration.
pub(super) fn tags(config: &Config, backend: &str) -> Vec<Vec<(String, String)>> {
    let of = |backend: &model::Backend| backend.servers.iter().map(|server| server.tags.clone()).collect();
    let mut backends = config.backends.iter();
    backends.find(|one| one.name == backend).map_or_else(Vec::new, of)
}

/// Counts what a planner answered in the shard behind the workers': who plans is no worker.
pub(super) fn count_plan(attached: &AttachedPolicy, workers: u16, answer: Result<bool, Fault>) {
    let statistics = attached.statistics.of(WorkerId(workers));
    if !matches!(answer, Err(Fault::Quarantined | Fault::Budget)) {
        statistics.calls.count();
    }
    match answer {
        Ok(true) => {}
        Ok(false) => statistics.abstained.count(),
        Err(fault) => statistics.faults[fault.index()].count(),
    }
}

impl Planned<Connection, Address> for Control {
    fn generation(&self) -> Arc<Generation<Connection, Address>> {
        self.published.load_full()
    }

    fn servers_generation(&self, backend: &str) -> u64 {
        self.state.lock().registry.servers_generation(backend)
    }

    fn tags(&self, backend: &str) -> Vec<Vec<(String, String)>> {
        tags(&self.state.lock().config, backend)
    }

    fn count_plan(&self, attached: &AttachedPolicy, answer: Result<bool, Fault>) {
        count_plan(attached, self.workers, answer);
    }
}

impl Control {
    fn publish_news(&self, news: &[News]) {
        let mut state = self.state.lock();
        let generation = state.registry.with_news(&self.published.load(), news);
        self.publish(generation);
        drop(state);
        self.wake_all();
    }
}
