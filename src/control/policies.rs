//! Policies in their places: loaded before a generation is published, kept while nothing about them changes.
//!
//! An attachment is one policy at one backend or listener. It stays, with the instances and the state of every worker,
//! as long as its component, its settings and what it was told stay the same to the byte; its statistics stay with the
//! names. At start a policy that cannot be loaded ends the start; at a reload the one at work stays, the rest of the
//! configuration is taken up, and the operator is told.

use crate::config::{Config, model};
use crate::observe::messages::{self, Messages};
use crate::policy::{Attached, Attachment, Fault, Journal, Level, Setup};
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

    /// Loads a policy for one place, checks it and has it configure itself.
    ///
    /// # Errors
    /// What is wrong, where, and what to do, on one or more lines.
    fn load(&self, policy: &model::Policy, setup: &Setup) -> Result<Arc<dyn Attachment>, String>;
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
}

struct Known {
    statistics: Arc<PerWorker<PolicyStatistics>>,
    loaded: Option<Loaded>,
}

struct Loaded {
    digest: [u8; 32],
    settings: model::Policy,
    setup: Setup,
    attached: Arc<AttachedPolicy>,
}

/// What a load has changed.
#[derive(Default)]
pub(super) struct Changes {
    /// One message for each policy that could not be loaded. The former attachment of its place, if any, stays.
    pub(super) errors: Vec<String>,
    /// What is new in its place.
    pub(super) loaded: Vec<Renewed>,
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
    Policies::default()
        .load(config, loader, config.process.workers)
        .errors
}

impl Policies {
    /// Loads what a config attaches and what has changed since.
    pub(super) fn load(&mut self, config: &Config, loader: Option<&dyn Loader>, workers: u16) -> Changes {
        let mut changes = Changes::default();
        for (kind, place, policy) in attachments(config) {
            let setup = setup(config, policy, kind, place);
            let known = self
                .known
                .entry((policy.name.clone(), kind, place.to_owned()))
                .or_insert_with(|| Known {
                    // One shard more: the control thread asks for plans.
                    statistics: Arc::new(PerWorker::new(workers + 1, PolicyStatistics::default)),
                    loaded: None,
                });
            match known.load(policy, setup, loader) {
                Ok(None) => {}
                Ok(Some(digest)) => changes.loaded.push(Renewed {
                    policy: policy.name.clone(),
                    place: place.to_owned(),
                    digest,
                }),
                Err(error) => changes.errors.push(format!(
                    "policy {:?} at {} {place:?}: {error}",
                    policy.name,
                    kind.word()
                )),
            }
        }
        let used: Vec<Place> = attachments(config)
            .map(|(kind, place, policy)| (policy.name.clone(), kind, place.to_owned()))
            .collect();
        for (place, known) in &mut self.known {
            if !used.contains(place) {
                known.loaded = None;
            }
        }
        changes
    }

    /// The policy at a place, if it could be loaded.
    pub(super) fn at(&self, policy: &str, kind: Kind, place: &str) -> Option<Arc<AttachedPolicy>> {
        let known = self.known.get(&(policy.to_owned(), kind, place.to_owned()))?;
        Some(known.loaded.as_ref()?.attached.clone())
    }

    /// Every policy at work: its name, its place, and itself.
    pub(super) fn at_work(&self) -> impl Iterator<Item = (&str, &str, &Arc<AttachedPolicy>)> {
        self.known.iter().filter_map(|((policy, _, place), known)| {
            Some((policy.as_str(), place.as_str(), &known.loaded.as_ref()?.attached))
        })
    }
}

impl Known {
    /// The digest of what was loaded; `None` if all is as it was.
    fn load(
        &mut self,
        policy: &model::Policy,
        setup: Setup,
        loader: Option<&dyn Loader>,
    ) -> Result<Option<[u8; 32]>, String> {
        let loader = loader.ok_or("this build has no host for WebAssembly components (feature `wasm`)")?;
        let digest = loader.digest(policy)?;
        let same =
            |loaded: &Loaded| loaded.digest == digest && loaded.settings == *policy && loaded.setup == setup;
        if self.loaded.as_ref().is_some_and(same) {
            return Ok(None);
        }
        let attached = Arc::new(AttachedPolicy {
            attachment: loader.load(policy, &setup)?,
            statistics: self.statistics.clone(),
            on_fault: match policy.on_fault {
                model::OnFault::Fallback => OnFault::Fallback,
                model::OnFault::Deny => OnFault::Deny,
            },
        });
        self.loaded = Some(Loaded {
            digest,
            settings: policy.clone(),
            setup,
            attached,
        });
        Ok(Some(digest))
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

/// Every place where a config attaches a policy.
pub(super) fn attachments(config: &Config) -> impl Iterator<Item = (Kind, &str, &model::Policy)> {
    let policy = |at: model::PolicyRef| &config.policies[usize::from(at.0)];
    let backends = config
        .backends
        .iter()
        .filter_map(move |backend| Some((Kind::Backend, backend.name.as_str(), policy(backend.policy?))));
    let listeners = config
        .listeners
        .iter()
        .filter_map(move |listen| Some((Kind::Listener, listen.name.as_str(), policy(listen.route_policy?))));
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
