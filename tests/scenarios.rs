//! Every scenario that is shipped gives the transcript that was accepted, whoever runs beside it: in two processes, one after
//! the other and four at a time, byte for byte the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they lie, below the repository.
const PLACES: [&str; 2] = ["plugins", "examples/scenarios"];
/// Policies that are `header-shard` in another language: its scenarios are theirs.
const PORTS: [&str; 4] = [
    "header-shard-c",
    "header-shard-zig",
    "header-shard-as",
    "header-shard-wat",
];

#[test]
fn every_scenario_gives_its_snapshot_whoever_runs_beside_it() {
    let places = PLACES.map(Path::new);
    assert_eq!(told("1", &places), told("4", &places));
}

/// What `forebay test` says of all with so many jobs, but for how long it took.
fn told(jobs: &str, places: &[&Path]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_forebay"))
        .current_dir(root())
        .args(["test", "--jobs", jobs])
        .args(places)
        .output()
        .expect("it runs");
    let (told, wrong) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "--jobs {jobs}:\n{told}{wrong}");
    format!("{told}{wrong}")
}

/// A policy without scenarios is one whose behaviour nobody looks at.
#[test]
fn every_plugin_has_scenarios_and_each_of_them_a_snapshot() {
    let plugins = files(&root().join("plugins"));
    let shipped = plugins.iter().filter(|folder| {
        let component = folder
            .file_name()
            .map(|name| folder.join(name).with_extension("wasm"));
        let is_port = PORTS.iter().any(|port| folder.ends_with(port));
        !is_port && component.is_some_and(|component| component.is_file())
    });
    let mut folders: Vec<PathBuf> = shipped.map(|folder| folder.join("scenarios")).collect();
    assert!(folders.len() >= 11, "only {folders:?}");
    folders.push(root().join("examples/scenarios"));
    for folder in folders {
        let of = |ending: &str| {
            let mut named = files(&folder);
            named.retain(|file| file.extension().is_some_and(|it| it == ending));
            named.iter_mut().for_each(|file| {
                file.set_extension("");
            });
            named
        };
        let (scenarios, snapshots) = (of("toml"), of("snap"));
        assert!(scenarios.len() >= 2, "{}: {scenarios:?}", folder.display());
        assert_eq!(scenarios, snapshots);
    }
}

/// The ports of the same policy to other languages choose alike, whatever happens: in its place, each of them gives the
/// transcripts that were accepted for it.
#[test]
fn every_port_of_header_shard_gives_its_transcripts() {
    for port in PORTS {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("header-shard");
        copy(
            &root().join("plugins/header-shard/scenarios"),
            &place.join("scenarios"),
        );
        let component = root().join(format!("plugins/{port}/{port}.wasm"));
        fs::copy(&component, place.join("header-shard.wasm")).expect("a component");
        let told = told("2", &[&place]);
        assert!(told.contains("4 scenarios: 4 as before"), "{port}: {told}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in files(from) {
        let into = to.join(file.file_name().expect("a name"));
        if file.is_dir() {
            copy(&file, &into);
        } else {
            fs::copy(&file, &into).expect("copied");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
