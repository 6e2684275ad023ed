//! A component in its place: configured, bounded, watched. Makes the instances that workers and the control thread hold.

use super::answer::Shape;
use super::component::Loaded;
use super::contract::configure;
use super::error::{LoadError, Problem};
use super::guest::clean;
use super::health::Health;
use super::instance::{Allowance, Cut, Instance};
use super::planner::Planning;
use super::serve::Serving;
use crate::policy::{
    ATTRIBUTES_MAX, Attached, Attachment, Attribute, Fault, Grant, Grants, HEADERS_MAX, Keeper, MEASURES_MAX,
    Measure, NUMBERS_MAX, Number, NumberKind, Offers, Planner, Policy, Setup, Tally, is_number_name,
    is_token,
};
use std::sync::Arc;
use std::time::Duration;

/// Time for a `configure` at load.
const CONFIGURE_MAX: Duration = Duration::from_secs(1);
/// Time for a `plan`.
const PLAN_MAX: Duration = Duration::from_millis(100);
/// Problems that are shown of a configuration.
const PROBLEMS_MAX: usize = 64;
/// What frames or routes a message is the core's, not a policy's, and neither is what some servers take for it.
const CLOSED_HEADERS: [&str; 15] = [
    "connection",
    "content-length",
    "content_length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "transfer_encoding",
    "upgrade",
];

/// What a policy may use (`[policy.NAME]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest that a request is held up, at most 2 s: liveness, not latency.
    pub deadline: Duration,
    /// The mean time of a call above which it is quarantined; `None` for no such limit.
    pub mean_max: Option<Duration>,
    /// Bytes of memory of an instance; at most what the host was made for.
    pub memory_max: usize,
    /// Units of work of a call in a test, instead of a deadline.
    pub fuel_max: u64,
    /// What it may import beyond what every policy may.
    pub grants: Grants,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            deadline: Duration::from_millis(10),
            mean_max: Some(Duration::from_micros(20)),
            memory_max: 16 << 20,
            fuel_max: 10_000_000,
            grants: Grants::default(),
        }
    }
}

/// One policy at one place, in one generation. What workers and the control thread hold keeps it alive.
pub(super) struct Placed {
    pub(super) loaded: Loaded,
    pub(super) who: Arc<Attached>,
    pub(super) limits: Limits,
    pub(super) offers: Offers,
    pub(super) shape: Shape,
    pub(super) health: Health,
    setup: configure::Setup,
    /// What it said the first time, to which it must keep.
    said: Said,
    /// Where what it is granted is kept; `None` for nowhere.
    keeper: Option<Arc<dyn Keeper>>,
}

/// What a guest says in `configure`.
struct Said {
    wishes: configure::Wishes,
    /// The measures that it asked for.
    measures: Vec<String>,
    /// The numbers that it declared.
    numbers: Vec<(NumberKind, String)>,
}

/// What [`Loaded::attach`] makes. Shared by all threads.
pub(super) struct Handle(Arc<Placed>);

impl Loaded {
    /// Asks the component whether it likes its configuration, as `forebay check` does.
    pub fn configure(&self, setup: &Setup, limits: &Limits) -> Result<Offers, LoadError> {
        let who = attached(setup);
        configured(self, &who, &told(setup), limits).map(|(_, offers)| offers)
    }

    /// Configures it for a place, and makes one instance as a worker would, so that what cannot work fails here. What it
    /// is granted is kept nowhere.
    pub fn attach(
        &self,
        setup: &Setup,
        limits: Limits,
        now: Duration,
    ) -> Result<Arc<dyn Attachment>, LoadError> {
        self.attach_kept(setup, limits, None, now)
    }

    /// The same, with who keeps what it is granted.
    pub fn attach_kept(
        &self,
        setup: &Setup,
        limits: Limits,
        keeper: Option<Arc<dyn Keeper>>,
        now: Duration,
    ) -> Result<Arc<dyn Attachment>, LoadError> {
        let (who, told) = (attached(setup), told(setup));
        let (said, offers) = configured(self, &who, &told, &limits)?;
        let shape = Shape {
            backends: setup.backends.len(),
            redirects: setup.redirects.len(),
            responses: setup.responses.len(),
        };
        let health = Health::new();
        let placed = Arc::new(Placed {
            loaded: self.clone(),
            who,
            limits,
            offers,
            shape,
            health,
            setup: told,
            said,
            keeper,
        });
        placed
            .instance(now)
            .map_err(|cut| fault(self, &setup.policy, "a rehearsal within its deadline", cut))?;
        Ok(Arc::new(Handle(placed)))
    }
}

impl Attachment for Handle {
    fn offers(&self) -> &Offers {
        &self.0.offers
    }

    fn policy(&self, now: Duration) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(Serving::new(Arc::clone(&self.0), now)?))
    }

    fn planner(&self, now: Duration) -> Result<Box<dyn Planner>, Fault> {
        Ok(Box::new(Planning::new(Arc::clone(&self.0), now)?))
    }

    fn is_used(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Placed {
    /// An instance, configured. Each step may take as long as a request may be held up.
    pub(super) fn instance(&self, now: Duration) -> Result<Instance, Cut> {
        let allowance = self.allowance();
        let mut instance = Instance::new(&self.loaded, &self.who, self.limits.memory_max, allowance)?;
        let answer = ask(&mut instance, &self.setup, allowance, now)?;
        match answer {
            Ok(said) if said.is(&self.said) => {
                instance.guest().measured.settle(&self.offers.measures);
                Ok(instance)
            }
            _ => Err(Cut::dropped(
                Fault::Configure,
                "configure answered otherwise than the first time",
            )),
        }
    }

    /// What an instance counts in; `None` if it counts nothing.
    pub(super) fn tally(&self) -> Option<Arc<Tally>> {
        let numbers = &self.offers.numbers;
        (!numbers.is_empty()).then(|| match &self.keeper {
            Some(keeper) => keeper.tally(numbers),
            None => Arc::new(Tally::new(numbers.clone())),
        })
    }

    /// Where a planner's bytes are kept.
    pub(super) fn store(&self) -> Option<Arc<dyn Keeper>> {
        let granted = self.limits.grants.has(Grant::Store);
        self.keeper.clone().filter(|_| granted)
    }

    /// For a call that a request waits for.
    pub(super) fn allowance(&self) -> Allowance {
        Allowance::new(self.limits.deadline, self.limits.fuel_max)
    }

    /// For a plan.
    pub(super) fn leisure(&self) -> Allowance {
        Allowance::new(PLAN_MAX, self.limits.fuel_max.saturating_mul(10))
    }

    /// Tells the journal, and whether the policy is shut from now on.
    pub(super) fn fault(&self, health: &Health, cut: &Cut, good: u32, now: Duration) {
        let journal = &self.loaded.host().journal;
        journal.fault(&self.who, cut.fault, &cut.detail);
        if let Some(pause) = health.strike(cut.fault, good, now) {
            journal.paused(&self.who, cut.fault, pause);
        }
    }
}

fn attached(setup: &Setup) -> Arc<Attached> {
    Arc::new(Attached {
        policy: setup.policy.as_str().into(),
        place: setup.attachment.as_str().into(),
    })
}

fn told(setup: &Setup) -> configure::Setup {
    configure::Setup {
        policy: setup.policy.clone(),
        attachment: setup.attachment.clone(),
        config: setup.config.clone(),
        backends: setup.backends.clone(),
        redirects: setup.redirects.clone(),
        responses: setup.responses.clone(),
    }
}

/// Makes a first instance and configures it, with time enough.
fn configured(
    loaded: &Loaded,
    who: &Arc<Attached>,
    setup: &configure::Setup,
    limits: &Limits,
) -> Result<(Said, Offers), LoadError> {
    let missing = limits.grants.missing(loaded.wants());
    if missing != Grants::default() {
        return Err(LoadError::NotGranted {
            path: loaded.path().into(),
            policy: setup.policy.clone(),
            granted: limits.grants,
            missing,
        });
    }
    let allowance = Allowance::new(CONFIGURE_MAX, limits.fuel_max.saturating_mul(100));
    let mut instance = Instance::new(loaded, who, limits.memory_max, allowance)
        .map_err(|cut| fault(loaded, &setup.policy, "its start", cut))?;
    let answer = ask(&mut instance, setup, allowance, Duration::ZERO)
        .map_err(|cut| fault(loaded, &setup.policy, "configure", cut))?;
    let said = answer.map_err(|problems| refusal(&setup.policy, problems))?;
    let offers = offers(loaded, &said).map_err(|text| LoadError::Wish {
        policy: setup.policy.clone(),
        text: clean(&text),
    })?;
    Ok((said, offers))
}

fn fault(loaded: &Loaded, policy: &str, during: &'static str, cut: Cut) -> LoadError {
    LoadError::Fault {
        path: loaded.path().into(),
        policy: policy.into(),
        during,
        fault: cut.fault,
        detail: cut.detail.into_owned(),
    }
}

/// What it says to its setup; nothing if it does not want to know.
fn ask(
    instance: &mut Instance,
    setup: &configure::Setup,
    allowance: Allowance,
    now: Duration,
) -> Result<Result<Said, Vec<configure::Problem>>, Cut> {
    let ask = |guest: &mut super::guest::Guest| {
        guest.request.at(now, 0);
        guest.request.declare(ATTRIBUTES_MAX);
        (guest.measured.declaring, guest.granted.declaring) = (true, true);
    };
    let answer = instance.call_at_leisure(allowance, ask, |store, exports| match &exports.configure {
        None => Ok(Ok(configure::Wishes {
            attributes: Vec::new(),
            headers: Vec::new(),
        })),
        Some(configure) => configure.call_configure(store, setup),
    })?;
    let guest = instance.guest();
    Ok(answer.map(|wishes| Said {
        wishes,
        measures: std::mem::take(&mut guest.measured.names),
        numbers: std::mem::take(&mut guest.granted.numbers),
    }))
}

impl Said {
    fn is(&self, other: &Said) -> bool {
        let (one, another) = (&self.wishes, &other.wishes);
        one.attributes == another.attributes
            && one.headers == another.headers
            && self.measures == other.measures
            && self.numbers == other.numbers
    }
}

fn refusal(policy: &str, problems: Vec<configure::Problem>) -> LoadError {
    let mut problems: Vec<Problem> = problems
        .into_iter()
        .take(PROBLEMS_MAX)
        .map(|problem| Problem {
            path: clean(&problem.path),
            message: clean(&problem.message),
        })
        .collect();
    if problems.is_empty() {
        problems.push(Problem {
            path: String::new(),
            message: "refused without a reason".into(),
        });
    }
    LoadError::Configuration {
        policy: policy.into(),
        problems,
    }
}

/// What it offers, if all that it wishes exists.
fn offers(loaded: &Loaded, said: &Said) -> Result<Offers, String> {
    let wishes = &said.wishes;
    if wishes.attributes.len() > ATTRIBUTES_MAX || wishes.headers.len() > HEADERS_MAX {
        return Err(format!(
            "it asks for more than {ATTRIBUTES_MAX} attributes or {HEADERS_MAX} headers"
        ));
    }
    let attribute = |name: &String| {
        Attribute::parse(name).ok_or_else(|| {
            format!("it asks for an attribute that does not exist; wit/configure.wit lists them: `{name}`")
        })
    };
    Ok(Offers {
        plan: loaded.plans(),
        pick: loaded.picks(),
        route: loaded.routes(),
        reuse: loaded.says_reuse(),
        reuse_plan: loaded.plans_reuse(),
        classify: loaded.classifies(),
        admit: loaded.admits(),
        attributes: wishes
            .attributes
            .iter()
            .map(attribute)
            .collect::<Result<_, _>>()?,
        headers: wishes.headers.iter().map(header).collect::<Result<_, _>>()?,
        measures: measures(&said.measures)?,
        numbers: numbers(&said.numbers)?,
    })
}

fn measures(names: &[String]) -> Result<Box<[Measure]>, String> {
    if names.len() > MEASURES_MAX {
        return Err(format!("it asks for more than {MEASURES_MAX} measures"));
    }
    let measure = |name: &String| {
        Measure::parse(name).ok_or_else(|| {
            format!("it asks for the measure `{name}`, which does not exist; wit/measures.wit lists them")
        })
    };
    names.iter().map(measure).collect()
}

fn numbers(declared: &[(NumberKind, String)]) -> Result<Arc<[Number]>, String> {
    if declared.len() > NUMBERS_MAX {
        return Err(format!("it declares more than {NUMBERS_MAX} counters and gauges"));
    }
    let number = |(at, (kind, name)): (usize, &(NumberKind, String))| {
        if !is_number_name(name) {
            return Err(format!(
                "it declares the number `{name}`; expected 1 to 64 of a…z, 0…9 and _, a letter first"
            ));
        }
        if declared[..at].iter().any(|(_, other)| other == name) {
            return Err(format!("it declares the number `{name}` twice"));
        }
        Ok(Number {
            name: name.as_str().into(),
            kind: *kind,
        })
    };
    declared.iter().enumerate().map(number).collect()
}

fn header(name: &String) -> Result<Box<str>, String> {
    let lower = name.to_ascii_lowercase();
    if !is_token(name) {
        return Err(format!("it wants to edit a header whose name is none: `{name}`"));
    }
    if CLOSED_HEADERS.contains(&lower.as_str()) {
        return Err(format!(
            "it wants to edit `{name}`, which is the proxy's own: it frames or routes messages"
        ));
    }
    Ok(lower.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_a_message_is_closed() {
        assert_eq!(header(&"X-Shard".into()), Ok("x-shard".into()));
        for closed in ["Content-Length", "host", "Expect", "content_length", "a b", ""] {
            assert!(header(&closed.to_owned()).is_err(), "{closed}");
        }
    }
}
