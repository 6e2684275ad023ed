//! Which servers have a colour of their own?
//!
//! All, as long as there are colours: then those with the most requests in all runs together, in the order of their runs,
//! and the rest are *others*. A name is one server, in one run or in two, and has one colour.

use super::{Point, Series};
use std::collections::BTreeMap;

/// Colours that are told apart.
pub(super) const COLOURS: usize = 12;

/// Who is shown.
pub(super) struct Cast {
    /// By name.
    pub(super) names: Vec<String>,
    /// How many are not.
    pub(super) others: usize,
    places: BTreeMap<String, usize>,
}

impl Cast {
    pub(super) fn of(runs: &[&Series]) -> Cast {
        let mut asked: Vec<(&str, u64)> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for run in runs {
            for (server, requests) in run.servers.iter().zip(requests(run)) {
                let place = *places.entry(server).or_insert_with(|| {
                    asked.push((server, 0));
                    asked.len() - 1
                });
                asked[place].1 += requests;
            }
        }
        let shown = busiest(&asked);
        let names: Vec<String> = shown.iter().map(|place| asked[*place].0.to_owned()).collect();
        let places = names.iter().cloned().zip(0..).collect();
        let others = asked.len() - names.len();
        Cast {
            names,
            others,
            places,
        }
    }

    /// The colour of a server.
    pub(super) fn colour(&self, server: &str) -> usize {
        self.places.get(server).copied().unwrap_or(COLOURS - 1)
    }

    /// One number of each server of a point, joined for each colour; none where the run has no such server.
    pub(super) fn by_colour(
        &self,
        run: &Series,
        numbers: &[u32],
        join: fn(u64, u64) -> u64,
    ) -> Vec<Option<u64>> {
        let mut joined: Vec<Option<u64>> = vec![None; self.names.len() + usize::from(self.others > 0)];
        for (server, number) in run.servers.iter().zip(numbers) {
            let place = self.colour(server).min(joined.len() - 1);
            let number = u64::from(*number);
            joined[place] = Some(joined[place].map_or(number, |before| join(before, number)));
        }
        joined
    }
}

/// The places of those that are shown, in their order.
fn busiest(asked: &[(&str, u64)]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..asked.len()).collect();
    if asked.len() > COLOURS {
        places.sort_by_key(|place| std::cmp::Reverse(asked[*place].1));
        places.truncate(COLOURS - 1);
        places.sort_unstable();
    }
    places
}

/// The requests of each server in the whole run.
pub(super) fn requests(run: &Series) -> Vec<u64> {
    let mut sums = vec![0; run.servers.len()];
    for Point { requests, .. } in &run.points {
        for (sum, requests) in sums.iter_mut().zip(requests) {
            *sum += u64::from(*requests);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(servers: &[(&str, u32)]) -> Series {
        Series {
            servers: servers.iter().map(|(name, _)| (*name).to_owned()).collect(),
            points: vec![Point {
                requests: servers.iter().map(|(_, requests)| *requests).collect(),
                ..Point::default()
            }],
            ..Series::default()
        }
    }

    #[test]
    fn few_servers_are_all_shown_in_their_order() {
        let cast = Cast::of(&[&run(&[("b", 1), ("a", 9)]), &run(&[("a", 1), ("c", 5)])]);
        assert_eq!(
            (cast.names, cast.others),
            (vec!["b".into(), "a".into(), "c".into()], 0)
        );
    }

    #[test]
    fn of_many_servers_the_busiest_are_shown() {
        let names: Vec<String> = (0..20).map(|server| format!("s{server}")).collect();
        let servers: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(0..).collect();
        let run = run(&servers);
        let cast = Cast::of(&[&run]);
        assert_eq!((cast.names.len(), cast.others), (11, 9));
        assert_eq!((cast.names[0].as_str(), cast.names[10].as_str()), ("s9", "s19"));
        let sums = cast.by_colour(&run, &run.points[0].requests, |a, b| a + b);
        assert_eq!((sums[0], sums[10], sums[11]), (Some(9), Some(19), Some(36)));
        let most = cast.by_colour(&run, &run.points[0].requests, u64::max);
        assert_eq!((most.len(), most[11]), (12, Some(8)));
    }

    #[test]
    fn a_name_is_one_server() {
        let run = run(&[("a", 3), ("a", 4)]);
        let cast = Cast::of(&[&run, &run]);
        assert_eq!((cast.names.len(), cast.colour("a")), (1, 0));
        assert_eq!(cast.by_colour(&run, &[3, 4], |a, b| a + b), [Some(7)]);
    }

    #[test]
    fn who_is_not_in_a_run_has_no_number_in_it() {
        let (one, other) = (run(&[("a", 3)]), run(&[("b", 4)]));
        let cast = Cast::of(&[&one, &other]);
        assert_eq!(cast.by_colour(&other, &[4], u64::max), [None, Some(4)]);
    }

    #[test]
    fn no_servers_have_no_colour() {
        let cast = Cast::of(&[&run(&[])]);
        assert!(cast.names.is_empty() && cast.by_colour(&run(&[]), &[], u64::max).is_empty());
    }
}
