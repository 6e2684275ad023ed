//! What a faulty policy costs the requests of a real proxy: `cargo bench --bench policy_faults [-- OPTIONS]`.
//!
//! For each way in which a guest can go wrong, the real binary runs with one worker and two listeners: `asked`, whose
//! backend or routes have the faulty policy, and `other`, which is balanced natively. Both get a steady load whose
//! requests are due at fixed times, whatever became of those before; a latency counts from when its request was due.
//! Afterwards, with the policy in quarantine, short windows of full load alternate between that process and two without any
//! policy: CPU per request relative to the mean of those two, and of one of them relative to the other, which is the noise.
//!
//! The promises: no request fails; no request takes longer than the deadline and 10 ms on either listener; the policy is
//! quarantined and a line says which one, where and why; after that, CPU per request is within 3 % of native. The exit
//! status is 1 if one is broken. Latency is the machine's too: a kind that breaks that promise is measured again, and has
//! broken it when it does so three times. CPU counts as broken when it is above 3 % by more than a margin: twice its
//! error, and what the two equal processes differ by. While 3 % lies within the margin there are more rounds; if it still does
//! in the end, the kind is named as undecided, which is neither. Each row says which it is.
//!
//! `FOREBAY=path` measures another binary. Figures of a busy machine say little: look at the row `native` first, which is
//! the same load without a policy.

mod figures;
mod kinds;
mod load;
mod origin;
mod proxy;

#[path = "../../wasm/guests.rs"]
#[allow(dead_code, reason = "shared with the tests of the host, which use all of it")]
mod guests;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use figures::{Cost, Fleeting, Row};
use kinds::{Kind, Place};
use load::Steady;
use origin::Origin;
use proxy::Proxy;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What a policy may take for one call, as configured.
const DEADLINE: Duration = Duration::from_millis(10);
/// The longest that any request may take while the policy misbehaves.
const LATENCY_MAX: Duration = DEADLINE.saturating_add(Duration::from_millis(10));
/// How often a kind may be measured because of its latencies.
const ATTEMPTS_MAX: usize = 3;
/// How many times `--rounds` there may be, until the error is small enough to tell.
const ROUNDS_MORE: usize = 4;
/// How much more CPU a request may take after quarantine than without a policy.
const CPU_MORE_MAX: f64 = 0.03;
/// Servers of each backend.
const SERVERS: usize = 3;
/// Connections of the windows of full load.
const CLOSED_CONNECTIONS: usize = 4;

#[derive(Parser)]
struct Options {
    /// Only the kinds whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Rounds of alternated windows for CPU per request; 0 leaves them out.
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Seconds of steady load for each kind.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Requests a second on each listener.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Milliseconds of a window of full load.
    #[arg(long, default_value_t = 100)]
    window: u64,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        println!("loads the machine for minutes; run it by `cargo bench --bench policy_faults`");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(broken) if broken.is_empty() => {
            println!("no promise is broken");
            ExitCode::SUCCESS
        }
        Ok(broken) => {
            broken.iter().for_each(|promise| println!("broken: {promise}"));
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all kinds that are asked for; answers with the promises that do not hold.
fn run(options: &Options) -> Result<Vec<String>> {
    let bed = Bed::new()?;
    let natives = [bed.native("native-1")?, bed.native("native-2")?];
    println!("{}", Row::HEADER);
    println!("{}", Row::of("native", &under_load(&natives[0], options)?, None));
    let (mut broken, mut measured) = (Vec::new(), 0);
    for kind in kinds::all() {
        if options.only.as_ref().is_none_or(|part| kind.name.contains(part)) {
            measured += 1;
            broken.extend(measure(&kind, &bed, &natives, options).with_context(|| kind.name)?);
        }
    }
    ensure!(measured > 0, "no kind is named so");
    Ok(broken)
}

/// Measures a kind, again while it is slow; answers with the promises that it broke.
fn measure(kind: &Kind, bed: &Bed, natives: &[Proxy; 2], options: &Options) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for attempt in 1..=ATTEMPTS_MAX {
        let proxy = bed.faulty(kind)?;
        let steady = under_load(&proxy, options)?;
        let cost = cost(&proxy, natives, options)?;
        println!("{}", Row::of(kind.name, &steady, cost.as_ref()));
        broken.extend(steady.failed(kind.name));
        broken.extend(steady.unnoticed(kind));
        if let Some(cost) = &cost {
            broken.extend(cost.broken(kind.name));
        }
        let slow = steady.slow(kind.name);
        if slow.is_empty() || !broken.is_empty() || attempt == ATTEMPTS_MAX {
            broken.extend(slow);
            break;
        }
    }
    Ok(broken)
}

/// The steady load on both listeners at once.
fn under_load(proxy: &Proxy, options: &Options) -> Result<Fleeting> {
    let begun = Instant::now() + Duration::from_millis(100);
    let steady = |address: SocketAddr| Steady {
        address,
        begun,
        rate: options.rate,
        lasts: Duration::from_secs(options.seconds),
    };
    let (asked, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| steady(proxy.other).run());
        (
            steady(proxy.asked).run(),
            other.join().expect("the load does not panic"),
        )
    });
    let quarantined = proxy.said_first("quarantine");
    Ok(Fleeting {
        asked: asked?,
        other: other?,
        begun,
        quarantined,
        faults: proxy.faults()?,
    })
}

/// CPU per request in rounds of one window each, in changing order.
fn cost(faulty: &Proxy, [one, other]: &[Proxy; 2], options: &Options) -> Result<Option<Cost>> {
    let window = Duration::from_millis(options.window);
    let proxies = [faulty, one, other];
    let (mut more, mut same) = (Vec::new(), Vec::new());
    for round in 0..options.rounds * ROUNDS_MORE {
        if round >= options.rounds && !Cost::of(&more, &same).is_undecided() {
            break;
        }
        let mut each = [0.0; 3];
        for turn in 0..3 {
            let at = (round + turn) % 3;
            each[at] = cpu_per_request(proxies[at], window)?;
        }
        let [faulty, one, other] = each;
        // The machine stood still in one of them.
        if each.iter().any(|cost| !cost.is_finite()) {
            continue;
        }
        more.push(faulty / ((one + other) / 2.0) - 1.0);
        same.push(other / one - 1.0);
    }
    Ok((options.rounds > 0).then(|| Cost::of(&more, &same)))
}

/// Nanoseconds of CPU time per request, at full load for that long; not finite if none was answered.
fn cpu_per_request(proxy: &Proxy, window: Duration) -> Result<f64> {
    let before = proxy.cpu()?;
    let requests = load::closed(proxy.asked, CLOSED_CONNECTIONS, window)?;
    let used = proxy.cpu()?.saturating_sub(before);
    Ok(used.as_nanos() as f64 / requests as f64)
}

/// What all processes of a run share.
struct Bed {
    folder: tempfile::TempDir,
    origins: Vec<Origin>,
}

impl Bed {
    fn new() -> Result<Bed> {
        Ok(Bed {
            folder: tempfile::tempdir()?,
            origins: (0..SERVERS).map(|_| Origin::start()).collect::<Result<_, _>>()?,
        })
    }

    fn native(&self, name: &str) -> Result<Proxy> {
        Proxy::start(
            self.folder.path(),
            name,
            &self.config("", "balance = \"roundrobin\"", ""),
        )
    }

    fn faulty(&self, kind: &Kind) -> Result<Proxy> {
        let component = self.folder.path().join(format!("{}.wasm", kind.name));
        std::fs::write(&component, kind.guest.component())?;
        let policy = format!(
            "[policy.faulty]\ncomponent = {component:?}\nfallback = \"roundrobin\"\ndeadline = \"{}ms\"\n\
             interval = \"50ms\"\n",
            DEADLINE.as_millis()
        );
        let config = match kind.place {
            Place::Backend => self.config("", "balance = { policy = \"faulty\" }", &policy),
            Place::Listener => self.config("route-policy = \"faulty\"", "balance = \"roundrobin\"", &policy),
        };
        Proxy::start(self.folder.path(), kind.name, &config)
    }

    fn config(&self, listen: &str, balance: &str, policy: &str) -> String {
        let servers: Vec<String> = self
            .origins
            .iter()
            .map(|it| format!("\"{}\"", it.address))
            .collect();
        let servers = servers.join(", ");
        format!(
            "[process]\nworkers = 1\nmetrics = \"127.0.0.1:0\"\nlog = {{ to = \"none\" }}\n\
             [[listen]]\nname = \"asked\"\nbind = \"127.0.0.1:0\"\nbackend = \"asked\"\n{listen}\n\
             [[listen]]\nname = \"other\"\nbind = \"127.0.0.1:0\"\nbackend = \"other\"\n\
             [backend.asked]\nservers = [{servers}]\n{balance}\n\
             [backend.other]\nservers = [{servers}]\nbalance = \"roundrobin\"\n{policy}"
        )
    }
}
