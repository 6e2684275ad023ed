//! Waiting against real tables, one step after the other.

use super::*;
use crate::decide::balance::Algorithm;
use crate::decide::balance::column::Seeded;
use crate::policy::{BackendId, Member, Plan, Selector, Spill, Tier, WorkerId};
use crate::shared::table::{Entry, Queueing};

type Backend = BackendTable<()>;

const NOBODY: [u64; 0] = [];

fn entry(id: u32, limit: u32) -> Entry<()> {
    Entry {
        limit,
        ..Entry::new(Arc::new(Server::new(ServerId(id), "app", &format!("s{id}"), 1)))
    }
}

fn backend(entries: Vec<Entry<()>>) -> Backend {
    BackendTable::first(BackendId(1), "app", Algorithm::RoundRobin, entries)
}

/// Servers with these limits.
fn limited(limits: &[u32]) -> Backend {
    backend(
        limits
            .iter()
            .zip(0..)
            .map(|(&limit, id)| entry(id, limit))
            .collect(),
    )
}

/// All slots of all servers taken.
fn full(limits: &[u32]) -> Backend {
    let table = limited(limits);
    for server in servers(&table) {
        while table.take(server) {}
    }
    table
}

fn at(server: u16) -> ServerIndex {
    ServerIndex(server)
}

/// One who waits, and where.
struct Place {
    waiter: Arc<Waiter>,
    server: Option<ServerIndex>,
    rank: Rank,
}

/// Waits, and is not granted anything at once.
fn wait(table: &Backend, server: Option<u16>, class: i16, arrival: i64) -> Place {
    let (place, waiting) = try_wait(table, server, class, arrival);
    assert!(waiting.is_empty(), "nothing was free");
    place.expect("there is room")
}

fn try_wait(table: &Backend, server: Option<u16>, class: i16, arrival: i64) -> (Option<Place>, Vec<u64>) {
    let waiter = Arc::new(Waiter::new(WorkerId(0), arrival as u64));
    let (server, mut grants) = (server.map(ServerIndex), Grants::new());
    let place = match table.wait(server, waiter.clone(), (class, arrival), &mut grants) {
        Waiting::Queued { rank, .. } => Some(Place { waiter, server, rank }),
        Waiting::Full | Waiting::Closed => None,
    };
    (place, told(grants))
}

fn told(mut grants: Grants) -> Vec<u64> {
    assert!(!grants.take_unfinished());
    grants.drain().map(|grant| grant.token).collect()
}

/// Arrivals of those who are told when a slot of that server is given back.
fn release(table: &Backend, server: u16) -> Vec<u64> {
    let mut grants = Grants::new();
    table.release(at(server), &mut grants);
    told(grants)
}

fn occupied(table: &Backend, server: u16) -> (u32, u32) {
    (table.served(at(server)), table.waiting(at(server)))
}

fn granted(place: &Place) -> Option<u32> {
    match place.waiter.outcome() {
        Some(Outcome::Granted(granted)) => Some(granted.server.0),
        _ => None,
    }
}

/// AC-20.
#[test]
fn a_slot_goes_to_the_lowest_class() {
    for server in [Some(0), None] {
        let table = full(&[1]);
        let _places = [(1, 1), (0, 2), (-1, 3)].map(|(class, at)| wait(&table, server, class, at));
        let order: Vec<u64> = (0..4).flat_map(|_| release(&table, 0)).collect();
        assert_eq!((order, occupied(&table, 0)), (vec![3, 2, 1], (0, 0)));
    }
}

/// AC-22: of two heads of one class the earlier; a tie goes to the server's own queue.
#[test]
fn the_better_head_of_both_queues_is_first() {
    let table = full(&[1]);
    let _places = [
        wait(&table, None, 0, 10),
        wait(&table, Some(0), 0, 20),
        wait(&table, Some(0), 0, 30),
        wait(&table, None, 0, 30),
        wait(&table, Some(0), 0, 40),
        wait(&table, None, -1, 50),
    ];
    let order: Vec<u64> = (0..7).flat_map(|_| release(&table, 0)).collect();
    assert_eq!(order, [50, 10, 20, 30, 30, 40]);
    assert_eq!((occupied(&table, 0), table.queued()), ((0, 0), 0));
    let table = full(&[1]);
    let (own, any) = (wait(&table, Some(0), 0, 1), wait(&table, None, 0, 1));
    release(&table, 0);
    assert_eq!((granted(&own), granted(&any)), (Some(0), None));
}

/// the first in the backend's queue finds what has become free, at whichever server; those behind it wait.
#[test]
fn the_first_in_the_queue_looks_at_all_servers() {
    let table = full(&[1, 1]);
    assert_eq!(release(&table, 1), NOBODY);
    let (place, told) = try_wait(&table, None, 0, 1);
    assert_eq!((granted(&place.unwrap()), told), (Some(1), vec![1]));
    let _places = [2, 3].map(|at| wait(&table, None, 0, at));
    assert_eq!((release(&table, 0), release(&table, 1)), (vec![2], vec![3]));
    assert_eq!((occupied(&table, 0), occupied(&table, 1)), ((1, 0), (1, 0)));
}

/// Q-9 for a server's own queue.
#[test]
fn who_waits_for_a_server_looks_for_its_slot() {
    let table = limited(&[1, 1]);
    let (place, told) = try_wait(&table, Some(1), 0, 1);
    assert_eq!((granted(&place.unwrap()), told), (Some(1), vec![1]));
    assert_eq!(occupied(&table, 1), (1, 0));
}

/// who comes later takes no slot past those who wait for it.
#[test]
fn nobody_overtakes() {
    let table = full(&[2]);
    let place = wait(&table, Some(0), 0, 1);
    let mut raised = table.entries.to_vec();
    raised[0].limit = 3;
    let (next, mut grants) = (table.next(table.algorithm(), raised), Grants::new());
    assert!(!next.take(at(0)), "it is free, and not for who comes now");
    next.look(&mut grants);
    assert_eq!((told_of(&mut grants), granted(&place)), (vec![1], Some(0)));
    assert_eq!(
        (release(&next, 0), next.take(at(0)), next.take(at(0))),
        (vec![], true, false)
    );
}

/// who gives up takes no slot; who was granted one in the meantime gives it back.
#[test]
fn a_wait_that_is_cancelled() {
    for server in [Some(0), None] {
        let table = full(&[1]);
        let [first, second, third] = [1, 2, 3].map(|arrival| wait(&table, server, 0, arrival));
        let cancel = |place: &Place| table.cancel(place.server, place.rank, &place.waiter);
        assert_eq!(cancel(&second), Ok(()));
        assert_eq!(release(&table, 0), [1]);
        let granted = Granted {
            server: ServerId(0),
            near: at(0),
        };
        assert_eq!(cancel(&first), Err(Outcome::Granted(granted)));
        assert_eq!(release(&table, 0), [3], "the next, past who gave up");
        assert_eq!(third.waiter.outcome(), Some(Outcome::Granted(granted)));
        assert_eq!(release(&table, 0), NOBODY);
        assert_eq!((occupied(&table, 0), table.queued()), ((0, 0), 0));
    }
}

/// A dequeuer that meets one who has given up, and is not out of the queue yet, goes on to the next.
#[test]
fn who_has_given_up_is_passed_over() {
    for server in [Some(0), None] {
        let table = full(&[1]);
        let first = wait(&table, server, 0, 1);
        assert_eq!(first.waiter.end(Outcome::Cancelled), Ok(()));
        let _second = wait(&table, server, 0, 2);
        assert_eq!(release(&table, 0), [2]);
        assert_eq!((occupied(&table, 0), table.queued()), ((1, 0), 0));
    }
}

/// `maxqueue` counts those who wait.
#[test]
fn a_full_queue_takes_nobody() {
    let mut only = entry(0, 1);
    only.queueing.queue_max = Some(1);
    let table = backend(vec![only]);
    assert!(table.take(at(0)));
    let waiter = || Arc::new(Waiter::new(WorkerId(0), 0));
    let mut grants = Grants::new();
    let mut wait = || table.wait(Some(at(0)), waiter(), (0, 0), &mut grants);
    assert!(matches!(wait(), Waiting::Queued { ahead: 0, .. }));
    assert_eq!(wait(), Waiting::Full);
    assert_eq!(release(&table, 0).len(), 1);
}

/// The table that follows, with this changed; published as `control` does.
fn replace(table: &Backend, change: impl FnOnce(&mut Vec<Entry<()>>)) -> (Backend, u32, Vec<u64>) {
    let mut entries = table.entries.to_vec();
    change(&mut entries);
    let next = table.next(table.algorithm(), entries);
    next.open();
    let mut grants = Grants::new();
    let sent = next.send_back(table, &mut grants);
    next.look(&mut grants);
    let unfinished = grants.take_unfinished();
    let told = grants.drain().map(|grant| grant.token).collect();
    assert!(!unfinished);
    (next, sent, told)
}

/// AC-24, Q-13: those who wait for a server that goes are sent back, those who wait for any stay.
#[test]
fn who_waits_for_a_server_that_goes_chooses_again() {
    let gone: [fn(&mut Vec<Entry<()>>); 2] = [
        |entries| entries[0].state = Admin::Maint,
        |entries| drop(entries.remove(0)),
    ];
    for change in gone {
        let table = full(&[1, 1]);
        table.open();
        let own = [1, 2, 3, 4, 5].map(|arrival| wait(&table, Some(0), 0, arrival));
        let any = wait(&table, None, 0, 6);
        let (next, sent, told) = replace(&table, change);
        assert_eq!((sent, told), (5, vec![1, 2, 3, 4, 5]));
        assert!(
            own.iter()
                .all(|place| place.waiter.outcome() == Some(Outcome::SentBack))
        );
        assert_eq!(any.waiter.outcome(), None);
        let (place, _) = try_wait(&table, Some(0), 0, 7);
        assert!(place.is_none(), "with the table of yesterday");
        let mut grants = Grants::new();
        next.give_back(ServerId(0), at(0), &mut grants);
        assert!(grants.is_empty(), "its slot goes to nobody");
        next.give_back(ServerId(1), at(1), &mut grants);
        assert_eq!((told_of(&mut grants), granted(&any)), (vec![6], Some(1)));
        assert_eq!(occupied(&table, 0), (0, 0));
    }
}

fn told_of(grants: &mut Grants) -> Vec<u64> {
    grants.drain().map(|grant| grant.token).collect()
}

/// A server that drains serves those who are tied to it, and nobody else.
#[test]
fn a_server_that_drains_serves_its_own_queue() {
    let table = full(&[1, 1]);
    let (own, _any) = (wait(&table, Some(0), 0, 2), wait(&table, None, 0, 1));
    let (next, sent, told) = replace(&table, |entries| entries[0].state = Admin::Drain);
    assert_eq!((sent, told), (0, vec![]));
    assert_eq!(release(&next, 0), [2], "though another came first");
    assert_eq!(granted(&own), Some(0));
    assert_eq!((release(&next, 0), next.queued()), (vec![], 1));
}

/// AC-25: the last server goes: all are sent back at once, and nobody enters, until one is back.
#[test]
fn the_last_server_goes() {
    let table = full(&[1, 1]);
    table.open();
    let places = [1, 2, 3, 4, 5].map(|arrival| wait(&table, None, 0, arrival));
    let (half, sent, _) = replace(&table, |entries| entries[0].state = Admin::Maint);
    assert_eq!((sent, half.has_usable()), (0, true));
    let (none, sent, told) = replace(&half, |entries| entries[1].weight = 0);
    assert_eq!((sent, told, none.has_usable()), (5, vec![1, 2, 3, 4, 5], false));
    assert!(
        places
            .iter()
            .all(|place| place.waiter.outcome() == Some(Outcome::SentBack))
    );
    let (place, _) = try_wait(&table, None, 0, 6);
    assert!(place.is_none());
    let (back, ..) = replace(&none, |entries| entries[1].weight = 1);
    let _place = wait(&back, None, 0, 7);
    assert_eq!((release(&back, 0), release(&back, 1)), (vec![], vec![7]));
}

#[test]
fn a_backend_that_vanishes_keeps_nobody() {
    let table = full(&[1]);
    let places = [wait(&table, Some(0), 0, 1), wait(&table, None, 0, 2)];
    let mut grants = Grants::new();
    assert_eq!(table.retire(&mut grants), 2);
    assert!(
        places
            .iter()
            .all(|place| place.waiter.outcome() == Some(Outcome::SentBack))
    );
    assert!(try_wait(&table, Some(0), 0, 3).0.is_none() && try_wait(&table, None, 0, 3).0.is_none());
    assert_eq!((release(&table, 0), occupied(&table, 0)), (vec![], (0, 0)));
}

/// a lowered limit is reached slot by slot, and nobody gets one until then.
#[test]
fn a_limit_that_was_lowered_holds_from_then_on() {
    for server in [Some(0), None] {
        let table = full(&[3]);
        let _places = [1, 2].map(|arrival| wait(&table, server, 0, arrival));
        let (next, ..) = replace(&table, |entries| entries[0].limit = 1);
        assert_eq!((release(&next, 0), release(&next, 0)), (vec![], vec![]));
        assert_eq!(next.served(at(0)), 1);
        assert_eq!((release(&next, 0), release(&next, 0)), (vec![1], vec![2]));
        assert_eq!(next.served(at(0)), 1);
    }
}

/// a limit that is raised serves who waits, so many in one call, and says that there are more.
#[test]
fn a_limit_that_was_raised_serves_at_once() {
    let table = full(&[1]);
    let places: Vec<_> = (0..30).map(|arrival| wait(&table, None, 0, arrival)).collect();
    let mut raised = table.entries.to_vec();
    raised[0].limit = 21;
    let (next, mut grants) = (table.next(table.algorithm(), raised), Grants::new());
    let (mut told, mut calls) = (Vec::new(), 0);
    loop {
        next.look(&mut grants);
        calls += 1;
        assert!(grants.len() <= SERVED_MAX);
        told.extend(told_of(&mut grants));
        if !grants.take_unfinished() {
            break;
        }
    }
    assert_eq!((told, calls), ((0..20).collect(), 3));
    assert_eq!(
        places.iter().filter(|place| granted(place) == Some(0)).count(),
        20
    );
}

/// AC-28, Q-4: the limit rises with the requests in the backend, for those who wait, too.
#[test]
fn a_limit_that_moves_serves_those_who_wait() {
    let mut only = entry(0, 100);
    only.queueing = Queueing {
        minconn: 10,
        fullconn: 1000,
        queue_max: None,
    };
    let (table, mut grants) = (backend(vec![only]), Grants::new());
    assert_eq!(table.limit(at(0)), 10);
    for server in [None, Some(at(0))] {
        for came in 0..1200 {
            table.arrive(&mut grants);
            let (limit, served) = (table.limit(at(0)), table.served(at(0)));
            assert_eq!(limit, ((came + 1) / 10).clamp(10, 100));
            assert!(served <= limit);
            if table.is_queued() || !table.take(at(0)) {
                let waiter = Arc::new(Waiter::new(WorkerId(0), 0));
                table.wait(server, waiter, (0, 0), &mut grants);
            }
            assert_eq!(
                table.served(at(0)),
                limit.min(came + 1),
                "nobody waits beside a free slot"
            );
            assert!(!grants.take_unfinished());
        }
        for left in (0..1200).rev() {
            table.depart();
            table.release(at(0), &mut grants);
            let most = (left / 10).clamp(10, 100);
            assert!(
                table.served(at(0)) <= most,
                "{left} left: {} served",
                table.served(at(0))
            );
        }
        assert_eq!((occupied(&table, 0), table.queued()), ((0, 0), 0));
    }
}

fn tier(spill: Spill, members: &[(u16, Option<u32>)]) -> Tier {
    Tier {
        selector: Selector::RoundRobin,
        spill,
        members: members
            .iter()
            .map(|&(server, cap)| Member {
                server: ServerIndex(server),
                weight: 16,
                cap,
            })
            .collect(),
    }
}

/// A plan's word: who waits for a tier that spills only when it is down gets a slot of no other, up to the cap.
#[test]
fn a_slot_goes_where_a_pick_would_go() {
    let table = limited(&[2, 2, 2]);
    let plan = |spill| Plan {
        tiers: vec![
            tier(spill, &[(0, Some(1))]),
            tier(Spill::WhenDown, &[(1, Some(1))]),
        ],
        lifetime: None,
    };
    let strict = table.planned(&plan(Spill::WhenDown));
    assert!((0..3).all(|server| strict.take(at(server)) && strict.take(at(server))));
    let _places = [1, 2, 3, 4, 5].map(|arrival| wait(&strict, None, 0, arrival));
    assert_eq!((release(&strict, 1), release(&strict, 2)), (vec![], vec![]));
    assert_eq!(release(&strict, 0), NOBODY, "above its cap");
    assert_eq!(release(&strict, 0), [1]);
    let spills = strict.planned(&plan(Spill::WhenFull));
    let mut grants = Grants::new();
    spills.look(&mut grants);
    assert!(
        grants.is_empty(),
        "one of each cap is served, and server 2 is behind a tier that is up"
    );
    assert_eq!((release(&spills, 0), release(&spills, 1)), (vec![2], vec![3]));
    spills.unplanned().look(&mut grants);
    assert_eq!((told_of(&mut grants), spills.queued()), (vec![4, 5], 0));
    let mut draw = Seeded(1);
    assert_eq!(strict.pick(None, &mut draw).server, None, "as a pick finds it");
}

mod model;
