//! Which connection a search finds, and why none (POOL-11, 20…25, 71).

use super::{ME, OPEN, SIBLING, key, shared, while_held};
use crate::decide::reuse::{Figures, Gate, KeepRule, OpenReason, Proven, Sharing, Wanted};
use crate::policy::WorkerId;
use crate::shared::key::{KeySecret, Parts, PoolKey};
use crate::shared::pool::Found;

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
    let other = PoolKey::new(
        &KeySecret::from_seed(1),
        &Parts {
            tag: Some(b"other"),
            ..Parts::default()
        },
    );
    let again = shared(3, &[(2, 1, Proven::Once)]);
    let why = while_held(&again, SIBLING, || again.find(ME, &other, Wanted::Any, &OPEN));
    assert_eq!(why, Err(OpenReason::Key), "nobody that counts was busy");
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

/// Under equal shares the sibling that has most gives, so that parts even out; among equals it is whose turn it is.
#[test]
fn under_equal_shares_the_richest_gives() {
    let equal = Gate {
        figures: Figures {
            rule: KeepRule::EqualShare,
            ..OPEN.figures
        },
        ..OPEN
    };
    let parked = [(1, 10), (2, 20), (2, 21), (2, 22), (3, 30), (3, 31)];
    let pool = shared(4, &parked.map(|(worker, number)| (worker, number, Proven::Safe)));
    let take = || pool.find(ME, &key(), Wanted::Any, &equal);
    assert_eq!(take(), stolen(22, 2), "three");
    assert_eq!(
        take(),
        stolen(31, 3),
        "two and two: it is the turn of the one after the giver"
    );
    assert_eq!(take(), stolen(21, 2), "two");
    let busy = while_held(&pool, WorkerId(3), take);
    assert_eq!(busy, stolen(10, 1), "one each, and the last is at its shard");
    assert_eq!((take(), take()), (stolen(20, 2), stolen(30, 3)));
    assert_eq!(take(), Err(OpenReason::None));
}
