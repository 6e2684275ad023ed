//! The validated configuration: values that cannot be wrong.
//!
//! Made only by [`super::load`]; everything else in the program reads it. No key of the file is looked at twice.

pub use crate::decide::balance::hash::{Affinity, Hash, Mapping, Otherwise};
pub use crate::decide::balance::key::KeyOf;
pub use crate::decide::budget::Budget;
use crate::decide::edit::Edits;
pub use crate::decide::exchange::{Redispatch, RetryOn};
pub use crate::decide::persist::SameSite;
pub use crate::decide::reuse::{KeepRule, Mode, Override, Sharing};
use crate::decide::route::{Action, RouteTable};
pub use crate::decide::settings::LoadReport;
use crate::decide::template::Template;
pub use crate::net::Address;
pub use crate::policy::Grants;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// One whole configuration file.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[process]`.
    pub process: Process,
    /// `[[listen]]`, in file order. At least one.
    pub listeners: Vec<Listen>,
    /// `[backend.NAME]`, in file order. Routes name a backend by its place here.
    pub backends: Vec<Backend>,
    /// `[policy.NAME]`, in file order. Backends and listeners name a policy by its place here.
    pub policies: Vec<Policy>,
}

impl Config {
    /// The policy of that place.
    pub fn policy(&self, policy: PolicyRef) -> &Policy {
        &self.policies[usize::from(policy.0)]
    }
}

/// A path of the file. What is relative begins at the folder of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePath {
    /// As written.
    pub written: String,
    /// Where it leads from the working folder of the process.
    pub path: PathBuf,
}

/// `[process]`: what the whole process shares.
#[derive(Clone, Debug)]
pub struct Process {
    /// Worker threads, 1…64.
    pub workers: u16,
    /// Unix socket of the runtime commands, if any.
    pub control: Option<PathBuf>,
    /// Address of the Prometheus metrics, if any.
    pub metrics: Option<SocketAddr>,
    /// The access log.
    pub log: Log,
    /// Percent of the descriptor limit below which idle server connections are kept freely (POOL-33).
    pub pool_low_fd_ratio: u8,
    /// Percent of the descriptor limit from which no idle server connection is kept (POOL-33). Not below the low one.
    pub pool_high_fd_ratio: u8,
    /// Whether a worker takes over idle server connections of others (POOL-21).
    pub pool_sharing: Sharing,
    /// How long a drain may last before what is left is cut (RE-1).
    pub hard_stop_after: Duration,
    /// Places where policies may be attached, at most. Listeners and backends of the file together are within it.
    pub attachments_max: u16,
    /// Folder of compiled components, if they are kept.
    pub plugin_cache: Option<FilePath>,
}

/// The access log: its form and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How one request is written.
    pub format: LogFormat,
    /// Where the lines go.
    pub to: LogTarget,
}

/// How one request is written to the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// One line for people.
    Human,
}

/// Where access log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Nowhere: no record is made at all.
    None,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Appended to a file, which is opened again on SIGHUP.
    File(PathBuf),
}

/// `[[listen]]`: where clients come from and what becomes of their requests.
#[derive(Clone, Debug)]
pub struct Listen {
    /// `name`, or `listen-N`.
    pub name: String,
    /// Addresses, at least one.
    pub bind: Vec<Address>,
    /// Workers that accept here, counted from 0; empty for all. (The file counts from 1.)
    pub workers: Vec<u16>,
    /// Phase limits of the client's side.
    pub timeouts: ClientTimeouts,
    /// Limits of a request's head.
    pub limits: HeadLimits,
    /// Idle private server connections of one client connection, at most (POOL-61).
    pub session_private_max: usize,
    /// Routes in order, then the default backend.
    pub routes: RouteTable,
    /// `name` of each route of [`Self::routes`], in the same order. Names are unique here.
    pub route_names: Vec<Option<String>>,
    /// Who is asked after the routes.
    pub route_policy: Option<PolicyRef>,
    /// Edits of every request that goes to a server, before those of the route.
    pub request_edits: Edits,
    /// Edits of every response that comes from a server, before those of the route.
    pub response_edits: Edits,
    /// What becomes of `X-Forwarded-For`, `-Proto` and `-Host`.
    pub forwarded: Forwarded,
    /// Pseudonym for the `Via` field of requests (RFC 9110 §7.6.3), if one is added.
    pub via: Option<String>,
}

impl Listen {
    /// The redirects that a policy may choose: name, and place among the routes.
    pub fn redirects(&self) -> impl Iterator<Item = (&str, usize)> {
        self.named(|action| matches!(action, Action::Redirect(_)))
    }

    /// The fixed responses that a policy may choose: name, and place among the routes.
    pub fn responses(&self) -> impl Iterator<Item = (&str, usize)> {
        self.named(|action| matches!(action, Action::Respond(_)))
    }

    fn named(&self, of_kind: impl Fn(&Action) -> bool) -> impl Iterator<Item = (&str, usize)> {
        let routes = self.routes.routes.iter().zip(&self.route_names);
        routes
            .enumerate()
            .filter(move |(_, (route, _))| of_kind(&route.action))
            .filter_map(|(at, (_, name))| Some((name.as_deref()?, at)))
    }
}

/// What becomes of the `X-Forwarded-*` fields of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// Ours are added; `X-Forwarded-For` of the client is kept before ours, its `-Proto` and `-Host` are replaced.
    Append,
    /// Whatever the client sent is removed, then ours are added.
    Replace,
    /// Nothing is added and nothing removed.
    Off,
}

/// Phase limits of the client's side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientTimeouts {
    /// From the first byte of a request to the end of its head (408).
    pub http_request: Duration,
    /// Without any progress from or to the client within a request.
    pub inactivity: Duration,
    /// Between two requests.
    pub http_keep_alive: Duration,
    /// Without any byte in either direction after an upgrade.
    pub tunnel: Duration,
}

/// Limits of a request's head; beyond: 414 or 431.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head, 1 KiB…60 KiB.
    pub head_max: usize,
    /// Bytes of the request line.
    pub request_line_max: usize,
    /// Number of header fields, 1…256.
    pub headers_max: usize,
}

/// `[backend.NAME]`: servers that answer the same requests.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The name in the file.
    pub name: String,
    /// How a server is chosen; with a policy: when it has no say.
    pub balance: Balance,
    /// Who is asked first.
    pub policy: Option<PolicyRef>,
    /// Who is asked about connections.
    pub reuse_policy: Option<PolicyRef>,
    /// Who is asked about requests that wait.
    pub queue_policy: Option<PolicyRef>,
    /// How server connections are shared, kept and closed.
    pub pool: Pool,
    /// What is tried again, how often and where.
    pub attempts: Attempts,
    /// What each server takes at a time, unless it says otherwise.
    pub limits: ServerLimits,
    /// Requests in the backend from which on limits are whole.
    pub fullconn: u32,
    /// Phase limits of the servers' side.
    pub timeouts: ServerTimeouts,
    /// Whether all backup servers stand in together (`allbackups`).
    pub all_backups: bool,
    /// How long a returning server takes to its full weight; `None` for no time (`slowstart`).
    pub slow_start: Option<Duration>,
    /// Whether a client's next request goes where the one before went (`prefer-last-server`).
    pub prefer_last_server: bool,
    /// The cookie that names a server, if one is inserted.
    pub cookie: Option<Cookie>,
    /// What becomes of the load that servers report.
    pub load_report: LoadReports,
    /// Servers in file order, at least one, names unique.
    pub servers: Vec<Server>,
    /// Edits of requests to this backend, after those of the route.
    pub request_edits: Edits,
    /// Edits of responses from this backend, after those of the route.
    pub response_edits: Edits,
}

/// How a backend chooses a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The least loaded of so many draws (LB-30); 2 is the default.
    Random(u8),
    /// Smooth weighted rotation (LB-10).
    RoundRobin,
    /// The fewest requests in flight per weight (LB-20).
    LeastConn,
    /// The first with a free slot (LB-50).
    First,
    /// One until it is gone (LB-50).
    Sticky,
    /// A hash of the request (LB-42).
    Hash(Box<HashBalance>),
}

/// How a hash chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashBalance {
    /// What of a request is hashed.
    pub of: KeyOf,
    /// How it is mapped to servers.
    pub hash: Hash,
    /// What of a server decides which values are its own.
    pub by: HashKey,
}

/// What of a server decides where it stands for a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// Its name.
    Name,
    /// Its address.
    Address,
}

/// The cookie that names a server (LB-52).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// A token.
    pub name: String,
    /// `HttpOnly`.
    pub http_only: bool,
    /// `Secure`.
    pub secure: bool,
    /// `SameSite`.
    pub same_site: SameSite,
    /// `Path`.
    pub path: String,
    /// `Domain`, if one is said.
    pub domain: Option<String>,
    /// `Max-Age`; `None` for as long as the client's session lasts.
    pub max_age: Option<Duration>,
    /// Whether a response that sets it is kept out of shared caches.
    pub private: bool,
}

/// The connections to the servers of one backend.
#[derive(Clone, Debug)]
pub struct Pool {
    /// How they are shared between clients (POOL-11).
    pub reuse: Mode,
    /// Whether a policy may loosen that (`reuse-override`).
    pub overriding: Override,
    /// `pool-low-conn` (POOL-22).
    pub low: u32,
    /// `pool-max-conn`; `None` for no limit.
    pub max: Option<u32>,
    /// `pool-purge-delay` (POOL-40); zero keeps nothing.
    pub purge_delay: Duration,
    /// `pool-keep`.
    pub keep: KeepRule,
    /// `max-reuse` (POOL-53); `None` for no limit.
    pub max_reuse: Option<u32>,
    /// `strict-maxconn` (POOL-51); `None` for no limit.
    pub strict_max: Option<u32>,
    /// `pool-conn-name` (POOL-2).
    pub name: Option<Template>,
    /// `source`: where they come from.
    pub source: Option<IpAddr>,
    /// `prefer-idle`.
    pub prefer_idle: bool,
}

/// What is tried again for one request, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// Attempts after the first (RT-1).
    pub retries: u8,
    /// What is tried again at all (RT-7).
    pub retry_on: RetryOn,
    /// When another server is tried (RT-3).
    pub redispatch: Redispatch,
    /// Before the same server is tried again (RT-5).
    pub delay: Duration,
    /// How many may be on another attempt, if that is limited.
    pub budget: Option<Budget>,
}

/// The load that servers report about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadReports {
    /// What becomes of it; `None` where it is not looked for (`load-report`).
    pub passing: Option<LoadReport>,
    /// How long it counts (`load-report-max-age`).
    pub age_max: Duration,
}

/// What a server takes at a time, and how many wait for it alone; `None` for no limit, or none that moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimits {
    /// `maxconn`.
    pub max: Option<u32>,
    /// `minconn`. Never above `max`, and never without.
    pub min: Option<u32>,
    /// `maxqueue`.
    pub queue: Option<u32>,
}

/// Phase limits of the servers' side.
#[derive(Clone, Copy, Debug)]
pub struct ServerTimeouts {
    /// From the start of a connect to its end.
    pub connect: Duration,
    /// Without any progress from or to the server within a request (504 before the response's head).
    pub inactivity: Duration,
    /// In a queue (503, Q-14).
    pub queue: Duration,
}

/// One server of a backend.
#[derive(Clone, Debug)]
pub struct Server {
    /// `name`, or the address as written.
    pub name: String,
    /// Where it listens.
    pub address: Address,
    /// User weight 0…256 (LB-1); 0 drains it.
    pub weight: u16,
    /// What it takes at a time: its own limits, or those of the backend.
    pub limits: ServerLimits,
    /// Whether it gets requests only while no other server can (`backup`).
    pub backup: bool,
    /// What names it in the backend's cookie; its own where none is said.
    pub cookie: Option<String>,
    /// Names and values that policies see, in the order of the names.
    pub tags: Vec<(String, String)>,
}

/// A policy, by its place in [`Config::policies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyRef(pub u16);

/// `[policy.NAME]`: a component, and what it may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The name in the file.
    pub name: String,
    /// Its file.
    pub component: FilePath,
    /// Its own configuration as JSON text, an object.
    pub config_json: String,
    /// How a server is chosen where it has no say. Never a policy.
    pub fallback: Balance,
    /// What becomes of a request when its route policy fails.
    pub on_fault: OnFault,
    /// How long one call may take.
    pub deadline: Duration,
    /// How long a call for a request may take on average.
    pub mean_max: Duration,
    /// Bytes of memory of one instance.
    pub memory_max: usize,
    /// Time between two questions for a plan.
    pub interval: Duration,
    /// What it may have beyond what every policy has.
    pub grants: Grants,
    /// The digest that the component must have, if one is given.
    pub sha256: Option<[u8; 32]>,
}

/// What becomes of a request when its route policy fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFault {
    /// What the routes chose.
    Fallback,
    /// It is refused. Only where no backend has the policy.
    Deny,
}
