//! Where keys lie: points on a ring, or arcs of a table.

use super::{Mapping, Member};
use std::ops::ControlFlow;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Members by where they lie, as indices into the list that it was made of.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// In order of their place.
    Ring(Box<[Point]>),
    /// Where each member's arc ends, in the order of members.
    Arcs(Box<[u32]>),
}

/// One point of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    at: u32,
    member: u16,
}

impl Layout {
    pub(super) fn new(mapping: Mapping, members: &[Member]) -> Layout {
        match mapping {
            Mapping::Map => Layout::Arcs(members.iter().map(|it| it.before + it.weight).collect()),
            Mapping::Consistent => {
                let points = |(member, at): (&Member, u16)| {
                    let Member { key, weight, .. } = *member;
                    (0..weight).map(move |nth| Point {
                        at: place(xxh3_64_with_seed(&nth.to_le_bytes(), key)),
                        member: at,
                    })
                };
                let mut ring: Vec<_> = members.iter().zip(0..).flat_map(points).collect();
                // Equal places in the order of members: that of their keys.
                ring.sort_unstable();
                Layout::Ring(ring.into())
            }
        }
    }

    /// Shows the members from where a number lies, upwards and once around, at most so many, until one is taken.
    pub(super) fn walk<B>(
        &self,
        number: u64,
        most: usize,
        mut look: impl FnMut(u16) -> ControlFlow<B>,
    ) -> Option<B> {
        match self {
            Layout::Ring(ring) => {
                let (before, after) = ring.split_at(nearest(ring, place(number))?);
                let points = after.iter().chain(before).take(most);
                points.map(|point| point.member).try_for_each(look).break_value()
            }
            Layout::Arcs(ends) => {
                let total = *ends.last()?;
                let at = (number % u64::from(total)) as u32;
                let first = ends.partition_point(|&end| end <= at) as u16;
                let members = (first..ends.len() as u16).chain(0..first).take(most);
                members.into_iter().try_for_each(&mut look).break_value()
            }
        }
    }
}

/// Where a number lies on the ring.
fn place(number: u64) -> u32 {
    (number >> 32) as u32
}

/// The index of the point nearest to a place, before or after it; the one before if both are as near (LB-42).
fn nearest(ring: &[Point], at: u32) -> Option<usize> {
    let last = ring.len().checked_sub(1)?;
    let after = match ring.partition_point(|point| point.at < at) {
        end if end > last => 0,
        after => after,
    };
    let before = after.checked_sub(1).unwrap_or(last);
    let up = ring[after].at.wrapping_sub(at);
    let down = at.wrapping_sub(ring[before].at);
    // The point at the very place lies at no distance upwards.
    Some(if up != 0 && down <= up { before } else { after })
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    fn ring(places: &[u32]) -> Vec<Point> {
        let point = |(at, member): (&u32, u16)| Point { at: *at, member };
        places.iter().zip(0..).map(point).collect()
    }

    /// LB-42: before or after, the one before among equals, and around the end.
    #[test]
    fn the_nearest_point() {
        let points = ring(&[100, 200, 300]);
        let vectors = [
            (100, 0),
            (149, 0),
            (150, 0),
            (151, 1),
            (200, 1),
            (260, 2),
            (1 << 31, 2),
            (u32::MAX, 0),
            (0, 0),
        ];
        for (at, nearest_one) in vectors {
            assert_eq!(nearest(&points, at), Some(nearest_one), "{at}");
        }
        assert_eq!(nearest(&ring(&[7]), 9), Some(0));
        assert_eq!(nearest(&[], 9), None);
    }

    #[test]
    fn the_way_leads_upwards_and_once_around() {
        let way = |layout: &Layout, number: u64, most| {
            let mut seen = Vec::new();
            let end: Option<()> = layout.walk(number, most, |member| {
                seen.push(member);
                ControlFlow::Continue(())
            });
            assert_eq!(end, None);
            seen
        };
        let points = Layout::Ring(ring(&[100, 200, 300]).into());
        assert_eq!(way(&points, 190 << 32, 9), [1, 2, 0]);
        assert_eq!(way(&points, 190 << 32, 2), [1, 2]);
        let arcs = Layout::Arcs([1, 3, 6].into());
        assert_eq!(way(&arcs, 6 * 7 + 1, 9), [1, 2, 0]);
        assert_eq!(way(&arcs, 5, 9), [2, 0, 1]);
        assert_eq!(way(&Layout::Arcs([].into()), 5, 9), Vec::<u16>::new());
    }
}
