//! A plan: which servers should get the work, as a table that the core executes by itself, and what it is made from.

use super::{Fault, Live, ServerIndex};
use std::sync::Arc;
use std::time::Duration;

/// The most tiers of a plan.
pub const TIERS_MAX: usize = 8;
/// The longest time that a plan may hold.
pub const LIFETIME_MAX: Duration = Duration::from_secs(3600);
/// The largest weight of a member.
pub const MEMBER_WEIGHT_MAX: u16 = 4096;

/// What a plan is made from.
#[derive(Clone, Copy)]
pub struct PlanView<'a> {
    /// As in [`super::Asked::now`].
    pub now: Duration,
    /// In the order of their indices.
    pub servers: &'a [PlanServer<'a>],
    /// Where their measures are read, if anywhere; a table of these servers.
    pub live: Option<&'a Arc<dyn Live>>,
}

/// A server and how it does. What is unknown or unlimited is `None`.
#[derive(Clone, Copy, Debug)]
pub struct PlanServer<'a> {
    /// The name in the configuration, or the address.
    pub name: &'a str,
    /// Names and values, in the order of the names.
    pub tags: &'a [(&'a str, &'a str)],
    /// Effective weight, 0…4096.
    pub weight: u32,
    /// Whether it takes requests.
    pub state: super::State,
    /// The most requests at once.
    pub limit: Option<u32>,
    /// Requests that it has.
    pub in_flight: u32,
    /// Requests that wait for it.
    pub queued: u32,
    /// Connections to it that carry a request or are being opened.
    pub used: u32,
    /// Idle connections to it.
    pub idle: u32,
    /// Connections to it that are taken to be needed.
    pub need: u32,
    /// Connections that were opened since the call before.
    pub opened: u64,
    /// Smoothed time to the first byte of a response.
    pub latency: Option<Duration>,
    /// Requests that have ended since the call before, with a response or without.
    pub completed: u64,
    /// Of these, those that failed.
    pub failed: u64,
}

/// A preference over all requests until the next plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The best first. After the last one, the configured algorithm chooses among all servers. With none at all, the
    /// plan before is withdrawn.
    pub tiers: Vec<Tier>,
    /// How long it holds; `None` until it is replaced.
    pub lifetime: Option<Duration>,
}

/// Servers that are equally good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// How one of them is chosen.
    pub selector: Selector,
    /// When a request goes on to the next tier.
    pub spill: Spill,
    /// Who they are.
    pub members: Vec<Member>,
}

/// Which of the core's algorithms chooses within a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Draws twice by weight and takes the less loaded.
    Random,
    /// Smooth weighted rotation.
    RoundRobin,
    /// The fewest in flight for its weight.
    LeastConn,
}

/// When a request goes on to the next tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spill {
    /// When no server of the tier takes requests.
    WhenDown,
    /// Also when all of them are at their cap or limit.
    WhenFull,
}

/// A server in a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub server: ServerIndex,
    /// Its share within the tier, 0…[`MEMBER_WEIGHT_MAX`].
    pub weight: u16,
    /// The most requests at once through this plan; `None` for the server's own limit.
    pub cap: Option<u32>,
}

impl Plan {
    /// Whether the core can execute it for that many servers.
    pub fn check(&self, servers: usize) -> Result<(), Fault> {
        if self.tiers.len() > TIERS_MAX {
            return Err(Fault::Plan);
        }
        if self
            .lifetime
            .is_some_and(|time| time.is_zero() || time > LIFETIME_MAX)
        {
            return Err(Fault::Range);
        }
        let mut seen = vec![false; servers];
        for tier in &self.tiers {
            if tier.members.is_empty() {
                return Err(Fault::Plan);
            }
            for member in &tier.members {
                let seen = seen.get_mut(member.server.at()).ok_or(Fault::UnknownServer)?;
                if std::mem::replace(seen, true) {
                    return Err(Fault::Plan);
                }
                if member.weight > MEMBER_WEIGHT_MAX {
                    return Err(Fault::Range);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(tiers: &[&[u16]]) -> Plan {
        let member = |&server: &u16| Member {
            server: ServerIndex(server),
            weight: 16,
            cap: None,
        };
        let tier = |members: &&[u16]| Tier {
            selector: Selector::Random,
            spill: Spill::WhenFull,
            members: members.iter().map(member).collect(),
        };
        Plan {
            tiers: tiers.iter().map(tier).collect(),
            lifetime: None,
        }
    }

    #[test]
    fn plans_are_checked() {
        assert_eq!(plan(&[&[0, 2], &[1]]).check(3), Ok(()));
        assert_eq!(plan(&[&[0, 3]]).check(3), Err(Fault::UnknownServer));
        assert_eq!(plan(&[&[0], &[0]]).check(3), Err(Fault::Plan));
        assert_eq!(plan(&[&[0], &[]]).check(3), Err(Fault::Plan));
        assert_eq!(plan(&[]).check(3), Ok(()), "withdraws the plan before");
        assert_eq!(plan(&[&[0][..]; 9]).check(3), Err(Fault::Plan));
        let forever = Plan {
            lifetime: Some(LIFETIME_MAX * 2),
            ..plan(&[&[0]])
        };
        assert_eq!(forever.check(3), Err(Fault::Range));
        let mut heavy = plan(&[&[0]]);
        heavy.tiers[0].members[0].weight = 4097;
        assert_eq!(heavy.check(1), Err(Fault::Range));
    }
}
