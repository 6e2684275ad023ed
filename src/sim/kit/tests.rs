//! Policies in Rust, each with one mistake, and the checks that must see it.

use super::*;
use crate::policy::{
    Asked, Attribute, Edits, Fault, Fuel, Given, Member, Nth, Offers, Pick, Plan, PlanView, Planner, Policy,
    PoolWish, Preference, RouteAsked, Routed, Selector, ServerIndex, Shown, Spill, Standing, State, Tier,
    Usage, Waits,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

/// Picks the index of a server, or has no opinion.
type Choose = Box<dyn FnMut(&Shown, &Asked<'_>) -> Result<Option<usize>, Fault> + Send>;
type MakePlan = fn(&PlanView<'_>) -> Option<Plan>;

/// A policy that chooses servers.
struct Chooser {
    offers: Offers,
    make: Box<dyn Fn() -> Choose + Send + Sync>,
    plan: MakePlan,
    /// Bytes that it never gives back, of each pick.
    leaks: u64,
}

impl Chooser {
    fn picking<C>(make: impl Fn() -> C + Send + Sync + 'static) -> Chooser
    where
        C: FnMut(&Shown, &Asked<'_>) -> Result<Option<usize>, Fault> + Send + 'static,
    {
        Chooser {
            offers: Offers {
                pick: true,
                attributes: Attribute::parse("header:x-user").into_iter().collect(),
                ..Offers::default()
            },
            make: Box::new(move || Box::new(make())),
            plan: |_| None,
            leaks: 0,
        }
    }

    fn planning(plan: MakePlan) -> Chooser {
        Chooser {
            offers: Offers {
                plan: true,
                ..Offers::default()
            },
            plan,
            ..Chooser::picking(|| |_: &Shown, _: &Asked<'_>| Ok(None))
        }
    }

    fn report(&self) -> Report {
        check(self, &Effort::QUICK)
    }
}

impl Attachment for Chooser {
    fn offers(&self) -> &Offers {
        &self.offers
    }
    fn policy(&self, _: Duration) -> Result<Box<dyn Policy>, Fault> {
        Ok(Box::new(Instance {
            choose: (self.make)(),
            shown: None,
            leaks: self.leaks,
            memory: 1 << 16,
        }))
    }
    fn planner(&self, _: Duration) -> Result<Box<dyn Planner>, Fault> {
        Ok(Box::new(Plans(self.plan)))
    }
    fn is_used(&self) -> bool {
        false
    }
}

struct Instance {
    choose: Choose,
    shown: Option<Shown>,
    leaks: u64,
    memory: u64,
}

impl Policy for Instance {
    fn ready(&self, _: Duration) -> bool {
        true
    }
    fn table(&mut self, shown: &Shown, _: Duration) -> Result<(), Fault> {
        self.shown = Some(shown.clone());
        Ok(())
    }
    fn pick(&mut self, asked: &Asked<'_>, _: Option<ServerIndex>) -> Result<Option<Pick>, Fault> {
        self.memory += self.leaks;
        let shown = self.shown.as_ref().expect("a table comes first");
        let place = (self.choose)(shown, asked)?;
        Ok(place.map(|at| Pick {
            first: ServerIndex(at as u16),
            second: None,
        }))
    }
    fn route(&mut self, _: &RouteAsked<'_>, _: &mut Edits) -> Result<Routed, Fault> {
        Ok(Routed {
            target: None,
            remember: Duration::ZERO,
            given: Given::Asked,
        })
    }
    fn prefer(&mut self, _: &Asked<'_>, _: Nth) -> Result<Option<Preference>, Fault> {
        Ok(None)
    }
    fn classify(&mut self, _: &Asked<'_>, _: &Waits) -> Result<Option<Standing>, Fault> {
        Ok(None)
    }
    fn admit(&mut self, _: &Asked<'_>, _: &Waits) -> Result<Option<crate::policy::Verdict>, Fault> {
        Ok(None)
    }
    fn usage(&self) -> Usage {
        Usage {
            fuel: Some(Fuel {
                used: 1_234,
                allowed: 10_000_000,
            }),
            memory: Some(self.memory & !0xffff),
        }
    }
}

struct Plans(MakePlan);

impl Planner for Plans {
    fn plan(&mut self, view: &PlanView<'_>) -> Result<Option<Plan>, Fault> {
        Ok((self.0)(view))
    }
    fn plan_reuse(&mut self, _: &PlanView<'_>) -> Result<Option<Vec<PoolWish>>, Fault> {
        Ok(None)
    }
}

/// The places of those that take requests.
fn usable(shown: &Shown) -> impl Iterator<Item = usize> {
    let columns = &shown.columns;
    (0..columns.len()).filter(|&at| columns.states[at] == 0 && columns.weights[at] > 0)
}

fn hash(asked: &Asked<'_>) -> u64 {
    xxh3_64(asked.attributes[0].unwrap_or_default())
}

fn in_flight(shown: &Shown, at: usize) -> u64 {
    shown.live.in_flight(ServerIndex(at as u16)).into()
}

fn verdict(report: &Report, check: &str) -> Verdict {
    let found = report.findings.iter().find(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("no {check} in\n{report}")).verdict
}

/// The one finding that is wrong, and nothing else.
fn only_wrong<'a>(report: &'a Report, check: &str) -> &'a Finding {
    let wrong: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.verdict > Verdict::Ok)
        .collect();
    assert!(wrong.len() == 1 && wrong[0].check == check, "{report}");
    wrong[0]
}

/// The same key to the same server, by name.
fn rendezvous(shown: &Shown, asked: &Asked<'_>) -> Result<Option<usize>, Fault> {
    let key = hash(asked);
    let cost = |at: &usize| xxh3_64(format!("{key} {}", shown.columns.names[*at]).as_bytes());
    Ok(usable(shown).min_by_key(cost))
}

#[test]
fn a_clean_one() {
    let report = Chooser::picking(|| rendezvous).report();
    assert_eq!(report.worst(), Verdict::Ok, "{report}");
    assert_eq!(report.count(Verdict::NotApplicable), 0, "{report}");
    assert_eq!(
        report,
        Chooser::picking(|| rendezvous).report(),
        "one seed is one report"
    );
}

#[test]
fn one_that_draws() {
    let draws = |shown: &Shown, asked: &Asked<'_>| {
        let usable: Vec<usize> = usable(shown).collect();
        let drawn = xxh3_64(&asked.seed.to_le_bytes()) as usize;
        Ok(drawn.checked_rem(usable.len()).map(|at| usable[at]))
    };
    let report = Chooser::picking(move || draws).report();
    assert_eq!(report.worst(), Verdict::Ok, "{report}");
    assert_eq!(verdict(&report, "movement"), Verdict::NotApplicable);
}

/// Who was slow once is never asked again: its figure never gets better.
#[test]
fn the_lowest_smoothed_latency_starves() {
    let least_time = |shown: &Shown, _: &Asked<'_>| {
        let time = |at: &usize| shown.columns.latencies[*at].max(0) as u64 * (in_flight(shown, *at) + 1);
        Ok(usable(shown).min_by_key(time))
    };
    let report = Chooser::picking(move || least_time).report();
    let starved = report
        .findings
        .iter()
        .find(|finding| finding.check == "starvation");
    let starved = starved.expect("it is looked for");
    assert_eq!(starved.verdict, Verdict::Failed, "{report}");
    assert!(starved.figure.starts_with("s1 got the least: "), "{report}");
    assert!(starved.situation.contains("is fast again"), "{report}");
}

/// The same as a plan: all to the one that was fastest in the last second.
#[test]
fn a_plan_for_the_fastest_starves() {
    let fastest = |view: &PlanView<'_>| {
        let servers = view.servers.iter().enumerate();
        let ready = servers.filter(|(_, server)| server.state == State::Ready && server.weight > 0);
        let (at, _) = ready.min_by_key(|(_, server)| server.latency.unwrap_or_default())?;
        Some(plan_for([at]))
    };
    let report = Chooser::planning(fastest).report();
    assert_eq!(verdict(&report, "starvation"), Verdict::Failed, "{report}");
    assert_eq!(verdict(&report, "movement"), Verdict::NotApplicable);
}

fn plan_for(members: impl IntoIterator<Item = usize>) -> Plan {
    let member = |at: usize| Member {
        server: ServerIndex(at as u16),
        weight: 16,
        cap: None,
    };
    Plan {
        tiers: vec![Tier {
            selector: Selector::Random,
            spill: Spill::WhenDown,
            members: members.into_iter().map(member).collect(),
        }],
        lifetime: Some(Duration::from_secs(10)),
    }
}

#[test]
fn a_plan_that_names_everybody_is_well() {
    let everybody = |view: &PlanView<'_>| (!view.servers.is_empty()).then(|| plan_for(0..view.servers.len()));
    let report = Chooser::planning(everybody).report();
    assert_eq!(report.worst(), Verdict::Ok, "{report}");
}

#[test]
fn a_plan_for_the_first_is_told() {
    let first = |view: &PlanView<'_>| (!view.servers.is_empty()).then(|| plan_for([0]));
    let report = Chooser::planning(first).report();
    assert_eq!(verdict(&report, "starvation"), Verdict::Failed, "{report}");
    assert_eq!(
        verdict(&report, "down servers in plans"),
        Verdict::Warning,
        "{report}"
    );
    assert!(verdict(&report, "order") > Verdict::Ok, "{report}");
}

/// Fair under load, but always the first of equals.
#[test]
fn the_first_of_equals_is_a_warning() {
    let least_loaded =
        |shown: &Shown, _: &Asked<'_>| Ok(usable(shown).min_by_key(|at| in_flight(shown, *at)));
    let report = Chooser::picking(move || least_loaded).report();
    let finding = only_wrong(&report, "order");
    assert_eq!(finding.verdict, Verdict::Warning);
    assert_eq!(finding.figure, "the server at index 0 got 500 and 500 of 500");
}

/// The later in the table, the less.
#[test]
fn shares_by_place_are_a_mistake() {
    let by_place = |shown: &Shown, asked: &Asked<'_>| {
        let drawn = asked.seed % 1_000;
        let usable: Vec<usize> = usable(shown).collect();
        let place = usable.len() as u64 * drawn * drawn / 1_000_000;
        Ok(usable.get(place as usize).copied())
    };
    let report = Chooser::picking(move || by_place).report();
    assert!(verdict(&report, "order") > Verdict::Ok, "{report}");
}

#[test]
fn a_server_that_is_down_is_named() {
    let any = |shown: &Shown, asked: &Asked<'_>| {
        let drawn = xxh3_64(&asked.seed.to_le_bytes()) as usize;
        Ok(drawn.checked_rem(shown.columns.len()))
    };
    let report = Chooser::picking(move || any).report();
    let finding = only_wrong(&report, "down servers in picks");
    assert_eq!(finding.verdict, Verdict::Failed);
    assert_eq!(finding.situation, "10 servers of which 5 take no requests");
}

#[test]
fn a_hash_modulo_their_number_moves_nearly_all() {
    let modulo = |shown: &Shown, asked: &Asked<'_>| {
        let usable: Vec<usize> = usable(shown).collect();
        Ok((hash(asked) as usize)
            .checked_rem(usable.len())
            .map(|at| usable[at]))
    };
    let report = Chooser::picking(move || modulo).report();
    let finding = only_wrong(&report, "movement");
    assert_eq!(finding.verdict, Verdict::Failed, "{report}");
}

#[test]
fn memory_that_never_stops_growing() {
    let leaking = Chooser {
        leaks: 64,
        ..Chooser::picking(|| rendezvous)
    };
    let report = leaking.report();
    assert_eq!(only_wrong(&report, "memory of requests").verdict, Verdict::Failed);
}

/// A count that its instances share. One of their own is a memory as good as any.
#[test]
fn instances_that_answer_differently() {
    static SHARED: AtomicU64 = AtomicU64::new(0);
    let rotate = |shown: &Shown, turn: u64| {
        let usable: Vec<usize> = usable(shown).collect();
        Ok((turn as usize).checked_rem(usable.len()).map(|at| usable[at]))
    };
    let shared = Chooser::picking(move || {
        move |shown: &Shown, _: &Asked<'_>| rotate(shown, SHARED.fetch_add(1, Ordering::Relaxed))
    });
    let report = shared.report();
    assert_eq!(verdict(&report, "determinism"), Verdict::Failed, "{report}");
    let own = Chooser::picking(move || {
        let mut turn = 0;
        move |shown: &Shown, _: &Asked<'_>| {
            turn += 1;
            rotate(shown, turn)
        }
    });
    let report = own.report();
    assert_eq!(report.worst(), Verdict::Ok, "{report}");
}

#[test]
fn a_fault_is_told_with_its_situation_and_ends_what_it_came_in() {
    let strict = |shown: &Shown, asked: &Asked<'_>| match asked.attributes[0].map(std::str::from_utf8) {
        Some(Err(_)) if shown.columns.len() > 50 => Err(Fault::Trap),
        _ => rendezvous(shown, asked),
    };
    let report = Chooser::picking(move || strict).report();
    let faults: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.verdict == Verdict::Failed)
        .collect();
    assert_eq!(faults.len(), 1, "{report}");
    assert_eq!(
        (&*faults[0].check, &*faults[0].figure),
        ("faults", "trap in pick")
    );
    assert_eq!(faults[0].situation, "1000 busy servers");
    assert_eq!(verdict(&report, "determinism"), Verdict::NotApplicable);
    assert_eq!(verdict(&report, "starvation"), Verdict::Ok);
}

#[test]
fn who_answers_nothing_is_asked_nothing() {
    let silent = Chooser {
        offers: Offers::default(),
        ..Chooser::picking(|| rendezvous)
    };
    let report = silent.report();
    assert_eq!(report.worst(), Verdict::Ok, "{report}");
    assert_eq!(report.count(Verdict::NotApplicable), 6, "{report}");
}
