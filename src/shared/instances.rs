//! The policy instances of one worker: for each backend the one that picks, the one that is asked how connections are
//! shared and the one that is asked about requests that wait; for each listener the one that routes.
//!
//! They are made, shown the table and dropped between two requests, when the worker takes up a generation. An
//! attachment that stays the same keeps its instance and all its state.

use super::generation::{AttachedPolicy, BackendEntry, Generation, ListenerId, ShownTable};
use crate::policy::{
    Asked, BackendId, Edits, Fault, Given, Live, Policy, RouteAsked, Routed, ServerIndex, Shown, Table,
    WorkerId,
};
use crate::sync::Arc;
use std::time::Duration;

/// The instances of one worker.
#[derive(Default)]
pub struct Policies {
    /// By backend id.
    backends: Vec<OfBackend>,
    /// By listener id.
    routers: Vec<Option<Instance>>,
}

/// The instances of one backend. A policy that is asked several things is one instance, with all its state: it stands in
/// the first of its places.
#[derive(Default)]
struct OfBackend {
    picker: Option<Instance>,
    sharer: Option<Instance>,
    usher: Option<Instance>,
}

/// One instance.
pub struct Instance {
    policy: Box<dyn Policy>,
    /// The table that it was shown last.
    shown: Option<Shown>,
    /// The servers whose measures it reads without one.
    followed: Option<std::sync::Arc<dyn Live>>,
    /// Dropped after the instance, so that its code is never freed here.
    attached: Arc<AttachedPolicy>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (mut pick, mut share, mut usher) = (0, 0, 0);
        for backend in &self.backends {
            pick += usize::from(backend.picker.is_some());
            share += usize::from(backend.sharer.is_some());
            usher += usize::from(backend.usher.is_some());
        }
        let route = self.routers.iter().flatten().count();
        write!(
            f,
            "Policies({pick} pick, {share} share and do not pick, {usher} only usher, {route} route)"
        )
    }
}

impl Instance {
    /// The instance and what it is counted by, if there is a point in asking now.
    pub fn ask(&mut self, now: Duration) -> Option<(&mut dyn Policy, &AttachedPolicy)> {
        self.policy
            .ready(now)
            .then_some((&mut *self.policy, &*self.attached))
    }

    /// Has it read the measures of these servers from now on.
    fn follow(&mut self, table: &Shown) {
        let followed = self.followed.as_ref();
        if !followed.is_some_and(|followed| std::sync::Arc::ptr_eq(followed, &table.live)) {
            self.policy.follow(table);
            self.followed = Some(table.live.clone());
        }
    }

    /// Whether the table that it was shown last says the same. Columns also change without a new table: latencies do.
    fn has_seen(&self, table: &Shown) -> bool {
        let seen = self.shown.as_ref();
        let same = |seen: &Shown| std::sync::Arc::ptr_eq(&seen.live, &table.live);
        seen.is_some_and(|seen| same(seen) && seen.columns == table.columns)
    }
}

impl Policies {
    /// The instance that picks for a backend.
    pub fn picker(&mut self, backend: usize) -> Option<&mut Instance> {
        self.backends.get_mut(backend)?.picker.as_mut()
    }

    /// The instance of a policy of a backend, whatever it is asked.
    pub fn of_backend(&mut self, backend: BackendId, wanted: &Arc<AttachedPolicy>) -> Option<&mut Instance> {
        let OfBackend {
            picker,
            sharer,
            usher,
        } = self.backends.get_mut(backend.0 as usize)?;
        [usher, sharer, picker]
            .into_iter()
            .flatten()
            .find(|instance| Arc::ptr_eq(&instance.attached, wanted))
    }

    /// The instance that routes for a listener.
    pub fn router(&mut self, listener: ListenerId) -> Option<&mut Instance> {
        self.routers.get_mut(usize::from(listener.0))?.as_mut()
    }

    /// Takes up a generation: instances of what is new, none of what is gone, tables shown where they changed.
    pub fn take_up<C, A>(&mut self, generation: &Generation<C, A>, worker: WorkerId, now: Duration) {
        let ids = generation
            .backends
            .iter()
            .map(|entry| entry.table.id.0 as usize + 1);
        let mut backends = Vec::new();
        backends.resize_with(ids.max().unwrap_or(0), OfBackend::default);
        for entry in &generation.backends {
            let at = entry.table.id.0 as usize;
            let kept = self.backends.get_mut(at).map(std::mem::take).unwrap_or_default();
            backends[at] = kept.taken_up(entry, worker, now);
        }
        self.backends = backends;
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

impl OfBackend {
    /// What becomes of them with a new entry: who is asked the same as before keeps its instance, whatever else it is
    /// asked.
    fn taken_up<C, A>(self, entry: &BackendEntry<C, A>, worker: WorkerId, now: Duration) -> OfBackend {
        let picks = entry
            .policy
            .as_ref()
            .filter(|policy| policy.attached.attachment.offers().pick);
        let among = |others: &[Option<&Arc<AttachedPolicy>>], attached: &Arc<AttachedPolicy>| {
            let mut others = others.iter().flatten();
            others.any(|other| Arc::ptr_eq(other, attached))
        };
        let picker = picks.map(|policy| &policy.attached);
        let sharer = entry
            .reuse_policy
            .as_ref()
            .filter(|attached| attached.attachment.offers().reuse && !among(&[picker], attached));
        let usher = entry.queue_policy.as_ref().filter(|attached| {
            let offers = attached.attachment.offers();
            (offers.classify || offers.admit) && !among(&[picker, sharer], attached)
        });
        let mut kept = [self.picker, self.sharer, self.usher];
        // Who picked and does so no more knows a table that is none any more: it begins anew, whatever else it is asked.
        kept[0].take_if(|former| !picker.is_some_and(|now| Arc::ptr_eq(now, &former.attached)));
        let mut renewed = |attached: &Arc<AttachedPolicy>| {
            let is_it = |place: &&mut Option<Instance>| {
                place
                    .as_ref()
                    .is_some_and(|instance| Arc::ptr_eq(&instance.attached, attached))
            };
            let found = kept.iter_mut().find(is_it).and_then(Option::take);
            renew(found, attached, worker, now)
        };
        let mut picker = picker.and_then(&mut renewed);
        if let (Some(instance), Some(policy)) = (&mut picker, picks)
            && !instance.has_seen(&policy.shown.0)
        {
            instance.shown = Some(policy.shown.0.clone());
            if let Err(fault) = instance.policy.table(&policy.shown.0, now) {
                count(&policy.attached, worker, fault);
            }
        }
        let mut sharer = sharer.and_then(&mut renewed);
        let mut usher = usher.and_then(renewed);
        if let Some(ShownTable(table)) = &entry.followed {
            let followers = [&mut sharer, &mut usher].into_iter().flatten();
            followers.for_each(|instance| instance.follow(table));
        }
        OfBackend {
            picker,
            sharer,
            usher,
        }
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
            shown: None,
            followed: None,
        }),
        Err(fault) => {
            count(attached, worker, fault);
            None
        }
    }
}

/// Counts an answer that was not used.
pub fn count(attached: &AttachedPolicy, worker: WorkerId, fault: Fault) {
    attached.statistics.of(worker).faults[fault.index()].count();
}

/// Asks for a server, counts, and checks the answer against the table: a preference for one that takes no requests is none.
///
/// # Errors
/// Why the answer was not used.
pub fn pick(
    policy: &mut dyn Policy,
    attached: &AttachedPolicy,
    worker: WorkerId,
    asked: &Asked<'_>,
    avoid: Option<ServerIndex>,
    table: &impl Table,
) -> Result<Option<ServerIndex>, Fault> {
    let statistics = attached.statistics.of(worker);
    statistics.calls.count();
    let pick = match policy.pick(asked, avoid) {
        Ok(Some(pick)) => pick,
        Ok(None) => {
            statistics.abstained.count();
            return Ok(None);
        }
        Err(fault) => {
            count(attached, worker, fault);
            return Err(fault);
        }
    };
    let second = pick.second.filter(|second| table.usable(*second));
    if table.usable(pick.first) {
        let spare = second.filter(|second| !table.saturated(*second));
        return Ok(if table.saturated(pick.first) {
            spare.or(Some(pick.first))
        } else {
            Some(pick.first)
        });
    }
    if second.is_none() {
        statistics.unusable.count();
    }
    Ok(second)
}

/// Asks who answers a request, and counts: an answer that was remembered is no call.
///
/// # Errors
/// Why the answer was not used. Then there are no edits.
pub fn route(
    policy: &mut dyn Policy,
    attached: &AttachedPolicy,
    worker: WorkerId,
    asked: &RouteAsked<'_>,
    edits: &mut Edits,
) -> Result<Routed, Fault> {
    let statistics = attached.statistics.of(worker);
    let answer = policy.route(asked, edits);
    match &answer {
        Ok(Routed {
            given: Given::Remembered,
            ..
        }) => statistics.remembered.count(),
        _ => statistics.calls.count(),
    }
    match &answer {
        Ok(routed) if routed.target.is_none() => statistics.abstained.count(),
        Ok(_) => {}
        Err(fault) => {
            count(attached, worker, *fault);
            edits.clear();
        }
    }
    answer
}
