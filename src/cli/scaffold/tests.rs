use super::*;
use crate::config;
use crate::sim::scenario::Scenario;
use clap::Parser;
use std::collections::BTreeSet;
use tempfile::TempDir;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: NewArgs,
}

fn made(place: &TempDir, language: Language, hook: Hook) -> PathBuf {
    let folder = place.path().join("a-policy");
    made_at(&folder, language, hook).expect("made");
    folder
}

fn made_at(folder: &Path, lang: Language, hook: Hook) -> anyhow::Result<ExitCode> {
    let folder = folder.to_owned();
    run(&NewArgs { folder, lang, hook })
}

fn combinations() -> impl Iterator<Item = (Language, Hook)> {
    let hooks = |language: &Language| {
        Hook::value_variants()
            .iter()
            .map(move |hook| (*language, *hook))
            .collect::<Vec<_>>()
    };
    Language::value_variants().iter().flat_map(hooks)
}

#[test]
fn every_combination_has_a_configuration_and_a_scenario_that_are_right() {
    assert_eq!(combinations().count(), 20);
    for (language, hook) in combinations() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = made(&place, language, hook);
        let file = folder.join("forebay.toml");
        let loaded = config::load_with_warnings(&file)
            .unwrap_or_else(|errors| panic!("{language:?} {hook:?}:\n{}", errors.render(false)));
        assert!(
            loaded.warnings.is_empty(),
            "{language:?} {hook:?}:\n{}",
            loaded.warnings
        );
        let servers: usize = loaded
            .config
            .backends
            .iter()
            .map(|backend| backend.servers.len())
            .sum();
        assert_eq!((loaded.config.policies.len(), servers), (1, 2));
        if let Err(error) = Scenario::load(&folder.join("scenarios/first.toml")) {
            panic!("{language:?} {hook:?}: {error}");
        }
    }
}

/// What every combination of one kind would do wrong alike.
#[test]
fn what_is_written_is_whole() {
    for (language, hook) in combinations() {
        let files = template::files("by-user", language, hook).expect("files");
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), files.len(), "{language:?} {hook:?}: a file twice");
        for path in [
            "build.sh",
            "README.md",
            ".gitignore",
            "wit/package.wit",
            "wit/worlds.wit",
        ] {
            assert!(paths.contains(path), "{language:?} {hook:?} has no {path}");
        }
        for file in files.iter().filter(|file| !file.path.starts_with("bindings/")) {
            let text = std::str::from_utf8(&file.contents).expect("text");
            let begins = |rest: &&str| rest.starts_with(|sign: char| sign.is_ascii_lowercase());
            let place = text.split("{{").skip(1).find(begins);
            assert_eq!(place, None, "{language:?} {hook:?}: {} is not filled", file.path);
            assert!(
                text.ends_with('\n') && !text.ends_with("\n\n"),
                "{language:?} {hook:?}: {}",
                file.path
            );
        }
    }
}

#[test]
fn a_build_is_a_program() {
    let place = tempfile::tempdir().expect("a folder");
    let build = made(&place, Language::C, Hook::Pick).join("build.sh");
    let mode = fs::metadata(build).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[test]
fn every_file_that_a_readme_names_is_there() {
    for (language, hook) in combinations() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = made(&place, language, hook);
        let readme = fs::read_to_string(folder.join("README.md")).expect("a README");
        let rows = readme
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let named: Vec<&str> = rows.collect();
        assert!(named.len() >= 5, "{readme}");
        for path in named {
            assert!(folder.join(path).exists(), "{language:?} {hook:?}: no {path}");
        }
    }
}

#[test]
fn nothing_is_written_over() {
    let place = tempfile::tempdir().expect("a folder");
    let (full, file, empty) = (
        place.path().join("full"),
        place.path().join("file"),
        place.path().join("empty"),
    );
    fs::create_dir_all(full.join("mine")).expect("a folder");
    fs::write(&file, "mine").expect("written");
    fs::create_dir(&empty).expect("a folder");
    for (occupied, says) in [(&full, "is not empty"), (&file, "no folder")] {
        let error = made_at(occupied, Language::Rust, Hook::Pick)
            .expect_err("occupied")
            .to_string();
        assert!(error.contains(says) && error.contains("name another"), "{error}");
    }
    assert_eq!(fs::read_dir(&full).expect("a folder").count(), 1);
    assert!(made_at(&empty, Language::Rust, Hook::Pick).is_ok());
}

#[test]
fn a_bad_name_is_answered_with_a_good_one() {
    for (wrong, instead) in [
        ("My_Plugin", "`my-plugin`"),
        ("by--user", "`by-user`"),
        ("by-user-", "`by-user`"),
        ("1st", "`my-policy`"),
        ("größe", "`gr-e`"),
        ("a b", "`a-b`"),
    ] {
        let error = name_of(Path::new(wrong)).expect_err(wrong).to_string();
        assert!(error.starts_with(wrong) && error.contains(instead), "{error}");
    }
    assert!(name_of(Path::new("a".repeat(NAME_MAX + 1).as_str())).is_err());
    assert!(
        name_of(Path::new("/"))
            .expect_err("no name")
            .to_string()
            .contains("my-policy")
    );
    assert_eq!(
        name_of(Path::new("plugins/by-user2/")).expect("a name"),
        "by-user2"
    );
}

#[test]
fn an_unknown_language_or_hook_is_answered_with_those_that_there_are() {
    for (line, known) in [
        (
            ["new", "a", "--lang", "cobol", "--hook", "pick"],
            "rust, c, js, python, as",
        ),
        (
            ["new", "a", "--lang", "rust", "--hook", "guess"],
            "plan, pick, route, reuse",
        ),
    ] {
        let error = Line::try_parse_from(line).expect_err("unknown").to_string();
        assert!(error.contains(known), "{error}");
    }
    let error = Line::try_parse_from(["new", "a"])
        .expect_err("missing")
        .to_string();
    assert!(error.contains("--lang") && error.contains("--hook"), "{error}");
    let line = Line::try_parse_from(["new", "a", "--lang", "as", "--hook", "reuse"]).expect("right");
    assert_eq!((line.args.lang, line.args.hook), (Language::As, Hook::Reuse));
}
