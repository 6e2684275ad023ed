//! The seam between the core and whoever answers its questions: traits and plain-data views.
//!
//! A native balancer and a WebAssembly component are asked through what stands here. This module knows no wasmtime and no
//! mio; it depends on nothing of ours.
//!
//! | part | what |
//! |---|---|
//! | here | identities, and the table that native balancers read |
//! | `attach` | a policy in its place: what it offers, who makes its instances, where it tells what happens |
//! | `ask` | what is asked while a request waits, and the answers |
//! | `plan` | what is asked while none does: a table that the core executes |
//! | `reuse` | what is asked about connections, for one request and for one server |
//! | `queue` | what is asked about a request that is about to wait |
//! | `measure` | what may be read of servers beyond that |
//! | `granted` | what a policy has only where the operator grants it |
//! | `fault` | why an answer was not used |

mod ask;
mod attach;
mod fault;
mod granted;
mod measure;
mod plan;
mod queue;
mod reuse;

pub use ask::{
    Asked, Change, Columns, Edit, Edits, Given, Live, Message, Pick, RouteAsked, Routed, Shown, State, Target,
};
pub use attach::{
    ATTRIBUTES_MAX, Attached, Attachment, Attribute, Fuel, HEADERS_MAX, Journal, Level, Nth, Offers, Planner,
    Policy, Setup, Usage, is_token,
};
pub use fault::{Fate, Fault};
pub use granted::{Grant, Grants, Keeper, NUMBERS_MAX, Number, NumberKind, STORE_MAX, Tally, is_number_name};
pub use measure::{MEASURES_MAX, Measure, REPORT_NAME_MAX, Reading, Windowed};
pub use plan::{
    LIFETIME_MAX, MEMBER_WEIGHT_MAX, Member, Plan, PlanServer, PlanView, Selector, Spill, TIERS_MAX, Tier,
};
pub use queue::{CLASSES, OFFSETS, Priority, RETRY_AFTER_MAX, Rejection, Standing, Verdict, Waits};
pub use reuse::{CONNECTIONS_MAX, Fresh, PoolWish, Preference, WishedSharing, check_wishes};

/// A worker thread, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

/// A backend, by its name, for the life of the process. Survives reloads (DESIGN: identity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendId(pub u32);

/// A server, by (backend, name), for the life of the process. Survives reloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u32);

/// The place of a server in one table: what balancers and plugins see. Valid for that table only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerIndex(pub u16);

impl ServerIndex {
    /// As an index into the table's slices.
    pub fn at(self) -> usize {
        usize::from(self.0)
    }
}

/// What may be asked of one backend's table while a server is chosen. Columns are indexed by [`ServerIndex`].
pub trait Table {
    /// Number of servers in the table, usable or not. At most 4095 (LB-13).
    fn len(&self) -> usize;
    /// Whether the table has no server at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Effective weight, 0…4096: the user's weight × 16 (LB-1).
    fn weight(&self, server: ServerIndex) -> u32;
    /// Whether a new balanced request may go there (LB-2): weight above 0, neither in maintenance nor draining.
    fn usable(&self, server: ServerIndex) -> bool;
    /// Streams that hold a slot now.
    fn served(&self, server: ServerIndex) -> u32;
    /// Streams that wait in the server's own queue now.
    fn waiting(&self, server: ServerIndex) -> u32;
    /// The most streams that may hold a slot; `u32::MAX` where there is no limit.
    fn limit(&self, server: ServerIndex) -> u32;
    /// The most streams that may wait in the server's own queue (`maxqueue`, Q-5); `None` without a limit: then only who
    /// is tied to the server waits there (LB-21).
    fn queue_max(&self, _: ServerIndex) -> Option<u32> {
        None
    }
    /// Whether it is to be preferred among equals: a connection to it is idle, or that does not matter
    /// (`prefer-idle`).
    fn is_warm(&self, _: ServerIndex) -> bool {
        true
    }
    /// Whether the server cannot take a request at once: full, or others wait for it already.
    fn saturated(&self, server: ServerIndex) -> bool {
        self.waiting(server) > 0 || self.served(server) >= self.limit(server)
    }
}

/// Where the core's randomness comes from: an argument everywhere, so that one seed is one run.
pub trait Draw {
    /// A number drawn uniformly from `0..bound`. `bound` is at least 1.
    fn draw(&mut self, bound: u32) -> u32;
}
