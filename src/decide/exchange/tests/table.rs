//! Every phase × every event, as a snapshot: what may come next, and what is commanded.
//!
//! The phases are found by walking from the start along every event, fit or not. An event without a line does nothing
//! in that phase; *noted* means that it changes facts only. Where an event has several outcomes, brackets say when.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const ONE_OF_EACH: Effort = Effort {
    retries: 1,
    stale_max: 1,
    retry_on: RetryOn::USUAL,
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
    events.extend([Some(it), Some(other), None].map(Event::Chosen));
    events.extend([Taken::Yes, Taken::Refused].map(Event::Slot));
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
    events.extend([Timer::Client, Timer::Server, Timer::Tunnel].map(Event::Expired));
    events
}

/// The server that the exchange is about.
fn subject(exchange: &Exchange) -> Option<ServerIndex> {
    match exchange.server {
        ServerSide::Choosing(Some(Failed { server, .. }))
        | ServerSide::Taking(server)
        | ServerSide::Lending(server)
        | ServerSide::Connecting(server)
        | ServerSide::Pausing(server)
        | ServerSide::Holding(server, _) => Some(server),
        ServerSide::Unasked | ServerSide::Choosing(None) | ServerSide::Released => None,
    }
}

fn reachable() -> Vec<Exchange> {
    let mut found = vec![Exchange::new(ONE_OF_EACH)];
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
    let mut outcomes: BTreeMap<Option<String>, Vec<Facts>> = BTreeMap::new();
    for exchange in members {
        let outcome = outcome(exchange, events(exchange)[at]);
        outcomes.entry(outcome).or_default().push(facts(exchange));
    }
    outcomes
}

/// The fewest facts that tell `cases` from `others`; several sets of them where one is not enough.
fn when(cases: &[Facts], others: &[&Facts]) -> Vec<Facts> {
    let mut candidates: Vec<Facts> = cases.iter().flat_map(subsets).collect();
    candidates.sort_by_key(|facts| (facts.len(), facts.clone()));
    candidates.dedup();
    candidates.retain(|facts| !others.iter().any(|other| facts.is_subset(other)));
    let covered = |chosen: &[Facts]| {
        cases
            .iter()
            .filter(|case| chosen.iter().any(|facts| facts.is_subset(case)))
            .count()
    };
    let mut chosen: Vec<Facts> = Vec::new();
    for facts in candidates {
        let before = covered(&chosen);
        chosen.push(facts);
        if covered(&chosen) == before {
            chosen.pop();
        }
    }
    assert_eq!(covered(&chosen), cases.len(), "a hidden fact decides");
    for at in (0..chosen.len()).rev() {
        let facts = chosen.remove(at);
        if covered(&chosen) < cases.len() {
            chosen.insert(at, facts);
        }
    }
    chosen
}

fn subsets(facts: &Facts) -> Vec<Facts> {
    (0..1u32 << facts.len())
        .map(|mask| {
            facts
                .iter()
                .enumerate()
                .filter(|(at, _)| mask & 1 << at != 0)
                .map(|(_, fact)| *fact)
                .collect()
        })
        .collect()
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
