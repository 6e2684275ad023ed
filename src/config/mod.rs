//! From a file to a [`Config`]: read once, checked whole, every mistake told with its place.
//!
//! ```text
//! text ─ syntax ─→ tree ─ read, values (driven by keys) ─→ process, policy, backend, listen, route, headers ─ check ─→ Config
//!                            every mistake ─→ Report ─→ Errors
//! ```
//! [`load`] and [`parse`] give a configuration or all errors of the file at once. Nothing here opens a socket; host names are
//! looked up (once, several at a time). What a key looks like, its default and its range stand in [`keys`] and [`defaults`];
//! [`mod@reference`] prints them as the manual, [`mod@schema`] for editors; [`show()`] prints a configuration with every default
//! written out.

mod address;
mod backend;
mod balance;
mod check;
pub mod defaults;
mod errors;
mod headers;
pub mod keys;
mod limits;
mod listen;
pub mod model;
mod names;
mod persist;
mod policy;
mod pool;
mod process;
mod read;
pub mod reference;
pub mod resolve;
mod route;
pub mod scenario;
pub mod schema;
mod show;
mod syntax;
pub mod units;
mod values;
mod words;

pub use errors::Errors;
pub use model::Config;
pub use show::show;

use errors::Report;
use keys::Section;
use names::{Names, Policies};
use read::{Fields, Text};
use resolve::{Answers, Lookup};
use std::path::Path;
use toml::Spanned;
use toml::de::DeTable;

/// A configuration and what is odd about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings; often empty.
    pub warnings: Errors,
}

/// Reads a file.
pub fn load(path: &Path) -> Result<Config, Errors> {
    load_with_warnings(path).map(|loaded| loaded.config)
}

/// Reads a file, and says what is odd about it.
pub fn load_with_warnings(path: &Path) -> Result<Loaded, Errors> {
    let file = path.display().to_string();
    parse_with(&read_text(path, &file)?, &file, &resolve::system)
}

/// Reads a text; `file` is its name in messages.
pub fn parse(text: &str, file: &str) -> Result<Config, Errors> {
    parse_with(text, file, &resolve::system).map(|loaded| loaded.config)
}

/// Reads a text, with another way to look up host names.
pub fn parse_with(text: &str, file: &str, lookup: &Lookup<'_>) -> Result<Loaded, Errors> {
    let mut report = Report::new(text);
    let tree = syntax::read(text, &mut report);
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let config = parse_tree(&tree, folder, lookup, &mut report);
    report.finish(file).map(|warnings| Loaded { config, warnings })
}

/// Reads a tree; relative paths begin at `folder`.
fn parse_tree(
    tree: &Spanned<DeTable<'_>>,
    folder: &Path,
    lookup: &Lookup<'_>,
    report: &mut Report,
) -> Config {
    let answers = Answers::of(address::names(tree), lookup);
    let top = Fields::of(Section::File, tree.get_ref(), 0..0, report);
    let process = process::process(&top, folder, &answers, report);
    let named = top.named("policy", report);
    let names = Names::of("policy", &top, texts(&named));
    let policy_names = texts(&named);
    let policies = policy::policies(named, folder, report);
    let attaching = Policies::of(names, &policies);
    let named = top.named("backend", report);
    let names = Names::of("backend", &top, texts(&named));
    let backends = backend::backends(named, &attaching, &answers, report);
    let around = listen::Around {
        backends: &names,
        policies: &attaching,
        workers: process.workers,
        answers: &answers,
    };
    let listeners = listen::listeners(&top, &around, report);
    check::attachments(attaching.attached(), process.attachments_max, report);

    let config = Config {
        process,
        listeners,
        backends,
        policies,
    };
    check::odd(&config, names.known(), &policy_names, report);
    config
}

fn texts<'a>(named: &[(Text<'a>, Fields<'a>)]) -> Vec<Text<'a>> {
    named.iter().map(|(name, _)| name.clone()).collect()
}

fn read_text(path: &Path, file: &str) -> Result<String, Errors> {
    let unreadable = |error: std::io::Error| Errors::unreadable(file, format!("cannot be read: {error}"), "");
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > defaults::FILE_MAX {
        let found = format!("is {} large", units::show_size(size));
        return Err(Errors::unreadable(
            file,
            found,
            format!("expected at most {}", units::show_size(defaults::FILE_MAX)),
        ));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|error| {
        let good =
            String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
        let (line, column) = errors::place(&good, good.len());
        Errors::unreadable(
            file,
            format!("line {line}, column {column}: not UTF-8"),
            "save the file as UTF-8",
        )
    })
}
