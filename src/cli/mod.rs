//! The command line: one module per command, and the list of them.

pub mod check;
pub mod config;
pub mod ctl;
pub mod demo;
#[cfg(feature = "wasm")]
mod kit;
mod measure;
#[cfg(feature = "wasm")]
pub mod plugin;
#[cfg(feature = "wasm")]
mod policies;
pub mod run;
#[cfg(feature = "wasm")]
mod scaffold;
pub mod test;
mod version;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A programmable HTTP proxy: a native multi-threaded core with shared queues and per-worker connection pools, in
/// which WebAssembly components choose who gets the work.
#[derive(Debug, Parser)]
#[command(
    name = "forebay",
    disable_version_flag = true,
    arg_required_else_help = true,
    max_term_width = 110
)]
#[command(
    after_help = "`forebay demo` shows the whole thing without any configuration.\n\
    Signals of `run`: SIGHUP reloads the configuration, SIGTERM and SIGINT drain (a second one stops at once).\n\
    Exit codes: 0 well, 1 an error that was reported, 2 a wrong command line."
)]
pub struct Cli {
    /// Print the version; with --verbose also poller, features and limits
    #[arg(short = 'V', long)]
    version: bool,
    /// With --version: all there is to say about this build
    #[arg(short, long, requires = "version")]
    verbose: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve what a configuration file says
    Run(run::RunArgs),
    /// Validate configuration files
    Check(check::Check),
    /// Run scenarios, and compare what happened with what was accepted
    Test(test::TestArgs),
    /// Show the proxy at work before three embedded origins, without any configuration
    Demo(demo::DemoArgs),
    /// Ask or change a running process
    Ctl(ctl::CtlArgs),
    /// Begin a policy, look at one, check it or pack it
    #[cfg(feature = "wasm")]
    Plugin(plugin::PluginArgs),
    /// Show the effective configuration, the reference of all keys, or their schema for editors
    Config(config::Config),
}

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.version {
        version::print(cli.verbose);
        return ExitCode::SUCCESS;
    }
    let outcome = match cli.command {
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Check(args)) => check::run(args),
        Some(Command::Test(args)) => test::run(&args),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Ctl(args)) => ctl::run(&args),
        #[cfg(feature = "wasm")]
        Some(Command::Plugin(args)) => plugin::run(&args),
        Some(Command::Config(args)) => config::run(args),
        None => Ok(ExitCode::from(2)),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("forebay: {error:#}");
        ExitCode::FAILURE
    })
}
