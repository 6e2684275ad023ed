//! How many keys move when a server goes, comes back, or stands elsewhere in the table: for who gives the same server to
//! the same key.
//!
//! Of N servers that hold equal parts of the keys, the one that goes takes one N-th with it. Whatever moves besides loses
//! what its server knew about it.

use super::question::{Question, Shape};
use super::scene::Scene;
use super::subject::{Hook, Stopped, Subject};
use super::{Seen, Verdict};
use crate::policy::Policy;
use crate::sim::random::Dice;
use std::collections::BTreeSet;

const SERVERS: usize = 10;
/// The one that is removed.
const REMOVED: usize = 4;
/// So many percent of the keys must meet their server again before it counts as affinity.
const AFFINE: u64 = 90;
/// Percent of the keys beyond which a move is more than it should be, and beyond which it is a mistake.
const MANY: f64 = 200.0 / SERVERS as f64;
const MOST: f64 = 50.0;

/// Where each key goes, by the server's name.
type Places = Vec<Option<String>>;

pub(super) fn check(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    if subject.offered(&[Hook::Pick]).is_empty() {
        return Ok(vec![Seen::nothing("it picks no server")]);
    }
    let whole = Scene::equal(SERVERS);
    let mut policy = subject.policy_in(&whole)?;
    let keys = subject.effort.requests;
    let first = places(subject, &mut *policy, &whole, 0..keys)?;
    let mut again = places(subject, &mut *policy, &whole, (0..keys).rev())?;
    again.reverse();
    if !is_affine(&first, &again) {
        return Ok(vec![Seen::nothing(
            "no affinity: a key does not meet its server again",
        )]);
    }
    let fewer = whole
        .clone()
        .without(REMOVED)
        .named("one of 10 equal servers removed");
    let reordered = whole
        .clone()
        .shuffled(&mut Dice::new(subject.effort.seed))
        .named("10 equal servers in another order");
    let mut moved = [0.0; 3];
    for (moved, scene) in moved.iter_mut().zip([&fewer, &whole, &reordered]) {
        subject.show(&mut *policy, scene)?;
        *moved = percent_moved(&first, &places(subject, &mut *policy, scene, 0..keys)?);
    }
    Ok(vec![seen(moved, keys)])
}

fn places(
    subject: &mut Subject<'_>,
    policy: &mut dyn Policy,
    scene: &Scene,
    keys: impl Iterator<Item = u32>,
) -> Result<Places, Stopped> {
    keys.map(|key| {
        let draws = subject.now.as_nanos() as u64;
        let question = Question::new(subject.offers(), Shape::Key(key), draws);
        let picked = subject.pick(policy, &question, None, &scene.name)?;
        Ok(picked.map(|pick| scene.servers[pick.first.at()].name.clone()))
    })
    .collect()
}

/// Whether keys meet their servers again, and not all of them the same one.
fn is_affine(first: &Places, again: &Places) -> bool {
    let met = first
        .iter()
        .zip(again)
        .filter(|(one, two)| one.is_some() && one == two);
    let servers: BTreeSet<&Option<String>> = first.iter().collect();
    met.count() as u64 * 100 >= first.len() as u64 * AFFINE && servers.len() > 1
}

fn percent_moved(before: &Places, after: &Places) -> f64 {
    let moved = before.iter().zip(after).filter(|(one, two)| one != two);
    moved.count() as f64 * 100.0 / before.len().max(1) as f64
}

fn seen([gone, back, reordered]: [f64; 3], keys: u32) -> Seen {
    let verdict = match gone {
        _ if gone > MOST => Verdict::Failed,
        _ if gone.max(back).max(reordered) > MANY => Verdict::Warning,
        _ => Verdict::Ok,
    };
    let ideal = 100 / SERVERS;
    let figure = format!(
        "{gone:.1} % of the keys moved (ideal {ideal} %); {back:.1} % are elsewhere after it came back, \
         {reordered:.1} % in another order"
    );
    Seen::new(
        verdict,
        figure,
        format!("{keys} keys, one of 10 equal servers removed"),
    )
}
