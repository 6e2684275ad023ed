//! What a listener and a backend ask of a request that passes them: times in µs, edits, routes.
//!
//! Made from the config by `control/`, read by workers through the current generation.

use super::balance::key::KeyOf;
use super::budget::Budget;
use super::edit::Edits;
use super::exchange::Effort;
use super::persist::Persistence;
use super::reuse::{Figures, Mode, Override};
use super::route::RouteTable;
use super::template::Template;
pub use crate::http1::Limits;

use std::net::IpAddr;
use std::num::NonZeroU64;

/// Microseconds.
pub type Micros = u64;

/// How one listener treats its clients.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// From the first byte of a request to the end of its head (`timeout-http-request`).
    pub http_request: Micros,
    /// Without progress from or to the client (`timeout-client`).
    pub inactivity: Micros,
    /// Between two requests (`timeout-http-keep-alive`).
    pub http_keep_alive: Micros,
    /// Without a byte in a tunnel (`timeout-tunnel`).
    pub tunnel: Micros,
    /// Limits of a head.
    pub limits: Limits,
    /// Idle private server connections of one client connection, at most (POOL-61).
    pub session_private_max: usize,
    /// Routes in order, then the default.
    pub routes: RouteTable,
    /// The routes that a policy may choose: redirects by their index, then fixed responses by theirs.
    pub named: NamedRoutes,
    /// Edits of every request.
    pub request_edits: Edits,
    /// Edits of every response of a server.
    pub response_edits: Edits,
    /// What becomes of `X-Forwarded-*`.
    pub forwarded: Forwarded,
    /// The ready line `Via: 1.1 NAME` with its CRLF, or nothing; the minor version is at [`VIA_MINOR`].
    pub via: Box<[u8]>,
}

/// Routes that a route policy may choose, by their place in [`ListenerSettings::routes`].
#[derive(Clone, Debug, Default)]
pub struct NamedRoutes {
    /// Those that redirect.
    pub redirects: Box<[u16]>,
    /// Those with a fixed response.
    pub responses: Box<[u16]>,
}

/// Where the minor version of the client's message stands in [`ListenerSettings::via`].
pub const VIA_MINOR: usize = "Via: 1.".len();

/// What becomes of the `X-Forwarded-*` fields of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// `X-Forwarded-For` of the client stays before ours, `-Proto` and `-Host` are replaced.
    Append,
    /// Whatever the client sent is removed, then ours are added.
    Replace,
    /// Nothing is added and nothing removed.
    Off,
}

/// How one backend treats the connections to its servers.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// How they are shared between clients (`reuse`).
    pub mode: Mode,
    /// Whether a policy may loosen that (`reuse-override`).
    pub overriding: Override,
    /// Limits and targets (`pool-low-conn`, `pool-max-conn`), and how the room is divided (`pool-keep`).
    pub figures: Figures,
    /// Between two purges (`pool-purge-delay`); `None` keeps nothing.
    pub purge_delay: Option<NonZeroU64>,
    /// Requests that one carries after its first (`max-reuse`).
    pub max_reuse: Option<u32>,
    /// Of one server, used or idle (`strict-maxconn`).
    pub strict_max: Option<u32>,
    /// What requests must have in common to share one (`pool-conn-name`).
    pub name: Option<Template>,
    /// Where they come from (`source`).
    pub source: Option<IpAddr>,
}

/// What becomes of the field in which a server reports its load (`load-report`), once it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadReport {
    /// It stays here.
    Taken,
    /// The client gets it, too.
    Passed,
}

/// Whether a client's next request prefers the server of the one before (`prefer-last-server`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreferLast {
    /// It does, while that has a free slot.
    Yes,
    /// It is balanced like any other.
    No,
}

/// How one backend treats its servers.
#[derive(Clone, Debug)]
pub struct BackendSettings {
    /// From the start of a connect to its end (`timeout-connect`).
    pub connect: Micros,
    /// Without progress from or to the server (`timeout-server`).
    pub inactivity: Micros,
    /// In a queue (`timeout-queue`, Q-14).
    pub queue: Micros,
    /// Before the same server is tried again (RT-5).
    pub turn_around: Micros,
    /// What of a request is hashed, where the algorithm hashes.
    pub hashed: Option<KeyOf>,
    /// The cookie that names a server, if one is inserted (LB-52).
    pub persistence: Option<Persistence>,
    /// Whether a client's next request goes where the one before went (LB-51).
    pub last: PreferLast,
    /// How connections are shared, kept and closed.
    pub pool: PoolSettings,
    /// What is tried for one request.
    pub effort: Effort,
    /// How many may be on another attempt, if that is limited.
    pub budget: Option<Budget>,
    /// What becomes of the load that servers report; `None` where it is not looked for.
    pub load_report: Option<LoadReport>,
    /// Edits of requests to this backend.
    pub request_edits: Edits,
    /// Edits of responses from this backend.
    pub response_edits: Edits,
}
