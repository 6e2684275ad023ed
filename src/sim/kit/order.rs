//! Whether servers get the same wherever they stand in the table: an order is an accident of a file, and it changes.
//!
//! Counts of two orders differ when they are further apart than five standard deviations of their difference, which is
//! the root of their sum. Under load, what another seed changes is measured too, and only what the order changes beyond
//! that counts.

use super::load::{self, Got, Load, SERVERS};
use super::question::{Question, Shape};
use super::scene::Scene;
use super::subject::{Answer, Hook, Stopped, Subject};
use super::{Seen, Verdict};
use crate::policy::{Plan, Selector, Spill};
use crate::sim::random::Dice;
use std::collections::BTreeMap;

/// Servers that stand still.
const STANDING: usize = 10;
const DEVIATIONS: f64 = 5.0;
/// How many times as much a server gets in one order as in the other before it is a mistake.
const GROSS: f64 = 2.0;

pub(super) fn check(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let offered = subject.offered(&[Hook::Pick, Hook::Plan]);
    if offered.is_empty() {
        return Ok(vec![Seen::nothing("it chooses no server")]);
    }
    let mut seen = Vec::new();
    for scene in [Scene::equal(STANDING), Scene::unlike(STANDING)] {
        if offered.contains(&Hook::Pick) {
            seen.extend(picks(subject, &scene)?);
        }
        if offered.contains(&Hook::Plan) {
            seen.extend(plans(subject, &scene)?);
        }
    }
    seen.extend(loaded(subject)?);
    if seen.is_empty() {
        return Ok(vec![Seen::nothing(
            "it had no opinion about servers that stand still",
        )]);
    }
    // One says it all: the first that is wrong, or what came out under load.
    let worst = seen.iter().map(|seen| seen.verdict).max();
    seen.retain(|seen| Some(seen.verdict) == worst);
    let one = if worst > Some(Verdict::Ok) {
        0
    } else {
        seen.len() - 1
    };
    Ok(vec![seen.swap_remove(one)])
}

fn shuffled(subject: &Subject<'_>, scene: &Scene) -> Scene {
    scene.clone().shuffled(&mut Dice::new(subject.effort.seed))
}

/// Compares picks among servers that stand still in two orders.
fn picks(subject: &mut Subject<'_>, scene: &Scene) -> Result<Option<Seen>, Stopped> {
    let other = shuffled(subject, scene);
    let (one, two) = (tally(subject, scene)?, tally(subject, &other)?);
    let asked = u64::from(subject.effort.requests);
    if one.values().sum::<u64>() + two.values().sum::<u64>() == 0 {
        return Ok(None);
    }
    let count = |tally: &BTreeMap<String, u64>, name: &str| tally.get(name).copied().unwrap_or(0);
    let firsts = [(&one, scene), (&two, &other)].map(|(tally, scene)| count(tally, &scene.servers[0].name));
    if firsts.iter().all(|first| first * 10 > asked * 9) {
        let figure = format!(
            "the server at index 0 got {} and {} of {asked}",
            firsts[0], firsts[1]
        );
        return Ok(Some(Seen::new(Verdict::Warning, figure, told(scene))));
    }
    let pairs = scene.servers.iter().map(|server| {
        let name = &*server.name;
        (name, count(&one, name), count(&two, name))
    });
    let (name, one, two) = pairs
        .max_by(|a, b| apart(a.1, a.2).total_cmp(&apart(b.1, b.2)))
        .unwrap_or_default();
    let differs = apart(one, two) > DEVIATIONS;
    let verdict = if differs { Verdict::Warning } else { Verdict::Ok };
    let figure = format!("{name} differs most: {one} and {two} of {asked}");
    Ok(Some(Seen::new(verdict, figure, told(scene))))
}

fn told(scene: &Scene) -> String {
    format!("{} without load, in two orders", scene.name)
}

/// How often each server is the first choice.
fn tally(subject: &mut Subject<'_>, scene: &Scene) -> Result<BTreeMap<String, u64>, Stopped> {
    let mut policy = subject.policy_in(scene)?;
    let mut tally = BTreeMap::new();
    for key in 0..subject.effort.requests {
        let question = Question::new(subject.offers(), Shape::Key(key), u64::from(key));
        if let Some(pick) = subject.pick(&mut *policy, &question, None, &scene.name)? {
            let name = &scene.servers[pick.first.at()].name;
            *tally.entry(name.clone()).or_default() += 1;
        }
    }
    Ok(tally)
}

/// How many standard deviations lie between two counts of the same thing.
fn apart(one: u64, two: u64) -> f64 {
    one.abs_diff(two) as f64 / ((one + two) as f64).sqrt().max(1.0)
}

/// Compares plans for the same servers in two orders.
fn plans(subject: &mut Subject<'_>, scene: &Scene) -> Result<Option<Seen>, Stopped> {
    let other = shuffled(subject, scene);
    let mut planned = Vec::new();
    for scene in [scene, &other] {
        let mut planner = subject.planner(&scene.name)?;
        match subject.plan(&mut *planner, Hook::Plan, scene)? {
            Answer::Plan(Some(plan)) => planned.push(by_name(&plan, scene)),
            _ => return Ok(None),
        }
    }
    let same = planned[0] == planned[1];
    let (verdict, figure) = match same {
        true => (
            Verdict::Ok,
            "the plan names the same servers with the same weights",
        ),
        false => (Verdict::Warning, "the plan names others, or with other weights"),
    };
    Ok(Some(Seen::new(verdict, figure, told(scene))))
}

/// A tier by the names of its servers, each with its weight and cap.
type NamedTier = (Selector, Spill, BTreeMap<String, (u16, Option<u32>)>);

fn by_name(plan: &Plan, scene: &Scene) -> Vec<NamedTier> {
    let tiers = plan.tiers.iter().map(|tier| {
        let members = tier.members.iter().map(|member| {
            let name = scene.servers[member.server.at()].name.clone();
            (name, (member.weight, member.cap))
        });
        (tier.selector, tier.spill, members.collect())
    });
    tiers.collect()
}

/// Compares runs under load: two orders, and two seeds in the same order.
fn loaded(subject: &mut Subject<'_>) -> Result<Option<Seen>, Stopped> {
    const ORDER: [usize; SERVERS] = [0, 1, 2, 3, 4];
    const OTHER: [usize; SERVERS] = [4, 2, 0, 1, 3];
    let seed = subject.effort.seed + 10;
    let mut run = |seed, order| load::run(subject, &Load { seed, order });
    let (one, again, other) = (run(seed, ORDER)?, run(seed + 1, ORDER)?, run(seed, OTHER)?);
    if one.chosen == 0 {
        return Ok(None);
    }
    let chance = ratio(&one, &again);
    let ordered = ratio(&one, &other);
    let verdict = if ordered < GROSS || ordered < chance * GROSS {
        Verdict::Ok
    } else {
        Verdict::Failed
    };
    let figure = format!("another order gives a server {ordered:.2} times as much, another seed {chance:.2}");
    Ok(Some(Seen::new(verdict, figure, load::SITUATION)))
}

/// How many times as much one server gets in one of two runs, at most.
fn ratio(one: &Got, two: &Got) -> f64 {
    let pairs = one.before.iter().zip(&two.before);
    let ratios = pairs.map(|(&one, &two)| {
        let (one, two) = (one.max(1) as f64, two.max(1) as f64);
        (one / two).max(two / one)
    });
    ratios.fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_apart_by_standard_deviations() {
        assert!(apart(100, 130) < 2.0);
        assert!(apart(100, 200) > DEVIATIONS);
        assert_eq!(apart(0, 0), 0.0);
    }
}
