//! Workers, servers, clients and a clock that are not real, around decisions that are.
//!
//! A run answers *what would the pool do?* under a load that no test machine bears: sixteen workers and ten thousand
//! clients, on one thread, in virtual time. What decides is the code of production and not a model of it:
//! [`Pool`](crate::shared::pool::Pool) (search, take-over, parking, purge, eviction), [`reuse`](crate::decide::reuse),
//! the balancers behind [`BackendTable`](crate::shared::table::BackendTable), the
//! [`Slots`](crate::shared::slots::Slots), the [queues](crate::shared::queue). What is modelled, and simple on purpose:
//!
//! - A worker does one thing after another, in the order in which they came, and each takes the time that [`Costs`]
//!   says. There are no turns of a loop.
//! - A server answers after a drawn time, however many it serves; a network is a time to connect; nothing fails.
//! - At one instant the workers step in an order drawn from the seed, and a sibling's lock is busy when the seed says
//!   so ([`Cluster::contention`]). Real threads meet inside a step, too: that is for `tests/races.rs`.
//!
//! The same cluster with the same seed is the same run, byte for byte, on every machine. What must hold in all of them
//! ([`Invariant`]) is looked at in each, unasked.
//!
//! ```
//! use forebay::sim::{Clients, Cluster, Load, Span, VirtualServer};
//!
//! let server = VirtualServer::answering(Span::Exponential { mean: 2_000 });
//! let mut cluster = Cluster::new(4, 8, server);
//! cluster.load = Load::Clients(Clients::thinking(100, Span::Constant(10_000)));
//! cluster.duration = 2_000_000;
//!
//! let report = cluster.run(1).expect("no invariant is broken");
//! let total = report.total();
//! assert!(total.reuse_percent() > 95.0, "{report}");
//! assert_eq!(report, cluster.run(1).unwrap(), "one seed is one run");
//! ```
//!
//! | file | what |
//! |---|---|
//! | `cluster` | what is simulated, as plain data |
//! | `run` | the loop: events in virtual time, workers that are busy, clients that come back |
//! | `request`, `release` | what a worker does for a request, and after a response |
//! | `waiting` | choose, take a slot or wait for one, give it back |
//! | `connections` | where each connection is, and what must hold of it |
//! | `message`, `edits` | what a request says; which fields of it are taken away |
//! | `agenda`, `random` | what comes next; chance |
//! | `report`, `invariant` | what was seen |
//! | [`picture`] | what was seen over time, as a page |
//! | [`kit`] | whether a policy behaves, in situations that it shares with no run |

mod agenda;
mod candidates;
mod cluster;
mod connections;
mod consult;
mod decision;
mod delays;
mod edits;
mod flow;
mod invariant;
pub mod kit;
mod lend;
mod live;
mod machine;
mod message;
pub mod picture;
mod random;
mod release;
mod report;
mod run;
mod sample;
#[cfg(feature = "proxy")]
pub mod scenario;
mod steering;
mod traffic;
mod waiting;
mod world;

pub use cluster::{Change, Cluster, Load, Patience, ScriptedRequest, VirtualServer};
pub use connections::Name;
pub use decision::{Chooser, Decision, End, Lent, Queued};
pub use delays::Delays;
pub use invariant::{Broken, Invariant};
pub use random::Span;
pub use report::{Report, Second, Tally};
pub use sample::Sample;
pub use steering::Nowhere;
pub use traffic::{Asks, Clients, Keys, Line, Open, Phase, Traffic, Who, Zipf};
pub use world::{Costs, Estimate, Faults, Marks, Model, Split, Watch, World};

use run::Run;

impl Cluster {
    /// Runs it with the chance that this seed gives, to its end: until nobody asks any more and all is closed.
    ///
    /// Panics if a number is outside the range that its field names.
    ///
    /// # Errors
    ///
    /// An invariant that did not hold.
    pub fn run(&self, seed: u64) -> Result<Report, Broken> {
        self.check();
        let mut operator = cluster::Operator::new(self, seed);
        Run::new(&self.world(), &mut operator, seed).finish()
    }
}
