//! A policy on a worker: asks the guest, looks after it, and answers with what was checked or with a fault.
//!
//! ```text
//!  quarantined? ──► instance? ──none──► budget? ──► make, configure, show the table
//!        │              │                  │                     │
//!      fault            └─────► call ◄─────┼─────────────────────┘
//!                                │       fault
//!              answer checked ◄──┴──► fault: strike; the instance goes unless it only answered badly
//! ```
//!
//! A cut by the clock is followed by a rest of [`REST`], in which the worker does not ask: requests that arrived while the
//! guest ran have waited for one deadline and must not wait for another.

use super::Mode;
use super::answer::{self, Refused};
use super::attachment::Placed;
use super::contract::{admit, balance_pick, classify, reuse, route};
use super::guest::{Guest, number};
use super::health::{Bucket, Look, Mean};
use super::instance::{Allowance, Cut, Exports, Instance};
use super::remembered::Remembered;
use crate::policy::{
    Asked, Edits, Fault, Live, Nth, OFFSETS, Pick, Policy, Preference, Priority, RouteAsked, Routed,
    ServerIndex, Shown, Standing, Tally, Usage, Verdict, Waits,
};
use std::borrow::Cow;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasmtime::Store;

/// Instances that a worker may remake for one attachment: each second on average, and at once.
const REBUILDS: (u32, u32) = (50, 50);
/// From the end of an overrun deadline until the policy is asked again on that worker: what piled up is answered by then.
const REST: Duration = Duration::from_millis(100);
/// One call of so many is timed.
const SAMPLED: u32 = 64;

/// One policy, for one worker.
pub(super) struct Serving {
    instance: Option<Instance>,
    shown: Option<Table>,
    /// The servers whose measures it reads, if it is shown no table.
    followed: Option<Shown>,
    /// What its instances count in, one after the other.
    tally: Option<Arc<Tally>>,
    rebuilds: Bucket,
    allowance: Allowance,
    mean: Mean,
    /// Calls, to sample some.
    calls: u32,
    /// Good answers since the last fault.
    good: u32,
    /// Routes that need not be asked for.
    remembered: Remembered,
    /// Until when it is not asked, after a cut by the clock.
    rests_until: Duration,
    /// Dropped last: who waits for it ([`crate::policy::Attachment::is_used`]) waits for the instance too.
    placed: Arc<Placed>,
}

/// The table that was shown last, to show it to the next instance too.
struct Table {
    columns: balance_pick::Columns,
    live: Arc<dyn Live>,
}

impl Serving {
    pub(super) fn new(placed: Arc<Placed>, now: Duration) -> Result<Serving, Fault> {
        let (rate, burst) = REBUILDS;
        let secret = match placed.loaded.host().mode {
            Mode::Live => RandomState::new().build_hasher().finish(),
            Mode::Test => 0,
        };
        let mut serving = Serving {
            allowance: placed.allowance(),
            tally: placed.tally(),
            placed,
            instance: None,
            shown: None,
            followed: None,
            rebuilds: Bucket::new(rate, burst),
            mean: Mean::default(),
            calls: 0,
            good: 0,
            remembered: Remembered::new(secret),
            rests_until: Duration::ZERO,
        };
        serving.revive(now)?;
        Ok(serving)
    }

    /// Makes sure that there is an instance to ask.
    fn prepare(&mut self, now: Duration) -> Result<(), Fault> {
        match self.placed.health.look(now) {
            Look::Open => {}
            Look::Shut => return Err(Fault::Quarantined),
            Look::Reopened => {
                self.mean = Mean::default();
                self.placed.loaded.host().journal.resumed(&self.placed.who);
            }
        }
        if self.instance.is_some() {
            return Ok(());
        }
        if !self.rebuilds.take(now) {
            return Err(Fault::Budget);
        }
        self.revive(now)
    }

    #[cold]
    fn revive(&mut self, now: Duration) -> Result<(), Fault> {
        let made = self.placed.instance(now).and_then(|mut instance| {
            instance.guest().granted.tally.clone_from(&self.tally);
            if let Some(followed) = &self.followed {
                follow(&mut instance, followed);
            }
            self.shown
                .as_ref()
                .map_or(Ok(()), |table| show(&mut instance, table, self.allowance, now))?;
            Ok(instance)
        });
        match made {
            Ok(instance) => {
                self.instance = Some(instance);
                Ok(())
            }
            Err(cut) => Err(self.failed(cut, now)),
        }
    }

    /// Takes note of a fault, and gives up the instance if it is of no more use.
    #[cold]
    fn failed(&mut self, cut: Cut, now: Duration) -> Fault {
        if cut.dropped {
            self.instance = None;
        }
        self.placed.fault(&self.placed.health, &cut, self.good, now);
        self.good = 0;
        if cut.fault == Fault::Deadline {
            self.rests_until = now + self.placed.limits.deadline + REST;
        }
        cut.fault
    }

    /// Asks, sometimes with a watch in the hand.
    fn ask<R>(
        &mut self,
        now: Duration,
        ask: impl FnOnce(&mut Guest),
        run: impl FnOnce(&mut Store<Guest>, &Exports) -> wasmtime::Result<R>,
    ) -> Result<R, Fault> {
        self.prepare(now)?;
        let Some(instance) = &mut self.instance else {
            return Err(Fault::Instantiate);
        };
        self.calls = self.calls.wrapping_add(1);
        let watch = self.calls.is_multiple_of(SAMPLED).then(Instant::now);
        let answer = instance.call(self.allowance, ask, run);
        let answer = answer.map_err(|cut| self.failed(cut, now))?;
        if let Some(begun) = watch {
            self.weigh(begun.elapsed(), now)?;
        }
        Ok(answer)
    }

    /// Adds a timed call to the mean; a policy that is too slow is put aside.
    fn weigh(&mut self, time: Duration, now: Duration) -> Result<(), Fault> {
        let Some(max) = self.placed.limits.mean_max else {
            return Ok(());
        };
        if self.placed.loaded.host().mode == Mode::Test || !self.mean.add(time, max) {
            return Ok(());
        }
        self.mean = Mean::default();
        let detail = format!("a mean above {max:?} per call (mean-max)");
        Err(self.failed(Cut::refused(Fault::Slow, detail), now))
    }

    /// Counts a good answer, or takes note of a bad one.
    fn judge<T>(&mut self, answer: Result<T, Refused>, now: Duration) -> Result<T, Fault> {
        match answer {
            Ok(answer) => {
                self.good = self.good.saturating_add(1);
                Ok(answer)
            }
            Err((fault, detail)) => Err(self.failed(Cut::refused(fault, detail), now)),
        }
    }
}

impl Policy for Serving {
    fn ready(&self, now: Duration) -> bool {
        now >= self.rests_until && self.placed.health.is_open(now)
    }

    fn table(&mut self, shown: &Shown, now: Duration) -> Result<(), Fault> {
        let columns = columns(&shown.columns);
        self.shown = Some(Table {
            columns,
            live: Arc::clone(&shown.live),
        });
        let fresh = self.instance.is_none();
        if let Err(fault) = self.prepare(now) {
            // Whoever is asked next must have seen this table.
            self.instance = None;
            return Err(fault);
        }
        let (Some(instance), Some(table), false) = (&mut self.instance, &self.shown, fresh) else {
            // A new instance has been shown the table when it was made.
            return Ok(());
        };
        show(instance, table, self.allowance, now).map_err(|cut| self.failed(cut, now))
    }

    fn follow(&mut self, shown: &Shown) {
        if let Some(instance) = &mut self.instance {
            follow(instance, shown);
        }
        self.followed = Some(shown.clone());
    }

    fn pick(&mut self, asked: &Asked<'_>, avoid: Option<ServerIndex>) -> Result<Option<Pick>, Fault> {
        let key = text(asked.attributes.first().copied().flatten().unwrap_or_default());
        let avoid = avoid.map_or(-1, |server| i32::from(server.0));
        let reads = self.placed.loaded.reads_requests();
        let choice = self.ask(
            asked.now,
            |guest| guest.request.show(asked, reads),
            |store, exports| match &exports.pick {
                Some(pick) => pick.call_pick(store, &key, avoid),
                None => Ok(balance_pick::Choice {
                    first: -1,
                    second: -1,
                }),
            },
        )?;
        let servers = self.shown.as_ref().map_or(0, |table| table.columns.names.len());
        self.judge(answer::pick(choice, servers), asked.now)
    }

    fn route(&mut self, asked: &RouteAsked<'_>, edits: &mut Edits) -> Result<Routed, Fault> {
        edits.clear();
        if let Some(routed) = self.remembered.recall(asked, edits) {
            return Ok(routed);
        }
        let now = asked.asked.now;
        let (host, path) = (text(asked.host), text(asked.path));
        let [first, second] = first_two(&asked.asked);
        let headers = self.placed.offers.headers.len() as u8;
        let reads = self.placed.loaded.reads_requests();
        let decision = self.ask(
            now,
            |guest| {
                guest.request.show(&asked.asked, reads);
                guest.edits.clear();
                guest.editing = Some(headers);
            },
            |store, exports| match &exports.route {
                Some(route) => {
                    let method = method(asked.method);
                    route.call_route(store, method, &host, &path, first.as_deref(), second.as_deref())
                }
                None => Ok(route::Decision {
                    action: -1,
                    target: -1,
                    remember: 0,
                }),
            },
        )?;
        let routed = self.judge(answer::route(decision, self.placed.shape), now)?;
        if let Some(instance) = &mut self.instance {
            let guest = instance.guest();
            std::mem::swap(edits, &mut guest.edits);
            self.remembered.keep(asked, guest.request.seen(), routed, edits);
        }
        Ok(routed)
    }

    fn prefer(&mut self, asked: &Asked<'_>, nth: Nth) -> Result<Option<Preference>, Fault> {
        let [first, second] = first_two(asked);
        let first_request = i32::from(nth == Nth::First);
        let reads = self.placed.loaded.reads_requests();
        let preference = self.ask(
            asked.now,
            |guest| guest.request.show(asked, reads),
            |store, exports| match &exports.reuse {
                Some(reuse) => reuse.call_prefer(store, first.as_deref(), second.as_deref(), first_request),
                None => Ok(reuse::Preference {
                    mode: -1,
                    fresh: -1,
                    tag: -1,
                    tag_attribute: -1,
                }),
            },
        )?;
        let attributes = self.placed.offers.attributes.len();
        self.judge(answer::preference(preference, attributes), asked.now)
    }

    fn classify(&mut self, asked: &Asked<'_>, waits: &Waits) -> Result<Option<Standing>, Fault> {
        let [first, second] = first_two(asked);
        let (server, queued) = place(waits);
        let Priority { class, offset } = waits.priority;
        let (class, offset) = (i32::from(class), milliseconds(offset));
        let reads = self.placed.loaded.reads_requests();
        let standing = self.ask(
            asked.now,
            |guest| guest.request.show(asked, reads),
            |store, exports| match &exports.classify {
                Some(classify) => {
                    let (first, second) = (first.as_deref(), second.as_deref());
                    classify.call_classify(store, first, second, server, queued, class, offset)
                }
                None => Ok(classify::Standing {
                    ranked: -1,
                    class: 0,
                    offset: 0,
                    deadline: -1,
                }),
            },
        )?;
        self.judge(answer::standing(standing), asked.now)
    }

    fn admit(&mut self, asked: &Asked<'_>, waits: &Waits) -> Result<Option<Verdict>, Fault> {
        let [first, second] = first_two(asked);
        let (server, queued) = place(waits);
        let class = i32::from(waits.priority.class);
        let reads = self.placed.loaded.reads_requests();
        let verdict = self.ask(
            asked.now,
            |guest| guest.request.show(asked, reads),
            |store, exports| match &exports.admit {
                Some(admit) => {
                    let (first, second) = (first.as_deref(), second.as_deref());
                    admit.call_admit(store, first, second, server, queued, class)
                }
                None => Ok(admit::Verdict {
                    action: -1,
                    status: -1,
                    retry_after: -1,
                    wait_max: -1,
                }),
            },
        )?;
        self.judge(answer::verdict(verdict), asked.now)
    }

    fn usage(&self) -> Usage {
        self.instance
            .as_ref()
            .map_or_else(Usage::default, Instance::usage)
    }
}

/// What is given with the call itself.
fn first_two<'a>(asked: &Asked<'a>) -> [Option<Cow<'a, str>>; 2] {
    [0, 1].map(|at| asked.attributes.get(at).copied().flatten().map(text))
}

/// Where a request is about to wait, and behind how many.
fn place(waits: &Waits) -> (i32, i32) {
    let server = waits.server.map_or(-1, |server| i32::from(server.0));
    (server, number(waits.queued))
}

/// An offset in µs as it crosses.
fn milliseconds(offset: i64) -> i32 {
    (offset / 1000).clamp((*OFFSETS.start()).into(), (*OFFSETS.end()).into()) as i32
}

/// As UTF-8, which it nearly always is.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn method(name: &[u8]) -> route::Method {
    match name {
        b"GET" => route::Method::Get,
        b"HEAD" => route::Method::Head,
        b"POST" => route::Method::Post,
        b"PUT" => route::Method::Put,
        b"DELETE" => route::Method::Delete,
        b"CONNECT" => route::Method::Connect,
        b"OPTIONS" => route::Method::Options,
        b"TRACE" => route::Method::Trace,
        b"PATCH" => route::Method::Patch,
        _ => route::Method::Other,
    }
}

fn columns(columns: &crate::policy::Columns) -> balance_pick::Columns {
    balance_pick::Columns {
        names: columns.names.clone(),
        zones: columns.zones.clone(),
        weights: columns.weights.clone(),
        states: columns.states.clone(),
        limits: columns.limits.clone(),
        latencies: columns.latencies.clone(),
    }
}

fn follow(instance: &mut Instance, shown: &Shown) {
    instance.guest().measured.follow(&shown.live, shown.columns.len());
}

/// Shows a table to an instance, if it wants to see one.
fn show(instance: &mut Instance, table: &Table, allowance: Allowance, now: Duration) -> Result<(), Cut> {
    instance
        .guest()
        .show(Arc::clone(&table.live), table.columns.names.len());
    instance.call(
        allowance,
        |guest| guest.request.at(now, 0),
        |store, exports| match &exports.pick {
            Some(pick) => pick.call_table(store, &table.columns),
            None => Ok(()),
        },
    )
}
