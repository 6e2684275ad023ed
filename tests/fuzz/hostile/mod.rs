//! What can a hostile guest hand to the host? Everything that its script says, through the real host.
//!
//! ```text
//!  bytes ──► script ──► configure, then calls of hooks, each with its part of the script
//!                                   │
//!               guest.wat does as it is told: host calls with any numbers, any answer
//!                                   │
//!               the host's checks (production code) ──► `checks`: what came through is what may come through
//! ```
//!
//! Nothing is modelled: the host that a test uses loads one small component, and what differs from one input to the next is
//! what this component says. Played by the fuzz target `guest`, and by `tests/wasm/hostile.rs` over the corpus.

mod checks;
#[allow(dead_code, reason = "another target plays it alone")]
pub(crate) mod plans;
mod script;

use checks::Shape;
use forebay::policy::{
    Asked, Attached, Attachment, Columns, Edits, Fault, Journal, Level, Live, Nth, PlanServer, PlanView,
    Planner, Policy, Priority, RouteAsked, ServerIndex, Setup, Shown, State, Waits,
};
use forebay::wasm::{Host, Limits, LoadError, Loaded, Mode, Settings, Text, pack};
use parking_lot::Mutex;
use script::{Call, Hook, Script};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Units of work of a call: enough for a script, little enough that a loop costs no time.
const FUEL_MAX: u64 = 200_000;
/// From one call to the next: longer than any quarantine.
const LATER: Duration = Duration::from_secs(1000);
/// Lines of a guest for one question: 16 for each call of it, which are a `configure`, a `table` and the question itself where
/// its instance has to be made anew.
const LINES_MAX: usize = 3 * 16;
/// How often a policy may be asked until it answers, after everything that was done to it.
const ASKED_AGAIN_MAX: usize = 4;

/// A host with the hostile component.
pub(crate) struct Stage {
    loaded: Loaded,
    /// In its place, with the usual wishes: for all inputs that do not configure.
    usual: Arc<dyn Attachment>,
    heard: Arc<Heard>,
    /// The seconds of the time, which goes on from input to input as it does for a policy that serves.
    seconds: AtomicU64,
}

/// What became of the calls of a script: how often each word was the end of one.
pub(crate) type Ends = BTreeMap<&'static str, u64>;

/// What the host told operators since the last call.
#[derive(Default)]
struct Heard {
    lines: Mutex<Vec<String>>,
    details: Mutex<Vec<String>>,
}

impl Journal for Heard {
    fn said(&self, _: &Attached, _: Level, text: &str) {
        self.lines.lock().push(text.to_owned());
    }
    fn fault(&self, _: &Attached, _: Fault, detail: &str) {
        self.details.lock().push(detail.to_owned());
    }
    fn paused(&self, _: &Attached, _: Fault, _: Duration) {}
    fn resumed(&self, _: &Attached) {}
}

impl Heard {
    /// Looks at what was told, and forgets it.
    fn check(&self) {
        let lines = std::mem::take(&mut *self.lines.lock());
        assert!(lines.len() <= LINES_MAX, "{} lines for one question", lines.len());
        let details = std::mem::take(&mut *self.details.lock());
        lines.iter().chain(&details).for_each(|text| checks::line(text));
    }
}

impl Stage {
    /// Makes the engine and loads the component, once for all inputs.
    pub(crate) fn new() -> Stage {
        let heard = Arc::new(Heard::default());
        let settings = Settings {
            mode: Mode::Test,
            threads: 1,
            attachments: 1,
            cache: None,
        };
        let journal: Arc<dyn Journal> = Arc::<Heard>::clone(&heard);
        let host = Host::new(&settings, journal).expect("an engine");
        let component =
            pack(include_bytes!("guest.wat"), Some(("policy", Text::Utf8))).expect("it fits its world");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("guest.wasm");
        std::fs::write(&file, component).expect("written");
        let loaded = host.load(&file, None).unwrap_or_else(|error| panic!("{error}"));
        let usual = attach(&loaded, b"").unwrap_or_else(|error| panic!("{error}"));
        Stage {
            loaded,
            usual,
            heard,
            seconds: AtomicU64::new(0),
        }
    }

    /// Plays an input. Panics if something came through that may not.
    pub(crate) fn play(&self, input: &[u8], ends: &mut Ends) {
        let script = Script::read(input);
        let attached = match script.configure {
            [] => Ok(Arc::clone(&self.usual)),
            configure => attach(&self.loaded, configure),
        };
        self.heard.check();
        let end = match attached {
            Ok(attachment) => {
                checks::offers(attachment.offers());
                match Scene::new(self, &script, &*attachment) {
                    Ok(scene) => return scene.play(ends),
                    Err(fault) => ended(fault),
                }
            }
            Err(error) => {
                checks::refusal(&error.to_string());
                refusal(&error)
            }
        };
        *ends.entry(end).or_default() += 1;
    }

    /// A later time than any before.
    fn later(&self) -> Duration {
        let before = self.seconds.fetch_add(LATER.as_secs(), Ordering::Relaxed);
        Duration::from_secs(before) + LATER
    }
}

fn attach(loaded: &Loaded, configure: &[u8]) -> Result<Arc<dyn Attachment>, LoadError> {
    let limits = Limits {
        fuel_max: FUEL_MAX,
        ..Limits::default()
    };
    loaded.attach(&setup(configure), limits, Duration::ZERO)
}

fn refusal(error: &LoadError) -> &'static str {
    match error {
        LoadError::Configuration { .. } => "configuration refused",
        LoadError::Wish { .. } => "wish refused",
        LoadError::Fault { fault, .. } => ended(*fault),
        other => panic!("a component that was loaded is refused: {other}"),
    }
}

fn ended(fault: Fault) -> &'static str {
    let never = [Fault::Host, Fault::Instantiate, Fault::Quarantined, Fault::Budget];
    assert!(!never.contains(&fault), "the host's own fault: {}", fault.word());
    fault.word()
}

fn setup(configure: &[u8]) -> Setup {
    Setup {
        policy: "hostile".into(),
        attachment: "app".into(),
        config: script::letters(configure),
        backends: vec!["a".into(), "b".into()],
        redirects: vec!["old".into()],
        responses: vec!["gone".into(), "busy".into(), "closed".into()],
    }
}

/// One input at work.
struct Scene<'a> {
    stage: &'a Stage,
    script: &'a Script<'a>,
    attachment: &'a dyn Attachment,
    policy: Box<dyn Policy>,
    /// Made when a plan is asked for.
    planner: Option<Box<dyn Planner>>,
    edits: Edits,
    /// Servers in the table that was shown last.
    shown: usize,
    now: Duration,
}

impl<'a> Scene<'a> {
    /// Makes the instance of a worker, which a guest can spoil: it may configure itself otherwise than before.
    fn new(
        stage: &'a Stage,
        script: &'a Script<'a>,
        attachment: &'a dyn Attachment,
    ) -> Result<Scene<'a>, Fault> {
        let now = stage.later();
        let policy = attachment.policy(now);
        stage.heard.check();
        Ok(Scene {
            stage,
            script,
            attachment,
            policy: policy?,
            planner: None,
            edits: Edits::default(),
            shown: 0,
            now,
        })
    }

    fn play(mut self, ends: &mut Ends) {
        // As a worker does before it asks. What `configure` did to the guest may be the end of it: then it is made anew.
        self.shown = self.script.servers;
        let _ = self.policy.table(&table("", self.shown), self.now);
        self.stage.heard.check();
        for call in &self.script.calls {
            self.now = self.stage.later();
            let end = match self.call(call) {
                Ok(end) => end,
                Err(fault) => ended(fault),
            };
            self.stage.heard.check();
            *ends.entry(end).or_default() += 1;
        }
        self.recovers();
    }

    /// Makes one call; what came through is checked.
    fn call(&mut self, Call { hook, script }: &Call<'_>) -> Result<&'static str, Fault> {
        let letters = script::letters(script);
        match hook {
            Hook::Table => {
                self.shown = self.script.servers;
                self.policy.table(&table(&letters, self.shown), self.now)?;
                Ok(hook.word())
            }
            Hook::Plan => self.plan(&letters),
            Hook::PlanReuse => self.plan_reuse(&letters),
            Hook::Route => self.route(&letters),
            hook => self.ask(*hook, &letters),
        }
    }

    /// A question whose script is the first attribute, where one was declared.
    fn ask(&mut self, hook: Hook, letters: &str) -> Result<&'static str, Fault> {
        let declared = self.attachment.offers().attributes.len();
        let values = values(letters, declared);
        let asked = asked(&values, self.now);
        let waits = Waits {
            server: None,
            queued: u32::MAX,
            priority: Priority::default(),
        };
        let silent = match hook {
            Hook::Prefer => {
                let preference = self.policy.prefer(&asked, Nth::First)?;
                preference.map(|it| checks::preference(it, declared)).is_none()
            }
            Hook::Classify => {
                let standing = self.policy.classify(&asked, &waits)?;
                standing.map(checks::standing).is_none()
            }
            Hook::Admit => self.policy.admit(&asked, &waits)?.map(checks::verdict).is_none(),
            _ => {
                let pick = self.policy.pick(&asked, None)?;
                pick.map(|it| checks::pick(it, self.shown)).is_none()
            }
        };
        Ok(if silent { "no opinion" } else { hook.word() })
    }

    fn route(&mut self, letters: &str) -> Result<&'static str, Fault> {
        let offers = self.attachment.offers();
        let values = values("", offers.attributes.len());
        let asked = RouteAsked {
            asked: asked(&values, self.now),
            method: b"PROPFIND",
            host: b"example.com",
            path: letters.as_bytes(),
        };
        let routed = self.policy.route(&asked, &mut self.edits);
        if routed.is_err() {
            assert!(self.edits.is_empty(), "edits of an answer that was refused");
        }
        checks::edits(&self.edits, &offers.headers);
        let shape = Shape {
            backends: 2,
            redirects: 1,
            responses: 3,
        };
        let routed = routed?;
        checks::routed(routed, shape);
        Ok(routed.target.map_or("no opinion", |_| Hook::Route.word()))
    }

    fn planner(&mut self) -> Result<&mut dyn Planner, Fault> {
        let made = match self.planner.take() {
            Some(planner) => planner,
            None => self.attachment.planner(self.now)?,
        };
        Ok(&mut **self.planner.insert(made))
    }

    fn plan(&mut self, letters: &str) -> Result<&'static str, Fault> {
        let servers = plan_servers(letters, self.script.servers);
        let view = PlanView {
            now: self.now,
            servers: &servers,
            live: None,
        };
        match self.planner()?.plan(&view)? {
            Some(plan) => {
                plans::execute(&plan, servers.len());
                Ok(Hook::Plan.word())
            }
            None => Ok("no opinion"),
        }
    }

    fn plan_reuse(&mut self, letters: &str) -> Result<&'static str, Fault> {
        let servers = plan_servers(letters, self.script.servers);
        let view = PlanView {
            now: self.now,
            servers: &servers,
            live: None,
        };
        match self.planner()?.plan_reuse(&view)? {
            Some(wishes) => {
                checks::wishes(&wishes, servers.len());
                Ok(Hook::PlanReuse.word())
            }
            None => Ok("no opinion"),
        }
    }

    /// Whatever was done to it, a policy that behaves again is asked again: it answers, with the first of three servers.
    fn recovers(&mut self) {
        if !self.script.configure.is_empty() {
            return;
        }
        let values = values("", self.attachment.offers().attributes.len());
        let table = table("", 3);
        for _ in 0..ASKED_AGAIN_MAX {
            self.now = self.stage.later();
            let asked = asked(&values, self.now);
            let answer = self.policy.table(&table, self.now);
            if let Ok(Some(pick)) = answer.and_then(|()| self.policy.pick(&asked, None)) {
                return assert_eq!(pick.first, ServerIndex(0));
            }
        }
        panic!("a guest that behaves again is not asked again");
    }
}

/// The declared attributes of a request: the script, bytes that are no text, nothing.
fn values(letters: &str, declared: usize) -> Vec<Option<&[u8]>> {
    let known = [Some(letters.as_bytes()), Some(&b"/a\xff\x00"[..])];
    known
        .into_iter()
        .chain(std::iter::repeat(None))
        .take(declared)
        .collect()
}

fn asked<'a>(attributes: &'a [Option<&'a [u8]>], now: Duration) -> Asked<'a> {
    Asked {
        now,
        seed: 7,
        attributes,
    }
}

/// A table of that many servers, the first of them named like the script.
fn table(letters: &str, servers: usize) -> Shown {
    struct Most;
    impl Live for Most {
        fn in_flight(&self, server: ServerIndex) -> u32 {
            server.0.into()
        }
        fn queued(&self, _: ServerIndex) -> u32 {
            0
        }
        fn idle(&self, _: ServerIndex) -> u32 {
            u32::MAX
        }
    }
    let names = std::iter::once(letters.to_owned()).chain((1..servers).map(|at| format!("s{at}")));
    let columns = Columns {
        names: names.take(servers).collect(),
        zones: vec!["eu".into(); servers],
        weights: vec![16; servers],
        states: vec![0; servers],
        limits: vec![-1; servers],
        latencies: vec![i32::MAX; servers],
    };
    Shown {
        columns: Arc::new(columns),
        live: Arc::new(Most),
    }
}

fn plan_servers(letters: &str, servers: usize) -> Vec<PlanServer<'_>> {
    let named = |name| PlanServer {
        name,
        tags: &[("zone", "eu")],
        weight: 4096,
        state: State::Ready,
        limit: None,
        in_flight: u32::MAX,
        queued: 0,
        used: 0,
        idle: 0,
        need: 0,
        opened: u64::MAX,
        latency: Some(Duration::MAX),
        completed: 0,
        failed: 0,
    };
    let others = std::iter::repeat("another");
    std::iter::once(letters)
        .chain(others)
        .take(servers)
        .map(named)
        .collect()
}
