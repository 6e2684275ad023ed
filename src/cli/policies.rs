//! The bridge from a configuration's policies to the host of WebAssembly components.

use crate::config::model;
use crate::control::{Loader, Told};
use crate::observe::messages::Messages;
use crate::policy::{Attachment, Journal, Setup};
use crate::wasm::{Digest, Host, Limits, LoadError, Mode, Settings};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Loads components by the host of this process.
pub(super) struct Components {
    host: Arc<Host>,
    /// The clock's zero, the same as the workers'.
    epoch: Instant,
}

/// A loader for a configuration that attaches policies; `None` for one that does not: then no engine is made.
///
/// # Errors
/// The engine cannot be made.
pub(super) fn loader(
    config: &model::Config,
    messages: &Messages,
    epoch: Instant,
) -> anyhow::Result<Option<Arc<dyn Loader>>> {
    if config.policies.is_empty() {
        return Ok(None);
    }
    let components = Components::new(config, Arc::new(Told(messages.clone())), epoch)?;
    for remark in components.host.remarks() {
        messages.tell(
            crate::observe::messages::Level::Warn,
            "the host of policies",
            &[("remark", remark)],
        );
    }
    Ok(Some(Arc::new(components)))
}

/// Loads every policy of a configuration in each of its places and lets it validate what it is told; tells what went
/// wrong, one text for each.
pub(super) fn check(config: &model::Config) -> anyhow::Result<Vec<String>> {
    let messages = Messages::to_stderr(crate::observe::messages::Level::Warn)?;
    let components = Components::new(config, Arc::new(Told(messages.clone())), Instant::now())?;
    let refused = crate::control::check_policies(config, Some(&components));
    messages.flush(std::time::Duration::from_secs(1));
    Ok(refused)
}

impl Components {
    /// A host for the attachments that a configuration may have.
    pub(super) fn new(
        config: &model::Config,
        journal: Arc<dyn Journal>,
        epoch: Instant,
    ) -> anyhow::Result<Components> {
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
        Ok(Components {
            host: Host::new(&settings, journal)?,
            epoch,
        })
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

    fn load(&self, policy: &model::Policy, setup: &Setup) -> Result<Arc<dyn Attachment>, String> {
        let pinned = policy.sha256.map(Digest::new);
        let loaded = self
            .host
            .load(&policy.component.path, pinned)
            .map_err(|error| error.to_string())?;
        let limits = Limits {
            deadline: policy.deadline,
            mean_max: Some(policy.mean_max),
            memory_max: policy.memory_max,
            ..Limits::default()
        };
        loaded
            .attach(setup, limits, self.epoch.elapsed())
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
        Arc::new(Told(Messages::to_stderr(crate::observe::messages::Level::Warn)?)),
    )?)
}

/// The name that a packed component is given beside its module.
pub(super) fn beside(module: &Path) -> std::path::PathBuf {
    let mut name = module.file_stem().unwrap_or_default().to_owned();
    name.push(".component.wasm");
    module.with_file_name(name)
}
