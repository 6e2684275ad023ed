//! Loads components for simulations: on fuel instead of a clock, each file compiled once for the process.

use crate::config::model;
use crate::control::Loader;
use crate::policy::{Attached, Attachment, Fault, Journal, Keeper, Level, Setup};
use crate::wasm::{Digest, Host, Limits, Loaded, Mode, Settings};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Threads of a proxy that is simulated: its workers and the control thread.
const THREADS: u16 = 65;
/// Places of policies in all scenarios that run at the same time.
const ATTACHMENTS: u16 = 16;

/// The host of simulated policies.
pub struct Components {
    host: Mutex<Option<Arc<Host>>>,
    /// By digest: the same file in many scenarios is one.
    loaded: Mutex<BTreeMap<[u8; 32], Loaded>>,
}

impl Components {
    /// The one of this process.
    pub fn shared() -> Arc<dyn Loader> {
        static SHARED: OnceLock<Arc<Components>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            Arc::new(Components {
                host: Mutex::new(None),
                loaded: Mutex::new(BTreeMap::new()),
            })
        });
        shared.clone()
    }

    fn host(&self) -> Result<Arc<Host>, String> {
        let mut place = self.host.lock();
        if let Some(host) = &*place {
            return Ok(host.clone());
        }
        let settings = Settings {
            mode: Mode::Test,
            threads: THREADS,
            attachments: ATTACHMENTS,
            cache: None,
        };
        let host = Host::new(&settings, Arc::new(Quiet)).map_err(|error| error.to_string())?;
        Ok(place.insert(host).clone())
    }
}

impl Loader for Components {
    fn digest(&self, policy: &model::Policy) -> Result<[u8; 32], String> {
        let path = &policy.component.path;
        let bytes =
            std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(*Digest::of(&bytes).bytes())
    }

    fn load(
        &self,
        policy: &model::Policy,
        setup: &Setup,
        keeper: &Arc<dyn Keeper>,
    ) -> Result<Arc<dyn Attachment>, String> {
        let digest = self.digest(policy)?;
        let known = self.loaded.lock().get(&digest).cloned();
        let loaded = match known {
            Some(loaded) => loaded,
            None => {
                let pinned = policy.sha256.map(Digest::new);
                let loaded = self
                    .host()?
                    .load(&policy.component.path, pinned)
                    .map_err(|error| error.to_string())?;
                self.loaded.lock().entry(digest).or_insert(loaded).clone()
            }
        };
        let limits = Limits {
            deadline: policy.deadline,
            // There is no clock that could be slow.
            mean_max: None,
            memory_max: policy.memory_max,
            grants: policy.grants,
            ..Limits::default()
        };
        loaded
            .attach_kept(setup, limits, Some(keeper.clone()), Duration::ZERO)
            .map_err(|error| error.to_string())
    }
}

/// What policies say is not part of a transcript; faults are counted.
struct Quiet;

impl Journal for Quiet {
    fn said(&self, _: &Attached, _: Level, _: &str) {}
    fn fault(&self, _: &Attached, _: Fault, _: &str) {}
    fn paused(&self, _: &Attached, _: Fault, _: Duration) {}
    fn resumed(&self, _: &Attached) {}
}
