//! Who asks, when, and for what.

use super::random::{Dice, Span};
use crate::decide::settings::Micros;
use crate::policy::Draw;
use std::fmt::Write as _;

/// Requests of one kind.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Who sends them, and when.
    pub who: Who,
    /// What they look like; `None` where nobody looks at them.
    pub asks: Option<Asks>,
    /// The listener that they come to, by its place; not looked at where there is none.
    pub listener: u16,
    /// From when on.
    pub from: Micros,
    /// Until when; the end of the run if that comes first.
    pub until: Micros,
}

/// Who asks.
#[derive(Clone, Debug)]
pub enum Who {
    /// Clients that wait for a response before they send the next request.
    Clients(Clients),
    /// Requests that come whatever becomes of those before.
    Open(Open),
    /// These requests at these times.
    Script(Vec<Line>),
}

/// Requests that come at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Between two of them.
    pub gap: Span,
    /// So many at once each time; 1 at least.
    pub burst: u32,
    /// Client connections that they are spread over, one after the other; 1 at least.
    pub clients: u32,
}

/// One request of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it comes.
    pub at: Micros,
    /// Which client sends it. Client n is at worker n modulo their number.
    pub client: u32,
    /// What it looks like, where not as its traffic says.
    pub asks: Option<Asks>,
    /// How long its server takes for it, whichever that is, where not as the server's model says.
    pub service: Option<Micros>,
}

/// Clients that wait for a response before they send the next request, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// How many there are.
    pub count: u32,
    /// From a response to the next request.
    pub think: Span,
    /// They come at drawn instants of the first µs, so many.
    pub ramp: Micros,
    /// Requests that each has on its way at a time.
    pub streams: u32,
    /// After so many requests a client comes back as a new one; `None`: never.
    pub session: Option<u32>,
    /// How many of them are there, phase by phase and over again; empty for all of them, always.
    pub phases: Vec<Phase>,
}

/// A time in which so many clients are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// How long; 1 µs at least.
    pub lasts: Micros,
    /// The first so many clients.
    pub clients: u32,
}

/// What requests look like. In all texts `{key}` stands for a key that is drawn for each request, `{client}` for the
/// number of its client, and `{n}` for its own among all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asks {
    /// A token; `GET` mostly.
    pub method: String,
    /// The value of `host`.
    pub host: String,
    /// With the query, if any.
    pub target: String,
    /// Other fields.
    pub headers: Vec<(String, String)>,
    /// Where `{key}` comes from.
    pub keys: Keys,
}

/// The keys of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// There is one: `0`.
    One,
    /// One of these.
    Of(Vec<String>),
    /// A number below this, each as often.
    Uniform(u32),
    /// A number, the first most often.
    Zipf(Zipf),
}

/// Numbers of which the n-th comes as often as 1/nˢ says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zipf {
    /// How likely it is to be below each, in 2⁶⁴.
    cumulative: Vec<u64>,
}

impl Zipf {
    /// So many numbers, 1 at least; `exponent` in hundredths, 100 for the classic one.
    pub fn new(count: u32, exponent: u16) -> Zipf {
        let weight = |n: u32| libm::pow(f64::from(n), -f64::from(exponent) / 100.0);
        let whole: f64 = (1..=count.max(1)).map(weight).sum();
        let mut sum = 0.0;
        let cumulative = (1..=count.max(1))
            .map(|n| {
                sum += weight(n);
                (sum / whole * u64::MAX as f64) as u64
            })
            .collect();
        Zipf { cumulative }
    }

    fn draw(&self, dice: &mut Dice) -> usize {
        let drawn = dice.wide();
        self.cumulative
            .partition_point(|&below| below < drawn)
            .min(self.cumulative.len() - 1)
    }
}

impl Keys {
    /// Writes one.
    pub(super) fn write(&self, dice: &mut Dice, out: &mut String) {
        // Writing to a String does not fail.
        let _ = match self {
            Keys::One => write!(out, "0"),
            Keys::Of(names) => match names.len() {
                0 => write!(out, "0"),
                count => write!(out, "{}", names[dice.draw(count as u32) as usize]),
            },
            Keys::Uniform(count) => write!(out, "{}", dice.draw((*count).max(1))),
            Keys::Zipf(zipf) => write!(out, "{}", zipf.draw(dice)),
        };
    }
}

impl Traffic {
    /// The number of its clients.
    pub(super) fn clients(&self) -> u32 {
        match &self.who {
            Who::Clients(clients) => clients.count,
            Who::Open(open) => open.clients,
            Who::Script(lines) => lines.iter().map(|line| line.client + 1).max().unwrap_or(0),
        }
    }
}

impl Clients {
    /// So many that think so long, with one request at a time, and are there within 10 ms and for good.
    pub fn thinking(count: u32, think: Span) -> Self {
        Clients {
            count,
            think,
            ramp: 10_000,
            streams: 1,
            session: None,
            phases: Vec::new(),
        }
    }

    /// When this client, who would send a request at `now`, does: at once if it is there then, else in the next phase
    /// that has it; `None` if none has.
    pub(super) fn there(&self, client: u32, now: Micros) -> Option<There> {
        if self.phases.is_empty() {
            return Some(There::Now);
        }
        let whole: Micros = self.phases.iter().map(|phase| phase.lasts).sum();
        let mut begins = now - now % whole;
        for phase in self.phases.iter().chain(&self.phases) {
            let ends = begins + phase.lasts;
            if ends > now && client < phase.clients {
                return Some(if begins <= now {
                    There::Now
                } else {
                    There::From(begins)
                });
            }
            begins = ends;
        }
        None
    }
}

/// When a client is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum There {
    Now,
    From(Micros),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_there_in_their_phases() {
        let clients = Clients {
            phases: vec![
                Phase {
                    lasts: 10,
                    clients: 1,
                },
                Phase { lasts: 5, clients: 3 },
            ],
            ..Clients::thinking(4, Span::Constant(1))
        };
        for (client, now, expected) in [
            (0, 0, Some(There::Now)),
            (0, 14, Some(There::Now)),
            (2, 0, Some(There::From(10))),
            (2, 10, Some(There::Now)),
            (2, 15, Some(There::From(25))),
            (2, 29, Some(There::Now)),
            (3, 0, None),
        ] {
            assert_eq!(clients.there(client, now), expected, "client {client} at {now}");
        }
        let always = Clients::thinking(1, Span::Constant(1));
        assert_eq!(always.there(0, 99), Some(There::Now));
    }

    /// The first of a thousand has 1/H(1000) = 13.4 % of all, the second half as much.
    #[test]
    fn the_first_keys_come_most_often() {
        let (zipf, mut dice) = (Zipf::new(1_000, 100), Dice::new(7));
        let mut counts = vec![0_u32; 1_000];
        (0..100_000).for_each(|_| counts[zipf.draw(&mut dice)] += 1);
        assert!((12_700..14_100).contains(&counts[0]), "{}", counts[0]);
        assert!((6_200..7_200).contains(&counts[1]), "{}", counts[1]);
        assert!(counts[500..].iter().sum::<u32>() < 11_000);
    }
}
