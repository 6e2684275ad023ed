//! The order of a queue and the end of a wait.

use super::*;

fn waiter(token: u64) -> Arc<Waiter> {
    Arc::new(Waiter::new(WorkerId(0), token))
}

/// Enters them in this order, by class and arrival plus offset in milliseconds; answers in the order they come out.
fn order(of: &[(i16, i64)]) -> Vec<u64> {
    let queue = Queue::new();
    let mut line = queue.lock();
    for ((class, at), token) in of.iter().zip(0..) {
        line.insert(*class, at * 1000, waiter(token));
    }
    std::iter::from_fn(|| line.pop())
        .map(|waiter| waiter.token)
        .collect()
}

/// V4 of the specification, as an order: the same keys, at 1000 ms.
#[test]
fn v4() {
    let came = [
        (0, 1000),
        (-1, 1000),
        (1, 1000),
        (0, 1000 - 500),
        (0, 1000 + 500),
        (-2047, 1000 + 524_287),
        (2047, 1000 - 524_287),
    ];
    assert_eq!(order(&came), [5, 1, 3, 0, 4, 2, 6]);
}

/// AC-20: classes 1, 0, −1.
#[test]
fn the_lowest_class_is_first() {
    assert_eq!(order(&[(1, 0), (0, 1), (-1, 2)]), [2, 1, 0]);
}

/// AC-21: an offset of −500 ms jumps over those who came within 500 ms, and over no other; equals in order of arrival.
#[test]
fn an_offset_shifts_the_arrival() {
    assert_eq!(order(&[(0, 0), (0, 400), (0, 700 - 500)]), [0, 2, 1]);
    assert_eq!(order(&[(0, 5), (0, 5), (0, 5)]), [0, 1, 2]);
}

#[test]
fn ranks_of_two_queues_are_compared_without_their_sequences() {
    let rank = |class, at, sequence| Rank { class, at, sequence };
    assert!(rank(0, 1, 9).is_before(rank(0, 2, 0)));
    assert!(rank(-1, 3, 9).is_before(rank(0, 2, 0)));
    assert!(!rank(0, 2, 0).is_before(rank(0, 2, 9)));
}

/// the first to end it decides, and what it said stays.
#[test]
fn a_wait_ends_once() {
    let granted = Outcome::Granted(Granted {
        server: ServerId(u32::MAX),
        near: ServerIndex(4094),
    });
    for first in [granted, Outcome::SentBack, Outcome::Cancelled] {
        let waiter = waiter(1);
        assert_eq!(waiter.outcome(), None);
        assert_eq!(waiter.end(first), Ok(()));
        for second in [granted, Outcome::SentBack, Outcome::Cancelled] {
            assert_eq!(waiter.end(second), Err(first));
        }
        assert_eq!(waiter.outcome(), Some(first));
    }
}

#[test]
fn who_was_removed_is_not_removed_again() {
    let queue = Queue::new();
    let mut line = queue.lock();
    let [first, second] = [1, 2].map(|token| line.insert(0, 0, waiter(token)));
    assert_eq!(
        (line.first(), line.len(), line.is_empty()),
        (Some(first), 2, false)
    );
    assert!(line.remove(first) && !line.remove(first));
    assert_eq!(line.pop().unwrap().token, 2);
    assert!(!line.remove(second) && line.pop().is_none());
    drop(line);
    assert!(queue.is_empty());
}

#[test]
fn grants_are_taken_in_order() {
    let mut grants = Grants::new();
    grants.add(&waiter(3));
    grants.add(&waiter(1));
    grants.leave_unfinished();
    assert_eq!(
        (grants.len(), grants.take_unfinished(), grants.take_unfinished()),
        (2, true, false)
    );
    let tokens: Vec<u64> = grants.drain().map(|grant| grant.token).collect();
    assert_eq!((tokens, grants.is_empty()), (vec![3, 1], true));
}
