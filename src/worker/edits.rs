//! Header edits of a message on its way: those of the rules first, then those of a policy.
//!
//! What a response needs is made while the request is at hand and kept with the exchange; where nothing is edited
//! nothing is kept, and a response goes out as it came.

use super::begin::Incoming;
use super::consult::apply_edits;
use super::{Current, Worker};
use crate::decide::additions;
use crate::decide::edit::Edits;
use crate::decide::route::BackendRef;
use crate::http1::{RequestHead, ResponseHead};
use crate::net::Key;
use crate::policy::Message;
use crate::shared::generation::ListenerId;

/// What becomes of a response's header.
#[derive(Debug)]
pub(super) struct ResponseEdits {
    /// Header lines of ours.
    pub(super) lines: Vec<u8>,
    /// Names of fields that a policy removes or replaces, each with a line feed.
    pub(super) dropped: Vec<u8>,
}

impl Worker {
    /// Header lines of ours, after the client's own were dropped where they are not to go on.
    pub(super) fn prepare_additions(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
        head: &mut RequestHead,
    ) {
        let Incoming {
            key,
            place,
            route,
            asked,
            bytes,
        } = incoming;
        let Worker {
            tables,
            sessions,
            additions,
            edits,
            ..
        } = self;
        let session = sessions.get(*key).expect("the session that sent the head");
        let generation = tables.get(*place);
        let entry = generation
            .listener(session.listener)
            .expect("its limits were read");
        let of_backend = &generation.backends[usize::from(backend.0)].settings.request_edits;
        additions::prepare(&entry.settings, *route, of_backend, asked, head, bytes, additions);
        if let Some(policy) = entry.policy.as_ref().filter(|_| !edits.is_empty()) {
            let headers = &policy.attachment.offers().headers;
            let drop = |name: &[u8]| head.drop_named(bytes, name);
            apply_edits(edits, Message::Request, headers, drop, additions);
        }
    }

    /// What becomes of the response's header; `None` where nothing is edited.
    pub(super) fn prepare_response_edits(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
    ) -> Option<ResponseEdits> {
        let Incoming {
            key,
            place,
            route,
            asked,
            ..
        } = incoming;
        let Worker {
            tables,
            sessions,
            buffers,
            edits,
            ..
        } = self;
        let session = sessions.get(*key)?;
        let generation = tables.get(*place);
        let all = response_edits(generation, session.listener, *route, backend.0);
        let of_policy = edits.iter().any(|(edit, _)| edit.message == Message::Response);
        if !of_policy && all.iter().flatten().all(|edits| edits.is_empty()) {
            return None;
        }
        let mut made = ResponseEdits {
            lines: buffers.small(),
            dropped: Vec::new(),
        };
        all.iter()
            .flatten()
            .for_each(|edits| edits.render(asked, &mut made.lines));
        if of_policy && let Some(policy) = &generation.listener(session.listener)?.policy {
            let ResponseEdits { lines, dropped } = &mut made;
            *dropped = buffers.small();
            let drop = |name: &[u8]| {
                dropped.extend_from_slice(name);
                dropped.push(b'\n');
            };
            apply_edits(
                edits,
                Message::Response,
                &policy.attachment.offers().headers,
                drop,
                lines,
            );
        }
        Some(made)
    }

    /// Applies the edits of a response: its own fields go, ours are in `additions`.
    pub(super) fn prepare_response_additions(
        &mut self,
        exchange: Key,
        head: &mut ResponseHead,
        bytes: &[u8],
    ) {
        self.additions.clear();
        let Worker {
            tables,
            sessions,
            exchanges,
            additions,
            ..
        } = self;
        let Some(live) = exchanges.get(exchange) else {
            return;
        };
        let Some(made) = &live.response_edits else { return };
        let Some(session) = sessions.get(live.session) else {
            return;
        };
        let all = response_edits(
            tables.get(live.begun.generation),
            session.listener,
            live.route,
            live.begun.backend,
        );
        for edits in all.iter().flatten() {
            edits.drop_fields(|name| head.drop_named(bytes, name));
        }
        let dropped = made
            .dropped
            .split(|byte| *byte == b'\n')
            .filter(|name| !name.is_empty());
        dropped.for_each(|name| head.drop_named(bytes, name));
        additions.extend_from_slice(&made.lines);
    }
}

/// Edits of a response by the rules, in the order they apply: listener, route, backend.
fn response_edits(
    generation: &Current,
    listener: ListenerId,
    route: Option<u16>,
    backend: u16,
) -> [Option<&Edits>; 3] {
    let listener = generation.listener(listener).map(|entry| &entry.settings);
    [
        listener.map(|settings| &settings.response_edits),
        listener
            .zip(route)
            .map(|(settings, at)| &settings.routes.routes[usize::from(at)].response_edits),
        Some(&generation.backends[usize::from(backend)].settings.response_edits),
    ]
}
