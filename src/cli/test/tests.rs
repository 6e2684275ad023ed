//! The command as a whole, with a runner that says what stands in the scenario.

use super::session::Stage;
use super::{Ran, Runner, TestArgs, test};
use clap::{CommandFactory, Parser};
use std::fs;
use std::io::BufRead;
use std::path::Path;
use tempfile::TempDir;

/// Reads what is to happen from the comments of a scenario: `# says TEXT`, `# fails TEXT`, `# refused`, `# panics`. The
/// seed, if there is one, is a line of the transcript.
struct Told;

impl Runner for Told {
    fn run(&self, file: &Path, seed: Option<u64>) -> Result<Ran, String> {
        let text = fs::read_to_string(file).unwrap();
        let all = |word: &str| -> Vec<String> {
            let told = text.lines().filter_map(|line| line.strip_prefix(word));
            told.map(|it| it.trim().to_owned()).collect()
        };
        if text.contains("# refused") {
            return Err(format!("{}:2:1: is refused", file.display()));
        }
        assert!(!text.contains("# panics"), "as it was told");
        let mut lines = all("# says");
        lines.extend(seed.map(|seed| format!("seed {seed}")));
        Ok(Ran {
            transcript: lines.join("\n") + "\n",
            failures: all("# fails"),
        })
    }
}

#[derive(Debug, Parser)]
struct CommandLine {
    #[command(flatten)]
    args: TestArgs,
}

/// A folder of scenarios, and the command run on it.
struct Bench(TempDir);

impl Bench {
    fn new(files: &[(&str, &str)]) -> Bench {
        let bench = Bench(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, text)| bench.write(name, text));
        bench
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.0.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = match name.ends_with(".toml") {
            true => format!("[scenario]\n{text}"),
            false => text.to_owned(),
        };
        fs::write(file, text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.path().join(name)).ok()
    }

    fn test(&self, options: &[&str]) -> Said {
        self.test_with(options, None)
    }

    /// Exit code and what was printed, paths below the folder. Paths among the options begin with `./`.
    fn test_with(&self, options: &[&str], answers: Option<&str>) -> Said {
        let here = format!("{}/", self.0.path().display());
        let mut words = vec!["test".to_owned()];
        words.extend(options.iter().map(|it| it.replace("./", &here)));
        if !options
            .iter()
            .any(|it| it.starts_with("./") && it.ends_with("toml"))
        {
            words.push(here.clone());
        }
        let args = CommandLine::try_parse_from(words).unwrap().args;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut answers = answers.map(str::as_bytes);
        let mut stage = Stage {
            out: &mut out,
            err: &mut err,
            answers: answers.as_mut().map(|it| it as &mut dyn BufRead),
            styled: false,
            progress: false,
        };
        let code = test(&args, &Told, &mut stage).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().replace(&here, "");
        Said {
            code,
            out: text(out),
            err: text(err),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: u8,
    out: String,
    err: String,
}

impl Said {
    fn last_line(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

fn said(code: u8, out: &str) -> Said {
    let (out, err) = (out.to_owned(), String::new());
    Said { code, out, err }
}

#[test]
fn from_new_over_accepted_and_changed_to_the_same_again() {
    let bench = Bench::new(&[("p/a.toml", "about = 'Why.'\n# says one\n")]);
    let new = bench.test(&[]);
    let told = "p/a.toml: has no snapshot yet\n--- /dev/null\n+++ a.snap.new\n@@ -0,0 +1 @@\n+one\n";
    let hint = "(--review asks about each, --accept takes all)";
    assert_eq!(new, said(1, &format!("{told}1 scenario: 1 new {hint}\n")));
    let left = bench.read("p/a.snap.new").unwrap();
    assert_eq!(
        left,
        "---\nsource: a.toml\ndescription: Why.\nexpression: \"a\"\n---\none\n"
    );
    assert_eq!(bench.read("p/a.snap"), None);

    let accepted = bench.test(&["--accept"]);
    let expected = format!("{told}  accepted: p/a.snap\n1 scenario: 1 accepted\n");
    assert_eq!(accepted, said(0, &expected));
    assert_eq!(bench.read("p/a.snap"), Some(left));
    assert_eq!(bench.read("p/a.snap.new"), None);
    assert_eq!(bench.test(&[]), said(0, "1 scenario: 1 as before\n"));

    bench.write("p/a.toml", "# says two\n");
    let differs = bench.test(&[]);
    let told = "p/a.toml: differs from its snapshot\n--- a.snap\n+++ a.snap.new\n@@ -1 +1 @@\n-one\n+two\n";
    assert_eq!(differs, said(1, &format!("{told}1 scenario: 1 differs {hint}\n")));
    assert!(bench.read("p/a.snap").unwrap().contains("\none\n"));
    assert!(bench.read("p/a.snap.new").unwrap().contains("\ntwo\n"));

    bench.write("p/a.toml", "# says one\n");
    assert_eq!(bench.test(&[]), said(0, "1 scenario: 1 as before\n"));
    assert_eq!(bench.read("p/a.snap.new"), None, "what waited is stale");
}

#[test]
fn what_fails_is_not_accepted() {
    let bench = Bench::new(&[
        ("a.toml", "# says one\n# fails a gets 1 of 10\n"),
        ("b.toml", "# panics\n"),
    ]);
    let failed = bench.test(&["--accept"]);
    insta::assert_snapshot!(failed.out, @"
    a.toml: fails, and has no snapshot yet
      failed: a gets 1 of 10
    --- /dev/null
    +++ a.snap.new
    @@ -0,0 +1 @@
    +one
      not accepted while it fails
    b.toml: fails
      failed: the run panicked: as it was told
    2 scenarios: 2 fail
    ");
    assert_eq!((failed.code, failed.err.as_str()), (1, ""));
    assert_eq!(bench.read("a.snap"), None);
    assert!(bench.read("a.snap.new").is_some());
}

#[test]
fn another_seed_compares_nothing() {
    let bench = Bench::new(&[("a.toml", "# says one\n")]);
    bench.test(&["--accept"]);
    bench.write("a.snap.new", "left by hand");
    let holds = "1 scenario with seed 7: 1 holds (snapshots were not compared)\n";
    assert_eq!(bench.test(&["--seed", "7"]), said(0, holds));
    assert_eq!(bench.read("a.snap.new").as_deref(), Some("left by hand"));
    bench.write("a.toml", "# fails too slow\n");
    let fails =
        "a.toml: fails\n  failed: too slow\n1 scenario with seed 7: 1 fails (snapshots were not compared)\n";
    assert_eq!(bench.test(&["--seed", "7"]), said(1, fails));
    assert!(CommandLine::try_parse_from(["test", "--seed", "7", "--accept"]).is_err());
}

#[test]
fn what_is_no_snapshot_is_replaced_only_when_accepted() {
    let bench = Bench::new(&[("a.toml", "# says one\n"), ("a.snap", "Expression: old\n\none\n")]);
    let said = bench.test(&[]);
    assert_eq!((said.code, said.out.as_str()), (2, "1 scenario: 1 unusable\n"));
    assert_eq!(
        said.err,
        "a.snap: cannot be read as a snapshot: it does not begin with a line `---`, as snapshots of today's format do; if \
         nothing in it is worth keeping, `forebay test --accept a.toml` writes it anew\n"
    );
    assert_eq!(bench.read("a.snap").as_deref(), Some("Expression: old\n\none\n"));
    assert_eq!(bench.read("a.snap.new"), None);
    let accepted = bench.test(&["--accept"]);
    assert_eq!(
        (accepted.code, accepted.last_line()),
        (0, "1 scenario: 1 accepted")
    );
    assert_eq!(bench.test(&[]).code, 0);
}

#[test]
fn a_snapshot_of_another_system_is_the_same() {
    let bench = Bench::new(&[
        ("a.toml", "# says one\n# says two\n"),
        ("a.snap", "---\r\nsource: a\r\n---\r\none\r\ntwo\r\n"),
    ]);
    assert_eq!(bench.test(&[]), said(0, "1 scenario: 1 as before\n"));
}

#[test]
fn the_largest_exit_code_counts_and_all_are_told() {
    let bench = Bench::new(&[
        ("a.toml", "# refused\n"),
        ("b.toml", "# says one\n"),
        ("c.toml", "# fails it\n"),
    ]);
    let all = bench.test(&["--junit", "./report.xml"]);
    assert_eq!((all.code, all.err.as_str()), (2, "a.toml:2:1: is refused\n"));
    assert!(
        all.last_line()
            .starts_with("3 scenarios: 1 new, 1 fails, 1 unusable")
    );
    let report = bench.read("report.xml").unwrap();
    assert!(
        report.contains("tests=\"3\" failures=\"2\" errors=\"1\""),
        "{report}"
    );
    assert_eq!(bench.test(&["--filter", "b.", "--filter", "c."]).code, 1);
    let unwritten = bench.test(&["--accept", "--filter", "b.toml", "--junit", "./none/report.xml"]);
    assert_eq!(unwritten.code, 2);
    assert!(
        unwritten
            .err
            .starts_with("none/report.xml: cannot be written: No such file"),
        "{}",
        unwritten.err
    );
}

#[test]
fn many_threads_tell_in_order() {
    let names: Vec<String> = (0..60).map(|it| format!("{}/{:02}.toml", it / 20, it)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "# fails x\n")).collect();
    let bench = Bench::new(&files);
    let listed = bench.test(&["--list"]);
    assert_eq!(
        listed,
        said(0, &names.iter().map(|it| format!("{it}\n")).collect::<String>())
    );
    let one = bench.test(&["--seed", "1", "--jobs", "1"]);
    assert_eq!(one.out.lines().count(), 2 * 60 + 1);
    for jobs in ["2", "8", "200"] {
        assert_eq!(bench.test(&["--seed", "1", "--jobs", jobs]), one);
    }
}

#[test]
fn each_is_asked_about() {
    let files = ["a.toml", "b.toml", "c.toml", "d.toml"];
    let bench = Bench::new(&files.map(|it| (it, "# says one\n")));
    let reviewed = bench.test_with(&["--review"], Some("what\na\ns\nq\n"));
    assert_eq!(reviewed.code, 1);
    insta::assert_snapshot!(reviewed.out, @"
    a.toml: has no snapshot yet
    --- /dev/null
    +++ a.snap.new
    @@ -0,0 +1 @@
    +one
    a accept, s skip, q quit: a accept, s skip, q quit:   accepted: a.snap
    b.toml: has no snapshot yet
    --- /dev/null
    +++ b.snap.new
    @@ -0,0 +1 @@
    +one
    a accept, s skip, q quit: c.toml: has no snapshot yet
    --- /dev/null
    +++ c.snap.new
    @@ -0,0 +1 @@
    +one
    a accept, s skip, q quit: d.toml: has no snapshot yet
    4 scenarios: 1 accepted, 3 new (--review asks about each, --accept takes all)
    ");
    let accepted = files.map(|it| bench.read(&it.replace("toml", "snap")).is_some());
    assert_eq!(accepted, [true, false, false, false]);
    // Nobody answers any more.
    let ended = bench.test_with(&["--review", "./d.toml"], Some(""));
    assert_eq!((ended.code, bench.read("d.snap")), (1, None));
    let nobody = bench.test(&["--review"]);
    assert_eq!(nobody.code, 2);
    assert!(
        nobody.err.starts_with("forebay: --review asks on a terminal"),
        "{}",
        nobody.err
    );
}

#[test]
fn the_help_is_complete() {
    let mut all = crate::cli::Cli::command();
    let command = all.find_subcommand_mut("test").unwrap();
    let help = command.render_long_help().to_string();
    for word in [
        "NAME.snap.new",
        "[default: .]",
        "[default: one per core]",
        "Examples:",
        "A scenario is a TOML file",
        "Exit codes: 0",
    ] {
        assert!(help.contains(word), "no {word} in:\n{help}");
    }
    for option in command.get_arguments() {
        assert!(option.get_help().is_some(), "{}", option.get_id());
    }
}

#[test]
fn nothing_to_run_is_wrong_use() {
    let bench = Bench::new(&[("p/readme", "")]);
    let nothing = bench.test(&["./p"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (2, ""));
    assert!(
        nothing.err.starts_with("forebay: no scenario found"),
        "{}",
        nothing.err
    );
}

#[test]
fn colours_and_progress_are_for_terminals() {
    let bench = Bench::new(&[("a.toml", "# says one\n"), ("b.toml", "# says one\n")]);
    let args = CommandLine::try_parse_from(["test", "--jobs", "1", bench.0.path().to_str().unwrap()]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut stage = Stage {
        out: &mut out,
        err: &mut err,
        answers: None,
        styled: true,
        progress: true,
    };
    assert_eq!(test(&args.unwrap().args, &Told, &mut stage).unwrap(), 1);
    let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
    assert_eq!(out.matches("\x1b[32m+one\x1b[0m\n").count(), 2, "{out:?}");
    assert!(
        err.starts_with("\r1/2 ") && err.contains("\r2/2 ") && err.ends_with('\r'),
        "{err:?}"
    );
    assert!(!err.contains('\n') && !err.contains('\x1b'), "{err:?}");
}
