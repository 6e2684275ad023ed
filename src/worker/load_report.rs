//! What a server reports about its load in the head of a response: read where its backend says so, and taken out of what
//! goes to the client.

use super::Worker;
use crate::decide::load_report::FIELD;
use crate::decide::settings::LoadReport;
use crate::http1::ResponseHead;
use crate::net::Key;
use std::time::Duration;

impl Worker {
    /// Reads the report in a final head, if there is one.
    pub(super) fn take_load_report(&mut self, exchange: Key, head: &mut ResponseHead, bytes: &[u8]) {
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        let backend = &self.tables.get(live.generation).backends[usize::from(live.backend)];
        let Some(passing) = backend.settings.load_report else {
            return;
        };
        let Some((server, report)) = live.account.server.zip(head.find(bytes, FIELD)) else {
            return;
        };
        backend
            .table
            .at(server)
            .reported(self.id, report, Duration::from_micros(self.now));
        if passing == LoadReport::Taken {
            head.drop_named(bytes, FIELD);
        }
    }
}
