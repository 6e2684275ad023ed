//! From what a scenario says to the world of a run.

use super::micros;
use crate::config::scenario as spec;
use crate::sim::traffic::{Asks, Clients, Keys, Line, Open, Traffic, Who, Zipf};
use crate::sim::world::{Costs, Estimate, Faults, Marks, Model, Watch, World};
use crate::sim::{Span, world::Split};

/// Whether each server behaves in some way, and nothing is too much.
pub(super) fn check(spec: &spec::Scenario) -> Result<(), String> {
    for backend in &spec.config.backends {
        for server in &backend.servers {
            if behaviour(spec, &backend.name, &server.name).is_none() {
                let (backend, server) = (&backend.name, &server.name);
                return Err(format!(
                    "nothing says how server {backend}/{server} behaves: add `[[server]]` with `service`, without `name` for all"
                ));
            }
        }
    }
    if spec.config.backends.is_empty() {
        return Err("there is no backend".into());
    }
    Ok(())
}

/// How a server behaves at first: as the last section says that fits it.
pub(super) fn behaviour<'s>(
    spec: &'s spec::Scenario,
    backend: &str,
    server: &str,
) -> Option<&'s spec::Behaviour> {
    let mut machines = spec.machines.iter().rev();
    let machine = machines.find(|machine| machine.names.iter().any(|name| name.fits(backend, server)))?;
    Some(&machine.behaviour)
}

/// The world around the configuration.
pub(super) fn world(spec: &spec::Scenario) -> World {
    let process = &spec.config.process;
    let decisions = spec.show.decisions as usize;
    World {
        workers: spec.workers,
        costs: Costs {
            request: micros(spec.costs.request),
            response: micros(spec.costs.response),
            open: micros(spec.costs.open),
            takeover: micros(spec.costs.takeover),
            grant: micros(spec.costs.grant),
        },
        connect: micros(spec.connect),
        estimate: Estimate::On,
        sharing: process.pool_sharing,
        marks: Marks {
            limit: spec.descriptors,
            low: process.pool_low_fd_ratio,
            high: process.pool_high_fd_ratio,
        },
        contention: spec.contention,
        traffic: spec.traffic.iter().map(traffic).collect(),
        leaves_after: spec.patience.map(span),
        tied: 0,
        duration: micros(spec.duration),
        requests_max: spec.requests.unwrap_or(u64::MAX),
        watch: Watch {
            first: decisions - decisions / 3,
            last: decisions / 3,
            step: micros(spec.show.step),
            fuel: spec.expect.fuel.is_some(),
            keys: spec.expect.moved_keys.map(|_| Split {
                at: spec.events.first().map_or(0, |event| micros(event.at)),
            }),
        },
    }
}

fn traffic(said: &spec::Traffic) -> Traffic {
    let who = match &said.who {
        spec::Who::Clients {
            count,
            think,
            session,
        } => Who::Clients(Clients {
            session: *session,
            ..Clients::thinking(*count, span(*think))
        }),
        spec::Who::Rate {
            rate,
            even,
            burst,
            clients,
        } => {
            let gap = 1_000_000 * u64::from(*burst) / u64::from(*rate);
            Who::Open(Open {
                gap: if *even {
                    Span::Constant(gap.max(1))
                } else {
                    Span::Exponential { mean: gap.max(1) }
                },
                burst: *burst,
                clients: *clients,
            })
        }
        spec::Who::Script(lines) => Who::Script(lines.iter().map(line).collect()),
    };
    Traffic {
        who,
        asks: Some(asks(&said.asks)),
        listener: said.listener,
        from: micros(said.from),
        until: said.until.map_or(u64::MAX, micros),
    }
}

fn line(said: &spec::Line) -> Line {
    Line {
        at: micros(said.at),
        client: said.client,
        asks: said.asks.as_ref().map(asks),
        service: said.service.map(micros),
    }
}

fn asks(said: &spec::Asks) -> Asks {
    Asks {
        method: said.method.clone(),
        host: said.host.clone(),
        target: said.path.clone(),
        headers: said.headers.clone(),
        keys: match &said.keys {
            spec::Keys::One => Keys::One,
            spec::Keys::Of(names) => Keys::Of(names.clone()),
            spec::Keys::Uniform(count) => Keys::Uniform(*count),
            spec::Keys::Zipf(count, exponent) => Keys::Zipf(Zipf::new(*count, *exponent)),
        },
    }
}

pub(super) fn span(said: spec::Span) -> Span {
    match said {
        spec::Span::Constant(time) => Span::Constant(micros(time)),
        spec::Span::Mean(mean) => Span::Exponential { mean: micros(mean) },
        spec::Span::Between(least, most) => Span::Uniform {
            least: micros(least),
            most: micros(most),
        },
        spec::Span::Tail(median, p99) => Span::LogNormal {
            median: micros(median),
            p99: micros(p99),
        },
    }
}

/// Changes a model where a behaviour says something.
pub(super) fn apply(said: &spec::Behaviour, model: &mut Model) {
    /// Millionths as 10,000ths.
    fn share(millionths: Option<u32>, into: &mut u16) {
        if let Some(millionths) = millionths {
            *into = (millionths / 100) as u16; // 10,000 at most
        }
    }
    if let Some(service) = said.service {
        model.service = span(service);
    }
    model.capacity = said.capacity.or(model.capacity);
    model.closes_after = said.closes_after.or(model.closes_after);
    if let Some(report) = &said.report {
        model.report = Some(report.as_str().into());
    }
    let faults: &mut Faults = &mut model.faults;
    share(said.refuses, &mut faults.refuses);
    share(said.drops, &mut faults.drops);
    share(said.errors, &mut faults.errors);
    share(said.hangs, &mut faults.hangs);
    faults.down = said.down.unwrap_or(faults.down);
}
