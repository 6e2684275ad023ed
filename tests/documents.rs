//! What the documents show is true: the plugin of the README is the one that is shipped, every configuration loads and
//! its policies accept what it tells them, every link leads to a file.
//!
//! A document may leave out what its reader can add. What is added here is what the text around such a part says: a
//! listener before the backend that is shown, the place of the policy whose keys are shown.

#![cfg(feature = "proxy")]

use forebay::config;
use std::path::{Path, PathBuf};

/// What a newcomer reads and pastes from.
const DOCUMENTS: [&str; 12] = [
    "README.md",
    "CHANGELOG.md",
    ".github/CONTRIBUTING.md",
    "plugins/README.md",
    "src/manual/balancing.md",
    "src/manual/configuration.md",
    "src/manual/plugins.md",
    "src/manual/roadmap.md",
    "src/manual/scenarios.md",
    "src/manual/testing.md",
    "tests/README.md",
    "tests/contract/0.1.0/README.md",
];

/// Sources that show their keys in their first lines, and where each of these policies is attached.
const SOURCES: [(&str, &str); 10] = [
    ("least-latency", BEHIND_A_BACKEND),
    ("peak-ewma", BEHIND_A_BACKEND),
    ("header-shard", BEHIND_A_BACKEND),
    ("zone-aware", BEHIND_A_BACKEND),
    ("least-cost", BEHIND_A_BACKEND),
    ("canary", AT_A_LISTENER),
    ("tenants", BESIDE_A_BACKEND),
    ("preconnect", BESIDE_A_BACKEND),
    ("tenant-priority", BEFORE_A_QUEUE),
    ("adaptive-concurrency", BEHIND_A_BACKEND),
];

const BEHIND_A_BACKEND: &str = r#"
[[listen]]
bind = "127.0.0.1:8080"
backend = "app"
[backend.app]
servers = ["127.0.0.1:9001"]
balance = { policy = "shown" }
"#;

const BESIDE_A_BACKEND: &str = r#"
[[listen]]
bind = "127.0.0.1:8080"
backend = "app"
[backend.app]
servers = ["127.0.0.1:9001"]
reuse-policy = "shown"
"#;

const BEFORE_A_QUEUE: &str = r#"
[[listen]]
bind = "127.0.0.1:8080"
backend = "app"
[backend.app]
servers = ["127.0.0.1:9001"]
queue-policy = "shown"
"#;

const AT_A_LISTENER: &str = r#"
[[listen]]
bind = "127.0.0.1:8080"
backend = "app"
route-policy = "shown"
[backend.app]
servers = ["127.0.0.1:9001"]
[backend.canary]
servers = ["127.0.0.1:9002"]
[backend.beta]
servers = ["127.0.0.1:9003"]
"#;

#[test]
fn the_first_policy_of_the_readme_is_the_shipped_one() {
    let readme = read("README.md");
    let shown = blocks(&readme, "rust");
    let shipped = read("plugins/own-first/src/lib.rs").replace(r#"path: "../../wit""#, r#"path: "wit""#);
    assert_eq!(shown, [shipped]);
}

#[test]
fn every_configuration_that_is_shown_is_right() {
    let shown = configurations();
    assert!(shown.len() >= 8, "only {} are shown", shown.len());
    for (place, text) in shown {
        let lookup = |host: &str, _| Err(format!("{place} needs the host {host}"));
        // As if the file lay at the top of the repository, where the components are found that it names.
        let file = root().join("forebay.toml").display().to_string();
        let loaded = config::parse_with(&text, &file, &lookup)
            .unwrap_or_else(|errors| panic!("{place}:\n{text}\n{}", errors.render(false)));
        assert!(
            loaded.warnings.is_empty(),
            "{place}:\n{text}\n{}",
            loaded.warnings
        );
        for policy in &loaded.config.policies {
            let component = &policy.component;
            assert!(component.path.is_file(), "{place}: no {}", component.written);
        }
    }
}

/// The components are asked too, as by `forebay check`.
#[cfg(feature = "wasm")]
#[test]
fn every_policy_that_is_shown_accepts_its_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(root().join("plugins"), folder.path().join("plugins")).expect("a link");
    let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_forebay"));
    check.arg("check");
    let shown = configurations();
    for (at, (place, text)) in shown.iter().enumerate() {
        let file = folder.path().join(format!("{at}.toml"));
        std::fs::write(&file, format!("# {place}\n{text}")).expect("written");
        check.arg(file);
    }
    let output = check.output().expect("it runs");
    let (told, wrong) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{told}{wrong}");
    assert_eq!((told.lines().count(), &*wrong), (shown.len(), ""), "{told}");
}

#[test]
fn every_link_leads_to_a_file() {
    let mut links = 0;
    for document in DOCUMENTS {
        let (text, from) = (read(document), root().join(document));
        let folder = from.parent().expect("a folder");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            assert!(folder.join(file).exists(), "{document} links to {target}");
            links += 1;
        }
    }
    assert!(links > 20, "only {links} links");
}

/// `tests/scenarios.rs` shows that the snapshot is what the scenario gives.
#[test]
fn the_first_scenario_of_the_manual_is_a_shipped_one() {
    let manual = read("src/manual/testing.md");
    let scenario = read("examples/scenarios/leastconn.toml");
    assert_eq!(blocks(&manual, "toml")[0], scenario);
    let snapshot = read("examples/scenarios/leastconn.snap");
    let (_, transcript) = snapshot[3..].split_once("\n---\n").expect("a head");
    assert_eq!(blocks(&manual, "text")[0], transcript);
}

/// Where it stands, and the whole of it.
fn configurations() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for document in DOCUMENTS {
        // A scenario is more than a configuration.
        let shown = blocks(&read(document), "toml");
        for block in shown.into_iter().filter(|block| !block.contains("[scenario]")) {
            found.push((document.to_owned(), with_a_listener(&block)));
        }
    }
    for (name, around) in SOURCES {
        let source = format!("plugins/{name}/src/lib.rs");
        let component = format!("component = \"plugins/{name}/{name}.wasm\"");
        let head: String = read(&source)
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| format!("{}\n", line.trim_start()))
            .collect();
        for keys in blocks(&head, "toml") {
            found.push((
                source.clone(),
                format!("{around}[policy.shown]\n{component}\n{keys}"),
            ));
        }
    }
    found
}

/// A part without a listener begins with the backend that the reader's listener names.
fn with_a_listener(block: &str) -> String {
    if block.contains("[[listen]]") {
        return block.to_owned();
    }
    let backend = block
        .lines()
        .find_map(|line| line.strip_prefix("[backend.")?.strip_suffix(']'))
        .unwrap_or_else(|| panic!("neither a listener nor a backend:\n{block}"));
    format!("[[listen]]\nbind = \"127.0.0.1:8080\"\nbackend = \"{backend}\"\n{block}")
}

/// The code of that language in a document.
fn blocks(text: &str, language: &str) -> Vec<String> {
    text.split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
