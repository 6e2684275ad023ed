//! Which files are scenarios?
//!
//! A TOML file with a table `[scenario]` at its top. A file that has the line but is no TOML counts as one too: its author
//! wants to hear of the mistake. Folders are searched in the order of their names; hidden entries, folders called `target` and
//! links to folders are passed over, so that a search ends and finds each file once.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// A file that describes a scenario, and what it says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    /// As the command line leads to it.
    pub file: PathBuf,
    /// `scenario.name`, or the file's name without ending.
    pub name: String,
    /// `scenario.about`.
    pub about: Option<String>,
}

/// The scenarios at those places, in the order of the places, whose path contains one of the filters if there are any.
/// The error says where was looked.
pub(super) fn find(places: &[PathBuf], filters: &[String]) -> Result<Vec<Scenario>, String> {
    let mut found = Vec::new();
    for place in places {
        if place.is_dir() {
            search(place, &mut found)?;
        } else {
            found.push(named(place)?);
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|it| seen.insert(fs::canonicalize(&it.file).unwrap_or_else(|_| it.file.clone())));
    if found.is_empty() {
        return Err(format!(
            "no scenario found (a .toml file with a table [scenario]) in {}",
            listed(places.iter().map(|it| it.display().to_string()))
        ));
    }
    filtered(found, filters)
}

fn filtered(mut found: Vec<Scenario>, filters: &[String]) -> Result<Vec<Scenario>, String> {
    let all = found.len();
    let fits = |path: &str| filters.is_empty() || filters.iter().any(|filter| path.contains(filter));
    found.retain(|it| fits(&it.file.to_string_lossy()));
    if found.is_empty() {
        let filters = listed(filters.iter().map(|it| format!("`{it}`")));
        return Err(format!(
            "none of the {all} scenarios found has {filters} in its path"
        ));
    }
    Ok(found)
}

fn listed(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" or ")
}

/// A file named on the command line, which has to be a scenario.
fn named(file: &Path) -> Result<Scenario, String> {
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let is_toml = file.extension() == Some(OsStr::new("toml"));
    scenario(file, &text).filter(|_| is_toml).ok_or_else(|| {
        format!(
            "{}: is no scenario, which is a .toml file with a table [scenario]",
            file.display()
        )
    })
}

fn search(folder: &Path, found: &mut Vec<Scenario>) -> Result<(), String> {
    for path in entries(folder)? {
        if is_passed_over(&path) {
            continue;
        }
        if path.is_dir() {
            if !path.is_symlink() {
                search(&path, found)?;
            }
        } else if path.extension() == Some(OsStr::new("toml")) && path.is_file() {
            let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            found.extend(
                String::from_utf8(bytes)
                    .ok()
                    .and_then(|text| scenario(&path, &text)),
            );
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = || {
        fs::read_dir(folder)?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<Vec<PathBuf>>>()
    };
    let mut paths = read().map_err(|error| unreadable(folder, &error))?;
    paths.sort();
    Ok(paths)
}

fn is_passed_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".") || (name == "target" && path.is_dir())
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("{}: cannot be read: {error}", path.display())
}

/// What a text says about itself if it is a scenario's.
fn scenario(file: &Path, text: &str) -> Option<Scenario> {
    if !text.lines().any(opens_scenario) {
        return None;
    }
    let told = match text.parse::<toml::Table>() {
        Ok(table) => Some(table.get("scenario")?.as_table()?.clone()),
        Err(_) => None,
    };
    let word = |key: &str| Some(told.as_ref()?.get(key)?.as_str()?.to_owned());
    let stem = || {
        file.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    Some(Scenario {
        // What is searched by default is `.`, which nobody wants to read in front of each path.
        file: file.strip_prefix(".").unwrap_or(file).to_owned(),
        name: word("name").unwrap_or_else(stem),
        about: word("about"),
    })
}

fn opens_scenario(line: &str) -> bool {
    let inside = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    inside.is_some_and(|(name, _)| name.trim() == "scenario")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(files: &[(&str, &str)]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        folder
    }

    /// The paths found, below the folder.
    fn found(folder: &TempDir, places: &[&str], filters: &[&str]) -> Result<Vec<String>, String> {
        let places: Vec<PathBuf> = places.iter().map(|it| folder.path().join(it)).collect();
        let filters: Vec<String> = filters.iter().map(|it| (*it).to_owned()).collect();
        let below = |it: Scenario| {
            let path = it.file.strip_prefix(folder.path()).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let here = format!("{}/", folder.path().display());
        find(&places, &filters)
            .map(|all| all.into_iter().map(below).collect())
            .map_err(|error| error.replace(&here, ""))
    }

    const SCENARIO: &str = "[scenario]\n";

    #[test]
    fn folders_are_searched_in_order_and_once() {
        let folder = folder(&[
            ("b.toml", SCENARIO),
            (
                "a/z.toml",
                "# first a word\n [ scenario ] # then the table\nname = \"zed\"\n",
            ),
            ("a/Cargo.toml", "[package]\nname = \"x\"\n"),
            ("a/notes.txt", SCENARIO),
            ("a/latin.toml", "[other]"),
            ("a/.hidden/c.toml", SCENARIO),
            ("a/target/c.toml", SCENARIO),
            ("c/target.toml", SCENARIO),
        ]);
        fs::write(
            folder.path().join("a/latin.toml"),
            b"[scenario]\nname = \"\xe9\"\n",
        )
        .unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("a/loop")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("a/gone.toml")).unwrap();
        assert_eq!(
            found(&folder, &[""], &[]).unwrap(),
            ["a/z.toml", "b.toml", "c/target.toml"]
        );
        assert_eq!(
            found(&folder, &["c", "b.toml", "", "a/../b.toml"], &[]).unwrap(),
            ["c/target.toml", "b.toml", "a/z.toml"]
        );
        assert_eq!(found(&folder, &["a/target"], &[]).unwrap(), ["a/target/c.toml"]);
    }

    #[test]
    fn filters_are_parts_of_the_path() {
        let folder = folder(&[
            ("a/one.toml", SCENARIO),
            ("a/two.toml", SCENARIO),
            ("b/x.toml", SCENARIO),
        ]);
        assert_eq!(
            found(&folder, &[""], &["two", "b/x"]).unwrap(),
            ["a/two.toml", "b/x.toml"]
        );
        assert_eq!(
            found(&folder, &[""], &["nine", "ten"]).unwrap_err(),
            "none of the 3 scenarios found has `nine` or `ten` in its path"
        );
    }

    #[test]
    fn what_is_named_has_to_be_a_scenario() {
        let folder = folder(&[
            ("config.toml", "[process]\n"),
            ("a.txt", SCENARIO),
            ("empty/readme", ""),
        ]);
        for (place, error) in [
            (
                "config.toml",
                "config.toml: is no scenario, which is a .toml file with a table [scenario]",
            ),
            (
                "a.txt",
                "a.txt: is no scenario, which is a .toml file with a table [scenario]",
            ),
            (
                "none.toml",
                "none.toml: cannot be read: No such file or directory (os error 2)",
            ),
            (
                "empty",
                "no scenario found (a .toml file with a table [scenario]) in empty",
            ),
        ] {
            assert_eq!(found(&folder, &[place], &[]).unwrap_err(), error);
        }
    }

    #[test]
    fn the_table_counts_not_the_word() {
        let about = |text: &str| scenario(Path::new("./a/b.toml"), text);
        assert_eq!(about("note = '''\n[scenario]\n'''\n"), None);
        assert_eq!(about("[[scenario]]\n"), None);
        assert_eq!(about("[scenario.inner]\n"), None);
        let expected = |name: &str, about: Option<&str>| {
            Some(Scenario {
                file: PathBuf::from("a/b.toml"),
                name: name.to_owned(),
                about: about.map(str::to_owned),
            })
        };
        assert_eq!(about("[scenario]\nbroken = \n"), expected("b", None));
        assert_eq!(
            about("[scenario]\nname = 'N'\nabout = 'Why.'\n"),
            expected("N", Some("Why."))
        );
    }
}
