//! What a server takes at a time, how many wait for it, and what is tried again: `maxconn` and `retries` with their kin.

use super::errors::{At, Class, Problem, Report};
use super::model::{Attempts, Budget, Redispatch, Server, ServerLimits};
use super::pool;
use super::read::Fields;
use super::words::kind;
use toml::de::DeValue;

/// Limits, and where they were given.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    max: Option<(u32, At)>,
    min: Option<(u32, At)>,
    queue: Option<(u32, At)>,
}

impl Given {
    /// Those of a backend or of a server.
    pub(super) fn of(fields: &Fields<'_>, report: &mut Report) -> Given {
        let mut number = |name| {
            let (number, at) = fields.given_integer(name, report)?;
            Some((number as u32, at)) // at most a million by its range
        };
        Given {
            max: number("maxconn"),
            min: number("minconn"),
            queue: number("maxqueue"),
        }
    }

    /// A server's own, and its backend's where it has none.
    pub(super) fn or(self, backend: &Given) -> Given {
        Given {
            max: self.max.or_else(|| backend.max.clone()),
            min: self.min.or_else(|| backend.min.clone()),
            queue: self.queue.or_else(|| backend.queue.clone()),
        }
    }

    /// As the core reads them.
    pub(super) fn limits(&self) -> ServerLimits {
        let number = |given: &Option<(u32, At)>| given.as_ref().map(|(number, _)| *number);
        ServerLimits {
            max: number(&self.max),
            min: number(&self.min),
            queue: number(&self.queue),
        }
    }

    /// Reports what cannot be of the limits of one server. `told` keeps what was told of the backend's own from being
    /// told for each server.
    pub(super) fn check(&self, told: &mut Vec<At>, report: &mut Report) {
        let Some((min, at)) = &self.min else { return };
        let problem = match &self.max {
            None => {
                let found = "`minconn` without `maxconn`";
                let problem = Problem::new(Class::Wrong, at.clone(), found);
                problem.expected("expected `maxconn`, too: the limit moves between the two (Q-4)")
            }
            Some((max, max_at)) if min > max => {
                let found = format!("`minconn` is {min}, above `maxconn` with {max}");
                let problem = Problem::new(Class::Wrong, at.clone(), found);
                problem
                    .expected("expected min ≤ max (Q-4)")
                    .also(max_at.clone(), "the limit")
            }
            Some(_) => return,
        };
        if !told.contains(at) {
            told.push(at.clone());
            report.push(problem);
        }
    }
}

/// `fullconn`, or the sum of the servers' limits: there each server's limit is its part of the load.
pub(super) fn fullconn(fields: &Fields<'_>, servers: &[Server], report: &mut Report) -> u32 {
    let given = fields.given_integer("fullconn", report);
    if let Some((_, at)) = &given
        && servers.iter().all(|server| server.limits.min.is_none())
    {
        let problem = Problem::new(Class::Warning, at.clone(), "`fullconn` has no effect here");
        report.push(problem.expected("no server has a `minconn`, so that no limit moves"));
    }
    if let Some(at) = fields.key_at("maxqueue")
        && servers.iter().all(|server| server.limits.max.is_none())
    {
        let problem = Problem::new(Class::Warning, at, "`maxqueue` has no effect here");
        report.push(problem.expected("no server has a `maxconn`, so that nobody waits"));
    }
    let all = servers.iter().filter_map(|server| server.limits.max);
    match given {
        Some((given, _)) => given as u32, // at most 100 million by its range
        None => all.fold(0, u32::saturating_add).max(1),
    }
}

/// What is tried again, how often, where.
pub(super) fn attempts(fields: &Fields<'_>, report: &mut Report) -> Attempts {
    let retries = fields.integer("retries", report) as u8; // at most 100 by its range
    let share = fields.share("retry-budget", report);
    let least = fields.integer("retry-budget-min", report) as u32; // at most a million by its range
    if let (None, Some(at)) = (share, fields.key_at("retry-budget-min"))
        && !fields.has("retry-budget")
    {
        let problem = Problem::new(Class::Warning, at, "`retry-budget-min` has no effect here");
        report.push(problem.expected("without `retry-budget` nothing limits second attempts"));
    }
    Attempts {
        retries,
        retry_on: pool::retry_on(fields, report),
        redispatch: redispatch(fields, retries, report),
        delay: fields.duration("retry-delay", report),
        budget: share.map(|share| Budget { share, least }),
    }
}

fn redispatch(fields: &Fields<'_>, retries: u8, report: &mut Report) -> Redispatch {
    let Some(value) = fields.raw("redispatch") else {
        return Redispatch::USUAL;
    };
    let expected =
        format!("expected `true`, `false`, or a number other than 0 from -{retries} to {retries} (RT-3)");
    let found = match value.get_ref() {
        DeValue::Boolean(true) => return Redispatch::USUAL,
        DeValue::Boolean(false) => return Redispatch::Never,
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            let magnitude = read
                .as_ref()
                .ok()
                .and_then(|read| u8::try_from(read.unsigned_abs()).ok());
            match (read, magnitude.filter(|number| (1..=retries).contains(number))) {
                (Ok(1..), Some(number)) => return Redispatch::Every(number),
                (Ok(_), Some(number)) => return Redispatch::BeforeEnd(number),
                _ => number.to_string(),
            }
        }
        other => kind(other).to_owned(),
    };
    report.wrong(value.span(), format!("`redispatch` is {found}"), expected, "");
    Redispatch::USUAL
}
