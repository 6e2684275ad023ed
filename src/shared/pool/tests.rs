//! One pool, one thread.

use super::shard::layout::while_held;
use super::*;
use crate::decide::reuse::{Descriptors, Figures, Gate, Mode, OpenReason, Sharing};
use crate::shared::key::{KeySecret, Parts};
use crate::shared::need::Counted;

const ME: WorkerId = WorkerId(0);
const SIBLING: WorkerId = WorkerId(1);

fn key() -> PoolKey {
    PoolKey::new(&KeySecret::from_seed(1), &Parts::default())
}

/// A pool of two workers where the first has parked these, in this order.
fn with(connections: &[(u32, Proven)]) -> (Pool<u32>, Vec<Ticket>) {
    let pool = Pool::new(2);
    let park = |&(connection, proven): &(u32, Proven)| {
        pool.need.opened();
        pool.park(ME, &key(), proven, connection)
    };
    let tickets = connections.iter().map(park).collect();
    (pool, tickets)
}

fn used_and_idle(pool: &Pool<u32>) -> (u32, u32) {
    let Counted { used, idle, .. } = pool.need.read();
    assert_eq!(idle, pool.idle() + pool.safe(), "POOL-4");
    (used, idle)
}

#[test]
fn every_way_out_is_counted() {
    let (pool, tickets) = with(&[
        (1, Proven::Once),
        (2, Proven::Safe),
        (3, Proven::Once),
        (4, Proven::Safe),
    ]);
    assert_eq!(used_and_idle(&pool), (0, 4));
    assert_eq!(
        (pool.idle_by(ME), pool.safe_by(ME), pool.parked_by(SIBLING)),
        (2, 2, 0)
    );
    assert_eq!(pool.lend(ME, &key(), Wanted::SafeOnly), Some(4));
    assert_eq!(used_and_idle(&pool), (1, 3));
    assert_eq!(pool.take(ME, tickets[2]).unwrap().remove(), 3);
    assert_eq!(used_and_idle(&pool), (1, 2));
    assert_eq!(
        pool.evict(ME),
        Some(Evicted {
            connection: 1,
            from: ME
        })
    );
    assert_eq!(used_and_idle(&pool), (1, 1));
    let mut gone = Vec::new();
    pool.drain(ME, &mut gone);
    assert_eq!((gone, used_and_idle(&pool)), (vec![2], (1, 0)));
}

#[test]
fn a_worker_lends_from_its_own_shard_only() {
    let (pool, _) = with(&[(1, Proven::Once)]);
    assert_eq!(pool.lend(SIBLING, &key(), Wanted::Any), None);
    assert_eq!(pool.lend(ME, &key(), Wanted::SafeOnly), None);
    assert_eq!(pool.lend(ME, &key(), Wanted::Any), Some(1));
    assert_eq!(pool.lend(ME, &key(), Wanted::Any), None);
    assert_eq!(used_and_idle(&pool), (1, 0));
}

#[test]
fn an_event_on_a_lent_connection_is_silence() {
    let (pool, tickets) = with(&[(1, Proven::Once)]);
    assert_eq!(pool.lend(ME, &key(), Wanted::Any), Some(1));
    assert!(pool.take(ME, tickets[0]).is_none());
}

#[test]
fn a_taken_connection_stays_counted_until_it_is_removed() {
    let (pool, tickets) = with(&[(1, Proven::Once)]);
    let mut taken = pool.take(ME, tickets[0]).unwrap();
    assert_eq!(*taken, 1);
    *taken = 5;
    assert_eq!(pool.lend(ME, &key(), Wanted::Any), None, "it is out");
    assert_eq!(used_and_idle(&pool), (0, 1), "POOL-5");
    assert_eq!(taken.put_back(), None);
    assert_eq!(*pool.take(ME, tickets[0]).expect("its ticket is good again"), 5);
    assert_eq!(
        used_and_idle(&pool),
        (0, 0),
        "dropping the taken one gave up its place"
    );
}

#[test]
fn what_was_drained_meanwhile_has_no_place() {
    let (pool, tickets) = with(&[(1, Proven::Once)]);
    let taken = pool.take(ME, tickets[0]).unwrap();
    let mut gone = Vec::new();
    pool.drain(ME, &mut gone);
    assert_eq!(gone, [] as [u32; 0]);
    assert_eq!(taken.put_back(), Some(1));
    assert_eq!(used_and_idle(&pool), (0, 0));
}

#[test]
fn busy_connections_are_joined_and_not_lent() {
    let (pool, _) = with(&[]);
    pool.need.opened();
    assert_eq!(pool.join(ME, &key()), None);
    let ticket = pool.offer(ME, &key(), Busy(9), 2);
    assert_eq!(pool.lend(ME, &key(), Wanted::Any), None);
    assert_eq!(pool.join(ME, &key()), Some(Busy(9)));
    assert_eq!(pool.join(SIBLING, &key()), None);
    assert_eq!(used_and_idle(&pool), (1, 0), "counted as used, once (POOL-6)");
    assert!(pool.withdraw(ME, ticket));
    assert_eq!(pool.join(ME, &key()), None);
}

const DESCRIPTORS: Descriptors = Descriptors {
    used: 0,
    low: 200,
    high: 250,
};
const OPEN: Gate = Gate {
    sharing: Sharing::On,
    reverse: false,
    figures: Figures {
        idle_reserve: 0,
        idle_max: None,
        need_floor: 0,
        preconnect: 0,
    },
    descriptors: DESCRIPTORS,
};

fn released(proven: Proven, figures: Figures) -> Released {
    Released {
        mode: Mode::Safe,
        private: false,
        maintenance: false,
        purge_delay: true,
        reverse: false,
        streams: 0,
        free_streams: 1,
        proven,
        reuses_left: None,
        descriptors: DESCRIPTORS,
        figures,
        rule: KeepRule::Plain,
    }
}

/// A pool of that many workers, with connections parked by some of them.
fn shared(workers: u16, parked: &[(u16, u32, Proven)]) -> Pool<u32> {
    let pool = Pool::new(workers);
    for &(worker, connection, proven) in parked {
        pool.need.opened();
        pool.park(WorkerId(worker), &key(), proven, connection);
    }
    pool
}

fn stolen(connection: u32, from: u16) -> Result<Found<u32>, OpenReason> {
    Ok(Found::Stolen {
        connection,
        from: WorkerId(from),
    })
}

/// POOL-20, 23: own idle, own safe, then a sibling's idle, then its safe.
#[test]
fn the_search_goes_from_the_own_shard_to_the_siblings() {
    use Proven::{Once, Safe};
    let parked = [
        (0, 1, Safe),
        (0, 2, Once),
        (1, 3, Safe),
        (1, 4, Once),
        (2, 5, Once),
    ];
    let pool = shared(3, &parked);
    let found: Vec<_> = (0..6)
        .map(|_| pool.find(ME, &key(), Wanted::Any, &OPEN))
        .collect();
    let expected = [
        Ok(Found::Own(2)),
        Ok(Found::Own(1)),
        stolen(4, 1),
        stolen(5, 2),
        stolen(3, 1),
        Err(OpenReason::None),
    ];
    assert_eq!(found, expected, "the rotation goes on behind who gave (POOL-25)");
}

/// POOL-11 under `always`: a first request prefers a proven one wherever it is.
#[test]
fn a_first_request_looks_for_a_safe_one_everywhere_first() {
    use Proven::{Once, Safe};
    let pool = shared(3, &[(0, 1, Once), (1, 2, Once), (2, 3, Safe), (0, 4, Safe)]);
    let found: Vec<_> = (0..5)
        .map(|_| pool.find(ME, &key(), Wanted::SafeFirst, &OPEN))
        .collect();
    let expected = [
        Ok(Found::Own(4)),
        stolen(3, 2),
        Ok(Found::Own(1)),
        stolen(2, 1),
        Err(OpenReason::None),
    ];
    assert_eq!(found, expected);
}

/// POOL-71: every way to find nothing has its word.
#[test]
fn an_empty_search_says_why() {
    let other = PoolKey::new(
        &KeySecret::from_seed(1),
        &Parts {
            tag: Some(b"other"),
            ..Parts::default()
        },
    );
    let off = Gate {
        sharing: Sharing::Off,
        ..OPEN
    };
    let figures = |idle_reserve, idle_max| Gate {
        figures: Figures {
            idle_reserve,
            idle_max,
            ..OPEN.figures
        },
        ..OPEN
    };
    let none = shared(2, &[]);
    let own = shared(2, &[(0, 1, Proven::Once)]);
    let elsewhere = shared(2, &[(1, 1, Proven::Once)]);
    use {OpenReason as Why, Wanted::Any, Wanted::SafeOnly};
    #[rustfmt::skip]
    let cases = [
        ("nothing is idle", &none, &key(), Any, OPEN, Why::None),
        ("nothing is idle, low", &none, &key(), Any, figures(8, None), Why::None),
        ("another key is here", &own, &other, Any, off, Why::Key),
        ("another key is elsewhere", &elsewhere, &other, Any, OPEN, Why::Key),
        ("elsewhere, not shared", &elsewhere, &key(), Any, off, Why::SharingOff),
        ("elsewhere, below the reserve", &elsewhere, &key(), Any, figures(2, None), Why::LowConn),
        ("here, not proven", &own, &key(), SafeOnly, OPEN, Why::FirstRequest),
        ("elsewhere, not proven", &elsewhere, &key(), SafeOnly, figures(2, None), Why::FirstRequest),
        ("nothing may be idle", &own, &key(), Any, figures(0, Some(0)), Why::None),
    ];
    for (case, pool, key, wanted, gate, expected) in cases {
        assert_eq!(pool.find(ME, key, wanted, &gate), Err(expected), "{case}");
    }
    let busy = while_held(&elsewhere, SIBLING, || elsewhere.find(ME, &key(), Any, &OPEN));
    assert_eq!(busy, Err(Why::Contended));
    assert_eq!(elsewhere.find(ME, &key(), Any, &OPEN), stolen(1, 1));
}

/// POOL-23: who has nothing is not looked at, so its busy lock does not matter.
#[test]
fn a_sibling_without_connections_is_skipped_unseen() {
    let pool = shared(3, &[(2, 1, Proven::Once)]);
    let found = while_held(&pool, SIBLING, || pool.find(ME, &key(), Wanted::Any, &OPEN));
    assert_eq!(found, stolen(1, 2));
    let proven = shared(3, &[(1, 1, Proven::Once), (2, 2, Proven::Safe)]);
    let found = while_held(&proven, SIBLING, || {
        proven.find(ME, &key(), Wanted::SafeOnly, &OPEN)
    });
    assert_eq!(found, stolen(2, 2));
}

/// POOL-25, AC-10: the rotation goes on behind who gave, so siblings give in turn; a hit at home moves nothing.
#[test]
fn take_overs_are_spread_evenly() {
    let parked: Vec<_> = (1..4)
        .flat_map(|worker| (0..100).map(move |number| (worker, number, Proven::Safe)))
        .collect();
    let pool = shared(4, &parked);
    let mut gave = Vec::new();
    for _ in 0..12 {
        let Ok(Found::Stolen { connection, from }) = pool.find(ME, &key(), Wanted::Any, &OPEN) else {
            panic!("the siblings have plenty");
        };
        gave.push(from.0);
        pool.park(ME, &key(), Proven::Safe, connection);
        assert!(matches!(
            pool.find(ME, &key(), Wanted::Any, &OPEN),
            Ok(Found::Own(_))
        ));
    }
    assert_eq!(gave, [[1, 2, 3]; 4].concat());
}

/// POOL-32 and POOL-34 in one call.
#[test]
fn a_release_parks_or_refuses() {
    let limited = Figures {
        idle_max: Some(1),
        ..OPEN.figures
    };
    let pool = Pool::new(2);
    (0..3).for_each(|_| pool.need.opened());
    let first = pool.release(ME, &key(), &released(Proven::Once, limited), 1);
    assert!(first.is_ok());
    let refused = |connection, reason| Err(Refused { connection, reason });
    let second = pool.release(SIBLING, &key(), &released(Proven::Once, limited), 2);
    assert_eq!(second, refused(2, CloseReason::Max));
    assert_eq!(used_and_idle(&pool), (2, 1), "what is refused is used still");
    let third = pool.release(ME, &key(), &released(Proven::Once, OPEN.figures), 3);
    assert!(third.is_ok(), "three were used at once");
    pool.need.closed();
    assert_eq!(used_and_idle(&pool), (0, 2));
}

/// V2 on a pool: one worker owns all.
#[test]
fn v2_on_a_pool() {
    let pool = Pool::new(2);
    (0..32).for_each(|_| pool.need.opened());
    let park = |count| (0..count).for_each(|number| _ = pool.park(ME, &key(), Proven::Safe, number));
    park(30);
    let mut gone = Vec::new();
    assert_eq!(pool.purge(ME, 0, &OPEN.figures, &mut gone), PurgeTimer::RunsOn);
    (0..18).for_each(|_| _ = pool.lend(ME, &key(), Wanted::Any));
    park(18);
    let counted = pool.need.read();
    assert_eq!(
        (counted.used, counted.idle, counted.max_used, counted.need),
        (2, 30, 20, 32)
    );
    let mut ticks = Vec::new();
    for period in 1..=7 {
        gone.clear();
        let timer = pool.purge(ME, period, &OPEN.figures, &mut gone);
        let now = pool.need.read();
        assert_eq!(timer == PurgeTimer::Stops, now.idle == 0, "POOL-43");
        ticks.push((gone.len(), now.idle, now.need));
    }
    let expected = [
        (0, 30, 26),
        (4, 26, 14),
        (8, 18, 8),
        (7, 11, 5),
        (5, 6, 3),
        (4, 2, 2),
        (2, 0, 2),
    ];
    assert_eq!(ticks, expected);
}

/// POOL-41: however many workers purge, the need decays once in a period, and all together close the one cut.
#[test]
fn one_decay_for_all_workers_and_each_its_part() {
    let parked: Vec<_> = (0..4)
        .flat_map(|worker| (0..10).map(move |number| (worker, 10 * u32::from(worker) + number, Proven::Safe)))
        .collect();
    let pool = shared(4, &parked);
    let purge = |period| {
        let mut gone = Vec::new();
        for worker in (0..4).map(WorkerId) {
            let _ = pool.purge(worker, period, &OPEN.figures, &mut gone);
        }
        (gone, pool.need.read().need)
    };
    // Each was opened when the one before was parked: one used at once, so one is needed.
    let (gone, need) = purge(7);
    assert_eq!((gone.len(), need), (21, 1), "half of 39, rounded up, and one");
    assert_eq!(gone[..6], [0, 1, 2, 3, 4, 5], "its own oldest");
    assert_eq!(pool.need.read().idle, 19);
    let (gone, _) = purge(7);
    assert_eq!(gone, [] as [u32; 0], "the period is over for all");
    let left: Vec<u32> = (8..14)
        .map(|period| {
            purge(period);
            pool.need.read().idle
        })
        .collect();
    assert_eq!(left, [9, 3, 0, 0, 0, 0], "all drain to zero");
}

/// A plan's floor keeps what would go otherwise.
#[test]
fn the_need_has_a_floor() {
    let pool = shared(
        1,
        &[(0, 1, Proven::Safe), (0, 2, Proven::Safe), (0, 3, Proven::Safe)],
    );
    let floor = Figures {
        need_floor: 3,
        ..OPEN.figures
    };
    let mut gone = Vec::new();
    let _ = pool.purge(ME, 1, &floor, &mut gone);
    assert_eq!(gone, [] as [u32; 0]);
    let _ = pool.purge(ME, 2, &OPEN.figures, &mut gone);
    assert_eq!(gone, [1, 2]);
}

/// POOL-50: the own oldest, then the siblings' in turn behind me, but not where somebody is at work.
#[test]
fn the_oldest_is_evicted_here_then_there() {
    let pool = shared(
        3,
        &[
            (1, 1, Proven::Safe),
            (1, 2, Proven::Once),
            (0, 3, Proven::Once),
            (2, 4, Proven::Once),
        ],
    );
    let evicted = |connection, from| {
        Some(Evicted {
            connection,
            from: WorkerId(from),
        })
    };
    assert_eq!(pool.evict(SIBLING), evicted(1, 1));
    assert_eq!(pool.evict(SIBLING), evicted(2, 1));
    assert_eq!(pool.evict(SIBLING), evicted(4, 2));
    assert_eq!(while_held(&pool, ME, || pool.evict(SIBLING)), None);
    assert_eq!(pool.evict(SIBLING), evicted(3, 0));
    assert_eq!(pool.evict(SIBLING), None);
    assert_eq!(used_and_idle(&pool), (0, 0));
}

/// POOL-51, AC-13: of two idle ones the unproven goes, the count never passes the limit, and with none left it is
/// an error.
#[test]
fn a_strict_limit_closes_one_to_open_one() {
    let pool = shared(2, &[(1, 1, Proven::Safe), (1, 2, Proven::Once)]);
    (0..2).for_each(|_| pool.total().opened());
    let mut closed = Vec::new();
    let mut reserve = |most| {
        pool.reserve(ME, most, |victim| {
            assert_eq!(pool.total().read(), 2, "counted until it is closed");
            closed.push((victim.connection, victim.from.0));
        })
    };
    assert_eq!(reserve(2), Ok(()));
    assert_eq!(reserve(2), Ok(()));
    assert_eq!(reserve(2), Err(Exhausted));
    assert_eq!(reserve(3), Ok(()), "a place without a victim");
    assert_eq!(closed, [(2, 1), (1, 1)]);
    assert_eq!((pool.total().read(), pool.need.read().idle), (3, 0));
}

/// After the limit was lowered, one call closes three at most.
#[test]
fn a_lowered_limit_is_an_error_after_three_victims() {
    let parked = [1, 2, 3, 4, 5].map(|number| (1, number, Proven::Safe));
    let pool = shared(2, &parked);
    (0..5).for_each(|_| pool.total().opened());
    let mut closed = Vec::new();
    assert_eq!(
        pool.reserve(ME, 1, |victim| closed.push(victim.connection)),
        Err(Exhausted)
    );
    assert_eq!((closed, pool.total().read()), (vec![1, 2, 3], 2));
}

/// The room of the need is full of what one worker has parked; another one that comes late keeps its part under equal
/// shares, and only one connection under the plain rule. Nobody opens more than was needed in all.
#[test]
fn who_comes_late_has_a_part_of_the_room() {
    let parked_by_late = |rule| {
        let pool = Pool::new(2);
        let kept = Released {
            rule,
            ..released(Proven::Safe, OPEN.figures)
        };
        (0..8).for_each(|_| pool.need.opened());
        (0..8).for_each(|number| assert!(pool.release(ME, &key(), &kept, number).is_ok()));
        for _ in 0..8 {
            pool.need.opened();
            if pool.release(SIBLING, &key(), &kept, 0).is_err() {
                pool.need.closed();
            }
        }
        (pool.parked_by(ME), pool.parked_by(SIBLING))
    };
    assert_eq!(parked_by_late(KeepRule::Plain), (8, 1));
    assert_eq!(parked_by_late(KeepRule::EqualShare), (8, 4));
}

/// A worker counts as long as it parks: in this period and in the next.
#[test]
fn workers_that_use_the_server_are_counted() {
    let pool = shared(
        4,
        &[(0, 1, Proven::Safe), (0, 2, Proven::Safe), (2, 3, Proven::Safe)],
    );
    assert_eq!(pool.users(), 2);
    let mut gone = Vec::new();
    let _ = pool.purge(ME, 1, &OPEN.figures, &mut gone);
    assert_eq!(pool.users(), 2, "in the period before");
    pool.need.opened();
    pool.park(WorkerId(3), &key(), Proven::Safe, 4);
    assert_eq!(pool.users(), 2);
    let _ = pool.purge(ME, 2, &OPEN.figures, &mut gone);
    assert_eq!(pool.users(), 1);
    let _ = pool.purge(ME, 3, &OPEN.figures, &mut gone);
    assert_eq!(
        (pool.users(), pool.present(ME, KeepRule::EqualShare).workers),
        (0, 0)
    );
}
