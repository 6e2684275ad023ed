//! Does a transcript fit what was accepted, and what is written if not?
//!
//! The snapshot of `NAME.toml` is `NAME.snap` beside it, a file of insta: a head in YAML between two lines `---`, then the
//! text. A transcript that differs is left as `NAME.snap.new`, where `cargo insta review` finds it. insta reads; what is
//! written here is written whole or not at all, by a temporary file that is renamed.

use super::search::Scenario;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How a transcript compares with the accepted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// They are the same, but for line endings and white space at the end.
    Same,
    /// Nothing was accepted so far.
    New,
    /// Another text was accepted.
    Changed {
        /// That text.
        before: String,
    },
    /// What lies there is no snapshot, and why.
    Unreadable(String),
}

/// The accepted snapshot of a scenario.
pub(super) fn accepted(scenario: &Path) -> PathBuf {
    scenario.with_extension("snap")
}

/// The snapshot that waits for somebody to accept it.
pub(super) fn pending(scenario: &Path) -> PathBuf {
    scenario.with_extension("snap.new")
}

/// Compares a transcript with the accepted one.
pub(super) fn compare(scenario: &Path, transcript: &str) -> Comparison {
    match read(&accepted(scenario)) {
        Ok(Some(before)) if before == normal(transcript) => Comparison::Same,
        Ok(Some(before)) => Comparison::Changed { before },
        Ok(None) => Comparison::New,
        Err(why) => Comparison::Unreadable(why),
    }
}

/// A transcript as insta compares it.
pub(super) fn normal(transcript: &str) -> String {
    transcript.trim_end().replace("\r\n", "\n")
}

/// The text of a snapshot, `None` if there is no such file.
fn read(file: &Path) -> Result<Option<String>, String> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // insta takes such a file for one of its first format, whose head it skips up to an empty line.
    let first = bytes.split(|it| *it == b'\n').next().unwrap_or_default();
    if first.trim_ascii_end() != b"---" {
        return Err("it does not begin with a line `---`, as snapshots of today's format do".to_owned());
    }
    let snapshot = insta::Snapshot::from_file(file).map_err(|error| error.to_string())?;
    let text = snapshot
        .as_text()
        .ok_or("it is a snapshot of bytes, not of text")?;
    Ok(Some(text.to_string()))
}

/// Makes a transcript the accepted one.
pub(super) fn accept(scenario: &Scenario, transcript: &str) -> io::Result<()> {
    write_whole(&accepted(&scenario.file), &snapshot(scenario, transcript))?;
    forget_pending(&scenario.file)
}

/// Leaves a transcript for somebody to accept it.
pub(super) fn leave_pending(scenario: &Scenario, transcript: &str) -> io::Result<()> {
    write_whole(&pending(&scenario.file), &snapshot(scenario, transcript))
}

/// Removes what waited, since it does not differ any more.
pub(super) fn forget_pending(scenario: &Path) -> io::Result<()> {
    match fs::remove_file(pending(scenario)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn snapshot(scenario: &Scenario, transcript: &str) -> String {
    let description = match &scenario.about {
        Some(about) => format!("description: {}\n", yaml(about)),
        None => String::new(),
    };
    format!(
        "---\nsource: {}\n{description}expression: {}\n---\n{}\n",
        yaml(&from_root(&scenario.file)),
        yaml(&scenario.name),
        normal(transcript)
    )
}

/// A text as a scalar of YAML: quoted as JSON does, of which YAML is a superset, unless it is surely taken for text without.
fn yaml(text: &str) -> String {
    let begins_well = text.starts_with(|it: char| it.is_ascii_alphabetic());
    let is_no_word = text.contains(['/', '.', '-', '_', ' ']) && !text.ends_with(' ');
    let harmless = |it: char| it.is_ascii_alphanumeric() || "/.-_ ".contains(it);
    if begins_well && is_no_word && text.chars().all(harmless) {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

/// The path below the repository, so that the head is the same wherever the command was started; without a repository
/// the file's name.
fn from_root(file: &Path) -> String {
    let whole = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let root = whole.ancestors().skip(1).find(|it| it.join(".git").exists());
    let below = root.and_then(|root| whole.strip_prefix(root).ok());
    let name = || Path::new(file.file_name().unwrap_or_default());
    below.unwrap_or_else(name).to_string_lossy().into_owned()
}

/// Writes a file that appears whole or not at all.
pub(super) fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let half = file.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = fs::write(&half, text).and_then(|()| fs::rename(&half, file));
    if written.is_err() {
        // What is left is a hidden part that nobody reads; the first error is the one to tell.
        let _ = fs::remove_file(&half);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn scenario(folder: &TempDir) -> Scenario {
        let file = folder.path().join("sub/a.b.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "[scenario]\n").unwrap();
        Scenario {
            file,
            name: "two servers".to_owned(),
            about: Some("Says \"why\": #1 — twice\nover".to_owned()),
        }
    }

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path().join("sub")).unwrap();
        let mut names: Vec<String> = entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_written_is_a_snapshot_of_insta() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        let scenario = scenario(&folder);
        leave_pending(&scenario, "\n  0 ms  a -> one\r\n---\n  last  \n\n").unwrap();
        let file = folder.path().join("sub/a.b.snap.new");
        let read = insta::Snapshot::from_file(&file).unwrap();
        assert_eq!(read.metadata().source(), Some("sub/a.b.toml"));
        assert_eq!(read.metadata().description(), scenario.about.as_deref());
        assert_eq!(read.metadata().expression(), Some("two servers"));
        assert_eq!(
            read.as_text().unwrap().to_string(),
            "\n  0 ms  a -> one\n---\n  last"
        );
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "---\nsource: sub/a.b.toml\ndescription: \"Says \\\"why\\\": #1 — twice\\nover\"\nexpression: two servers\n---\n\
             \n  0 ms  a -> one\n---\n  last\n"
        );
        // What insta itself writes of it is the same.
        let again = folder.path().join("again.snap");
        read.save(&again).unwrap();
        assert_eq!(fs::read(again).unwrap(), fs::read(file).unwrap());
        assert_eq!(names(&folder), ["a.b.snap.new", "a.b.toml"]);
    }

    #[test]
    fn accepting_makes_it_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(&folder);
        assert_eq!(compare(&scenario.file, "one\n"), Comparison::New);
        leave_pending(&scenario, "one\n").unwrap();
        accept(&scenario, "one\n").unwrap();
        assert_eq!(compare(&scenario.file, "one"), Comparison::Same);
        let before = "one".to_owned();
        assert_eq!(compare(&scenario.file, "two\n"), Comparison::Changed { before });
        assert_eq!(names(&folder), ["a.b.snap", "a.b.toml"]);
        forget_pending(&scenario.file).unwrap();
    }

    #[test]
    fn line_endings_make_no_difference() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(&folder);
        fs::write(
            accepted(&scenario.file),
            "---\r\nsource: x\r\n---\r\none\r\ntwo\r\n",
        )
        .unwrap();
        assert_eq!(compare(&scenario.file, "one\ntwo\n"), Comparison::Same);
    }

    #[test]
    fn what_is_no_snapshot_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(&folder);
        let no_head = "it does not begin with a line `---`, as snapshots of today's format do";
        for (bytes, why) in [
            (&b""[..], no_head),
            (b"Expression: old\nSource: old\n\none\n", no_head),
            (b"<<<<<<< HEAD\n---\n", no_head),
            (b"---\nsource: [\n---\none\n", "Failed parsing the YAML from"),
            (b"---\nsource: x\n---\n\xff\n", "valid UTF-8"),
            (
                b"---\nextension: bin\nsnapshot_kind: binary\n---\n",
                "it is a snapshot of bytes, not of text",
            ),
        ] {
            fs::write(accepted(&scenario.file), bytes).unwrap();
            let Comparison::Unreadable(told) = compare(&scenario.file, "one") else {
                panic!("{bytes:?} is taken for a snapshot");
            };
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn texts_that_yaml_might_misread_are_quoted() {
        for plain in ["plugins/canary/half.toml", "two-servers", "a b"] {
            assert_eq!(yaml(plain), plain);
        }
        for quoted in [
            "", "true", "1.5", "-a b", "a: b", "a #b", "a b ", "é a", "- x", ".5",
        ] {
            assert_eq!(yaml(quoted), format!("\"{quoted}\""));
        }
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(&folder);
        fs::create_dir(accepted(&scenario.file)).unwrap();
        assert!(accept(&scenario, "one").is_err());
        assert_eq!(names(&folder), ["a.b.snap", "a.b.toml"]);
    }
}
