//! `forebay ctl`: says one runtime command to a running process and prints its answer.
//!
//! With `--config` only the key `process.control` of the file is read, whatever else stands there: the commands must
//! reach the process also while its file is being edited.

use crate::observe::timed::Timed;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `forebay ctl`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Try `forebay ctl --config FILE help` for the commands of the running process.")]
pub struct CtlArgs {
    /// Socket of the running process
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "config",
        conflicts_with = "config"
    )]
    pub socket: Option<PathBuf>,
    /// Configuration file of the running process, whose process.control names the socket
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The command, for example: show stat json
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// How long the process may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(15);

/// Says the command and prints the answer. Failure if any answer is a refusal.
pub fn run(args: &CtlArgs) -> anyhow::Result<ExitCode> {
    let socket = match (&args.socket, &args.config) {
        (Some(socket), _) => socket.clone(),
        (None, Some(file)) => socket_of(file)?,
        (None, None) => bail!("either --socket or --config says where the process listens"),
    };
    let answer = ask(&socket, &args.command.join(" "))?;
    let text = without_last_empty_line(&answer);
    std::io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .context("the answer cannot be printed")?;
    Ok(if is_refusal(&answer) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn socket_of(file: &Path) -> anyhow::Result<PathBuf> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let table: toml::Table = text
        .parse()
        .with_context(|| format!("{} is no TOML", file.display()))?;
    let control = table.get("process").and_then(|process| process.get("control"));
    let path = control.and_then(toml::Value::as_str);
    path.map(PathBuf::from)
        .ok_or_else(|| anyhow!("{} has no text at process.control", file.display()))
}

/// Says one line and reads the whole answer.
fn ask(socket: &Path, line: &str) -> anyhow::Result<String> {
    if line.contains('\n') {
        bail!("a command is one line");
    }
    let stream =
        UnixStream::connect(socket).with_context(|| format!("nobody answers at {}", socket.display()))?;
    let mut stream = Timed::new(stream, PATIENCE);
    stream
        .write_all(format!("{line}\n").as_bytes())
        .context("the command was not taken")?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .context("no whole answer came")?;
    if answer.is_empty() {
        bail!("no answer came from {}", socket.display());
    }
    Ok(answer)
}

/// The empty line says that the answer is whole; people need not see it.
fn without_last_empty_line(answer: &str) -> &str {
    if answer == "\n" || answer.ends_with("\n\n") {
        &answer[..answer.len() - 1]
    } else {
        answer
    }
}

fn is_refusal(answer: &str) -> bool {
    answer
        .split("\n\n")
        .any(|one| one.trim_start_matches('\n').starts_with("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::command::Setting;
    use crate::admin::{Admin, Control};
    use crate::observe::snapshot::Snapshot;
    use crate::observe::testing::{Folder, collecting, example_snapshot};
    use clap::Parser;
    use std::sync::Arc;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        ctl: CtlArgs,
    }

    fn parsed(arguments: &[&str]) -> Result<CtlArgs, clap::Error> {
        Program::try_parse_from(std::iter::once(&"ctl").chain(arguments)).map(|program| program.ctl)
    }

    struct NoServers;

    impl Control for NoServers {
        fn snapshot(&self) -> Snapshot {
            example_snapshot()
        }

        fn set_server(&self, backend: &str, server: &str, _: Setting) -> Result<(), String> {
            Err(format!("no server {backend}/{server}"))
        }
    }

    #[test]
    fn arguments() {
        let args = parsed(&["--socket", "/run/s", "set", "server", "a/b", "state", "drain"]).unwrap();
        assert_eq!(args.command.join(" "), "set server a/b state drain");
        assert!(parsed(&["show", "stat"]).is_err(), "no place");
        assert!(
            parsed(&["--socket", "s", "--config", "f", "help"]).is_err(),
            "two places"
        );
        assert!(parsed(&["--socket", "s"]).is_err(), "no command");
    }

    #[test]
    fn a_real_process_is_asked_and_its_refusal_is_a_failure() {
        let folder = Folder::new("ctl");
        let (socket, file) = (folder.file("control.sock"), folder.file("forebay.toml"));
        let _admin = Admin::start(&socket, Arc::new(NoServers), collecting().0).unwrap();
        std::fs::write(&file, format!("[process]\ncontrol = {socket:?}\nsurprise = 1\n")).unwrap();
        let run_words = |words: &[&str]| {
            let place = ["--config", file.to_str().unwrap()];
            run(&parsed(&[&place, words].concat()).unwrap()).unwrap()
        };
        assert_eq!(run_words(&["show", "version"]), ExitCode::SUCCESS);
        assert_eq!(
            run_words(&["set", "server", "a/b", "state", "drain"]),
            ExitCode::FAILURE
        );
        assert_eq!(run_words(&["show version; what"]), ExitCode::FAILURE);
        assert!(ask(&socket, "show stat").unwrap().starts_with("# pxname,"));
    }

    #[test]
    fn nobody_there_is_told_with_the_path() {
        let folder = Folder::new("ctl-nobody");
        let error = ask(&folder.file("none.sock"), "help").unwrap_err();
        assert!(error.to_string().contains("none.sock"), "{error}");
        std::fs::write(folder.file("empty.toml"), "").unwrap();
        let error = socket_of(&folder.file("empty.toml")).unwrap_err();
        assert!(error.to_string().contains("process.control"), "{error}");
    }

    #[test]
    fn the_mark_of_the_end_is_not_printed() {
        assert_eq!(without_last_empty_line("a\nb\n\n"), "a\nb\n");
        assert_eq!(without_last_empty_line("\n"), "");
        assert_eq!(without_last_empty_line("cut off"), "cut off");
    }

    #[test]
    fn a_refusal_is_seen_wherever_it_stands() {
        for answer in ["error: x\n\n", "\nerror: x\n\n", "a\n\nerror: x\n\n"] {
            assert!(is_refusal(answer), "{answer:?}");
        }
        assert!(!is_refusal("\n") && !is_refusal("# name\nerror: no first line\n\n"));
    }
}
