//! The real binary as a child process: its addresses, what it says, what it counts, and the CPU time that it has used.

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One running proxy, ended with its value.
pub(crate) struct Proxy {
    child: Child,
    /// Kept, so that what is printed later finds a reader's end.
    _stdout: BufReader<ChildStdout>,
    said: Arc<Mutex<Vec<Said>>>,
    /// The listener whose requests the policy is asked about.
    pub(crate) asked: SocketAddr,
    /// The listener of the same worker that has no policy.
    pub(crate) other: SocketAddr,
    metrics: SocketAddr,
}

/// A line on standard error.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) at: Instant,
    pub(crate) line: String,
}

impl Proxy {
    /// Starts it with this configuration, whose listeners are `asked` and `other`.
    pub(crate) fn start(folder: &Path, name: &str, config: &str) -> Result<Proxy> {
        let file = folder.join(format!("{name}.toml"));
        std::fs::write(&file, config)?;
        let mut child = Command::new(binary())
            .arg("run")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", binary().display()))?;
        let said: Arc<Mutex<Vec<Said>>> = Arc::default();
        let (kept, stderr) = (Arc::clone(&said), child.stderr.take().context("piped")?);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let at = Instant::now();
                kept.lock().push(Said { at, line });
            }
        });
        let mut stdout = BufReader::new(child.stdout.take().context("piped")?);
        let found = addresses(&mut stdout);
        let [asked, other, metrics] = match found {
            Ok(found) => found,
            Err(error) => {
                // It has ended, or will not come up.
                let _ = child.kill();
                let _ = child.wait();
                let lines: Vec<String> = said.lock().iter().map(|it| it.line.clone()).collect();
                bail!("{name} does not come up: {error:#}: {}", lines.join("\n"));
            }
        };
        Ok(Proxy {
            child,
            _stdout: stdout,
            said,
            asked,
            other,
            metrics,
        })
    }

    /// The first line that contains this.
    pub(crate) fn said_first(&self, part: &str) -> Option<Said> {
        self.said.lock().iter().find(|it| it.line.contains(part)).cloned()
    }

    /// Answers of policies that were not used, by reason.
    pub(crate) fn faults(&self) -> Result<BTreeMap<String, u64>> {
        let mut connection = TcpStream::connect(self.metrics)?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        connection.read_to_string(&mut text)?;
        let mut faults = BTreeMap::new();
        for line in text
            .lines()
            .filter(|line| line.starts_with("forebay_policy_faults_total{"))
        {
            let (series, count) = line.rsplit_once(' ').context("a sample")?;
            let (_, reason) = series.split_once("reason=\"").context("a reason")?;
            let reason = reason.split('"').next().unwrap_or_default();
            *faults.entry(reason.to_owned()).or_default() += count.parse::<f64>()? as u64;
        }
        faults.retain(|_, count| *count > 0);
        Ok(faults)
    }

    /// CPU time that its threads have used so far.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end meanwhile.
            let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else {
                continue;
            };
            let first = text.split(' ').next().unwrap_or_default();
            nanoseconds += first.parse::<u64>().context("schedstat")?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself, which the requests have shown.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what it prints until it has named its two listeners and its metrics.
fn addresses(stdout: &mut impl BufRead) -> Result<[SocketAddr; 3]> {
    let prefixes = ["listening asked ", "listening other ", "metrics http://"];
    let mut found = [None; 3];
    for line in stdout.lines() {
        let line = line?;
        for (address, prefix) in found.iter_mut().zip(prefixes) {
            if let Some(rest) = line.strip_prefix(prefix) {
                *address = Some(rest.trim().trim_end_matches("/metrics").parse()?);
            }
        }
        if let [Some(asked), Some(other), Some(metrics)] = found {
            return Ok([asked, other, metrics]);
        }
    }
    bail!("it ended before it said where it listens")
}

fn binary() -> PathBuf {
    std::env::var_os("FOREBAY").map_or_else(|| env!("CARGO_BIN_EXE_forebay").into(), PathBuf::from)
}
