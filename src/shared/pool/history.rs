//! What went wrong in proxies before this one, each fault with a test of its name.

use super::shard::layout;
use super::*;
use crate::decide::reuse::{Descriptors, Figures, Gate, Mode, Sharing};
use crate::shared::key::{KeySecret, Parts};

const ME: WorkerId = WorkerId(0);
const SIBLING: WorkerId = WorkerId(1);
const RELEASED: Released = Released {
    mode: Mode::Safe,
    private: false,
    maintenance: false,
    purge_delay: true,
    reverse: false,
    streams: 0,
    free_streams: 1,
    proven: Proven::Safe,
    reuses_left: None,
    descriptors: Descriptors {
        used: 100,
        low: 200,
        high: 250,
    },
    figures: NO_RESERVE,
};
const NO_RESERVE: Figures = Figures {
    idle_reserve: 0,
    idle_max: None,
    need_floor: 0,
    preconnect: 0,
    rule: KeepRule::Plain,
};
const GATE: Gate = Gate {
    sharing: Sharing::On,
    reverse: false,
    figures: NO_RESERVE,
    descriptors: RELEASED.descriptors,
};

fn key() -> PoolKey {
    PoolKey::new(&KeySecret::from_seed(1), &Parts::default())
}

/// Opens that many, then parks or closes each by the keep rule. How many were closed.
fn serve(pool: &Pool<u32>, worker: WorkerId, together: u32, released: &Released) -> u32 {
    let lent: Vec<u32> = (0..together)
        .map(|number| match pool.find(worker, &key(), Wanted::Any, &GATE) {
            Ok(found) => found.into_connection(),
            Err(_) => {
                pool.need.opened();
                number
            }
        })
        .collect();
    let refused = |connection| pool.release(worker, &key(), released, connection).is_err();
    let closed = lent.into_iter().filter(|&connection| refused(connection)).count() as u32;
    (0..closed).for_each(|_| pool.need.closed());
    closed
}

/// The counters of the thief went down instead of the giver's; the giver was asked for ever for what it did not have.
#[test]
fn migration_lowers_the_counters_of_the_worker_that_gave() {
    let pool = Pool::new(3);
    serve(&pool, SIBLING, 2, &RELEASED);
    let parked = || [0, 1, 2].map(|worker| pool.parked_by(WorkerId(worker)));
    assert_eq!(parked(), [0, 2, 0]);
    let found = pool.find(ME, &key(), Wanted::Any, &GATE).unwrap();
    assert!(matches!(found, Found::Stolen { from: SIBLING, .. }));
    assert_eq!(parked(), [0, 1, 0]);
    assert_eq!(
        (pool.safe(), pool.need.read().idle, pool.need.read().used),
        (1, 1, 1)
    );
    assert!(
        pool.release(ME, &key(), &RELEASED, found.into_connection())
            .is_ok()
    );
    assert_eq!(parked(), [1, 1, 0], "it is the thief's now");
    assert_eq!(
        (pool.safe(), pool.need.read().idle, pool.need.read().used),
        (2, 2, 0)
    );
}

/// The inequality was the wrong way round: what was needed was closed, what was not needed was kept.
#[test]
fn below_the_low_mark_what_is_needed_is_kept_and_what_is_not_is_closed() {
    let at = |descriptors, count| {
        let pool = Pool::new(1);
        (0..10).for_each(|_| pool.need.opened());
        let used = Descriptors {
            used: descriptors,
            ..RELEASED.descriptors
        };
        let released = Released {
            descriptors: used,
            ..RELEASED
        };
        // Ten were used at once, so ten are needed; more come back than were needed.
        (0..count - 10).for_each(|_| _ = pool.park(ME, &key(), Proven::Safe, 0));
        (0..count - 10).for_each(|_| pool.need.opened());
        let kept = |_: &u32| {
            let refused = pool.release(ME, &key(), &released, 0).is_err();
            if refused {
                pool.need.closed();
            }
            !refused
        };
        (0..10).filter(kept).count()
    };
    assert_eq!(at(199, 10), 10, "all that were needed");
    assert_eq!(at(199, 15), 5, "ten in all, used and idle together");
    assert_eq!(at(200, 10), 1, "from the low mark on, the one of every worker");
    assert_eq!(at(249, 10), 1);
    assert_eq!(at(250, 10), 0, "from the high mark on, none");
}

/// With the estimate alone a worker that came late kept nothing at all, and opened for every request.
#[test]
fn every_worker_keeps_one_whatever_the_others_have() {
    let pool = Pool::new(4);
    serve(&pool, ME, 10, &RELEASED);
    for worker in (1..4).map(WorkerId) {
        pool.need.opened();
        assert!(
            pool.release(worker, &key(), &RELEASED, 0).is_ok(),
            "its place is empty"
        );
        pool.need.opened();
        assert!(pool.release(worker, &key(), &RELEASED, 0).is_err(), "it has one");
    }
}

/// Only the list of unproven ones was searched for requests that may take any; a server that closes every fifth
/// response, so that most of what is idle is proven, lost half of its reuse.
#[test]
fn the_safe_list_is_searched_after_the_idle_list() {
    let pool = Pool::new(2);
    for worker in [SIBLING, ME] {
        pool.need.opened();
        pool.park(worker, &key(), Proven::Safe, worker.0.into());
    }
    let found = || {
        pool.find(ME, &key(), Wanted::Any, &GATE)
            .map(Found::into_connection)
    };
    assert_eq!(
        (found(), found()),
        (Ok(0), Ok(1)),
        "own safe, then the sibling's safe"
    );
}

/// A server that closes after every fifth response: of five requests, four reuse.
#[test]
fn closing_every_five_responses_leaves_four_of_five_reused() {
    let pool = Pool::new(2);
    let (mut opened, mut requests) = (0, 0);
    for _ in 0..1000 {
        let mut carried = match pool.find(ME, &key(), Wanted::Any, &GATE) {
            Ok(found) => found.into_connection(),
            Err(_) => {
                pool.need.opened();
                opened += 1;
                0
            }
        };
        carried += 1;
        requests += 1;
        let released = Released {
            proven: Proven::after(carried),
            ..RELEASED
        };
        match carried {
            5 => pool.need.closed(),
            _ => assert!(pool.release(ME, &key(), &released, carried).is_ok()),
        }
    }
    assert_eq!((opened, requests), (200, 1000));
}

/// The number used at this instant decided, often none between two bursts: every pause closed the pool, every burst
/// opened it again.
#[test]
fn a_varying_load_causes_no_bursts_of_closes() {
    let pool = Pool::new(4);
    let workers = || (0..4).map(WorkerId);
    let mut closed_at_release = 0;
    let mut purged = Vec::new();
    for period in 0..40 {
        for burst in 0..5 {
            let together = if burst == 2 { 10 } else { 2 };
            closed_at_release += workers()
                .map(|worker| serve(&pool, worker, together, &RELEASED))
                .sum::<u32>();
        }
        workers().for_each(|worker| _ = pool.purge(worker, period, &NO_RESERVE, &mut purged));
    }
    assert_eq!(
        (closed_at_release, purged.len()),
        (0, 0),
        "ten are used once a period, ten are kept"
    );
    let mut left = Vec::new();
    for period in 40..50 {
        let (before, mut gone) = (pool.need.read().idle, Vec::new());
        workers().for_each(|worker| _ = pool.purge(worker, period, &NO_RESERVE, &mut gone));
        assert!(
            gone.len() as u32 <= before.div_ceil(2) + 1,
            "half at most, and one"
        );
        left.push(pool.need.read().idle);
    }
    assert_eq!(left.last(), Some(&0), "POOL-43: {left:?}");
}

/// Per-worker numbers lay side by side, and each request of one worker took the line from another.
#[test]
fn per_worker_fields_share_no_cache_line() {
    layout::check();
}
