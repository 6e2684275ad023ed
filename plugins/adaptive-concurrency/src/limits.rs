//! From latencies to limits.
//!
//! A server that has more requests at once than it can work on answers later, without answering more. So its limit
//! follows its latency: it shrinks as far as the latency is above what is tolerated, `tolerance` times the least that was
//! ever measured, and is given room for some more at each step, the root of itself. Where the two are equal it stands.
//! It grows only if it was used: a server that is asked little tells nothing about what it could do.
//!
//! The least latency fades towards what is measured, half of the way in a `window`, because servers change. Under load
//! that never ends it rises by and by, and the limit with it: `limit-max` is where that ends.
//!
//! All servers stand in one tier that makes requests wait when all are at their limits.

use crate::exports::forebay::policy::balance_plan::{Allocation, Member, Selector, Server, Spill, Tier};
use std::collections::BTreeMap;

/// How much of a step is taken at once: latencies are smoothed and come late.
const STEP: f64 = 0.25;
/// A step leads to no less than this part of the limit.
const SHRINKS: f64 = 0.2;
/// A limit of which less than this was used does not grow.
const USED: f64 = 0.5;
/// A plan outlives so many intervals, and the least.
const LIFETIMES: i64 = 4;
const LIFETIME_MIN: i64 = 10_000;

/// The configuration.
pub struct Rules {
    /// Requests at once before anything is known, at least and at most.
    pub first: f64,
    pub least: f64,
    pub most: f64,
    /// At least 1.
    pub tolerance: f64,
    /// Milliseconds.
    pub window: f64,
}

/// The rules, and what is known of each server, by its name.
pub struct Limits {
    rules: Rules,
    known: BTreeMap<String, Known>,
    last: i64,
}

#[derive(Clone, Copy)]
struct Known {
    limit: f64,
    /// The least latency in µs, fading.
    least: Option<f64>,
}

impl Limits {
    pub fn new(rules: Rules) -> Limits {
        Limits { rules, known: BTreeMap::new(), last: -1 }
    }

    /// A plan for these servers; `None` if none of them takes requests.
    pub fn plan(&mut self, now: i64, servers: &[Server]) -> Option<Allocation> {
        let elapsed = if self.last < 0 { 0 } else { now - self.last };
        self.last = now;
        self.look(elapsed as f64, servers);
        let takes_requests = |(server, _): &(&Server, i32)| server.state == 0 && server.weight > 0;
        let member = |(server, at): (&Server, i32)| Member {
            server: at,
            weight: server.weight,
            cap: self.known[&server.name].limit as i32,
        };
        let members: Vec<Member> = servers.iter().zip(0..).filter(takes_requests).map(member).collect();
        let lifetime = (LIFETIMES * elapsed).clamp(LIFETIME_MIN, 3_600_000) as i32;
        let tier = Tier { selector: Selector::Leastconn, spill: Spill::WhenDown, members };
        (!tier.members.is_empty()).then(|| Allocation { tiers: vec![tier], lifetime })
    }

    /// Takes in the new figures, and forgets servers that are gone.
    fn look(&mut self, elapsed: f64, servers: &[Server]) {
        let mut before = std::mem::take(&mut self.known);
        for server in servers {
            let new = Known { limit: self.rules.first, least: None };
            let known = before.remove(&server.name).unwrap_or(new);
            self.known.insert(server.name.clone(), known.seeing(server, elapsed, &self.rules));
        }
    }
}

impl Known {
    fn seeing(self, server: &Server, elapsed: f64, rules: &Rules) -> Known {
        let is_measured = server.latency >= 0 && server.completed > 0 && elapsed > 0.0;
        if !is_measured {
            return self;
        }
        let latency = f64::from(server.latency).max(1.0);
        let faded = |least: f64| least + (latency - least) * elapsed / (rules.window + elapsed);
        let least = self.least.map_or(latency, |least| faded(least).min(latency));
        let tolerated = (rules.tolerance * least / latency).clamp(SHRINKS, 1.0);
        let goal = self.limit * tolerated + root(self.limit);
        // So many were there on average: those that ended, each for its latency.
        let used = f64::from(server.completed) * latency / (elapsed * 1_000.0);
        let is_used = used.max(f64::from(server.in_flight)) >= self.limit * USED;
        let step = if is_used || goal < self.limit { STEP * (goal - self.limit) } else { 0.0 };
        Known { limit: (self.limit + step).clamp(rules.least, rules.most), least: Some(least) }
    }
}

/// The square root of a number from 1 on, by additions and divisions alone: the same on every machine.
fn root(number: f64) -> f64 {
    let step = |guess: f64| (guess + number / guess) / 2.0;
    (0..20).fold(number, |guess, _| step(guess))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { first: 20.0, least: 4.0, most: 200.0, tolerance: 1.5, window: 300_000.0 };

    fn server(latency: i32, completed: i32) -> Server {
        Server {
            name: "a".into(),
            tags: vec![],
            weight: 16,
            state: 0,
            limit: -1,
            in_flight: 0,
            queued: 0,
            idle: 0,
            latency,
            completed,
            failed: 0,
        }
    }

    /// Its limit after so many ticks of 200 ms, with a latency that follows what it has: of a server that works on so
    /// many requests at a time, for 10 ms each, and is never short of more.
    fn settled(limits: &mut Limits, ticks: i64, works_on: i32) -> i32 {
        let mut cap = 20;
        for _ in 0..ticks {
            let latency = 10_000 * cap.max(works_on) / works_on;
            let completed = (200_000 * cap.min(works_on) / 10_000).max(1);
            let plan = limits.plan(limits.last.max(0) + 200, &[server(latency, completed)]).unwrap();
            cap = plan.tiers[0].members[0].cap;
        }
        cap
    }

    #[test]
    fn a_limit_finds_what_a_server_works_on() {
        let mut limits = Limits::new(RULES);
        // With nothing else to go by, what it is seen to do with 20 is taken for the least. It does better with fewer.
        let plenty = settled(&mut limits, 200, 100);
        assert!((150..=200).contains(&plenty), "{plenty}");
        let fewer = settled(&mut limits, 200, 30);
        assert!((45..70).contains(&fewer), "{fewer}");
        let more = settled(&mut limits, 200, 60);
        assert!((90..130).contains(&more), "{more}");
    }

    #[test]
    fn what_is_not_used_does_not_grow() {
        let mut limits = Limits::new(RULES);
        for tick in 0..100 {
            let plan = limits.plan(tick * 200, &[server(10_000, 10)]).unwrap();
            assert_eq!(plan.tiers[0].members[0].cap, 20);
        }
    }

    #[test]
    fn limits_stay_in_their_bounds() {
        let mut limits = Limits::new(RULES);
        limits.plan(0, &[server(1_000, 10)]);
        limits.plan(200, &[server(1_000, 10)]);
        for tick in 2..200 {
            limits.plan(tick * 200, &[server(i32::MAX, 10)]);
        }
        assert_eq!(limits.known["a"].limit, RULES.least);
        assert_eq!(settled(&mut Limits::new(RULES), 400, 10_000), RULES.most as i32);
    }

    #[test]
    fn the_least_latency_fades() {
        let mut limits = Limits::new(RULES);
        for (now, latency) in [(0, 1_000), (200, 1_000), (300_200, 3_000)] {
            limits.plan(now, &[server(latency, 10)]);
        }
        assert_eq!(limits.known["a"].least, Some(2_000.0));
        limits.plan(300_400, &[server(500, 10)]);
        assert_eq!(limits.known["a"].least, Some(500.0));
    }

    #[test]
    fn who_is_gone_is_forgotten_and_who_takes_nothing_is_left_out() {
        let mut limits = Limits::new(RULES);
        limits.plan(0, &[server(1_000, 10)]);
        let down = Server { state: 3, ..server(1_000, 0) };
        assert!(limits.plan(1, &[down]).is_none());
        assert!(limits.plan(2, &[]).is_none());
        assert!(limits.known.is_empty());
    }

    #[test]
    fn roots_are_exact_enough() {
        for number in [1.0_f64, 2.0, 20.0, 1_000.0, 1_000_000.0] {
            assert!((root(number) * root(number) - number).abs() < 1e-6 * number, "{number}");
        }
    }
}
