//! One pool, one thread.

use super::*;
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
    assert_eq!(pool.oldest(ME), Some(1));
    assert_eq!(used_and_idle(&pool), (1, 1));
    let mut gone = Vec::new();
    pool.drain(ME, &mut gone);
    assert_eq!((gone, used_and_idle(&pool)), (vec![2], (1, 0)));
}

#[test]
fn a_worker_lends_from_its_own_shard_only() {
    let (pool, _) = with(&[(1, Proven::Once)]);
    assert_eq!(pool.lend(SIBLING, &key(), Wanted::Any), None);
    assert_eq!(pool.try_lend(ME, &key(), Wanted::SafeOnly), Sibling::Nothing);
    assert_eq!(pool.try_lend(ME, &key(), Wanted::Any), Sibling::Lent(1));
    assert_eq!(pool.try_lend(ME, &key(), Wanted::Any), Sibling::Nothing);
    assert_eq!(used_and_idle(&pool), (1, 0));
}

#[test]
fn a_shard_at_work_is_not_waited_for() {
    let (pool, _) = with(&[(1, Proven::Once)]);
    let held = pool.shard(ME).parked.lock();
    assert_eq!(pool.try_lend(ME, &key(), Wanted::Any), Sibling::Contended);
    drop(held);
    assert_eq!(pool.try_lend(ME, &key(), Wanted::Any), Sibling::Lent(1));
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

#[test]
fn an_empty_search_says_why() {
    let (pool, _) = with(&[(1, Proven::Once)]);
    assert_eq!(pool.why_nothing(ME), OpenReason::Key);
    assert_eq!(pool.why_nothing(SIBLING), OpenReason::SharingOff);
    pool.lend(ME, &key(), Wanted::Any);
    assert_eq!(pool.why_nothing(ME), OpenReason::None);
}
