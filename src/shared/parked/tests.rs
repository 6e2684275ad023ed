//! A shard against a model: plain lists, newest last.

use super::{Busy, Parked, Shelf, Ticket};
use crate::decide::reuse::{Proven, Wanted};
use crate::shared::key::{KeySecret, Parts, PoolKey};
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn key(name: u16) -> PoolKey {
    PoolKey::new(
        &KeySecret::from_seed(1),
        &Parts {
            name: Some(&name.to_be_bytes()),
            ..Parts::default()
        },
    )
}

#[test]
fn the_newest_is_lent_and_the_oldest_evicted() {
    let mut parked = Parked::new();
    for connection in 1..=4 {
        parked.park(&key(0), Proven::Once, connection);
    }
    assert_eq!(parked.lend(&key(0), Wanted::Any), Some(4));
    assert_eq!(parked.oldest(), Some(1));
    assert_eq!(parked.lend(&key(0), Wanted::SafeOnly), None);
    assert_eq!(parked.lend(&key(1), Wanted::Any), None);
    assert_eq!((parked.count(Shelf::Idle), parked.count(Shelf::Safe)), (2, 0));
}

/// POOL-11, POOL-20.
#[test]
fn shelves_are_searched_in_the_order_that_is_wanted() {
    let both = || {
        let mut parked = Parked::new();
        parked.park(&key(0), Proven::Safe, "safe");
        parked.park(&key(0), Proven::Once, "idle");
        parked
    };
    let lent = |wanted| {
        let mut parked = both();
        [parked.lend(&key(0), wanted), parked.lend(&key(0), wanted)]
    };
    assert_eq!(lent(Wanted::Any), [Some("idle"), Some("safe")]);
    assert_eq!(lent(Wanted::SafeFirst), [Some("safe"), Some("idle")]);
    assert_eq!(lent(Wanted::SafeOnly), [Some("safe"), None]);
}

/// POOL-51.
#[test]
fn the_unproven_are_given_up_before_the_proven() {
    let mut parked = Parked::new();
    parked.park(&key(0), Proven::Safe, "old and safe");
    let looked_at = parked.park(&key(1), Proven::Once, "looked at");
    parked.park(&key(2), Proven::Once, "idle");
    parked.park(&key(0), Proven::Safe, "young and safe");
    parked.take(looked_at);
    let gone: Vec<_> = std::iter::from_fn(|| parked.oldest_unproven()).collect();
    assert_eq!(gone, ["idle", "old and safe", "young and safe"]);
}

/// POOL-5: what is out can be neither lent nor evicted, and comes back to where it was in both chains.
#[test]
fn what_is_put_back_stands_in_its_old_place() {
    let mut parked = Parked::new();
    let tickets: Vec<_> = (1..=3).map(|c| parked.park(&key(0), Proven::Once, c)).collect();
    assert_eq!(parked.take(tickets[2]), Some(3));
    assert_eq!(parked.take(tickets[2]), None, "it is out already");
    assert_eq!(parked.lend(&key(0), Wanted::Any), Some(2));
    assert_eq!(parked.put_back(tickets[2], 3), Ok(()));
    assert_eq!(parked.take(tickets[0]), Some(1));
    assert_eq!(parked.oldest(), Some(3));
    assert_eq!(parked.oldest(), None);
    assert_eq!(parked.put_back(tickets[0], 1), Ok(()));
    assert_eq!(parked.put_back(tickets[0], 9), Err(9), "nothing is out there");
    assert_eq!(parked.oldest(), Some(1));
}

#[test]
fn a_place_that_is_given_up_voids_its_ticket() {
    let mut parked = Parked::new();
    let ticket = parked.park(&key(0), Proven::Safe, 1);
    assert!(!parked.forget(ticket), "nobody took it");
    parked.take(ticket);
    assert!(parked.forget(ticket));
    assert!(!parked.forget(ticket));
    assert_eq!(parked.put_back(ticket, 1), Err(1));
    let next = parked.park(&key(0), Proven::Safe, 2);
    assert_ne!(ticket, next, "the same slot in its next generation");
    assert_eq!(parked.take(ticket), None);
    assert_eq!(parked.take(next), Some(2));
}

#[test]
fn draining_takes_everything_and_the_places_that_are_kept() {
    let mut parked = Parked::new();
    let taken = parked.park(&key(0), Proven::Once, 1);
    parked.park(&key(1), Proven::Safe, 2);
    parked.offer(&key(1), Busy(7), 1);
    parked.take(taken);
    let mut gone = Vec::new();
    assert_eq!(parked.drain(&mut gone), 2);
    assert_eq!(gone, [2]);
    assert_eq!(parked.put_back(taken, 1), Err(1));
    assert_eq!(
        parked.join(&key(1)),
        Some(Busy(7)),
        "a busy connection is not idle"
    );
}

/// POOL-15.
#[test]
fn a_busy_connection_leaves_with_its_last_free_stream() {
    let mut parked = Parked::<()>::new();
    let first = parked.offer(&key(0), Busy(1), 1);
    let second = parked.offer(&key(0), Busy(2), 2);
    assert_eq!(parked.join(&key(1)), None);
    let joined: Vec<_> = std::iter::from_fn(|| parked.join(&key(0))).collect();
    assert_eq!(joined, [Busy(2), Busy(2), Busy(1)]);
    assert!(!parked.withdraw(first) && !parked.withdraw(second));
    let third = parked.offer(&key(0), Busy(3), 9);
    assert_eq!(parked.lend(&key(0), Wanted::Any), None, "it is not lent whole");
    assert!(parked.withdraw(third));
    assert_eq!(parked.join(&key(0)), None);
}

#[test]
fn memory_stays_in_proportion_to_what_is_parked() {
    let mut parked = Parked::new();
    for name in 0..2000 {
        parked.park(&key(name), Proven::Once, name);
        assert_eq!(parked.lend(&key(name), Wanted::Any), Some(name));
    }
    assert_eq!(parked.places.len(), 1);
    assert!(parked.keys.len() <= 32, "{} keys", parked.keys.len());
}

/// One step of the model test. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Step {
    Park(u16, bool),
    Lend(u16, u8),
    Oldest,
    Take(prop::sample::Index),
    PutBack(prop::sample::Index),
    Forget(prop::sample::Index),
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    let which = || proptest::arbitrary::any::<prop::sample::Index>();
    prop_oneof![
        8 => (0u16..60, proptest::bool::ANY).prop_map(|(key, safe)| Step::Park(key, safe)),
        6 => (0u16..60, 0u8..3).prop_map(|(key, wanted)| Step::Lend(key, wanted)),
        2 => proptest::strategy::Just(Step::Oldest),
        3 => which().prop_map(Step::Take),
        3 => which().prop_map(Step::PutBack),
        1 => which().prop_map(Step::Forget),
        1 => proptest::strategy::Just(Step::Drain),
    ]
}

/// What the model knows of one connection; the list of them is the order of eviction.
#[derive(Clone, Debug)]
struct Known {
    connection: u32,
    key: u16,
    safe: bool,
    out: bool,
    ticket: Ticket,
}

fn lent(model: &mut Vec<Known>, key: u16, wanted: u8) -> Option<u32> {
    let shelves: &[bool] = [&[false, true][..], &[true, false], &[true]][usize::from(wanted)];
    let newest = |&safe: &bool| {
        model
            .iter()
            .rposition(|known| known.key == key && known.safe == safe && !known.out)
    };
    let at = shelves.iter().find_map(newest)?;
    Some(model.remove(at).connection)
}

proptest! {
    #[test]
    fn a_shard_behaves_like_its_model(steps in prop::collection::vec(step(), 1..400)) {
        let mut parked = Parked::new();
        let mut model: Vec<Known> = Vec::new();
        let mut void: Vec<Ticket> = Vec::new();
        let mut parked_so_far = 0;
        for step in steps {
            let before = model.clone();
            match step {
                Step::Park(name, safe) => {
                    let proven = if safe { Proven::Safe } else { Proven::Once };
                    let ticket = parked.park(&key(name), proven, parked_so_far);
                    model.push(Known { connection: parked_so_far, key: name, safe, out: false, ticket });
                    parked_so_far += 1;
                }
                Step::Lend(name, wanted) => {
                    let order = [Wanted::Any, Wanted::SafeFirst, Wanted::SafeOnly][usize::from(wanted)];
                    prop_assert_eq!(parked.lend(&key(name), order), lent(&mut model, name, wanted));
                }
                Step::Oldest => {
                    let oldest = model.iter().position(|known| !known.out);
                    prop_assert_eq!(parked.oldest(), oldest.map(|at| model.remove(at).connection));
                }
                Step::Take(which) if !model.is_empty() => {
                    let known = which.get(&model).clone();
                    prop_assert_eq!(parked.take(known.ticket), (!known.out).then_some(known.connection));
                    let at = which.index(model.len());
                    model[at].out = true;
                }
                Step::PutBack(which) if !model.is_empty() => {
                    let at = which.index(model.len());
                    let known = &mut model[at];
                    prop_assert_eq!(parked.put_back(known.ticket, known.connection).is_ok(), known.out);
                    known.out = false;
                }
                Step::Forget(which) if !model.is_empty() => {
                    let at = which.index(model.len());
                    prop_assert_eq!(parked.forget(model[at].ticket), model[at].out);
                    if model[at].out {
                        model.remove(at);
                    }
                }
                Step::Drain => {
                    let mut gone = Vec::new();
                    prop_assert_eq!(parked.drain(&mut gone) as usize, model.len());
                    let expected: Vec<_> =
                        model.drain(..).filter(|known| !known.out).map(|known| known.connection).collect();
                    prop_assert_eq!(gone, expected);
                }
                Step::Take(_) | Step::PutBack(_) | Step::Forget(_) => {}
            }
            let gone = |old: &Known| model.iter().all(|known| known.ticket != old.ticket);
            void.extend(before.iter().filter(|old| gone(old)).map(|old| old.ticket));
            prop_assert!(void.iter().all(|&ticket| parked.take(ticket).is_none()));
            let count = |safe| model.iter().filter(|known| known.safe == safe).count() as u32;
            prop_assert_eq!(parked.count(Shelf::Idle), count(false));
            prop_assert_eq!(parked.count(Shelf::Safe), count(true));
        }
    }
}
