//! The one thread that is no worker: reloads, publication of generations, drain, and the numbers for those who ask.
//!
//! It owns the identities (`registry`) and the listening addresses, builds generations from configs, publishes them
//! by one atomic swap, and tells workers by mail. A reload is check → bind → publish: whatever can fail comes before
//! the publication, and a reload that fails changes nothing.

mod desk;
mod kept;
mod loads;
mod planning;
mod policies;
mod publish;
mod ramps;
mod registry;
mod settings;
mod snapshot;

use crate::config::{Config, model};
use crate::net::{Accepted, Address, Connection, Listener};
use crate::observe::batch::Batcher;
use crate::observe::messages::{self, Level, Messages};
use crate::observe::writer::Log;
use crate::observe::{format, outlet};
use crate::shared::generation::{Generation, ListenerId};
use crate::shared::mailbox::{Mailbox, Postbox};
use crate::shared::orders::{Order, Place, Published};
use crate::shared::process::Process;
use crate::shared::statistics::{PerWorker, WorkerStatistics};
use anyhow::{Context, bail};
pub use desk::Desk;
use parking_lot::{Condvar, Mutex};
use planning::PUBLICATION_MIN;
pub use planning::Planning;
pub use policies::{Loader, Told, check as check_policies};
use policies::{Policies, Renewed};
pub use registry::Decision;
use registry::Registry;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// What a worker is told.
pub type WorkerOrder = Order<Listener, Batcher>;
/// A client connection on its way to another worker.
pub type HandOff = (ListenerId, Accepted);
/// The way to a worker.
pub type WorkerPostbox = Postbox<WorkerOrder, HandOff>;
/// A worker's own end of it.
pub type WorkerMailbox = Mailbox<WorkerOrder, HandOff>;

/// How long a reload waits for workers to close the sockets of a listener that is gone.
const UNLISTEN_PATIENCE: Duration = Duration::from_secs(2);

/// Steers the workers.
pub struct Control {
    published: Arc<Published<Connection, Address>>,
    postboxes: Arc<[WorkerPostbox]>,
    process: Arc<Process>,
    statistics: Arc<PerWorker<WorkerStatistics>>,
    messages: Messages,
    log: Mutex<Option<Log>>,
    started: SystemTime,
    failed_reloads: AtomicU64,
    stopping: AtomicBool,
    loader: Option<Arc<dyn Loader>>,
    workers: u16,
    changed: Condvar,
    /// How often something changed: who looked before it did does not wait.
    changes: AtomicU64,
    /// Held for the whole of a reload: they come one after the other. Before `state`, which is held for parts of it.
    reloading: Mutex<()>,
    state: Mutex<Steering>,
}

/// What only one reload or command may change at a time.
struct Steering {
    registry: Registry<Connection, Address>,
    policies: Policies,
    config: Config,
    bound: Vec<Bound>,
}

/// A listening address.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The listener's name.
    pub listener: String,
    /// The address as the config says it.
    pub asked: Address,
    /// The address as it is: a port 0 has become a real one.
    pub address: Address,
    workers: Vec<u16>,
    place: Place,
}

/// What a control is made of.
pub struct Parts {
    /// The way to each worker, in order.
    pub postboxes: Arc<[WorkerPostbox]>,
    /// What all workers share.
    pub process: Arc<Process>,
    /// What each worker counts of itself.
    pub statistics: Arc<PerWorker<WorkerStatistics>>,
    /// Operator messages.
    pub messages: Messages,
    /// The access log, if there is one.
    pub log: Option<Log>,
    /// Who loads policies; none in a build without a host.
    pub loader: Option<Arc<dyn Loader>>,
}

impl Control {
    /// Loads the policies, builds and publishes the first generation. No socket is bound yet.
    ///
    /// # Errors
    /// Every policy that cannot be loaded.
    pub fn new(config: Config, parts: Parts) -> anyhow::Result<Control> {
        let workers = config.process.workers;
        let mut registry = Registry::new(workers, parts.process.key_secret());
        let mut policies = Policies::default();
        let mut wanted = policies.wanted(&config, workers);
        let errors = policies::load(&mut wanted, parts.loader.as_deref());
        if !errors.is_empty() {
            bail!("{}", errors.join("\n"));
        }
        policies.take_up(wanted);
        let first = registry.build(&config, &policies);
        first.open_queues();
        let published = Arc::new(Published::from_pointee(first));
        parts.process.set_ratios(
            config.process.pool_low_fd_ratio,
            config.process.pool_high_fd_ratio,
        );
        parts.process.set_sharing(config.process.pool_sharing);
        Ok(Control {
            published,
            postboxes: parts.postboxes,
            process: parts.process,
            statistics: parts.statistics,
            messages: parts.messages,
            log: Mutex::new(parts.log),
            started: SystemTime::now(),
            failed_reloads: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            loader: parts.loader,
            workers,
            changed: Condvar::new(),
            changes: AtomicU64::new(0),
            reloading: Mutex::new(()),
            state: Mutex::new(Steering {
                registry,
                policies,
                config,
                bound: Vec::new(),
            }),
        })
    }

    /// The generation that is published now.
    pub fn generation(&self) -> Arc<Generation<Connection, Address>> {
        self.published.load_full()
    }

    /// Whether the process drains or stops.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Waits for a reload, a command or the end, at most so long; not at all if there was one since [`Self::changes`] said
    /// `seen`.
    pub(self) fn wait_for_change(&self, longest: Duration, seen: u64) {
        let mut state = self.state.lock();
        if !self.is_stopping() && self.changes() == seen {
            self.changed.wait_for(&mut state, longest);
        }
    }

    /// How many changes there were.
    pub(self) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// After the change; what changes the state does so under its lock until here.
    fn tell_of_change(&self) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Frees the code of policies that were replaced and that no worker uses any more; tells whether some still are.
    pub(self) fn free_retired(&self) -> bool {
        let (freed, more) = self.state.lock().policies.freed();
        drop(freed);
        more
    }

    /// Where generations are published.
    pub fn published(&self) -> Arc<Published<Connection, Address>> {
        self.published.clone()
    }

    /// Binds every address of the config and tells the workers to accept there.
    ///
    /// # Errors
    /// The first address that cannot be bound, by name and reason; then none is.
    pub fn listen(&self) -> anyhow::Result<Vec<Bound>> {
        let mut state = self.state.lock();
        let wanted = wanted(&state.config);
        let fresh = self.bind(&wanted)?;
        let bound: Vec<Bound> = fresh.iter().map(|(bound, _)| bound.clone()).collect();
        self.give_out(&state.registry, fresh);
        state.bound.clone_from(&bound);
        Ok(bound)
    }

    /// Takes up a changed config, whole or not at all; tells which addresses are new. Loading policies may take
    /// seconds: call it on a thread that nobody waits for. Everything else goes on meanwhile.
    ///
    /// # Errors
    /// What cannot be changed without a restart, an address that cannot be bound, or the process's end. Nothing has
    /// changed then.
    pub fn reload(&self, config: Config) -> anyhow::Result<Vec<Bound>> {
        let outcome = self.try_reload(config);
        if outcome.is_err() {
            self.failed_reloads.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// Counts a reload whose config could not be read at all.
    pub fn count_failed_reload(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    fn try_reload(&self, config: Config) -> anyhow::Result<Vec<Bound>> {
        let _one_at_a_time = self.reloading.lock();
        let mut policies = {
            let mut state = self.state.lock();
            refuse_what_needs_a_restart(&state.config, &config)?;
            state.policies.wanted(&config, self.workers)
        };
        let errors = policies::load(&mut policies, self.loader.as_deref());
        let mut state = self.state.lock();
        if self.is_stopping() {
            bail!("the process is draining");
        }
        let wanted = wanted(&config);
        let same = |bound: &Bound, wanted: &Bound| bound.place == wanted.place;
        let new: Vec<Bound> = wanted
            .iter()
            .filter(|w| !state.bound.iter().any(|b| same(b, w)))
            .cloned()
            .collect();
        let (kept, gone): (Vec<Bound>, Vec<Bound>) = state
            .bound
            .iter()
            .cloned()
            .partition(|b| wanted.iter().any(|w| same(b, w)));
        let fresh = self.bind(&new)?;
        self.set_log(&state.config.process.log, &config.process.log)?;

        // A policy that cannot be loaded leaves the one at work; the rest of the configuration is taken up.
        let renewed = state.policies.take_up(policies);
        // Nothing fails from here on. Who waits on a listener that goes is accepted under the rules it came for.
        for bound in &gone {
            self.close(bound);
        }
        let Steering {
            registry, policies, ..
        } = &mut *state;
        self.publish(registry.build(&config, policies));
        self.tell_of_policies(&errors, &renewed);
        let mut now_bound: Vec<Bound> = kept;
        for bound in &mut now_bound {
            let now = wanted
                .iter()
                .find(|w| same(bound, w))
                .expect("it was kept because of one");
            if bound.listener != now.listener {
                bound.listener.clone_from(&now.listener);
                let id = state
                    .registry
                    .listener_id(&now.listener)
                    .expect("the generation has it");
                self.tell_all(|| Order::Rename(bound.place, id));
            }
        }
        let new_bound: Vec<Bound> = fresh.iter().map(|(bound, _)| bound.clone()).collect();
        now_bound.extend(new_bound.iter().cloned());
        self.give_out(&state.registry, fresh);
        self.process.set_ratios(
            config.process.pool_low_fd_ratio,
            config.process.pool_high_fd_ratio,
        );
        self.process.set_sharing(config.process.pool_sharing);
        state.config = config;
        state.bound = now_bound;
        self.tell_of_change();
        self.wake_all();
        Ok(new_bound)
    }

    /// Each policy that could not be loaded, and each that was, by the beginning of its component's SHA-256.
    fn tell_of_policies(&self, errors: &[String], renewed: &[Renewed]) {
        for error in errors {
            self.messages
                .tell(Level::Error, "a policy stays as it was", &[("error", error)]);
        }
        for policy in renewed {
            let digest: String = policy.digest[..6]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let fields: messages::Fields = &[
                ("policy", &policy.policy),
                ("at", &policy.place),
                ("sha256", &digest),
            ];
            self.messages
                .tell(Level::Notice, "a policy has been loaded", fields);
        }
    }

    /// Opens the log's file again, for a rotation.
    pub fn reopen_log(&self) {
        if let Some(log) = &*self.log.lock()
            && let Err(error) = log.reopen()
        {
            self.messages
                .tell(Level::Error, "cannot reopen the access log", &[("error", &error)]);
        }
    }

    /// Stops accepting and lets what is in progress finish.
    pub fn drain(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        // After this, no reload gives out another socket: it looks at the flag under the same lock.
        drop(self.state.lock());
        self.tell_of_change();
        self.tell_all(|| Order::Drain);
    }

    /// Ends everything at once.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.tell_of_change();
        self.tell_all(|| Order::Stop);
    }

    /// Writes out what the log still holds, once the workers have ended.
    pub fn close_log(&self, patience: Duration) {
        if let Some(log) = self.log.lock().take() {
            log.stop(patience);
        }
    }

    /// Removes the files of Unix sockets, once nobody accepts on them.
    pub fn remove_sockets(&self) {
        for bound in &self.state.lock().bound {
            if let Address::Unix(path) = &bound.asked {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Operator messages.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// How long a drain may take before what is left is cut.
    pub fn hard_stop_after(&self) -> Duration {
        self.state.lock().config.process.hard_stop_after
    }

    fn set_log(&self, former: &model::Log, log: &model::Log) -> anyhow::Result<()> {
        if former == log {
            self.reopen_log();
            return Ok(());
        }
        let mut running = self.log.lock();
        match (&*running, target(log)) {
            (Some(writer), Some(target)) => {
                writer.set(log_format(log), target)?;
                if former.to == model::LogTarget::None {
                    self.tell_all(|| Order::Log(Some(writer.batcher())));
                }
            }
            (None, Some(target)) => {
                let writer = Log::start(log_format(log), target, self.messages.clone())
                    .with_context(|| format!("cannot open the access log {log:?}"))?;
                self.tell_all(|| Order::Log(Some(writer.batcher())));
                *running = Some(writer);
            }
            (Some(_), None) => {
                self.tell_all(|| Order::Log(None));
                // The writer stays for the batches that are on their way.
            }
            (None, None) => {}
        }
        Ok(())
    }

    fn bind(&self, wanted: &[Bound]) -> anyhow::Result<Vec<(Bound, Vec<Listener>)>> {
        let mut fresh = Vec::with_capacity(wanted.len());
        for bound in wanted {
            let (address, sockets) =
                Listener::bind(&bound.asked, bound.workers.len()).with_context(|| {
                    format!("listener {:?}: cannot listen at {}", bound.listener, bound.asked)
                })?;
            fresh.push((
                Bound {
                    address,
                    ..bound.clone()
                },
                sockets,
            ));
        }
        Ok(fresh)
    }

    fn give_out(&self, registry: &Registry<Connection, Address>, fresh: Vec<(Bound, Vec<Listener>)>) {
        for (bound, sockets) in fresh {
            let id = registry
                .listener_id(&bound.listener)
                .expect("the generation has it");
            for (worker, socket) in bound.workers.iter().zip(sockets) {
                let _ = self.postboxes[usize::from(*worker)].send(Order::Listen(id, bound.place, socket));
            }
        }
    }

    /// Has the workers close one address, and waits until they have.
    fn close(&self, bound: &Bound) {
        let (done, all_done) = crossbeam_channel::bounded(0);
        self.tell_all(|| Order::Unlisten(bound.place, done.clone()));
        drop(done);
        let _ = all_done.recv_timeout(UNLISTEN_PATIENCE);
        if let Address::Unix(path) = &bound.asked {
            let _ = std::fs::remove_file(path);
        }
    }

    fn tell_all(&self, order: impl Fn() -> WorkerOrder) {
        for postbox in self.postboxes.iter() {
            let _ = postbox.send(order());
        }
    }

    /// Workers look at the published generation once per turn: an idle one has to be woken for it.
    fn wake_all(&self) {
        self.tell_all(|| Order::Look);
    }
}

impl Control {
    /// Decides something about a server instead of the configuration, and publishes it.
    ///
    /// # Errors
    /// There is no such server now.
    pub fn decide(&self, backend: &str, server: &str, decision: Decision) -> Result<(), String> {
        let mut steering = self.state.lock();
        let Steering { registry, config, .. } = &mut *steering;
        let present = config
            .backends
            .iter()
            .find(|known| known.name == backend && known.servers.iter().any(|known| known.name == server));
        let slow_start = present
            .ok_or_else(|| format!("no server {backend}/{server}"))?
            .slow_start;
        registry.decide(backend, server, decision, slow_start, Instant::now())?;
        self.publish_anew(&mut steering);
        self.tell_of_change();
        Ok(())
    }
}

/// Every address that a config listens at.
fn wanted(config: &Config) -> Vec<Bound> {
    let all: Vec<u16> = (0..config.process.workers).collect();
    let mut wanted: Vec<Bound> = Vec::new();
    for listen in &config.listeners {
        for address in &listen.bind {
            let workers = if listen.workers.is_empty() {
                &all
            } else {
                &listen.workers
            };
            // A Unix socket cannot be shared: it lives on the first worker.
            let shared = if matches!(address, Address::Unix(_)) {
                1
            } else {
                workers.len()
            };
            let mut bound = Bound {
                listener: listen.name.clone(),
                asked: address.clone(),
                address: address.clone(),
                workers: workers[..shared].to_vec(),
                place: Place(0),
            };
            let mut nth = 0;
            while wanted.iter().any(|earlier| earlier.place == bound.place) || nth == 0 {
                bound.place = place(&bound, nth);
                nth += 1;
            }
            wanted.push(bound);
        }
    }
    wanted
}

/// What stays the same when a reload keeps an address: the address and its workers. Port 0 is another port each time,
/// so there the listener's name tells, and the how-manieth it is.
fn place(bound: &Bound, nth: u32) -> Place {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (&bound.asked, &bound.workers, nth).hash(&mut hasher);
    if is_any_port(&bound.asked) {
        bound.listener.hash(&mut hasher);
    }
    Place(hasher.finish())
}

fn is_any_port(address: &Address) -> bool {
    matches!(address, Address::Tcp(address) if address.port() == 0)
}

fn refuse_what_needs_a_restart(former: &Config, config: &Config) -> anyhow::Result<()> {
    let (before, now) = (&former.process, &config.process);
    if before.workers != now.workers {
        bail!(
            "process.workers changed from {} to {}: that needs a restart",
            before.workers,
            now.workers
        );
    }
    if before.control != now.control {
        bail!("process.control changed: that needs a restart");
    }
    if before.metrics != now.metrics {
        bail!("process.metrics changed: that needs a restart");
    }
    // Its sockets belong to the workers it had; a second set beside them cannot be told from another program's.
    let bound = wanted(former);
    for now in wanted(config) {
        let same = |before: &&Bound| before.asked == now.asked && !is_any_port(&now.asked);
        if bound
            .iter()
            .find(same)
            .is_some_and(|before| before.workers != now.workers)
        {
            bail!(
                "listener {:?}: the workers of {} changed: that needs a restart",
                now.listener,
                now.asked
            );
        }
    }
    Ok(())
}

/// Where an access log goes; `None` for nowhere.
pub fn target(log: &model::Log) -> Option<outlet::Target> {
    match &log.to {
        model::LogTarget::None => None,
        model::LogTarget::Stdout => Some(outlet::Target::Stdout),
        model::LogTarget::Stderr => Some(outlet::Target::Stderr),
        model::LogTarget::File(path) => Some(outlet::Target::File(PathBuf::from(path))),
    }
}

/// How its lines are written.
pub fn log_format(log: &model::Log) -> format::Format {
    match log.format {
        model::LogFormat::Json => format::Format::Json,
        model::LogFormat::Human => format::Format::Human,
    }
}
