//! What a server costs, and who is the cheaper of two.
//!
//! The *cost* of a server is its latency, times the requests that it would have with this one, for its weight. Its
//! latency rises to a peak at once and comes down slowly: half of the way in a `decay`. So a server is believed to be
//! slow sooner than it is believed to be fast again.
//!
//! The figures that it is shown are smoothed. So only one that rises is a peak; one that falls says that the last
//! responses were faster than it. Whose figure has not moved was not asked since: its latency comes down to the lowest of
//! all, so that it is tried again, instead of being left alone for ever for a peak of long ago.
//!
//! Two are drawn, because all workers see the same figures: if each took the cheapest of all, all of them would take the
//! same one until the figures are new.

use std::cmp::Ordering;

/// The servers as they were shown last.
pub struct Costs {
    /// Milliseconds.
    decay: f64,
    servers: Vec<Server>,
    /// Of all that take requests.
    weight: i32,
    /// When latencies were last moved on.
    moved: i64,
    /// Whether they are to be moved on, because the figures are new.
    is_news: bool,
    /// What counts for a server of which nothing is known.
    average: f64,
}

struct Server {
    name: String,
    /// 0 takes no requests.
    weight: i32,
    /// The weights of this one and of all before it.
    until: i32,
    /// As it was shown, in µs; −1 while unknown.
    shown: i32,
    /// How that compares with the one before.
    trend: Trend,
    /// What is made of it.
    latency: Option<f64>,
}

/// Where a figure has gone since latencies were last moved on: up, if it rose at all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trend {
    Still,
    Down,
    Up,
}

impl Costs {
    pub const fn new(decay: f64) -> Costs {
        Costs { decay, servers: Vec::new(), weight: 0, moved: 0, is_news: false, average: 1.0 }
    }

    /// Takes up the columns of a table. What is known of a server goes with its name.
    pub fn show(&mut self, names: Vec<String>, weights: &[i32], states: &[i32], latencies: &[i32]) {
        let mut known = std::mem::take(&mut self.servers);
        known.sort_by(|a, b| a.name.cmp(&b.name));
        self.weight = 0;
        for (at, name) in names.into_iter().enumerate() {
            let before = known.binary_search_by(|it| it.name.cmp(&name)).ok().map(|at| &known[at]);
            let shown = latencies[at];
            let weight = if states[at] == 0 { weights[at] } else { 0 };
            self.weight += weight;
            self.servers.push(Server {
                weight,
                until: self.weight,
                shown,
                trend: before.map_or(Trend::Up, |it| it.trend.max(Trend::between(it.shown, shown))),
                latency: before.and_then(|it| it.latency),
                name,
            });
        }
        self.is_news = true;
    }

    /// Makes latencies of new figures, once: a table comes without a time.
    pub fn move_on(&mut self, now: i64) {
        if !std::mem::take(&mut self.is_news) {
            return;
        }
        let elapsed = (now - self.moved).max(0) as f64;
        self.moved = now;
        let kept = self.decay / (self.decay + elapsed);
        let known = || self.servers.iter().filter_map(|it| it.latency.or(it.measured()));
        let lowest = known().fold(f64::MAX, f64::min);
        for server in &mut self.servers {
            let measured = server.measured();
            let before = server.latency.or(measured);
            let goal = match server.trend {
                Trend::Still => measured.map(|_| lowest),
                Trend::Down | Trend::Up => measured,
            };
            let faded = |(before, goal): (f64, f64)| (before * kept + goal * (1.0 - kept)).min(before);
            server.latency = match std::mem::replace(&mut server.trend, Trend::Still) {
                Trend::Up if goal > before => goal,
                _ => before.zip(goal).map(faded),
            };
        }
        let (sum, count) = self.servers.iter().filter_map(|it| it.latency).fold((0.0, 0.0), add);
        self.average = if count > 0.0 { sum / count } else { 1.0 };
    }

    /// The cheaper of two that were drawn by weight, and the other one, to be asked if the first is full. −1 for nobody.
    pub fn choose(&self, avoid: i32, draw: impl Fn(i32) -> i32, in_flight: impl Fn(i32) -> i32) -> (i32, i32) {
        let avoided = usize::try_from(avoid).ok().filter(|&at| at < self.servers.len());
        let Some(one) = self.drawn(&draw, [avoided, None]) else {
            return (-1, -1);
        };
        let Some(other) = self.drawn(&draw, [avoided, Some(one)]) else {
            return (one as i32, -1);
        };
        let cost = |at: usize| {
            let requests = f64::from(in_flight(at as i32)) + 1.0;
            self.servers[at].latency.unwrap_or(self.average).max(1.0) * requests / f64::from(self.servers[at].weight)
        };
        let (first, second) = if cost(other) < cost(one) { (other, one) } else { (one, other) };
        (first as i32, second as i32)
    }

    /// One of those that take requests, by weight, but none of these.
    fn drawn(&self, draw: &impl Fn(i32) -> i32, mut without: [Option<usize>; 2]) -> Option<usize> {
        without.sort();
        let left_out = |at: &usize| self.servers[*at].weight;
        let weight = self.weight - without.iter().flatten().map(left_out).sum::<i32>();
        if weight <= 0 {
            return None;
        }
        let mut number = draw(weight);
        for server in without.iter().flatten().map(|&at| &self.servers[at]) {
            if number >= server.until - server.weight {
                number += server.weight;
            }
        }
        Some(self.servers.partition_point(|it| it.until <= number))
    }
}

impl Trend {
    fn between(before: i32, now: i32) -> Trend {
        match now.cmp(&before) {
            Ordering::Equal => Trend::Still,
            Ordering::Less => Trend::Down,
            Ordering::Greater => Trend::Up,
        }
    }
}

impl Server {
    fn measured(&self) -> Option<f64> {
        (self.shown >= 0).then_some(f64::from(self.shown))
    }
}

fn add((sum, count): (f64, f64), one: f64) -> (f64, f64) {
    (sum + one, count + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn show(costs: &mut Costs, latencies: &[i32]) {
        let names = (0..latencies.len()).map(|at| format!("s{at}")).collect();
        costs.show(names, &vec![16; latencies.len()], &vec![0; latencies.len()], latencies);
    }

    fn shown(latencies: &[i32]) -> Costs {
        let mut costs = Costs::new(10_000.0);
        show(&mut costs, latencies);
        costs.move_on(0);
        costs
    }

    fn latencies(costs: &Costs) -> Vec<Option<i32>> {
        costs.servers.iter().map(|it| it.latency.map(|it| it as i32)).collect()
    }

    /// A generator of draws, the same each time.
    fn dice() -> impl Fn(i32) -> i32 {
        let state = Cell::new(1_u64);
        move |bound| {
            state.set(state.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
            (((state.get() >> 33) * bound as u64) >> 31) as i32
        }
    }

    fn counts(costs: &Costs, avoid: i32, in_flight: impl Fn(i32) -> i32) -> Vec<i32> {
        let (draw, mut counts) = (dice(), vec![0; costs.servers.len()]);
        for _ in 0..12_000 {
            counts[costs.choose(avoid, &draw, &in_flight).0 as usize] += 1;
        }
        counts
    }

    #[test]
    fn a_peak_counts_at_once_and_fades() {
        let mut costs = shown(&[1_000, 1_000]);
        show(&mut costs, &[9_000, 1_001]);
        costs.move_on(1_000);
        assert_eq!(latencies(&costs)[0], Some(9_000));
        show(&mut costs, &[1_000, 1_000]);
        costs.move_on(11_000);
        assert_eq!(latencies(&costs)[0], Some(5_000), "half of it in a decay");
    }

    #[test]
    fn who_was_not_asked_is_tried_again() {
        let mut costs = shown(&[90_000, 1_000]);
        for tick in 1..=20 {
            show(&mut costs, &[90_000, 1_000 + tick]);
            costs.move_on(i64::from(tick) * 10_000);
        }
        assert!(latencies(&costs)[0] < Some(1_100), "{:?}", latencies(&costs));
        show(&mut costs, &[90_001, 1_000]);
        costs.move_on(201_000);
        assert_eq!(latencies(&costs)[0], Some(90_001), "it was tried, and is as slow as ever");
    }

    #[test]
    fn who_is_fast_again_is_believed_with_its_first_response() {
        let mut costs = shown(&[90_000, 1_000]);
        for tick in 1..=20 {
            show(&mut costs, &[90_000, 1_000 + tick]);
            costs.move_on(i64::from(tick) * 10_000);
        }
        // Smoothed, the first one that is fast still looks slow.
        show(&mut costs, &[63_300, 1_000]);
        costs.move_on(201_000);
        assert!(latencies(&costs)[0] < Some(1_100), "{:?}", latencies(&costs));
    }

    #[test]
    fn a_figure_that_was_new_in_the_table_before_is_still_new() {
        let mut costs = shown(&[1_000, 1_000]);
        show(&mut costs, &[9_000, 1_000]);
        show(&mut costs, &[9_000, 1_001]);
        costs.move_on(1_000);
        assert_eq!(latencies(&costs)[0], Some(9_000));
    }

    #[test]
    fn what_is_known_goes_with_the_name() {
        let mut costs = shown(&[9_000, 1_000]);
        costs.show(vec!["s1".into(), "new".into(), "s0".into()], &[16; 3], &[0; 3], &[1_000, -1, 9_000]);
        costs.move_on(0);
        assert_eq!(latencies(&costs), [Some(1_000), None, Some(9_000)]);
        assert_eq!(costs.average, 5_000.0);
    }

    #[test]
    fn the_cheaper_of_two_gets_it() {
        let even = counts(&shown(&[1_000; 3]), -1, |_| 0);
        assert!(even.iter().all(|&count| (3_700..4_300).contains(&count)), "{even:?}");
        // The dearest of three is the cheaper one of no two; the cheapest one of all pairs that it is in, two of three.
        let uneven = counts(&shown(&[1_000, 2_000, 3_000]), -1, |_| 0);
        assert!((7_700..8_300).contains(&uneven[0]) && uneven[2] == 0, "{uneven:?}");
        let busy = counts(&shown(&[1_000, 2_000, 3_000]), -1, |at| [9, 1, 0][at as usize]);
        assert_eq!(busy[0], 0, "{busy:?}");
    }

    #[test]
    fn weights_are_shares() {
        let mut costs = Costs::new(1.0);
        costs.show(vec!["a".into(), "b".into(), "c".into()], &[16, 32, 48], &[0, 0, 1], &[5, 5, 5]);
        costs.move_on(0);
        // Two of two are always drawn. The one with twice the weight is the cheaper one up to twice the requests.
        assert_eq!(costs.choose(-1, |_| 0, |at| [1, 4, 0][at as usize]), (0, 1));
        assert_eq!(costs.choose(-1, |_| 0, |at| [1, 2, 0][at as usize]), (1, 0));
    }

    #[test]
    fn who_failed_is_avoided_and_who_takes_none_is_not_chosen() {
        let mut costs = shown(&[1_000; 4]);
        assert_eq!(counts(&costs, 2, |_| 0)[2], 0);
        let names = || (0..3).map(|at| format!("s{at}")).collect();
        costs.show(names(), &[16, 0, 16], &[3, 0, 0], &[1, 1, 1]);
        costs.move_on(0);
        assert_eq!(costs.choose(-1, |_| 0, |_| 0), (2, -1));
        assert_eq!(costs.choose(2, |_| 0, |_| 0), (-1, -1));
        assert_eq!(costs.choose(77, |_| 0, |_| 0), (2, -1));
        costs.show(vec![], &[], &[], &[]);
        costs.move_on(0);
        assert_eq!(costs.choose(-1, |_| 0, |_| 0), (-1, -1));
    }
}
