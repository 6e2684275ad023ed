//! Asks about a request that is about to wait.
//!
//! Asked on the worker before the request is in a queue, outside every lock, and never by who serves one; at most once:
//! what was said holds when the request has to wait again. One that finds a slot is never asked about.

use super::Worker;
use super::begin::Incoming;
use super::consult::seed;
use super::session::Live;
use crate::decide::attributes;
use crate::decide::route::BackendRef;
use crate::decide::usher::{AboutToWait, Admission, Said, Ushered};
use crate::http1::RequestHead;
use crate::net::{Address, Connection, Key};
use crate::policy::{Asked, Fault, Policy, Waits};
use crate::shared::generation::{AttachedPolicy, BackendEntry};
use crate::shared::instances;
use std::sync::Arc;

/// What an exchange keeps for these questions.
#[derive(Debug, Default)]
pub(super) struct Ushering {
    /// What the policy asked to see; `None` where it is the one that picks, too, and sees the same.
    gathered: Option<Vec<u8>>,
    /// What it said, if it was asked.
    said: Option<Said>,
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
            said.classified(standing, self.now);
        }
        waits.priority = said.priority(about.priority);
        if offers.admit
            && let Some(verdict) = self.put(exchange, |policy, asked| policy.admit(asked, &waits))
        {
            said.judged(verdict, self.now);
            if said.admission() != Admission::Accepted {
                attached.statistics.of(self.id).rejected.count();
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
            Err(fault) => instances::count(attached, worker, *fault),
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
