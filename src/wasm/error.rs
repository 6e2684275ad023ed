//! Why a component cannot be used: what, where, and what to do about it.

use super::digest::Digest;
use crate::policy::{Fault, Grant, Grants};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// A component that is refused.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It is larger than [`super::COMPONENT_MAX`].
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not WebAssembly.
    NotWasm {
        /// The file.
        path: PathBuf,
    },
    /// It is a core module, not a component.
    Module {
        /// The file.
        path: PathBuf,
    },
    /// It is another file than the one that was pinned.
    Digest {
        /// The file.
        path: PathBuf,
        /// As configured.
        expected: Digest,
        /// As it is.
        found: Digest,
    },
    /// It is damaged, or uses what this host does not compile.
    Invalid {
        /// The file.
        path: PathBuf,
        /// What the compiler says.
        text: String,
    },
    /// It imports what this host does not have.
    Imports {
        /// The file.
        path: PathBuf,
        /// Their names.
        unknown: Vec<String>,
    },
    /// It imports what it was not granted.
    NotGranted {
        /// The file.
        path: PathBuf,
        /// The policy's name.
        policy: String,
        /// What it has been granted already.
        granted: Grants,
        /// What is missing.
        missing: Grants,
    },
    /// Its types are not those of the contract.
    Types {
        /// The file.
        path: PathBuf,
        /// Where they differ.
        text: String,
    },
    /// It exports nothing that this host asks for.
    Nothing {
        /// The file.
        path: PathBuf,
        /// Interfaces of other versions of the contract.
        others: Vec<String>,
        /// The version that this host knows.
        contract: &'static str,
    },
    /// It does not like its configuration.
    Configuration {
        /// The policy's name.
        policy: String,
        /// What it does not like, at least one.
        problems: Vec<Problem>,
    },
    /// It asked for something that does not exist.
    Wish {
        /// The policy's name.
        policy: String,
        /// What, and why not.
        text: String,
    },
    /// It failed while it was instantiated or configured.
    Fault {
        /// The file.
        path: PathBuf,
        /// The policy's name.
        policy: String,
        /// During what.
        during: &'static str,
        /// How.
        fault: Fault,
        /// What the host or the engine says.
        detail: String,
    },
    /// The engine cannot be had.
    Engine {
        /// What it says.
        text: String,
    },
}

/// Something wrong with a policy's own configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Keys joined with dots; empty for the table as a whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Read { path, error } => write!(
                out,
                "{}: cannot be read: {error}. Check the path `component`, relative to the configuration file",
                path.display()
            ),
            LoadError::TooLarge { path } => {
                write!(
                    out,
                    "{}: larger than 32 MiB. Build it without debug information",
                    path.display()
                )
            }
            LoadError::NotWasm { path } => {
                write!(
                    out,
                    "{}: not WebAssembly. `component` names a .wasm file",
                    path.display()
                )
            }
            LoadError::Module { path } => write!(
                out,
                "{0}: a core module, not a component. Pack it: `forebay plugin build {0}`",
                path.display()
            ),
            LoadError::Digest {
                path,
                expected,
                found,
            } => write!(
                out,
                "{}: its SHA-256 is {found}, not {expected}. Put the pinned file back, or change `sha256`",
                path.display()
            ),
            LoadError::Invalid { path, text } => write!(
                out,
                "{}: does not compile: {text}. It may be cut off, or need a proposal that this host leaves out",
                path.display()
            ),
            LoadError::Imports { path, unknown } => write!(
                out,
                "{}: imports {}, which this host does not have. It offers forebay:policy 0.1.0 and closed WASI 0.2",
                path.display(),
                unknown.join(", ")
            ),
            LoadError::NotGranted {
                path,
                policy,
                granted,
                missing,
            } => {
                let imports: Vec<String> = missing
                    .iter()
                    .map(|grant| format!("forebay:policy/{}", grant.word()))
                    .collect();
                let all = granted.iter().chain(missing.iter());
                write!(
                    out,
                    "{}: imports {}, which has to be granted. Write `grants = {}` in [policy.{policy}]",
                    path.display(),
                    imports.join(" and "),
                    listed(all)
                )
            }
            LoadError::Types { path, text } => write!(
                out,
                "{}: its types differ from the contract: {text}. Build it against wit/ of this version",
                path.display()
            ),
            LoadError::Nothing {
                path,
                others,
                contract,
            } => nothing(out, path, others, contract),
            LoadError::Configuration { policy, problems } => {
                write!(out, "policy `{policy}` refuses its configuration:")?;
                problems
                    .iter()
                    .try_for_each(|problem| match problem.path.as_str() {
                        "" => write!(out, "\n  config: {}", problem.message),
                        path => write!(out, "\n  config.{path}: {}", problem.message),
                    })
            }
            LoadError::Wish { policy, text } => write!(out, "policy `{policy}`: {text}"),
            LoadError::Fault {
                path,
                policy,
                during,
                fault,
                detail,
            } => write!(
                out,
                "{}: policy `{policy}` failed in {during} ({}): {detail}. {}",
                path.display(),
                fault.word(),
                remedy(*fault)
            ),
            LoadError::Engine { text } => write!(out, "no WebAssembly engine: {text}"),
        }
    }
}

/// As `grants` lists them.
pub(super) fn listed(grants: impl Iterator<Item = Grant>) -> String {
    let quoted: Vec<String> = grants.map(|grant| format!("\"{}\"", grant.word())).collect();
    format!("[{}]", quoted.join(", "))
}

/// What can be done about a component that fails before it has served anything.
fn remedy(fault: Fault) -> &'static str {
    match fault {
        Fault::Deadline => {
            "`configure` may take 1 s at load and `deadline` on a worker: raise `deadline`, or have it do less"
        }
        Fault::Memory => "Raise `memory-max`, or have it keep less",
        Fault::Instantiate => "Raise `attachments-max`, or attach fewer policies",
        _ => "The mistake is in the component: put one that works in its place",
    }
}

fn nothing(
    out: &mut fmt::Formatter<'_>,
    path: &std::path::Path,
    others: &[String],
    known: &str,
) -> fmt::Result {
    write!(out, "{}: exports none of forebay:policy/", path.display())?;
    write!(out, "{{balance-plan,balance-pick,route}}@{known}")?;
    match others {
        [] => write!(out, ". Build it against a world of wit/"),
        _ => write!(
            out,
            ", but {}: it was built against another version",
            others.join(", ")
        ),
    }
}
