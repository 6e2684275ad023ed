//! A policy in its place: what it offers, and who makes the instances that are asked.
//!
//! An *attachment* is one policy at one backend or listener, in one generation of the configuration. It is shared by
//! all threads and makes what each of them holds for itself: a [`Policy`] for a worker, a [`Planner`] for the control
//! thread. A place without a policy holds none, and pays one branch.

use super::ServerIndex;
use super::ask::{Asked, Edits, Pick, RouteAsked, Routed, Shown};
use super::fault::Fault;
use super::granted::Number;
use super::measure::Measure;
use super::plan::{Plan, PlanView};
use super::queue::{Standing, Verdict, Waits};
use super::reuse::{PoolWish, Preference};
use std::sync::Arc;
use std::time::Duration;

/// The most attributes that a policy may ask for.
pub const ATTRIBUTES_MAX: usize = 16;
/// The most headers that a policy may edit.
pub const HEADERS_MAX: usize = 16;

/// A policy at one backend or listener, loaded and configured.
pub trait Attachment: Send + Sync {
    /// What it answers, and what it wants to see.
    fn offers(&self) -> &Offers;

    /// An instance for a worker, which alone will call it. `now` is as in [`Asked::now`].
    fn policy(&self, now: Duration) -> Result<Box<dyn Policy>, Fault>;

    /// An instance for the control thread.
    fn planner(&self, now: Duration) -> Result<Box<dyn Planner>, Fault>;

    /// Whether an instance of it still lives. Dropping the last owner of an attachment frees its code, which takes
    /// long for a thread that serves: a generation that was replaced waits for this on the control thread.
    fn is_used(&self) -> bool;
}

/// What is asked on a worker. Whoever asks counts each fault and decides by itself.
///
/// A policy looks after itself: after a fault it makes a new instance when it is asked next, within a budget, and
/// shows it the table that it was shown last; after too many it answers [`Fault::Quarantined`] for a while.
pub trait Policy: Send {
    /// Whether there is a point in asking now. Costs a comparison; ask before attributes are gathered.
    fn ready(&self, now: Duration) -> bool;

    /// The table of the backend, before the first [`Self::pick`] and whenever it changes.
    fn table(&mut self, shown: &Shown, now: Duration) -> Result<(), Fault>;

    /// The servers whose measures it reads, for an instance that is shown no table.
    fn follow(&mut self, _: &Shown) {}

    /// The server for a request; `None` for no opinion. What is named exists in the table shown last; whether it takes
    /// requests is for the caller to see.
    fn pick(&mut self, asked: &Asked<'_>, avoid: Option<ServerIndex>) -> Result<Option<Pick>, Fault>;

    /// Who answers a request. `edits` is emptied, and filled if the answer is `Ok`.
    fn route(&mut self, asked: &RouteAsked<'_>, edits: &mut Edits) -> Result<Routed, Fault>;

    /// How the connection of a request is to be shared; `None` for no opinion. Whether a looser mode than configured
    /// is granted is for the caller to see.
    fn prefer(&mut self, asked: &Asked<'_>, nth: Nth) -> Result<Option<Preference>, Fault>;

    /// Where a request that is about to wait stands; `None` for no opinion.
    fn classify(&mut self, asked: &Asked<'_>, waits: &Waits) -> Result<Option<Standing>, Fault>;

    /// Whether a request that is about to wait may; `None` for no opinion. Its class is the one it has by now; its
    /// offset is not told.
    fn admit(&mut self, asked: &Asked<'_>, waits: &Waits) -> Result<Option<Verdict>, Fault>;

    /// What it has used, as far as somebody counts.
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// Which request of its client's connection it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// The first: nobody could know that a connection died under it (POOL-11).
    First,
    /// Any later one.
    Later,
}

/// What is asked on the control thread.
pub trait Planner: Send {
    /// A plan for these servers, checked ([`Plan::check`]); `None` for no opinion.
    fn plan(&mut self, view: &PlanView<'_>) -> Result<Option<Plan>, Fault>;

    /// What the connections to these servers should be, checked ([`super::check_wishes`]); `None` for no opinion, an
    /// empty list to withdraw what was wished before.
    fn plan_reuse(&mut self, view: &PlanView<'_>) -> Result<Option<Vec<PoolWish>>, Fault>;

    /// What it has used, as far as somebody counts.
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// What an instance has used. What is `None` is not counted where it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of its last call; only a host for tests counts it.
    pub fuel: Option<Fuel>,
    /// Bytes of memory that it holds now.
    pub memory: Option<u64>,
}

/// Units of work of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuel {
    /// So many it took.
    pub used: u64,
    /// So many it might have taken.
    pub allowed: u64,
}

/// What a policy answers, and what it wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Plans.
    pub plan: bool,
    /// A server for each request.
    pub pick: bool,
    /// A route for each request.
    pub route: bool,
    /// How the connection of each request is shared.
    pub reuse: bool,
    /// How many connections there are.
    pub reuse_plan: bool,
    /// In which order requests wait.
    pub classify: bool,
    /// Whether a request may wait.
    pub admit: bool,
    /// In the order of their indices; [`Asked::attributes`] has one value for each.
    pub attributes: Box<[Attribute]>,
    /// The names of headers that it edits, in the order of their indices, in lower case.
    pub headers: Box<[Box<str>]>,
    /// What it reads of servers beside their columns, in the order of their indices.
    pub measures: Box<[Measure]>,
    /// What it counts, in the order of their indices.
    pub numbers: Arc<[Number]>,
}

/// Something of a request that a policy may see. Names of headers are in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// `method`
    Method,
    /// `scheme`
    Scheme,
    /// `host`, in lower case, without port.
    Host,
    /// `path`, without query.
    Path,
    /// `query`, without `?`.
    Query,
    /// `query:NAME`
    QueryParameter(Box<str>),
    /// `header:NAME`, fields of one name joined.
    Header(Box<str>),
    /// `cookie:NAME`
    Cookie(Box<str>),
    /// `client-address`
    ClientAddress,
    /// `listener`
    Listener,
    /// `backend`: what the rules chose, or what has the request.
    Backend,
}

impl Attribute {
    /// From the name that a policy gives it.
    pub fn parse(name: &str) -> Option<Attribute> {
        let plain = match name {
            "method" => Some(Attribute::Method),
            "scheme" => Some(Attribute::Scheme),
            "host" => Some(Attribute::Host),
            "path" => Some(Attribute::Path),
            "query" => Some(Attribute::Query),
            "client-address" => Some(Attribute::ClientAddress),
            "listener" => Some(Attribute::Listener),
            "backend" => Some(Attribute::Backend),
            _ => None,
        };
        if plain.is_some() {
            return plain;
        }
        match name.split_once(':')? {
            ("query", of) if !of.is_empty() => Some(Attribute::QueryParameter(of.into())),
            ("header", of) if is_token(of) => Some(Attribute::Header(of.to_ascii_lowercase().into())),
            ("cookie", of) if is_token(of) => Some(Attribute::Cookie(of.into())),
            _ => None,
        }
    }
}

/// Whether that is a token (RFC 9110 §5.6.2), as names of headers and cookies are.
pub fn is_token(text: &str) -> bool {
    let symbol = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    !text.is_empty() && text.bytes().all(symbol)
}

/// What a policy is told before anything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// The policy's name in the configuration.
    pub policy: String,
    /// The name of the backend or listener; empty when only the configuration is being checked.
    pub attachment: String,
    /// Its own configuration as JSON text; `{}` for none.
    pub config: String,
    /// Backends that a route may name.
    pub backends: Vec<String>,
    /// Redirects that a route may name.
    pub redirects: Vec<String>,
    /// Fixed responses that a route may name.
    pub responses: Vec<String>,
}

/// Where a policy's host tells what operators should know. Called on any thread, never under a lock of `shared`; a call
/// must not wait.
pub trait Journal: Send + Sync {
    /// A guest wrote a line. The text is at most 1024 bytes and has no control characters.
    fn said(&self, who: &Attached, level: Level, text: &str);
    /// An answer was not used. Counting is for whoever asked; this is the detail for the log.
    fn fault(&self, who: &Attached, fault: Fault, detail: &str);
    /// The policy is not asked for so long.
    fn paused(&self, who: &Attached, why: Fault, pause: Duration);
    /// It is asked again.
    fn resumed(&self, who: &Attached);
}

/// A policy's name and that of its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attached {
    /// `[policy.NAME]`
    pub policy: Box<str>,
    /// The backend or listener; empty when only the configuration is being checked.
    pub place: Box<str>,
}

/// How much a guest's line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something is broken.
    Error,
    /// Something may break.
    Warn,
    /// Something happened.
    Info,
    /// For who writes the policy.
    Debug,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_parsed() {
        assert_eq!(Attribute::parse("host"), Some(Attribute::Host));
        assert_eq!(
            Attribute::parse("header:X-User"),
            Some(Attribute::Header("x-user".into()))
        );
        assert_eq!(Attribute::parse("cookie:A"), Some(Attribute::Cookie("A".into())));
        for wrong in ["", "Host", "header:", "header:a b", "cookie", "query:", "body:x"] {
            assert_eq!(Attribute::parse(wrong), None, "{wrong}");
        }
    }
}
