//! Waiting against real tables, one step after the other.

use super::*;
use crate::decide::balance::Algorithm;
use crate::decide::balance::column::Seeded;
use crate::policy::{BackendId, Member, Plan, Selector, Spill, Tier, WorkerId};
use crate::shared::table::{Entry, Queueing};

type Backend = BackendTable<()>;

fn entry(id: u32, limit: u32) -> Entry<()> {
    Entry {
        server: Arc::new(Server::new(ServerId(id), "app", &format!("s{id}"), 1)),
        weight: 1,
        state: Admin::Ready,
        limit,
        queueing: Queueing::default(),
        prefer_idle: false,
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
