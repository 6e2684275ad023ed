//! Where are the names of events written, so that they do not cover each other?
//!
//! In lanes above a drawing. Each has a number, under which it stands in the list of its run; its words follow where there is
//! room. The drawing is as wide as its reader's screen, so room is judged for a narrow one; where it is narrower still, words
//! are not shown.
//!
//! Labels are placed from the right to the left, each where neither its words nor its line meet what stands there: to the
//! right of its line as low as can be, then to the left of it as high as can be, then without words. Only if all of this
//! fails, a line passes through a label.

use super::scale::place;
use crate::decide::settings::Micros;
use std::collections::BTreeSet;

/// Lanes above each other.
const LANES_MAX: usize = 3;
/// Lines drawn in a chart, and lines of the list of a run.
const DRAWN_MAX: usize = 30;
pub(super) const LISTED_MAX: usize = 100;
/// Characters of a label.
const WORDS_MAX: usize = 28;
/// Parts of the width of a drawing, in which the rest is counted.
const WIDTH: u32 = 1_000;
const NUMBER_WIDTH: u32 = 62;

/// An event in a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// In tenths of a percent from the left.
    pub(super) at: u32,
    /// In the list of its run, from 1.
    pub(super) number: usize,
    /// Empty if there is room for the number only.
    pub(super) words: String,
    /// None if there is no room for that either.
    pub(super) place: Option<Place>,
}

/// Where a label stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From the lowest, 0.
    pub(super) lane: usize,
    /// Whether it stands to the left of its line.
    pub(super) left: bool,
    span: (u32, u32),
}

/// How wide a drawing is, at least, if words are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// It has a page for itself.
    Page,
    /// It has another one beside it.
    Half,
}

/// The events in the order in which they happen.
pub(super) fn in_order(events: &[(Micros, String)]) -> Vec<&(Micros, String)> {
    let mut events: Vec<_> = events.iter().collect();
    events.sort_by_key(|(at, _)| *at);
    events
}

/// Those that are drawn.
pub(super) fn labels(events: &[(Micros, String)], duration: Micros, room: Room) -> Vec<Label> {
    let events = in_order(events);
    let numbered = events.iter().zip(1..).take(DRAWN_MAX);
    let drawn: Vec<_> = numbered.filter(|((at, _), _)| *at <= duration).collect();
    let mut labels: Vec<Label> = Vec::new();
    for ((at, words), number) in drawn.into_iter().rev() {
        labels.push(label(
            place(*at, duration, WIDTH),
            number,
            shortened(words),
            room,
            &labels,
        ));
    }
    labels.reverse();
    lowered(labels)
}

fn label(at: u32, number: usize, words: String, room: Room, placed: &[Label]) -> Label {
    let width = NUMBER_WIDTH + room.of_character() * words.chars().count() as u32;
    let bare = right_of(at, NUMBER_WIDTH);
    let mut with_words = right_of(at, width);
    with_words.retain(|place| place.span.1 <= WIDTH);
    with_words.extend(left_of(at, width));
    let free = |place: &&Place| placed.iter().all(|other| !covers(place, other));
    let clear = |place: &&Place| free(place) && placed.iter().all(|other| !crosses(at, place, other));
    let found = |places: &[Place], fits: &dyn Fn(&&Place) -> bool| places.iter().find(fits).copied();
    let said = |place| (words.clone(), Some(place));
    let (words, place) = found(&with_words, &clear)
        .map(said)
        .or_else(|| found(&bare, &clear).map(|place| (String::new(), Some(place))))
        .or_else(|| found(&with_words, &free).map(said))
        .unwrap_or_else(|| (String::new(), found(&bare, &free)));
    Label {
        at,
        number,
        words,
        place,
    }
}

/// From the lowest lane upwards.
fn right_of(at: u32, width: u32) -> Vec<Place> {
    let (left, span) = (false, (at, at + width));
    (0..LANES_MAX).map(|lane| Place { lane, left, span }).collect()
}

/// From the highest lane downwards, if there is room at all.
fn left_of(at: u32, width: u32) -> Vec<Place> {
    let Some(begin) = at.checked_sub(width) else {
        return Vec::new();
    };
    let (left, span) = (true, (begin, at));
    (0..LANES_MAX)
        .rev()
        .map(|lane| Place { lane, left, span })
        .collect()
}

/// Whether they stand in the same lane and at the same place.
fn covers(place: &Place, other: &Label) -> bool {
    let overlap = |it: Place| it.lane == place.lane && it.span.0 < place.span.1 && place.span.0 < it.span.1;
    other.place.is_some_and(overlap)
}

/// Whether the line of one passes through the label of the other.
fn crosses(at: u32, place: &Place, other: &Label) -> bool {
    let inside = |at: u32, span: (u32, u32)| span.0 < at && at < span.1;
    other.place.is_some_and(|it| {
        (it.lane >= place.lane && inside(other.at, place.span))
            || (place.lane >= it.lane && inside(at, it.span))
    })
}

/// Lanes that nobody needs are left out.
fn lowered(mut labels: Vec<Label>) -> Vec<Label> {
    let used: BTreeSet<usize> = labels
        .iter()
        .filter_map(|label| label.place)
        .map(|place| place.lane)
        .collect();
    for place in labels.iter_mut().filter_map(|label| label.place.as_mut()) {
        place.lane = used.range(..place.lane).count();
    }
    labels
}

impl Room {
    fn of_character(self) -> u32 {
        match self {
            Room::Page => 11,
            Room::Half => 16,
        }
    }
}

fn shortened(words: &str) -> String {
    if words.chars().count() <= WORDS_MAX {
        return words.to_owned();
    }
    words.chars().take(WORDS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number, lane, side, words.
    fn shown(events: &[(Micros, &str)]) -> Vec<String> {
        let events: Vec<_> = events
            .iter()
            .map(|(at, words)| (*at, (*words).to_owned()))
            .collect();
        let show = |label: Label| {
            let place = label
                .place
                .map(|place| format!("{} {}", place.lane, if place.left { "left" } else { "right" }));
            format!("{} {}: {}", label.number, place.unwrap_or_default(), label.words)
        };
        labels(&events, 100, Room::Half).into_iter().map(show).collect()
    }

    #[test]
    fn labels_far_apart_share_a_lane() {
        assert_eq!(
            shown(&[(10, "slow"), (50, "fast")]),
            ["1 0 right: slow", "2 0 right: fast"]
        );
    }

    #[test]
    fn no_line_passes_through_a_label_while_there_is_room() {
        let events = [(36, "fast"), (35, "slow"), (96, "the end is near"), (90, "back")];
        let expected = [
            "1 1 right: slow",
            "2 0 right: fast",
            "3 1 left: back",
            "4 2 left: the end is near",
        ];
        assert_eq!(shown(&events), expected);
    }

    #[test]
    fn a_label_alone_is_in_the_lowest_lane() {
        assert_eq!(shown(&[(98, "server c is back")]), ["1 0 left: server c is back"]);
        assert!(shown(&[(101, "after the end")]).is_empty());
    }

    #[test]
    fn where_there_is_no_room_the_number_is_enough() {
        let crowd: Vec<(Micros, &str)> = (40..50).map(|at| (at, "what happened here is long")).collect();
        let labels = shown(&crowd);
        assert_eq!(labels.len(), 10);
        assert!(
            labels.iter().any(|label| label.ends_with("right: ")),
            "{labels:?}"
        );
        assert!(labels.iter().any(|label| label.ends_with(" : ")), "{labels:?}");
        assert_eq!(shortened(&"é".repeat(40)).chars().count(), WORDS_MAX);
    }
}
