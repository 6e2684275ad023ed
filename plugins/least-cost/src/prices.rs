//! From costs to tiers: one for each cost, the cheapest first.
//!
//! A plan has at most eight tiers: with more costs than that, the dearest of them share the last one. Each is left when
//! its servers are at their caps; after the last one the configured algorithm chooses among all, up to their limits. So a
//! cap never makes a request wait: it says from when on money is spent to be faster.

use crate::exports::forebay::policy::balance_plan::{Allocation, Member, Selector, Server, Spill, Tier};
use settings::Cap;
use std::collections::BTreeMap;

/// Tiers of a plan, at most.
const TIERS_MAX: usize = 8;
/// Of a server that does not say what it costs.
const UNKNOWN: u64 = u64::MAX;
/// Decimals of a cost.
const DECIMALS: usize = 6;
/// A plan outlives so many intervals, and the least.
const LIFETIMES: i64 = 4;
const LIFETIME_MIN: i64 = 10_000;

/// The configuration.
pub struct Rules {
    /// The name of the tag.
    pub tag: String,
    /// Up to when a server is used before the next tier.
    pub cap: Cap,
}

/// The rules, and what has to be remembered to keep to them.
pub struct Prices {
    rules: Rules,
    last: i64,
    /// The server of whose cost the operator was told last that it is none.
    told: String,
}

impl Prices {
    pub fn new(rules: Rules) -> Prices {
        Prices { rules, last: -1, told: String::new() }
    }

    /// What the operator should know: a server's cost is no number. Once for each first such server.
    pub fn doubt(&mut self, servers: &[Server]) -> Option<String> {
        let cost = |server: &Server| Some((server.name.clone(), self.rules.text(server)?.to_owned()));
        let (name, text) = servers.iter().filter_map(cost).find(|(_, text)| number(text).is_none())?;
        if self.told == name {
            return None;
        }
        let tag = &self.rules.tag;
        let word = format!("{name}: {tag} = \"{text}\" is no number such as 3 or 0.045: it is used last");
        self.told = name;
        Some(word)
    }

    /// A plan for these servers; `None` if none of them takes requests.
    pub fn plan(&mut self, now: i64, servers: &[Server]) -> Option<Allocation> {
        let elapsed = if self.last < 0 { 0 } else { now - self.last };
        self.last = now;
        let mut members: BTreeMap<u64, Vec<Member>> = BTreeMap::new();
        for (server, at) in servers.iter().zip(0..) {
            if server.state == 0 && server.weight > 0 {
                let cap = self.rules.cap.of(server.limit, server.weight);
                let member = Member { server: at, weight: server.weight, cap };
                members.entry(self.rules.cost(server)).or_default().push(member);
            }
        }
        let mut tiers: Vec<Tier> = Vec::new();
        for members in members.into_values() {
            match tiers.get_mut(TIERS_MAX - 1) {
                Some(last) => last.members.extend(members),
                None => tiers.push(Tier { selector: Selector::Leastconn, spill: Spill::WhenFull, members }),
            }
        }
        let lifetime = (LIFETIMES * elapsed).clamp(LIFETIME_MIN, 3_600_000) as i32;
        (!tiers.is_empty()).then_some(Allocation { tiers, lifetime })
    }
}

impl Rules {
    fn text<'a>(&self, server: &'a Server) -> Option<&'a str> {
        let tag = server.tags.iter().find(|tag| tag.name == self.tag);
        tag.map(|tag| tag.value.as_str())
    }

    fn cost(&self, server: &Server) -> u64 {
        self.text(server).and_then(number).unwrap_or(UNKNOWN)
    }
}

/// `3`, `0.045`: in millionths, so that costs are compared exactly.
fn number(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || whole.len() > 9 || decimals.len() > DECIMALS {
        return None;
    }
    format!("{whole}{decimals:0<DECIMALS$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::forebay::policy::balance_plan::Tag;

    fn server(name: &str, cost: &str) -> Server {
        Server {
            name: name.into(),
            tags: vec![Tag { name: "cost".into(), value: cost.into() }],
            weight: 16,
            state: 0,
            limit: 10,
            in_flight: 0,
            queued: 0,
            idle: 0,
            latency: -1,
            completed: 0,
            failed: 0,
        }
    }

    fn prices() -> Prices {
        let cap = Cap::read(&mut settings::Settings::read(r#"{ "fill": "80%" }"#));
        Prices::new(Rules { tag: "cost".into(), cap })
    }

    fn members(plan: Option<Allocation>) -> Vec<Vec<(i32, i32)>> {
        let tier = |tier: Tier| tier.members.iter().map(|member| (member.server, member.cap)).collect();
        plan.into_iter().flat_map(|plan| plan.tiers).map(tier).collect()
    }

    #[test]
    fn the_cheapest_come_first_and_equals_together() {
        let mut servers = ["1.5", "0.20", "10", "0.2", "cheap"].map(|cost| server("s", cost));
        servers[2].limit = -1;
        let tiers = [vec![(1, 8), (3, 8)], vec![(0, 8)], vec![(2, -1)], vec![(4, 8)]];
        assert_eq!(members(prices().plan(0, &servers)), tiers);
    }

    #[test]
    fn who_takes_no_requests_is_left_out() {
        let mut servers = ["1", "2", "3"].map(|cost| server("s", cost));
        (servers[0].state, servers[1].weight) = (2, 0);
        assert_eq!(members(prices().plan(0, &servers)), [[(2, 8)]]);
        servers[2].state = 3;
        assert!(prices().plan(0, &servers).is_none());
    }

    #[test]
    fn the_dearest_share_the_last_tier() {
        let servers: Vec<Server> = (0..20).map(|cost| server("s", &cost.to_string())).collect();
        let sizes: Vec<usize> = members(prices().plan(0, &servers)).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 1, 1, 1, 1, 1, 1, 13]);
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(number("0.045"), Some(45_000));
        assert_eq!(number("12"), Some(12_000_000));
        assert_eq!(number("0.1"), number("0.100"));
        for wrong in ["", ".5", "5.", "-1", "1e3", "1,5", "0.1234567", "1234567890", "own"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_operator_is_told_once_of_a_cost_that_is_none() {
        let mut prices = prices();
        let servers = [server("a", "1"), server("b", "own")];
        assert!(prices.doubt(&servers).unwrap().starts_with("b: cost = \"own\""));
        assert_eq!(prices.doubt(&servers), None);
        assert_eq!(prices.doubt(&servers[..1]), None);
    }
}
