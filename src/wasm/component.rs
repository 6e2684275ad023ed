//! A component, from the file to what can be instantiated: read → digest → compile or find compiled → link → look up.

use super::contract::{CONTRACT, EXPORTS, IMPORTS, PACKAGE, REQUEST};
use super::contract::{admit, balance_pick, balance_plan, classify, configure, reuse, reuse_plan, route};
use super::digest::Digest;
use super::error::LoadError;
use super::guest::Guest;
use super::instance::{Allowance, Exports, Instance};
use super::{Host, MEMORY_MAX, contract, wasi};
use crate::policy::{Attached, Fault, Grants};
use rustix::process::setpriority_process;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::{Component, InstancePre};

/// Bytes of a component.
pub const COMPONENT_MAX: u64 = 32 << 20;
/// Time for its start functions, at load.
const START_MAX: Duration = Duration::from_secs(1);
/// How nice the thread that compiles is to those that serve.
const NICE: i32 = 10;

/// A component that can be attached. Cheap to clone; the code is freed with the last clone and the last instance.
#[derive(Clone)]
pub struct Loaded(Arc<Inner>);

struct Inner {
    host: Arc<Host>,
    path: PathBuf,
    digest: Digest,
    bytes: u64,
    pre: InstancePre<Guest>,
    indices: Indices,
    reads_requests: bool,
    wants: Grants,
}

/// Where the interfaces of the contract are.
#[derive(Default)]
struct Indices {
    configure: Option<configure::GuestIndices>,
    plan: Option<balance_plan::GuestIndices>,
    pick: Option<balance_pick::GuestIndices>,
    route: Option<route::GuestIndices>,
    reuse: Option<reuse::GuestIndices>,
    reuse_plan: Option<reuse_plan::GuestIndices>,
    classify: Option<classify::GuestIndices>,
    admit: Option<admit::GuestIndices>,
}

impl Loaded {
    /// The file it came from.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// Its size in bytes, as a component.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Whether it plans.
    pub fn plans(&self) -> bool {
        self.0.indices.plan.is_some()
    }

    /// Whether it picks.
    pub fn picks(&self) -> bool {
        self.0.indices.pick.is_some()
    }

    /// Whether it routes.
    pub fn routes(&self) -> bool {
        self.0.indices.route.is_some()
    }

    /// Whether it says how the connection of a request is shared.
    pub fn says_reuse(&self) -> bool {
        self.0.indices.reuse.is_some()
    }

    /// Whether it says how many connections there are to be.
    pub fn plans_reuse(&self) -> bool {
        self.0.indices.reuse_plan.is_some()
    }

    /// Whether it says in which order requests wait.
    pub fn classifies(&self) -> bool {
        self.0.indices.classify.is_some()
    }

    /// Whether it says which requests may wait.
    pub fn admits(&self) -> bool {
        self.0.indices.admit.is_some()
    }

    /// What it has to be granted.
    pub fn wants(&self) -> Grants {
        self.0.wants
    }

    /// Whether it may ask about a request what it was not given.
    pub(super) fn reads_requests(&self) -> bool {
        self.0.reads_requests
    }

    pub(super) fn host(&self) -> &Arc<Host> {
        &self.0.host
    }

    pub(super) fn instantiate(&self, store: &mut Store<Guest>) -> wasmtime::Result<Exports> {
        let instance = self.0.pre.instantiate(&mut *store)?;
        let indices = &self.0.indices;
        // Each interface has types of its own, generated alike.
        macro_rules! load {
            ($interface:ident) => {
                indices
                    .$interface
                    .as_ref()
                    .map(|it| it.load(&mut *store, &instance))
                    .transpose()?
            };
        }
        Ok(Exports {
            configure: load!(configure),
            plan: load!(plan),
            pick: load!(pick),
            route: load!(route),
            reuse: load!(reuse),
            reuse_plan: load!(reuse_plan),
            classify: load!(classify),
            admit: load!(admit),
        })
    }
}

/// Loads a component. `expected` is the digest that the operator pinned.
pub(super) fn load(host: &Arc<Host>, path: &Path, expected: Option<Digest>) -> Result<Loaded, LoadError> {
    let bytes = read(path)?;
    let digest = Digest::of(&bytes);
    if let Some(expected) = expected.filter(|expected| *expected != digest) {
        return Err(LoadError::Digest {
            path: path.into(),
            expected,
            found: digest,
        });
    }
    let component = compiled(host, path, &bytes, &digest)?;
    check_imports(path, &component)?;
    let indices = Indices::of(host, path, &component)?;
    let reads_requests = component
        .component_type()
        .get_import(component.engine(), REQUEST)
        .is_some();
    let wants = component
        .component_type()
        .imports(component.engine())
        .filter_map(|(name, _)| contract::grant(name))
        .collect();
    let loaded = Loaded(Arc::new(Inner {
        host: Arc::clone(host),
        path: path.into(),
        digest,
        bytes: bytes.len() as u64,
        pre: link(host, path, &component)?,
        indices,
        reads_requests,
        wants,
    }));
    rehearse(&loaded)?;
    Ok(loaded)
}

/// Makes an instance, which compares the types of all functions with the contract.
fn rehearse(loaded: &Loaded) -> Result<(), LoadError> {
    let path = loaded.path();
    let who = Arc::new(Attached {
        policy: path.display().to_string().into(),
        place: "".into(),
    });
    match Instance::new(loaded, &who, MEMORY_MAX, Allowance::new(START_MAX, u64::MAX)) {
        Ok(_) => Ok(()),
        Err(cut) if cut.fault == Fault::Instantiate => Err(LoadError::Types {
            path: path.into(),
            text: cut.detail.into_owned(),
        }),
        Err(cut) => Err(LoadError::Fault {
            path: path.into(),
            policy: who.policy.to_string(),
            during: "its start",
            fault: cut.fault,
            detail: cut.detail.into_owned(),
        }),
    }
}

/// The bytes of a file that is not too large.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let failed = |error| LoadError::Read {
        path: path.into(),
        error,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(COMPONENT_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > COMPONENT_MAX {
        return Err(LoadError::TooLarge { path: path.into() });
    }
    match kind(&bytes) {
        Kind::Component => Ok(bytes),
        Kind::Module => Err(LoadError::Module { path: path.into() }),
        Kind::Other => Err(LoadError::NotWasm { path: path.into() }),
    }
}

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Component,
    Module,
    Other,
}

pub(super) fn kind(bytes: &[u8]) -> Kind {
    match bytes {
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => Kind::Module,
        [0, b'a', b's', b'm', _, 0, 1, 0, ..] => Kind::Component,
        _ => Kind::Other,
    }
}

/// From the cache, or from the compiler, which then fills the cache.
pub(super) fn compiled(
    host: &Host,
    path: &Path,
    bytes: &[u8],
    digest: &Digest,
) -> Result<Component, LoadError> {
    if let Some(found) = host
        .cache
        .as_ref()
        .and_then(|cache| cache.load(&host.engine, digest))
    {
        return Ok(found);
    }
    let component = compile(host, bytes).map_err(|text| LoadError::Invalid {
        path: path.into(),
        text,
    })?;
    if let Some(cache) = &host.cache {
        // Without its artefact the next start compiles again: slower, and nothing else.
        let _ = cache.store(digest, &component);
    }
    Ok(component)
}

/// On a thread of its own, which gives way to the workers; the compiler's helpers inherit that from it.
fn compile(host: &Host, bytes: &[u8]) -> Result<Component, String> {
    let work = || {
        // Not allowed to be nice? Then compiling is only less polite.
        let _ = setpriority_process(None, NICE);
        Component::from_binary(&host.engine, bytes).map_err(|error| format!("{error:#}"))
    };
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("compile".into());
        let thread = named
            .spawn_scoped(scope, work)
            .map_err(|error| error.to_string())?;
        thread
            .join()
            .unwrap_or_else(|_| Err("the compiler panicked".into()))
    })
}

fn check_imports(path: &Path, component: &Component) -> Result<(), LoadError> {
    let unknown: Vec<String> = component
        .component_type()
        .imports(component.engine())
        .map(|(name, _)| name)
        .filter(|name| !is_offered(name))
        .map(str::to_owned)
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(LoadError::Imports {
        path: path.into(),
        unknown,
    })
}

/// Whether the host has that import.
pub(super) fn is_offered(import: &str) -> bool {
    IMPORTS.contains(&import) || wasi::is_closed(import)
}

fn link(host: &Host, path: &Path, component: &Component) -> Result<InstancePre<Guest>, LoadError> {
    let mut linker = host.linker.clone();
    wasi::define(&mut linker, component)
        .and_then(|()| linker.instantiate_pre(component))
        .map_err(|error| LoadError::Types {
            path: path.into(),
            text: format!("{error:#}"),
        })
}

impl Indices {
    fn of(host: &Host, path: &Path, component: &Component) -> Result<Indices, LoadError> {
        let names = exports(component);
        let has = |interface: &str| names.iter().any(|name| name == interface);
        if !EXPORTS[1..].iter().any(|interface| has(interface)) {
            let versions = names
                .iter()
                .filter(|name| name.starts_with(PACKAGE))
                .cloned()
                .collect();
            return Err(LoadError::Nothing {
                path: path.into(),
                others: versions,
                contract: CONTRACT,
            });
        }
        let pre = link(host, path, component)?;
        let wrong = |error: wasmtime::Error| LoadError::Types {
            path: path.into(),
            text: format!("{error:#}"),
        };
        let mut found = Indices::default();
        if has(EXPORTS[0]) {
            found.configure = Some(configure::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[1]) {
            found.plan = Some(balance_plan::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[2]) {
            found.pick = Some(balance_pick::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[3]) {
            found.route = Some(route::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[4]) {
            found.reuse = Some(reuse::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[5]) {
            found.reuse_plan = Some(reuse_plan::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[6]) {
            found.classify = Some(classify::GuestIndices::new(&pre).map_err(wrong)?);
        }
        if has(EXPORTS[7]) {
            found.admit = Some(admit::GuestIndices::new(&pre).map_err(wrong)?);
        }
        Ok(found)
    }
}

/// The names of what a component exports.
pub(super) fn exports(component: &Component) -> Vec<String> {
    let of = component.component_type();
    of.exports(component.engine())
        .map(|(name, _)| name.to_owned())
        .collect()
}
