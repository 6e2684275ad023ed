//! Which servers a key prefers, in order: weighted rendezvous hashing.
//!
//! For each pair of key and server a number is drawn from their hashes; the server with the lowest, divided by its
//! weight, comes first. So a server gets keys in proportion to its weight, and when one comes, goes, drains or changes
//! its weight, only keys from or to that one move. Servers are hashed by name: their indices change, names do not.
//!
//! Integers only: `header-shard-c` computes the same, and both choose alike for ever.

/// The servers as they were shown last.
pub struct Shards {
    servers: Vec<Server>,
    /// The weight of all that take requests.
    weight: i64,
}

struct Server {
    /// The hash of its name.
    seed: u64,
    /// 0 takes no requests.
    weight: i64,
    /// 2²⁴ / weight.
    inverse: u64,
}

/// When a server is crowded.
pub struct Spill {
    /// Thousandths of its share of the requests in flight.
    pub factor: i64,
    /// Requests in flight with which it never is.
    pub least: i64,
}

impl Spill {
    pub const DEFAULT: Spill = Spill { factor: 1_500, least: 8 };
}

/// Requests in flight.
pub trait Load {
    /// Of one server.
    fn of(&self, server: i32) -> i32;
    /// Of all, by index.
    fn all(&self) -> Vec<i32>;
}

impl Shards {
    pub const EMPTY: Shards = Shards { servers: vec![], weight: 0 };

    /// Of the columns of a table.
    pub fn new(names: &[String], weights: &[i32], states: &[i32]) -> Shards {
        let columns = names.iter().zip(weights).zip(states);
        let servers: Vec<Server> = columns
            .map(|((name, &weight), &state)| {
                let weight = if state == 0 { i64::from(weight) } else { 0 };
                Server {
                    seed: mix(name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv1a)),
                    weight,
                    inverse: (1 << 24) / weight.max(1) as u64,
                }
            })
            .collect();
        let weight = servers.iter().map(|server| server.weight).sum();
        Shards { servers, weight }
    }

    /// Where a key goes, and whom to ask if that one is full: the first two in its order that take requests and are not
    /// crowded. −1 for nobody.
    pub fn choose(&self, key: u32, avoid: i32, spill: &Spill, load: &impl Load) -> (i32, i32) {
        let (first, second) = self.best(key, avoid, |_| true);
        if first < 0 || i64::from(load.of(first)) < spill.least {
            return (first, second);
        }
        let loads = load.all();
        let total: i64 = loads.iter().map(|&load| bounded(load)).sum();
        let roomy = |at: usize| {
            let load = bounded(loads.get(at).copied().unwrap_or(0));
            load < spill.least
                || (load + 1) * self.weight * 1_000 <= spill.factor * (total + 1) * self.servers[at].weight
        };
        match self.best(key, avoid, roomy) {
            (-1, _) => (first, second),
            (roomy, -1) => (roomy, if roomy == first { second } else { first }),
            both => both,
        }
    }

    /// The first two in a key's order among those.
    fn best(&self, key: u32, avoid: i32, among: impl Fn(usize) -> bool) -> (i32, i32) {
        let (mut first, mut second) = ((u64::MAX, -1), (u64::MAX, -1));
        for (at, server) in self.servers.iter().enumerate() {
            if server.weight <= 0 || at as i32 == avoid || !among(at) {
                continue;
            }
            let one = (cost(key, server), at as i32);
            if one.0 < first.0 {
                (first, second) = (one, first);
            } else if one.0 < second.0 {
                second = one;
            }
        }
        (first.1, second.1)
    }
}

/// An exponential draw of the pair, divided by the weight: the lower, the earlier in the order.
fn cost(key: u32, server: &Server) -> u64 {
    minus_log2(mix(server.seed ^ u64::from(key))) * server.inverse
}

/// 64 − log₂ of a number, in units of 2⁻³², within 0.01: a straight line between powers of two and the curve above it.
fn minus_log2(number: u64) -> u64 {
    let number = number | 1;
    let zeros = u64::from(number.leading_zeros());
    let part = (number << zeros << 1) >> 32;
    let above = (part * ((1 << 32) - part)) >> 32;
    ((zeros + 1) << 32) - part - ((above * 1_409) >> 12)
}

/// Spreads every bit over all: the end of SplitMix64.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn fnv1a(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}

/// So that no product overflows: more than a million in flight is a million.
fn bounded(load: i32) -> i64 {
    i64::from(load).clamp(0, 1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Loads(Vec<i32>);

    impl Load for Loads {
        fn of(&self, server: i32) -> i32 {
            self.0[server as usize]
        }
        fn all(&self) -> Vec<i32> {
            self.0.clone()
        }
    }

    fn shards(servers: &[(&str, i32, i32)]) -> Shards {
        let names: Vec<String> = servers.iter().map(|it| it.0.into()).collect();
        let weights: Vec<i32> = servers.iter().map(|it| it.1).collect();
        let states: Vec<i32> = servers.iter().map(|it| it.2).collect();
        Shards::new(&names, &weights, &states)
    }

    /// Keys as hashes are: spread over 31 bits.
    fn keys(count: u64) -> impl Iterator<Item = u32> {
        (0..count).map(|it| (mix(it) >> 33) as u32)
    }

    fn calm(shards: &Shards, key: u32, avoid: i32) -> (i32, i32) {
        let loads = Loads(vec![0; shards.servers.len()]);
        shards.choose(key, avoid, &Spill::DEFAULT, &loads)
    }

    #[test]
    fn shares_follow_weights() {
        for weights in [[16, 16, 16, 16], [16, 32, 48, 64], [16, 16, 16, 256], [1, 4096, 2048, 100]] {
            let shards = shards(&[
                ("a", weights[0], 0),
                ("b", weights[1], 0),
                ("c", weights[2], 0),
                ("d", weights[3], 0),
            ]);
            let mut got = [0; 4];
            keys(100_000).for_each(|key| got[calm(&shards, key, -1).0 as usize] += 1);
            for at in 0..4 {
                let share = f64::from(weights[at]) / f64::from(weights.iter().sum::<i32>());
                let error = f64::from(got[at]) / 100_000.0 - share;
                assert!(error.abs() < 0.01, "{weights:?}: {got:?}");
            }
        }
    }

    #[test]
    fn only_keys_of_the_server_that_left_move_and_each_to_its_second() {
        let before = shards(&[("a", 16, 0), ("b", 16, 0), ("c", 16, 0), ("d", 16, 0)]);
        let down = shards(&[("a", 16, 0), ("b", 16, 3), ("c", 16, 0), ("d", 16, 0)]);
        let gone = shards(&[("d", 16, 0), ("c", 16, 0), ("a", 16, 0)]);
        let name = |index: i32| ["d", "c", "a"][index as usize];
        for key in keys(10_000) {
            let (first, second) = calm(&before, key, -1);
            let expected = if first == 1 { second } else { first };
            assert_eq!(calm(&down, key, -1).0, expected);
            assert_eq!(name(calm(&gone, key, -1).0), ["a", "b", "c", "d"][expected as usize]);
            assert_eq!(calm(&before, key, first).0, second, "the one that failed is avoided");
        }
    }

    #[test]
    fn more_weight_only_draws_keys() {
        let before = shards(&[("a", 16, 0), ("b", 16, 0), ("c", 16, 0)]);
        let after = shards(&[("a", 16, 0), ("b", 48, 0), ("c", 16, 0)]);
        for key in keys(10_000) {
            let (then, now) = (calm(&before, key, -1).0, calm(&after, key, -1).0);
            assert!(now == then || now == 1);
        }
    }

    #[test]
    fn a_crowded_server_spills_to_the_next() {
        let shards = shards(&[("a", 16, 0), ("b", 16, 0), ("c", 16, 0)]);
        for key in keys(100) {
            let (first, second) = calm(&shards, key, -1);
            let with = |loads: [i32; 3]| shards.choose(key, -1, &Spill::DEFAULT, &Loads(loads.into())).0;
            let loaded = |load: i32, others: i32| {
                let mut loads = [others; 3];
                loads[first as usize] = load;
                loads
            };
            assert_eq!(with(loaded(7, 0)), first, "few are never many");
            assert_eq!(with(loaded(8, 0)), second);
            assert_eq!(with(loaded(140, 100)), first);
            assert_eq!(with(loaded(201, 100)), second);
            assert_eq!(with([500; 3]), first, "all alike is not crowded");
            assert_eq!(with([i32::MAX; 3]), first);
        }
    }

    #[test]
    fn nobody_is_no_opinion() {
        assert_eq!(calm(&shards(&[]), 1, -1), (-1, -1));
        assert_eq!(calm(&shards(&[("a", 0, 0), ("b", 16, 1), ("c", 16, 9)]), 1, -1), (-1, -1));
        assert_eq!(calm(&shards(&[("a", 16, 0)]), 1, 0), (-1, -1));
        assert_eq!(calm(&shards(&[("a", 16, 0)]), 1, -1), (0, -1));
    }

    /// The order is for ever: sharded caches depend on it. `header-shard-c` gives the same.
    #[test]
    fn choices_are_for_ever() {
        let shards = shards(&[("a", 16, 0), ("b", 32, 0), ("c", 16, 0), ("10.0.0.1:80", 64, 0)]);
        let choices: Vec<i32> = keys(16).map(|key| calm(&shards, key, -1).0).collect();
        assert_eq!(choices, [1, 0, 3, 3, 3, 3, 1, 2, 2, 0, 3, 3, 3, 1, 0, 1]);
    }
}
