//! What is there to say about a run in a few numbers, and in one sentence for each chart?
//!
//! From all points, also where the charts show fewer. A run has no percentiles but those of its steps: what is said of them is
//! their median over the steps that had any, and the highest.

use super::cast::requests;
use super::number::{Unit, moment, part, time, written};
use super::{Point, Series};
use crate::decide::settings::Micros;

/// One number of a run.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    /// None if there was nothing to count or measure.
    pub(super) value: Option<u64>,
}

/// The numbers of a run, the same ones for every run.
pub(super) fn figures(run: &Series) -> Vec<Figure> {
    let all = requests(run).iter().sum();
    let duration = run.step.saturating_mul(run.points.len() as u64);
    let figure = |name, unit, value| Figure { name, unit, value };
    let count = |name, of: fn(&Point) -> u64| figure(name, Unit::Count, Some(sum(run, of)));
    let of_all = |of: fn(&Point) -> u64| Some(part(sum(run, of), all, 1_000)).filter(|_| all > 0);
    let median_of = |name, of: fn(&Point) -> u64| figure(name, Unit::Time, median(run, of));
    let highest = |of: fn(&Point) -> u64| peak(run, of).map(|(value, _)| value);
    let longest = |name, of: fn(&Point) -> u64| figure(name, Unit::Time, highest(of));
    let most = |name, of: fn(&Point) -> u64| figure(name, Unit::Count, Some(highest(of).unwrap_or(0)));
    let rate = Some(part(all, duration, 1_000_000_000)).filter(|_| duration > 0);
    vec![
        figure("requests", Unit::Count, Some(all)),
        figure("requests per second", Unit::PerSecond, rate),
        count("failed", |point| point.failed.into()),
        figure(
            "on a connection that was there",
            Unit::Percent,
            of_all(|point| point.reused.into()),
        ),
        count("connections opened", |point| point.opened.into()),
        median_of("latency, p50, median of the steps", |point| point.latency[0]),
        median_of("latency, p90, median of the steps", |point| point.latency[1]),
        median_of("latency, p99, median of the steps", |point| point.latency[2]),
        longest("latency, p99, highest of the steps", |point| point.latency[2]),
        median_of("wait for a slot, p99, median of the steps", |point| {
            point.queueing[2]
        }),
        longest("wait for a slot, p99, highest of the steps", |point| {
            point.queueing[2]
        }),
        most("waiting, at most", |point| point.waiting.into()),
        most("in flight at one server, at most", busiest),
    ]
}

/// Who had most.
pub(super) fn about_shares(run: &Series) -> String {
    let requests = requests(run);
    let all: u64 = requests.iter().sum();
    let by_requests = |server: &usize| (requests[*server], std::cmp::Reverse(*server));
    let most = (0..requests.len()).max_by_key(by_requests);
    let least = (0..requests.len()).rev().min_by_key(|server| requests[*server]);
    let had = |server: usize| {
        let share = share(requests[server], all);
        format!("{} ({share})", run.servers[server])
    };
    match (most, least) {
        _ if all == 0 => "No request began.".to_owned(),
        (Some(most), Some(least)) if most != least => format!(
            "Of {}, most went to {}, fewest to {}.",
            counted(all, "request"),
            had(most),
            had(least)
        ),
        _ => format!("Of {}, all went to one server.", counted(all, "request")),
    }
}

/// Where most were in flight at once.
pub(super) fn about_load(run: &Series) -> String {
    let Some((most, at)) = peak(run, busiest) else {
        return "Nothing was in flight at the end of any step.".to_owned();
    };
    let then = run.points.iter().find(|point| busiest(point) == most);
    let server = then.and_then(|point| point.in_flight.iter().position(|it| u64::from(*it) == most));
    let server = server
        .and_then(|server| run.servers.get(server))
        .map_or("one server", String::as_str);
    format!(
        "At most {} at {server}, at {}.",
        written(most, Unit::Count),
        moment(at)
    )
}

/// How long the queue was.
pub(super) fn about_queue(run: &Series) -> String {
    let Some((most, at)) = peak(run, |point| point.waiting.into()) else {
        return "Nobody waited at the end of any step.".to_owned();
    };
    let free = run.points.iter().filter(|point| point.waiting == 0).count() as u64;
    format!(
        "At most {} waited, at {}; in {} of the steps nobody did.",
        written(most, Unit::Count),
        moment(at),
        written(part(free, run.points.len() as u64, 1_000), Unit::Percent)
    )
}

/// How long responses took.
pub(super) fn about_latency(run: &Series) -> String {
    about_times(run, |point| point.latency).unwrap_or_else(|| "There was no response.".to_owned())
}

/// How long requests waited.
pub(super) fn about_queueing(run: &Series) -> String {
    about_times(run, |point| point.queueing).unwrap_or_else(|| "Nobody had to wait for a slot.".to_owned())
}

fn about_times(run: &Series, of: fn(&Point) -> [Micros; 3]) -> Option<String> {
    let (worst, at) = peak(run, |point| of(point)[2])?;
    let median = |percentile: usize| time(median(run, |point| of(point)[percentile]).unwrap_or(0));
    Some(format!(
        "Median of the steps: p50 {}, p99 {}. Highest p99: {}, at {}.",
        median(0),
        median(2),
        time(worst),
        moment(at)
    ))
}

/// How many connections were there.
pub(super) fn about_reuse(run: &Series) -> String {
    let all = requests(run).iter().sum();
    let reused = share(sum(run, |point| point.reused.into()), all);
    let opened = counted(sum(run, |point| point.opened.into()), "connection");
    let opened = opened + " opened";
    match all {
        0 => format!("No request began; {opened}."),
        _ => format!("{reused} of the requests had a connection that was there; {opened}."),
    }
}

/// How many got nothing.
pub(super) fn about_failures(run: &Series) -> String {
    let Some((most, at)) = peak(run, |point| point.failed.into()) else {
        return "No request failed.".to_owned();
    };
    let failed = sum(run, |point| point.failed.into());
    let of_all = share(failed, requests(run).iter().sum());
    format!(
        "{} failed ({}), at most {} in one step, at {}.",
        counted(failed, "request"),
        of_all,
        written(most, Unit::Count),
        moment(at)
    )
}

fn share(of: u64, all: u64) -> String {
    match part(of, all, 1_000) {
        0 if of > 0 => "under 0.1 %".to_owned(),
        share => written(share, Unit::Percent),
    }
}

fn counted(count: u64, thing: &str) -> String {
    format!(
        "{} {thing}{}",
        written(count, Unit::Count),
        if count == 1 { "" } else { "s" }
    )
}

fn busiest(point: &Point) -> u64 {
    point.in_flight.iter().max().copied().unwrap_or(0).into()
}

fn sum(run: &Series, of: fn(&Point) -> u64) -> u64 {
    run.points.iter().map(of).fold(0, u64::saturating_add)
}

/// The highest, and when its first step began; none if all are zero.
fn peak(run: &Series, of: impl Fn(&Point) -> u64) -> Option<(u64, Micros)> {
    let values = run.points.iter().map(of).zip(0_u64..);
    let (highest, step) = values.max_by_key(|(value, step)| (*value, std::cmp::Reverse(*step)))?;
    (highest > 0).then(|| (highest, run.step.saturating_mul(step)))
}

/// Of those that are not zero.
fn median(run: &Series, of: impl Fn(&Point) -> u64) -> Option<u64> {
    let mut values: Vec<u64> = run.points.iter().map(of).filter(|value| *value > 0).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Series {
        let point = |requests: [u32; 2], waiting, p99| Point {
            requests: requests.into(),
            in_flight: vec![waiting, 3],
            waiting,
            latency: [p99 / 4, p99 / 2, p99],
            failed: waiting / 5,
            reused: requests[0],
            opened: requests[1],
            ..Point::default()
        };
        Series {
            step: 500_000,
            servers: vec!["a".into(), "b".into()],
            points: vec![
                point([8, 2], 0, 4_000),
                point([9, 1], 5, 8_000),
                point([0, 0], 0, 0),
                point([4, 6], 0, 6_000),
            ],
            ..Series::default()
        }
    }

    #[test]
    fn sentences_say_what_is_to_be_seen() {
        let run = run();
        assert_eq!(
            about_shares(&run),
            "Of 30 requests, most went to a (70 %), fewest to b (30 %)."
        );
        assert_eq!(about_load(&run), "At most 5 at a, at 0.5 s.");
        assert_eq!(
            about_queue(&run),
            "At most 5 waited, at 0.5 s; in 75 % of the steps nobody did."
        );
        assert_eq!(
            about_latency(&run),
            "Median of the steps: p50 1.5 ms, p99 6 ms. Highest p99: 8 ms, at 0.5 s."
        );
        assert_eq!(about_queueing(&run), "Nobody had to wait for a slot.");
        assert_eq!(
            about_reuse(&run),
            "70 % of the requests had a connection that was there; 9 connections opened."
        );
        assert_eq!(
            about_failures(&run),
            "1 request failed (3.3 %), at most 1 in one step, at 0.5 s."
        );
    }

    #[test]
    fn a_small_share_is_not_none() {
        assert_eq!(
            [0, 12, 39].map(|of| share(of, 39_221)),
            ["0 %", "under 0.1 %", "0.1 %"]
        );
    }

    #[test]
    fn of_nothing_there_is_little_to_say() {
        let run = Series::default();
        assert_eq!(about_shares(&run), "No request began.");
        assert_eq!(about_load(&run), "Nothing was in flight at the end of any step.");
        assert_eq!(about_reuse(&run), "No request began; 0 connections opened.");
        assert!(figures(&run).iter().all(|figure| figure.value.unwrap_or(0) == 0));
    }

    #[test]
    fn figures_are_of_the_whole_run() {
        let figures = figures(&run());
        let value = |name: &str| figures.iter().find(|it| it.name == name).and_then(|it| it.value);
        assert_eq!(value("requests per second"), Some(15_000));
        assert_eq!(value("on a connection that was there"), Some(700));
        assert_eq!(value("latency, p99, median of the steps"), Some(6_000));
        assert_eq!(value("wait for a slot, p99, median of the steps"), None);
        assert_eq!(value("waiting, at most"), Some(5));
    }
}
