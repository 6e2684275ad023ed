//! A plan over one table, made ready to be executed: what each server may get in which tier.
//!
//! ```text
//! tier 0 ── picks ─→ that server                        source: plan
//!   │ nobody usable (when-down), or all full (when-full)
//!   │        └ full and when-down ─→ nobody: the request waits
//! tier 1 … the same
//!   │
//! the configured algorithm, among all servers           source: native
//! ```
//!
//! A plan names each server at most once, so one column says it all. The operator's word stands above the plan: a
//! server that takes no requests in the table has no share in any tier. A cap is looked at when a server is picked:
//! requests that are picked at the same instant may exceed it by as many; the server's own limit holds at the slot.
//!
//! For the request that avoids it, a server is as good as down: a tier with nobody else is passed over (LB-3).

use super::balancers::{Identified, Kind, Place, SharedBalancers};
use super::table::{BackendTable, Entry};
use crate::decide::balance::random::Random;
use crate::decide::balance::{self, Algorithm};
use crate::policy::{self, Draw, Plan, Selector, ServerId, ServerIndex, Spill, Table};
use std::collections::BTreeMap;

/// A plan with what is needed to execute it.
#[derive(Debug)]
pub(super) struct Tiers {
    /// As it was given, in the indices of this table.
    pub(super) plan: Plan,
    tiers: Box<[Tier]>,
    /// The first tier that is up and that a request waits for rather than go on.
    wall: Option<u8>,
    /// By server.
    shares: Box<[Share]>,
}

#[derive(Debug)]
struct Tier {
    selector: Selector,
    spill: Spill,
    /// Servers with a share.
    usable: u32,
    /// For [`Selector::Random`]; otherwise empty.
    ring: Random,
}

/// What a server may get.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// In which tier; [`NO_TIER`] for who has no share.
    tier: u8,
    weight: u16,
    /// The lower one of the plan's cap and the server's limit.
    limit: u32,
}

const NO_TIER: u8 = u8::MAX;
const NOTHING: Share = Share {
    tier: NO_TIER,
    weight: 0,
    limit: 0,
};

/// What the tiers say about a request.
pub(super) enum Verdict {
    /// This server gets it.
    Take(ServerIndex),
    /// It waits for a tier.
    Wait,
    /// The configured algorithm chooses.
    Pass,
}

/// What one tier sees of a table.
pub(super) struct TierView<'a, C> {
    table: &'a BackendTable<C>,
    tiers: &'a Tiers,
    at: u8,
}

impl Tiers {
    /// `balanced` says who takes requests.
    pub(super) fn new<C>(plan: Plan, entries: &[Entry<C>], balanced: &[bool]) -> Tiers {
        let mut shares = vec![NOTHING; entries.len()];
        for (tier, at) in plan.tiers.iter().zip(0..) {
            for member in &tier.members {
                let place = member.server.at();
                let (Some(share), Some(entry)) = (shares.get_mut(place), entries.get(place)) else {
                    continue;
                };
                if member.weight > 0 && balanced[place] {
                    *share = Share {
                        tier: at,
                        weight: member.weight,
                        limit: entry.limit.min(member.cap.unwrap_or(u32::MAX)),
                    };
                }
            }
        }
        let tiers = plan.tiers.iter().zip(0..);
        let tiers = tiers.map(|(tier, at)| Tier::new(tier, at, &shares)).collect();
        let tiers: Box<[Tier]> = tiers;
        let wall = tiers
            .iter()
            .zip(0..)
            .find(|(tier, _)| tier.spill == Spill::WhenDown && tier.usable > 0);
        Tiers {
            plan,
            wall: wall.map(|(_, at)| at),
            tiers,
            shares: shares.into(),
        }
    }

    /// The same plan for another table of the backend: servers are recognised by id, who is gone is left out.
    pub(super) fn carried<C>(&self, from: &BackendTable<C>, to: &[Entry<C>]) -> Plan {
        let places: BTreeMap<ServerId, u16> = to.iter().map(|entry| entry.server.id).zip(0..).collect();
        let mut plan = self.plan.clone();
        for tier in &mut plan.tiers {
            tier.members
                .retain_mut(|member| match places.get(&from.id(member.server)) {
                    Some(&place) => {
                        member.server = ServerIndex(place);
                        true
                    }
                    None => false,
                });
        }
        plan
    }

    pub(super) fn len(&self) -> usize {
        self.tiers.len()
    }

    /// Whether a tier keeps an order of loads.
    pub(super) fn has_order(&self) -> bool {
        let ordered = |tier: &Tier| tier.selector == Selector::LeastConn;
        self.tiers.iter().any(ordered)
    }

    /// Whether a tier keeps an order of loads with this server in it.
    pub(super) fn orders(&self, server: ServerIndex) -> bool {
        let tier = self.tiers.get(usize::from(self.shares[server.at()].tier));
        tier.is_some_and(|tier| tier.selector == Selector::LeastConn)
    }

    /// Up to how many requests a server has may it serve those who wait for any, who were refused by all tiers down to
    /// the wall, or to the end. `limit` is its own.
    pub(super) fn limit_for_any(&self, server: ServerIndex, limit: u32) -> Option<u32> {
        let share = self.shares[server.at()];
        match self.wall {
            None => Some(limit),
            Some(wall) => (share.tier <= wall).then(|| limit.min(share.limit)),
        }
    }

    pub(super) fn view<'a, C>(&'a self, table: &'a BackendTable<C>, at: u8) -> TierView<'a, C> {
        TierView {
            table,
            tiers: self,
            at,
        }
    }

    /// Asks the tiers in order.
    pub(super) fn pick<C>(
        &self,
        table: &BackendTable<C>,
        shared: &SharedBalancers,
        avoid: Option<ServerIndex>,
        draw: &mut impl Draw,
    ) -> Verdict {
        let avoided = avoid.map_or(NO_TIER, |server| self.shares[server.at()].tier);
        for (tier, at) in self.tiers.iter().zip(0..) {
            let others = tier.usable - u32::from(avoided == at);
            if others == 0 {
                continue;
            }
            let view = self.view(table, at);
            let picked = match tier.selector {
                Selector::Random => tier.ring.pick(&view, avoid, draw),
                Selector::RoundRobin | Selector::LeastConn => {
                    shared.pick(table, Place::Tier(at), &view, avoid)
                }
            };
            match (picked, tier.spill) {
                (Some(server), Spill::WhenDown) => return Verdict::Take(server),
                (Some(server), Spill::WhenFull) if picked != avoid => return Verdict::Take(server),
                // All others are full. It was counted, and does not get the request.
                (Some(server), Spill::WhenFull) => table.changed(server),
                (None, Spill::WhenDown) => return Verdict::Wait,
                (None, Spill::WhenFull) => {}
            }
        }
        Verdict::Pass
    }
}

impl Tier {
    fn new(tier: &policy::Tier, at: u8, shares: &[Share]) -> Tier {
        let weight = |share: &Share| {
            if share.tier == at {
                u32::from(share.weight)
            } else {
                0
            }
        };
        let weights = || shares.iter().map(weight);
        let ring: &mut dyn Iterator<Item = u32> = match tier.selector {
            Selector::Random => &mut weights(),
            Selector::RoundRobin | Selector::LeastConn => &mut std::iter::empty(),
        };
        Tier {
            selector: tier.selector,
            spill: tier.spill,
            usable: weights().filter(|&weight| weight > 0).count() as u32,
            ring: Random::new(DRAWS, ring),
        }
    }
}

/// Draws of a random tier (LB-30).
const DRAWS: u8 = 2;

impl<C> TierView<'_, C> {
    /// The state that the tier needs.
    pub(super) fn kind(&self) -> Option<Kind> {
        Kind::of_selector(self.tiers.tiers[usize::from(self.at)].selector)
    }

    fn share(&self, server: ServerIndex) -> Share {
        self.tiers.shares[server.at()]
    }
}

impl<C> Table for TierView<'_, C> {
    fn len(&self) -> usize {
        self.table.len()
    }
    fn weight(&self, server: ServerIndex) -> u32 {
        u32::from(self.share(server).weight)
    }
    fn usable(&self, server: ServerIndex) -> bool {
        self.share(server).tier == self.at
    }
    fn served(&self, server: ServerIndex) -> u32 {
        self.table.served(server)
    }
    fn waiting(&self, server: ServerIndex) -> u32 {
        self.table.waiting(server)
    }
    fn limit(&self, server: ServerIndex) -> u32 {
        self.share(server).limit.min(self.table.limit(server))
    }
    fn is_warm(&self, server: ServerIndex) -> bool {
        self.table.is_warm(server)
    }
}

impl<C> Identified for TierView<'_, C> {
    fn generation(&self) -> u64 {
        self.table.generation
    }
    fn id(&self, server: ServerIndex) -> ServerId {
        self.table.id(server)
    }
}

/// The least loaded where an order of loads does not pay, beside a plan or beside a hash. An order of loads would have to hear of every request that others
/// place, so that there is none: the least loaded is looked for, from anywhere.
pub(super) fn least_loaded_from_anywhere(
    table: &impl Table,
    avoid: Option<ServerIndex>,
    draw: &mut impl Draw,
) -> Option<ServerIndex> {
    let servers = u32::try_from(table.len()).ok().filter(|&servers| servers > 0)?;
    balance::least_loaded_from(table, ServerIndex(draw.draw(servers) as u16), avoid)
}

/// Whether the configured algorithm has state beside a plan.
pub(super) fn kind_beside(algorithm: Algorithm) -> Option<Kind> {
    Kind::of_algorithm(algorithm).filter(|kind| *kind != Kind::LeastConn)
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;
