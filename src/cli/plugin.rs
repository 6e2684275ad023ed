//! `forebay plugin`: what an author of policies needs: begin one, look at a component, check how it behaves, measure what
//! it costs, pack a core module into one.

use super::{kit, measure, policies, scaffold};
use crate::wasm::{self, From, Inspection, Text};
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `forebay plugin`.
#[derive(Args, Clone, Debug)]
pub struct PluginArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Make a folder with a policy to begin with: its sources, how it is built and run, and a scenario that it passes
    New(scaffold::NewArgs),
    /// Show what a component exports and imports, and what the host would refuse and why
    Inspect {
        /// The component
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Ask components whatever they answer, in many situations, and tell what is wrong with the answers
    ///
    /// Exit codes: 0 nothing FAILED, 1 something did, 2 a file cannot be read.
    Check(kit::CheckArgs),
    /// Tell what components cost on this machine: size, time to load, memory of an instance, time of each call
    Measure(measure::MeasureArgs),
    /// Pack a core module into a component, with an adapter that answers WASI preview 1 and reaches nothing
    Build {
        /// The core module, binary or as text (.wat)
        module: PathBuf,
        /// Where the component goes [default: beside the module, NAME.component.wasm]
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// World of the contract, for a module whose tools have not embedded it
        #[arg(long, value_parser = ["planner", "picker", "router", "sharer", "stocker", "classifier", "admitter", "usher", "balancer", "policy"])]
        world: Option<String>,
        /// How the module writes text; only with --world
        #[arg(long, value_enum, default_value_t = Encoding::Utf8, requires = "world")]
        text: Encoding,
    },
    /// Print the contract (the package `forebay:policy`), for binding generators
    Wit {
        /// Folder to write the files into [default: print them]
        folder: Option<PathBuf>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Encoding {
    Utf8,
    Utf16,
}

/// Does what the subcommand says.
pub fn run(args: &PluginArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::New(args) => scaffold::run(args),
        Command::Inspect { files } => inspect(files),
        Command::Check(args) => kit::run(args),
        Command::Measure(args) => measure::run(args).map(|()| ExitCode::SUCCESS),
        Command::Build {
            module,
            output,
            world,
            text,
        } => {
            let core = std::fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
            let text = match text {
                Encoding::Utf8 => Text::Utf8,
                Encoding::Utf16 => Text::Utf16,
            };
            let packed = wasm::pack(&core, world.as_deref().map(|world| (world, text)))
                .with_context(|| format!("{} cannot be packed", module.display()))?;
            let output = output.clone().unwrap_or_else(|| policies::beside(module));
            std::fs::write(&output, &packed).with_context(|| format!("cannot write {}", output.display()))?;
            println!("{}: {} bytes", output.display(), packed.len());
            Ok(ExitCode::SUCCESS)
        }
        Command::Wit { folder } => write_wit(folder.as_deref()),
    }
}

fn inspect(files: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let host = policies::bare_host()?;
    let mut refused = false;
    for file in files {
        let found = host
            .inspect(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        refused |= found.refusal.is_some();
        print!("{}", shown(&file.display().to_string(), &found));
    }
    Ok(if refused {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn shown(file: &str, found: &Inspection) -> String {
    use std::fmt::Write;
    let mut text = format!(
        "{file}\n  size      {} bytes\n  sha256    {}\n",
        found.size, found.digest
    );
    let contracts = if found.contracts.is_empty() {
        "none".to_owned()
    } else {
        found.contracts.join(", ")
    };
    let _ = writeln!(text, "  contract  forebay:policy {contracts}");
    for export in &found.exports {
        let _ = writeln!(
            text,
            "  exports   {}{}",
            export.name,
            if export.used { "" } else { " (ignored)" }
        );
    }
    for import in &found.imports {
        let from = match import.from {
            From::Contract => "",
            From::Granted(_) => " (if it is granted)",
            From::ClosedWasi => " (closed: reaches nothing)",
            From::Nobody => " (refused: nobody answers it)",
        };
        let _ = writeln!(text, "  imports   {}{from}", import.name);
    }
    if let Some(grants) = found.grants() {
        let _ = writeln!(text, "  needs     {grants} in [policy.NAME]");
    }
    let _ = match &found.refusal {
        Some(refusal) => writeln!(text, "  refused   {refusal}"),
        None => writeln!(text, "  accepted"),
    };
    text
}

fn write_wit(folder: Option<&std::path::Path>) -> anyhow::Result<ExitCode> {
    for (name, text) in wasm::WIT {
        match folder {
            Some(folder) => {
                let path = folder.join(name);
                std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
                std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
                println!("{}", path.display());
            }
            None => println!("// {name}\n{text}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}
