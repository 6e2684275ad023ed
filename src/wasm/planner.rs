//! A policy on the control thread: asks the guest for a plan. What no request waits for may take longer, and has its own
//! record of faults.

use super::answer;
use super::attachment::Placed;
use super::contract::balance_plan;
use super::guest::number;
use super::health::{Bucket, Health, Look};
use super::instance::{Cut, Instance};
use crate::policy::{ATTRIBUTES_MAX, Fault, Plan, PlanServer, PlanView, Planner};
use std::sync::Arc;
use std::time::Duration;

/// Instances that may be remade: each second on average, and at once.
const REBUILDS: (u32, u32) = (1, 5);

/// One policy, for the control thread.
pub(super) struct Planning {
    health: Health,
    instance: Option<Instance>,
    rebuilds: Bucket,
    good: u32,
    /// Dropped last: who waits for it ([`crate::policy::Attachment::is_used`]) waits for the instance too.
    placed: Arc<Placed>,
}

impl Planning {
    pub(super) fn new(placed: Arc<Placed>, now: Duration) -> Result<Planning, Fault> {
        let (rate, burst) = REBUILDS;
        let health = Health::asked_seldom();
        let rebuilds = Bucket::new(rate, burst);
        let mut planning = Planning {
            placed,
            health,
            instance: None,
            rebuilds,
            good: 0,
        };
        planning.revive(now)?;
        Ok(planning)
    }

    fn prepare(&mut self, now: Duration) -> Result<(), Fault> {
        match self.health.look(now) {
            Look::Open => {}
            Look::Shut => return Err(Fault::Quarantined),
            Look::Reopened => self.placed.loaded.host().journal.resumed(&self.placed.who),
        }
        if self.instance.is_some() {
            return Ok(());
        }
        if !self.rebuilds.take(now) {
            return Err(Fault::Budget);
        }
        self.revive(now)
    }

    fn revive(&mut self, now: Duration) -> Result<(), Fault> {
        match self.placed.instance(now) {
            Ok(instance) => {
                self.instance = Some(instance);
                Ok(())
            }
            Err(cut) => Err(self.failed(cut, now)),
        }
    }

    fn failed(&mut self, cut: Cut, now: Duration) -> Fault {
        if cut.dropped {
            self.instance = None;
        }
        self.placed.fault(&self.health, &cut, self.good, now);
        self.good = 0;
        cut.fault
    }

    fn asked(&mut self, view: &PlanView<'_>) -> Result<Option<Plan>, Cut> {
        let Some(instance) = &mut self.instance else {
            return Err(Cut::dropped(Fault::Instantiate, "no instance"));
        };
        let servers: Vec<balance_plan::Server> = view.servers.iter().map(server).collect();
        let now = i64::try_from(view.now.as_millis()).unwrap_or(i64::MAX);
        let answer = instance.call_at_leisure(
            self.placed.leisure(),
            |guest| {
                guest.request.at(view.now, 0);
                guest.request.declare(ATTRIBUTES_MAX);
            },
            |store, exports| match &exports.plan {
                Some(plan) => plan.call_plan(store, now, &servers),
                None => Ok(None),
            },
        )?;
        let Some(allocation) = answer else {
            return Ok(None);
        };
        let checked = answer::plan(allocation, servers.len());
        checked
            .map(Some)
            .map_err(|(fault, detail)| Cut::refused(fault, detail))
    }
}

impl Planner for Planning {
    fn plan(&mut self, view: &PlanView<'_>) -> Result<Option<Plan>, Fault> {
        self.prepare(view.now)?;
        match self.asked(view) {
            Ok(plan) => {
                self.good = self.good.saturating_add(1);
                Ok(plan)
            }
            Err(cut) => Err(self.failed(cut, view.now)),
        }
    }
}

fn server(server: &PlanServer<'_>) -> balance_plan::Server {
    let tag = |(name, value): &(&str, &str)| balance_plan::Tag {
        name: (*name).into(),
        value: (*value).into(),
    };
    let long = |figure: u64| number(u32::try_from(figure).unwrap_or(u32::MAX));
    let microseconds = |time: Duration| long(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    balance_plan::Server {
        name: server.name.into(),
        tags: server.tags.iter().map(tag).collect(),
        weight: number(server.weight),
        state: server.state as i32,
        limit: server.limit.map_or(-1, number),
        in_flight: number(server.in_flight),
        queued: number(server.queued),
        idle: number(server.idle),
        latency: server.latency.map_or(-1, microseconds),
        completed: long(server.completed),
        failed: long(server.failed),
    }
}
