//! The bridge from a configuration's policies to the host of WebAssembly components.

use crate::config::model;
use crate::control::{Loader, Told};
use crate::observe::messages::{self, Messages};
use crate::policy::{Attachment, Journal, Keeper, Setup};
use crate::wasm::{Digest, Host, Limits, LoadError, Mode, Settings};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Loads components by the host of this process.
pub(super) struct Components {
    settings: Settings,
    journal: Arc<dyn Journal>,
    messages: Messages,
    /// The clock's zero, the same as the workers'.
    epoch: Instant,
    /// Made for the first policy: who has none pays for none.
    host: Mutex<Option<Arc<Host>>>,
}

/// A loader for the policies that a configuration attaches, now or after a reload.
pub(super) fn loader(config: &model::Config, messages: &Messages, epoch: Instant) -> Arc<dyn Loader> {
    Arc::new(Components::new(
        config,
        Arc::new(Told(messages.clone())),
        messages.clone(),
        epoch,
    ))
}

/// Loads every policy of a configuration in each of its places and lets it validate what it is told; tells what went
/// wrong, one text for each.
pub(super) fn check(config: &model::Config) -> anyhow::Result<Vec<String>> {
    let messages = Messages::to_stderr(messages::Level::Warn)?;
    let journal = Arc::new(Told(messages.clone()));
    let components = Components::new(config, journal, messages.clone(), Instant::now());
    let refused = crate::control::check_policies(config, Some(&components));
    messages.flush(std::time::Duration::from_secs(1));
    Ok(refused)
}

impl Components {
    /// For as many attachments as a configuration allows.
    pub(super) fn new(
        config: &model::Config,
        journal: Arc<dyn Journal>,
        messages: Messages,
        epoch: Instant,
    ) -> Components {
        let settings = Settings {
            mode: Mode::Live,
            threads: config.process.workers + 1,
            attachments: config.process.attachments_max,
            cache: config
                .process
                .plugin_cache
                .as_ref()
                .map(|cache| cache.path.clone()),
        };
        Components {
            settings,
            journal,
            messages,
            epoch,
            host: Mutex::new(None),
        }
    }

    fn host(&self) -> Result<Arc<Host>, String> {
        let mut place = self.host.lock();
        if let Some(host) = &*place {
            return Ok(host.clone());
        }
        let host = Host::new(&self.settings, self.journal.clone()).map_err(|error| error.to_string())?;
        for remark in host.remarks() {
            self.messages.tell(
                messages::Level::Warn,
                "the host of policies",
                &[("remark", remark)],
            );
        }
        Ok(place.insert(host).clone())
    }
}

impl Loader for Components {
    fn digest(&self, policy: &model::Policy) -> Result<[u8; 32], String> {
        let path = &policy.component.path;
        let bytes = std::fs::read(path).map_err(|error| {
            let path = path.clone();
            LoadError::Read { path, error }.to_string()
        })?;
        Ok(*Digest::of(&bytes).bytes())
    }

    fn load(
        &self,
        policy: &model::Policy,
        setup: &Setup,
        keeper: &Arc<dyn Keeper>,
    ) -> Result<Arc<dyn Attachment>, String> {
        let pinned = policy.sha256.map(Digest::new);
        let loaded = self
            .host()?
            .load(&policy.component.path, pinned)
            .map_err(|error| error.to_string())?;
        let limits = Limits {
            deadline: policy.deadline,
            mean_max: Some(policy.mean_max),
            memory_max: policy.memory_max,
            grants: policy.grants,
            ..Limits::default()
        };
        loaded
            .attach_kept(setup, limits, Some(keeper.clone()), self.epoch.elapsed())
            .map_err(|error| error.to_string())
    }
}

/// A host for looking at files, outside of any proxy.
pub(super) fn bare_host() -> anyhow::Result<Arc<Host>> {
    let settings = Settings {
        mode: Mode::Live,
        threads: 1,
        attachments: 1,
        cache: None,
    };
    Ok(Host::new(
        &settings,
        Arc::new(Told(Messages::to_stderr(messages::Level::Warn)?)),
    )?)
}

/// The name that a packed component is given beside its module.
pub(super) fn beside(module: &Path) -> std::path::PathBuf {
    let mut name = module.file_stem().unwrap_or_default().to_owned();
    name.push(".component.wasm");
    module.with_file_name(name)
}
