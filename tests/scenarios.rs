//! Every scenario that is shipped gives the transcript that was accepted, whoever runs beside it: in two processes, one after
//! the other and four at a time, byte for byte the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where they lie, below the repository.
const PLACES: [&str; 2] = ["plugins", "examples/scenarios"];

#[test]
fn every_scenario_gives_its_snapshot_whoever_runs_beside_it() {
    assert_eq!(told("1"), told("4"));
}

/// What `forebay test` says of all with so many jobs, but for how long it took.
fn told(jobs: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_forebay"))
        .current_dir(root())
        .args(["test", "--jobs", jobs])
        .args(PLACES)
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
        component.is_some_and(|component| component.is_file())
    });
    let mut folders: Vec<PathBuf> = shipped.map(|folder| folder.join("scenarios")).collect();
    assert!(folders.len() >= 7, "only {folders:?}");
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

/// The two ports of the same policy choose alike, whatever happens.
#[test]
fn both_ports_of_header_shard_give_the_same_transcripts() {
    let text = |port: &str, file: &Path| {
        let file = root().join("plugins").join(port).join("scenarios").join(file);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        text.replace(port, "PORT")
    };
    for file in files(&root().join("plugins/header-shard/scenarios")) {
        if let Some(name) = file.file_name().filter(|_| file.is_file()) {
            let name = Path::new(name);
            assert_eq!(text("header-shard", name), text("header-shard-c", name));
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
