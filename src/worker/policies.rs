//! The policy instances of one worker: one for each backend that picks and each listener that routes.
//!
//! They are made, shown the table and dropped between two requests, when the worker takes up a generation. An
//! attachment that stays the same keeps its instance and all its state.

use super::{Current, Worker};
use crate::policy::{Fault, Policy, WorkerId};
use crate::shared::generation::{AttachedPolicy, ListenerId};
use std::sync::Arc;
use std::time::Duration;

/// The instances of one worker.
#[derive(Default)]
pub(super) struct Policies {
    /// By backend id.
    pickers: Vec<Option<Instance>>,
    /// By listener id.
    routers: Vec<Option<Instance>>,
}

/// One instance.
pub(super) struct Instance {
    policy: Box<dyn Policy>,
    /// Generation of the table that it was shown.
    shown: u64,
    /// Dropped after the instance, so that its code is never freed here.
    attached: Arc<AttachedPolicy>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let live = |list: &[Option<Instance>]| list.iter().flatten().count();
        write!(
            f,
            "Policies({} pick, {} route)",
            live(&self.pickers),
            live(&self.routers)
        )
    }
}

impl Instance {
    /// The instance and what it is counted by, if there is a point in asking now.
    pub(super) fn ask(&mut self, now: Duration) -> Option<(&mut dyn Policy, &AttachedPolicy)> {
        self.policy
            .ready(now)
            .then_some((&mut *self.policy, &*self.attached))
    }
}

impl Policies {
    /// The instance that picks for a backend.
    pub(super) fn picker(&mut self, backend: usize) -> Option<&mut Instance> {
        self.pickers.get_mut(backend)?.as_mut()
    }

    /// The instance that routes for a listener.
    pub(super) fn router(&mut self, listener: ListenerId) -> Option<&mut Instance> {
        self.routers.get_mut(usize::from(listener.0))?.as_mut()
    }

    /// Takes up a generation: instances of what is new, none of what is gone, tables shown where they changed.
    pub(super) fn take_up(&mut self, generation: &Current, worker: WorkerId, now: Duration) {
        let backends = generation
            .backends
            .iter()
            .map(|entry| entry.table.id.0 as usize + 1)
            .max()
            .unwrap_or(0);
        let mut pickers: Vec<Option<Instance>> = (0..backends).map(|_| None).collect();
        for entry in &generation.backends {
            let at = entry.table.id.0 as usize;
            let Some(policy) = &entry.policy else { continue };
            if !policy.attached.attachment.offers().pick {
                continue;
            }
            let kept = self.pickers.get_mut(at).and_then(Option::take);
            let Some(mut instance) = renew(kept, &policy.attached, worker, now) else {
                continue;
            };
            if instance.shown != entry.table.generation {
                instance.shown = entry.table.generation;
                if let Err(fault) = instance.policy.table(&policy.shown.0, now) {
                    count(&policy.attached, worker, fault);
                }
            }
            pickers[at] = Some(instance);
        }
        self.pickers = pickers;
        let mut routers: Vec<Option<Instance>> = generation.listeners.iter().map(|_| None).collect();
        for (at, entry) in generation.listeners.iter().enumerate() {
            let policy = entry.as_ref().and_then(|entry| entry.policy.as_ref());
            if let Some(attached) = policy.filter(|attached| attached.attachment.offers().route) {
                let kept = self.routers.get_mut(at).and_then(Option::take);
                routers[at] = renew(kept, attached, worker, now);
            }
        }
        self.routers = routers;
    }
}

/// The instance of an attachment: the one there is, or a new one.
fn renew(
    kept: Option<Instance>,
    attached: &Arc<AttachedPolicy>,
    worker: WorkerId,
    now: Duration,
) -> Option<Instance> {
    if let Some(kept) = kept
        && Arc::ptr_eq(&kept.attached, attached)
    {
        return Some(kept);
    }
    match attached.attachment.policy(now) {
        Ok(policy) => Some(Instance {
            attached: attached.clone(),
            policy,
            shown: 0,
        }),
        Err(fault) => {
            count(attached, worker, fault);
            None
        }
    }
}

/// Counts an answer that was not used.
pub(super) fn count(attached: &AttachedPolicy, worker: WorkerId, fault: Fault) {
    attached.statistics.of(worker).faults[fault.index()].count();
}

impl Worker {
    /// The time as policies are told it.
    pub(super) fn policy_now(&self) -> Duration {
        Duration::from_micros(self.now)
    }
}
