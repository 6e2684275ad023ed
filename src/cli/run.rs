//! `forebay run`: starts the workers, then waits for signals.

use crate::admin::Admin;
use crate::config::{self, Config, defaults};
use crate::control::{self, Control, WorkerMailbox, WorkerPostbox};
use crate::decide::schedule;
use crate::net::{Poller, Registrar};
use crate::observe::exporter::Exporter;
use crate::observe::messages::{Level, Messages};
use crate::observe::snapshot::Snapshot;
use crate::observe::writer::Log;
use crate::policy::WorkerId;
use crate::shared::buffers::CommonBuffers;
use crate::shared::mailbox;
use crate::shared::process::Process;
use crate::shared::statistics::{PerWorker, WorkerStatistics};
use crate::shared::strays::Strays;
use crate::worker::{self, Worker};
use anyhow::Context;
use clap::Args;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, unbounded};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Arguments of `forebay run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Configuration file (TOML); `forebay config reference` lists its keys
    pub config: PathBuf,
    /// Sessions a worker runs before it looks for new events (SCH-1)
    #[arg(long, value_name = "N", hide = true)]
    pub depth: Option<usize>,
    /// Connections a worker accepts per listener and turn (SCH-7)
    #[arg(long, value_name = "N", hide = true)]
    pub max_accept: Option<usize>,
}

/// How long the log may take to write its last lines.
const LOG_PATIENCE: Duration = Duration::from_secs(2);
/// Without an observer: how often the main thread looks up. Signals and workers' ends wake it anyway.
const IDLE_TICK: Duration = Duration::from_secs(3600);

/// Serves a configuration file until a signal ends it.
pub fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let loaded = match config::load_with_warnings(&args.config) {
        Ok(loaded) => loaded,
        Err(errors) => {
            eprint!("{}", errors.render(super::check::is_styled(&std::io::stderr())));
            return Ok(ExitCode::FAILURE);
        }
    };
    eprint!(
        "{}",
        loaded
            .warnings
            .render(super::check::is_styled(&std::io::stderr()))
    );
    let tuning = Tuning {
        depth: args.depth,
        max_accept: args.max_accept,
    };
    Running::start(loaded.config, tuning)?.serve(Some(&args.config), |_| {}, IDLE_TICK)
}

/// Serves a config that is not in a file, and shows the numbers to `observer` every so often and once at the end.
pub fn serve(
    config: Config,
    observer: impl FnMut(&Snapshot) + Send + 'static,
    every: Duration,
) -> anyhow::Result<ExitCode> {
    Running::start(
        config,
        Tuning {
            depth: None,
            max_accept: None,
        },
    )?
    .serve(None, observer, every)
}

/// The loop's measures, where the command line changes them.
#[derive(Clone, Copy, Debug)]
struct Tuning {
    depth: Option<usize>,
    max_accept: Option<usize>,
}

/// A process that serves.
struct Running {
    control: Arc<Control>,
    workers: Vec<JoinHandle<()>>,
    ended: Receiver<WorkerId>,
    signals: Receiver<i32>,
    /// Kept for what they do until they are dropped.
    _admin: Option<Admin>,
    _exporter: Option<Exporter>,
}

impl Running {
    fn start(config: Config, tuning: Tuning) -> anyhow::Result<Running> {
        let messages = Messages::to_stderr(Level::Info).context("cannot start the message thread")?;
        let descriptors = raise_descriptor_limit();
        let workers = config.process.workers;
        refuse_too_few_descriptors(descriptors, workers)?;
        let signals = listen_for_signals()?;
        let process = Arc::new(Process::new(workers, descriptors));
        let statistics = Arc::new(PerWorker::new(workers, WorkerStatistics::default));
        let (metrics, admin) = (config.process.metrics, config.process.control.clone());
        let log = match control::target(&config.process.log) {
            Some(target) => Some(
                Log::start(control::log_format(&config.process.log), target, messages.clone())
                    .with_context(|| format!("cannot open the access log {:?}", config.process.log.to))?,
            ),
            None => None,
        };
        let batchers: Vec<_> = (0..workers).map(|_| log.as_ref().map(Log::batcher)).collect();
        let (posts, ends) = mailboxes(workers)?;
        let epoch = Instant::now();
        let loader = loader(&config, &messages, epoch);
        let control = Arc::new(Control::new(
            config,
            control::Parts {
                postboxes: posts.clone(),
                process: process.clone(),
                statistics: statistics.clone(),
                messages: messages.clone(),
                log,
                loader,
            },
        )?);
        let exporter = match metrics {
            Some(address) => {
                let source = control.clone();
                let exporter = Exporter::start(address, Arc::new(move || source.take_snapshot()));
                Some(exporter.with_context(|| format!("process.metrics: cannot listen at {address}"))?)
            }
            None => None,
        };
        let admin = match admin {
            Some(path) => {
                let admin = Admin::start(&path, control.clone(), messages.clone());
                Some(admin.with_context(|| format!("process.control: cannot listen at {}", path.display()))?)
            }
            None => None,
        };

        // Sockets before workers: an address that is taken ends the start before anything runs.
        let bound = control.listen()?;
        let (end, ended) = unbounded();
        let common = Arc::new(CommonBuffers::default());
        let registrars = ends.iter().map(|(poller, _)| poller.registrar());
        let registrars: Arc<[Registrar]> = registrars
            .collect::<std::io::Result<_>>()
            .context("cannot share a poll")?;
        let strays = Arc::new(Strays::new(workers));
        let mut handles = Vec::new();
        for ((number, (poller, mailbox)), log) in (0..workers).zip(ends).zip(batchers) {
            let worker = worker::Parts {
                id: WorkerId(number),
                poller,
                mailbox,
                postboxes: posts.clone(),
                published: control.published(),
                process: process.clone(),
                statistics: statistics.clone(),
                messages: messages.clone(),
                registrars: registrars.clone(),
                strays: strays.clone(),
                buffers: common.clone(),
                log,
                epoch,
                seed: seed(number),
                measures: worker::Measures {
                    depth: tuning.depth.unwrap_or_else(|| schedule::depth(workers)).max(1),
                    max_accept: tuning.max_accept.unwrap_or(defaults::MAX_ACCEPT).max(1),
                    accept_pause: defaults::ACCEPT_PAUSE.as_micros() as u64,
                    scratch: defaults::READ_SCRATCH,
                    held_body: defaults::HELD_BODY,
                    linger: defaults::LINGER.as_micros() as u64,
                    drain_grace: defaults::DRAIN_GRACE.as_micros() as u64,
                    hand_off_connections: defaults::HAND_OFF_CONNECTIONS as u32,
                    hand_off_fraction: defaults::HAND_OFF_FRACTION as u32,
                },
            };
            let end = end.clone();
            let handle = std::thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    // Tells of its end also when it panics: then the drop of `_told` does.
                    let _told = OnDrop(|| {
                        let _ = end.send(WorkerId(number));
                    });
                    Worker::new(worker).run();
                });
            handles.push(handle.context("cannot start a worker thread")?);
        }
        let planning = control::Planning::new(control.clone(), epoch);
        std::thread::Builder::new()
            .name("planner".into())
            .spawn(move || planning.run())
            .context("cannot start the planner thread")?;
        announce(&bound, exporter.as_ref());
        Ok(Running {
            control,
            workers: handles,
            ended,
            signals,
            _admin: admin,
            _exporter: exporter,
        })
    }

    fn serve(
        self,
        file: Option<&Path>,
        mut observer: impl FnMut(&Snapshot),
        every: Duration,
    ) -> anyhow::Result<ExitCode> {
        let messages = self.control.messages().clone();
        let reload = reloader(self.control.clone(), file)?;
        let mut draining_until: Option<Instant> = None;
        let mut alive = self.workers.len();
        let mut died = false;
        let mut next = Instant::now() + every;
        while alive > 0 {
            let deadline = draining_until.map_or(next, |until| until.min(next));
            crossbeam_channel::select! {
                recv(self.signals) -> signal => match (signal, draining_until) {
                    (Ok(SIGHUP), None) => match reload.as_ref().map(|reload| reload.try_send(())) {
                        // Full: one waits that has not read the file yet.
                        Some(Ok(()) | Err(TrySendError::Full(()))) => {}
                        Some(Err(TrySendError::Disconnected(()))) => {
                            messages.tell(Level::Error, "no reload: an earlier one panicked; restart soon", &[]);
                        }
                        None => messages.tell(Level::Notice, "nothing to reload: no configuration file", &[]),
                    },
                    (Ok(SIGHUP), Some(_)) => {
                        messages.tell(Level::Notice, "no reload: the process is draining", &[]);
                    }
                    (Ok(_), None) => {
                        messages.tell(Level::Notice, "draining: a second signal stops at once", &[]);
                        draining_until = Some(Instant::now() + self.control.hard_stop_after());
                        self.control.drain();
                    }
                    (Ok(_), Some(_)) | (Err(_), _) => self.control.stop(),
                },
                recv(self.ended) -> _ => {
                    alive -= 1;
                    if draining_until.is_none() {
                        died = true;
                        self.control.stop();
                    }
                },
                default(deadline.saturating_duration_since(Instant::now())) => {}
            }
            let now = Instant::now();
            if draining_until.is_some_and(|until| until <= now) {
                messages.tell(Level::Warn, "hard-stop-after is over: cutting what is left", &[]);
                self.control.stop();
                draining_until = Some(now + IDLE_TICK);
            }
            if next <= now {
                observer(&self.control.take_snapshot());
                next = now + every;
            }
        }
        for worker in self.workers {
            let _ = worker.join();
        }
        self.control.remove_sockets();
        observer(&self.control.take_snapshot());
        self.control.close_log(LOG_PATIENCE);
        messages.flush(LOG_PATIENCE);
        Ok(if died {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// A thread that reloads a file each time it is told to, so that signals and drain never wait for a compiler; `None`
/// without a file. Every reload reads the file after the signal that asked for it.
fn reloader(control: Arc<Control>, file: Option<&Path>) -> anyhow::Result<Option<Sender<()>>> {
    let Some(file) = file.map(Path::to_owned) else {
        return Ok(None);
    };
    let (ask, asked) = bounded(1);
    std::thread::Builder::new()
        .name("reload".into())
        .spawn(move || asked.iter().for_each(|()| reload(&control, &file)))
        .context("cannot start the reload thread")?;
    Ok(Some(ask))
}

fn reload(control: &Control, file: &Path) {
    let messages = control.messages();
    match config::load_with_warnings(file) {
        Err(errors) => {
            control.count_failed_reload();
            for line in errors.to_string().lines() {
                messages.tell(Level::Error, "configuration error", &[("at", &line)]);
            }
            messages.tell(
                Level::Error,
                "reload refused: the running configuration stays",
                &[],
            );
        }
        Ok(loaded) => {
            for line in loaded.warnings.to_string().lines() {
                messages.tell(Level::Warn, "configuration warning", &[("at", &line)]);
            }
            match control.reload(loaded.config) {
                Ok(fresh) => {
                    announce(&fresh, None);
                    messages.tell(Level::Notice, "reloaded", &[("file", &file.display())]);
                }
                Err(error) => {
                    let reason = format!("{error:#}");
                    messages.tell(
                        Level::Error,
                        "reload refused: the running configuration stays",
                        &[("reason", &reason)],
                    );
                }
            }
        }
    }
}

/// Who loads the policies of a configuration.
#[cfg(feature = "wasm")]
fn loader(config: &Config, messages: &Messages, epoch: Instant) -> Option<Arc<dyn control::Loader>> {
    Some(super::policies::loader(config, messages, epoch))
}

/// Nobody, in a build without a host.
#[cfg(not(feature = "wasm"))]
fn loader(_: &Config, _: &Messages, _: Instant) -> Option<Arc<dyn control::Loader>> {
    None
}

/// Prints where it listens, one address per line, for people and scripts that wait for it.
fn announce(bound: &[control::Bound], exporter: Option<&Exporter>) {
    let mut out = std::io::stdout().lock();
    for bound in bound {
        let _ = writeln!(out, "listening {} {}", bound.listener, bound.address);
    }
    if let Some(exporter) = exporter {
        let _ = writeln!(out, "metrics http://{}/metrics", exporter.address());
    }
    let _ = out.flush();
}

type Ends = Vec<(Poller, WorkerMailbox)>;

fn mailboxes(workers: u16) -> anyhow::Result<(Arc<[WorkerPostbox]>, Ends)> {
    let mut posts = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..workers {
        let poller = Poller::new(defaults::POLL_EVENTS).context("cannot create a poll")?;
        let waker = Arc::new(worker::Alarm(poller.waker().context("cannot create a waker")?));
        let (post, end) = mailbox::mailbox(defaults::HAND_OFFS_MAX, waker);
        posts.push(post);
        ends.push((poller, end));
    }
    Ok((posts.into(), ends))
}

/// Raises the soft limit of descriptors to the hard one and tells it.
fn raise_descriptor_limit() -> u32 {
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
    let now = if raised.is_ok() {
        limit.maximum
    } else {
        limit.current
    };
    now.unwrap_or(1 << 20).min(1 << 30) as u32
}

fn refuse_too_few_descriptors(limit: u32, workers: u16) -> anyhow::Result<()> {
    let least = defaults::DESCRIPTORS_RESERVED + 8 * u32::from(workers);
    anyhow::ensure!(
        limit >= least,
        "only {limit} descriptors may be open, {least} are needed for {workers} workers: raise `ulimit -n`"
    );
    Ok(())
}

fn listen_for_signals() -> anyhow::Result<Receiver<i32>> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .context("cannot listen for signals")?;
    let (tell, told) = bounded(16);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            signals
                .forever()
                .take_while(|signal| tell.send(*signal).is_ok())
                .for_each(drop)
        })
        .context("cannot start the signal thread")?;
    Ok(told)
}

/// Each worker draws its own numbers, others at every start.
fn seed(worker: u16) -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u16(worker);
    hasher.finish()
}

/// Runs something when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
