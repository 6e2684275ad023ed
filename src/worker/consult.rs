//! Asks who gets a request: the one place on the request path where something other than the core decides.

use super::Worker;
use crate::net::Key;
use crate::policy::ServerIndex;
use crate::shared::table::Source;

impl Worker {
    /// The server for a request, another than `avoid` if there is one (LB-3); `None` when none is usable.
    pub(super) fn choose(&mut self, exchange: Key, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let Worker {
            tables,
            exchanges,
            random,
            ..
        } = self;
        let live = exchanges.get_mut(exchange)?;
        let table = &tables.get(live.generation).backends[usize::from(live.backend)].table;
        // There is no queue yet: who should wait for a full tier of a plan is not refused for it.
        let choice = table.pick(avoid, random);
        let chosen = match choice.source {
            Source::Plan => choice.server.or_else(|| table.pick_natively(avoid, random)),
            Source::Native => choice.server,
        };
        if chosen.is_some() {
            live.account.server = chosen;
        }
        chosen
    }
}
