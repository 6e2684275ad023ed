//! What do the charts show, and in which order?
//!
//! A subject is one chart of each run, all on the same scale. One whose values are all zero is a sentence and no chart.

use super::cast::COLOURS;
use super::chart::{Chart, Curve, Shape, class_of};
use super::events::{Label, Room, labels};
use super::markup::Markup;
use super::number::{Unit, part};
use super::scale::Scale;
use super::{Point, Run, Series, View, summary};
use crate::decide::settings::Micros;

/// One chart of each run.
pub(super) struct Subject {
    heading: &'static str,
    /// What the axis of values counts.
    axis: &'static str,
    unit: Unit,
    shape: Shape,
    curves: fn(&View, &Run) -> Vec<Curve>,
    sentence: fn(&Series) -> String,
}

/// All, from the decision to what came of it.
pub(super) const SUBJECTS: [Subject; 7] = [
    Subject {
        heading: "Who got the requests",
        axis: "share of the requests begun",
        unit: Unit::Percent,
        shape: Shape::Shares,
        curves: shares,
        sentence: summary::about_shares,
    },
    Subject {
        heading: "Load of each server",
        axis: "requests in flight",
        unit: Unit::Count,
        shape: Shape::Lines,
        curves: loads,
        sentence: summary::about_load,
    },
    Subject {
        heading: "Length of the queue",
        axis: "requests waiting for a slot",
        unit: Unit::Count,
        shape: Shape::Area,
        curves: |_, run| {
            vec![curve("waiting", "waiting", run, |point| {
                Some(point.waiting.into())
            })]
        },
        sentence: summary::about_queue,
    },
    Subject {
        heading: "Wait for a slot",
        axis: "time waited",
        unit: Unit::Time,
        shape: Shape::Lines,
        curves: |_, run| percentiles(run, |point| point.queueing),
        sentence: summary::about_queueing,
    },
    Subject {
        heading: "Time to the response",
        axis: "latency",
        unit: Unit::Time,
        shape: Shape::Lines,
        curves: |_, run| percentiles(run, |point| point.latency),
        sentence: summary::about_latency,
    },
    Subject {
        heading: "Connections: reused and opened",
        axis: "in a second",
        unit: Unit::PerSecond,
        shape: Shape::Lines,
        curves: |_, run| {
            let reused = rate(
                "requests on a connection that was there",
                "reused",
                run,
                |point| point.reused,
            );
            vec![
                reused,
                rate("connections opened", "opened", run, |point| point.opened),
            ]
        },
        sentence: summary::about_reuse,
    },
    Subject {
        heading: "Failures",
        axis: "failed requests in a second",
        unit: Unit::PerSecond,
        shape: Shape::Area,
        curves: |_, run| vec![rate("failed", "failed", run, |point| point.failed)],
        sentence: summary::about_failures,
    },
];

impl Subject {
    pub(super) fn write(&self, view: &View, page: &mut Markup) {
        let curves: Vec<Vec<Curve>> = view.runs.iter().map(|run| (self.curves)(view, run)).collect();
        let mut values = curves
            .iter()
            .flatten()
            .flat_map(|curve| curve.values.iter().flatten().copied());
        let scale = match self.shape {
            Shape::Shares => Scale::percent(shown_at_most(view)),
            Shape::Lines | Shape::Area => Scale::of(values.clone(), self.unit),
        };
        let drawn = values.any(|value| value > 0);
        page.within("section", &[], |section| {
            section.leaf("h2", &[], &self.heading);
            if drawn {
                legend(section, curves.first().map_or(&[], Vec::as_slice));
            }
            section.within("div", &[("class", &"runs")], |figures| {
                for (run, curves) in view.runs.iter().zip(&curves) {
                    figures.within("figure", &[], |figure| {
                        self.caption(view, run, figure);
                        if drawn {
                            self.chart(view, run, curves, &scale, figure);
                        }
                    });
                }
            });
        });
    }

    fn caption(&self, view: &View, run: &Run, figure: &mut Markup) {
        figure.within("figcaption", &[], |caption| {
            if view.runs.len() > 1 {
                caption.leaf("b", &[], &format!("{}:", run.name));
            }
            caption.leaf("span", &[], &(self.sentence)(run.series));
        });
    }

    fn chart(&self, view: &View, run: &Run, curves: &[Curve], scale: &Scale, figure: &mut Markup) {
        let kind = match self.shape {
            Shape::Shares if scale.top() < 1_000 => "; the rest, up to 100 %, is that of the others",
            _ if scale.is_logarithmic() => "; a logarithmic axis",
            _ => "",
        };
        let labels = labels_of(view, run);
        let chart = Chart {
            spoken: &format!("{}, {}. {}", self.heading, run.name, (self.sentence)(run.series)),
            shape: self.shape,
            unit: self.unit,
            scale,
            curves,
            bounds: &run.columns.bounds,
            duration: view.duration,
            labels: &labels,
        };
        figure.leaf("p", &[("class", &"axis")], &format!("{}{kind}", self.axis));
        let class = format!("frame lanes{}", lanes(view));
        figure.within("div", &[("class", &class)], |frame| chart.draw(frame));
    }
}

fn legend(section: &mut Markup, curves: &[Curve]) {
    if curves.len() < 2 {
        return;
    }
    section.within("ul", &[("class", &"legend")], |list| {
        for curve in curves {
            list.within("li", &[], |item| {
                item.leaf("i", &[("class", &format!("swatch {}", curve.class))], &"");
                item.words(&curve.label);
            });
        }
    });
}

/// Lanes of the run that needs most, so that charts beside each other are equally high.
fn lanes(view: &View) -> usize {
    let labels = view.runs.iter().flat_map(|run| labels_of(view, run));
    let lanes = labels.filter_map(|label| label.place).map(|place| place.lane + 1);
    lanes.max().unwrap_or(0)
}

fn labels_of(view: &View, run: &Run) -> Vec<Label> {
    let room = if view.runs.len() > 1 {
        Room::Half
    } else {
        Room::Page
    };
    labels(&run.series.events, view.duration, room)
}

/// The most that the servers with a name had together, in tenths of a percent.
fn shown_at_most(view: &View) -> u64 {
    let share = |run: &Run, point: &Point| {
        let requests = view.cast.by_colour(run.series, &point.requests, |a, b| a + b);
        let shown = requests.iter().take(view.cast.names.len());
        part(shown.flatten().sum(), requests.iter().flatten().sum(), 1_000)
    };
    let of = |run: &Run| run.columns.points.iter().map(|point| share(run, point)).max();
    view.runs.iter().filter_map(of).max().unwrap_or(0)
}

fn shares(view: &View, run: &Run) -> Vec<Curve> {
    by_server(view, run, "", |point| &point.requests, |a, b| a + b)
}

/// The line of the others is that of the highest of them: their sum would dwarf all.
fn loads(view: &View, run: &Run) -> Vec<Curve> {
    by_server(view, run, ": the highest", |point| &point.in_flight, u64::max)
}

fn by_server(
    view: &View,
    run: &Run,
    of_others: &str,
    numbers: fn(&Point) -> &[u32],
    join: fn(u64, u64) -> u64,
) -> Vec<Curve> {
    let columns = run.columns.points.iter();
    let joined: Vec<Vec<Option<u64>>> = columns
        .map(|point| view.cast.by_colour(run.series, numbers(point), join))
        .collect();
    let others = (view.cast.others > 0).then(|| format!("{} others{of_others}", view.cast.others));
    let labels = view.cast.names.iter().cloned().zip(0..);
    labels
        .chain(others.map(|label| (label, COLOURS - 1)))
        .map(|(label, colour)| Curve {
            label,
            class: class_of(colour),
            values: joined.iter().map(|column| column[colour]).collect(),
        })
        .collect()
}

fn percentiles(run: &Run, of: fn(&Point) -> [Micros; 3]) -> Vec<Curve> {
    let names = ["p50", "p90", "p99"];
    let of_one = |(percentile, name): (usize, &&'static str)| {
        curve(name, name, run, |point| {
            Some(of(point)[percentile]).filter(|time| *time > 0)
        })
    };
    names.iter().enumerate().map(of_one).collect()
}

fn rate(label: &str, class: &str, run: &Run, of: fn(&Point) -> u32) -> Curve {
    let in_a_second = |(point, duration)| Some(part(u64::from(of(point)), duration, 1_000_000_000));
    Curve {
        label: label.to_owned(),
        class: class.to_owned(),
        values: run.columns.with_durations().map(in_a_second).collect(),
    }
}

fn curve(label: &str, class: &str, run: &Run, of: impl Fn(&Point) -> Option<u64>) -> Curve {
    Curve {
        label: label.to_owned(),
        class: class.to_owned(),
        values: run.columns.points.iter().map(of).collect(),
    }
}
