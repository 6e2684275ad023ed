//! Which connections the purge, an eviction and a strict limit close (POOL-40…51).

use super::{ME, OPEN, SIBLING, key, shared, used_and_idle, while_held};
use crate::decide::reuse::{Figures, KeepRule, Proven, Wanted};
use crate::policy::WorkerId;
use crate::shared::pool::{Evicted, Exhausted, Pool, PurgeTimer};

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

/// Under equal shares the purge leaves the reserve of a server that is used, which workers would open again; after a
/// period in which nobody used it, the reserve goes as the rest does.
#[test]
fn under_equal_shares_the_reserve_of_a_used_server_stays() {
    let figures = |rule| Figures {
        idle_reserve: 4,
        rule,
        ..OPEN.figures
    };
    let left_after = |rule, periods: u64| {
        let parked: Vec<_> = (0..4).map(|number| (0, number, Proven::Safe)).collect();
        let pool = shared(2, &parked);
        let mut gone = Vec::new();
        for period in 0..periods {
            let _ = pool.purge(ME, period, &figures(rule), &mut gone);
            if period < 8 {
                assert!(pool.lend(ME, &key(), Wanted::Any).is_some());
                pool.park(ME, &key(), Proven::Safe, 9);
            }
        }
        pool.parked_by(ME)
    };
    assert_eq!(left_after(KeepRule::Plain, 9), 1, "one is used at a time");
    assert_eq!(left_after(KeepRule::EqualShare, 9), 4);
    assert_eq!(left_after(KeepRule::EqualShare, 30), 0);
}
