use super::super::column::{Columns, Seeded};
use super::*;
use crate::policy::Draw;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, prop_assume, proptest};
use xxhash_rust::xxh3::xxh3_64;

fn hash(mapping: Mapping) -> Hash {
    Hash {
        mapping,
        bound: None,
        affinity: Affinity::Always,
        otherwise: Otherwise::RoundRobin,
    }
}

/// Keys as if from names: `s0`, `s1` … by id.
fn of_name(table: &Columns, server: ServerIndex) -> u64 {
    xxh3_64(format!("s{}", table.ids[server.at()]).as_bytes())
}

fn made(hash: Hash, table: &Columns) -> Hashed {
    Hashed::new(hash, seats(table, |server| of_name(table, server)))
}

/// The id of the server for a number.
fn id(hashed: &Hashed, table: &Columns, number: u64) -> u32 {
    table.ids[hashed.pick(number, table, None).unwrap().at()]
}

fn numbers(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|at| xxh3_64(&at.to_le_bytes()))
}

/// V11 of the specification.
#[test]
fn v11() {
    let table = Columns::of(&[1; 4]);
    let hashed = made(hash(Mapping::Consistent), &table);
    let vectors = [
        (0, [1, 1, 1, 1]),
        (1, [1, 1, 1, 1]),
        (5, [2, 2, 2, 3]),
        (10, [4, 4, 4, 5]),
        (100, [38, 38, 38, 38]),
    ];
    for (served, slots) in vectors {
        let allowed: Vec<_> = hashed
            .members
            .iter()
            .map(|it| hashed.allowed(it, 150, served))
            .collect();
        assert_eq!(allowed, slots, "served {served}");
    }
}

/// AC-44: of ten servers one goes, and only its own keys move.
#[test]
fn on_a_ring_only_the_keys_of_who_goes_move() {
    const KEYS: u64 = 20_000;
    let ten = Columns::of(&[4; 10]);
    let mut nine = ten.clone();
    nine.weights[3] = 0;
    let (before, after) = (
        made(hash(Mapping::Consistent), &ten),
        made(hash(Mapping::Consistent), &nine),
    );
    let mut moved = 0;
    for number in numbers(KEYS) {
        let (old, new) = (id(&before, &ten, number), id(&after, &nine, number));
        assert!(old == 3 || old == new, "a key of {old} went to {new}");
        moved += u64::from(old != new);
    }
    // 64 points each: a share lies within a few eighths of a tenth.
    assert!((KEYS / 15..KEYS / 7).contains(&moved), "{moved} of {KEYS} moved");
}

/// LB-41: the table is in proportion, and a change moves most keys.
#[test]
fn a_map_is_exact_and_forgets_everything() {
    let table = Columns::of(&[1, 2, 1]);
    let map = made(hash(Mapping::Map), &table);
    let mut counts = [0; 3];
    for number in 0..64 {
        counts[id(&map, &table, number) as usize] += 1;
    }
    assert_eq!(counts, [16, 32, 16]);
    let mut less = table.clone();
    less.usable[0] = false;
    let after = made(hash(Mapping::Map), &less);
    let moved = numbers(1000).filter(|&number| id(&map, &table, number) != id(&after, &less, number));
    assert!(moved.count() > 300);
}

/// LB-3: the next along the way, and the same one each time.
#[test]
fn the_avoided_server_is_passed_over() {
    for mapping in [Mapping::Consistent, Mapping::Map] {
        let table = Columns::of(&[1, 1, 1]);
        let hashed = made(hash(mapping), &table);
        for number in numbers(50) {
            let first = hashed.pick(number, &table, None);
            let second = hashed.pick(number, &table, first);
            assert!(second.is_some() && second != first);
            assert_eq!(second, hashed.pick(number, &table, first));
        }
        let alone = Columns::of(&[1]);
        assert_eq!(
            made(hash(mapping), &alone).pick(7, &alone, Some(ServerIndex(0))),
            Some(ServerIndex(0))
        );
        let nobody = Columns::of(&[0]);
        assert_eq!(made(hash(mapping), &nobody).pick(7, &nobody, None), None);
    }
}

#[test]
fn affinity_ends_where_it_is_said_to() {
    let mut table = Columns::of(&[1, 1]);
    (table.limits, table.queue_max) = (vec![2, 2], vec![3, 3]);
    let number = numbers(1).next().unwrap();
    let of = |affinity, table: &Columns| {
        let hash = Hash {
            affinity,
            ..hash(Mapping::Consistent)
        };
        made(hash, table)
            .pick(number, table, None)
            .map(|server| server.at())
    };
    let first = of(Affinity::Always, &table).unwrap();
    let other = 1 - first;
    let all =
        |table: &Columns| [Affinity::Always, Affinity::Maxconn, Affinity::Maxqueue].map(|it| of(it, table));
    table.served[first] = 2;
    assert_eq!(all(&table), [Some(first), Some(other), Some(first)], "full");
    table.waiting[first] = 3;
    assert_eq!(
        all(&table),
        [Some(first), Some(other), Some(other)],
        "its queue, too"
    );
    table.served[other] = 2;
    assert_eq!(all(&table), [Some(first), None, Some(other)], "all full");
    table.waiting[other] = 3;
    assert_eq!(all(&table), [Some(first), None, None]);
    table.queue_max[first] = 0;
    assert_eq!(
        of(Affinity::Maxqueue, &table),
        Some(first),
        "a queue without a limit"
    );
}

#[test]
fn a_table_of_the_same_servers_keeps_its_ring() {
    let table = Columns::of(&[1, 2]);
    let ring = hash(Mapping::Consistent);
    let hashed = made(ring, &table);
    let seats = |table: &Columns| seats(table, |server| of_name(table, server));
    assert!(hashed.is_of(ring, &seats(&table)));
    assert!(!hashed.is_of(hash(Mapping::Map), &seats(&table)));
    let mut other = table.clone();
    other.usable[0] = false;
    assert!(!hashed.is_of(ring, &seats(&other)));
}

proptest! {
    /// Neither the order in the file nor who else is there decides between two that are there.
    #[test]
    fn the_order_of_the_file_does_not_matter(
        weights in prop::collection::vec(0u32..=8, 1..20),
        by in any::<prop::sample::Index>(),
        numbers in prop::collection::vec(any::<u64>(), 1..50),
    ) {
        prop_assume!(weights.iter().any(|&weight| weight > 0));
        let table = Columns::of(&weights);
        let mut turned = table.clone();
        let by = by.index(weights.len());
        turned.ids.rotate_left(by);
        turned.weights.rotate_left(by);
        for mapping in [Mapping::Consistent, Mapping::Map] {
            let (one, other) = (made(hash(mapping), &table), made(hash(mapping), &turned));
            for &number in &numbers {
                prop_assert_eq!(id(&one, &table, number), id(&other, &turned, number));
            }
        }
    }

    /// LB-42, AC-44 for any change of one weight: a key moves only to or from the server that changed.
    #[test]
    fn a_change_moves_only_keys_of_who_changed(
        weights in prop::collection::vec(1u32..=6, 2..16),
        which in any::<prop::sample::Index>(),
        weight in 0u32..=6,
        numbers in prop::collection::vec(any::<u64>(), 1..80),
    ) {
        let table = Columns::of(&weights);
        let mut changed = table.clone();
        let which = which.index(weights.len());
        changed.weights[which] = weight * super::super::WEIGHT_SCALE;
        let (before, after) = (made(hash(Mapping::Consistent), &table), made(hash(Mapping::Consistent), &changed));
        for number in numbers {
            let (old, new) = (id(&before, &table, number), id(&after, &changed, number));
            prop_assert!(old == new || old == which as u32 || new == which as u32);
        }
    }

    /// Nobody who is down, avoided or full (where that counts) is picked while there is another.
    #[test]
    fn only_who_may_have_it_is_picked(
        rows in prop::collection::vec((0u32..=3, any::<bool>(), 0u32..4, 1u32..4), 1..12),
        avoid in prop::option::of(0u16..12),
        affinity in prop::sample::select(vec![Affinity::Always, Affinity::Maxconn, Affinity::Maxqueue]),
        bound in prop::option::of(101u16..300),
        map in any::<bool>(),
        number in any::<u64>(),
    ) {
        let mut table = Columns::of(&rows.iter().map(|row| row.0).collect::<Vec<_>>());
        table.usable = rows.iter().map(|row| row.1).collect();
        table.served = rows.iter().map(|row| row.2).collect();
        table.limits = rows.iter().map(|row| row.3).collect();
        let avoid = avoid.map(ServerIndex);
        let mapping = if map { Mapping::Map } else { Mapping::Consistent };
        let hashed = made(Hash { affinity, bound, ..hash(mapping) }, &table);
        let room = |server: &ServerIndex| affinity != Affinity::Maxconn || !table.saturated(*server);
        let others = || servers(&table).filter(|&server| table.usable(server) && Some(server) != avoid);
        match hashed.pick(number, &table, avoid) {
            Some(server) => {
                prop_assert!(table.usable(server) && room(&server));
                prop_assert!(Some(server) != avoid || !others().any(|it| room(&it)));
            }
            None => prop_assert!(!others().any(|it| room(&it))),
        }
    }

    /// LB-43: arriving one by one, nobody gets more than its part; and everybody is served.
    #[test]
    fn a_bounded_load_is_bounded(
        weights in prop::collection::vec(1u32..=8, 2..12),
        bound in 101u16..250,
        keys in 1u32..20,
        arrivals in 1usize..300,
        seed in any::<u64>(),
    ) {
        let mut table = Columns::of(&weights);
        let hashed = made(Hash { bound: Some(bound), ..hash(Mapping::Consistent) }, &table);
        let mut draw = Seeded(seed);
        for _ in 0..arrivals {
            let total: u64 = table.served.iter().map(|&served| u64::from(served)).sum();
            let number = xxh3_64(&draw.draw(keys).to_le_bytes());
            let server = hashed.pick(number, &table, None).unwrap();
            let member = hashed.members.iter().find(|member| member.server == server).unwrap();
            prop_assert!(table.served[server.at()] < hashed.allowed(member, bound, total));
            table.served[server.at()] += 1;
        }
    }

    /// No starvation: over many keys every server has its part, within what so few points allow.
    #[test]
    fn every_server_has_keys(weights in prop::collection::vec(2u32..=8, 1..8), seed in any::<u64>()) {
        const KEYS: u64 = 4_000;
        let table = Columns::of(&weights);
        let hashed = made(hash(Mapping::Consistent), &table);
        let mut counts = vec![0u64; weights.len()];
        for at in 0..KEYS {
            counts[id(&hashed, &table, xxh3_64(&seed.wrapping_add(at).to_le_bytes())) as usize] += 1;
        }
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        for (count, &weight) in counts.iter().zip(&weights) {
            let fair = KEYS * u64::from(weight) / total;
            prop_assert!(*count > fair / 4 && *count < fair * 3, "{count} instead of {fair}");
        }
    }
}
