//! What are the figures behind the charts, for who cannot see them or wants to copy them?

use super::cast::requests;
use super::markup::{Attributes, Markup};
use super::number::{Unit, difference, moment, part, written};
use super::summary::{Figure, figures};
use super::thin::Columns;
use super::{Point, Run, Series, View};
use std::collections::BTreeMap;

/// Rows of a table over time.
const TIMES_MAX: usize = 20;
const NOTHING: &str = "–";

/// All tables.
pub(super) fn write(view: &View, page: &mut Markup) {
    totals(view, page);
    servers(view, page);
    for run in &view.runs {
        over_time(view, run, page);
    }
}

fn totals(view: &View, page: &mut Markup) {
    let all: Vec<Vec<Figure>> = view.runs.iter().map(|run| figures(run.series)).collect();
    let mut heads = vec![String::new()];
    heads.extend(view.runs.iter().map(|run| run.name.clone()));
    heads.extend((all.len() == 2).then(|| "difference".to_owned()));
    let rows = (0..all.first().map_or(0, Vec::len)).map(|row| {
        let figures: Vec<&Figure> = all.iter().map(|figures| &figures[row]).collect();
        let mut cells = vec![figures[0].name.to_owned()];
        cells.extend(figures.iter().map(|it| shown(it.value, it.unit)));
        cells.extend(match figures[..] {
            [one, other] => Some(apart(one.value, other.value, one.unit)),
            _ => None,
        });
        cells
    });
    table(page, "The whole run", &heads, rows.collect());
}

fn servers(view: &View, page: &mut Markup) {
    let runs: Vec<BTreeMap<&str, Server>> = view.runs.iter().map(|run| by_name(run.series)).collect();
    let mut heads = vec!["server".to_owned()];
    for run in &view.runs {
        let of = if view.runs.len() > 1 {
            format!("{}: ", run.name)
        } else {
            String::new()
        };
        heads.extend(["requests", "share", "in flight, at most"].map(|head| format!("{of}{head}")));
    }
    heads.extend((runs.len() == 2).then(|| "difference of shares".to_owned()));
    let row = |name: &&str| {
        let all: Vec<Option<&Server>> = runs.iter().map(|run| run.get(name)).collect();
        let mut cells = vec![(*name).to_owned()];
        for server in &all {
            cells.push(shown(server.map(|it| it.requests), Unit::Count));
            cells.push(shown(server.and_then(|it| it.share), Unit::Percent));
            cells.push(shown(server.map(|it| it.most), Unit::Count));
        }
        let share = |server: Option<&Server>| server.and_then(|it| it.share);
        cells.extend(match all[..] {
            [one, other] => Some(apart(share(one), share(other), Unit::Percent)),
            _ => None,
        });
        cells
    };
    table(page, "Each server", &heads, names(view).iter().map(row).collect());
}

fn over_time(view: &View, run: &Run, page: &mut Markup) {
    let columns = Columns::of(&run.series.points, run.series.step, TIMES_MAX);
    let heads = [
        "from",
        "requests",
        "failed",
        "waiting",
        "p50",
        "p90",
        "p99",
        "p99 of waits",
        "reused",
        "opened",
    ];
    let row = |(point, at): (&Point, &u64)| {
        let requests = point.requests.iter().map(|it| u64::from(*it)).sum();
        let count = |value: u32| written(value.into(), Unit::Count);
        let times = [
            point.latency[0],
            point.latency[1],
            point.latency[2],
            point.queueing[2],
        ];
        let mut cells = vec![
            moment(*at),
            written(requests, Unit::Count),
            count(point.failed),
            count(point.waiting),
        ];
        cells.extend(times.map(|time| shown(Some(time).filter(|it| *it > 0), Unit::Time)));
        cells.extend([count(point.reused), count(point.opened)]);
        cells
    };
    let rows = columns.points.iter().zip(&columns.bounds).map(row);
    let of = if view.runs.len() > 1 {
        format!(": {}", run.name)
    } else {
        String::new()
    };
    let title = format!("Over time{of}");
    table(page, &title, &heads.map(str::to_owned), rows.collect());
}

/// One server in one run.
#[derive(Default)]
struct Server {
    requests: u64,
    share: Option<u64>,
    most: u64,
}

/// Two of the same name are one, as in the charts.
fn by_name(run: &Series) -> BTreeMap<&str, Server> {
    let mut servers: BTreeMap<&str, Server> = BTreeMap::new();
    let all: u64 = requests(run).iter().sum();
    for (place, (name, requests)) in run.servers.iter().zip(requests(run)).enumerate() {
        let in_flight = run.points.iter().filter_map(|point| point.in_flight.get(place));
        let most = in_flight.max().copied().unwrap_or(0);
        let server = servers.entry(name).or_default();
        server.requests += requests;
        server.share = Some(part(server.requests, all, 1_000)).filter(|_| all > 0);
        server.most = server.most.max(most.into());
    }
    servers
}

/// Each once, in the order of the runs.
fn names<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut seen = BTreeMap::new();
    let names = view.runs.iter().flat_map(|run| &run.series.servers);
    names
        .map(String::as_str)
        .filter(|name| seen.insert(*name, ()).is_none())
        .collect()
}

fn shown(value: Option<u64>, unit: Unit) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| written(value, unit))
}

fn apart(one: Option<u64>, other: Option<u64>, unit: Unit) -> String {
    let both = one.zip(other);
    both.map_or_else(|| NOTHING.to_owned(), |(one, other)| difference(one, other, unit))
}

/// The first cell of a row is its head.
fn table(page: &mut Markup, title: &str, heads: &[String], rows: Vec<Vec<String>>) {
    let reachable: Attributes = &[
        ("class", &"wide"),
        ("tabindex", &"0"),
        ("role", &"region"),
        ("aria-label", &title),
    ];
    page.within("div", reachable, |wide| {
        wide.within("table", &[], |table| {
            table.leaf("caption", &[], &title);
            table.within("thead", &[], |head| {
                head.within("tr", &[], |row| {
                    heads
                        .iter()
                        .for_each(|it| row.leaf("th", &[("scope", &"col")], it))
                });
            });
            table.within("tbody", &[], |body| {
                for cells in &rows {
                    body.within("tr", &[], |row| {
                        row.leaf("th", &[("scope", &"row")], &cells[0]);
                        cells[1..].iter().for_each(|cell| row.leaf("td", &[], cell));
                    });
                }
            });
        });
    });
}
