//! Asks about a request that is about to wait: where it stands, for how long it may wait, and whether at all.
//!
//! Asked on the worker before the request is in a queue, outside every lock, and never by who serves one; at most once:
//! what was said holds when the request has to wait again. One that finds a slot is never asked about. Without a policy,
//! and for whatever it does not say, the route's class and offset count, the queue's own limit, and `timeout-queue`.

use super::Worker;
use super::attributes;
use super::begin::Incoming;
use super::consult::seed;
use super::policies;
use super::session::Live;
use crate::decide::route::BackendRef;
use crate::http1::RequestHead;
use crate::net::{Address, Connection, Key, Micros};
use crate::policy::{Asked, Fault, Policy, Priority, ServerIndex, Verdict, Waits};
use crate::shared::generation::{AttachedPolicy, BackendEntry};
use std::sync::Arc;
use std::time::Duration;

/// A request that is about to wait, as it is without a policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct AboutToWait {
    /// For which server of the exchange's table; `None` for whichever is free first.
    pub(super) server: Option<ServerIndex>,
    /// Requests that wait there already.
    pub(super) queued: u32,
    /// What its route says.
    pub(super) priority: Priority,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ushered {
    /// Where it stands.
    pub(super) priority: Priority,
    /// The most that it may wait from now on, beside `timeout-queue`; zero: not at all.
    pub(super) wait_max: Option<Micros>,
    /// Whether it may wait.
    pub(super) admission: Admission,
}

/// Whether a request may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may, if the queue has room.
    #[default]
    Accepted,
    /// It is answered with this status, 429 or 503.
    Rejected {
        status: u16,
        /// `Retry-After`; `None` as for a full queue.
        seconds: Option<u32>,
    },
}

/// What an exchange keeps for these questions.
#[derive(Debug, Default)]
pub(super) struct Ushering {
    /// What the policy asked to see; `None` where it is the one that picks, too, and sees the same.
    gathered: Option<Vec<u8>>,
    /// What it said, if it was asked.
    said: Option<Said>,
}

/// What a policy said about one request.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    priority: Option<Priority>,
    /// When it has waited for long enough.
    until: Option<Micros>,
    admission: Admission,
}

impl Ushering {
    /// For a request of which the policy will see this.
    pub(super) fn of(gathered: Option<Vec<u8>>) -> Ushering {
        Ushering { gathered, said: None }
    }

    /// Forgets what the policy asked to see, for another one would read it; gives the buffer back.
    pub(super) fn forget(&mut self) -> Vec<u8> {
        self.gathered.take().unwrap_or_default()
    }
}

impl Said {
    /// Of two ends the earlier one.
    fn end(&mut self, wait_max: Option<Duration>, now: Micros) {
        if let Some(wait) = wait_max {
            let end = now.saturating_add(wait.as_micros() as Micros); // some days at most
            self.until = Some(self.until.map_or(end, |until| until.min(end)));
        }
    }

    /// What becomes of a request that has that priority by its route.
    fn over(self, route: Priority, now: Micros) -> Ushered {
        Ushered {
            priority: self.priority.unwrap_or(route),
            wait_max: self.until.map(|until| until.saturating_sub(now)),
            admission: self.admission,
        }
    }
}

impl Worker {
    /// What becomes of a request that is about to wait. Before it is in the queue, each time that it waits; the first
    /// time, a guest may run.
    pub(super) fn usher(&mut self, exchange: Key, about: &AboutToWait) -> Ushered {
        let known = self.exchanges.get(exchange).and_then(|live| live.ushering.said);
        let said = known.unwrap_or_else(|| self.ask_usher(exchange, about));
        said.over(about.priority, self.now)
    }

    fn ask_usher(&mut self, exchange: Key, about: &AboutToWait) -> Said {
        let mut said = Said::default();
        let Some(attached) = self.usher_of(exchange) else {
            return said;
        };
        let offers = attached.attachment.offers();
        let mut waits = Waits {
            server: about.server,
            queued: about.queued,
            priority: about.priority,
        };
        if offers.classify
            && let Some(standing) = self.put(exchange, |policy, asked| policy.classify(asked, &waits))
        {
            said.priority = standing.priority;
            said.end(standing.wait_max, self.now);
        }
        waits.priority = said.priority.unwrap_or(about.priority);
        if offers.admit
            && let Some(verdict) = self.put(exchange, |policy, asked| policy.admit(asked, &waits))
        {
            match verdict {
                Verdict::Accept { wait_max } => said.end(wait_max, self.now),
                Verdict::Reject { with, retry_after } => {
                    attached.statistics.of(self.id).rejected.count();
                    said.admission = Admission::Rejected {
                        status: with.status(),
                        seconds: retry_after.map(|time| time.as_secs() as u32), // a day at most
                    };
                }
            }
        }
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.ushering.said = Some(said);
        }
        said
    }

    /// The policy that can be asked about the waiting of a request. Its instance knows the current generation only.
    fn usher_of(&self, exchange: Key) -> Option<Arc<AttachedPolicy>> {
        let live = self.exchanges.get(exchange)?;
        (live.generation == self.tables.current())
            .then(|| self.backend(live).queue_policy.clone())
            .flatten()
    }

    /// Puts one question to the policy, and counts what comes of it; `None` where it has no opinion or cannot be asked.
    fn put<R>(
        &mut self,
        exchange: Key,
        question: impl FnOnce(&mut dyn Policy, &Asked<'_>) -> Result<Option<R>, Fault>,
    ) -> Option<R> {
        let (worker, now) = (self.id, self.policy_now());
        let Worker {
            tables,
            exchanges,
            random,
            policies,
            ..
        } = self;
        let live = exchanges.get(exchange)?;
        let entry = &tables.get(live.generation).backends[usize::from(live.backend)];
        let wanted = entry.queue_policy.as_ref()?;
        let gathered = gathered(live, entry)?;
        let (policy, attached) = policies.of_backend(entry.table.id, wanted)?.ask(now)?;
        let count = attached.attachment.offers().attributes.len();
        let values = attributes::values(gathered, count);
        let asked = Asked {
            now,
            seed: seed(random),
            attributes: &values[..count],
        };
        let statistics = attached.statistics.of(worker);
        statistics.calls.count();
        let answer = question(policy, &asked);
        match &answer {
            Ok(Some(_)) => {}
            Ok(None) => statistics.abstained.count(),
            Err(fault) => policies::count(attached, worker, *fault),
        }
        self.after_guest(answer.as_ref().err().copied());
        answer.ok().flatten()
    }

    /// What the policy asked to see that will be asked when the request has to wait; `None` where none will be, or where
    /// it is the one that picks and sees the same.
    pub(super) fn gather_for_usher(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &RequestHead,
    ) -> Option<Vec<u8>> {
        self.gather(incoming, backend, head, |entry| {
            entry.queue_policy.as_ref().filter(|_| !picks_too(entry))
        })
    }
}

/// What is kept of the request for who is asked about its waiting.
fn gathered<'l>(live: &'l Live, entry: &BackendEntry<Connection, Address>) -> Option<&'l [u8]> {
    let kept = if picks_too(entry) {
        &live.attributes
    } else {
        &live.ushering.gathered
    };
    kept.as_deref()
}

/// Whether who is asked about requests that wait is the one that picks servers, too.
fn picks_too(entry: &BackendEntry<Connection, Address>) -> bool {
    match (&entry.policy, &entry.queue_policy) {
        (Some(policy), Some(queue)) => Arc::ptr_eq(&policy.attached, queue) && queue.attachment.offers().pick,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
