//! Whether a policy is worth asking: strikes, quarantine, and its way back. One for each attachment, shared by all
//! workers; pure, the time is an argument.
//!
//! ```text
//!  open ──3 deadline cuts, or 20 other strikes (a planner: 3), within 10 s; or slow──► shut for 1 s, 2 s, 4 s … 60 s
//!  shut ──time──► on probation for 10 s ──one strike──► shut, twice as long
//!                                      └─time──► open, and the next pause is 1 s again
//! ```
//!
//! A fault among many good answers is no strike (a request of death must not take the policy from all others), except
//! a cut by the clock, which has already cost somebody time.

use crate::policy::Fault;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Deadline cuts within [`STRIKES_WITHIN`] that shut.
const CUTS_MAX: usize = 3;
/// Other strikes within [`STRIKES_WITHIN`] that shut.
const STRIKES_MAX: usize = 20;
/// The same for a policy that is asked a few times a second at most.
const STRIKES_MAX_SELDOM: usize = 3;
const STRIKES_WITHIN: Duration = Duration::from_secs(10);
/// Good answers of an instance before a fault that make it an accident.
const ACCIDENT_AFTER: u32 = 32;
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
const PROBATION: Duration = Duration::from_secs(10);

/// The state of one attachment.
#[derive(Debug)]
pub(super) struct Health {
    strikes_max: usize,
    /// Nanoseconds until when it is shut; 0 when it is open.
    shut_until: AtomicU64,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    cuts: VecDeque<Duration>,
    strikes: VecDeque<Duration>,
    pause: Option<Duration>,
    probation_until: Duration,
}

/// What [`Health::look`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Open,
    Shut,
    /// It was shut until now, and this is the first to see it open.
    Reopened,
}

impl Health {
    /// Of what is asked for requests.
    pub(super) fn new() -> Health {
        Health {
            strikes_max: STRIKES_MAX,
            shut_until: AtomicU64::new(0),
            record: Mutex::default(),
        }
    }

    /// Of what is asked on a tick.
    pub(super) fn asked_seldom() -> Health {
        Health {
            strikes_max: STRIKES_MAX_SELDOM,
            ..Health::new()
        }
    }

    /// Whether it may be asked: one load unless it is shut.
    pub(super) fn look(&self, now: Duration) -> Look {
        let until = self.shut_until.load(Ordering::Relaxed);
        match until {
            0 => Look::Open,
            _ if nanoseconds(now) < until => Look::Shut,
            _ => self.reopen(until, now),
        }
    }

    /// Whether [`Self::look`] would let it be asked.
    pub(super) fn is_open(&self, now: Duration) -> bool {
        nanoseconds(now) >= self.shut_until.load(Ordering::Relaxed)
    }

    fn reopen(&self, until: u64, now: Duration) -> Look {
        let mut record = self.record.lock();
        let first = self
            .shut_until
            .compare_exchange(until, 0, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if !first {
            return Look::Open;
        }
        record.probation_until = now + PROBATION;
        Look::Reopened
    }

    /// Takes note of a fault after so many good answers of the same instance. `Some` if it is shut from now on.
    pub(super) fn strike(&self, fault: Fault, good: u32, now: Duration) -> Option<Duration> {
        let hard = matches!(fault, Fault::Deadline | Fault::Slow);
        if matches!(fault, Fault::Quarantined | Fault::Budget) || (good >= ACCIDENT_AFTER && !hard) {
            return None;
        }
        let mut record = self.record.lock();
        if self.shut_until.load(Ordering::Relaxed) != 0 {
            return None;
        }
        if record.is_enough(fault, self.strikes_max, now) {
            let pause = record.next_pause(now);
            self.shut_until
                .store(nanoseconds(now + pause).max(1), Ordering::Relaxed);
            return Some(pause);
        }
        None
    }
}

impl Record {
    fn is_enough(&mut self, fault: Fault, strikes_max: usize, now: Duration) -> bool {
        if fault == Fault::Slow || now < self.probation_until {
            return true;
        }
        let (list, most) = match fault {
            Fault::Deadline => (&mut self.cuts, CUTS_MAX),
            _ => (&mut self.strikes, strikes_max),
        };
        list.push_back(now);
        while list
            .front()
            .is_some_and(|begun| now.saturating_sub(*begun) > STRIKES_WITHIN)
        {
            list.pop_front();
        }
        list.len() >= most
    }

    fn next_pause(&mut self, now: Duration) -> Duration {
        let relapse = now < self.probation_until;
        let pause = match self.pause {
            Some(last) if relapse => (last * 2).min(PAUSE_MAX),
            _ => PAUSE_MIN,
        };
        self.pause = Some(pause);
        self.cuts.clear();
        self.strikes.clear();
        pause
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How often something dear may be done: `burst` at once, `rate` a second on average.
#[derive(Debug)]
pub(super) struct Bucket {
    full: Duration,
    each: Duration,
    /// When the bucket will have been full again; what lies between then and now has been taken.
    full_at: Duration,
}

impl Bucket {
    pub(super) fn new(rate: u32, burst: u32) -> Bucket {
        let each = Duration::from_secs(1) / rate;
        Bucket {
            full: each * burst,
            each,
            full_at: Duration::ZERO,
        }
    }

    pub(super) fn take(&mut self, now: Duration) -> bool {
        let after = self.full_at.max(now) + self.each;
        let fits = after <= now + self.full;
        if fits {
            self.full_at = after;
        }
        fits
    }
}

/// The mean of sampled times, smoothed. A sample counts four times the limit at most, so that a thread that the system
/// put aside in the middle of a call does not make its guest slow.
#[derive(Debug, Default)]
pub(super) struct Mean {
    nanoseconds: f64,
    samples: u32,
}

/// Samples before a mean is believed, and over how many it is smoothed.
const SAMPLES_MIN: u32 = 16;
const SMOOTHED: f64 = 32.0;

impl Mean {
    /// Adds a sample; says whether the mean is above the limit.
    pub(super) fn add(&mut self, sample: Duration, max: Duration) -> bool {
        let (sample, max) = (sample.as_nanos() as f64, max.as_nanos() as f64);
        self.samples = self.samples.saturating_add(1);
        let weight = f64::from(self.samples).min(SMOOTHED);
        self.nanoseconds += (sample.min(max * 4.0) - self.nanoseconds) / weight;
        self.samples >= SAMPLES_MIN && self.nanoseconds > max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_third_cut_within_ten_seconds_shuts() {
        let health = Health::new();
        assert_eq!(health.strike(Fault::Deadline, 1000, at(0)), None);
        assert_eq!(health.strike(Fault::Deadline, 1000, at(9_000)), None);
        assert_eq!(
            health.strike(Fault::Deadline, 1000, at(10_001)),
            None,
            "the first is too old"
        );
        assert_eq!(health.strike(Fault::Deadline, 1000, at(10_002)), Some(at(1000)));
        assert_eq!(health.look(at(11_000)), Look::Shut);
        assert_eq!(health.look(at(11_002)), Look::Reopened);
        assert_eq!(health.look(at(11_003)), Look::Open);
    }

    #[test]
    fn a_relapse_doubles_the_pause_and_time_heals() {
        let health = Health::new();
        for _ in 1..STRIKES_MAX {
            assert_eq!(health.strike(Fault::Trap, 0, at(0)), None);
        }
        assert_eq!(health.strike(Fault::Trap, 0, at(0)), Some(at(1000)));
        let mut now = at(1000);
        for pause in [2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(health.look(now), Look::Reopened);
            assert_eq!(
                health.strike(Fault::UnknownServer, 0, now),
                Some(at(pause * 1000))
            );
            now += at(pause * 1000);
        }
        assert_eq!(health.look(now), Look::Reopened);
        let healed = now + PROBATION;
        assert_eq!(health.strike(Fault::Trap, 0, healed), None);
        for _ in 2..STRIKES_MAX {
            health.strike(Fault::Trap, 0, healed);
        }
        assert_eq!(health.strike(Fault::Trap, 0, healed), Some(PAUSE_MIN));
    }

    #[test]
    fn what_is_asked_seldom_is_shut_by_its_third_strike() {
        let health = Health::asked_seldom();
        assert_eq!(health.strike(Fault::Trap, 0, at(0)), None);
        assert_eq!(health.strike(Fault::HostBytes, 0, at(1000)), None);
        assert_eq!(health.strike(Fault::Plan, 0, at(2000)), Some(PAUSE_MIN));
    }

    #[test]
    fn an_accident_is_no_strike_but_slowness_shuts_at_once() {
        let health = Health::new();
        for _ in 0..1000 {
            assert_eq!(health.strike(Fault::Trap, 99, at(5)), None);
        }
        assert_eq!(health.strike(Fault::Slow, 99, at(5)), Some(PAUSE_MIN));
        assert_eq!(health.strike(Fault::Slow, 99, at(6)), None, "shut already");
    }

    #[test]
    fn a_bucket_has_its_burst_and_its_rate() {
        let mut bucket = Bucket::new(10, 3);
        let taken = |bucket: &mut Bucket, now| (0..10).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(&mut bucket, at(5000)), 3);
        assert_eq!(taken(&mut bucket, at(5099)), 0);
        assert_eq!(taken(&mut bucket, at(5100)), 1);
        assert_eq!(taken(&mut bucket, at(9000)), 3);
    }

    #[test]
    fn one_stall_is_not_slowness() {
        let max = Duration::from_micros(20);
        let mut mean = Mean::default();
        for _ in 0..100 {
            assert!(!mean.add(Duration::from_micros(1), max));
        }
        assert!(!mean.add(Duration::from_millis(50), max));
        assert!((0..40).any(|_| mean.add(Duration::from_micros(60), max)));
    }
}
