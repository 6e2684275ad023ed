//! Which fields of a request the policies of its backend do not see any more: rules, the backend and a route policy take them
//! away or put others in their place. What is added goes out with the request and is shown to nobody, as in the proxy.

use super::consult::{Asking, Entry, asked, listener_of};
use super::run::Run;
use super::steering::Current;
use crate::decide::additions;
use crate::decide::edit;
use crate::decide::settings::Forwarded;
use crate::policy::{Change, Edits, Message};
use crate::shared::generation::{AttachedPolicy, ListenerEntry};
use std::sync::Arc;

/// What was decided about a request's fields on the way to its backend.
#[derive(Debug, Default)]
pub(super) struct OnTheWay {
    /// The rule that matched.
    pub(super) route: Option<u16>,
    /// What the route policy wants.
    pub(super) edits: Edits,
}

impl OnTheWay {
    pub(super) fn clear(&mut self) {
        self.route = None;
        self.edits.clear();
    }

    /// Whether anything is taken away or added.
    fn is_anything(&self, listener: &ListenerEntry, of_backend: &edit::Edits) -> bool {
        let settings = &listener.settings;
        let of_route = self
            .route
            .map(|at| &settings.routes.routes[usize::from(at)].request_edits);
        let mut all = [Some(&settings.request_edits), of_route, Some(of_backend)]
            .into_iter()
            .flatten();
        settings.forwarded != Forwarded::Off || !self.edits.is_empty() || all.any(|edits| !edits.is_empty())
    }
}

impl Run<'_> {
    /// Takes the fields away that no policy of the backend is shown, if any of them looks.
    pub(super) fn edit(&mut self, asking: Asking, generation: &Current, entry: &Entry) {
        let Some((_, listener)) = asking.listener.and_then(|at| listener_of(generation, at)) else {
            return;
        };
        let (way, of_backend) = (&self.on_the_way, &entry.settings.request_edits);
        if !somebody_looks(entry) || !way.is_anything(listener, of_backend) {
            return;
        }
        self.messages[usize::from(asking.traffic)].edit(|head, bytes| {
            let asked = asked((&*head, bytes), asking.client);
            let mut added = Vec::new();
            additions::prepare(
                &listener.settings,
                way.route,
                of_backend,
                &asked,
                head,
                bytes,
                &mut added,
            );
            let headers = listener
                .policy
                .as_ref()
                .map(|policy| &policy.attachment.offers().headers);
            for (edit, _) in way.edits.iter() {
                if let Some(headers) = headers
                    && edit.message == Message::Request
                    && edit.change != Change::Append
                {
                    head.drop_named(bytes, headers[usize::from(edit.header)].as_bytes());
                }
            }
        });
    }
}

fn somebody_looks(entry: &Entry) -> bool {
    let looks = |attached: &Arc<AttachedPolicy>| !attached.attachment.offers().attributes.is_empty();
    let picker = entry.policy.as_ref().map(|policy| &policy.attached);
    [picker, entry.reuse_policy.as_ref(), entry.queue_policy.as_ref()]
        .into_iter()
        .flatten()
        .any(looks)
}

#[cfg(all(test, feature = "proxy", feature = "wasm"))]
mod tests {
    use crate::sim::scenario::Scenario;

    /// How often header-shard was asked, and found no key, in a backend with these keys of its own.
    fn asked_without_key(keys: &str) -> (u64, u64) {
        let text = format!(
            r#"
            [scenario]
            about = "Keys, some of them taken away."
            workers = 1
            duration = "1s"
            [backend.app]
            servers = ["s[1-2]"]
            balance = {{ policy = "shard" }}
            {keys}
            [policy.shard]
            component = "plugins/header-shard/header-shard.wasm"
            [[server]]
            service = "1ms"
            [[request]]
            at = "0s"
            count = 10
            every = "10ms"
            headers = {{ x-shard-key = "all alike" }}
            "#
        );
        let scenario = Scenario::parse(&text, "edited.toml").unwrap_or_else(|failure| panic!("{failure}"));
        let outcome = scenario.run().unwrap_or_else(|failure| panic!("{failure}"));
        let row = &outcome.policies()[0];
        (row.calls, row.abstained)
    }

    /// A field that is removed or replaced on the way is none that a policy sees; one that is added besides changes nothing.
    #[test]
    fn policies_do_not_see_what_is_taken_away() {
        assert_eq!(asked_without_key(""), (10, 0));
        assert_eq!(
            asked_without_key("request-headers = { remove = [\"x-shard-key\"] }"),
            (10, 10)
        );
        assert_eq!(
            asked_without_key("request-headers = { set = { x-shard-key = \"ours\" } }"),
            (10, 10)
        );
        assert_eq!(
            asked_without_key("request-headers = { add = { x-other = \"ours\" } }"),
            (10, 0)
        );
    }
}
