//! Clients in a circle before equal servers: what a policy chooses shows in what it is shown next.
//!
//! Each client asks, waits for the response, rests and asks again. A server that has more to do takes longer, and one of
//! them is slow for a while. Who is chosen, the policy's pick, its plan or the proxy's own algorithm, is decided as in the
//! proxy: by [`BackendTable`]. Every second the policy is shown smoothed latencies, and asked for a plan.

use super::question::{Question, Shape};
use super::scene::{Scene, Server, columns};
use super::subject::{Answer, Hook, Stopped, Subject};
use crate::decide::balance::Algorithm;
use crate::decide::settings::Micros;
use crate::policy::{BackendId, Planner, Policy, ServerId, ServerIndex, Shown};
use crate::shared::server;
use crate::shared::table::{BackendTable, Entry, Source};
use crate::sim::random::{Dice, Span};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

/// Servers of a run.
pub(super) const SERVERS: usize = 5;
/// The one that is slow for a while, by its name.
pub(super) const SLOW: usize = 1;
/// How much slower it is.
pub(super) const SLOWER: u64 = 20;
/// Clients for each server.
const CLIENTS: u32 = 4;
/// What an idle server takes for a response, on average, and a client from a response to its next request.
const SERVICE: Micros = 20_000;
const REST: Micros = 5_000;
/// With so many requests a server takes twice as long as an idle one.
const HALVES_AT: u64 = 8;
const SECOND: Micros = 1_000_000;
/// How much of a new latency goes into the smoothed one.
const GAIN: f64 = 0.3;

/// One run.
pub(super) struct Load {
    pub(super) seed: u64,
    /// The servers' names by their places.
    pub(super) order: [usize; SERVERS],
}

/// What each server got, by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Got {
    /// Before any was slow.
    pub(super) before: [u64; SERVERS],
    /// After the slow one was fast again.
    pub(super) after: [u64; SERVERS],
    /// Choices that were the policy's.
    pub(super) chosen: u64,
}

/// What happens next, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Asks,
    Answered { server: usize, asked: Micros },
    Tick,
}

struct Run<'s, 'a> {
    subject: &'s mut Subject<'a>,
    policy: Option<Box<dyn Policy>>,
    planner: Option<Box<dyn Planner>>,
    table: Arc<BackendTable<()>>,
    plan_ends: Option<Micros>,
    /// By place.
    readings: [Reading; SERVERS],
    order: [usize; SERVERS],
    agenda: BinaryHeap<Reverse<(Micros, u64, Event)>>,
    entered: u64,
    dice: Dice,
    now: Micros,
    began: Duration,
    requests: u32,
    got: Got,
}

/// How a server did.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    time: Micros,
    answered: u64,
    smoothed: Option<f64>,
    completed: u64,
}

pub(super) const SITUATION: &str = "5 equal servers, 20 clients, latency follows load";

/// Runs it to its end.
pub(super) fn run(subject: &mut Subject<'_>, load: &Load) -> Result<Got, Stopped> {
    let offers = subject.offers();
    let policy = if offers.pick {
        Some(subject.policy(SITUATION)?)
    } else {
        None
    };
    let planner = if offers.plan {
        Some(subject.planner(SITUATION)?)
    } else {
        None
    };
    let began = subject.now;
    let run = Run {
        subject,
        policy,
        planner,
        table: Arc::new(table(&load.order)),
        plan_ends: None,
        readings: Default::default(),
        order: load.order,
        agenda: BinaryHeap::new(),
        entered: 0,
        dice: Dice::new(load.seed),
        now: 0,
        began,
        requests: 0,
        got: Got::default(),
    };
    run.finish()
}

fn table(order: &[usize; SERVERS]) -> BackendTable<()> {
    let entry = |&name: &usize| {
        let server = server::Server::new(ServerId(name as u32), "app", &format!("s{name}"), 1);
        Entry::new(Arc::new(server))
    };
    let entries = order.iter().map(entry).collect();
    BackendTable::first(BackendId(1), "app", Algorithm::Random(2), entries)
}

impl Run<'_, '_> {
    fn finish(mut self) -> Result<Got, Stopped> {
        self.enter(0, Event::Tick);
        for _ in 0..CLIENTS * SERVERS as u32 {
            let at = self.dice.before(SECOND / 10);
            self.enter(at, Event::Asks);
        }
        let ends = self.phase() * 5;
        while let Some(Reverse((at, _, event))) = self.agenda.pop() {
            if at >= ends {
                break;
            }
            self.now = at;
            self.subject.now = self.began + Duration::from_micros(at);
            match event {
                Event::Tick => self.tick()?,
                Event::Asks => self.ask()?,
                Event::Answered { server, asked } => self.answered(server, asked),
            }
        }
        Ok(self.got)
    }

    /// How long the servers are equal before one is slow, and how long it is.
    fn phase(&self) -> Micros {
        Micros::from(self.subject.effort.seconds) * SECOND
    }

    fn enter(&mut self, at: Micros, event: Event) {
        self.entered += 1;
        self.agenda.push(Reverse((at, self.entered, event)));
    }

    fn ask(&mut self) -> Result<(), Stopped> {
        self.requests += 1;
        let server = self.choose()?;
        let counted = match self.now / self.phase() {
            0 => Some(&mut self.got.before),
            1 => None,
            _ => Some(&mut self.got.after),
        };
        if let Some(counted) = counted {
            counted[self.order[server]] += 1;
        }
        let taken = self.table.take(ServerIndex(server as u16));
        debug_assert!(taken, "no server has a limit");
        let time = self.service(server);
        let answered = self.now + self.dice.time(Span::Exponential { mean: time });
        let asked = self.now;
        self.enter(answered, Event::Answered { server, asked });
        Ok(())
    }

    /// The server's place: by the policy's pick, else by its plan, else by the proxy itself.
    fn choose(&mut self) -> Result<usize, Stopped> {
        if let Some(policy) = &mut self.policy {
            let seed = self.dice.wide();
            let question = Question::new(self.subject.offers(), Shape::Key(self.requests), seed);
            let picked = self.subject.pick(&mut **policy, &question, None, SITUATION)?;
            if let Some(pick) = picked {
                self.got.chosen += 1;
                return Ok(pick.first.at());
            }
        }
        let choice = self.table.pick(None, &mut self.dice);
        self.got.chosen += u64::from(choice.source == Source::Plan);
        Ok(choice.server.map_or(0, ServerIndex::at))
    }

    fn service(&self, server: usize) -> Micros {
        let has = u64::from(self.table.at(ServerIndex(server as u16)).server.slots.served());
        let slow = self.order[server] == SLOW && self.now / self.phase() == 1;
        let factor = if slow { SLOWER } else { 1 };
        SERVICE * factor * (HALVES_AT + has) / HALVES_AT
    }

    fn answered(&mut self, server: usize, asked: Micros) {
        let place = ServerIndex(server as u16);
        let _nobody_waits = self.table.at(place).server.slots.release();
        self.table.changed(place);
        let reading = &mut self.readings[server];
        reading.time += self.now - asked;
        reading.answered += 1;
        let rest = self.dice.time(Span::Exponential { mean: REST });
        self.enter(self.now + rest, Event::Asks);
    }

    /// Shows how the servers did in the last second, and takes up a plan.
    fn tick(&mut self) -> Result<(), Stopped> {
        self.enter(self.now + SECOND, Event::Tick);
        self.readings.iter_mut().for_each(Reading::smooth);
        let scene = self.scene();
        if let Some(planner) = &mut self.planner {
            let answer = self.subject.plan(&mut **planner, Hook::Plan, &scene)?;
            self.take_plan(answer);
        }
        if let Some(policy) = &mut self.policy {
            let shown = Shown {
                columns: Arc::new(columns(&scene.servers)),
                live: self.table.clone(),
            };
            let answer = policy.table(&shown, self.subject.now);
            self.subject.heed(Hook::Table, SITUATION, answer)?;
        }
        Ok(())
    }

    fn take_plan(&mut self, answer: Answer) {
        if self.plan_ends.is_some_and(|ends| ends <= self.now) {
            self.table = Arc::new(self.table.unplanned());
            self.plan_ends = None;
        }
        let Answer::Plan(Some(plan)) = answer else {
            return;
        };
        let lifetime = plan.lifetime.map(|time| time.as_micros() as Micros);
        self.plan_ends = lifetime.map(|lifetime| self.now + lifetime);
        self.table = Arc::new(match plan.tiers.is_empty() {
            true => self.table.unplanned(),
            false => self.table.planned(&plan),
        });
    }

    fn scene(&self) -> Scene {
        let server = |at: usize| {
            let (reading, place) = (self.readings[at], ServerIndex(at as u16));
            Server {
                name: self.table.at(place).server.name.to_string(),
                latency: reading.smoothed.map(|us| us as u32),
                in_flight: self.table.at(place).server.slots.served(),
                completed: reading.completed,
                ..Server::idle(at)
            }
        };
        Scene {
            name: SITUATION.to_owned(),
            servers: (0..SERVERS).map(server).collect(),
        }
    }
}

impl Reading {
    /// Ends a second.
    fn smooth(&mut self) {
        self.completed = self.answered;
        if self.answered > 0 {
            let mean = self.time as f64 / self.answered as f64;
            self.smoothed = Some(self.smoothed.map_or(mean, |old| old + GAIN * (mean - old)));
        }
        (self.time, self.answered) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Attachment, Fault, Offers};
    use crate::sim::kit::Effort;

    /// Answers nothing: the proxy chooses.
    struct Silent(Offers);

    impl Attachment for Silent {
        fn offers(&self) -> &Offers {
            &self.0
        }
        fn policy(&self, _: Duration) -> Result<Box<dyn Policy>, Fault> {
            Err(Fault::Instantiate)
        }
        fn planner(&self, _: Duration) -> Result<Box<dyn Planner>, Fault> {
            Err(Fault::Instantiate)
        }
        fn is_used(&self) -> bool {
            false
        }
    }

    #[test]
    fn the_proxy_itself_starves_nobody() {
        let silent = Silent(Offers::default());
        let mut subject = Subject::new(&silent, Effort::QUICK);
        let load = Load {
            seed: 1,
            order: [0, 1, 2, 3, 4],
        };
        let got = run(&mut subject, &load).expect("nobody is asked");
        assert_eq!(got.chosen, 0);
        for counts in [got.before, got.after] {
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(*least > 300 && most * 4 < least * 5, "{counts:?}");
        }
        assert_eq!(run(&mut subject, &load), Ok(got), "one seed is one run");
    }
}
