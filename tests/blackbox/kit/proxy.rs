//! The real program as a child process: started with a configuration text, watched, signalled and ended by its pid.
//!
//! Ports are 0 in the configuration; the program prints `listening NAME ADDRESS` for every bound address, and the kit
//! waits for the names it is asked for. A test that fails prints what the program said.

use super::lines::Lines;
use super::stream::Address;
use super::{PATIENCE, Setup, eventually};
use rustix::process::{Pid, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) use rustix::process::Signal;

/// One running proxy.
pub(crate) struct Proxy {
    child: Mutex<Child>,
    pid: u32,
    folder: Folder,
    stdout: Arc<Lines>,
    stderr: Arc<Lines>,
}

impl Proxy {
    /// Starts `forebay run` on this setup and waits for its listener `web`.
    #[track_caller]
    pub(crate) fn start(setup: &Setup) -> Proxy {
        let proxy = Proxy::spawn(setup, None);
        proxy.web();
        proxy
    }

    /// The same with a limit on descriptors, which util-linux's `prlimit` sets before the program begins.
    #[track_caller]
    pub(crate) fn start_with_descriptors(setup: &Setup, limit: u32) -> Proxy {
        let proxy = Proxy::spawn(setup, Some(limit));
        proxy.web();
        proxy
    }

    /// Starts it and waits for nothing: for configurations that must not come up.
    #[track_caller]
    pub(crate) fn spawn(setup: &Setup, descriptors: Option<u32>) -> Proxy {
        let folder = Folder::new();
        std::fs::write(folder.config(), setup.text(folder.path())).expect("the configuration is written");
        let mut command = match descriptors {
            Some(limit) => {
                let mut command = Command::new("prlimit");
                command.arg(format!("--nofile={limit}:{limit}")).arg(binary());
                command
            }
            None => Command::new(binary()),
        };
        command.arg("run").arg(folder.config());
        Proxy::watch(command, folder)
    }

    fn watch(mut command: Command, folder: Folder) -> Proxy {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = Lines::of(child.stdout.take().expect("piped"));
        let stderr = Lines::of(child.stderr.take().expect("piped"));
        Proxy {
            pid: child.id(),
            child: Mutex::new(child),
            folder,
            stdout,
            stderr,
        }
    }

    /// Starts `forebay demo`, which brings its own configuration and origins.
    #[track_caller]
    pub(crate) fn demo() -> Proxy {
        let mut command = Command::new(binary());
        command.arg("demo");
        Proxy::watch(command, Folder::new())
    }

    /// The address of the listener `web`.
    #[track_caller]
    pub(crate) fn web(&self) -> Address {
        self.address("web")
    }

    /// Where the metrics are, from the line `metrics http://ADDRESS/metrics`.
    #[track_caller]
    pub(crate) fn metrics_address(&self) -> Address {
        let line = self.stdout.wait_for(|line| line.starts_with("metrics http://"));
        let line = line.unwrap_or_else(|| panic!("no metrics address; stderr: {:#?}", self.stderr.all()));
        Address::parse(
            line["metrics http://".len()..]
                .trim()
                .trim_end_matches("/metrics"),
        )
    }

    /// The first address printed for that listener.
    #[track_caller]
    pub(crate) fn address(&self, name: &str) -> Address {
        let prefix = format!("listening {name} ");
        let line = self.stdout.wait_for(|line| line.starts_with(&prefix));
        match line {
            Some(line) => Address::parse(line[prefix.len()..].trim()),
            None => panic!("no line {prefix:?}; stderr: {:#?}", self.stderr.all()),
        }
    }

    /// All addresses printed for that listener so far.
    pub(crate) fn addresses(&self, name: &str) -> Vec<Address> {
        let prefix = format!("listening {name} ");
        let lines = self.stdout.all();
        lines
            .iter()
            .filter_map(|line| line.strip_prefix(&prefix))
            .map(|it| Address::parse(it.trim()))
            .collect()
    }

    /// A file in the proxy's own folder, `$DIR` in the configuration.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.rustix_pid(), signal).expect("the process is there");
    }

    /// Replaces the configuration and asks for a reload. Keep each `bind` as it is written: a listener whose `bind`
    /// text does not change stays, port 0 included.
    pub(crate) fn reload(&self, setup: &Setup) {
        self.rewrite(&setup.text(self.folder.path()));
        self.signal(Signal::HUP);
    }

    /// Replaces the configuration by exactly this text.
    pub(crate) fn rewrite(&self, text: &str) {
        std::fs::write(self.folder.config(), text).expect("the configuration is written");
    }

    /// Waits for the end of the process, at most so long.
    #[track_caller]
    pub(crate) fn exit_within(&self, wait: Duration) -> ExitStatus {
        let until = Instant::now() + wait;
        loop {
            if let Some(status) = self
                .child
                .lock()
                .expect("not poisoned")
                .try_wait()
                .expect("a child")
            {
                return status;
            }
            assert!(Instant::now() < until, "still running after {wait:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether it still runs.
    pub(crate) fn runs(&self) -> bool {
        self.child
            .lock()
            .expect("not poisoned")
            .try_wait()
            .expect("a child")
            .is_none()
    }

    /// Waits for a line on standard error.
    #[track_caller]
    pub(crate) fn says(&self, what: &str, test: impl Fn(&str) -> bool) -> String {
        let line = self.stderr.wait_for(test);
        line.unwrap_or_else(|| panic!("it never said {what}: {:#?}", self.stderr.all()))
    }

    /// Resident memory, bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("it runs");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .expect("Linux");
        let kib: u64 = line
            .split_whitespace()
            .nth(1)
            .and_then(|it| it.parse().ok())
            .expect("a number");
        kib * 1024
    }

    /// Open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid))
            .expect("it runs")
            .count()
    }

    /// CPU time used so far, user and system, in clock ticks.
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("it runs");
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .expect("a name")
            .split_whitespace()
            .collect();
        fields[11..13]
            .iter()
            .map(|field| field.parse::<u64>().expect("a number"))
            .sum()
    }

    /// The access log's lines, once there are that many.
    #[track_caller]
    pub(crate) fn access_log(&self, count: usize) -> Vec<serde_json::Value> {
        eventually(&format!("{count} lines of access log"), || {
            let text = std::fs::read_to_string(self.path("access.log")).unwrap_or_default();
            let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
            let lines: Vec<_> = whole.lines().collect();
            let parse = |line: &&str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            (lines.len() >= count).then(|| lines.iter().map(parse).collect())
        })
    }

    fn rustix_pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.pid).expect("a pid")).expect("not 0")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let ended = child.try_wait().ok().flatten();
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!("the proxy, ended by itself: {ended:?}");
            eprintln!("its standard output: {:#?}", self.stdout.all());
            eprintln!("its standard error: {:#?}", self.stderr.all());
        }
    }
}

/// Runs the program with these arguments to its end. It must end by itself, at once.
#[track_caller]
pub(crate) fn once(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let stdout = Lines::of(child.stdout.take().expect("piped"));
    let stderr = Lines::of(child.stderr.take().expect("piped"));
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if Instant::now() >= until {
            let _ = child.kill();
            panic!(
                "{arguments:?} does not end: {:?} {:?}",
                stdout.all(),
                stderr.all()
            );
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Output {
        status,
        stdout: stdout.to_end(),
        stderr: stderr.to_end(),
    }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_forebay"))
}

/// A folder of one proxy, removed with it. It lies in the system's temporary folder because the path of a Unix socket
/// must be short.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("forebay-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn config(&self) -> PathBuf {
        self.0.join("forebay.toml")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
