//! What was needed a lap ago, from now until a little later.
//!
//! A *lap* is the time after which the load comes again, in 96 parts: a quarter of an hour of a day. Of each part the most
//! requests are remembered that a server had at once, one for each connection. If it is less the next time, half of the
//! way there is believed; if it is more, all of it.
//!
//! Requests are counted, not connections: those that were opened in advance would prove themselves needed.

use std::collections::BTreeMap;

/// Parts of a lap.
const PARTS: i64 = 96;

/// The configuration, with times in ms.
pub struct Rules {
    pub every: i64,
    pub ahead: i64,
    /// Thousandths.
    pub margin: i64,
    /// Connections to a server.
    pub most: i64,
}

/// The rules, and the laps of each server, by its name.
pub struct Laps {
    rules: Rules,
    servers: BTreeMap<String, Lap>,
}

struct Lap {
    /// The most requests in each part, the last time that it was there.
    known: [i32; PARTS as usize],
    /// The part that it is now, counted from the zero of the clock.
    part: i64,
    /// The most requests in it so far.
    most: i32,
}

impl Laps {
    pub fn new(rules: Rules) -> Laps {
        Laps { rules, servers: BTreeMap::new() }
    }

    /// Takes in how many requests each server has now, and tells how many connections it should have. Servers that are
    /// gone are forgotten.
    pub fn round<'a>(&mut self, now: i64, servers: impl Iterator<Item = (&'a str, i32)>) -> Vec<i32> {
        let part = |time: i64| time * PARTS / self.rules.every;
        let (this, last) = (part(now), part(now + self.rules.ahead));
        let mut before = std::mem::take(&mut self.servers);
        let mut expected = Vec::new();
        for (name, in_flight) in servers {
            let new = Lap { known: [0; PARTS as usize], part: this, most: 0 };
            let mut lap = before.remove(name).unwrap_or(new);
            lap.look(this, in_flight);
            expected.push(self.rules.connections(lap.most_until(last)));
            self.servers.insert(name.into(), lap);
        }
        expected
    }
}

impl Rules {
    fn connections(&self, requests: i32) -> i32 {
        let wanted = (i64::from(requests) * self.margin + 999) / 1_000;
        wanted.min(self.most) as i32
    }
}

impl Lap {
    fn look(&mut self, part: i64, in_flight: i32) {
        if part != self.part {
            let known = &mut self.known[place(self.part)];
            *known = if self.most < *known { (*known + self.most) / 2 } else { self.most };
            (self.part, self.most) = (part, 0);
        }
        self.most = self.most.max(in_flight);
    }

    /// The most that was known of the parts from this one to that.
    fn most_until(&self, last: i64) -> i32 {
        let parts = self.part..=last.min(self.part + PARTS - 1);
        parts.map(|part| self.known[place(part)]).max().unwrap_or(0)
    }
}

fn place(part: i64) -> usize {
    part.rem_euclid(PARTS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn day() -> Laps {
        Laps::new(Rules { every: 24 * HOUR, ahead: HOUR, margin: 1_200, most: 50 })
    }

    /// A day in minutes, with so many requests from 9 to 10; when connections were wished for, and how many at most.
    fn lives(laps: &mut Laps, day: i64, requests: i32) -> (Option<i64>, Option<i64>, i32) {
        let (mut first, mut last, mut most) = (None, None, 0);
        for minute in 0..1_440 {
            let in_flight = if (540..600).contains(&minute) { requests } else { 0 };
            let now = day * 24 * HOUR + minute * 60_000;
            let wished = laps.round(now, [("a", in_flight)].into_iter())[0];
            if wished > 0 {
                (first, last) = (first.or(Some(minute)), Some(minute));
            }
            most = most.max(wished);
        }
        (first, last, most)
    }

    #[test]
    fn the_second_day_is_prepared_for() {
        let mut laps = day();
        assert_eq!(lives(&mut laps, 0, 20), (None, None, 0));
        assert_eq!(lives(&mut laps, 1, 20), (Some(480), Some(599), 24), "an hour ahead, with a margin");
        assert_eq!(lives(&mut laps, 2, 100).2, 24);
        assert_eq!(lives(&mut laps, 3, 100).2, 50, "no more than that");
    }

    #[test]
    fn what_comes_no_more_is_forgotten_by_and_by() {
        let mut laps = day();
        lives(&mut laps, 0, 20);
        let wished: Vec<i32> = (1..8).map(|day| lives(&mut laps, day, 0).2).collect();
        assert_eq!(wished, [24, 12, 6, 3, 2, 0, 0]);
    }

    #[test]
    fn a_lap_is_looked_at_once_round_at_most() {
        let mut laps = Laps::new(Rules { every: 1_000, ahead: 1_000, margin: 1_000, most: 9 });
        laps.round(500, [("a", 7)].into_iter());
        for now in [600, 1_400, 1_600, 5_000_000_000_000] {
            assert_eq!(laps.round(now, [("a", 0)].into_iter()), [7], "{now}");
        }
    }

    #[test]
    fn each_server_has_its_own() {
        let mut laps = day();
        laps.round(0, [("a", 5), ("b", 0)].into_iter());
        laps.round(HOUR, [("b", 0), ("a", 0)].into_iter());
        assert_eq!(laps.round(24 * HOUR, [("b", 0), ("new", 9), ("a", 0)].into_iter()), [0, 0, 6]);
        laps.round(25 * HOUR, [("b", 0)].into_iter());
        assert_eq!(laps.servers.len(), 1);
    }
}
