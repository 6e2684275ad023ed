//! Route answers that may be given again, because the guest said so: to whom, for how long, and how many are kept.
//!
//! An answer belongs to all that the guest saw before it gave it: what came with the call, and the attributes that it read.
//! Which ones it reads may depend on what it has read already, so every key holds *all* attributes that any remembered
//! answer has depended on; when an answer depends on a new one, those from before are forgotten. Keys are compared byte
//! by byte: the hash only says where to look.
//!
//! The instance of one worker in one generation has its own, so a swap forgets everything. Room is bounded by
//! [`SETS`], [`KEY_MAX`] and [`EDITS_MAX`]: some 4 MiB when every answer is as large as it may be.

use super::guest::Seen;
use crate::policy::{Edits, Given, RouteAsked, Routed};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Sets of [`WAYS`] places; the hash of a key chooses the set.
const SETS: usize = 2048;
const WAYS: usize = 2;
/// Bytes of a key, beyond which an answer is not kept.
const KEY_MAX: usize = 1024;
/// Bytes of edited values, beyond which an answer is not kept.
const EDITS_MAX: usize = 1024;
/// Stands for the length of a value that is absent.
const ABSENT: u32 = u32::MAX;

/// What one instance has answered.
pub(super) struct Remembered {
    /// Empty until there is something to keep.
    places: Vec<Place>,
    /// The attributes that are in every key.
    depends: Seen,
    /// The key of the question that was looked up last, and its hash.
    key: Vec<u8>,
    hash: u64,
    /// So that nobody outside can choose keys that meet in one set.
    secret: u64,
}

type Place = Option<Box<Answer>>;

struct Answer {
    hash: u64,
    until: Duration,
    key: Vec<u8>,
    routed: Routed,
    edits: Edits,
}

impl Remembered {
    pub(super) fn new(secret: u64) -> Remembered {
        Remembered {
            places: Vec::new(),
            depends: Seen::pushed(),
            key: Vec::new(),
            hash: 0,
            secret,
        }
    }

    /// The answer to the same question, if it was given before and still holds. Its edits are put into `edits`.
    pub(super) fn recall(&mut self, asked: &RouteAsked<'_>, edits: &mut Edits) -> Option<Routed> {
        if self.places.is_empty() {
            return None;
        }
        self.ask(asked);
        let now = asked.asked.now;
        let answer = self.places[set(self.hash)]
            .iter()
            .flatten()
            .find(|answer| answer.hash == self.hash && now < answer.until && answer.key == self.key)?;
        edits.copy_from(&answer.edits);
        Some(Routed {
            given: Given::Remembered,
            ..answer.routed
        })
    }

    /// Keeps an answer that depended on `seen`, if it may be given again.
    pub(super) fn keep(&mut self, asked: &RouteAsked<'_>, seen: Seen, routed: Routed, edits: &Edits) {
        if routed.remember.is_zero() || !seen.is_repeatable() || edits.size() > EDITS_MAX {
            return;
        }
        if self.places.is_empty() {
            self.places.resize_with(SETS * WAYS, || None);
        }
        if !self.depends.covers(seen) {
            self.depends.add(seen);
            self.places.fill_with(|| None);
        }
        self.ask(asked);
        if self.key.len() > KEY_MAX {
            return;
        }
        let now = asked.asked.now;
        let Remembered {
            places, key, hash, ..
        } = self;
        let answer = place(&mut places[set(*hash)], *hash, key, now).get_or_insert_with(|| {
            Box::new(Answer {
                hash: 0,
                until: Duration::ZERO,
                key: Vec::new(),
                routed,
                edits: Edits::default(),
            })
        });
        answer.until = now + routed.remember;
        answer.routed = routed;
        answer.edits.copy_from(edits);
        answer.hash = *hash;
        answer.key.clone_from(key);
    }

    /// Makes the key of a question.
    fn ask(&mut self, asked: &RouteAsked<'_>) {
        let key = &mut self.key;
        key.clear();
        for part in [asked.method, asked.host, asked.path] {
            append(key, Some(part));
        }
        for at in self.depends.attributes() {
            append(key, asked.asked.attributes.get(at).copied().flatten());
        }
        self.hash = xxh3_64_with_seed(key, self.secret);
    }
}

/// Where the answer to a question goes: over an older one to the same question, into a free place, or over the one that ends
/// first.
fn place<'a>(set: &'a mut [Place], hash: u64, key: &[u8], now: Duration) -> &'a mut Place {
    let ends = |place: &Place| match place {
        Some(answer) if answer.hash == hash && answer.key == key => None,
        Some(answer) if now < answer.until => Some(answer.until),
        _ => Some(Duration::ZERO),
    };
    let at = (0..WAYS).min_by_key(|at| ends(&set[*at])).unwrap_or_default();
    &mut set[at]
}

/// The places of the set that a hash chooses.
fn set(hash: u64) -> std::ops::Range<usize> {
    let begin = (hash as usize % SETS) * WAYS;
    begin..begin + WAYS
}

/// Appends a value so that no two lists of values give the same bytes.
fn append(key: &mut Vec<u8>, value: Option<&[u8]>) {
    let length = value.map_or(ABSENT, |value| value.len() as u32);
    key.extend_from_slice(&length.to_ne_bytes());
    key.extend_from_slice(value.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Asked, Change, Message, Target};

    fn asked<'a>(path: &'a [u8], attributes: &'a [Option<&'a [u8]>], now: u64) -> RouteAsked<'a> {
        RouteAsked {
            asked: Asked {
                now: Duration::from_millis(now),
                seed: 1,
                attributes,
            },
            method: b"GET",
            host: b"app.test",
            path,
        }
    }

    fn to(backend: u16, remember: u64) -> Routed {
        Routed {
            target: Some(Target::Backend(backend)),
            remember: Duration::from_millis(remember),
            given: Given::Remembered,
        }
    }

    fn seen(attributes: &[usize]) -> Seen {
        let mut seen = Seen::default();
        attributes.iter().for_each(|at| seen.attribute(*at));
        seen
    }

    #[test]
    fn an_answer_holds_as_long_as_it_says_and_for_the_same_question_only() {
        let mut remembered = Remembered::new(7);
        let mut edits = Edits::default();
        let values = [Some(&b"a"[..]), None, Some(b"x")];
        assert_eq!(remembered.recall(&asked(b"/", &values, 0), &mut edits), None);
        let mut made = Edits::default();
        made.push(Message::Request, 0, Change::Set, "eu");
        remembered.keep(&asked(b"/", &values, 0), seen(&[]), to(1, 100), &made);

        assert_eq!(
            remembered.recall(&asked(b"/", &values, 99), &mut edits),
            Some(to(1, 100))
        );
        assert_eq!(edits, made);
        let unread = [Some(&b"a"[..]), None, Some(b"y")];
        assert!(remembered.recall(&asked(b"/", &unread, 99), &mut edits).is_some());
        assert_eq!(remembered.recall(&asked(b"/", &values, 100), &mut edits), None);
        assert_eq!(remembered.recall(&asked(b"/b", &values, 50), &mut edits), None);
        for other in [[None, None], [Some(&b""[..]), None], [Some(b"a"), Some(b"")]] {
            assert_eq!(
                remembered.recall(&asked(b"/", &other, 50), &mut edits),
                None,
                "{other:?}"
            );
        }
    }

    #[test]
    fn an_attribute_that_was_read_is_a_part_of_the_question() {
        let mut remembered = Remembered::new(7);
        let mut edits = Edits::default();
        let [one, other] = [b"x", b"y"].map(|value| [None, None, Some(&value[..])]);
        remembered.keep(&asked(b"/", &one, 0), seen(&[]), to(0, 100), &edits.clone());
        remembered.keep(&asked(b"/", &one, 0), seen(&[2]), to(1, 100), &edits.clone());
        assert_eq!(
            remembered.recall(&asked(b"/", &one, 1), &mut edits),
            Some(to(1, 100))
        );
        assert_eq!(remembered.recall(&asked(b"/", &other, 1), &mut edits), None);
        // What was kept before this was known may not be right for any question.
        remembered.keep(&asked(b"/b", &one, 0), seen(&[]), to(2, 100), &edits.clone());
        assert_eq!(remembered.recall(&asked(b"/b", &other, 1), &mut edits), None);
    }

    #[test]
    fn what_depends_on_chance_or_time_is_not_kept() {
        let mut remembered = Remembered::new(7);
        let mut drawn = Seen::default();
        drawn.beside_the_request();
        for (seen, routed) in [(drawn, to(1, 100)), (Seen::default(), to(1, 0))] {
            remembered.keep(&asked(b"/", &[], 0), seen, routed, &Edits::default());
            assert_eq!(
                remembered.recall(&asked(b"/", &[], 0), &mut Edits::default()),
                None
            );
        }
    }

    #[test]
    fn room_is_bounded_and_what_is_asked_often_comes_back() {
        let mut remembered = Remembered::new(7);
        let mut edits = Edits::default();
        let long = vec![b'a'; KEY_MAX];
        remembered.keep(
            &asked(&long, &[], 0),
            Seen::default(),
            to(1, 100),
            &Edits::default(),
        );
        assert_eq!(remembered.recall(&asked(&long, &[], 0), &mut edits), None);
        for path in 0..3 * SETS * WAYS {
            let path = path.to_string();
            let question = asked(path.as_bytes(), &[], 0);
            remembered.keep(&question, Seen::default(), to(1, 100), &Edits::default());
            assert!(remembered.recall(&question, &mut edits).is_some());
        }
        assert_eq!(remembered.places.len(), SETS * WAYS);
        assert!(remembered.places.iter().flatten().count() > SETS);
    }
}
