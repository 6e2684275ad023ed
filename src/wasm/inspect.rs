//! What `forebay plugin inspect` shows of a file, and what the host would refuse and why.

use super::component::{self, Kind};
use super::contract::{CONTRACT, EXPORTS, IMPORTS, PACKAGE};
use super::digest::Digest;
use super::error::listed;
use super::{Host, contract, wasi};
use crate::policy::{Grant, Grants};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// In bytes.
    pub size: u64,
    /// Of the file.
    pub digest: Digest,
    /// The versions of the contract that it was built against, as found in the names of its interfaces.
    pub contracts: Vec<String>,
    /// What it exports, in the order of the file.
    pub exports: Vec<Export>,
    /// What it imports, in the order of the file.
    pub imports: Vec<Import>,
    /// Why the host would refuse to load it; `None` if it would not. Its configuration is another question.
    pub refusal: Option<String>,
}

/// Something that is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Whether the host asks it; everything else is ignored.
    pub used: bool,
}

/// Something that is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its name.
    pub name: String,
    /// Who answers.
    pub from: From,
}

/// Who answers an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The contract.
    Contract,
    /// The contract, if the operator grants it.
    Granted(Grant),
    /// Closed WASI: links, and reaches nothing.
    ClosedWasi,
    /// Nobody: the host refuses the component.
    Nobody,
}

/// Looks at a file. The error is one of reading; whatever else is wrong is part of the answer.
pub(super) fn inspect(host: &Arc<Host>, path: &Path) -> io::Result<Inspection> {
    let bytes = std::fs::read(path)?;
    let digest = Digest::of(&bytes);
    let refusal = component::load(host, path, None)
        .err()
        .map(|error| error.to_string());
    let mut found = Inspection {
        size: bytes.len() as u64,
        digest,
        contracts: Vec::new(),
        exports: Vec::new(),
        imports: Vec::new(),
        refusal,
    };
    if component::kind(&bytes) == Kind::Component {
        found.look_inside(host, path, &bytes);
    }
    Ok(found)
}

impl Inspection {
    /// The line that grants it all that it imports; `None` if it needs no grant.
    pub fn grants(&self) -> Option<String> {
        let wanted = self.imports.iter().filter_map(|import| match import.from {
            From::Granted(grant) => Some(grant),
            _ => None,
        });
        let wanted: Grants = wanted.collect();
        (wanted != Grants::default()).then(|| format!("grants = {}", listed(wanted.iter())))
    }

    fn look_inside(&mut self, host: &Host, path: &Path, bytes: &[u8]) {
        let Ok(component) = component::compiled(host, path, bytes, &self.digest) else {
            return;
        };
        let of = component.component_type();
        for (name, _) in of.imports(component.engine()) {
            self.imports.push(Import {
                name: name.into(),
                from: from(name),
            });
        }
        for name in component::exports(&component) {
            let used = EXPORTS.contains(&name.as_str());
            self.exports.push(Export { name, used });
        }
        let names = self
            .imports
            .iter()
            .map(|it| &it.name)
            .chain(self.exports.iter().map(|it| &it.name));
        let versions = names.filter_map(|name| name.strip_prefix(PACKAGE)?.split_once('@'));
        self.contracts = versions.map(|(_, version)| version.to_owned()).collect();
        self.contracts.sort();
        self.contracts.dedup();
    }
}

fn from(import: &str) -> From {
    if let Some(grant) = contract::grant(import) {
        From::Granted(grant)
    } else if IMPORTS.contains(&import) {
        From::Contract
    } else if wasi::is_closed(import) {
        From::ClosedWasi
    } else {
        From::Nobody
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "size      {} bytes", self.size)?;
        writeln!(out, "sha256    {}", self.digest)?;
        writeln!(
            out,
            "contract  {} (this host: {CONTRACT})",
            self.contracts.join(", ")
        )?;
        for export in &self.exports {
            let note = if export.used { "" } else { "  (ignored)" };
            writeln!(out, "export    {}{note}", export.name)?;
        }
        for import in &self.imports {
            let note = match import.from {
                From::Contract => "",
                From::Granted(_) => "  (if it is granted)",
                From::ClosedWasi => "  (closed)",
                From::Nobody => "  (unknown)",
            };
            writeln!(out, "import    {}{note}", import.name)?;
        }
        if let Some(grants) = self.grants() {
            writeln!(out, "needs     {grants}")?;
        }
        match &self.refusal {
            None => writeln!(out, "loads     yes"),
            Some(refusal) => writeln!(out, "loads     no: {refusal}"),
        }
    }
}
