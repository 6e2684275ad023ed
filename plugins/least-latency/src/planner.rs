//! From figures to weights.
//!
//! The *merit* of a server is `(1 − errors) / latency`: good responses per time spent waiting. Its weight is the
//! operator's, times its merit over the best one's, but never less than 1/`spread` of it, so that each is still tried
//! and can show that it got better. A server of which nothing is known counts as average.
//!
//! A server whose share of errors is above `errors-max` goes to the second tier; at most half of them do, the worst
//! first, because errors everywhere are not the fault of one server. Nobody asks the second tier while the first takes
//! requests: its errors fade with the window, it comes back, and shows what it is worth now.
//!
//! Only additions, multiplications and divisions of `f64`: the same figures give the same plan on every machine.

use crate::exports::forebay::policy::balance_plan::{Allocation, Member, Selector, Server, Spill, Tier};
use std::collections::BTreeMap;

/// The largest weight of a member.
const WEIGHT_MAX: f64 = 4096.0;
/// Good responses that each server starts with, so that a single early error is not 100 %.
const BENEFIT: f64 = 4.0;
/// A plan outlives this many windows, or intervals if they are longer.
const LIFETIMES: i64 = 4;

/// The configuration.
pub struct Rules {
    /// Milliseconds.
    pub window: f64,
    /// At least 1.
    pub spread: f64,
    /// 0…1.
    pub errors_max: f64,
}

impl Rules {
    pub const DEFAULT: Rules = Rules { window: 5_000.0, spread: 4.0, errors_max: 0.2 };
}

/// The rules, and what was seen of each server, by name.
pub struct Planner {
    rules: Rules,
    seen: BTreeMap<String, Seen>,
    last: i64,
}

/// Smoothed figures of a server.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// µs.
    latency: Option<f64>,
    /// Requests, fading.
    ended: f64,
    /// Of these, failed.
    failed: f64,
}

impl Planner {
    pub const fn new(rules: Rules) -> Planner {
        Planner { rules, seen: BTreeMap::new(), last: -1 }
    }

    /// A plan for these servers; `None` if none of them takes requests.
    pub fn plan(&mut self, now: i64, servers: &[Server]) -> Option<Allocation> {
        let elapsed = if self.last < 0 { 0 } else { now - self.last };
        self.last = now;
        self.look(elapsed as f64, servers);
        let ready: Vec<usize> =
            (0..servers.len()).filter(|&at| servers[at].state == 0 && servers[at].weight > 0).collect();
        let (second, first): (Vec<usize>, Vec<usize>) = {
            let failing = self.failing(servers, &ready);
            ready.iter().partition(|at| failing.contains(at))
        };
        let tiers: Vec<Tier> = [first, second]
            .into_iter()
            .filter(|members| !members.is_empty())
            .map(|members| self.tier(servers, &members))
            .collect();
        let lifetime = LIFETIMES * elapsed.max(self.rules.window as i64);
        (!tiers.is_empty()).then(|| Allocation { tiers, lifetime: lifetime.min(3_600_000) as i32 })
    }

    /// Takes in the new figures, and forgets servers that are gone.
    fn look(&mut self, elapsed: f64, servers: &[Server]) {
        let kept = self.rules.window / (self.rules.window + elapsed);
        let average = self.average(servers);
        let mut seen = BTreeMap::new();
        for server in servers {
            let before = self.seen.get(&server.name).copied().unwrap_or_default();
            let measured = f64::from(server.latency.max(0));
            let latency = match (before.latency, server.latency) {
                (_, ..0) => None,
                (None, _) => Some(measured),
                // What was not asked for a while is tried again as an average one.
                (Some(before), _) if server.completed == 0 => Some(before * kept + average * (1.0 - kept)),
                (Some(before), _) => Some(before * kept + measured * (1.0 - kept)),
            };
            let now = Seen {
                latency,
                ended: before.ended * kept + f64::from(server.completed.max(server.failed)),
                failed: before.failed * kept + f64::from(server.failed),
            };
            seen.insert(server.name.clone(), now);
        }
        self.seen = seen;
    }

    /// The mean of the latencies that were known before, or else are known now.
    fn average(&self, servers: &[Server]) -> f64 {
        let known = |server: &Server| {
            let before = self.seen.get(&server.name).and_then(|seen| seen.latency);
            before.or((server.latency >= 0).then(|| f64::from(server.latency)))
        };
        let known: Vec<f64> = servers.iter().filter_map(known).collect();
        known.iter().sum::<f64>() / known.len().max(1) as f64
    }

    /// Who fails too much, of those.
    fn failing(&self, servers: &[Server], ready: &[usize]) -> Vec<usize> {
        let errors = |at: &usize| self.seen[&servers[*at].name].errors();
        let mut failing: Vec<usize> = ready.to_vec();
        failing.retain(|at| errors(at) > self.rules.errors_max);
        failing.sort_by(|a, b| errors(b).total_cmp(&errors(a)).then(a.cmp(b)));
        failing.truncate(ready.len() / 2);
        failing
    }

    fn tier(&self, servers: &[Server], members: &[usize]) -> Tier {
        let average = self.average(servers).max(1.0);
        let merits: Vec<f64> =
            members.iter().map(|&at| self.seen[&servers[at].name].merit(average)).collect();
        let best = merits.iter().copied().fold(0.0, f64::max);
        let worth = |(&at, merit): (&usize, &f64)| {
            let share = if best > 0.0 { merit / best } else { 1.0 };
            f64::from(servers[at].weight) * share.max(1.0 / self.rules.spread)
        };
        let worths: Vec<f64> = members.iter().zip(&merits).map(worth).collect();
        let most = worths.iter().copied().fold(0.0, f64::max);
        let member = |(&at, worth): (&usize, &f64)| Member {
            server: at as i32,
            weight: ((worth / most * WEIGHT_MAX + 0.5) as i32).max(1),
            cap: -1,
        };
        Tier {
            selector: Selector::Random,
            spill: Spill::WhenDown,
            members: members.iter().zip(&worths).map(member).collect(),
        }
    }
}

impl Seen {
    fn errors(&self) -> f64 {
        self.failed / (self.ended + BENEFIT)
    }

    fn merit(&self, average: f64) -> f64 {
        (1.0 - self.errors()) / self.latency.unwrap_or(average).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, latency: i32, completed: i32, failed: i32) -> Server {
        Server {
            name: name.into(),
            tags: vec![],
            weight: 16,
            state: 0,
            limit: -1,
            in_flight: 0,
            queued: 0,
            idle: 0,
            latency,
            completed,
            failed,
        }
    }

    fn weights(plan: &Option<Allocation>) -> Vec<Vec<(i32, i32)>> {
        let member = |member: &Member| (member.server, member.weight);
        let tier = |tier: &Tier| tier.members.iter().map(member).collect();
        plan.iter().flat_map(|plan| &plan.tiers).map(tier).collect()
    }

    #[test]
    fn weight_is_inverse_to_latency_within_the_spread() {
        let mut planner = Planner::new(Rules::DEFAULT);
        let servers = [server("a", 1_000, 9, 0), server("b", 2_000, 9, 0), server("c", 90_000, 9, 0)];
        let plan = planner.plan(0, &servers);
        assert_eq!(weights(&plan), [[(0, 4096), (1, 2048), (2, 1024)]]);
        assert_eq!(plan.unwrap().lifetime, 20_000);
    }

    #[test]
    fn the_operators_weight_counts() {
        let mut planner = Planner::new(Rules::DEFAULT);
        let mut servers = [server("a", 1_000, 9, 0), server("b", 1_000, 9, 0), server("c", -1, 0, 0)];
        servers[1].weight = 32;
        assert_eq!(weights(&planner.plan(0, &servers)), [[(0, 2048), (1, 4096), (2, 2048)]]);
    }

    #[test]
    fn latency_is_smoothed_over_the_window() {
        let mut planner = Planner::new(Rules::DEFAULT);
        planner.plan(0, &[server("a", 1_000, 9, 0), server("b", 1_000, 9, 0)]);
        let servers = [server("a", 1_000, 9, 0), server("b", 3_000, 9, 0)];
        assert_eq!(weights(&planner.plan(5_000, &servers)), [[(0, 4096), (1, 2048)]]);
    }

    #[test]
    fn who_fails_is_the_last_resort_until_its_errors_fade() {
        let mut planner = Planner::new(Rules::DEFAULT);
        let bad = [server("a", 1_000, 96, 0), server("b", 100, 50, 50), server("c", 1_000, 96, 0)];
        assert_eq!(weights(&planner.plan(0, &bad))[1], [(1, 4096)]);
        let quiet = [server("a", 1_000, 96, 0), server("b", 100, 0, 0), server("c", 1_000, 96, 0)];
        let back = (1..100).find(|tick| weights(&planner.plan(tick * 1_000, &quiet)).len() == 1);
        assert!(matches!(back, Some(10..30)), "{back:?}");
    }

    #[test]
    fn errors_everywhere_are_nobodys_fault() {
        let mut planner = Planner::new(Rules::DEFAULT);
        let servers = ["a", "b", "c", "d", "e"].map(|name| server(name, 1_000, 10, 10));
        let tiers: Vec<usize> = weights(&planner.plan(0, &servers)).iter().map(Vec::len).collect();
        assert_eq!(tiers, [3, 2]);
        assert_eq!(weights(&planner.plan(0, &servers[..1])), [[(0, 4096)]]);
    }

    #[test]
    fn who_takes_no_requests_is_left_out() {
        let mut planner = Planner::new(Rules::DEFAULT);
        let mut servers = [server("a", 1_000, 9, 0), server("b", 1_000, 9, 0)];
        servers[0].state = 1;
        assert_eq!(weights(&planner.plan(0, &servers)), [[(1, 4096)]]);
        servers[1].weight = 0;
        assert!(planner.plan(1, &servers).is_none());
        assert!(planner.plan(2, &[]).is_none());
    }

    #[test]
    fn a_slow_server_that_nobody_asks_is_tried_again() {
        let mut planner = Planner::new(Rules::DEFAULT);
        planner.plan(0, &[server("a", 1_000, 9, 0), server("b", 4_000, 9, 0)]);
        let quiet = [server("a", 1_000, 9, 0), server("b", 4_000, 0, 0)];
        let weight = |planner: &mut Planner, now| weights(&planner.plan(now, &quiet))[0][1].1;
        let early = weight(&mut planner, 1_000);
        let late = (2..60).map(|tick| weight(&mut planner, tick * 1_000)).last().unwrap();
        assert!(early < 1_300 && late > 3_500, "{early} {late}");
    }
}
