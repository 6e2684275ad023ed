//! From the typed config to what workers read: times in µs, ready lines.

use crate::config::{defaults, model};
use crate::decide::balance::Algorithm;
use crate::decide::cause::Cause;
use crate::decide::exchange::Effort;
use crate::decide::persist::{Attributes, Persistence, value_of};
use crate::decide::reuse::Figures;
use crate::decide::settings::{
    BackendSettings, Forwarded, Limits, ListenerSettings, Micros, NamedRoutes, PoolSettings, PreferLast,
};
use crate::shared::statistics::ListenerStatistics;
use crate::shared::table::Role;
use std::num::NonZeroU64;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

pub(super) fn listener(listen: &model::Listen) -> ListenerSettings {
    ListenerSettings {
        http_request: micros(listen.timeouts.http_request),
        inactivity: micros(listen.timeouts.inactivity),
        http_keep_alive: micros(listen.timeouts.http_keep_alive),
        tunnel: micros(listen.timeouts.tunnel),
        limits: Limits {
            head_max: listen.limits.head_max,
            request_line_max: listen.limits.request_line_max,
            headers_max: listen.limits.headers_max,
        },
        session_private_max: listen.session_private_max,
        routes: listen.routes.clone(),
        named: named_routes(listen),
        request_edits: listen.request_edits.clone(),
        response_edits: listen.response_edits.clone(),
        forwarded: match listen.forwarded {
            model::Forwarded::Append => Forwarded::Append,
            model::Forwarded::Replace => Forwarded::Replace,
            model::Forwarded::Off => Forwarded::Off,
        },
        via: match &listen.via {
            Some(name) => format!("Via: 1.1 {name}\r\n").into_bytes().into(),
            None => Box::default(),
        },
    }
}

/// Routes that a policy may choose: those with a name, by their place.
fn named_routes(listen: &model::Listen) -> NamedRoutes {
    NamedRoutes {
        redirects: listen.redirects().map(|(_, at)| at as u16).collect(),
        responses: listen.responses().map(|(_, at)| at as u16).collect(),
    }
}

pub(super) fn backend(backend: &model::Backend) -> BackendSettings {
    BackendSettings {
        connect: micros(backend.timeouts.connect),
        inactivity: micros(backend.timeouts.inactivity),
        queue: micros(backend.timeouts.queue),
        turn_around: micros(backend.attempts.delay),
        hashed: match &backend.balance {
            model::Balance::Hash(hash) => Some(hash.of.clone()),
            _ => None,
        },
        persistence: backend
            .cookie
            .as_ref()
            .map(|cookie| persistence(cookie, &backend.servers)),
        last: match backend.prefer_last_server {
            true => PreferLast::Yes,
            false => PreferLast::No,
        },
        pool: pool(&backend.pool),
        effort: Effort {
            retries: backend.attempts.retries,
            stale_max: defaults::STALE_MAX,
            retry_on: backend.attempts.retry_on,
            redispatch: backend.attempts.redispatch,
        },
        budget: backend.attempts.budget,
        load_report: backend.load_report.passing,
        request_edits: backend.request_edits.clone(),
        response_edits: backend.response_edits.clone(),
    }
}

fn pool(pool: &model::Pool) -> PoolSettings {
    PoolSettings {
        mode: pool.reuse,
        overriding: pool.overriding,
        figures: Figures {
            idle_reserve: pool.low,
            idle_max: pool.max,
            rule: pool.keep,
            ..Figures::default()
        },
        purge_delay: NonZeroU64::new(micros(pool.purge_delay)),
        max_reuse: pool.max_reuse,
        strict_max: pool.strict_max,
        name: pool.name.clone(),
        source: pool.source,
    }
}

fn persistence(cookie: &model::Cookie, servers: &[model::Server]) -> Persistence {
    let value = |server: &model::Server| server.cookie.clone().unwrap_or_else(|| value_of(&server.name));
    let attributes = Attributes {
        http_only: cookie.http_only,
        secure: cookie.secure,
        same_site: cookie.same_site,
        path: cookie.path.clone(),
        domain: cookie.domain.clone(),
        max_age: cookie.max_age.map(|age| age.as_secs()),
        private: cookie.private,
    };
    let values = servers.iter().map(|server| value(server).into_bytes()).collect();
    Persistence::new(&cookie.name, values, &attributes)
}

/// When a server takes its turn (LB-2).
pub(super) fn role(server: &model::Server, backend: &model::Backend) -> Role {
    match (server.backup, backend.all_backups) {
        (false, _) => Role::Active,
        (true, false) => Role::Backup,
        (true, true) => Role::JointBackup,
    }
}

/// A server's own number for a hash (LB-42).
pub(super) fn hash_key(server: &model::Server, balance: &model::Balance) -> u64 {
    match balance {
        model::Balance::Hash(hash) if hash.by == model::HashKey::Address => {
            xxh3_64(server.address.to_string().as_bytes())
        }
        _ => xxh3_64(server.name.as_bytes()),
    }
}

pub(super) fn algorithm(balance: &model::Balance) -> Algorithm {
    match balance {
        model::Balance::Random(draws) => Algorithm::Random(*draws),
        model::Balance::RoundRobin => Algorithm::RoundRobin,
        model::Balance::LeastConn => Algorithm::LeastConn,
        model::Balance::First => Algorithm::First,
        model::Balance::Sticky => Algorithm::Sticky,
        model::Balance::Hash(hash) => Algorithm::Hash(hash.hash),
    }
}

pub(super) fn listener_statistics() -> ListenerStatistics {
    ListenerStatistics::new(Cause::COUNT)
}

pub(super) fn micros(duration: Duration) -> Micros {
    duration.as_micros().min(u128::from(u64::MAX / 4)) as Micros
}
