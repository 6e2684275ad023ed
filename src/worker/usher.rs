//! Asks about a request that is about to wait: where it stands, for how long it may wait, and whether at all.
//!
//! Asked on the worker before the request enters a queue, never by who serves one, and at most once: what was said holds
//! when the request has to wait again. One that finds a slot at once is never asked about. Without a policy, and for
//! whatever it does not say, the route's class and offset count, the queue's own limit, and `timeout-queue`.

use super::Worker;
use super::attributes;
use super::begin::Incoming;
use super::consult::seed;
use super::policies;
use crate::decide::route::BackendRef;
use crate::http1::RequestHead;
use crate::net::{Key, Micros};
use crate::policy::{Asked, Fault, Policy, Priority, ServerIndex, Verdict, Waits};
use crate::shared::generation::AttachedPolicy;
use std::sync::Arc;
use std::time::Duration;

/// A request that is about to wait, as it is without a policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct AboutToWait {
    /// For which server of the exchange's table; `None` for whichever is free first.
    pub(super) server: Option<ServerIndex>,
    /// Requests that wait there already.
    pub(super) queued: u32,
    /// Its route's `priority-class`.
    pub(super) class: i16,
    /// Its route's `priority-offset` in µs.
    pub(super) offset: i64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ushered {
    /// The lowest is served first.
    pub(super) class: i16,
    /// In µs: within its class it stands as if it had come so much later.
    pub(super) offset: i64,
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

    /// The buffer that it kept.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.gathered.unwrap_or_default()
    }
}

impl Said {
    /// Of two ends the earlier one.
    fn end(&mut self, wait_max: Option<Duration>, now: Micros) {
        if let Some(wait) = wait_max {
            let end = now.saturating_add(wait.as_micros() as Micros);
            self.until = Some(self.until.map_or(end, |until| until.min(end)));
        }
    }

    /// What becomes of a request that is as `place` says otherwise.
    fn over(self, place: &AboutToWait, now: Micros) -> Ushered {
        let (class, offset) = match self.priority {
            Some(priority) => (priority.class, i64::from(priority.offset) * 1000),
            None => (place.class, place.offset),
        };
        Ushered {
            class,
            offset,
            wait_max: self.until.map(|until| until.saturating_sub(now)),
            admission: self.admission,
        }
    }
}

impl Worker {
    /// What becomes of a request that is about to wait. Once for each time that it does, before it is in the queue and
    /// without any lock; a guest may run.
    pub(super) fn usher(&mut self, exchange: Key, place: &AboutToWait) -> Ushered {
        let known = self.exchanges.get(exchange).and_then(|live| live.ushering.said);
        let said = known.unwrap_or_else(|| self.ask_usher(exchange, place));
        said.over(place, self.now)
    }

    fn ask_usher(&mut self, exchange: Key, place: &AboutToWait) -> Said {
        let mut said = Said::default();
        let Some(attached) = self.usher_of(exchange) else {
            return said;
        };
        let offers = attached.attachment.offers();
        let mut waits = Waits {
            server: place.server,
            queued: place.queued,
            priority: Priority {
                class: place.class,
                offset: (place.offset / 1000) as i32, // within OFFSETS by the range of its key
            },
        };
        if offers.classify
            && let Some(standing) = self.put(exchange, |policy, asked| policy.classify(asked, &waits))
        {
            said.priority = standing.priority;
            said.end(standing.wait_max, self.now);
        }
        waits.priority = said.priority.unwrap_or(waits.priority);
        if offers.admit
            && let Some(verdict) = self.put(exchange, |policy, asked| policy.admit(asked, &waits))
        {
            match verdict {
                Verdict::Accept { wait_max } => said.end(wait_max, self.now),
                Verdict::Reject { with, retry_after } => {
                    attached.statistics.of(self.id).rejected.count();
                    said.admission = Admission::Rejected {
                        status: with.status(),
                        seconds: retry_after.map(|time| time.as_secs() as u32), // at most a day
                    };
                }
            }
        }
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.ushering.said = Some(said);
        }
        said
    }

    /// The policy that can be asked about the waiting of a request. Its instance knows the current generation only: one
    /// that began before waits as if there were no policy.
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
        let gathered = live.ushering.gathered.as_ref().or(live.attributes.as_ref())?;
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
    /// it is the one that picks.
    pub(super) fn gather_for_usher(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &RequestHead,
    ) -> Option<Vec<u8>> {
        self.gather(incoming, backend, head, |entry| {
            let attached = entry.queue_policy.as_ref()?;
            let picks = entry.policy.as_ref().is_some_and(|policy| {
                Arc::ptr_eq(&policy.attached, attached) && attached.attachment.offers().pick
            });
            (!picks).then_some(attached)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: AboutToWait = AboutToWait {
        server: None,
        queued: 3,
        class: 5,
        offset: -1500,
    };

    #[test]
    fn without_a_word_the_route_counts() {
        let expected = Ushered {
            class: 5,
            offset: -1500,
            wait_max: None,
            admission: Admission::Accepted,
        };
        assert_eq!(Said::default().over(&PLACE, 10), expected);
    }

    /// what is said replaces the route's, and the earlier of two ends counts, whenever it is looked at.
    #[test]
    fn what_is_said_holds_for_later_waits() {
        let mut said = Said {
            priority: Some(Priority {
                class: -1,
                offset: -1,
            }),
            ..Said::default()
        };
        said.end(None, 1_000);
        assert_eq!(said.until, None);
        said.end(Some(Duration::from_millis(3)), 1_000);
        said.end(Some(Duration::from_millis(2)), 1_000);
        said.end(Some(Duration::from_millis(5)), 1_000);
        let ushered = said.over(&PLACE, 1_500);
        assert_eq!((ushered.class, ushered.offset), (-1, -1000));
        assert_eq!(ushered.wait_max, Some(1_500));
        assert_eq!(said.over(&PLACE, 9_000).wait_max, Some(0));
    }
}
