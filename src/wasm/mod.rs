//! The host of policies written in WebAssembly: what the contract in `wit/` says, made true.
//!
//! ```text
//!  Host ──load──► Loaded ──attach──► Attachment ──policy───► Policy    one for each worker
//!  engine          a component        configured,   └─planner─► Planner  one for the control thread
//!  ticker          compiled           bounded,
//!  cache           and linked         watched
//! ```
//!
//! | file | question |
//! |---|---|
//! | `contract` | What are the types and calls of `wit/`? |
//! | `engine`, `ticker` | On what do guests run, and who cuts them? |
//! | `component`, `artefact`, `digest`, `error` | How does a file become code, and why not? |
//! | `attachment` | What does a policy want in its place, and what may it use? |
//! | `instance`, `guest`, `imports`, `measured`, `granted`, `wasi` | What is one guest, and what can it reach? |
//! | `serve`, `planner`, `answer` | How is it asked, and what of its answer is used? |
//! | `health` | Is it worth asking? |
//! | `inspect`, `pack`, `bindings` | What does its author need? |
//!
//! Nobody else names wasmtime. Everything that leaves is of [`crate::policy`].

mod answer;
mod artefact;
mod attachment;
mod bindings;
mod component;
mod contract;
mod digest;
mod engine;
mod error;
mod granted;
mod guest;
mod health;
mod imports;
mod inspect;
mod instance;
mod measured;
mod pack;
mod planner;
mod remembered;
mod serve;
mod ticker;
mod wasi;

pub use attachment::Limits;
pub use bindings::c_bindings;
pub use component::{COMPONENT_MAX, Loaded};
pub use contract::WIT;
pub use digest::Digest;
pub use engine::Mode;
pub use error::{LoadError, Problem};
pub use inspect::{Export, From, Import, Inspection};
pub use pack::{PackError, Text, pack};
pub use wasi::answered as answered_wasi;

use crate::policy::Journal;
use artefact::Cache;
use engine::Room;
use guest::Guest;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use ticker::Ticker;
use wasmtime::Engine;
use wasmtime::component::Linker;

/// The version of the engine, in full. (Cargo.toml pins it; a test compares.)
pub const VERSION: &str = "48.0.8";

/// The most memory that a policy can be allowed.
pub const MEMORY_MAX: usize = 64 << 20;

/// Instances for trying things out, beside those that serve.
const SPARE: u32 = 8;

/// What a host is made for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Serving, or tests.
    pub mode: Mode,
    /// Threads that will hold instances, the control thread included.
    pub threads: u16,
    /// Attachments that each of them may hold (`attachments-max`).
    pub attachments: u16,
    /// Where compiled components are kept; `None` compiles each time.
    pub cache: Option<PathBuf>,
}

/// The engine and what belongs to it. One for the process; shared by everything that it loads.
pub struct Host {
    engine: Engine,
    mode: Mode,
    ticker: Option<Ticker>,
    linker: Linker<Guest>,
    cache: Option<Cache>,
    journal: Arc<dyn Journal>,
    remarks: Vec<String>,
}

impl Host {
    /// Makes the engine, which reserves address space for all instances, old and new, during a swap.
    pub fn new(settings: &Settings, journal: Arc<dyn Journal>) -> Result<Arc<Host>, LoadError> {
        let failed = |text: String| LoadError::Engine { text };
        let instances = u32::from(settings.threads) * u32::from(settings.attachments) * 2 + SPARE;
        let room = Room {
            instances,
            memory_max: MEMORY_MAX,
        };
        let (engine, without_pool) =
            engine::engine(settings.mode, room).map_err(|error| failed(format!("{error:#}")))?;
        let mut remarks: Vec<String> = without_pool
            .map(|text| format!("no pool of instances ({text}): each is made on demand, which costs more"))
            .into_iter()
            .collect();
        let ticker = match settings.mode {
            Mode::Live => Some(Ticker::start(&engine).map_err(|error| failed(error.to_string()))?),
            Mode::Test => None,
        };
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker).map_err(|error| failed(format!("{error:#}")))?;
        let cache = settings.cache.as_deref().and_then(|folder| {
            Cache::open(folder, &engine)
                .map_err(|error| remarks.push(format!("no cache in {}: {error}", folder.display())))
                .ok()
        });
        Ok(Arc::new(Host {
            engine,
            mode: settings.mode,
            ticker,
            linker,
            cache,
            journal,
            remarks,
        }))
    }

    /// What operators should know about how the host was made; none of it stops it from working.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Loads a component: reads, compares the pinned digest, compiles on a nice thread unless the cache has it, checks
    /// imports, exports and types. Takes milliseconds to seconds; not for a thread that serves.
    pub fn load(self: &Arc<Self>, path: &Path, pinned: Option<Digest>) -> Result<Loaded, LoadError> {
        component::load(self, path, pinned)
    }

    /// What a file exports and imports, and whether it would load.
    pub fn inspect(self: &Arc<Self>, path: &Path) -> io::Result<Inspection> {
        inspect::inspect(self, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name of an artefact carries it.
    #[test]
    fn the_version_is_the_one_that_is_pinned() {
        let manifest = include_str!("../../Cargo.toml");
        assert!(manifest.contains(&format!("wasmtime = {{ version = \"={VERSION}\"")));
    }
}
