//! Every phase × every event, as a snapshot: what may come next, and what is commanded.
//!
//! The phases are found by walking from the start along every event, fit or not. An event without a line does nothing
//! in that phase; *noted* means that it changes facts only. Where an event has several outcomes, brackets say when.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The second retry is the one that leaves a server.
const FEW: Effort = Effort {
    retries: 2,
    stale_max: 1,
    retry_on: RetryOn::USUAL,
    redispatch: Redispatch::USUAL,
};

/// Every event; the balancer may answer with the server that the exchange is about, or with another.
fn events(exchange: &Exchange) -> Vec<Event> {
    let it = subject(exchange).unwrap_or(A);
    let other = if it == A { B } else { A };
    let mut events = Vec::new();
    for idempotent in [Idempotent::Yes, Idempotent::No] {
        for arrival in [Arrival::Whole, Arrival::BodyFollows] {
            events.push(Event::Start(Asked { idempotent, arrival }));
        }
    }
    for bond in [Bond::Loose, Bond::Preferred, Bond::Tied] {
        events.push(Event::Chosen(Chosen::Server(it, bond)));
    }
    events.push(Event::Chosen(Chosen::Server(other, Bond::Loose)));
    events.extend([Chosen::Anyone, Chosen::Nobody].map(Event::Chosen));
    events.extend([Taken::Yes, Taken::Refused].map(Event::Slot));
    events.extend([it, other].map(Event::Granted));
    events.extend([Event::SentBack, Event::Full, Event::NotAdmitted]);
    events.extend([Budget::Allows, Budget::Spent].map(Event::Charged));
    events.extend([Found::Idle, Found::Nothing].map(Event::Lent));
    events.push(Event::Connected);
    let failures = [
        ConnectFailure::Remote,
        ConnectFailure::TimedOut,
        ConnectFailure::Local,
    ];
    events.extend(failures.map(Event::ConnectFailed));
    events.extend([
        Event::PauseOver,
        Event::Written,
        Event::HeldLost,
        Event::RequestComplete,
    ]);
    events.extend([Event::ResponseStarted, Event::Switched]);
    let afterwards = [Afterwards::Reusable, Afterwards::Ended, Afterwards::ExcessData];
    events.extend(afterwards.map(Event::ResponseComplete));
    events.extend([
        Event::ServerGone,
        Event::BadResponse,
        Event::ClientGone,
        Event::BadRequest,
    ]);
    events.extend([Timer::Client, Timer::Queue, Timer::Server, Timer::Tunnel].map(Event::Expired));
    events
}

/// The server that the exchange is about.
fn subject(exchange: &Exchange) -> Option<ServerIndex> {
    match exchange.server {
        ServerSide::Choosing(Some(Failed { server, .. }))
        | ServerSide::Waiting(None, Some(Failed { server, .. }))
        | ServerSide::Waiting(Some(server), _)
        | ServerSide::Charging(Failed { server, .. }, _)
        | ServerSide::Taking(server)
        | ServerSide::Lending(server)
        | ServerSide::Connecting(server)
        | ServerSide::Pausing(server)
        | ServerSide::Holding(server, _) => Some(server),
        ServerSide::Unasked
        | ServerSide::Choosing(None)
        | ServerSide::Waiting(None, None)
        | ServerSide::Released => None,
    }
}

fn reachable() -> Vec<Exchange> {
    let mut found = vec![Exchange::new(FEW)];
    let mut known: BTreeSet<String> = found.iter().map(|exchange| format!("{exchange:?}")).collect();
    let mut at = 0;
    while at < found.len() {
        for event in events(&found[at]) {
            let mut next = found[at];
            next.on(event);
            if known.insert(format!("{next:?}")) {
                found.push(next);
            }
        }
        at += 1;
    }
    found
}

/// A phase, as the table names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phase {
    server: String,
    /// Where there is one under way.
    request: Option<RequestSide>,
}

fn phase(exchange: &Exchange) -> Phase {
    let server = match exchange.server {
        ServerSide::Choosing(None) => "Choosing".to_owned(),
        ServerSide::Choosing(Some(failed)) if failed.wait => "Choosing again, with a pause".to_owned(),
        ServerSide::Choosing(Some(_)) => "Choosing again, at once".to_owned(),
        ServerSide::Waiting(None, None) => "Waiting".to_owned(),
        ServerSide::Waiting(None, Some(failed)) if failed.wait => {
            "Waiting again, in place of a pause".to_owned()
        }
        ServerSide::Waiting(None, Some(_)) => "Waiting again".to_owned(),
        ServerSide::Waiting(Some(_), _) => "Waiting for one".to_owned(),
        ServerSide::Charging(failed, failure) => {
            let pause = if failed.wait { "with a pause" } else { "at once" };
            format!("Charging, {pause}, or {failure:?}")
        }
        ServerSide::Holding(_, lease) => format!("{lease:?}, response {:?}", exchange.response),
        other => format!("{other:?}")
            .split('(')
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    let request = exchange.under_way().then_some(exchange.request);
    Phase { server, request }
}

/// What does not show in the name of the phase, and its opposite.
fn facts(exchange: &Exchange) -> Facts {
    let fact = |holds: bool, yes, no| if holds { yes } else { no };
    BTreeSet::from([
        fact(
            exchange.idempotent == Idempotent::Yes,
            "idempotent",
            "not idempotent",
        ),
        fact(exchange.written, "written", "not written"),
        fact(exchange.held, "held", "not held"),
        fact(exchange.fresh_only, "fresh only", "idle too"),
        fact(exchange.retries_left > 0, "retries left", "no retry left"),
        fact(exchange.stale_left > 0, "stale left", "no stale left"),
        fact(exchange.tie == Tie::Kept, "tie kept", "tie forgotten"),
        fact(exchange.retries_left == FEW.retries, "first retry", "last retry"),
        match exchange.bond {
            Bond::Loose => "loose",
            Bond::Preferred => "preferred",
            Bond::Tied => "tied",
        },
    ])
}

/// A command or an event, with the server that the exchange is about as `it`.
fn named(what: impl std::fmt::Debug, it: Option<ServerIndex>) -> String {
    let text = format!("{what:?}");
    let it = it.unwrap_or(A);
    let other = if it == A { B } else { A };
    let text = text
        .replace(&format!("{it:?}"), "it")
        .replace(&format!("{other:?}"), "other");
    text.replace("Some(it)", "it")
        .replace("Some(other)", "other")
        .replace("Asked ", "")
}

/// Where an event leads, and what is commanded; `None` where it does nothing at all.
fn outcome(before: &Exchange, event: Event) -> Option<String> {
    let mut after = *before;
    let commands = after.on(event);
    let (was, is) = (phase(before), phase(&after));
    let next = match (was.server == is.server, was.request == is.request) {
        (true, true) if format!("{before:?}") == format!("{after:?}") => "nothing",
        (true, true) => "noted",
        (true, false) => "the whole request",
        (false, _) => is.server.as_str(),
    };
    match commands.as_slice() {
        [] if next == "nothing" => None,
        [] => Some(next.to_owned()),
        commands => {
            let said: Vec<_> = commands
                .iter()
                .map(|command| named(command, subject(before)))
                .collect();
            Some(format!("{next}: {}", said.join(", ")))
        }
    }
}

type Facts = BTreeSet<&'static str>;

/// What the event at this place leads to in a phase, and in which cases.
fn outcomes(members: &[Exchange], at: usize) -> BTreeMap<Option<String>, Vec<Facts>> {
    let mut outcomes: BTreeMap<Option<String>, BTreeSet<Facts>> = BTreeMap::new();
    for exchange in members {
        let outcome = outcome(exchange, events(exchange)[at]);
        outcomes.entry(outcome).or_default().insert(facts(exchange));
    }
    let listed = |(outcome, cases): (_, BTreeSet<Facts>)| (outcome, cases.into_iter().collect());
    outcomes.into_iter().map(listed).collect()
}

/// The fewest facts that tell `cases` from `others`; several sets of them where one is not enough.
fn when(cases: &[Facts], others: &[&Facts]) -> Vec<Facts> {
    // Sets as bits, the first name highest: so that shorter sets, then earlier names come first.
    let names: BTreeSet<&'static str> = cases.iter().flatten().copied().collect();
    let bits = |facts: &Facts| -> u32 {
        let bit = |(at, name): (u32, &&str)| if facts.contains(*name) { 1 << (31 - at) } else { 0 };
        (0..).zip(&names).map(bit).sum()
    };
    let others: Vec<u32> = others.iter().map(|other| bits(other)).collect();
    let mut left: Vec<u32> = cases.iter().map(bits).collect();
    let mut candidates: Vec<u32> = left.iter().flat_map(|case| subsets(*case)).collect();
    candidates.sort_by_key(|facts| (facts.count_ones(), !facts));
    candidates.dedup();
    candidates.retain(|facts| !others.iter().any(|other| facts & other == *facts));
    let all = left.clone();
    let mut chosen: Vec<u32> = Vec::new();
    for facts in candidates {
        let before = left.len();
        left.retain(|case| facts & case != facts);
        if left.len() < before {
            chosen.push(facts);
        }
    }
    assert!(left.is_empty(), "a hidden fact decides");
    for at in (0..chosen.len()).rev() {
        let facts = chosen.remove(at);
        let covered = |case: &u32| chosen.iter().any(|facts| facts & case == *facts);
        if !all.iter().all(covered) {
            chosen.insert(at, facts);
        }
    }
    let named = |facts: u32| {
        let of = names
            .iter()
            .zip(0..)
            .filter(|(_, at)| facts & 1 << (31 - at) != 0);
        of.map(|(name, _)| *name).collect()
    };
    chosen.into_iter().map(named).collect()
}

/// Every subset of some bits.
fn subsets(bits: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(bits), move |subset| {
        (*subset > 0).then(|| (subset - 1) & bits)
    })
}

#[test]
fn every_phase_and_event() {
    let mut phases: Vec<(Phase, Vec<Exchange>)> = Vec::new();
    for exchange in reachable() {
        let name = phase(&exchange);
        match phases.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(exchange),
            None => phases.push((name, vec![exchange])),
        }
    }
    let mut drawn = String::new();
    for (phase, members) in &phases {
        let request = phase.request.map(|request| format!(", request {request:?}"));
        let _ = writeln!(drawn, "{}{}", phase.server, request.unwrap_or_default());
        for (at, event) in events(&members[0]).into_iter().enumerate() {
            draw(
                &named(event, subject(&members[0])),
                &outcomes(members, at),
                &mut drawn,
            );
        }
        drawn.push('\n');
    }
    insta::assert_snapshot!(drawn);
}

fn draw(event: &str, outcomes: &BTreeMap<Option<String>, Vec<Facts>>, drawn: &mut String) {
    for (outcome, cases) in outcomes {
        let Some(outcome) = outcome else { continue };
        if outcomes.len() == 1 || outcome == "noted" {
            let _ = writeln!(drawn, "  {event} → {outcome}");
            continue;
        }
        let others = outcomes
            .iter()
            .filter(|(other, _)| other.as_ref() != Some(outcome));
        let others: Vec<&Facts> = others.flat_map(|(_, cases)| cases).collect();
        for facts in when(cases, &others) {
            let facts: Vec<&str> = facts.into_iter().collect();
            let _ = writeln!(drawn, "  {event} [{}] → {outcome}", facts.join(", "));
        }
    }
}
