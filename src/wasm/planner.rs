//! A policy on the control thread: asks the guest for a plan, and for one of connections. What no request waits for may
//! take longer, and has its own record of faults.

use super::answer::{self, Refused};
use super::attachment::Placed;
use super::contract::{balance_plan, reuse_plan};
use super::guest::{Guest, number};
use super::health::{Bucket, Health, Look};
use super::instance::{Cut, Exports, Instance};
use crate::policy::{ATTRIBUTES_MAX, Fault, Plan, PlanServer, PlanView, Planner, PoolWish, Tally, Usage};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Store;

/// Instances that may be remade: each second on average, and at once.
const REBUILDS: (u32, u32) = (1, 5);

/// One policy, for the control thread.
pub(super) struct Planning {
    health: Health,
    instance: Option<Instance>,
    rebuilds: Bucket,
    good: u32,
    /// What its instances count in, one after the other.
    tally: Option<Arc<Tally>>,
    /// Dropped last: who waits for it ([`crate::policy::Attachment::is_used`]) waits for the instance too.
    placed: Arc<Placed>,
}

impl Planning {
    pub(super) fn new(placed: Arc<Placed>, now: Duration) -> Result<Planning, Fault> {
        let (rate, burst) = REBUILDS;
        let health = Health::asked_seldom();
        let rebuilds = Bucket::new(rate, burst);
        let mut planning = Planning {
            tally: placed.tally(),
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
            Ok(mut instance) => {
                instance.guest().granted.tally.clone_from(&self.tally);
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
        let servers: Vec<balance_plan::Server> = view.servers.iter().map(server).collect();
        let answer = self.call(view, |store, exports, now| match &exports.plan {
            Some(plan) => plan.call_plan(store, now, &servers),
            None => Ok(None),
        })?;
        let plan = answer.map(|allocation| answer::plan(allocation, servers.len()));
        plan.transpose().map_err(refused)
    }

    fn asked_for_reuse(&mut self, view: &PlanView<'_>) -> Result<Option<Vec<PoolWish>>, Cut> {
        let servers: Vec<reuse_plan::Server> = view.servers.iter().map(connections).collect();
        let answer = self.call(view, |store, exports, now| match &exports.reuse_plan {
            Some(plan) => plan.call_plan(store, now, &servers),
            None => Ok(None),
        })?;
        let wishes = answer.map(|figures| answer::wishes(figures, servers.len()));
        wishes.transpose().map_err(refused)
    }

    /// Calls the guest with the time as it is told it.
    fn call<R>(
        &mut self,
        view: &PlanView<'_>,
        run: impl FnOnce(&mut Store<Guest>, &Exports, i64) -> wasmtime::Result<R>,
    ) -> Result<R, Cut> {
        let Some(instance) = &mut self.instance else {
            return Err(Cut::dropped(Fault::Instantiate, "no instance"));
        };
        let now = view.now;
        let ask = |guest: &mut Guest| {
            guest.request.at(now, 0);
            guest.request.declare(ATTRIBUTES_MAX);
            guest.granted.keeper = self.placed.store();
            if let Some(live) = view.live {
                guest.measured.follow(live, view.servers.len());
            }
        };
        let told = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        instance.call_at_leisure(self.placed.leisure(), ask, |store, exports| {
            run(store, exports, told)
        })
    }

    /// Counts a good answer, or takes note of a fault.
    fn judge<T>(&mut self, answer: Result<T, Cut>, now: Duration) -> Result<T, Fault> {
        match answer {
            Ok(answer) => {
                self.good = self.good.saturating_add(1);
                Ok(answer)
            }
            Err(cut) => Err(self.failed(cut, now)),
        }
    }
}

impl Planner for Planning {
    fn plan(&mut self, view: &PlanView<'_>) -> Result<Option<Plan>, Fault> {
        self.prepare(view.now)?;
        let plan = self.asked(view);
        self.judge(plan, view.now)
    }

    fn plan_reuse(&mut self, view: &PlanView<'_>) -> Result<Option<Vec<PoolWish>>, Fault> {
        self.prepare(view.now)?;
        let wishes = self.asked_for_reuse(view);
        self.judge(wishes, view.now)
    }

    fn usage(&self) -> Usage {
        self.instance
            .as_ref()
            .map_or_else(Usage::default, Instance::usage)
    }
}

fn refused((fault, detail): Refused) -> Cut {
    Cut::refused(fault, detail)
}

fn server(server: &PlanServer<'_>) -> balance_plan::Server {
    let tag = |(name, value): &(&str, &str)| balance_plan::Tag {
        name: (*name).into(),
        value: (*value).into(),
    };
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

fn connections(server: &PlanServer<'_>) -> reuse_plan::Server {
    let tag = |(name, value): &(&str, &str)| reuse_plan::Tag {
        name: (*name).into(),
        value: (*value).into(),
    };
    reuse_plan::Server {
        name: server.name.into(),
        tags: server.tags.iter().map(tag).collect(),
        weight: number(server.weight),
        state: server.state as i32,
        limit: server.limit.map_or(-1, number),
        in_flight: number(server.in_flight),
        used: number(server.used),
        idle: number(server.idle),
        need: number(server.need),
        opened: long(server.opened),
        completed: long(server.completed),
    }
}

fn long(figure: u64) -> i32 {
    number(u32::try_from(figure).unwrap_or(u32::MAX))
}

fn microseconds(time: Duration) -> i32 {
    long(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}
