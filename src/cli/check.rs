//! `forebay check FILE…`: reads configuration files as `run` would, and says everything that is wrong with them.
//!
//! Nothing is opened or bound. A good file gets one line on standard output; problems go to standard error, with the lines
//! they are about, or with `--short` one per line. Exit code 1 if any file has an error; warnings do not count.

use crate::config::{self, Errors, Loaded};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Check configuration files without starting anything.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// One line per problem, as `file:line:column: …`.
    #[arg(long)]
    pub short: bool,
}

/// Runs the command.
pub fn run(args: Check) -> anyhow::Result<ExitCode> {
    let styled = is_styled(&io::stderr());
    let fine = check(&args, styled, &mut io::stdout().lock(), &mut io::stderr().lock())?;
    Ok(if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Policies that cannot be loaded, or object to their configuration.
#[cfg(feature = "wasm")]
fn refused_policies(config: &config::Config) -> Vec<String> {
    if config.policies.is_empty() {
        return Vec::new();
    }
    super::policies::check(config).unwrap_or_else(|error| vec![format!("{error:#}")])
}

/// Without a host, a configuration that attaches policies cannot be served.
#[cfg(not(feature = "wasm"))]
fn refused_policies(config: &config::Config) -> Vec<String> {
    crate::control::check_policies(config, None)
}

/// Whether problems are printed in colour there: on a terminal, unless `NO_COLOR` says otherwise.
pub fn is_styled(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn check(args: &Check, styled: bool, out: &mut impl Write, err: &mut impl Write) -> io::Result<bool> {
    let mut fine = true;
    for file in &args.files {
        match config::load_with_warnings(file) {
            Ok(loaded) => {
                problems(&loaded.warnings, args.short, styled, err)?;
                let refused = refused_policies(&loaded.config);
                for error in &refused {
                    writeln!(err, "{}: {error}", file.display())?;
                }
                if !refused.is_empty() {
                    fine = false;
                    continue;
                }
                writeln!(out, "{}: ok, {}", file.display(), summary(&loaded))?;
            }
            Err(errors) => {
                fine = false;
                problems(&errors, args.short, styled, err)?;
            }
        }
    }
    Ok(fine)
}

fn problems(errors: &Errors, short: bool, styled: bool, err: &mut impl Write) -> io::Result<()> {
    match (errors.is_empty(), short) {
        (true, _) => Ok(()),
        (false, true) => writeln!(err, "{errors}"),
        (false, false) => writeln!(err, "{}", errors.render(styled)),
    }
}

fn summary(loaded: &Loaded) -> String {
    let config = &loaded.config;
    let servers = config.backends.iter().map(|backend| backend.servers.len()).sum();
    let mut parts = vec![
        count(config.listeners.len(), "listener"),
        count(config.backends.len(), "backend"),
        count(servers, "server"),
    ];
    if !loaded.warnings.is_empty() {
        parts.push(count(loaded.warnings.len(), "warning"));
    }
    parts.join(", ")
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(files: &[&str], short: bool) -> (bool, String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = Check {
            files: files.iter().map(PathBuf::from).collect(),
            short,
        };
        let fine = check(&args, false, &mut out, &mut err).unwrap();
        (
            fine,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    #[test]
    fn a_good_file_gets_one_line() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/minimal.toml");
        let (fine, out, err) = checked(&[file], false);
        assert!(fine);
        assert_eq!(out, format!("{file}: ok, 1 listener, 1 backend, 2 servers\n"));
        assert_eq!(err, "");
    }

    #[test]
    fn one_bad_file_fails_all_but_every_file_is_checked() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/minimal.toml");
        let (fine, out, err) = checked(&["/nowhere/f.toml", file], true);
        assert!(!fine);
        assert!(out.contains(": ok, "), "{out}");
        assert!(err.starts_with("/nowhere/f.toml:1:1: cannot be read: "), "{err}");
    }
}
