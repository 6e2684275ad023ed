//! The questions to a policy that plans: servers that come, go, slow down, fail and recover, tick by tick.

use super::{Transcript, attach};
use forebay::policy::{Plan, PlanServer, PlanView, Planner, Selector, Spill, State, Tier};
use forebay::wasm::{Digest, Loaded};
use std::time::Duration;

const QUICK: &str = r#"{"errors-max":"10%","spread":8,"window":"2s"}"#;

const CONFIGURATIONS: [&str; 7] = [
    "{}",
    QUICK,
    r#"{"window":5}"#,
    r#"{"window":"50ms"}"#,
    r#"{"spread":0.5}"#,
    r#"{"errors-max":"120%"}"#,
    r#"{"colour":"red","spread":"many"}"#,
];

pub(super) fn least_latency(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &CONFIGURATIONS);
    for config in ["{}", QUICK] {
        one_by_one(loaded, config, &mut transcript);
        fleet(loaded, config, &mut transcript);
    }
    transcript
}

/// It has no `configure`: whatever it is told, it accepts.
pub(super) fn own_first(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &["{}", r#"{"colour":"red"}"#]);
    one_by_one(loaded, "{}", &mut transcript);
    fleet(loaded, "{}", &mut transcript);
    transcript
}

/// The servers of a zone come first, as long as enough of them are well.
pub(super) fn zone_aware(loaded: &Loaded) -> Transcript {
    const WHOLE: &str =
        r#"{"cap":4,"errors-max":"20%","fill":"80%","healthy-min":"60%","tag":"zone","zone":"eu"}"#;
    let mut transcript = Transcript::default();
    transcript.configurations(
        loaded,
        &[
            "{}",
            WHOLE,
            r#"{"cap":0,"fill":1,"healthy-min":"101%","zone":""}"#,
            r#"{"colour":"red","zone":"eu"}"#,
        ],
    );
    for config in [r#"{"zone":"eu"}"#, WHOLE] {
        one_by_one(loaded, config, &mut transcript);
        fleet(loaded, config, &mut transcript);
    }
    transcript
}

/// The cheapest servers come first.
pub(super) fn least_cost(loaded: &Loaded) -> Transcript {
    const WHOLE: &str = r#"{"cap":4,"fill":"80%","tag":"price"}"#;
    let mut transcript = Transcript::default();
    transcript.configurations(
        loaded,
        &["{}", WHOLE, r#"{"cap":"4","fill":"80","tag":"","to":"eu"}"#],
    );
    for config in [r#"{"tag":"price"}"#, WHOLE] {
        one_by_one(loaded, config, &mut transcript);
        fleet(loaded, config, &mut transcript);
    }
    transcript
}

/// The limits; `priority` asks how long requests may wait.
pub(super) fn adaptive_limits(loaded: &Loaded, transcript: &mut Transcript) {
    const NARROW: &str = r#"{"limit":5,"limit-max":6,"limit-min":2,"tolerance":1.1,"window":"10s"}"#;
    transcript.configurations(
        loaded,
        &[
            "{}",
            NARROW,
            r#"{"limit":1}"#,
            r#"{"limit":9,"limit-max":8}"#,
            r#"{"limit-min":0,"tolerance":0.5,"wait":"5","wait-standing":-1,"window":"1s"}"#,
            r#"{"colour":"red"}"#,
        ],
    );
    for config in ["{}", NARROW] {
        one_by_one(loaded, config, transcript);
        fleet(loaded, config, transcript);
    }
}

const OWN: &[(&str, &str)] = &[("cost", "own"), ("price", "0.5"), ("zone", "eu")];
const RENTED: &[(&str, &str)] = &[("cost", "rented"), ("price", "2")];
const NO_TAGS: &[(&str, &str)] = &[];

/// A server that answers in so many µs, and what ended since the tick before: all, failed.
fn server(
    name: &'static str,
    tags: &'static [(&'static str, &'static str)],
    latency: Option<u64>,
    ended: (u64, u64),
) -> PlanServer<'static> {
    PlanServer {
        name,
        tags,
        weight: 16,
        state: State::Ready,
        limit: None,
        in_flight: 2,
        queued: 0,
        used: 2,
        idle: 1,
        need: 4,
        opened: 1,
        latency: latency.map(Duration::from_micros),
        completed: ended.0,
        failed: ended.1,
    }
}

fn weighing(weight: u32, server: PlanServer<'static>) -> PlanServer<'static> {
    PlanServer { weight, ..server }
}

fn being(state: State, server: PlanServer<'static>) -> PlanServer<'static> {
    PlanServer { state, ..server }
}

/// What happens at which millisecond.
fn ticks() -> Vec<(u64, &'static str, Vec<PlanServer<'static>>)> {
    let a = |latency, ended| server("a", OWN, Some(latency), ended);
    let b = |latency, ended| server("b", RENTED, Some(latency), ended);
    let c = |latency, ended| server("c", OWN, Some(latency), ended);
    let d = |latency, ended| server("d", NO_TAGS, Some(latency), ended);
    let unknown = |name, tags| server(name, tags, None, (0, 0));
    let fresh = vec![unknown("a", OWN), unknown("b", RENTED), unknown("c", OWN)];
    vec![
        (0, "nothing is known", fresh),
        (
            1_000,
            "a is fast",
            vec![a(1_000, (90, 0)), b(2_000, (80, 0)), c(4_000, (70, 1))],
        ),
        (
            2_000,
            "c gets slow",
            vec![a(1_000, (90, 0)), b(2_000, (80, 0)), c(90_000, (20, 0))],
        ),
        (
            3_000,
            "b fails",
            vec![a(1_000, (90, 0)), b(500, (80, 70)), c(90_000, (20, 0))],
        ),
        (
            4_000,
            "all fail",
            vec![a(1_000, (90, 80)), b(500, (80, 70)), c(90_000, (20, 20))],
        ),
        (
            5_000,
            "a down",
            vec![
                being(State::Down, a(1_000, (3, 3))),
                b(500, (80, 2)),
                c(3_000, (50, 0)),
            ],
        ),
        (
            6_000,
            "a gone, d new",
            vec![unknown("d", NO_TAGS), c(3_000, (50, 0)), b(700, (80, 0))],
        ),
        (
            7_000,
            "d answers",
            vec![d(1_500, (10, 0)), c(3_000, (50, 0)), b(700, (80, 0))],
        ),
        (
            8_000,
            "weights 32, 0, 4096",
            vec![
                weighing(32, d(1_500, (10, 0))),
                weighing(0, c(3_000, (5, 0))),
                weighing(4_096, b(700, (80, 0))),
            ],
        ),
        (
            9_000,
            "nobody takes requests",
            vec![
                being(State::Draining, a(1_000, (1, 0))),
                being(State::Maintenance, b(700, (1, 0))),
                being(State::Down, c(3_000, (0, 0))),
            ],
        ),
        (9_000, "no server at all", Vec::new()),
        (
            30_000,
            "a back after long",
            vec![a(800, (5, 0)), b(700, (0, 0)), c(3_000, (0, 0))],
        ),
        (
            30_050,
            "extremes",
            vec![a(0, (u64::MAX, 0)), b(u64::MAX, (9, u64::MAX)), c(1, (1, 0))],
        ),
        (
            4_000_000,
            "an hour later",
            vec![a(1_000, (9, 0)), b(1_000, (9, 0)), c(1_000, (9, 0))],
        ),
    ]
}

fn one_by_one(loaded: &Loaded, config: &str, transcript: &mut Transcript) {
    transcript.title(&format!("ticks with {config}"));
    let mut planner = planner(loaded, config);
    for (millisecond, what, servers) in ticks() {
        let plan = ask(&mut *planner, millisecond, &servers);
        let answer = match plan {
            None => "no opinion".to_owned(),
            Some(plan) => {
                let tiers: Vec<String> = plan.tiers.iter().map(|tier| told(tier, &servers)).collect();
                format!(
                    "{}; for {:?}",
                    tiers.join(", then "),
                    plan.lifetime.expect("a lifetime")
                )
            }
        };
        transcript.line(format!("{millisecond} {what} -> {answer}"));
    }
}

/// How many connections it wishes for each server, on three days with a load from 9 to 10.
pub(super) fn preconnect(loaded: &Loaded) -> Transcript {
    const WHOLE: &str = r#"{"ahead":"30m","every":"12h","margin":2,"max":50}"#;
    let mut transcript = Transcript::default();
    transcript.configurations(
        loaded,
        &[
            "{}",
            WHOLE,
            r#"{"ahead":"2h","every":"1h"}"#,
            r#"{"every":"500ms","margin":0.5,"max":0,"need":3}"#,
        ],
    );
    for config in ["{}", WHOLE] {
        transcript.title(&format!("three days with {config}"));
        let (mut planner, mut before) = (planner(loaded, config), String::new());
        for minute in 0..3 * 24 * 60_u64 {
            let busy = minute / 60 % 24 == 9;
            let load = |name, in_flight| PlanServer {
                in_flight: if busy { in_flight } else { 0 },
                ..server(name, NO_TAGS, None, (0, 0))
            };
            let servers = [load("a", 20), load("b", 0), load("c", 40)];
            let now = Duration::from_secs(minute * 60);
            let view = PlanView {
                now,
                servers: &servers,
                live: None,
            };
            let wishes = planner.plan_reuse(&view).expect("an answer").expect("an opinion");
            let wishes = wishes.iter().map(|wish| {
                assert_eq!((wish.low, wish.max, wish.need), (None, None, wish.preconnect));
                format!("{} {:?}", servers[wish.server.at()].name, wish.preconnect)
            });
            let told = wishes.collect::<Vec<_>>().join(", ");
            if told != before {
                let (day, hour) = (minute / 1_440, minute / 60 % 24);
                transcript.line(format!("day {day} {hour:02}:{:02} -> {told}", minute % 60));
                before = told;
            }
        }
    }
    transcript
}

fn planner(loaded: &Loaded, config: &str) -> Box<dyn Planner> {
    attach(loaded, config)
        .planner(Duration::ZERO)
        .expect("an instance")
}

fn ask(planner: &mut dyn Planner, millisecond: u64, servers: &[PlanServer<'_>]) -> Option<Plan> {
    let now = Duration::from_millis(millisecond);
    planner
        .plan(&PlanView {
            now,
            servers,
            live: None,
        })
        .expect("an answer")
}

fn told(tier: &Tier, servers: &[PlanServer<'_>]) -> String {
    let selector = match tier.selector {
        Selector::Random => "random",
        Selector::RoundRobin => "roundrobin",
        Selector::LeastConn => "leastconn",
    };
    let spill = match tier.spill {
        Spill::WhenDown => "until down",
        Spill::WhenFull => "until full",
    };
    let members = tier.members.iter().map(|member| {
        let cap = member.cap.map(|cap| format!(" up to {cap}")).unwrap_or_default();
        format!("{} {}{cap}", servers[member.server.at()].name, member.weight)
    });
    format!("{selector} {spill} ({})", members.collect::<Vec<_>>().join(", "))
}

/// Forty servers for 200 ticks, each with a rhythm of its own; sums of all plans.
fn fleet(loaded: &Loaded, config: &str, transcript: &mut Transcript) {
    transcript.title(&format!("40 servers, 200 ticks with {config}"));
    let names: Vec<String> = (0..40).map(|at| format!("server-{at}")).collect();
    let mut planner = planner(loaded, config);
    let (mut first, mut second, mut weights, mut all) = (0, 0, 0, String::new());
    for tick in 0..200_u64 {
        let servers: Vec<PlanServer<'_>> = (0..40_u64)
            .zip(&names)
            .map(|(at, name)| {
                let beat = (tick + at * 7) % (11 + at);
                let ended = 50 + beat * 3;
                PlanServer {
                    name,
                    weight: 16 * (1 + at as u32 % 3),
                    state: if beat == at % 5 { State::Down } else { State::Ready },
                    ..server(
                        "",
                        [OWN, RENTED, NO_TAGS][at as usize % 3],
                        (beat != 3).then_some(500 + beat * beat * 100),
                        (ended, if beat > 9 { ended / 2 } else { 0 }),
                    )
                }
            })
            .collect();
        let plan = ask(&mut *planner, tick * 500, &servers).expect("a plan");
        for (at, tier) in plan.tiers.iter().enumerate() {
            *(if at == 0 { &mut first } else { &mut second }) += tier.members.len();
            weights += tier.members.iter().map(|it| u64::from(it.weight)).sum::<u64>();
            all += &format!("{tick} {} {:?}\n", told(tier, &servers), plan.lifetime);
        }
    }
    let digest = Digest::of(all.as_bytes()).short();
    transcript.line(format!(
        "{first} members in first tiers, {second} in second ones, weights {weights}; {digest}"
    ));
}
