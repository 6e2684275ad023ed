//! What a policy says about a request that is about to wait: where it stands, for how long it may wait, and whether at
//! all. For whatever it does not say, the route's class and offset count, the queue's own limit, and `timeout-queue`.

use super::settings::Micros;
use crate::policy::{Priority, ServerIndex, Standing, Verdict};
use std::time::Duration;

/// A request that is about to wait, as it is without a policy.
#[derive(Clone, Copy, Debug)]
pub struct AboutToWait {
    /// For which server of the exchange's table; `None` for whichever is free first.
    pub server: Option<ServerIndex>,
    /// Requests that wait there already.
    pub queued: u32,
    /// What its route says.
    pub priority: Priority,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ushered {
    /// Where it stands.
    pub priority: Priority,
    /// The most that it may wait from now on, beside `timeout-queue`; zero: not at all.
    pub wait_max: Option<Micros>,
    /// Whether it may wait.
    pub admission: Admission,
}

/// Whether a request may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// It may, if the queue has room.
    #[default]
    Accepted,
    /// It is answered with this status, 429 or 503.
    Rejected {
        /// The status.
        status: u16,
        /// `Retry-After`; `None` as for a full queue.
        seconds: Option<u32>,
    },
}

/// What a policy said about one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said {
    priority: Option<Priority>,
    /// When it has waited for long enough.
    until: Option<Micros>,
    admission: Admission,
}

impl Said {
    /// What `classify` says.
    pub fn classified(&mut self, standing: Standing, now: Micros) {
        self.priority = standing.priority;
        self.end(standing.wait_max, now);
    }

    /// What `admit` says, which is asked after `classify`.
    pub fn judged(&mut self, verdict: Verdict, now: Micros) {
        match verdict {
            Verdict::Accept { wait_max } => self.end(wait_max, now),
            Verdict::Reject { with, retry_after } => {
                self.admission = Admission::Rejected {
                    status: with.status(),
                    seconds: retry_after.map(|time| time.as_secs() as u32), // a day at most
                };
            }
        }
    }

    /// Where a request stands that has this priority by its route.
    pub fn priority(&self, route: Priority) -> Priority {
        self.priority.unwrap_or(route)
    }

    /// Whether it may wait.
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// What becomes of a request that has that priority by its route.
    pub fn over(self, route: Priority, now: Micros) -> Ushered {
        Ushered {
            priority: self.priority(route),
            wait_max: self.until.map(|until| until.saturating_sub(now)),
            admission: self.admission,
        }
    }

    /// Of two ends the earlier one.
    fn end(&mut self, wait_max: Option<Duration>, now: Micros) {
        if let Some(wait) = wait_max {
            let end = now.saturating_add(wait.as_micros() as Micros); // some days at most
            self.until = Some(self.until.map_or(end, |until| until.min(end)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::policy::Rejection;

    const ROUTE: Priority = Priority {
        class: 5,
        offset: -1500,
    };

    #[test]
    fn without_a_word_the_route_counts() {
        let expected = Ushered {
            priority: ROUTE,
            wait_max: None,
            admission: Admission::Accepted,
        };
        assert_eq!(Said::default().over(ROUTE, 10), expected);
    }

    /// what is said replaces the route's, and the earlier of two ends counts, whenever it is looked at.
    #[test]
    fn what_is_said_holds_for_later_waits() {
        let priority = Some(Priority {
            class: -1,
            offset: -1,
        });
        let mut said = Said {
            priority,
            ..Said::default()
        };
        said.end(None, 1_000);
        assert_eq!(said.until, None);
        for wait in [3, 2, 5] {
            said.end(Some(Duration::from_millis(wait)), 1_000);
        }
        let ushered = said.over(ROUTE, 1_500);
        assert_eq!(Some(ushered.priority), priority);
        assert_eq!(ushered.wait_max, Some(1_500));
        assert_eq!(said.over(ROUTE, 9_000).wait_max, Some(0));
    }

    #[test]
    fn who_is_rejected_is_told_with_what() {
        let mut said = Said::default();
        said.judged(
            Verdict::Reject {
                with: Rejection::TooManyRequests,
                retry_after: Some(Duration::from_secs(3)),
            },
            0,
        );
        let rejected = Admission::Rejected {
            status: 429,
            seconds: Some(3),
        };
        assert_eq!(
            (said.admission(), said.over(ROUTE, 0).admission),
            (rejected, rejected)
        );
    }
}
