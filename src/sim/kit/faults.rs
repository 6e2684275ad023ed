//! Whether there is a situation in which the policy traps, or in which its answer is refused.
//!
//! Each situation is met by a new instance, and all of them by one that has been through those before, forwards and
//! backwards. At the end a great deal of time passes.

use super::question::{Question, STRANGE, Shape};
use super::scene::{self, Scene};
use super::subject::{Hook, Mishap, Stopped, Subject};
use super::{Seen, Verdict};
use crate::policy::{Planner, Policy};
use std::collections::BTreeSet;
use std::time::Duration;

/// Requests of each shape.
const ROUNDS: u64 = 4;
const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);

pub(super) fn check(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let mut scenes = scene::all(subject.effort.seed);
    let mut met = 0;
    for scene in &scenes {
        met += walk(subject, std::slice::from_ref(scene));
    }
    met += walk(subject, &scenes);
    scenes.reverse();
    met += walk(subject, &scenes);
    subject.now += TEN_YEARS;
    met += walk(subject, &scenes);
    let seen = distinct(&subject.mishaps);
    if seen.is_empty() {
        let figure = format!("none in {met} answers");
        return Ok(vec![Seen::new(
            Verdict::Ok,
            figure,
            "all situations, forwards and backwards",
        )]);
    }
    Ok(seen)
}

/// The first of each kind.
fn distinct(mishaps: &[Mishap]) -> Vec<Seen> {
    let mut known = BTreeSet::new();
    let new = mishaps
        .iter()
        .filter(|it| known.insert((it.hook.word(), it.fault)));
    new.map(|mishap| {
        let figure = format!("{} in {}", mishap.fault.word(), mishap.hook.word());
        Seen::new(Verdict::Failed, figure, &*mishap.situation)
    })
    .collect()
}

/// Leads an instance of each kind through scenes; after a fault, a new one goes on in the next scene. Tells the number of
/// answers.
fn walk(subject: &mut Subject<'_>, scenes: &[Scene]) -> u64 {
    let mut met = 0;
    let (mut policy, mut planner) = (None, None);
    for scene in scenes {
        policy = requests(subject, policy, scene, &mut met).unwrap_or(None);
        planner = plans(subject, planner, scene, &mut met).unwrap_or(None);
    }
    met
}

/// Asks everything about requests, and gives the instance back that was asked.
fn requests(
    subject: &mut Subject<'_>,
    policy: Option<Box<dyn Policy>>,
    scene: &Scene,
    met: &mut u64,
) -> Result<Option<Box<dyn Policy>>, Stopped> {
    let hooks = subject.offered(&Hook::OF_REQUESTS);
    if hooks.is_empty() {
        return Ok(None);
    }
    let mut policy = policy.map_or_else(|| subject.policy(&scene.name), Ok)?;
    subject.show(&mut *policy, scene)?;
    for seed in 0..ROUNDS {
        for shape in STRANGE.into_iter().chain([Shape::Key(seed as u32)]) {
            let question = Question::new(subject.offers(), shape, seed);
            for &hook in &hooks {
                subject.ask(&mut *policy, hook, &question, scene)?;
                *met += 1;
            }
        }
    }
    Ok(Some(policy))
}

fn plans(
    subject: &mut Subject<'_>,
    planner: Option<Box<dyn Planner>>,
    scene: &Scene,
    met: &mut u64,
) -> Result<Option<Box<dyn Planner>>, Stopped> {
    let hooks = subject.offered(&Hook::OF_PLANS);
    if hooks.is_empty() {
        return Ok(None);
    }
    let mut planner = planner.map_or_else(|| subject.planner(&scene.name), Ok)?;
    for hook in hooks {
        subject.plan(&mut *planner, hook, scene)?;
        *met += 1;
    }
    Ok(Some(planner))
}
