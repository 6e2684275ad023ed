//! The questions to a policy that says how requests wait: requests of several tenants, behind few and behind many.

use super::request::{Request, asked};
use super::{Transcript, attach};
use forebay::policy::{Asked, Priority, ServerIndex, Standing, Verdict, Waits};
use forebay::wasm::Loaded;
use std::time::Duration;

/// As an operator writes it, in JSON.
const ALL_KEYS: &str = r#"{"classes":{"bulk":{"class":10,"deadline":"500ms","queue-max":20,"retry-after":"5s"},"gold":{"class":-10},"plain":{"deadline":"2s"}},"cookie":"tenant","default":"plain","header":"x-org","tenants":{"acme":"gold","zeta":"bulk"}}"#;
const ONE_CLASS: &str = r#"{"classes":{"vip":{"class":-1,"queue-max":0}},"tenants":{"acme":"vip"}}"#;

const CONFIGURATIONS: [&str; 11] = [
    ALL_KEYS,
    ONE_CLASS,
    "{}",
    r#"{"classes":{"a":{}}}"#,
    r#"{"classes":{"a":{}},"default":"b"}"#,
    r#"{"classes":{"a":{},"b":{}},"tenants":{"acme":"c","zeta":1}}"#,
    r#"{"classes":{"a":{"class":2048}},"default":"a"}"#,
    r#"{"classes":{"a":{"deadline":"0s","queue-max":-1,"retry-after":"1500ms","colour":"red"}},"default":"a"}"#,
    r#"{"classes":{"a":1},"default":"a"}"#,
    r#"{"classes":"a","tenants":[],"default":"a"}"#,
    r#"{"header":"two words","classes":{"a":{}},"default":"a"}"#,
];

pub(super) fn script(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &CONFIGURATIONS);
    for config in [ALL_KEYS, ONE_CLASS] {
        requests(loaded, config, &mut transcript);
    }
    transcript
}

/// How long requests may wait behind a queue that stands.
pub(super) fn patience(loaded: &Loaded, transcript: &mut Transcript) {
    transcript.title("one every 20 ms, behind 3 but for the first, the 10th and those after a pause");
    for config in [
        "{}",
        r#"{"standing-after":"50ms","wait":"1s","wait-standing":"0s"}"#,
    ] {
        let attachment = attach(loaded, config);
        let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
        let mut told = Vec::new();
        for number in 0..30_u64 {
            let pause = if number < 20 { 0 } else { 5_000 };
            let asked = Asked {
                now: Duration::from_millis(1_000 + number * 20 + pause),
                seed: number,
                attributes: &[],
            };
            let waits = Waits {
                server: None,
                queued: if number % 10 == 0 && number < 20 { 0 } else { 3 },
                priority: Priority::default(),
            };
            match policy.admit(&asked, &waits).expect("an answer") {
                Some(Verdict::Accept { wait_max }) => told.push(wait_max.expect("a time").as_millis()),
                other => panic!("{other:?}"),
            }
        }
        transcript.line(format!("{config}: {told:?}"));
    }
}

fn requests(loaded: &Loaded, config: &str, transcript: &mut Transcript) {
    transcript.title(&format!("behind 0, 19, 20: {config}"));
    let attachment = attach(loaded, config);
    let offers = attachment.offers().clone();
    let mut policy = attachment.policy(Duration::ZERO).expect("an instance");
    let long = "t".repeat(8192);
    for request in [
        Request::to("/"),
        Request::to("/").with("header:x-tenant", "acme"),
        Request::to("/").with("header:x-org", "acme"),
        Request::to("/").with("header:x-org", "zeta"),
        Request::to("/").with("header:x-org", "Acme"),
        Request::to("/").with("header:x-org", b"\xff\xfe"),
        Request::to("/").with("header:x-org", &long),
        Request::to("/").with("cookie:tenant", "zeta"),
        Request::to("/")
            .with("header:x-org", "")
            .with("cookie:tenant", "acme"),
        Request::to("/")
            .with("header:x-org", "acme")
            .with("cookie:tenant", "zeta"),
    ] {
        let values = request.values(&offers);
        let asked = asked(&values);
        let waits = |queued| Waits {
            server: Some(ServerIndex(0)),
            queued,
            priority: Priority {
                class: 5,
                offset: -250_000,
            },
        };
        let standing = policy.classify(&asked, &waits(0)).expect("an answer");
        let verdicts =
            [0, 19, 20].map(|queued| verdict(policy.admit(&asked, &waits(queued)).expect("an answer")));
        transcript.line(format!(
            "{} -> {}: {}",
            request.label,
            stands(standing),
            verdicts.join(", ")
        ));
    }
}

fn stands(standing: Option<Standing>) -> String {
    let Some(Standing { priority, wait_max }) = standing else {
        return "no opinion".to_owned();
    };
    let mut parts = Vec::new();
    parts.extend(priority.map(|it| format!("class {} and {} ms", it.class, it.offset / 1000)));
    parts.extend(wait_max.map(|time| format!("for {time:?}")));
    parts.join(" ")
}

fn verdict(verdict: Option<Verdict>) -> String {
    match verdict {
        None => "no opinion".to_owned(),
        Some(Verdict::Accept { wait_max }) => format!("accept {wait_max:?}"),
        Some(Verdict::Reject { with, retry_after }) => {
            let after = retry_after.map_or("as ever".to_owned(), |time| format!("{time:?}"));
            format!("{} after {after}", with.status())
        }
    }
}
