//! `forebay plugin measure`: what components cost on this machine: to load, to hold, and to ask.
//!
//! The host is the one that serves (epochs, a pool of instances). Times are medians, and only as good as the machine is
//! idle; `plugin check` tells what is the same everywhere.

use super::kit;
use crate::policy::{
    Asked, Attachment, Columns, Edits, Fault, Live, Nth, PlanServer, PlanView, Policy, Priority, RouteAsked,
    ServerIndex, Shown, State, Waits,
};
use crate::wasm::{Host, Limits, LoadError, Mode, Settings};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Servers of the backend, each with so many requests in flight.
const SERVERS: usize = 8;
const IN_FLIGHT: u32 = 20;
/// Different requests, asked about in turn.
const REQUESTS: usize = 64;
/// Instances that are held at once.
const INSTANCES: u16 = 32;
/// Times of which the median is told, and the least that each of them lasts.
const BATCHES: usize = 21;
const BATCH: Duration = Duration::from_millis(5);

/// Arguments of `forebay plugin measure`.
#[derive(Args, Clone, Debug)]
pub(super) struct MeasureArgs {
    /// The components
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What they are told as their configuration: JSON text, or a file of it
    #[arg(long, value_name = "FILE.json|JSON", default_value = "{}")]
    config: String,
    /// Print one line of JSON for each component
    #[arg(long)]
    json: bool,
}

/// Measures one component after the other.
pub(super) fn run(args: &MeasureArgs) -> anyhow::Result<()> {
    let config = kit::read_config(&args.config)?;
    for file in &args.files {
        let cost = measure(file, &config)?;
        match args.json {
            true => println!("{}", cost.json(file)),
            false => print!("{}", cost.text(file)),
        }
    }
    Ok(())
}

/// What one component costs.
struct Cost {
    /// Bytes of the file.
    size: u64,
    /// From the file to what can be attached, by the compiler and from the cache.
    compiled: Duration,
    cached: Duration,
    /// An instance, made and configured.
    instance: Duration,
    /// Bytes of its memory, and by how much the process grew for one that was asked once.
    memory: u64,
    resident: u64,
    /// For each question that it answers; a fault instead of a time.
    calls: Vec<(&'static str, Result<Duration, Fault>)>,
}

fn measure(file: &Path, config: &Value) -> anyhow::Result<Cost> {
    let cache = Folder::new()?;
    let host = Host::new(
        &Settings {
            mode: Mode::Live,
            threads: 1,
            attachments: INSTANCES,
            cache: Some(cache.0.clone()),
        },
        Arc::new(kit::Notes::default()),
    )?;
    let load = || -> Result<_, LoadError> {
        let begun = Instant::now();
        let loaded = host.load(file, None)?;
        Ok((begun.elapsed(), loaded))
    };
    let (compiled, loaded) = load()?;
    let cached: Vec<Duration> = (0..BATCHES)
        .map(|_| load().map(|(took, _)| took))
        .collect::<Result<_, _>>()?;
    let limits = Limits {
        mean_max: None,
        ..kit::granted()
    };
    let attachment = loaded.attach(&kit::setup(config), limits, Duration::ZERO)?;
    let (resident, memory) = held(&*attachment)?;
    let instance = median(&mut || attachment.policy(Duration::ZERO).map(drop))
        .map_err(|fault| anyhow::anyhow!("no instance: {}", fault.word()))?;
    Ok(Cost {
        size: loaded.bytes(),
        compiled,
        cached: middle(cached),
        instance,
        memory,
        resident,
        calls: calls(&*attachment),
    })
}

/// By how many bytes the process grows for an instance, and how many that one has of memory.
fn held(attachment: &dyn Attachment) -> anyhow::Result<(u64, u64)> {
    let before = private_bytes()?;
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        let mut policy = attachment
            .policy(Duration::ZERO)
            .map_err(|fault| anyhow::anyhow!("no instance: {}", fault.word()))?;
        // One that fails here is told of where calls are timed.
        let _ = Question::new(attachment).ask_all(attachment, &mut *policy);
        instances.push(policy);
    }
    let grown = private_bytes()?.saturating_sub(before) / u64::from(INSTANCES);
    let memory = instances.iter().filter_map(|it| it.usage().memory).max();
    Ok((grown, memory.unwrap_or_default()))
}

/// Memory of this process that it shares with no file.
fn private_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes
        .and_then(|it| it.parse::<u64>().ok())
        .context("/proc/self/status has no line `RssAnon: … kB`")?
        << 10)
}

fn calls(attachment: &dyn Attachment) -> Vec<(&'static str, Result<Duration, Fault>)> {
    let question = Question::new(attachment);
    let offers = attachment.offers();
    let mut calls = Vec::new();
    for (name, offered, ask) in WORKER {
        if offered(offers) {
            calls.push((name, on_worker(attachment, &question, ask)));
        }
    }
    if offers.plan || offers.reuse_plan {
        let name = if offers.plan { "plan" } else { "reuse-plan" };
        calls.push((name, on_control(attachment)));
    }
    calls
}

fn on_worker(attachment: &dyn Attachment, question: &Question, ask: Ask) -> Result<Duration, Fault> {
    let mut policy = attachment.policy(Duration::ZERO)?;
    policy.table(&shown(), Duration::ZERO)?;
    let mut number = 0;
    median(&mut || {
        number += 1;
        question.ask(number, &mut *policy, ask)
    })
}

fn on_control(attachment: &dyn Attachment) -> Result<Duration, Fault> {
    let mut planner = attachment.planner(Duration::ZERO)?;
    let names: Vec<String> = (0..SERVERS).map(|at| format!("s{at}")).collect();
    let servers: Vec<PlanServer<'_>> = names.iter().map(|name| server(name)).collect();
    let mut now = Duration::ZERO;
    let plans = attachment.offers().plan;
    median(&mut || {
        now += Duration::from_secs(1);
        let view = PlanView {
            now,
            servers: &servers,
            live: None,
        };
        match plans {
            true => planner.plan(&view).map(drop),
            false => planner.plan_reuse(&view).map(drop),
        }
    })
}

type Ask = fn(&mut dyn Policy, &RouteAsked<'_>) -> Result<(), Fault>;
type Offered = fn(&crate::policy::Offers) -> bool;

/// What is asked on a worker.
const WORKER: [(&str, Offered, Ask); 5] = [
    (
        "pick",
        |it| it.pick,
        |policy, it| policy.pick(&it.asked, None).map(drop),
    ),
    (
        "route",
        |it| it.route,
        |policy, it| policy.route(it, &mut Edits::default()).map(drop),
    ),
    (
        "reuse",
        |it| it.reuse,
        |policy, it| policy.prefer(&it.asked, Nth::Later).map(drop),
    ),
    (
        "classify",
        |it| it.classify,
        |policy, it| policy.classify(&it.asked, &WAITS).map(drop),
    ),
    (
        "admit",
        |it| it.admit,
        |policy, it| policy.admit(&it.asked, &WAITS).map(drop),
    ),
];

const WAITS: Waits = Waits {
    server: None,
    queued: 3,
    priority: Priority { class: 0, offset: 0 },
};

/// Requests whose attributes are all there, with values of their own.
struct Question {
    values: Vec<String>,
    attributes: usize,
}

impl Question {
    fn new(attachment: &dyn Attachment) -> Question {
        Question {
            values: (0..REQUESTS).map(|at| format!("request-number-{at}")).collect(),
            attributes: attachment.offers().attributes.len(),
        }
    }

    fn ask(&self, number: usize, policy: &mut dyn Policy, ask: Ask) -> Result<(), Fault> {
        let value = self.values[number % REQUESTS].as_bytes();
        let attributes = [Some(value); crate::policy::ATTRIBUTES_MAX];
        let asked = Asked {
            now: Duration::ZERO,
            seed: number as u64,
            attributes: &attributes[..self.attributes],
        };
        ask(
            policy,
            &RouteAsked {
                asked,
                method: b"GET",
                host: b"www.example.com",
                path: b"/v1/items/17",
            },
        )
    }

    /// Each question once.
    fn ask_all(&self, attachment: &dyn Attachment, policy: &mut dyn Policy) -> Result<(), Fault> {
        policy.table(&shown(), Duration::ZERO)?;
        for (_, offered, ask) in WORKER {
            if offered(attachment.offers()) {
                self.ask(0, policy, ask)?;
            }
        }
        Ok(())
    }
}

fn shown() -> Shown {
    struct Busy;
    impl Live for Busy {
        fn in_flight(&self, _: ServerIndex) -> u32 {
            IN_FLIGHT
        }
        fn queued(&self, _: ServerIndex) -> u32 {
            0
        }
        fn idle(&self, _: ServerIndex) -> u32 {
            1
        }
    }
    let columns = Columns {
        names: (0..SERVERS).map(|at| format!("s{at}")).collect(),
        zones: vec![String::new(); SERVERS],
        weights: vec![16; SERVERS],
        states: vec![0; SERVERS],
        limits: vec![-1; SERVERS],
        latencies: vec![1000; SERVERS],
    };
    Shown {
        columns: Arc::new(columns),
        live: Arc::new(Busy),
    }
}

fn server(name: &str) -> PlanServer<'_> {
    PlanServer {
        name,
        tags: &[("zone", "eu")],
        weight: 16,
        state: State::Ready,
        limit: None,
        in_flight: IN_FLIGHT,
        queued: 0,
        used: IN_FLIGHT,
        idle: 1,
        need: IN_FLIGHT,
        opened: 1,
        latency: Some(Duration::from_millis(1)),
        completed: 1000,
        failed: 0,
    }
}

/// How long a call takes. The first batch is for the caches of the machine.
fn median(call: &mut dyn FnMut() -> Result<(), Fault>) -> Result<Duration, Fault> {
    let mut means = Vec::new();
    for batch in 0..=BATCHES {
        let (begun, mut calls) = (Instant::now(), 0);
        while calls < 16 || begun.elapsed() < BATCH {
            // So many that the clock itself does not count.
            for _ in 0..16 {
                call()?;
            }
            calls += 16;
        }
        if batch > 0 {
            means.push(begun.elapsed() / calls);
        }
    }
    Ok(middle(means))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

impl Cost {
    fn text(&self, file: &Path) -> String {
        let mut text = format!("{}: {} bytes\n", file.display(), self.size);
        text += &format!(
            "  load      {:.1?} to compile, {:.1?} from the cache\n",
            self.compiled, self.cached
        );
        let (memory, resident) = (self.memory >> 10, self.resident >> 10);
        text += &format!(
            "  instance  {:.1?} to make; {memory} KiB of memory, for which the process grows by {resident} KiB\n",
            self.instance
        );
        for (name, took) in &self.calls {
            text += &match took {
                Ok(took) => format!("  {name:<9} {took:.2?}\n"),
                Err(fault) => format!("  {name:<9} fault: {}\n", fault.word()),
            };
        }
        text
    }

    fn json(&self, file: &Path) -> Value {
        let nanoseconds = |time: &Duration| json!(time.as_nanos() as u64);
        let call = |(name, took): &(&str, Result<Duration, Fault>)| {
            let took = match took {
                Ok(took) => nanoseconds(took),
                Err(fault) => json!(fault.word()),
            };
            ((*name).to_owned(), took)
        };
        json!({
            "file": file.display().to_string(),
            "bytes": self.size,
            "compile_ns": nanoseconds(&self.compiled),
            "cached_ns": nanoseconds(&self.cached),
            "instance_ns": nanoseconds(&self.instance),
            "memory_bytes": self.memory,
            "resident_bytes": self.resident,
            "calls_ns": self.calls.iter().map(call).collect::<serde_json::Map<_, _>>(),
        })
    }
}

/// A folder of this process, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Folder> {
        let path = std::env::temp_dir().join(format!("forebay-measure-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_picks_is_measured() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/header-shard-wat/header-shard-wat.wasm");
        let cost = measure(&file, &json!({})).expect("measured");
        let [("pick", Ok(pick))] = cost.calls[..] else {
            panic!("{}", cost.text(&file));
        };
        assert!(
            pick > Duration::ZERO && cost.memory == 3 << 16,
            "{}",
            cost.text(&file)
        );
        assert_eq!(
            cost.json(&file)["bytes"],
            json!(std::fs::metadata(&file).expect("a file").len())
        );
    }

    #[test]
    fn the_middle_is_told() {
        let times = [3, 1, 2, 9, 0].map(Duration::from_secs);
        assert_eq!(middle(times.to_vec()), Duration::from_secs(2));
    }
}
