//! The faster a server answers, the more requests it gets; failures count as slowness.

mod support;

use exports::forebay::policy::balance_plan::{Allocation, Guest as Plan, Member, Selector, Server, Spill, Tier};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};

wit_bindgen::generate!({ path: "wit", world: "planner" });

/// The most that the fastest server gets of the slowest one's share: who got nothing would never be seen to be fast again.
const SPREAD: i64 = 8;
/// How long a plan holds if no other one comes, in ms.
const LIFETIME: i32 = 10_000;

struct Policy;

impl Configure for Policy {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        support::log_panics();
        let [] = support::settings(&setup.config, [])?;
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

impl Plan for Policy {
    fn plan(_now: i64, servers: Vec<Server>) -> Option<Allocation> {
        let best = servers.iter().filter_map(slowness).min().unwrap_or(0);
        let takes_requests = |server: &Server| server.state == 0 && server.weight > 0;
        let members: Vec<Member> = (0..)
            .zip(&servers)
            .filter(|(_, it)| takes_requests(it))
            .map(|(server, it)| Member { server, weight: weight(it, best), cap: -1 })
            .collect();
        let tier = Tier { selector: Selector::Roundrobin, spill: Spill::WhenFull, members };
        (!tier.members.is_empty()).then(|| Allocation { tiers: vec![tier], lifetime: LIFETIME })
    }
}

/// What a server's answers take in µs, eleven times as much if all of them are failures; nothing while it is not known.
fn slowness(server: &Server) -> Option<i64> {
    let taken = i64::from(server.latency.max(1));
    let failures = taken * 10 * i64::from(server.failed) / i64::from(server.completed.max(1));
    (server.latency >= 0).then_some(taken + failures)
}

/// Who is not known yet counts as the best.
fn weight(server: &Server, best: i64) -> i32 {
    let share = slowness(server).map_or(256, |slow| (256 * best / slow).max(256 / SPREAD));
    (i64::from(server.weight) * share / 16).clamp(1, 4096) as i32
}

export!(Policy);
