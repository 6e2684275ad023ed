//! What two threads can touch on the path of a request, with its locks and atomics. Everything else belongs to one
//! worker.
//!
//! | file | what | protected by |
//! |---|---|---|
//! | [`slots`] | who holds a slot of a server, how many wait | one atomic word |
//! | [`queue`] | who waits for a slot, in which order | a lock per queue; one word per waiter |
//! | [`pool`], [`key`], [`need`] | idle connections; how many are needed | a lock per worker and server; one word |
//! | [`balancers`] | state of `roundrobin` and `leastconn`, of plans too | a lock per backend; one word |
//! | [`table`], `tiers`, [`server`] | one view of a backend, with its plan; what survives it | never changes; its parts |
//! | [`statistics`], [`latencies`] | numbers for people, and for policies | nothing: one writer each |
//! | [`load`] | what servers report about themselves | nothing: the latest counts |
//! | [`bell`], `mailbox` | messages between workers | one flag; a channel |
//!
//! No lock of this module is held together with another one, nor across a system call, a log line, a wake-up or a
//! guest. `tests/races.rs` tries the interleavings.

pub mod balancers;
pub mod bell;
pub mod buffers;
pub mod generation;
pub mod instances;
pub mod key;
pub mod latencies;
pub mod load;
#[cfg(feature = "proxy")]
pub mod mailbox;
pub mod need;
#[cfg(feature = "proxy")]
pub mod orders;
pub mod parked;
pub mod pool;
pub mod process;
pub mod queue;
pub mod server;
pub mod slots;
pub mod statistics;
pub mod strays;
pub mod table;
mod tiers;
