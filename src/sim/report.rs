//! What a run showed.

use crate::decide::reuse::{CloseReason, OpenReason};
use crate::decide::settings::Micros;
use crate::policy::{ServerIndex, WorkerId};
use std::fmt;
use std::ops::{AddAssign, Range};

/// What a run showed. Its text ([`fmt::Display`]) is the same for the same cluster and seed, on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed of the run.
    pub seed: u64,
    /// Second by second of virtual time. Responses to what was still on its way when the time was over are in the last
    /// one.
    pub seconds: Vec<Second>,
    /// Connections that each worker has taken over.
    pub taken_by: Vec<u64>,
    /// Connections that each worker has lost to others.
    pub given_by: Vec<u64>,
    /// Requests that each server has had.
    pub served_by: Vec<u64>,
    /// How long those who waited and got a slot have waited.
    pub delays: Delays,
    /// The first decisions ([`Cluster::decisions_max`](super::Cluster::decisions_max)).
    pub decisions: Vec<Decision>,
}

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// What happened in it.
    pub tally: Tally,
    /// Connections in use at its end, all servers together.
    pub used: u32,
    /// Connections parked at its end, all servers together.
    pub idle: u32,
    /// The estimated need at its end, all servers together.
    pub need: u32,
}

/// What happened in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that had a connection.
    pub requests: u64,
    /// Those that had one that was there: parked, private, or with a free stream.
    pub reused: u64,
    /// Of these, by a take-over from a sibling.
    pub taken_over: u64,
    /// Of these, by one more stream of a busy connection.
    pub joined: u64,
    /// Requests that got nothing: no server, or no connection under `strict-maxconn`.
    pub refused: u64,
    /// Requests that had to wait for a slot.
    pub waited: u64,
    /// Those whose time was up meanwhile.
    pub timed_out: u64,
    /// Those whose client left meanwhile.
    pub left: u64,
    /// Waits that were sent back to choose again.
    pub sent_back: u64,
    opened: [u64; OpenReason::COUNT],
    closed: [u64; CloseReason::COUNT],
}

/// How one request came to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Micros,
    /// Whose request, at which worker.
    pub client: u32,
    /// At which worker.
    pub worker: WorkerId,
    /// Which server was chosen.
    pub server: ServerIndex,
    /// The connection, counted from 1 in the order in which they were opened.
    pub connection: u64,
    /// How.
    pub lent: Lent,
}

/// How a request came to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// It was opened for it.
    Opened(OpenReason),
    /// Its client's own: private, or attached to it while it carries streams (POOL-14).
    Attached,
    /// One more stream of a busy connection (POOL-10 b).
    Joined,
    /// Parked by its worker.
    Own,
    /// Parked by this one.
    TakenOver(WorkerId),
}

impl Report {
    /// What happened in all.
    pub fn total(&self) -> Tally {
        self.between(0..self.seconds.len())
    }

    /// What happened in these seconds; those that are not there count nothing.
    pub fn between(&self, seconds: Range<usize>) -> Tally {
        let mut sum = Tally::default();
        for second in self.seconds.iter().take(seconds.end).skip(seconds.start) {
            sum += second.tally;
        }
        sum
    }
}

impl Tally {
    /// Connections that were opened for that reason.
    pub fn opened_for(&self, reason: OpenReason) -> u64 {
        self.opened[reason.index()]
    }

    /// Connections that were closed for that reason.
    pub fn closed_for(&self, reason: CloseReason) -> u64 {
        self.closed[reason.index()]
    }

    /// Connections that were opened.
    pub fn opened(&self) -> u64 {
        self.opened.iter().sum()
    }

    /// Connections that were closed.
    pub fn closed(&self) -> u64 {
        self.closed.iter().sum()
    }

    /// Requests with a connection that was there already, in percent; 0 without requests.
    pub fn reuse_percent(&self) -> f64 {
        self.of_requests(self.reused, 100)
    }

    /// So many of so many requests: `of_requests(tally.opened(), 1_000)` is connections opened per 1,000 requests. 0
    /// without requests.
    pub fn of_requests(&self, part: u64, scale: u32) -> f64 {
        part as f64 * f64::from(scale) / self.requests.max(1) as f64
    }

    pub(super) fn open(&mut self, reason: OpenReason) {
        self.opened[reason.index()] += 1;
    }

    pub(super) fn close(&mut self, reason: CloseReason) {
        self.closed[reason.index()] += 1;
    }
}

/// Times in µs, counted in buckets an eighth of a power of two wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    most: Micros,
}

/// Buckets of one power of two, and the bits that tell them apart.
const PARTS: u64 = 8;
const PART_BITS: u32 = PARTS.trailing_zeros();

impl Delays {
    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest.
    pub fn most(&self) -> Micros {
        self.most
    }

    /// Of all; 0 without any.
    pub fn mean(&self) -> Micros {
        (self.sum / u128::from(self.count.max(1))) as Micros
    }

    /// So many of a hundred are at most this long, to an eighth; 0 without any.
    pub fn percentile(&self, percent: u32) -> Micros {
        let below = (self.count * u64::from(percent)).div_ceil(100);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= below
        });
        bucket.map_or(0, |bucket| end_of(bucket as u64).min(self.most))
    }

    pub(super) fn add(&mut self, delay: Micros) {
        let bucket = bucket_of(delay) as usize;
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(delay);
        self.most = self.most.max(delay);
    }
}

fn bucket_of(delay: Micros) -> u64 {
    let shift = delay.max(1).ilog2().saturating_sub(PART_BITS);
    u64::from(shift) * PARTS + (delay >> shift)
}

/// The longest in a bucket.
fn end_of(bucket: u64) -> Micros {
    if bucket < 2 * PARTS {
        return bucket;
    }
    let shift = bucket / PARTS - 1;
    ((bucket % PARTS + PARTS + 1) << shift) - 1
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.reused += other.reused;
        self.taken_over += other.taken_over;
        self.joined += other.joined;
        self.refused += other.refused;
        self.waited += other.waited;
        self.timed_out += other.timed_out;
        self.left += other.left;
        self.sent_back += other.sent_back;
        let add =
            |sum: &mut [u64], more: &[u64]| sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.opened, &other.opened);
        add(&mut self.closed, &other.closed);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.seconds.last().copied().unwrap_or_default();
        writeln!(f, "seed {}, {} s", self.seed, self.seconds.len())?;
        write!(f, "{}", self.total())?;
        writeln!(
            f,
            "at the end: {} used, {} idle, {} needed",
            last.used, last.idle, last.need
        )?;
        if self.delays.count() > 0 {
            let [half, most] = [50, 99].map(|percent| self.delays.percentile(percent));
            writeln!(
                f,
                "delay in queues: {half} µs at the median, {most} at the 99th percentile, {} at most",
                self.delays.most()
            )?;
        }
        writeln!(f, "taken over by {:?} from {:?}", self.taken_by, self.given_by)?;
        self.decisions
            .iter()
            .try_for_each(|decision| writeln!(f, "{decision}"))
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "requests {}, reused {} ({:.2} %), taken over {}, joined {}, refused {}",
            self.requests,
            self.reused,
            self.reuse_percent(),
            self.taken_over,
            self.joined,
            self.refused
        )?;
        if self.waited > 0 {
            writeln!(
                f,
                "waited {}: {} timed out, {} left, {} sent back",
                self.waited, self.timed_out, self.left, self.sent_back
            )?;
        }
        write!(f, "opened {}", self.opened())?;
        for reason in OpenReason::ALL
            .iter()
            .filter(|reason| self.opened_for(**reason) > 0)
        {
            write!(f, ", {} {}", reason.word(), self.opened_for(*reason))?;
        }
        write!(f, "\nclosed {}", self.closed())?;
        for reason in CloseReason::ALL
            .iter()
            .filter(|reason| self.closed_for(**reason) > 0)
        {
            write!(f, ", {} {}", reason.word(), self.closed_for(*reason))?;
        }
        writeln!(f)
    }
}

/// One line: `12.345 ms  client 3 at worker 1: server 0, connection 7, own`.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:03} ms  client {} at worker {}: server {}, connection {}, ",
            self.at / 1_000,
            self.at % 1_000,
            self.client,
            self.worker.0,
            self.server.0,
            self.connection
        )?;
        match self.lent {
            Lent::Opened(reason) => write!(f, "new: {}", reason.word()),
            Lent::Attached => write!(f, "attached"),
            Lent::Joined => write!(f, "joined"),
            Lent::Own => write!(f, "own"),
            Lent::TakenOver(from) => write!(f, "taken over from {}", from.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(requests: u64, reused: u64) -> Second {
        let mut tally = Tally {
            requests,
            reused,
            ..Tally::default()
        };
        (reused..requests).for_each(|_| tally.open(OpenReason::None));
        Second {
            tally,
            ..Second::default()
        }
    }

    #[test]
    fn seconds_add_up() {
        let report = Report {
            seed: 1,
            seconds: vec![second(10, 5), second(10, 9), second(20, 20)],
            taken_by: Vec::new(),
            given_by: Vec::new(),
            served_by: Vec::new(),
            delays: Delays::default(),
            decisions: Vec::new(),
        };
        let total = report.total();
        assert_eq!((total.requests, total.opened(), total.closed()), (40, 6, 0));
        assert_eq!(total.reuse_percent(), 85.0);
        assert_eq!(report.between(1..9).opened_for(OpenReason::None), 1);
        assert_eq!(report.between(1..2).of_requests(1, 1_000), 100.0);
        assert_eq!(Tally::default().reuse_percent(), 0.0);
    }

    #[test]
    fn delays_are_known_to_an_eighth() {
        let mut delays = Delays::default();
        assert_eq!((delays.percentile(99), delays.mean(), delays.most()), (0, 0, 0));
        (0..1000).for_each(|delay| delays.add(delay));
        assert_eq!((delays.count(), delays.mean(), delays.most()), (1000, 499, 999));
        for percent in [1, 50, 90, 99] {
            let (exact, found) = (u64::from(percent) * 10 - 1, delays.percentile(percent));
            assert!(
                found >= exact && found <= exact + exact / 8 + 1,
                "{percent}: {found}"
            );
        }
        for delay in [0, 1, 7, 8, 15, 16, 17, 31, 32, 1 << 40] {
            let end = end_of(bucket_of(delay));
            assert!(
                end >= delay && bucket_of(end) == bucket_of(delay),
                "{delay}: {end}"
            );
            assert_eq!(bucket_of(end + 1), bucket_of(delay) + 1);
        }
    }
}
