//! Plans executed against real tables and slots.

use crate::decide::balance::column::Seeded;
use crate::decide::balance::{Algorithm, load_key};
use crate::policy::{BackendId, Member, Plan, Selector, ServerId, ServerIndex, Spill, Table, Tier};
use crate::shared::server::Server;
use crate::shared::table::{Admin, BackendTable, Choice, Entry, Source};
use crate::sync::Arc;
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

type Backend = BackendTable<()>;

fn entries(ids: impl IntoIterator<Item = u32>) -> Vec<Entry<()>> {
    let entry = |id| Entry::new(Arc::new(Server::new(ServerId(id), "app", &format!("s{id}"), 1)));
    ids.into_iter().map(entry).collect()
}

fn backend(algorithm: Algorithm, servers: u32) -> Backend {
    BackendTable::first(BackendId(1), "app", algorithm, entries(0..servers))
}

fn member(server: u16, weight: u16, cap: Option<u32>) -> Member {
    Member {
        server: ServerIndex(server),
        weight,
        cap,
    }
}

fn tier(selector: Selector, spill: Spill, members: &[(u16, u16, Option<u32>)]) -> Tier {
    Tier {
        selector,
        spill,
        members: members
            .iter()
            .map(|&(server, weight, cap)| member(server, weight, cap))
            .collect(),
    }
}

fn plan(tiers: &[Tier]) -> Plan {
    Plan {
        tiers: tiers.to_vec(),
        lifetime: None,
    }
}

fn pick(table: &Backend, avoid: Option<u16>) -> (Option<u16>, Source) {
    let Choice { server, source, .. } = table.pick(avoid.map(ServerIndex), &mut Seeded(1));
    (server.map(|server| server.0), source)
}

/// Picks and takes the slot, so many times: places, as letters; a small one for a native choice, `-` for none.
fn letters(table: &Backend, count: usize) -> String {
    let mut letters = String::new();
    for _ in 0..count {
        letters.push(match pick(table, None) {
            (Some(server), source) => {
                enter(table, server);
                let first = if source == Source::Plan { b'A' } else { b'a' };
                char::from(first + server as u8)
            }
            (None, _) => '-',
        });
    }
    letters
}

fn enter(table: &Backend, server: u16) {
    let entry = table.at(ServerIndex(server));
    assert!(entry.server.slots.take(entry.limit));
}

fn leave(table: &Backend, server: u16) {
    let _ = table.at(ServerIndex(server)).server.slots.release();
    table.changed(ServerIndex(server));
}

#[test]
fn tiers_come_in_order_and_spill_when_full() {
    let of = |selector, server, cap| tier(selector, Spill::WhenFull, &[(server, 16, Some(cap))]);
    for selector in [Selector::Random, Selector::RoundRobin, Selector::LeastConn] {
        let table = backend(Algorithm::RoundRobin, 3);
        let table = table.planned(&plan(&[of(selector, 2, 2), of(selector, 0, 1)]));
        assert_eq!(
            letters(&table, 6),
            "CCAabc",
            "{selector:?}: then rotation among all"
        );
        leave(&table, 0);
        leave(&table, 0);
        leave(&table, 2);
        leave(&table, 2);
        assert_eq!(letters(&table, 2), "CA");
    }
}

#[test]
fn a_full_tier_that_spills_when_down_makes_wait() {
    let tiers = [
        tier(Selector::LeastConn, Spill::WhenDown, &[(0, 16, Some(1))]),
        tier(Selector::Random, Spill::WhenDown, &[(1, 16, None)]),
    ];
    let table = backend(Algorithm::Random(2), 2).planned(&plan(&tiers));
    assert_eq!(letters(&table, 2), "A-");
    assert_eq!(pick(&table, None), (None, Source::Plan));
    assert!(table.pick_natively(None, None, &mut Seeded(1)).server.is_some());
    let mut drained = table.entries.to_vec();
    drained[0].state = Admin::Drain;
    let table = table.next(Algorithm::Random(2), drained);
    assert_eq!(letters(&table, 2), "BB", "the operator's word counts");
}

#[test]
fn the_lower_one_of_cap_and_limit_counts() {
    let mut list = entries(0..2);
    list[0].limit = 1;
    let table = BackendTable::first(BackendId(1), "app", Algorithm::RoundRobin, list);
    let one = tier(
        Selector::LeastConn,
        Spill::WhenFull,
        &[(0, 16, Some(5)), (1, 16, Some(2))],
    );
    let table = table.planned(&plan(&[one]));
    assert_eq!(letters(&table, 4), "ABBb");
}

#[test]
fn who_has_no_weight_gets_nothing() {
    let mut list = entries(0..3);
    list[1].weight = 0;
    let table = BackendTable::first(BackendId(1), "app", Algorithm::Random(2), list);
    let members = [(0, 0, None), (1, 16, None), (2, 1, None)];
    for selector in [Selector::Random, Selector::RoundRobin, Selector::LeastConn] {
        let table = table.planned(&plan(&[tier(selector, Spill::WhenDown, &members)]));
        assert_eq!(letters(&table, 5), "CCCCC");
    }
}

#[test]
fn rotation_is_by_the_weights_of_the_plan() {
    let table = backend(Algorithm::LeastConn, 2);
    let heavy = |weight| {
        plan(&[tier(
            Selector::RoundRobin,
            Spill::WhenFull,
            &[(0, weight, None), (1, 1, None)],
        )])
    };
    assert_eq!(letters(&table.planned(&heavy(3)), 8), "AAABAAAB");
}

/// The same shape again, then in another order of servers: the rotation goes on.
#[test]
fn a_tier_goes_on_in_the_next_table() {
    let rotation = |members: &[(u16, u16, Option<u32>)]| {
        plan(&[
            tier(Selector::LeastConn, Spill::WhenFull, &[(3, 16, Some(0))]),
            tier(Selector::RoundRobin, Spill::WhenFull, members),
        ])
    };
    let same = [(0, 16, None), (1, 16, None), (2, 16, None)];
    let first = backend(Algorithm::Random(2), 4).planned(&rotation(&same));
    assert_eq!(letters(&first, 4), "ABCA");
    let second = first.planned(&rotation(&same));
    assert_eq!((letters(&second, 1), second.generation), ("B".to_owned(), 3));
    let reversed = second.entries.iter().rev().cloned().collect();
    let third = second.next(Algorithm::Random(2), reversed);
    assert_eq!(letters(&third, 3), "BDC", "C, A, B of old");
    let members: Vec<u16> = third.plan().unwrap().tiers[1]
        .members
        .iter()
        .map(|member| member.server.0)
        .collect();
    assert_eq!(members, [3, 2, 1]);
    let gone = third.next(Algorithm::Random(2), third.entries[..3].to_vec());
    assert_eq!(gone.plan().unwrap().tiers[1].members.len(), 2);
    assert_eq!(letters(&gone, 4), "BCBC");
}

#[test]
fn the_avoided_is_as_good_as_down() {
    let tiers = [
        tier(Selector::LeastConn, Spill::WhenDown, &[(0, 16, None)]),
        tier(
            Selector::LeastConn,
            Spill::WhenFull,
            &[(1, 16, Some(1)), (2, 16, Some(1))],
        ),
    ];
    let table = backend(Algorithm::RoundRobin, 3).planned(&plan(&tiers));
    assert_eq!(pick(&table, Some(0)), (Some(1), Source::Plan));
    table.changed(ServerIndex(1));
    enter(&table, 2);
    assert_eq!(
        pick(&table, Some(1)),
        (Some(0), Source::Plan),
        "avoids another tier's"
    );
    table.changed(ServerIndex(0));
    let only = plan(&tiers[1..]);
    let table = table.planned(&only);
    assert_eq!(
        pick(&table, Some(1)),
        (Some(0), Source::Native),
        "rather than the avoided one"
    );
    leave(&table, 2);
    assert_eq!(
        pick(&table, None),
        (Some(1), Source::Plan),
        "and it is not counted for that"
    );
    let alone = backend(Algorithm::LeastConn, 1);
    let alone = alone.planned(&plan(&[tier(
        Selector::Random,
        Spill::WhenDown,
        &[(0, 16, None)],
    )]));
    assert_eq!(
        pick(&alone, Some(0)),
        (Some(0), Source::Native),
        "the last resort"
    );
}

/// Loads that were made with a plan are known without it, and the other way round.
#[test]
fn loads_survive_the_change_from_plan_to_none_and_back() {
    let least = plan(&[tier(
        Selector::LeastConn,
        Spill::WhenFull,
        &[(0, 16, None), (1, 16, None)],
    )]);
    let native = backend(Algorithm::LeastConn, 3);
    assert_eq!(letters(&native, 4), "abca");
    let planned = native.planned(&least);
    assert_eq!(letters(&planned, 2), "BA", "2 and 1 before");
    let again = planned.unplanned();
    assert_eq!(letters(&again, 2), "cb", "3, 2 and 1 before");
    assert!(again.plan().is_none() && again.algorithm() == Algorithm::LeastConn);
}

/// Requests that came when nobody ordered loads leave later: who orders them now hears of it, and the server they were at
/// does not starve.
#[test]
fn a_leave_with_an_older_table_is_heard_by_a_tier() {
    let least = plan(&[tier(
        Selector::LeastConn,
        Spill::WhenFull,
        &[(0, 16, None), (1, 16, None)],
    )]);
    let old = backend(Algorithm::Random(2), 2);
    (0..9).for_each(|_| enter(&old, 0));
    let new = old.planned(&least);
    assert_eq!(letters(&new, 1), "B");
    (0..9).for_each(|_| leave(&old, 0));
    assert_eq!(letters(&new, 1), "A", "idle again");
}

#[test]
fn a_pick_with_an_older_plan_stays_in_its_tiers() {
    let of = |server| plan(&[tier(Selector::RoundRobin, Spill::WhenDown, &[(server, 16, None)])]);
    let old = backend(Algorithm::RoundRobin, 3).planned(&of(0));
    let new = old.planned(&of(2));
    assert_eq!(letters(&new, 2), "CC");
    assert_eq!(letters(&old, 2), "AA");
    assert_eq!(letters(&new, 1), "C");
}

/// Beside a plan the configured order of loads is a scan, and sees what the plan placed.
#[test]
fn the_configured_order_of_loads_sees_what_the_plan_placed() {
    let capped = plan(&[tier(Selector::Random, Spill::WhenFull, &[(1, 16, Some(3))])]);
    let table = backend(Algorithm::LeastConn, 3).planned(&capped);
    let mut picked: Vec<char> = letters(&table, 9).chars().collect();
    picked.sort_unstable();
    assert_eq!(picked.iter().collect::<String>(), "BBBaaaccc");
}

#[derive(Clone, Debug)]
enum Step {
    Request(Option<u16>),
    Leave(prop::sample::Index),
    Plan(Plan),
    Unplan,
    /// New states and weights: ready, weight.
    Next(Vec<(bool, u16)>),
}

const SERVERS: u16 = 6;

fn plans() -> impl Strategy<Value = Plan> {
    let selector = prop::sample::select(vec![Selector::Random, Selector::RoundRobin, Selector::LeastConn]);
    let spill = prop::sample::select(vec![Spill::WhenDown, Spill::WhenFull]);
    let share = (prop::option::of(0u32..4), 0u16..4, 0usize..4);
    let shares = prop::collection::vec(share, usize::from(SERVERS));
    (prop::collection::vec((selector, spill), 4), shares).prop_map(|(kinds, shares)| {
        let mut tiers: Vec<Tier> = kinds
            .iter()
            .map(|&(selector, spill)| tier(selector, spill, &[]))
            .collect();
        for (server, (cap, weight, at)) in shares.into_iter().enumerate() {
            tiers[at].members.push(member(server as u16, weight, cap));
        }
        tiers.retain(|tier| !tier.members.is_empty());
        plan(&tiers)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let states = prop::collection::vec((any::<bool>(), 0u16..3), usize::from(SERVERS));
    let step = prop::strategy::Union::new_weighted(vec![
        (12, prop::option::of(0..SERVERS).prop_map(Step::Request).boxed()),
        (8, any::<prop::sample::Index>().prop_map(Step::Leave).boxed()),
        (2, plans().prop_map(Step::Plan).boxed()),
        (1, prop::strategy::Just(Step::Unplan).boxed()),
        (1, states.prop_map(Step::Next).boxed()),
    ]);
    prop::collection::vec(step, 1..120)
}

fn free(table: &Backend, member: &Member) -> bool {
    let limit = table.limit(member.server).min(member.cap.unwrap_or(u32::MAX));
    table.served(member.server) < limit
}

/// Who may be picked by the plan: a tier and its candidates, `None` when it waits; or nobody of the plan.
fn expected(table: &Backend, avoid: Option<ServerIndex>) -> Option<(&Tier, Option<Vec<Member>>)> {
    for tier in table.plan().into_iter().flat_map(|plan| &plan.tiers) {
        let shares = |member: &&Member| member.weight > 0 && table.usable(member.server);
        let usable: Vec<Member> = tier.members.iter().filter(shares).copied().collect();
        let (avoided, others): (Vec<Member>, Vec<Member>) = usable
            .into_iter()
            .partition(|member| Some(member.server) == avoid);
        if others.is_empty() {
            continue;
        }
        let open = |list: Vec<Member>| -> Vec<Member> {
            list.into_iter().filter(|member| free(table, member)).collect()
        };
        let (others, avoided) = (open(others), open(avoided));
        match (others.is_empty(), avoided.is_empty(), tier.spill) {
            (false, ..) => return Some((tier, Some(others))),
            (true, _, Spill::WhenFull) => {}
            (true, false, Spill::WhenDown) => return Some((tier, Some(avoided))),
            (true, true, Spill::WhenDown) => return Some((tier, None)),
        }
    }
    None
}

proptest! {
    /// Tiers in order, caps at the time of the pick, nobody that takes no requests; and the least loaded where that is the
    /// rule, whatever table a request began with.
    #[test]
    fn whoever_is_picked_may_be(
        native in prop::sample::select(vec![Algorithm::Random(2), Algorithm::RoundRobin, Algorithm::LeastConn]),
        steps in steps(),
        seed: u64,
    ) {
        let mut draw = Seeded(seed);
        let mut table = Arc::new(backend(native, u32::from(SERVERS)));
        let mut requests: Vec<(Arc<Backend>, ServerIndex)> = Vec::new();
        // Whether everybody who came since the table was made came through its tiers.
        let mut told = true;
        for step in steps {
            let follower = match step {
                Step::Request(avoid) => {
                    let avoid = avoid.map(ServerIndex);
                    let expected = expected(&table, avoid);
                    let loads: Vec<u32> = (0..SERVERS).map(|at| table.served(ServerIndex(at))).collect();
                    let Choice { server, source, .. } = table.pick(avoid, &mut draw);
                    prop_assert_eq!(source == Source::Plan, expected.is_some());
                    let key = |member: &Member| load_key(loads[member.server.at()], u32::from(member.weight));
                    match expected {
                        Some((_, None)) => prop_assert_eq!(server, None),
                        Some((tier, Some(candidates))) => {
                            let picked = candidates.iter().find(|member| Some(member.server) == server);
                            prop_assert!(picked.is_some(), "{server:?} is none of {candidates:?}");
                            if tier.selector == Selector::LeastConn && told {
                                prop_assert_eq!(picked.map(key), candidates.iter().map(key).min());
                            }
                        }
                        None => {
                            prop_assert!(server.is_none_or(|it| table.usable(it) && !table.saturated(it)));
                            told = false;
                        }
                    }
                    if let Some(server) = server {
                        enter(&table, server.0);
                        requests.push((table.clone(), server));
                    }
                    continue;
                }
                Step::Leave(which) => {
                    if !requests.is_empty() {
                        let (table, server) = requests.swap_remove(which.index(requests.len()));
                        leave(&table, server.0);
                    }
                    continue;
                }
                Step::Plan(plan) => table.planned(&plan),
                Step::Unplan => table.unplanned(),
                Step::Next(states) => {
                    let mut entries = table.entries.to_vec();
                    for (entry, (ready, weight)) in entries.iter_mut().zip(states) {
                        entry.state = if ready { Admin::Ready } else { Admin::Drain };
                        entry.weight = weight;
                    }
                    table.next(native, entries)
                }
            };
            prop_assert_eq!(follower.generation, table.generation + 1);
            table = Arc::new(follower);
            told = true;
        }
        for (table, server) in requests {
            leave(&table, server.0);
        }
        prop_assert!((0..SERVERS).all(|at| table.served(ServerIndex(at)) == 0));
    }

    /// Over any run a rotation gives each member exactly its part.
    #[test]
    fn rotations_are_exact(weights in prop::collection::vec(0u16..=64, 2..9), rounds in 1usize..3) {
        let sum: usize = weights.iter().map(|&weight| usize::from(weight)).sum();
        let members: Vec<_> = (0..).zip(&weights).map(|(server, &weight)| (server, weight, None)).collect();
        let table = backend(Algorithm::Random(2), weights.len() as u32);
        let table = table.planned(&plan(&[tier(Selector::RoundRobin, Spill::WhenDown, &members)]));
        let mut picks = vec![0usize; weights.len()];
        for _ in 0..sum * rounds {
            picks[usize::from(pick(&table, None).0.unwrap())] += 1;
        }
        for (&got, &weight) in picks.iter().zip(&weights) {
            prop_assert!(got.abs_diff(usize::from(weight) * rounds) <= 1, "{got} instead of {weight} × {rounds}");
        }
    }
}
