//! The policy that is checked: how it is asked, and what becomes of a fault.
//!
//! A fault ends the situation that it came in, and time passes until no host holds it against the next one.

use super::Effort;
use super::question::Question;
use super::scene::Scene;
use crate::policy::{
    Attachment, Edits, Fault, Nth, Offers, Pick, Plan, Planner, Policy, PoolWish, Preference, ServerIndex,
    Standing, Target, Verdict,
};
use std::time::Duration;

/// From a fault to the next question: longer than any quarantine.
const PAUSE: Duration = Duration::from_secs(600);
/// From one question to the next.
const STEP: Duration = Duration::from_millis(1);

/// The policy, the time, and what went wrong.
pub(super) struct Subject<'a> {
    pub(super) effort: Effort,
    pub(super) now: Duration,
    pub(super) mishaps: Vec<Mishap>,
    attachment: &'a dyn Attachment,
}

/// Something that a policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Start,
    Table,
    Pick,
    Route,
    Prefer,
    Classify,
    Admit,
    Plan,
    ReusePlan,
}

/// A fault, and where it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mishap {
    pub(super) hook: Hook,
    pub(super) fault: Fault,
    pub(super) situation: String,
}

/// A check cannot go on: the fault is among the mishaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It is not a question of that kind.
    Nothing,
    Pick(Option<Pick>),
    Route(Option<Target>, Edits),
    Prefer(Option<Preference>),
    Classify(Option<Standing>),
    Admit(Option<Verdict>),
    Plan(Option<Plan>),
    ReusePlan(Option<Vec<PoolWish>>),
}

impl Hook {
    /// What is asked of a worker's instance about one request, in this order.
    pub(super) const OF_REQUESTS: [Hook; 5] =
        [Hook::Route, Hook::Prefer, Hook::Pick, Hook::Classify, Hook::Admit];
    pub(super) const OF_PLANS: [Hook; 2] = [Hook::Plan, Hook::ReusePlan];

    pub(super) fn word(self) -> &'static str {
        match self {
            Hook::Start => "start",
            Hook::Table => "table",
            Hook::Pick => "pick",
            Hook::Route => "route",
            Hook::Prefer => "prefer",
            Hook::Classify => "classify",
            Hook::Admit => "admit",
            Hook::Plan => "plan",
            Hook::ReusePlan => "reuse-plan",
        }
    }

    pub(super) fn is_offered(self, offers: &Offers) -> bool {
        match self {
            Hook::Start => true,
            Hook::Table | Hook::Pick => offers.pick,
            Hook::Route => offers.route,
            Hook::Prefer => offers.reuse,
            Hook::Classify => offers.classify,
            Hook::Admit => offers.admit,
            Hook::Plan => offers.plan,
            Hook::ReusePlan => offers.reuse_plan,
        }
    }
}

impl<'a> Subject<'a> {
    pub(super) fn new(attachment: &'a dyn Attachment, effort: Effort) -> Subject<'a> {
        Subject {
            effort,
            now: Duration::from_secs(1),
            mishaps: Vec::new(),
            attachment,
        }
    }

    pub(super) fn offers(&self) -> &'a Offers {
        self.attachment.offers()
    }

    /// Those of them that it answers.
    pub(super) fn offered(&self, hooks: &[Hook]) -> Vec<Hook> {
        let offers = self.offers();
        hooks
            .iter()
            .copied()
            .filter(|hook| hook.is_offered(offers))
            .collect()
    }

    /// A new instance for requests.
    pub(super) fn policy(&mut self, situation: &str) -> Result<Box<dyn Policy>, Stopped> {
        let made = self.attachment.policy(self.now);
        self.heed(Hook::Start, situation, made)
    }

    /// A new instance for requests that has seen these servers.
    pub(super) fn policy_in(&mut self, scene: &Scene) -> Result<Box<dyn Policy>, Stopped> {
        let mut policy = self.policy(&scene.name)?;
        self.show(&mut *policy, scene)?;
        Ok(policy)
    }

    /// A new instance for plans.
    pub(super) fn planner(&mut self, situation: &str) -> Result<Box<dyn Planner>, Stopped> {
        let made = self.attachment.planner(self.now);
        self.heed(Hook::Start, situation, made)
    }

    /// Shows a table, if it wants to see one.
    pub(super) fn show(&mut self, policy: &mut dyn Policy, scene: &Scene) -> Result<(), Stopped> {
        let Offers { pick, measures, .. } = self.offers();
        if !pick {
            if !measures.is_empty() {
                policy.follow(&scene.shown());
            }
            return Ok(());
        }
        let shown = policy.table(&scene.shown(), self.now);
        self.heed(Hook::Table, &scene.name, shown)
    }

    /// A server for a request.
    pub(super) fn pick(
        &mut self,
        policy: &mut dyn Policy,
        question: &Question,
        avoid: Option<ServerIndex>,
        situation: &str,
    ) -> Result<Option<Pick>, Stopped> {
        self.now += STEP;
        let picked = question.ask(self.now, |route| policy.pick(&route.asked, avoid));
        self.heed(Hook::Pick, situation, picked)
    }

    /// What it answers to one hook about one request.
    pub(super) fn ask(
        &mut self,
        policy: &mut dyn Policy,
        hook: Hook,
        question: &Question,
        scene: &Scene,
    ) -> Result<Answer, Stopped> {
        self.now += STEP;
        let waits = question.waits(scene.servers.len());
        let avoid = waits.server;
        let answer = question.ask(self.now, |route| {
            let asked = &route.asked;
            Ok(match hook {
                Hook::Route => {
                    let mut edits = Edits::default();
                    Answer::Route(policy.route(route, &mut edits)?.target, edits)
                }
                Hook::Prefer => {
                    let nth = if avoid.is_some() { Nth::Later } else { Nth::First };
                    Answer::Prefer(policy.prefer(asked, nth)?)
                }
                Hook::Pick => Answer::Pick(policy.pick(asked, avoid)?),
                Hook::Classify => Answer::Classify(policy.classify(asked, &waits)?),
                Hook::Admit => Answer::Admit(policy.admit(asked, &waits)?),
                Hook::Start | Hook::Table | Hook::Plan | Hook::ReusePlan => Answer::Nothing,
            })
        });
        self.heed(hook, &scene.name, answer)
    }

    /// A plan, or wishes for connections.
    pub(super) fn plan(
        &mut self,
        planner: &mut dyn Planner,
        hook: Hook,
        scene: &Scene,
    ) -> Result<Answer, Stopped> {
        self.now += Duration::from_secs(1);
        let answer = scene.view(self.now, |view| {
            Ok(match hook {
                Hook::Plan => Answer::Plan(planner.plan(view)?),
                Hook::ReusePlan => Answer::ReusePlan(planner.plan_reuse(view)?),
                _ => Answer::Nothing,
            })
        });
        self.heed(hook, &scene.name, answer)
    }

    /// Passes an answer on, or takes note of a fault and lets time pass.
    pub(super) fn heed<T>(
        &mut self,
        hook: Hook,
        situation: &str,
        answer: Result<T, Fault>,
    ) -> Result<T, Stopped> {
        answer.map_err(|fault| {
            let situation = situation.to_owned();
            self.mishaps.push(Mishap {
                hook,
                fault,
                situation,
            });
            self.now += PAUSE;
            Stopped
        })
    }
}
