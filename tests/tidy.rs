//! The walls of the house: who may use whom, where names may stand, what every citation means, how long files are.
//!
//! DESIGN's arrows point one way. The snapshot shows every arrow there is, so that a new one is a line in a diff; the
//! table below says which ones may exist at all. Code under `#[cfg(test)]` is free to look anywhere.

#[path = "tidy/code.rs"]
mod code;

use code::{Code, blank, files_under, read, read_all};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which top-level module may use which. `cli` may use all; nobody may use it but `main.rs`.
const ARROWS: &[(&str, &[&str])] = &[
    ("http1", &[]),
    ("policy", &[]),
    ("sync", &[]),
    ("net", &[]),
    ("observe", &[]),
    ("decide", &["policy", "http1"]),
    // DESIGN draws no arrows for config; net lends it the one type of an address.
    ("config", &["decide", "policy", "http1", "net"]),
    ("shared", &["decide", "policy", "sync"]),
    ("wasm", &["policy"]),
    // A scenario is a configuration in a simulated world: read, built, planned and hosted as in production.
    (
        "sim",
        &[
            "shared", "decide", "policy", "http1", "config", "control", "net", "wasm",
        ],
    ),
    (
        "worker",
        &["net", "shared", "decide", "http1", "policy", "observe"],
    ),
    (
        "control",
        &["shared", "decide", "policy", "config", "net", "observe"],
    ),
    ("admin", &["control", "shared", "observe"]),
    ("main", &["cli"]),
];

/// What lies at the top, dotfiles apart. `target` is the build's.
const TOP: &[&str] = &[
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "examples",
    "plugins",
    "src",
    "target",
    "tests",
    "wit",
];

/// What lies in `src`.
const HOUSE: &[&str] = &[
    "admin",
    "cli",
    "config",
    "control",
    "decide",
    "http1",
    "lib.rs",
    "main.rs",
    "manual",
    "net",
    "observe",
    "policy",
    "policy.rs",
    "shared",
    "sim",
    "sync.rs",
    "wasm",
    "worker",
];

/// Modules that take time, randomness and bytes as arguments, and what they must therefore never name.
const PURE: &[&str] = &["http1", "decide", "policy", "shared", "sim", "sync"];
const IMPURE: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "thread::sleep",
    "std::fs",
    "std::process",
    "TcpStream",
    "TcpListener",
    "UnixStream",
    "UnixListener",
];

/// Libraries that only some places may name: the crate, and the beginnings of paths below `src/`.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("wasmtime", &["wasm/"]),
    // The acceptor of metrics and commands needs a poll that can be woken to end.
    ("mio", &["net/", "worker/", "cli/demo", "observe/acceptor"]),
    ("tokio", &[]),
];

/// Lines of a file beyond which it is named in the report, and beyond which it is surely about two subjects.
const LONG: usize = 370;
const TOO_LONG: usize = 800;

/// The groups of clauses (`src/manual/rules.md`).
const CLAUSES: &[&str] = &[
    "POOL", "TAKE", "Q", "RT", "LB", "HC", "SYNC", "SCH", "ST", "DNS", "RD", "CLI", "RE", "LG", "AC",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn arrows_point_one_way() {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for code in read_all(&root().join("src")) {
        let from = code.module().to_owned();
        let others = uses(&code).into_iter().filter(|to| *to != from);
        arrows.entry(from.clone()).or_default().extend(others);
    }
    arrows.remove("lib");
    let drawn: Vec<String> = arrows
        .iter()
        .map(|(from, to)| format!("{from} -> {}", to.iter().cloned().collect::<Vec<_>>().join(", ")))
        .map(|line| line.trim_end().to_owned())
        .collect();
    println!("{}", drawn.join("\n"));
    let forbidden: Vec<String> = arrows
        .iter()
        .flat_map(|(from, to)| {
            to.iter()
                .filter(|to| !may_use(from, to))
                .map(move |to| format!("{from} -> {to}"))
        })
        .collect();
    assert!(forbidden.is_empty(), "DESIGN §1 does not allow: {forbidden:?}");
    insta::assert_snapshot!("arrows", drawn.join("\n"));
}

fn may_use(from: &str, to: &str) -> bool {
    match ARROWS.iter().find(|(module, _)| *module == from) {
        Some((_, allowed)) => allowed.contains(&to),
        None => from == "cli",
    }
}

/// The top-level modules that a file names by `crate::X`, by `forebay::X`, or by `super::` up to the crate.
fn uses(code: &Code) -> BTreeSet<String> {
    let up = "super::".repeat(code.depth().max(1));
    let mut found = BTreeSet::new();
    for prefix in ["crate::", "forebay::", up.as_str()] {
        for (at, _) in code.text.match_indices(prefix) {
            let before = code.text[..at].chars().next_back();
            let begins_here = !before.is_some_and(|it| it.is_alphanumeric() || it == '_' || it == ':');
            let into_macro = before == Some('$');
            if begins_here && !into_macro {
                found.extend(first_names(&code.text[at + prefix.len()..]));
            }
        }
    }
    let modules: BTreeSet<&str> = ARROWS.iter().map(|(module, _)| *module).chain(["cli"]).collect();
    found
        .into_iter()
        .filter(|name| modules.contains(name.as_str()))
        .collect()
}

/// The first name of a path, or those of each path in a `{…}` group.
fn first_names(rest: &str) -> Vec<String> {
    let word = |text: &str| {
        text.chars()
            .take_while(|it| it.is_alphanumeric() || *it == '_')
            .collect::<String>()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![word(rest)];
    };
    let (mut names, mut depth, mut begins) = (Vec::new(), 0, true);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            it if begins && !it.is_whitespace() => {
                names.push(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn names_stand_where_they_may() {
    let sources = read_all(&root().join("src"));
    let mut wrong = Vec::new();
    for code in &sources {
        for (library, places) in LIBRARIES {
            if names(&code.text, &format!("{library}::"))
                && !places.iter().any(|place| code.path.starts_with(place))
            {
                wrong.push(format!("{} names {library}", code.path));
            }
        }
        for name in IMPURE
            .iter()
            .filter(|name| PURE.contains(&code.module()) && names(&code.text, name))
            // A panic under a lock of `shared` aborts (DESIGN §4).
            .filter(|name| (code.module(), **name) != ("sync", "std::process"))
            // The components of a scenario are files.
            .filter(|name| !(code.path.starts_with("sim/scenario") && **name == "std::fs"))
        {
            wrong.push(format!("{} is pure and names {name}", code.path));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(sources.len() > 5, "nothing was looked at");
}

/// Whether that path is named as a whole word.
fn names(text: &str, name: &str) -> bool {
    let inside = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    text.match_indices(name)
        .any(|(at, _)| !inside(text[..at].chars().next_back()))
}

#[test]
fn nothing_else_lies_at_the_top() {
    for (folder, allowed) in [(root(), TOP), (root().join("src"), HOUSE)] {
        let entries = std::fs::read_dir(&folder).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
        let others: Vec<String> = names
            .filter(|it| !it.starts_with('.') && !allowed.contains(&it.as_str()))
            .collect();
        assert!(
            others.is_empty(),
            "{} is not the place for {others:?} (DESIGN §1)",
            folder.display()
        );
    }
}

/// A clause that the code, a test or the manual cites can be looked up in `src/manual/rules.md`.
#[test]
fn every_cited_clause_is_explained() {
    let rules = root().join("src/manual/rules.md");
    let explained: BTreeSet<String> = read(&rules).lines().filter_map(explains).collect();
    assert!(
        explained.len() > 100,
        "{} clauses are explained: {explained:?}",
        explained.len()
    );
    let mut unknown: BTreeMap<String, String> = BTreeMap::new();
    for file in cited_in() {
        for clause in clauses(&read(&file))
            .into_iter()
            .filter(|it| !explained.contains(it))
        {
            unknown.insert(clause, file.display().to_string());
        }
    }
    assert!(unknown.is_empty(), "not in rules.md: {unknown:#?}");
}

/// The clause that a line of `rules.md` explains: `- **POOL-1** …`.
fn explains(line: &str) -> Option<String> {
    let (id, text) = line.strip_prefix("- **")?.split_once("**")?;
    (text.trim().len() > 10).then(|| id.to_owned())
}

fn cited_in() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for (folder, ending) in [
        ("src", "rs"),
        ("src", "md"),
        ("tests", "rs"),
        ("tests", "md"),
        ("tests", "py"),
    ] {
        files.extend(files_under(&root().join(folder), ending));
    }
    files.retain(|file| !file.starts_with(root().join("tests/bench/peers")));
    files
}

/// The clause ids in a text. (`LB-10…14` cites the first of its clauses.)
fn clauses(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for group in CLAUSES {
        let prefix = format!("{group}-");
        for (at, _) in text.match_indices(&prefix) {
            let within = text[..at]
                .chars()
                .next_back()
                .is_some_and(|it| it.is_alphanumeric() || it == '-' || it == '_');
            let rest = &text[at + prefix.len()..];
            let digits = &rest[..rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len())];
            let word = rest[digits.len()..]
                .chars()
                .next()
                .is_some_and(|it| it.is_alphabetic() || it == '_');
            if !within && !word && (1..=3).contains(&digits.len()) {
                found.insert(format!("{group}-{digits}"));
            }
        }
    }
    found
}

/// Long files are reported, too long ones refused: a file is about one subject.
#[test]
fn files_are_about_one_subject() {
    let mut sizes: Vec<(usize, String)> = read_all(&root().join("src"))
        .into_iter()
        .map(|code| (code.lines, code.path))
        .collect();
    sizes.sort();
    let long = sizes.iter().filter(|(lines, _)| *lines > LONG);
    println!("{} files; longer than {LONG} lines:", sizes.len());
    long.for_each(|(lines, path)| println!("{lines:5}  {path}"));
    let too_long: Vec<_> = sizes.iter().filter(|(lines, _)| *lines > TOO_LONG).collect();
    assert!(too_long.is_empty(), "longer than {TOO_LONG} lines: {too_long:?}");
}

/// Every `allow` says why, and no test is switched off.
#[test]
fn exceptions_have_reasons() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests"] {
        for file in files_under(&root().join(folder), "rs") {
            if file.starts_with(root().join("tests/bench/peers")) {
                continue;
            }
            let (text, whole) = (blank(&read(&file)), read(&file));
            for attribute in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
                for (at, _) in text.match_indices(attribute) {
                    let end = text[at..].find(']').map_or(text.len(), |it| at + it);
                    if !text[at..end].contains("reason") {
                        wrong.push(place(&file, &whole, at));
                    }
                }
            }
            wrong.extend(
                text.match_indices(concat!("#[", "ignore"))
                    .map(|(at, _)| place(&file, &whole, at)),
            );
        }
    }
    assert!(wrong.is_empty(), "without a reason, or switched off: {wrong:#?}");
}

fn place(file: &Path, text: &str, at: usize) -> String {
    format!("{}:{}", file.display(), text[..at].lines().count() + 1)
}

#[test]
fn the_checks_see_what_they_look_for() {
    let code = |path: &str, text: &str| Code {
        path: path.to_owned(),
        text: text.to_owned(),
        lines: 1,
    };
    let all = |code: &Code| uses(code).into_iter().collect::<Vec<_>>();
    let text = "use crate::{net::{A, worker}, policy::B};\nfn f(x: crate::shared::S) { $crate::cli::x() }";
    assert_eq!(all(&code("worker/relay.rs", text)), ["net", "policy", "shared"]);
    assert_eq!(
        all(&code(
            "decide/route.rs",
            "use super::super::http1::X; use super::policy;"
        )),
        ["http1"]
    );
    assert_eq!(all(&code("decide/mod.rs", "use super::http1;")), ["http1"]);
    assert!(names("use mio::Poll;", "mio::") && !names("use amio::Poll;", "mio::"));
    assert_eq!(
        clauses("(POOL-32, Q-9): LB-10…14 not EQ-1, Q-1x or RE-12345").len(),
        3
    );
    assert_eq!(explains("- **Q-1** A waiting request."), Some("Q-1".to_owned()));
    assert_eq!(explains("- **Q-1** "), None);
}
