//! Policies in their places: loaded before a generation is published, kept while nothing about them changes.
//!
//! An attachment is one policy at one backend or listener. It stays, with the instances and the state of every worker,
//! as long as its component, its settings and what it was told stay the same to the byte; its statistics stay with the
//! names. At start a policy that cannot be loaded ends the start; at a reload the one at work stays, the rest of the
//! configuration is taken up, and the operator is told.
//!
//! ```text
//! wanted ──► load ──► take_up ──► (published; workers leave the former) ──► freed
//! locked     not      locked                                               locked; dropped by the planner thread
//! ```

use super::kept::Kept;
use crate::config::{Config, model};
use crate::observe::messages::{self, Messages};
use crate::policy::{Attached, Attachment, Fault, Journal, Keeper, Level, Offers, Setup};
use crate::shared::generation::{AttachedPolicy, OnFault};
use crate::shared::statistics::{PerWorker, PolicyStatistics};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Who makes attachments: the host of WebAssembly components, or a test.
pub trait Loader: Send + Sync {
    /// What tells one content of a component file from another.
    ///
    /// # Errors
    /// The file cannot be read; the message names it.
    fn digest(&self, policy: &model::Policy) -> Result<[u8; 32], String>;

    /// Loads a policy for one place, checks it and has it configure itself. What it is granted is with `keeper`.
    ///
    /// # Errors
    /// What is wrong, where, and what to do, on one or more lines.
    fn load(
        &self,
        policy: &model::Policy,
        setup: &Setup,
        keeper: &Arc<dyn Keeper>,
    ) -> Result<Arc<dyn Attachment>, String>;
}

/// A place of a policy: its name, and that of the backend or listener.
type Place = (String, Kind, String);

/// What a policy is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A backend.
    Backend,
    /// A listener.
    Listener,
}

/// Every policy that was ever attached.
#[derive(Default)]
pub(super) struct Policies {
    known: BTreeMap<Place, Known>,
    /// What was replaced and may still be in use: freed here, because freeing code takes long.
    retired: Vec<Arc<AttachedPolicy>>,
}

struct Known {
    statistics: Arc<PerWorker<PolicyStatistics>>,
    /// What is kept for it as long as it is there.
    kept: Arc<Kept>,
    loaded: Option<Arc<Loaded>>,
}

struct Loaded {
    digest: [u8; 32],
    settings: model::Policy,
    setup: Setup,
    attached: Arc<AttachedPolicy>,
}

/// One place of a config, what is there now, and what is to be there.
pub(super) struct Wanted {
    place: Place,
    settings: model::Policy,
    setup: Setup,
    uses: Uses,
    statistics: Arc<PerWorker<PolicyStatistics>>,
    kept: Arc<Kept>,
    now: Option<Arc<Loaded>>,
}

/// One policy at one place of a config.
struct Use<'a> {
    policy: &'a model::Policy,
    kind: Kind,
    place: &'a str,
    uses: Uses,
}

/// What a place names a policy for: by which keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uses {
    /// `balance`
    servers: bool,
    /// `reuse-policy`
    connections: bool,
    /// `queue-policy`
    queue: bool,
    /// `route-policy`
    routes: bool,
}

/// A policy that took its place, or took it from its former self.
pub(super) struct Renewed {
    pub(super) policy: String,
    pub(super) place: String,
    /// The SHA-256 of its component.
    pub(super) digest: [u8; 32],
}

/// Loads every policy of a config in each of its places, for nothing but to see whether that goes well.
pub fn check(config: &Config, loader: Option<&dyn Loader>) -> Vec<String> {
    let mut wanted = Policies::default().wanted(config, config.process.workers);
    load(&mut wanted, loader)
}

/// Loads what has changed since it was loaded before: the long part of a reload, and nobody waits for it.
///
/// # Errors
/// One message for each policy that could not be loaded; what its place has now stays there.
pub(super) fn load(wanted: &mut [Wanted], loader: Option<&dyn Loader>) -> Vec<String> {
    let mut errors = Vec::new();
    for one in wanted {
        match one.load(loader) {
            Ok(loaded) => one.now = Some(loaded),
            Err(error) => {
                let (policy, kind, place) = &one.place;
                errors.push(format!("policy {policy:?} at {} {place:?}: {error}", kind.word()));
            }
        }
    }
    errors
}

impl Policies {
    /// Every place of a config, to be loaded and then to be taken up.
    pub(super) fn wanted(&mut self, config: &Config, workers: u16) -> Vec<Wanted> {
        let wanted = attachments(config).map(|one| {
            let Use {
                policy,
                kind,
                place: at,
                uses,
            } = one;
            let place = (policy.name.clone(), kind, at.to_owned());
            let known = self.known.entry(place.clone()).or_insert_with(|| Known {
                // One shard more: the control thread asks for plans.
                statistics: Arc::new(PerWorker::new(workers + 1, PolicyStatistics::default)),
                kept: Arc::default(),
                loaded: None,
            });
            Wanted {
                place,
                settings: policy.clone(),
                setup: setup(config, policy, kind, at),
                uses,
                statistics: known.statistics.clone(),
                kept: known.kept.clone(),
                now: known.loaded.clone(),
            }
        });
        wanted.collect()
    }

    /// Puts what was loaded in its places; tells what is new there. What is in none of them any more is retired.
    pub(super) fn take_up(&mut self, wanted: Vec<Wanted>) -> Vec<Renewed> {
        let mut renewed = Vec::new();
        let mut loaded: BTreeMap<Place, Option<Arc<Loaded>>> =
            wanted.into_iter().map(|one| (one.place, one.now)).collect();
        for (place, known) in &mut self.known {
            let next = loaded.remove(place).flatten();
            let former = std::mem::replace(&mut known.loaded, next);
            if former.is_some() && known.loaded.is_none() {
                // It is forgotten with the last generation; who holds the former one still writes to nobody.
                known.kept = Arc::default();
            }
            let same = |one: &Arc<Loaded>, other: &Arc<Loaded>| Arc::ptr_eq(&one.attached, &other.attached);
            if let (Some(now), Some(before)) = (&known.loaded, &former)
                && same(now, before)
            {
                continue;
            }
            renewed.extend(known.loaded.as_ref().map(|now| Renewed {
                policy: place.0.clone(),
                place: place.2.clone(),
                digest: now.digest,
            }));
            self.retired.extend(former.map(|former| former.attached.clone()));
        }
        renewed
    }

    /// What was retired and nobody uses any more, to be dropped by the caller; and whether there is more to wait for.
    pub(super) fn freed(&mut self) -> (Vec<Arc<AttachedPolicy>>, bool) {
        let unused = |one: &mut Arc<AttachedPolicy>| Arc::strong_count(one) == 1 && !one.attachment.is_used();
        let freed = self.retired.extract_if(.., unused).collect();
        (freed, !self.retired.is_empty())
    }

    /// How many were replaced and are not freed yet.
    pub(super) fn replaced(&self) -> u64 {
        self.retired.len() as u64
    }

    /// The policy at a place, if it could be loaded.
    pub(super) fn at(&self, policy: &str, kind: Kind, place: &str) -> Option<Arc<AttachedPolicy>> {
        let known = self.known.get(&(policy.to_owned(), kind, place.to_owned()))?;
        Some(known.loaded.as_ref()?.attached.clone())
    }

    /// Every policy at work: its name, its place, and itself.
    pub(super) fn at_work(&self) -> impl Iterator<Item = (&str, &str, &Arc<AttachedPolicy>)> {
        self.with_kept()
            .map(|(policy, place, attached, _)| (policy, place, attached))
    }

    /// The same with what is kept for it.
    pub(super) fn with_kept(&self) -> impl Iterator<Item = (&str, &str, &Arc<AttachedPolicy>, &Kept)> {
        self.known.iter().filter_map(|((policy, _, place), known)| {
            let attached = &known.loaded.as_ref()?.attached;
            Some((policy.as_str(), place.as_str(), attached, &*known.kept))
        })
    }
}

impl Wanted {
    fn load(&self, loader: Option<&dyn Loader>) -> Result<Arc<Loaded>, String> {
        let loaded = self.loaded(loader)?;
        self.uses.check(loaded.attached.attachment.offers())?;
        Ok(loaded)
    }

    fn loaded(&self, loader: Option<&dyn Loader>) -> Result<Arc<Loaded>, String> {
        let loader = loader.ok_or("this build has no host for WebAssembly components (feature `wasm`)")?;
        let digest = loader.digest(&self.settings)?;
        let same = |loaded: &&Arc<Loaded>| {
            loaded.digest == digest && loaded.settings == self.settings && loaded.setup == self.setup
        };
        if let Some(loaded) = self.now.as_ref().filter(same) {
            return Ok(loaded.clone());
        }
        let keeper: Arc<dyn Keeper> = Arc::<Kept>::clone(&self.kept);
        let attached = Arc::new(AttachedPolicy {
            name: self.settings.name.as_str().into(),
            attachment: loader.load(&self.settings, &self.setup, &keeper)?,
            statistics: self.statistics.clone(),
            on_fault: match self.settings.on_fault {
                model::OnFault::Fallback => OnFault::Fallback,
                model::OnFault::Deny => OnFault::Deny,
            },
            interval: self.settings.interval,
        });
        Ok(Arc::new(Loaded {
            digest,
            settings: self.settings.clone(),
            setup: self.setup.clone(),
            attached,
        }))
    }
}

impl Uses {
    /// Whether a policy answers what its place would ask it.
    fn check(self, offers: &Offers) -> Result<(), String> {
        let for_servers = offers.plan || offers.pick;
        let for_connections = offers.reuse || offers.reuse_plan;
        let for_queue = offers.classify || offers.admit;
        if self.servers && !for_servers {
            return Err("`balance` names it, and it exports neither balance-plan nor balance-pick".into());
        }
        if self.connections && !for_connections {
            return Err("`reuse-policy` names it, and it exports neither reuse nor reuse-plan".into());
        }
        if self.queue && !for_queue {
            return Err("`queue-policy` names it, and it exports neither classify nor admit".into());
        }
        if self.routes && !offers.route {
            return Err("`route-policy` names it, and it does not export route".into());
        }
        Ok(())
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Backend => "backend",
            Kind::Listener => "listener",
        }
    }
}

/// Every place where a config attaches a policy; one that a backend names twice stands there once.
fn attachments(config: &Config) -> impl Iterator<Item = Use<'_>> {
    let policy = |at: model::PolicyRef| &config.policies[usize::from(at.0)];
    let backends = config.backends.iter().flat_map(move |backend| {
        let named = [backend.policy, backend.reuse_policy, backend.queue_policy];
        named.into_iter().enumerate().filter_map(move |(nth, at)| {
            let at = at?;
            let first = named.iter().position(|other| *other == Some(at)) == Some(nth);
            first.then(|| Use {
                policy: policy(at),
                kind: Kind::Backend,
                place: &backend.name,
                uses: Uses {
                    servers: named[0] == Some(at),
                    connections: named[1] == Some(at),
                    queue: named[2] == Some(at),
                    routes: false,
                },
            })
        })
    });
    let listeners = config.listeners.iter().filter_map(move |listen| {
        Some(Use {
            policy: policy(listen.route_policy?),
            kind: Kind::Listener,
            place: &listen.name,
            uses: Uses {
                routes: true,
                ..Uses::default()
            },
        })
    });
    backends.chain(listeners)
}

/// What a policy is told at a place.
fn setup(config: &Config, policy: &model::Policy, kind: Kind, place: &str) -> Setup {
    let mut setup = Setup {
        policy: policy.name.clone(),
        attachment: place.to_owned(),
        config: policy.config_json.clone(),
        ..Setup::default()
    };
    if kind == Kind::Listener
        && let Some(listen) = config.listeners.iter().find(|listen| listen.name == place)
    {
        setup.backends = config
            .backends
            .iter()
            .map(|backend| backend.name.clone())
            .collect();
        setup.redirects = listen.redirects().map(|(name, _)| name.to_owned()).collect();
        setup.responses = listen.responses().map(|(name, _)| name.to_owned()).collect();
    }
    setup
}

/// Tells operators what happens in the host of policies.
#[derive(Debug)]
pub struct Told(pub Messages);

impl Journal for Told {
    fn said(&self, who: &Attached, level: Level, text: &str) {
        let level = match level {
            Level::Error => messages::Level::Error,
            Level::Warn => messages::Level::Warn,
            Level::Info => messages::Level::Info,
            Level::Debug => messages::Level::Debug,
        };
        self.0.say(
            level,
            "a policy says",
            &[("policy", &who.policy), ("at", &who.place), ("text", &text)],
        );
    }

    fn fault(&self, who: &Attached, fault: Fault, detail: &str) {
        let fields: messages::Fields = &[
            ("policy", &who.policy),
            ("at", &who.place),
            ("reason", &fault.word()),
            ("detail", &detail),
        ];
        self.0.say(
            messages::Level::Warn,
            "an answer of a policy was not used",
            fields,
        );
    }

    fn paused(&self, who: &Attached, why: Fault, pause: Duration) {
        let seconds = pause.as_secs_f64();
        let fields: messages::Fields = &[
            ("policy", &who.policy),
            ("at", &who.place),
            ("reason", &why.word()),
            ("seconds", &seconds),
        ];
        self.0.say(
            messages::Level::Error,
            "a policy is in quarantine: the native one decides",
            fields,
        );
    }

    fn resumed(&self, who: &Attached) {
        let fields: messages::Fields = &[("policy", &who.policy), ("at", &who.place)];
        self.0
            .say(messages::Level::Notice, "a policy is asked again", fields);
    }
}
