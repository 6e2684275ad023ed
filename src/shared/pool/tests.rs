//! One pool, one thread.

mod closing;
mod search;

use super::*;
use crate::decide::reuse::{Descriptors, Figures, Gate, Mode, Sharing};
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

/// What is answered while that worker is at its shard.
fn while_held<T>(pool: &Pool<u32>, worker: WorkerId, then: impl FnOnce() -> T) -> T {
    let _held = pool.occupy(worker);
    then()
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
        rule: KeepRule::Plain,
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

/// The room of the need is full of what one worker has parked; another one that comes late keeps its part under equal
/// shares, and only one connection under the plain rule. Nobody opens more than was needed in all.
#[test]
fn who_comes_late_has_a_part_of_the_room() {
    let parked_by_late = |rule| {
        let pool = Pool::new(2);
        let kept = released(Proven::Safe, Figures { rule, ..OPEN.figures });
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
