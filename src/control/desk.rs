//! Control without threads, sockets or a clock: identities, policies, plans and slow starts, told the time by whoever
//! steers. A simulated proxy has one in the place of [`Control`](super::Control).

use super::planning::{self, Planned, Seats};
use super::policies::{self, Policies};
use super::ramps::Step;
use super::registry::{Decision, Registry};
use super::{Loader, PUBLICATION_MIN};
use crate::config::Config;
use crate::net::Address;
use crate::policy::{Fault, Live, Usage};
use crate::shared::generation::{AttachedPolicy, Generation};
use crate::shared::key::KeySecret;
use crate::shared::table::BackendTable;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a proxy is steered by. `C` is a connection to a server, `A` where one is opened.
pub struct Desk<C, A> {
    registry: Registry<C, A>,
    policies: Policies,
    seats: Seats,
    config: Config,
    loader: Option<Arc<dyn Loader>>,
    published: Arc<Generation<C, A>>,
    /// The most work that a call of each planner took, where that is counted.
    fuel: RefCell<BTreeMap<Box<str>, u64>>,
    /// The zero of its time; only differences to it are ever looked at.
    epoch: Instant,
}

impl<C: Send, A: Clone + From<Address>> Desk<C, A>
where
    BackendTable<C>: Live + 'static,
{
    /// Loads the policies and builds the first generation.
    ///
    /// # Errors
    /// Every policy that cannot be loaded.
    pub fn new(
        config: Config,
        secret: &KeySecret,
        loader: Option<Arc<dyn Loader>>,
    ) -> Result<Desk<C, A>, Vec<String>> {
        let workers = config.process.workers;
        let (mut registry, mut policies) = (Registry::new(workers, secret), Policies::default());
        let mut wanted = policies.wanted(&config, workers);
        let errors = policies::load(&mut wanted, loader.as_deref());
        if !errors.is_empty() {
            return Err(errors);
        }
        policies.take_up(wanted);
        let first = registry.build(&config, &policies);
        first.open_queues();
        let epoch = Instant::now();
        Ok(Desk {
            registry,
            policies,
            seats: Seats::new(epoch),
            config,
            loader,
            published: Arc::new(first),
            fuel: RefCell::default(),
            epoch,
        })
    }

    /// What requests are handled by now.
    pub fn published(&self) -> &Arc<Generation<C, A>> {
        &self.published
    }

    /// The configuration of which it is made.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Decides something about a server instead of the configuration.
    ///
    /// # Errors
    /// There is no such server now.
    pub fn decide(
        &mut self,
        backend: &str,
        server: &str,
        decision: Decision,
        now: Duration,
    ) -> Result<(), String> {
        let mut backends = self.config.backends.iter();
        let slow_start = backends
            .find(|known| known.name == backend)
            .and_then(|known| known.slow_start);
        let now = self.epoch + now;
        self.registry.decide(backend, server, decision, slow_start, now)?;
        self.publish_anew();
        Ok(())
    }

    /// Takes up a changed configuration. A policy that cannot be loaded leaves the one at work.
    ///
    /// # Errors
    /// Every policy that cannot be loaded; all else is taken up.
    pub fn reload(&mut self, config: Config) -> Result<(), Vec<String>> {
        let mut wanted = self.policies.wanted(&config, config.process.workers);
        let errors = policies::load(&mut wanted, self.loader.as_deref());
        self.policies.take_up(wanted);
        self.config = config;
        self.publish_anew();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Has plans made and slow starts stepped, where they are due; tells when to come again.
    pub fn turn(&mut self, now: Duration) -> Duration {
        let at = self.epoch + now;
        let mut seats = std::mem::replace(&mut self.seats, Seats::new(self.epoch));
        let (news, next) = seats.turn(self, at);
        self.seats = seats;
        if !news.is_empty() {
            self.published = Arc::new(self.registry.with_news(&self.published, &news));
        }
        if self.registry.ramps().advance(at) == Step::Made {
            self.publish_anew();
        }
        let next = self.registry.ramps().next().map_or(next, |step| next.min(step));
        next.max(at + PUBLICATION_MIN) - self.epoch
    }

    /// Every policy at work: its name, its place, and itself.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &str, &Arc<AttachedPolicy>)> {
        self.policies.at_work()
    }

    /// The most work that a plan of that policy took.
    pub fn fuel_of(&self, policy: &str) -> Option<u64> {
        self.fuel.borrow().get(policy).copied()
    }

    fn publish_anew(&mut self) {
        self.published = Arc::new(self.registry.build(&self.config, &self.policies));
    }
}

impl<C: Send, A: Clone + From<Address>> Planned<C, A> for Desk<C, A>
where
    BackendTable<C>: Live + 'static,
{
    fn generation(&self) -> Arc<Generation<C, A>> {
        self.published.clone()
    }

    fn servers_generation(&self, backend: &str) -> u64 {
        self.registry.servers_generation(backend)
    }

    fn tags(&self, backend: &str) -> Vec<Vec<(String, String)>> {
        planning::tags(&self.config, backend)
    }

    fn count_plan(&self, attached: &AttachedPolicy, answer: Result<bool, Fault>) {
        planning::count_plan(attached, self.config.process.workers, answer);
    }

    fn took(&self, attached: &AttachedPolicy, usage: Usage) {
        if let Some(fuel) = usage.fuel {
            let mut known = self.fuel.borrow_mut();
            let most = known.entry(attached.name.clone()).or_default();
            *most = (*most).max(fuel.used);
        }
    }
}
