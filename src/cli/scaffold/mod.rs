//! `forebay plugin new`: where does an author begin?
//!
//! With a policy that does something already: its sources, the contract, how it is built and run, and a scenario that it
//! passes. What is written comes from [`template`]; nothing that is there is ever written over.

mod template;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The longest name: it becomes that of a package.
const NAME_MAX: usize = 64;

/// Arguments of `forebay plugin new`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The folder gets sources, wit/ (the contract), build.sh, forebay.toml, scenarios/first.toml and a \
    README.md with the three commands that build, test and run it.\n\n\
    Examples:\n  \
    forebay plugin new by-user --lang rust --hook pick\n  \
    forebay plugin new plugins/preview --lang js --hook route"
)]
pub(super) struct NewArgs {
    /// The folder to make; its last part is the policy's name, of lower-case letters, digits and single hyphens
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// What it is written in
    #[arg(long, value_name = "LANGUAGE")]
    lang: Language,
    /// What it decides
    #[arg(long, value_name = "HOOK")]
    hook: Hook,
}

/// What policies can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Needs rustup's target wasm32-unknown-unknown
    Rust,
    /// Needs clang with wasi-libc
    C,
    /// JavaScript; needs Node.js; some 10 us of each request, unless it plans
    Js,
    /// Needs componentize-py; some 10 us of each request, unless it plans
    Python,
    /// AssemblyScript; needs Node.js
    As,
}

/// What a policy can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Hook {
    /// Weights servers by how fast they answer; asked twice a second, never for a request
    Plan,
    /// Gives each value of a header its server, and spills when that one is crowded
    Pick,
    /// Sends requests with a cookie to another backend
    Route,
    /// Keeps requests with a header on connections that nobody shares
    Reuse,
}

/// A file to be written.
struct File {
    /// Below the folder.
    path: String,
    contents: Vec<u8>,
}

/// Makes the folder, and says what to do next.
pub(super) fn run(args: &NewArgs) -> anyhow::Result<ExitCode> {
    let name = name_of(&args.folder)?;
    refuse_occupied(&args.folder)?;
    let files = template::files(name, args.lang, args.hook)?;
    for file in &files {
        write(&args.folder, file)?;
    }
    let folder = args.folder.display();
    println!(
        "{folder}: {} files. Next (build.sh needs {}):\n",
        files.len(),
        args.lang.needs()
    );
    println!(
        "  cd {folder}\n  ./build.sh\n  forebay test --accept\n  forebay run forebay.toml\n\nREADME.md says more."
    );
    Ok(ExitCode::SUCCESS)
}

/// The policy's name: it becomes that of a package, of a component and of a table in configurations.
fn name_of(folder: &Path) -> anyhow::Result<&str> {
    let Some(name) = folder.file_name() else {
        bail!(
            "{} names no folder: say which one to make, such as `my-policy`",
            folder.display()
        );
    };
    match name.to_str() {
        Some(name) if is_name(name) => Ok(name),
        _ => bail!(
            "{} cannot be a policy's name: use lower-case letters, digits and single hyphens, a letter first, at most \
             {NAME_MAX} in all, such as `{}`",
            name.display(),
            alike(&name.to_string_lossy())
        ),
    }
}

fn is_name(name: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    let stands_well = !name.contains("--") && !name.ends_with('-');
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(fits)
        && stands_well
        && name.len() <= NAME_MAX
}

/// A name that is allowed, as near to a wrong one as can be.
fn alike(name: &str) -> String {
    let words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let joined: String = words.join("-").chars().take(NAME_MAX).collect();
    let found = joined.trim_matches('-');
    match is_name(found) {
        true => found.to_owned(),
        false => "my-policy".to_owned(),
    }
}

fn refuse_occupied(folder: &Path) -> anyhow::Result<()> {
    let shown = folder.display();
    let occupied = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) if folder.exists() => {
            bail!("{shown} is there and no folder that can be read: name another one")
        }
        Err(_) => false,
    };
    ensure!(
        !occupied,
        "{shown} is not empty, and nothing is written over: name another folder, or move what is in it away"
    );
    Ok(())
}

fn write(folder: &Path, file: &File) -> anyhow::Result<()> {
    let path = folder.join(&file.path);
    let shown = path.display();
    fs::create_dir_all(path.parent().unwrap_or(folder))
        .with_context(|| format!("cannot make the folder of {shown}"))?;
    fs::write(&path, &file.contents).with_context(|| format!("cannot write {shown}"))?;
    if file.path.ends_with(".sh") {
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, executable).with_context(|| format!("cannot make {shown} executable"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
