//! `forebay config`: what is in effect, and what may be written.

use crate::cli::check::is_styled;
use crate::config;
use crate::config::keys::Section;
use crate::config::reference::{reference, scenario_reference};
use crate::config::schema::schema;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Look at a configuration, or at what may stand in one.
#[derive(Debug, clap::Args)]
pub struct Config {
    /// What to look at.
    #[command(subcommand)]
    pub command: Command,
}

/// What to look at.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print a file as it is in effect, with every default written out.
    Show {
        /// The file.
        file: PathBuf,
    },
    /// Print every key with its type, default, range and meaning, as Markdown.
    Reference {
        /// Of scenarios instead of configurations.
        #[arg(long)]
        scenario: bool,
    },
    /// Print a JSON Schema of the file, for editors that complete and check TOML.
    ///
    /// It has every key that works in this version, with its type, range, default and meaning. What one key asks of another
    /// (a backend of that name, a limit above another) only `forebay check` knows.
    #[command(after_help = "Example:\n  \
        forebay config schema > forebay.schema.json\n\n\
        The editor finds it by the first line of a configuration:\n  \
        #:schema ./forebay.schema.json")]
    Schema {
        /// Of scenarios instead of configurations.
        #[arg(long)]
        scenario: bool,
    },
}

/// Runs the command.
pub fn run(args: Config) -> anyhow::Result<ExitCode> {
    let file = match args.command {
        Command::Reference { scenario: false } => return print(&reference()),
        Command::Reference { scenario: true } => return print(&scenario_reference()),
        Command::Schema { scenario } => {
            return print(&schema(if scenario {
                Section::ScenarioFile
            } else {
                Section::File
            }));
        }
        Command::Show { file } => file,
    };
    match config::load(&file) {
        Ok(config) => print(&config::show(&config)),
        Err(errors) => {
            let stderr = io::stderr();
            writeln!(stderr.lock(), "{}", errors.render(is_styled(&stderr)))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print(text: &str) -> anyhow::Result<ExitCode> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    #[test]
    fn the_commands_are_understood() {
        let command = Config::augment_args(clap::Command::new("config"));
        command.clone().debug_assert();
        let matches = command.get_matches_from(["config", "show", "f.toml"]);
        let Command::Show { file } = Config::from_arg_matches(&matches).unwrap().command else {
            panic!("not show")
        };
        assert_eq!(file, PathBuf::from("f.toml"));
    }
}
