//! How the servers of a run stood, once in so long.

use super::delays::Delays;
use crate::decide::settings::Micros;
use crate::shared::server::Server;
use std::sync::Arc;

/// How the servers stood at one time, and what had happened since the time before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Micros,
    /// Requests that each server was sent since the time before, by id.
    pub requests: Vec<u32>,
    /// Requests that each has under way.
    pub in_flight: Vec<u32>,
    /// Requests that wait in all queues.
    pub waiting: u32,
    /// Of the responses since the time before: from the request to them.
    pub latency: Delays,
    /// Of those who waited and got a slot since the time before.
    pub queueing: Delays,
    /// Requests that got no response since the time before.
    pub failed: u32,
    /// Requests that got a connection that was there.
    pub reused: u32,
    /// Requests that got a new one.
    pub opened: u32,
}

/// What happens between two samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sampled {
    requests: Vec<u32>,
    pub(super) latency: Delays,
    pub(super) queueing: Delays,
    pub(super) failed: u32,
    pub(super) reused: u32,
    pub(super) opened: u32,
}

impl Sampled {
    pub(super) fn served(&mut self, server: usize) {
        if self.requests.len() <= server {
            self.requests.resize(server + 1, 0);
        }
        self.requests[server] += 1;
    }

    pub(super) fn sample<C>(mut self, at: Micros, servers: &[Arc<Server<C>>], queued: u32) -> Sample {
        self.requests.resize(servers.len(), 0);
        let own: u32 = servers.iter().map(|server| server.slots.waiting()).sum();
        Sample {
            at,
            requests: self.requests,
            in_flight: servers.iter().map(|server| server.slots.served()).collect(),
            waiting: queued + own,
            latency: self.latency,
            queueing: self.queueing,
            failed: self.failed,
            reused: self.reused,
            opened: self.opened,
        }
    }
}
