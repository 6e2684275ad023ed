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

impl Control {
    /// Publishes a generation. The caller wakes the workers.
    pub(super) fn publish(&self, generation: Generation<Connection, Address>) {
        generation.open_queues();
        let generation = Arc::new(generation);
        let former = self.published.swap(generation.clone());
        let mut grants = Grants::new();
        for (backend, sent) in generation.succeed(&former, &mut grants) {
            let fields: Fields = &[("backend", &backend), ("sessions", &sent)];
            self.messages.tell(
                Level::Notice,
                "sessions were requeued: their server has gone",
                fields,
            );
        }
        for grant in grants.drain() {
            let _ = self.postboxes[usize::from(grant.worker.0)].send(Order::Woken(grant.token));
        }
    }
}
