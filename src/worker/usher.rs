//! Who may wait, for how long, and where in the order: asked when a request is about to wait, before it is in a queue.
//!
//! Asked on the worker that has the request and outside every lock, never by who serves a queue. A request that finds a
//! slot at once is never asked about. Without a policy, and for whatever it does not say, the route's class and offset
//! count, the queue's own limit, and `timeout-queue`.

use super::Worker;
use super::attributes;
use super::begin::Incoming;
use super::consult::seed;
use super::policies;
use super::session::Live;
use crate::decide::route::BackendRef;
use crate::http1::RequestHead;
use crate::net::{Address, Connection, Key, Micros};
use crate::policy::{Asked, Fault, Policy, Priority, ServerIndex, Verdict as Said, Waits};
use crate::shared::generation::{AttachedPolicy, BackendEntry};
use std::sync::Arc;
use std::time::Duration;

/// How a request may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ushered {
    /// Where it stands.
    pub(super) priority: Priority,
    /// The most that it may wait from now on, if that is limited beyond `timeout-queue`; 0: not at all.
    pub(super) wait_max: Option<Micros>,
    /// Whether it may at all.
    pub(super) verdict: Verdict,
}

/// Whether a request may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may, if the queue has room.
    Accept,
    /// It is answered.
    Reject {
        /// 429 or 503.
        status: u16,
        /// Seconds of `Retry-After`; `None` as for a full queue.
        retry_after: Option<u32>,
    },
}

impl Ushered {
    /// As it is without a policy.
    fn by_route(priority: Priority) -> Ushered {
        Ushered {
            priority,
            wait_max: None,
            verdict: Verdict::Accept,
        }
    }

    /// Of two limits the lower one.
    fn limit(&mut self, wait_max: Option<Duration>) {
        if let Some(wait) = wait_max {
            let wait = wait.as_micros() as Micros; // some days at most
            self.wait_max = Some(self.wait_max.map_or(wait, |other| other.min(wait)));
        }
    }
}

impl Worker {
    /// How a request may wait for a slot of `place`, a server of its table, or of any; it has that priority by its
    /// route, and so many wait there already. Once for each request: a guest may run.
    pub(super) fn usher(
        &mut self,
        exchange: Key,
        place: Option<ServerIndex>,
        queued: u32,
        priority: Priority,
    ) -> Ushered {
        let mut ushered = Ushered::by_route(priority);
        let Some(attached) = self.usher_of(exchange) else {
            return ushered;
        };
        let offers = attached.attachment.offers();
        let mut waits = Waits {
            server: place,
            queued,
            priority,
        };
        if offers.classify
            && let Some(standing) = self.put(exchange, |policy, asked| policy.classify(asked, &waits))
        {
            ushered.priority = standing.priority.unwrap_or(priority);
            ushered.limit(standing.wait_max);
        }
        waits.priority = ushered.priority;
        if offers.admit
            && let Some(verdict) = self.put(exchange, |policy, asked| policy.admit(asked, &waits))
        {
            match verdict {
                Said::Accept { wait_max } => ushered.limit(wait_max),
                Said::Reject { with, retry_after } => {
                    attached.statistics.of(self.id).rejected.count();
                    ushered.verdict = Verdict::Reject {
                        status: with.status(),
                        retry_after: retry_after.map(|time| time.as_secs() as u32), // a day at most
                    };
                }
            }
        }
        ushered
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
        &live.usher_attributes
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

    /// the shorter of two limits counts, and none is none.
    #[test]
    fn the_lower_limit_counts() {
        let limit = |limits: &[Option<u64>]| {
            let mut ushered = Ushered::by_route(Priority::default());
            for limit in limits {
                ushered.limit(limit.map(Duration::from_millis));
            }
            ushered.wait_max
        };
        assert_eq!(limit(&[None, None]), None);
        assert_eq!(limit(&[Some(3), None]), Some(3_000));
        assert_eq!(limit(&[None, Some(2)]), Some(2_000));
        assert_eq!(limit(&[Some(3), Some(2)]), Some(2_000));
        assert_eq!(limit(&[Some(0), Some(2)]), Some(0));
    }
}
