//! Whether every one of some equal servers gets its share over a long run, also after one of them was slow for a while.
//!
//! The trap is a balancer that takes the server with the lowest smoothed latency: one that was slow once is never asked
//! again, so that its figure never gets better.

use super::load::{self, Got, Load, SERVERS, SLOW, SLOWER};
use super::subject::{Hook, Stopped, Subject};
use super::{Seen, Verdict};

/// Below such a part of its fair share, in percent, a server starves; below the other it may.
const STARVES: u64 = 25;
const HUNGRY: u64 = 50;

pub(super) fn check(subject: &mut Subject<'_>) -> Result<Vec<Seen>, Stopped> {
    if subject.offered(&[Hook::Pick, Hook::Plan]).is_empty() {
        return Ok(vec![Seen::nothing("it chooses no server")]);
    }
    let mut worst: Option<Share> = None;
    for (seed, order) in [(1, [0, 1, 2, 3, 4]), (2, [3, 0, 4, 2, SLOW])] {
        let seed = subject.effort.seed + seed;
        let got = load::run(subject, &Load { seed, order })?;
        if got.chosen == 0 {
            return Ok(vec![Seen::nothing("it never had an opinion about equal servers")]);
        }
        let seconds = subject.effort.seconds;
        let least = shares(&got, seconds).min_by_key(|share| share.percent());
        worst = worst.into_iter().chain(least).min_by_key(Share::percent);
    }
    Ok(worst.iter().map(Share::seen).collect())
}

/// What one server got.
struct Share {
    server: usize,
    got: u64,
    all: u64,
    when: String,
}

/// What each server got before one was slow, and afterwards.
fn shares(got: &Got, seconds: u32) -> impl Iterator<Item = Share> {
    let after = format!("s{SLOW} answered {SLOWER} times slower for {seconds} s and is fast again");
    let times = [(got.before, "from the start".to_owned()), (got.after, after)];
    times.into_iter().flat_map(|(counts, when)| {
        let all = counts.iter().sum();
        counts.into_iter().enumerate().map(move |(server, got)| Share {
            server,
            got,
            all,
            when: when.clone(),
        })
    })
}

impl Share {
    fn fair(&self) -> u64 {
        self.all / SERVERS as u64
    }

    /// Of its fair share.
    fn percent(&self) -> u64 {
        self.got * 100 / self.fair().max(1)
    }

    fn seen(&self) -> Seen {
        let verdict = match self.percent() {
            ..STARVES => Verdict::Failed,
            STARVES..HUNGRY => Verdict::Warning,
            _ => Verdict::Ok,
        };
        let Share {
            server,
            got,
            all,
            when,
            ..
        } = self;
        let figure = format!(
            "s{server} got the least: {got} of {all} requests, {} % of a fair share",
            self.percent()
        );
        Seen::new(verdict, figure, format!("{}; {when}", load::SITUATION))
    }
}
