//! What did a run look like? One page to read, to send to somebody and to print.
//!
//! A page is one text: charts in SVG, their figures in tables, the style sheet in its head. It needs no script, no network
//! and no fonts, is light or dark as its reader likes, and as wide as the screen. Two runs stand side by side, on the same
//! scales and with the same colours. The same runs are the same bytes, on every machine: all numbers are integers but the
//! one logarithm of an axis, which is computed in software.
//!
//! Nothing is measured here: what the points hold is what is shown. Where there are more of them than columns in a chart,
//! the page says how they were joined (`thin`).
//!
//! | file | what |
//! |---|---|
//! | `subjects` | which charts there are |
//! | `chart`, `scale`, `events` | one chart: its curves, axes and events |
//! | `cast`, `colours` | who has a colour, and which |
//! | `thin` | a thousand points in a few columns |
//! | `summary`, `tables`, `number` | the same in words and figures |
//! | `markup` | elements, and texts that cannot break them |

mod cast;
mod chart;
mod colours;
mod events;
mod markup;
mod number;
mod scale;
mod subjects;
mod summary;
mod tables;
mod thin;

use crate::decide::settings::Micros;
use cast::Cast;
use markup::Markup;
use subjects::SUBJECTS;
use thin::Columns;

/// Columns of a chart.
const COLUMNS_MAX: usize = 240;
const STYLE: &str = include_str!("style.css");
/// Nothing may be loaded, and nothing run.
const SECURITY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// What a run looked like over time. All vectors over servers have the same length as `servers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// What was run.
    pub title: String,
    /// More about it; may be empty.
    pub about: String,
    /// What chose.
    pub policy: String,
    /// The time between two points.
    pub step: Micros,
    /// Their names.
    pub servers: Vec<String>,
    /// The first one is that of the step that began with the run.
    pub points: Vec<Point>,
    /// What happened when.
    pub events: Vec<(Micros, String)>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Begun in this step, per server.
    pub requests: Vec<u32>,
    /// At its end, per server.
    pub in_flight: Vec<u32>,
    /// In all queues at its end.
    pub waiting: u32,
    /// p50, p90 and p99 of the responses in this step; 0 if there was none.
    pub latency: [Micros; 3],
    /// The same of the time that requests waited for a slot.
    pub queueing: [Micros; 3],
    /// Requests that failed in this step.
    pub failed: u32,
    /// Requests that had a connection that was there.
    pub reused: u32,
    /// Connections that were opened.
    pub opened: u32,
}

/// What a page shows.
struct View<'a> {
    runs: Vec<Run<'a>>,
    cast: Cast,
    /// Of the longest.
    duration: Micros,
}

struct Run<'a> {
    series: &'a Series,
    /// What it is called beside others.
    name: String,
    columns: Columns,
}

/// The page. One run, or two side by side (of the same servers or not) for comparison.
pub fn page(runs: &[&Series]) -> String {
    let view = View::of(runs);
    let mut page = Markup::default();
    page.verbatim("<!DOCTYPE html>\n");
    page.within(
        "html",
        &[("lang", &"en"), ("xmlns", &"http://www.w3.org/1999/xhtml")],
        |html| {
            html.within("head", &[], |head| view.head(head));
            html.within("body", &[], |body| view.body(body));
        },
    );
    page.finish()
}

impl<'a> View<'a> {
    fn of(runs: &[&'a Series]) -> View<'a> {
        let shown = runs.iter().enumerate().map(|(at, series)| Run {
            series,
            name: name(runs, at),
            columns: Columns::of(&series.points, series.step, COLUMNS_MAX),
        });
        let duration = |series: &&Series| series.step.saturating_mul(series.points.len() as u64);
        View {
            runs: shown.collect(),
            cast: Cast::of(runs),
            duration: runs.iter().map(duration).max().unwrap_or(0),
        }
    }

    /// The title of the first, and of those after it that have another one.
    fn title(&self) -> String {
        let mut titles: Vec<&str> = self.runs.iter().map(|run| run.series.title.as_str()).collect();
        titles.dedup();
        match titles[..] {
            [] => "No run".to_owned(),
            _ => titles.join(" · "),
        }
    }

    fn head(&self, head: &mut Markup) {
        head.empty("meta", &[("charset", &"utf-8")]);
        head.empty(
            "meta",
            &[("http-equiv", &"Content-Security-Policy"), ("content", &SECURITY)],
        );
        head.empty(
            "meta",
            &[
                ("name", &"viewport"),
                ("content", &"width=device-width, initial-scale=1"),
            ],
        );
        head.empty("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
        head.leaf("title", &[], &self.title());
        head.within("style", &[], |style| {
            style.verbatim(STYLE);
            colours::write(style);
        });
    }

    fn body(&self, body: &mut Markup) {
        body.leaf("h1", &[], &self.title());
        body.within("div", &[("class", &"runs")], |runs| {
            self.runs
                .iter()
                .for_each(|run| runs.within("div", &[], |text| run.introduce(text)));
        });
        if self.duration == 0 {
            body.leaf("p", &[], &"Nothing was run: there is nothing to show.");
            return;
        }
        SUBJECTS.iter().for_each(|subject| subject.write(self, body));
        body.leaf("h2", &[], &"Figures");
        body.within("div", &[("class", &"tables")], |all| tables::write(self, all));
        body.within("footer", &[], |foot| {
            self.runs.iter().for_each(|run| run.explain(foot))
        });
    }
}

impl Run<'_> {
    fn introduce(&self, text: &mut Markup) {
        let Series {
            step,
            points,
            servers,
            events,
            ..
        } = self.series;
        let duration = number::moment(step.saturating_mul(points.len() as u64));
        let count = servers.len();
        text.within("p", &[], |line| {
            line.leaf("b", &[], &self.name);
            let servers = if count == 1 { "server" } else { "servers" };
            line.words(&format!("{count} {servers}, {duration} of virtual time"));
        });
        if !self.series.about.is_empty() {
            text.leaf("p", &[("class", &"about")], &self.series.about);
        }
        let events = events::in_order(events);
        if !events.is_empty() {
            text.within("ol", &[("class", &"events")], |list| {
                for (at, words) in events.iter().take(events::LISTED_MAX) {
                    list.leaf("li", &[], &format!("{}: {words}", number::moment(*at)));
                }
            });
        }
        if let Some(more) = events.len().checked_sub(events::LISTED_MAX + 1) {
            text.leaf("p", &[], &format!("and {} more events", more + 1));
        }
    }

    fn explain(&self, foot: &mut Markup) {
        let step = number::time(self.series.step);
        let joined = match self.columns.each {
            1 => format!("a column of a chart is one step of {step}."),
            each => format!(
                "a column of a chart is {each} steps of {step}. What is counted in them is summed; of requests in flight, \
                 of those waiting, and of times, the highest of the {each} is shown."
            ),
        };
        foot.leaf(
            "p",
            &[],
            &format!(
                "{}: {joined} Tables over time join steps in the same way.",
                self.name
            ),
        );
    }
}

/// What chose, and its place if another has the same.
fn name(runs: &[&Series], at: usize) -> String {
    let policy = &runs[at].policy;
    let alike = runs.iter().filter(|run| run.policy == *policy).count();
    match alike {
        1 => policy.clone(),
        _ => format!("{policy} {}", ["A", "B", "C", "D"].get(at).unwrap_or(&"…")),
    }
}

#[cfg(test)]
mod tests;
