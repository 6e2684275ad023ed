//! The shipped components answer as they always did: on both engines, written in Rust and in C, as they lie beside
//! their sources, as `tests/contract` keeps them for ever, and as somebody has just rebuilt them.
//!
//! A script asks one component a fixed list of questions; question and answer are lines of a transcript, and the
//! transcript is a snapshot. Where there are too many answers to show, their sums and a digest of all of them stand there.
//! With `FOREBAY_COMPONENTS=FOLDER` the components in that folder must all be there and answer alike: so CI judges what
//! `plugins/rebuild.sh` made.

mod kept;
mod picking;
mod planning;
mod priority;
mod request;
mod routing;
mod tenancy;
mod weighing;

use crate::kit::{Bench, limits};
use forebay::policy::{Attachment, Setup};
use forebay::wasm::{Limits, LoadError, Loaded, Mode};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[test]
fn least_latency() {
    answers_as_ever("least-latency", "least-latency", planning::least_latency);
}

#[test]
fn zone_aware() {
    answers_as_ever("zone-aware", "zone-aware", planning::zone_aware);
}

#[test]
fn least_cost() {
    answers_as_ever("least-cost", "least-cost", planning::least_cost);
}

#[test]
fn adaptive_concurrency() {
    answers_as_ever("adaptive-concurrency", "adaptive-concurrency", |loaded| {
        let mut transcript = Transcript::default();
        planning::adaptive_limits(loaded, &mut transcript);
        priority::patience(loaded, &mut transcript);
        transcript
    });
}

#[test]
fn preconnect() {
    answers_as_ever("preconnect", "preconnect", planning::preconnect);
}

#[test]
fn peak_ewma() {
    answers_as_ever("peak-ewma", "peak-ewma", weighing::script);
}

#[test]
fn own_first() {
    answers_as_ever("own-first", "own-first", planning::own_first);
}

#[test]
fn header_shard() {
    answers_as_ever("header-shard", "header-shard", picking::script);
}

/// Choice by choice as the one in Rust: the snapshot is the same.
#[test]
fn header_shard_in_other_languages() {
    for language in ["c", "zig", "as", "wat"] {
        answers_as_ever(
            &format!("header-shard-{language}"),
            "header-shard",
            picking::script,
        );
    }
}

#[test]
fn canary() {
    answers_as_ever("canary", "canary", routing::script);
}

/// The kept one knows one share only.
#[test]
fn canaries() {
    answers("canaries", routing::several_shares, &copies_of_today("canary"));
}

#[test]
fn tenants() {
    answers_as_ever("tenants", "tenants", tenancy::script);
}

#[test]
fn tenant_priority() {
    answers_as_ever("tenant-priority", "tenant-priority", priority::script);
}

/// Asks every copy of a component on both engines, and compares each transcript with the same snapshot.
fn answers_as_ever(component: &str, snapshot: &str, script: fn(&Loaded) -> Transcript) {
    answers(snapshot, script, &copies(component));
}

fn answers(snapshot: &str, script: fn(&Loaded) -> Transcript, copies: &[PathBuf]) {
    for copy in copies {
        for bench in [&*LIVE, &*TEST] {
            println!("{} on the engine {:?}", copy.display(), bench.mode);
            let loaded = bench.bench.host.load(copy, None);
            let transcript = script(&loaded.unwrap_or_else(|error| panic!("{error}"))).0;
            assert!(
                transcript.lines().count() < 100,
                "too long to be judged:\n{transcript}"
            );
            insta::with_settings!({
                snapshot_path => "snapshots", prepend_module_to_snapshot => false, omit_expression => true
            }, {
                insta::assert_snapshot!(snapshot, transcript);
            });
            let notes = bench.bench.notes.0.lock();
            assert!(notes.is_empty(), "operators were told: {notes:#?}");
        }
    }
}

/// Where a component lies.
fn copies(component: &str) -> Vec<PathBuf> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(kept::FOLDER);
    let kept = kept.join(format!("{component}.wasm"));
    let kept = kept.exists().then_some(kept);
    copies_of_today(component).into_iter().chain(kept).collect()
}

/// Beside its sources, and as it was just rebuilt.
fn copies_of_today(component: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rebuilt = std::env::var_os("FOREBAY_COMPONENTS").map(|folder| root.join(folder));
    [root.join("plugins").join(component)]
        .into_iter()
        .chain(rebuilt)
        .map(|folder| folder.join(format!("{component}.wasm")))
        .collect()
}

/// A host for each engine, of which nobody else hears.
struct Engine {
    mode: Mode,
    bench: Bench,
}

impl Engine {
    fn new(mode: Mode) -> Engine {
        let bench = Bench::new(mode);
        Engine { mode, bench }
    }
}

static LIVE: LazyLock<Engine> = LazyLock::new(|| Engine::new(Mode::Live));
static TEST: LazyLock<Engine> = LazyLock::new(|| Engine::new(Mode::Test));

/// What was asked and answered.
#[derive(Default)]
pub(crate) struct Transcript(String);

impl Transcript {
    fn line(&mut self, text: impl Display) {
        self.0.push_str(text.to_string().trim_end());
        self.0.push('\n');
    }

    fn title(&mut self, text: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.line(format!("{gap}# {text}"));
    }

    /// What the component says to each configuration: what it wants to see, or what is wrong.
    fn configurations(&mut self, loaded: &Loaded, configurations: &[&str]) {
        self.title("configurations");
        for config in configurations {
            self.line(config);
            match loaded.configure(&setup(config), &patient()) {
                Ok(offers) => {
                    self.line(format!(
                        "  sees {:?}, edits {:?}",
                        offers.attributes, offers.headers
                    ));
                }
                Err(LoadError::Configuration { problems, .. }) => {
                    for problem in problems {
                        self.line(format!("  refused: `{}` {}", problem.path, problem.message));
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A component in its place.
fn attach(loaded: &Loaded, config: &str) -> Arc<dyn Attachment> {
    loaded
        .attach(&setup(config), patient(), Duration::ZERO)
        .unwrap_or_else(|error| panic!("{error}"))
}

fn setup(config: &str) -> Setup {
    Setup {
        policy: "shipped".into(),
        attachment: "web".into(),
        config: config.into(),
        backends: vec!["app".into(), "canary".into(), "tools".into()],
        redirects: vec!["moved".into()],
        responses: vec!["busy".into()],
    }
}

/// A busy machine must not cut what is only asked whether it is right.
fn patient() -> Limits {
    Limits {
        deadline: Duration::from_secs(2),
        ..limits()
    }
}
