//! Who steers a scenario: its events, and the planner thread of the proxy.

use super::{PolicyRow, micros, world};
use crate::config::scenario as spec;
use crate::config::units::show_duration;
use crate::control::{Decision, Desk, Loader};
use crate::decide::settings::Micros;
use crate::policy::Fault;
use crate::shared::key::KeySecret;
use crate::shared::table::Admin;
use crate::sim::connections::Name;
use crate::sim::steering::{Current, Nowhere, Steering, Turn};
use crate::sim::{Model, Report, Span};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The operator and the control thread of a scenario.
pub(super) struct Operator<'s> {
    spec: &'s spec::Scenario,
    desk: Desk<Name, Nowhere>,
    /// What requests were told to be handled by last.
    told: Arc<Current>,
    /// Events that have happened.
    done: usize,
    next_turn: Micros,
}

impl<'s> Operator<'s> {
    /// Loads the policies.
    pub(super) fn new(
        spec: &'s spec::Scenario,
        secret: &KeySecret,
        loader: Option<Arc<dyn Loader>>,
    ) -> Result<Operator<'s>, Vec<String>> {
        let desk = Desk::new(spec.config.clone(), secret, loader)?;
        Ok(Operator {
            spec,
            told: desk.published().clone(),
            desk,
            done: 0,
            next_turn: 0,
        })
    }

    /// What was counted of each policy.
    pub(super) fn policies(&self, report: &Report) -> Vec<PolicyRow> {
        let row =
            |(policy, place, attached): (&str, &str, &Arc<crate::shared::generation::AttachedPolicy>)| {
                let statistics = &attached.statistics;
                let faults = Fault::ALL.iter().map(|fault| {
                    let count = statistics.sum(|own| own.faults[fault.index()].read());
                    (fault.word(), count)
                });
                PolicyRow {
                    policy: policy.to_owned(),
                    place: place.to_owned(),
                    calls: statistics.sum(|own| own.calls.read()),
                    remembered: statistics.sum(|own| own.remembered.read()),
                    abstained: statistics.sum(|own| own.abstained.read()),
                    unusable: statistics.sum(|own| own.unusable.read()),
                    rejected: statistics.sum(|own| own.rejected.read()),
                    fuel: self.desk.fuel_of(policy).max(report.fuel_of(policy)),
                    faults: faults.filter(|(_, count)| *count > 0).collect(),
                }
            };
        self.desk.policies().map(row).collect()
    }

    /// Has an event happen; gives what is to be said of it.
    fn happen(&mut self, event: &spec::Event, now: Micros) -> Vec<String> {
        let mut notes = Vec::new();
        for (backend, server) in self.servers_of(event) {
            let mut said = format!("{backend}/{server}:");
            for decision in decisions(event) {
                let time = Duration::from_micros(now);
                match self.desk.decide(&backend, &server, decision, time) {
                    Ok(()) => {
                        let _ = write!(said, " {}", decided(decision));
                    }
                    Err(error) => notes.push(error),
                }
            }
            said.push_str(&behaves(&event.behaviour));
            notes.push(said);
        }
        if let Some(reload) = &event.reload {
            notes.extend(self.reload(reload));
        }
        notes
    }

    fn servers_of(&self, event: &spec::Event) -> Vec<(String, String)> {
        let backends = self.desk.config().backends.iter();
        let servers = backends.flat_map(|backend| {
            let name = |server: &crate::config::model::Server| (backend.name.clone(), server.name.clone());
            backend.servers.iter().map(name)
        });
        let fits = |(backend, server): &(String, String)| {
            event.servers.iter().any(|name| name.fits(backend, server))
        };
        servers.filter(fits).collect()
    }

    fn reload(&mut self, reload: &spec::Reload) -> Vec<String> {
        let (said, config) = match reload {
            spec::Reload::File(path) => (
                format!("{} is taken up", file_name(path)),
                spec::config(path).map(|mut config| {
                    config.process.workers = self.spec.workers;
                    config
                }),
            ),
            spec::Reload::Component(policy, path) => {
                let mut config = self.desk.config().clone();
                let name = config.policy(*policy).name.clone();
                config.policies[usize::from(policy.0)]
                    .component
                    .path
                    .clone_from(path);
                (
                    format!("policy {name} is swapped for {}", file_name(path)),
                    Ok(config),
                )
            }
        };
        let mut notes = vec![said];
        match config {
            Err(errors) => notes.push(format!("it is refused: {errors}")),
            Ok(config) => {
                if let Err(errors) = self.desk.reload(config) {
                    notes.extend(
                        errors
                            .into_iter()
                            .map(|error| format!("what was at work stays: {error}")),
                    );
                }
            }
        }
        notes
    }
}

impl Steering for Operator<'_> {
    fn first(&self) -> Arc<Current> {
        self.told.clone()
    }

    fn model(&self, backend: &str, server: &str) -> Model {
        let mut model = Model::answering(Span::Constant(1));
        if let Some(first) = world::behaviour(self.spec, backend, server) {
            world::apply(first, &mut model);
        }
        for event in &self.spec.events[..self.done] {
            if event.servers.iter().any(|name| name.fits(backend, server)) {
                world::apply(&event.behaviour, &mut model);
            }
        }
        model
    }

    fn turn(&mut self, now: Micros) -> Turn {
        let (mut notes, before) = (Vec::new(), self.done);
        while let Some(event) = self.spec.events.get(self.done)
            && micros(event.at) <= now
        {
            self.done += 1;
            notes.extend(self.happen(event, now));
        }
        if self.next_turn <= now || self.done > before {
            self.next_turn = micros(self.desk.turn(Duration::from_micros(now)));
        }
        let published = self.desk.published();
        let generation = (!Arc::ptr_eq(published, &self.told)).then(|| published.clone());
        if let Some(generation) = &generation {
            self.told = generation.clone();
        }
        let event = self.spec.events.get(self.done).map(|event| micros(event.at));
        Turn {
            generation,
            models: self.done > before,
            next: Some(event.map_or(self.next_turn, |event| event.min(self.next_turn))),
            notes,
        }
    }
}

fn decisions(event: &spec::Event) -> impl Iterator<Item = Decision> {
    let state = event.state.map(|state| {
        Decision::State(match state {
            spec::State::Ready => Admin::Ready,
            spec::State::Drain => Admin::Drain,
            spec::State::Maint => Admin::Maint,
        })
    });
    let (weight, maxconn) = (
        event.weight.map(Decision::Weight),
        event.maxconn.map(Decision::Maxconn),
    );
    [state, weight, maxconn].into_iter().flatten()
}

fn decided(decision: Decision) -> String {
    match decision {
        Decision::State(state) => state.word().to_owned(),
        Decision::Weight(weight) => format!("weight {weight}"),
        Decision::Maxconn(maxconn) => format!("maxconn {maxconn}"),
    }
}

fn behaves(said: &spec::Behaviour) -> String {
    let mut text = String::new();
    let mut say = |what: String| {
        let _ = write!(text, " {what}");
    };
    match said.service {
        Some(spec::Span::Constant(time)) => say(format!("takes {}", show_duration(time))),
        Some(spec::Span::Mean(time)) => say(format!("takes {} on average", show_duration(time))),
        Some(spec::Span::Between(from, to)) => {
            say(format!("takes {} to {}", show_duration(from), show_duration(to)));
        }
        Some(spec::Span::Tail(median, p99)) => {
            say(format!(
                "takes {}, one in a hundred {}",
                show_duration(median),
                show_duration(p99)
            ));
        }
        None => {}
    }
    if let Some(capacity) = said.capacity {
        say(format!("capacity {capacity}"));
    }
    if let Some(report) = &said.report {
        say(format!("reports \"{}\"", report.escape_debug()));
    }
    let shares = [
        (said.refuses, "refuses"),
        (said.drops, "drops"),
        (said.errors, "errors"),
        (said.hangs, "hangs"),
    ];
    for (share, what) in shares {
        if let Some(share) = share {
            say(format!("{what} {}", crate::config::units::show_share(share)));
        }
    }
    match said.down {
        Some(true) => say("down".into()),
        Some(false) => say("up".into()),
        None => {}
    }
    text
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
