//! The components of a contract are never replaced: their sums say whether they are still the same.

use forebay::wasm::Digest;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where those of the first contract lie.
pub(super) const FOLDER: &str = "tests/contract/0.1.0";

#[test]
fn kept_components_are_still_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).expect("sums");
    let written: BTreeMap<String, Digest> = sums.lines().map(sum).collect();
    let files = fs::read_dir(&folder).expect("a folder");
    let found: BTreeMap<String, Digest> = files
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|it| it == "wasm"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, Digest::of(&fs::read(&path).expect("a component")))
        })
        .collect();
    assert_eq!(found, written);
    assert!(found.len() >= 7, "{found:?}");
}

/// A line of `sha256sum`: digest, two blanks, name.
fn sum(line: &str) -> (String, Digest) {
    let (digest, name) = line.split_once("  ").expect("a digest and a name");
    (name.to_owned(), digest.parse().expect("a digest"))
}

/// Each is described beside them.
#[test]
fn kept_components_are_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("a text");
    let (sums, readme) = (text("SHA256SUMS"), text("README.md"));
    for (name, _) in sums.lines().map(sum) {
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}
