//! Publication of a generation, and what it means for those who wait in queues.
//!
//! Before: the queues of its servers are opened, so that nobody finds one closed that may be used. The swap. After: who
//! waited for a server that has gone is sent back, and everybody where the last one has; their workers are told, and
//! look for themselves at what the new tables have free.

use super::Control;
use crate::net::{Address, Connection};
use crate::observe::messages::{Fields, Level};
use crate::shared::generation::Generation;
use crate::shared::orders::Order;
use crate::shared::queue::Grants;
use std::sync::Arc;

/// Everything that requests are handled by.
type Current = Generation<Connection, Address>;

/// Lets requests wait for the servers of a generation; before it is published.
pub(super) fn open_queues(generation: &Current) {
    generation.backends.iter().for_each(|entry| entry.table.open());
}

impl Control {
    /// Publishes a generation. The caller wakes the workers.
    pub(super) fn publish(&self, generation: Current) {
        open_queues(&generation);
        let generation = Arc::new(generation);
        let former = self.published.swap(generation.clone());
        let mut grants = Grants::new();
        for was in &former.backends {
            let mut backends = generation.backends.iter();
            let sent = match backends.find(|now| now.table.id == was.table.id) {
                Some(now) => now.table.send_back(&was.table, &mut grants),
                None => was.table.retire(&mut grants),
            };
            if sent > 0 {
                let fields: Fields = &[("backend", &was.table.name), ("sessions", &sent)];
                self.messages.tell(
                    Level::Notice,
                    "sessions were requeued: their server has gone",
                    fields,
                );
            }
        }
        for grant in grants.drain() {
            let _ = self.postboxes[usize::from(grant.worker.0)].send(Order::Woken(grant.token));
        }
    }
}
