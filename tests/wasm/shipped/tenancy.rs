//! The questions to a policy that says how connections are shared: requests of several tenants, first ones and later ones.

use super::request::{Request, asked};
use super::{Transcript, attach};
use forebay::policy::{Fresh, Nth, Preference};
use forebay::wasm::Loaded;
use std::time::Duration;

/// As an operator writes it, in JSON.
const ALL_KEYS: &str = r#"{"cookie":"tenant","first-request":"never","header":"x-org"}"#;

const CONFIGURATIONS: [&str; 7] = [
    "{}",
    ALL_KEYS,
    r#"{"cookie":"tenant"}"#,
    r#"{"header":"two words"}"#,
    r#"{"first-request":"sometimes"}"#,
    r#"{"first-request":1}"#,
    r#"{"colour":"red"}"#,
];

pub(super) fn script(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &CONFIGURATIONS);
    for config in ["{}", ALL_KEYS, r#"{"first-request":"always"}"#] {
        requests(loaded, config, &mut transcript);
    }
    transcript
}

fn requests(loaded: &Loaded, config: &str, transcript: &mut Transcript) {
    transcript.title(&format!("first, later: {config}"));
    let attachment = attach(loaded, config);
    let offers = attachment.offers().clone();
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    let long = "t".repeat(8192);
    for request in [
        Request::to("/"),
        Request::to("/").with("header:x-tenant", "acme"),
        Request::to("/").with("header:x-tenant", ""),
        Request::to("/").with("header:x-tenant", b"\xff\xfe"),
        Request::to("/").with("header:x-tenant", &long),
        Request::to("/").with("header:x-org", "acme"),
        Request::to("/").with("cookie:tenant", "acme"),
        Request::to("/")
            .with("header:x-org", "")
            .with("cookie:tenant", "acme"),
        Request::to("/")
            .with("header:x-org", "acme")
            .with("cookie:tenant", "zeta"),
    ] {
        let values = request.values(&offers);
        let answers = [Nth::First, Nth::Later].map(|nth| policy.prefer(&asked(&values), nth));
        let shown = answers.map(|answer| shown(answer.expect("an answer")));
        transcript.line(format!("{} -> {}", request.label, shown.join(", ")));
    }
}

fn shown(preference: Option<Preference>) -> String {
    let Some(preference) = preference else {
        return "no opinion".to_owned();
    };
    let Preference {
        sharing,
        fresh,
        tag,
        tag_attribute,
    } = preference;
    let mut parts = Vec::new();
    parts.extend(sharing.map(|sharing| format!("{sharing:?}").to_lowercase()));
    parts.extend((fresh == Fresh::Yes).then(|| "fresh".to_owned()));
    parts.extend(tag.map(|tag| format!("tag {tag}")));
    parts.extend(tag_attribute.map(|at| format!("tag of attribute {at}")));
    parts.join(" and ")
}
