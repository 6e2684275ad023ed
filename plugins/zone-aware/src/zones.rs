//! From zones to tiers.
//!
//! ```text
//! own zone well:      its servers, up to their caps → all others that are well → whoever is not
//! own zone not well:  all servers that are well                                → whoever is not
//! ```
//!
//! A zone is not well if too little of its weight is in servers that take requests and answer them. Then the few that are
//! left would get all the work of the zone, and fail under it: they share it with the other zones.
//!
//! Each tier is left when it is full, and after the last one the configured algorithm chooses among all, so that nobody
//! waits beside a free slot. Errors fade: half of what is known is new after ten seconds. Who is in the last tier for
//! them comes back, and shows what it is worth.

use crate::exports::forebay::policy::balance_plan::{Allocation, Member, Selector, Server, Spill, Tier};
use settings::Cap;
use std::collections::BTreeMap;

/// In which errors fade, in ms.
const WINDOW: f64 = 10_000.0;
/// Good responses that each server starts with, so that a single early error is not 100 %.
const BENEFIT: f64 = 4.0;
/// A plan outlives so many intervals, and the least.
const LIFETIMES: i64 = 4;
const LIFETIME_MIN: i64 = 10_000;

/// The configuration.
pub struct Rules {
    pub zone: String,
    /// The name of the tag.
    pub tag: String,
    /// Of the zone's weight, 0…1.
    pub healthy_min: f64,
    /// 0…1.
    pub errors_max: f64,
    /// Up to when a server is used before the next tier.
    pub cap: Cap,
}

/// The rules, and what ended and failed at each server, fading, by its name.
pub struct Zones {
    rules: Rules,
    seen: BTreeMap<String, (f64, f64)>,
    last: i64,
    /// Whether the operator was told of a zone without servers.
    is_told: bool,
}

impl Zones {
    pub fn new(rules: Rules) -> Zones {
        Zones { rules, seen: BTreeMap::new(), last: -1, is_told: false }
    }

    /// What the operator should know, once: no server stands in this zone.
    pub fn doubt(&mut self, servers: &[Server]) -> Option<String> {
        let Rules { zone, tag, .. } = &self.rules;
        let is_lost = !servers.is_empty() && !servers.iter().any(|server| self.is_own(server));
        let is_new = is_lost && !std::mem::replace(&mut self.is_told, is_lost);
        is_new.then(|| format!("no server has the tag {tag} = \"{zone}\": there is no own zone to prefer"))
    }

    /// A plan for these servers; `None` if none of them takes requests.
    pub fn plan(&mut self, now: i64, servers: &[Server]) -> Option<Allocation> {
        let elapsed = if self.last < 0 { 0 } else { now - self.last };
        self.last = now;
        self.look(elapsed as f64, servers);
        let ready: Vec<usize> = (0..servers.len()).filter(|&at| takes_requests(&servers[at])).collect();
        let (well, ill): (Vec<usize>, Vec<usize>) = ready.iter().partition(|&&at| self.is_well(&servers[at]));
        let (own, others): (Vec<usize>, Vec<usize>) = well.iter().partition(|&&at| self.is_own(&servers[at]));
        let tiers = match self.has_enough(servers, &own) {
            true => vec![self.capped(servers, &own), open(servers, &others), open(servers, &ill)],
            false => vec![open(servers, &well), open(servers, &ill)],
        };
        let tiers: Vec<Tier> = tiers.into_iter().filter(|tier| !tier.members.is_empty()).collect();
        let lifetime = (LIFETIMES * elapsed).clamp(LIFETIME_MIN, 3_600_000) as i32;
        (!tiers.is_empty()).then_some(Allocation { tiers, lifetime })
    }

    /// Takes in what ended, and forgets servers that are gone.
    fn look(&mut self, elapsed: f64, servers: &[Server]) {
        let kept = WINDOW / (WINDOW + elapsed);
        let before = std::mem::take(&mut self.seen);
        self.seen = servers
            .iter()
            .map(|server| {
                let (ended, failed) = before.get(&server.name).copied().unwrap_or_default();
                let (more, wrong) = (server.completed.max(server.failed), server.failed);
                let now = (ended * kept + f64::from(more), failed * kept + f64::from(wrong));
                (server.name.clone(), now)
            })
            .collect();
    }

    fn is_own(&self, server: &Server) -> bool {
        server.tags.iter().any(|tag| tag.name == self.rules.tag && tag.value == self.rules.zone)
    }

    fn is_well(&self, server: &Server) -> bool {
        let (ended, failed) = self.seen.get(&server.name).copied().unwrap_or_default();
        failed <= self.rules.errors_max * (ended + BENEFIT)
    }

    /// Whether these are enough of the zone's servers. One whose weight is 0 is no part of it.
    fn has_enough(&self, servers: &[Server], own: &[usize]) -> bool {
        let all: i32 = servers.iter().filter(|server| self.is_own(server)).map(|it| it.weight).sum();
        let well: i32 = own.iter().map(|&at| servers[at].weight).sum();
        well > 0 && f64::from(well) >= self.rules.healthy_min * f64::from(all)
    }

    fn capped(&self, servers: &[Server], members: &[usize]) -> Tier {
        let mut tier = open(servers, members);
        for member in &mut tier.members {
            let server = &servers[member.server as usize];
            member.cap = self.rules.cap.of(server.limit, server.weight);
        }
        tier
    }
}

fn takes_requests(server: &Server) -> bool {
    server.state == 0 && server.weight > 0
}

fn open(servers: &[Server], members: &[usize]) -> Tier {
    let member = |&at: &usize| Member { server: at as i32, weight: servers[at].weight, cap: -1 };
    let members = members.iter().map(member).collect();
    Tier { selector: Selector::Leastconn, spill: Spill::WhenFull, members }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::forebay::policy::balance_plan::Tag;

    fn server(name: &str, zone: &str) -> Server {
        Server {
            name: name.into(),
            tags: vec![Tag { name: "zone".into(), value: zone.into() }],
            weight: 16,
            state: 0,
            limit: -1,
            in_flight: 0,
            queued: 0,
            idle: 0,
            latency: -1,
            completed: 100,
            failed: 0,
        }
    }

    fn zones() -> Zones {
        Zones::new(Rules {
            zone: "a".into(),
            tag: "zone".into(),
            healthy_min: 0.7,
            errors_max: 0.5,
            cap: Cap::read(&mut settings::Settings::read(r#"{ "fill": "80%" }"#)),
        })
    }

    fn six() -> [Server; 6] {
        [("a1", "a"), ("b1", "b"), ("a2", "a"), ("a3", "a"), ("b2", "b"), ("c1", "")]
            .map(|(name, zone)| server(name, zone))
    }

    fn members(plan: Option<Allocation>) -> Vec<Vec<i32>> {
        let tier = |tier: Tier| tier.members.iter().map(|member| member.server).collect();
        plan.into_iter().flat_map(|plan| plan.tiers).map(tier).collect()
    }

    #[test]
    fn the_own_zone_comes_first() {
        let plan = zones().plan(0, &six());
        assert_eq!(plan.as_ref().unwrap().lifetime, 10_000);
        assert_eq!(members(plan), [[0, 2, 3], [1, 4, 5]]);
    }

    #[test]
    fn a_zone_with_too_few_servers_is_not_preferred() {
        let mut servers = six();
        servers[2].state = 1;
        assert_eq!(members(zones().plan(0, &servers)), [[0, 1, 3, 4, 5]]);
        servers[2].weight = 0;
        assert_eq!(members(zones().plan(0, &servers)), [vec![0, 3], vec![1, 4, 5]], "it was taken out");
        servers[0].weight = 64;
        servers[2] = server("a2", "a");
        servers[3].state = 3;
        assert_eq!(
            members(zones().plan(0, &servers)),
            [vec![0, 2], vec![1, 4, 5]],
            "most of its weight is well"
        );
    }

    #[test]
    fn who_fails_is_the_last_and_comes_back() {
        let mut zones = zones();
        let mut servers = six();
        servers[0].failed = 90;
        assert_eq!(
            members(zones.plan(0, &servers)),
            [vec![1, 2, 3, 4, 5], vec![0]],
            "two of three are not enough"
        );
        servers[0].failed = 0;
        servers[0].completed = 0;
        let back = (1..100).find(|tick| members(zones.plan(tick * 1_000, &servers))[0] == [0, 2, 3]);
        assert!(matches!(back, Some(10..40)), "{back:?}");
    }

    #[test]
    fn caps_are_of_the_own_zone() {
        let mut servers = six();
        servers[0].limit = 10;
        servers[1].limit = 10;
        let plan = zones().plan(0, &servers).unwrap();
        let caps = |tier: &Tier| tier.members.iter().map(|member| member.cap).collect::<Vec<i32>>();
        assert_eq!(plan.tiers.iter().map(caps).collect::<Vec<_>>(), [[8, -1, -1], [-1, -1, -1]]);
    }

    #[test]
    fn without_servers_in_the_zone_all_are_alike_and_the_operator_is_told_once() {
        let mut zones = zones();
        let servers = [server("b1", "b"), server("c1", "c")];
        assert_eq!(members(zones.plan(0, &servers)), [[0, 1]]);
        assert!(zones.doubt(&servers).unwrap().contains("zone = \"a\""));
        assert_eq!(zones.doubt(&servers), None);
        assert_eq!(zones.doubt(&six()), None);
        assert!(zones.plan(0, &[]).is_none());
    }
}
