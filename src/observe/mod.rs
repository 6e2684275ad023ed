//! What people and machines get to see of the running proxy.
//!
//! Four subjects that never share a module:
//!
//! - **operator messages**, [`messages`]: one line per event, for whoever runs the process;
//! - **log formats**, [`mod@format`]: how one finished request ([`record`]) reads;
//! - **log writing**, [`batch`] and [`writer`]: records leave a worker in batches, another thread writes them;
//! - **metrics**, [`metrics`] and [`exporter`]: the numbers of one [`snapshot`] as Prometheus text, over HTTP.
//!
//! Nothing here may stop a worker: what cannot be written is dropped and counted. This module reads nothing of the
//! rest of the program; `control` fills a [`snapshot::Snapshot`], a worker fills a [`record::Record`].

pub mod acceptor;
pub mod batch;
pub mod calendar;
pub mod encoding;
pub mod exporter;
mod families;
pub mod format;
pub mod messages;
pub mod metrics;
pub mod outlet;
pub mod record;
pub mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
pub mod timed;
pub mod writer;
