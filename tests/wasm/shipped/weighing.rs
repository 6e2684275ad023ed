//! The questions to a policy that draws servers and weighs their latencies: peaks, recovery, load, servers that come and go.

use super::picking::Loads;
use super::{Transcript, attach};
use forebay::policy::{Asked, Columns, Pick, Policy, ServerIndex, Shown, State};
use forebay::wasm::{Digest, Loaded};
use std::sync::Arc;
use std::time::Duration;

const CONFIGURATIONS: [&str; 4] = [
    "{}",
    r#"{"decay":"1s"}"#,
    r#"{"decay":"1ms"}"#,
    r#"{"window":"5s"}"#,
];

pub(super) fn script(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &CONFIGURATIONS);
    for config in ["{}", r#"{"decay":"1s"}"#] {
        a_day(loaded, config, &mut transcript);
    }
    transcript
}

/// Name, weight, state, latency in µs.
type Server = (&'static str, i32, State, i32);

/// What happens at which second, and how many requests are in flight.
fn steps() -> Vec<(u64, &'static str, Vec<Server>, [u32; 4])> {
    let a = |latency| ("a", 16, State::Ready, latency);
    let b = |latency| ("b", 16, State::Ready, latency);
    let c = |latency| ("c", 32, State::Ready, latency);
    let down = ("b", 16, State::Down, 1_000);
    let idle = [0; 4];
    vec![
        (0, "nothing is known", vec![a(-1), b(-1), c(-1)], idle),
        (1, "all alike", vec![a(1_000), b(1_000), c(1_000)], idle),
        (2, "a peak of b", vec![a(1_001), b(9_000), c(1_001)], idle),
        (3, "b is as before", vec![a(1_000), b(1_000), c(1_000)], idle),
        (13, "and later", vec![a(1_001), b(1_001), c(1_001)], idle),
        (14, "c is slow", vec![a(1_000), b(1_000), c(20_000)], idle),
        (15, "c is not asked", vec![a(1_001), b(1_001), c(20_000)], idle),
        (60, "nor for long", vec![a(1_000), b(1_000), c(20_000)], idle),
        (61, "a is busy", vec![a(1_001), b(1_001), c(1_001)], [9, 1, 1, 0]),
        (62, "b is down", vec![a(1_000), down, c(1_000)], idle),
        (63, "b is gone", vec![c(1_001), a(1_001)], idle),
        (64, "only a", vec![a(1_000)], idle),
        (65, "nobody", vec![], idle),
        (66, "extremes", vec![a(0), b(i32::MAX), c(1)], [u32::MAX; 4]),
    ]
}

fn a_day(loaded: &Loaded, config: &str, transcript: &mut Transcript) {
    transcript.title(&format!(
        "who is first of 2000 picks, and without the server at 0: {config}"
    ));
    let attachment = attach(loaded, config);
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    let loads = Arc::<Loads>::default();
    for (second, what, servers, in_flight) in steps() {
        loads.set(in_flight);
        let now = Duration::from_secs(second);
        policy.table(&shown(&servers, &loads), now).expect("a table");
        let tally = [None, Some(ServerIndex(0))].map(|avoid| tally(&mut *policy, now, servers.len(), avoid));
        transcript.line(format!("{second} {what} -> {}", tally.join("; ")));
    }
}

fn shown(servers: &[Server], loads: &Arc<Loads>) -> Shown {
    let each = |read: fn(&Server) -> i32| servers.iter().map(read).collect::<Vec<i32>>();
    let columns = Columns {
        names: servers.iter().map(|it| it.0.to_owned()).collect(),
        zones: vec![String::new(); servers.len()],
        weights: each(|it| it.1),
        states: each(|it| it.2 as i32),
        limits: each(|_| -1),
        latencies: each(|it| it.3),
    };
    let live = Arc::<Loads>::clone(loads);
    Shown {
        columns: Arc::new(columns),
        live,
    }
}

fn tally(policy: &mut dyn Policy, now: Duration, servers: usize, avoid: Option<ServerIndex>) -> String {
    let (mut counts, mut all) = (vec![0; servers], String::new());
    for seed in 0..2_000 {
        let asked = Asked {
            now,
            seed,
            attributes: &[],
        };
        let pick = policy.pick(&asked, avoid).expect("an answer");
        if let Some(Pick { first, second }) = pick {
            counts[first.at()] += 1;
            all += &format!("{} {second:?}\n", first.0);
        }
    }
    format!("{counts:?} {}", Digest::of(all.as_bytes()).short())
}
