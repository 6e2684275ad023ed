//! How do a thousand points become as many columns as an eye can tell apart?
//!
//! Neighbours become one column. What is counted in a step (requests, failures, connections) is summed, what is a state or a
//! percentile is the highest of them: no peak is lost, and a column is never lower than a step of it.

use super::Point;
use crate::decide::settings::Micros;

/// Steps beside each other, as they are drawn.
pub(super) struct Columns {
    /// Steps in a column; the last one may have fewer.
    pub(super) each: usize,
    /// What they show.
    pub(super) points: Vec<Point>,
    /// Where they begin, and where the last one ends.
    pub(super) bounds: Vec<Micros>,
}

impl Columns {
    /// At most so many.
    pub(super) fn of(points: &[Point], step: Micros, columns_max: usize) -> Columns {
        let each = points.len().div_ceil(columns_max).max(1);
        let ends = (each..points.len()).step_by(each).chain([points.len()]);
        let bounds = std::iter::once(0).chain(ends.filter(|end| *end > 0));
        Columns {
            each,
            points: points.chunks(each).map(merged).collect(),
            bounds: bounds.map(|steps| step.saturating_mul(steps as u64)).collect(),
        }
    }

    /// How long each one is, beside what it shows.
    pub(super) fn with_durations(&self) -> impl Iterator<Item = (&Point, Micros)> {
        let durations = self.bounds.windows(2).map(|pair| pair[1] - pair[0]);
        self.points.iter().zip(durations)
    }
}

fn merged(points: &[Point]) -> Point {
    let mut all = points[0].clone();
    for point in &points[1..] {
        each(&mut all.requests, &point.requests, u32::saturating_add);
        each(&mut all.in_flight, &point.in_flight, u32::max);
        all.waiting = all.waiting.max(point.waiting);
        for percentile in 0..3 {
            all.latency[percentile] = all.latency[percentile].max(point.latency[percentile]);
            all.queueing[percentile] = all.queueing[percentile].max(point.queueing[percentile]);
        }
        all.failed = all.failed.saturating_add(point.failed);
        all.reused = all.reused.saturating_add(point.reused);
        all.opened = all.opened.saturating_add(point.opened);
    }
    all
}

fn each(into: &mut [u32], from: &[u32], join: fn(u32, u32) -> u32) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = join(*into, *from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(number: u32) -> Point {
        Point {
            requests: vec![1, number],
            in_flight: vec![number, 9 - number],
            waiting: number,
            latency: [0, 5, u64::from(number)],
            failed: 1,
            opened: number,
            ..Point::default()
        }
    }

    #[test]
    fn counts_are_summed_and_peaks_are_kept() {
        let points: Vec<Point> = (0..7).map(point).collect();
        let columns = Columns::of(&points, 100, 3);
        assert_eq!((columns.each, columns.points.len()), (3, 3));
        assert_eq!(columns.bounds, [0, 300, 600, 700]);
        let first = &columns.points[0];
        assert_eq!((&first.requests, &first.in_flight), (&vec![3, 3], &vec![2, 9]));
        assert_eq!((first.waiting, first.latency), (2, [0, 5, 2]));
        assert_eq!((first.failed, first.opened, first.reused), (3, 3, 0));
        let durations: Vec<Micros> = columns.with_durations().map(|(_, it)| it).collect();
        assert_eq!(durations, [300, 300, 100]);
    }

    #[test]
    fn few_points_stay_as_they_are() {
        let points: Vec<Point> = (0..5).map(point).collect();
        let columns = Columns::of(&points, 100, 5);
        assert_eq!((columns.each, &columns.points), (1, &points));
        assert_eq!(columns.bounds, [0, 100, 200, 300, 400, 500]);
    }

    #[test]
    fn no_points_are_no_columns() {
        let columns = Columns::of(&[], 100, 5);
        assert!(columns.points.is_empty() && columns.with_durations().next().is_none());
        assert_eq!(columns.bounds, [0]);
    }
}
