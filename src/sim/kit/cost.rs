//! What a call costs, in a unit that does not depend on the machine, and whether memory stops growing.
//!
//! Fuel changes with the compiler of the guest and the version of the engine: it is shown with two digits.

use super::question::{Question, STRANGE, Shape};
use super::scene::Scene;
use super::subject::{Hook, Stopped, Subject};
use super::{Seen, Verdict};
use crate::policy::{Fault, Fuel, Usage};
use crate::sim::random::Dice;

/// Servers of the tables in which fuel is counted.
const SIZES: [usize; 2] = [4, 1_000];
/// Clients while memory is watched: who remembers each of them soon has.
const CLIENTS: u32 = 1_000;
/// Calls between two tables while memory is watched, and the servers of those.
const TABLE_EVERY: u32 = 100;
const SERVERS: usize = 20;
/// One plan is asked for while so many requests are.
const REQUESTS_OF_PLAN: u32 = 10;
const SITUATION: &str = "20 servers that come and go";

/// The fuel of each hook.
pub(super) fn fuel(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let hooks = [&[Hook::Table][..], &Hook::OF_REQUESTS, &Hook::OF_PLANS].concat();
    let mut seen = Vec::new();
    for hook in subject.offered(&hooks) {
        let known = subject.mishaps.len();
        let found = match fuel_of(subject, hook) {
            Ok(found) => found,
            Err(Stopped) if subject.mishaps[known..].iter().any(|it| it.fault == Fault::Fuel) => {
                let situation = subject.mishaps[known].situation.clone();
                Some(Seen::new(Verdict::Failed, "more than a call may take", situation))
            }
            Err(Stopped) => return Err(Stopped),
        };
        seen.extend(found.map(|seen| seen.part(format!("of {}", hook.word()))));
    }
    if seen.is_empty() {
        seen.push(Seen::nothing("nobody counts it"));
    }
    Ok(seen)
}

fn fuel_of(subject: &mut Subject<'_>, hook: Hook) -> Result<Option<Seen>, Stopped> {
    let mut parts = Vec::new();
    let (mut most, mut allowed) = (0, 0);
    for servers in SIZES {
        let scene = Scene::busy(servers, &mut Dice::new(subject.effort.seed));
        let mut counted = count(subject, hook, &scene)?;
        counted.sort_unstable_by_key(|fuel| fuel.used);
        let (Some(largest), Some(median)) = (counted.last(), counted.get(counted.len() / 2)) else {
            return Ok(None);
        };
        most = most.max(largest.used);
        allowed = largest.allowed;
        parts.push(format!(
            "{} (at most {}) at {servers} servers",
            two_digits(median.used),
            two_digits(largest.used)
        ));
    }
    let verdict = if most > allowed / 2 {
        Verdict::Warning
    } else {
        Verdict::Ok
    };
    let asked = match Hook::OF_REQUESTS.contains(&hook) {
        true => "keys and strange values",
        false => "busy servers",
    };
    let situation = format!("{asked}; a call may take {}", two_digits(allowed));
    Ok(Some(Seen::new(verdict, parts.join(", "), situation)))
}

/// The fuel of each of some calls.
fn count(subject: &mut Subject<'_>, hook: Hook, scene: &Scene) -> Result<Vec<Fuel>, Stopped> {
    let mut counted = Vec::new();
    let calls = subject.effort.requests / 10;
    if Hook::OF_PLANS.contains(&hook) {
        let mut planner = subject.planner(&scene.name)?;
        for _ in 0..calls / 4 {
            subject.plan(&mut *planner, hook, scene)?;
            counted.extend(planner.usage().fuel);
        }
        return Ok(counted);
    }
    let mut policy = subject.policy_in(scene)?;
    for call in 0..calls {
        if hook == Hook::Table {
            subject.show(&mut *policy, scene)?;
        } else {
            let question = Question::new(subject.offers(), shape(call), call.into());
            subject.ask(&mut *policy, hook, &question, scene)?;
        }
        counted.extend(policy.usage().fuel);
    }
    Ok(counted)
}

/// Mostly keys.
fn shape(call: u32) -> Shape {
    match STRANGE.get(call as usize % 20) {
        Some(strange) => *strange,
        None => Shape::Key(call % CLIENTS),
    }
}

/// A number that says no more than it knows.
fn two_digits(number: u64) -> String {
    let mut rounded = number;
    let mut digits = 0;
    while rounded >= 100 {
        rounded = (rounded + 5) / 10;
        digits += 1;
    }
    // Thousands are grouped by threes: 1.2k, 12k, 120k.
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let (unit, rest) = match rounded {
        _ if digits == 0 => return rounded.to_string(),
        _ => ((digits + 1) / 3, (digits + 1) % 3),
    };
    let unit = UNITS.get(unit).copied().unwrap_or("?");
    match rest {
        0 => format!("{}.{}{unit}", rounded / 10, rounded % 10),
        1 => format!("{rounded}{unit}"),
        _ => format!("{rounded}0{unit}"),
    }
}

/// Whether memory stops growing.
pub(super) fn memory(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    let mut seen = Vec::new();
    if !subject.offered(&Hook::OF_REQUESTS).is_empty() {
        seen.extend(memory_of_requests(subject)?);
    }
    if !subject.offered(&Hook::OF_PLANS).is_empty() {
        seen.extend(memory_of_plans(subject)?);
    }
    if seen.is_empty() {
        seen.push(Seen::nothing("nobody counts it"));
    }
    Ok(seen)
}

fn memory_of_requests(subject: &mut Subject<'_>) -> Result<Option<Seen>, Stopped> {
    let scenes = changing();
    let mut policy = subject.policy_in(&scenes[0])?;
    let hooks = subject.offered(&Hook::OF_REQUESTS);
    let mut watched = Watched::new(subject.effort.calls);
    for call in 0..subject.effort.calls {
        let scene = &scenes[(call / TABLE_EVERY) as usize % scenes.len()];
        if call.is_multiple_of(TABLE_EVERY) {
            subject.show(&mut *policy, scene)?;
        }
        let question = Question::new(subject.offers(), shape(call), call.into());
        for &hook in &hooks {
            subject.ask(&mut *policy, hook, &question, scene)?;
        }
        watched.note(call, policy.usage());
    }
    Ok(watched.seen().map(|seen| seen.part("of requests")))
}

fn memory_of_plans(subject: &mut Subject<'_>) -> Result<Option<Seen>, Stopped> {
    let scenes = changing();
    let mut planner = subject.planner(&scenes[0].name)?;
    let hooks = subject.offered(&Hook::OF_PLANS);
    let calls = subject.effort.calls / REQUESTS_OF_PLAN;
    let mut watched = Watched::new(calls);
    for call in 0..calls {
        for &hook in &hooks {
            subject.plan(&mut *planner, hook, &scenes[call as usize % scenes.len()])?;
        }
        watched.note(call, planner.usage());
    }
    Ok(watched.seen().map(|seen| seen.part("of plans")))
}

/// Servers that come and go.
fn changing() -> [Scene; 3] {
    let scene = Scene::unlike(SERVERS).named(SITUATION);
    [scene.clone(), scene.clone().without(3), scene]
}

/// The memory after each quarter of the calls.
struct Watched {
    calls: u32,
    first: Option<u64>,
    quarters: Vec<u64>,
}

impl Watched {
    fn new(calls: u32) -> Watched {
        Watched {
            calls,
            first: None,
            quarters: Vec::new(),
        }
    }

    fn note(&mut self, call: u32, usage: Usage) {
        let Some(memory) = usage.memory else {
            return;
        };
        self.first.get_or_insert(memory);
        if (call + 1).is_multiple_of(self.calls / 4) {
            self.quarters.push(memory);
        }
    }

    /// Still growing in the second and in the last half is a leak.
    fn seen(&self) -> Option<Seen> {
        let (Some(first), [quarter, half, _, end]) = (self.first, &self.quarters[..]) else {
            return None;
        };
        let verdict = match (half > quarter, end > half) {
            (_, false) => Verdict::Ok,
            (false, true) => Verdict::Warning,
            (true, true) => Verdict::Failed,
        };
        let figure = match end > half {
            false => format!("{} KiB, and no more since the first half", end >> 10),
            true => format!(
                "{} KiB at first, {} after a quarter, {} after half, {} at the end: it grows",
                first >> 10,
                quarter >> 10,
                half >> 10,
                end >> 10
            ),
        };
        let situation = format!("{} calls, {SITUATION}", self.calls);
        Some(Seen::new(verdict, figure, situation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_and_no_more() {
        let cases = [
            (0, "0"),
            (99, "99"),
            (123, "120"),
            (995, "1.0k"),
            (1_234, "1.2k"),
            (12_345, "12k"),
            (123_456, "120k"),
            (1_950_000, "2.0M"),
            (10_000_000, "10M"),
        ];
        for (number, shown) in cases {
            assert_eq!(two_digits(number), shown);
        }
    }
}
