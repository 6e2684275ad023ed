//! Runtime commands, given to the program as an operator gives them: by `forebay ctl`.

use super::{Proxy, once};

/// Runs one command against this proxy's socket: its answer, or what it complained about.
#[track_caller]
pub(crate) fn ctl(proxy: &Proxy, command: &[&str]) -> Result<String, String> {
    let socket = proxy.path("control.sock");
    let mut arguments = vec!["ctl", "--socket", socket.to_str().expect("a plain path")];
    arguments.extend_from_slice(command);
    let output = once(&arguments);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(stdout),
        false => Err(format!("{stdout}{stderr}")),
    }
}
