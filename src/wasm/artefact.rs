//! Compiled components on disk: compiled once for each digest, engine and full version, and checked before they are
//! loaded. The one file of the program that says `unsafe`.
//!
//! A file is the SHA-256 of what follows, then what the engine serialised. Its name carries the component's digest, the
//! engine's compatibility hash and the full version (the engine itself compares the major version only). Whatever is wrong
//! with a file, the component is compiled again.
//!
//! SAFETY of [`Cache::load`]: a serialised component is machine code, and loading one that nobody compiled would run
//! whatever it says. What is loaded here was written by [`Cache::store`], by this program: the folder belongs to the
//! user it runs as and nobody else may write to it ([`Cache::open`] refuses others), the bytes are those that were
//! written (the checksum is compared on the bytes in memory that are then loaded, so nothing can change between), and they
//! were made by the same version of the same engine with the same settings (the name, and the engine's own check).
//! Who can write as this user can also replace the program.

#![allow(unsafe_code, reason = "loading what the compiler wrote: see SAFETY above")]

use super::VERSION;
use super::digest::Digest;
use rustix::process::{geteuid, getpid};
use std::fs::{DirBuilder, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use wasmtime::Engine;
use wasmtime::component::Component;

/// A folder of compiled components.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    suffix: String,
}

impl Cache {
    /// Makes the folder if need be. One that others can write to is refused.
    pub(super) fn open(folder: &Path, engine: &Engine) -> io::Result<Cache> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let found = folder.metadata()?;
        if found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            let text = "others may write to it: give it to this user with mode 0700, or name another folder";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let suffix = format!("{:016x}-{VERSION}.cwasm", hasher.finish());
        Ok(Cache {
            folder: folder.to_owned(),
            suffix,
        })
    }

    /// What was compiled before from the component of that digest.
    pub(super) fn load(&self, engine: &Engine, digest: &Digest) -> Option<Component> {
        let bytes = std::fs::read(self.file(digest)).ok()?;
        let (sum, code) = bytes.split_at_checked(Digest::LENGTH)?;
        if Digest::of(code).bytes() != sum {
            return None;
        }
        // SAFETY: see the head of this file.
        unsafe { Component::deserialize(engine, code) }.ok()
    }

    /// Keeps what was compiled. Appears whole or not at all.
    pub(super) fn store(&self, digest: &Digest, component: &Component) -> io::Result<()> {
        let code = component.serialize().map_err(io::Error::other)?;
        let file = self.file(digest);
        let unique = format!("{}.{}", getpid().as_raw_nonzero(), digest.short());
        let half = self.folder.join(format!("{unique}.part"));
        let mut options = OpenOptions::new();
        let mut out = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&half)?;
        out.write_all(Digest::of(&code).bytes())?;
        out.write_all(&code)?;
        out.sync_all()?;
        std::fs::rename(&half, &file)
    }

    fn file(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{digest}-{}", self.suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_damaged_or_foreign_artefact_is_compiled_again() {
        let engine = Engine::default();
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::open(&folder.path().join("cwasm"), &engine).expect("a cache");
        let component =
            Component::new(&engine, wat::parse_str("(component)").expect("wat")).expect("a component");
        let (digest, other) = (Digest::of(b"a"), Digest::of(b"b"));
        cache.store(&digest, &component).expect("kept");
        assert!(cache.load(&engine, &digest).is_some());
        assert!(cache.load(&engine, &other).is_none());
        let file = cache.file(&digest);
        let mut bytes = std::fs::read(&file).expect("the artefact");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&file, &bytes).expect("written");
        assert!(cache.load(&engine, &digest).is_none());
        std::fs::write(&file, &bytes[..10]).expect("written");
        assert!(cache.load(&engine, &digest).is_none());
    }

    #[test]
    fn a_folder_open_to_others_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("opened");
        assert!(Cache::open(folder.path(), &Engine::default()).is_err());
    }
}
