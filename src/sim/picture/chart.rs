//! How does one chart become SVG?
//!
//! Curves are drawn in steps: a value stands for a time, and nothing is drawn between two times that was not there. The
//! drawing stretches with the page, texts and the width of lines do not: the curves have a box of units of their own, all
//! else is placed in percent.

use super::cast::COLOURS;
use super::events::Label;
use super::markup::{Attributes, Markup};
use super::number::{Unit, tick};
use super::scale::{HEIGHT, Scale, moments, place};
use crate::decide::settings::Micros;
use std::fmt::Write;

/// The units of a drawing from left to right.
const WIDTH: u32 = 2_400;
/// Pixels between the lines of two lanes of labels.
const LANE: usize = 15;

/// How curves are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each on its own.
    Lines,
    /// The only one, filled.
    Area,
    /// On each other, as parts of what they are together.
    Shares,
}

/// Something over time.
pub(super) struct Curve {
    pub(super) label: String,
    /// Of the style sheet.
    pub(super) class: String,
    /// For each column; none where there is nothing to show.
    pub(super) values: Vec<Option<u64>>,
}

/// What one chart shows.
pub(super) struct Chart<'a> {
    /// What a reader hears who does not see it.
    pub(super) spoken: &'a str,
    pub(super) shape: Shape,
    pub(super) unit: Unit,
    pub(super) scale: &'a Scale,
    pub(super) curves: &'a [Curve],
    /// Where the columns begin, and where the last one ends.
    pub(super) bounds: &'a [Micros],
    pub(super) duration: Micros,
    pub(super) labels: &'a [Label],
}

/// The class of a colour of servers.
pub(super) fn class_of(colour: usize) -> String {
    format!("c{}", colour.min(COLOURS - 1))
}

impl Chart<'_> {
    pub(super) fn draw(&self, page: &mut Markup) {
        page.within(
            "svg",
            &[
                ("class", &"chart"),
                ("role", &"img"),
                ("aria-label", &self.spoken),
            ],
            |svg| {
                self.axis_of_values(svg);
                self.axis_of_time(svg);
                let shape = format!("0 0 {WIDTH} {HEIGHT}");
                let stretched: Attributes = &[
                    ("class", &"curves"),
                    ("viewBox", &shape),
                    ("preserveAspectRatio", &"none"),
                ];
                svg.within("svg", stretched, |inside| self.curves(inside));
                self.labels.iter().for_each(|label| event(svg, label));
            },
        );
    }

    fn axis_of_values(&self, svg: &mut Markup) {
        for value in &self.scale.ticks {
            let y = percent(HEIGHT - self.scale.height(*value));
            svg.empty(
                "line",
                &[("class", &"grid"), ("x2", &"100%"), ("y1", &y), ("y2", &y)],
            );
            let text = tick(*value, self.unit);
            svg.leaf(
                "text",
                &[("class", &"value"), ("x", &"-7"), ("y", &y), ("dy", &"4")],
                &text,
            );
        }
    }

    fn axis_of_time(&self, svg: &mut Markup) {
        let moments = moments(self.duration);
        let between = moments.get(1).copied().unwrap_or(0);
        for moment in moments {
            let x = percent(place(moment, self.duration, HEIGHT));
            let text = time_below(moment, between);
            svg.leaf(
                "text",
                &[("class", &"time"), ("x", &x), ("y", &"100%"), ("dy", &"18")],
                &text,
            );
        }
    }

    fn curves(&self, svg: &mut Markup) {
        let xs: Vec<u32> = self
            .bounds
            .iter()
            .map(|at| place(*at, self.duration, WIDTH))
            .collect();
        for (curve, heights) in self.curves.iter().zip(self.heights()).rev() {
            let (path, kind) = match self.shape {
                Shape::Lines => (line(&xs, &heights), "line"),
                Shape::Area | Shape::Shares => (area(&xs, &heights), "area"),
            };
            if !path.is_empty() {
                let class = format!("{kind} {}", curve.class);
                svg.within("path", &[("class", &class), ("d", &path)], |path| {
                    path.leaf("title", &[], &curve.label)
                });
            }
        }
    }

    /// Of each curve in each column. Shares are as high as they and those below them reach: each is drawn down to the
    /// bottom, behind those below it.
    fn heights(&self) -> Vec<Vec<Option<u32>>> {
        if self.shape == Shape::Shares {
            return stacked(self.curves, self.scale.top());
        }
        let height = |value: &Option<u64>| value.map(|value| self.scale.height(value));
        let curves = self.curves.iter();
        curves
            .map(|curve| curve.values.iter().map(height).collect())
            .collect()
    }
}

/// The top of the axis is in tenths of a percent.
fn stacked(curves: &[Curve], top: u64) -> Vec<Vec<Option<u32>>> {
    let columns = curves.first().map_or(0, |curve| curve.values.len());
    let value = |curve: &Curve, column: usize| curve.values[column].unwrap_or(0);
    let whole = |column: usize| curves.iter().map(|curve| value(curve, column)).sum();
    let wholes: Vec<u64> = (0..columns).map(whole).collect();
    let mut reached = vec![0; columns];
    let heights = curves.iter().map(|curve| {
        let on_top = |column: usize| {
            reached[column] += value(curve, column);
            Some(place(reached[column] * 1_000, wholes[column] * top, HEIGHT)).filter(|_| wholes[column] > 0)
        };
        (0..columns).map(on_top).collect()
    });
    heights.collect()
}

/// From left to right, with gaps.
fn line(xs: &[u32], heights: &[Option<u32>]) -> String {
    let mut path = String::new();
    let mut end = None;
    for (left, right, height) in plateaus(xs, heights) {
        let Some(height) = height else { continue };
        let _ = match end {
            Some((x, before)) if x == left => write!(path, "v{}", i64::from(before) - i64::from(height)),
            _ => write!(path, "M{left} {}", HEIGHT - height),
        };
        let _ = write!(path, "h{}", right - left);
        end = Some((right, height));
    }
    path
}

/// From the bottom, along the heights, to the bottom; nothing if it would be flat.
fn area(xs: &[u32], heights: &[Option<u32>]) -> String {
    let mut path = format!("M0 {HEIGHT}");
    let mut reached = 0;
    for (left, right, height) in plateaus(xs, heights) {
        let height = height.unwrap_or(0);
        let _ = write!(
            path,
            "v{}h{}",
            i64::from(reached) - i64::from(height),
            right - left
        );
        reached = height;
    }
    let _ = write!(path, "V{HEIGHT}z");
    if heights.iter().all(|height| height.unwrap_or(0) == 0) {
        path.clear();
    }
    path
}

/// From where to where it stays at which height.
fn plateaus(xs: &[u32], heights: &[Option<u32>]) -> Vec<(u32, u32, Option<u32>)> {
    let mut plateaus: Vec<(u32, u32, Option<u32>)> = Vec::new();
    for (height, x) in heights.iter().zip(xs.windows(2)) {
        match plateaus.last_mut() {
            Some((_, right, same)) if same == height => *right = x[1],
            _ => plateaus.push((x[0], x[1], *height)),
        }
    }
    plateaus
}

fn event(svg: &mut Markup, label: &Label) {
    let x = percent(label.at);
    let top = label.place.map_or(0, |place| LANE * (place.lane + 1));
    let y = format!("-{top}");
    svg.within("g", &[("class", &"event")], |group| {
        for class in ["halo", "mark"] {
            group.empty(
                "line",
                &[
                    ("class", &class),
                    ("x1", &x),
                    ("x2", &x),
                    ("y1", &y),
                    ("y2", &"100%"),
                ],
            );
        }
        if let Some(place) = label.place {
            let (class, shift) = if place.left {
                ("left", "-4")
            } else {
                ("right", "4")
            };
            let baseline = format!("-{}", top - 10);
            let beside: Attributes = &[("class", &class), ("x", &x), ("y", &baseline), ("dx", &shift)];
            group.within("text", beside, |text| {
                text.words(&label.number);
                text.leaf("tspan", &[("class", &"words")], &format!(" {}", label.words));
            });
        }
    });
}

fn time_below(moment: Micros, between: Micros) -> String {
    const MINUTE: Micros = 60_000_000;
    match between {
        _ if moment == 0 => "0".to_owned(),
        between if between >= 60 * MINUTE => format!("{} h", moment / (60 * MINUTE)),
        between if between >= MINUTE => format!("{} min", moment / MINUTE),
        _ => tick(moment, Unit::Time),
    }
}

/// Of tenths.
fn percent(tenths: u32) -> String {
    match tenths % 10 {
        0 => format!("{}%", tenths / 10),
        tenth => format!("{}.{tenth}%", tenths / 10),
    }
}
