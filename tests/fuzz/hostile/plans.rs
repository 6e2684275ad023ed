//! Can the core execute every plan that is let through? On real tables and slots, without an engine.
//!
//! A plan is executed over three tables that follow each other: the one it was made for, one whose servers have changed
//! places and states, and one that has lost a server. Played by the fuzz target `plan`, whose bytes are a plan that nobody
//! has checked yet, and with each plan of a hostile guest.

use forebay::decide::balance::Algorithm;
use forebay::policy::{
    BackendId, Draw, LIFETIME_MAX, MEMBER_WEIGHT_MAX, Member, Plan, Selector, ServerId, ServerIndex, Spill,
    TIERS_MAX, Tier,
};
use forebay::shared::server::Server;
use forebay::shared::table::{Admin, BackendTable, Entry, Source};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Requests over each table.
const REQUESTS: usize = 24;
/// Every server of the tables takes so many at once.
const LIMIT: u32 = 5;

/// Plays an input: a plan of any numbers, checked as the host checks it, and executed if it may be.
pub(crate) fn play(input: &[u8]) {
    let mut numbers = Numbers(input);
    let servers = usize::from(numbers.byte() % 9);
    let plan = numbers.plan();
    if plan.check(servers).is_ok() {
        execute(&plan, servers);
    }
}

/// Executes a plan that was let through for that many servers.
pub(crate) fn execute(plan: &Plan, servers: usize) {
    promised(plan, servers);
    let entries: Vec<Entry<()>> = (0..servers).map(entry).collect();
    let table = BackendTable::first(BackendId(0), "app", Algorithm::RoundRobin, entries).planned(plan);
    requests(&table, plan);
    let mut turned: Vec<Entry<()>> = table.entries.iter().rev().cloned().collect();
    turned
        .iter_mut()
        .step_by(2)
        .for_each(|entry| entry.state = Admin::Drain);
    let table = table.next(Algorithm::LeastConn, turned);
    let carried = table.plan().expect("a plan goes on").clone();
    requests(&table, &carried);
    let fewer = table.entries.iter().skip(1).cloned().collect();
    let table = table.next(Algorithm::Random(2), fewer);
    let carried = table.plan().expect("a plan goes on").clone();
    requests(&table, &carried);
    assert!(table.unplanned().plan().is_none());
}

/// The rules of `balance-plan.wit`, said once more.
fn promised(plan: &Plan, servers: usize) {
    assert!(plan.tiers.len() <= TIERS_MAX);
    assert!(
        plan.lifetime
            .is_none_or(|time| !time.is_zero() && time <= LIFETIME_MAX),
        "{:?}",
        plan.lifetime
    );
    let mut seen = vec![false; servers];
    for tier in &plan.tiers {
        assert!(!tier.members.is_empty());
        for Member { server, weight, .. } in &tier.members {
            assert!(
                !std::mem::replace(&mut seen[server.at()], true),
                "{server:?} twice"
            );
            assert!(*weight <= MEMBER_WEIGHT_MAX);
        }
    }
}

fn entry(at: usize) -> Entry<()> {
    let server = Server::new(ServerId(at as u32), "app", &format!("s{at}"), 1);
    Entry {
        limit: LIMIT,
        ..Entry::new(Arc::new(server))
    }
}

/// Requests that keep their slots, but for every third.
fn requests(table: &BackendTable<()>, plan: &Plan) {
    let members: BTreeMap<ServerIndex, Member> = plan
        .tiers
        .iter()
        .flat_map(|tier| &tier.members)
        .map(|it| (it.server, *it))
        .collect();
    let mut draws = Draws(1);
    for number in 0..REQUESTS {
        let avoid = (number % 5 == 0 && !table.entries.is_empty()).then_some(ServerIndex(0));
        let choice = table.pick(avoid, &mut draws);
        let Some(server) = choice.server else { continue };
        let entry = table.entries.get(server.at()).expect("a server of this table");
        assert_eq!(entry.state, Admin::Ready, "{server:?} takes no requests");
        if choice.source == Source::Plan {
            let member = members.get(&server).expect("a member of the plan");
            let served = entry.server.slots.served();
            assert!(
                member.weight > 0 && member.cap.is_none_or(|cap| served < cap),
                "{member:?}: {served}"
            );
        }
        if entry.server.slots.take(entry.limit) && number % 3 == 0 {
            let _ = entry.server.slots.release();
        }
        table.changed(server);
    }
    let most = table
        .entries
        .iter()
        .map(|entry| entry.server.slots.served())
        .max();
    assert!(most.is_none_or(|most| most <= LIMIT));
}

/// Numbers that follow from one another.
struct Draws(u64);

impl Draw for Draws {
    fn draw(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (((self.0 >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// Bytes as numbers; 0 when they have ended.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn plan(&mut self) -> Plan {
        let lifetime = match self.byte() {
            0 => None,
            seconds => Some(Duration::from_secs(u64::from(seconds) * u64::from(self.byte()))),
        };
        let tiers = (0..self.byte() % 12).map(|_| self.tier()).collect();
        Plan { tiers, lifetime }
    }

    fn tier(&mut self) -> Tier {
        let how = self.byte();
        Tier {
            selector: match how % 3 {
                0 => Selector::Random,
                1 => Selector::RoundRobin,
                _ => Selector::LeastConn,
            },
            spill: if how & 4 == 0 {
                Spill::WhenDown
            } else {
                Spill::WhenFull
            },
            members: (0..(how >> 3) % 8).map(|_| self.member()).collect(),
        }
    }

    fn member(&mut self) -> Member {
        let server = ServerIndex(self.byte().into());
        let weight = self.number();
        let cap = match self.byte() {
            255 => None,
            254 => Some(u32::MAX),
            cap => Some(cap.into()),
        };
        Member { server, weight, cap }
    }
}
