//! The questions to a policy that routes: who is on which side, why, and what becomes of the headers.

use super::request::{Request, asked};
use super::{Transcript, attach, setup};
use forebay::policy::{Change, Edits, Message, Offers, Policy, RouteAsked, Routed, Setup, Target};
use forebay::wasm::{Digest, Loaded};
use std::time::Duration;

const KEPT: &str = r#"{"backend":"canary","keep":"30d","share":"50%"}"#;
const BY_USER: &str = r#"{"backend":"tools","cookie":"side","header":"x-side","off":"0","on":"1","path-prefix":"/api","share":"50%","sticky":"header:x-user"}"#;

const CONFIGURATIONS: [&str; 7] = [
    r#"{"backend":"canary"}"#,
    KEPT,
    BY_USER,
    "{}",
    r#"{"backend":"nowhere"}"#,
    r#"{"backend":"canary","keep":"1s","share":"101%","sticky":"method"}"#,
    r#"{"backend":"canary","cookie":"a b"}"#,
];

const SEVERAL: &str = r#"{"backends":{"canary":"30%","tools":"20%"},"keep":"30d","testers":"x-try"}"#;

/// What those of today understand beyond the first one.
const LATER: [&str; 6] = [
    SEVERAL,
    r#"{"backends":{"canary":"30%"},"testers":"a b"}"#,
    r#"{"backends":{"canary":"60%","nowhere":"60%","tools":"1"}}"#,
    r#"{"backend":"canary","backends":{"tools":"1%"},"share":"1%"}"#,
    r#"{"backends":{},"colour":"red"}"#,
    r#"{"backends":"canary"}"#,
];

pub(super) fn script(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &CONFIGURATIONS);
    requests(loaded, &mut transcript);
    shares(loaded, &mut transcript);
    cookies(loaded, &mut transcript);
    transcript
}

/// Several shares, and testers.
pub(super) fn several_shares(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &LATER);
    let with = |name: &str, value: &str| client(1).with(name, value);
    let requests = [
        client(1),
        client(2),
        client(3),
        client(4),
        with("cookie:canary", "always"),
        with("cookie:canary", "tools"),
        with("cookie:canary", "299999"),
        with("cookie:canary", "300000"),
        with("cookie:canary", "500000"),
        with("header:x-try", "tools").with("cookie:canary", "never"),
        with("header:x-try", "never").with("header:x-canary", "tools"),
        with("header:x-try", "app").with("cookie:canary", "never"),
    ];
    several(loaded, SEVERAL, &requests, &mut transcript);
    transcript.title("3000 clients");
    for shares in [
        r#"{"canary":"30%","tools":"20%"}"#,
        r#"{"canary":"30%","tools":"70%"}"#,
        r#"{"canary":"0%","tools":"20%"}"#,
    ] {
        let mut router = Router::new(loaded, &format!(r#"{{"backends":{shares}}}"#));
        let mut counts = [0; 3];
        for number in 0..3_000 {
            let target = router.route("GET", &client(number)).target;
            counts[match target {
                Some(Target::Backend(at)) => usize::from(at),
                _ => 0,
            }] += 1;
        }
        transcript.line(format!("{shares}: {counts:?} to app, canary, tools"));
    }
    transcript
}

/// A policy, and the edits of its last answer.
struct Router {
    offers: Offers,
    policy: Box<dyn Policy>,
    edits: Edits,
}

impl Router {
    fn new(loaded: &Loaded, config: &str) -> Router {
        let attachment = attach(loaded, config);
        Router {
            offers: attachment.offers().clone(),
            policy: attachment.policy(Duration::ZERO).expect("an instance"),
            edits: Edits::default(),
        }
    }

    fn route(&mut self, method: &str, request: &Request) -> Routed {
        let values = request.values(&self.offers);
        let asked = RouteAsked {
            asked: asked(&values),
            method: method.as_bytes(),
            host: b"example.com",
            path: request.path.as_bytes(),
        };
        self.policy.route(&asked, &mut self.edits).expect("an answer")
    }

    /// Where it goes and what is edited, in words.
    fn told(&mut self, method: &str, request: &Request) -> String {
        let Setup { backends, .. } = setup("");
        let mut told = match self.route(method, request) {
            Routed { target: None, .. } => "as the rules say".to_owned(),
            Routed {
                target: Some(Target::Backend(at)),
                remember,
                ..
            } => {
                format!(
                    "backend {}, remembered for {remember:?}",
                    backends[usize::from(at)]
                )
            }
            other => format!("{other:?}"),
        };
        for (edit, value) in self.edits.iter() {
            let message = match edit.message {
                Message::Request => "request",
                Message::Response => "response",
            };
            let header = &self.offers.headers[usize::from(edit.header)];
            told += &match edit.change {
                Change::Set => format!("; {message} {header} = {value}"),
                Change::Append => format!("; {message} {header} + {value}"),
                Change::Remove => format!("; {message} {header} removed"),
            };
        }
        told
    }

    fn is_on(&mut self, request: &Request) -> bool {
        self.route("GET", request).target.is_some()
    }
}

fn client(number: u32) -> Request {
    let [_, a, b, c] = number.to_be_bytes();
    Request::to("/").with("client-address", format!("10.{a}.{b}.{c}"))
}

fn requests(loaded: &Loaded, transcript: &mut Transcript) {
    let with = |name: &str, value: &str| client(1).with(name, value);
    let kept = [
        client(1),
        client(2),
        client(3),
        with("cookie:canary", "always"),
        with("cookie:canary", "never"),
        with("cookie:canary", "499999"),
        with("cookie:canary", "500000"),
        with("cookie:canary", "1000000"),
        with("cookie:canary", "").with("header:x-canary", "1"),
        with("cookie:canary", "never").with("header:x-canary", "1"),
        with("cookie:canary", "always").with("header:x-canary", "me too"),
        Request::to("/nobody"),
    ];
    several(loaded, KEPT, &kept, transcript);
    let user = |path: &str, user: &str| {
        let request = Request::to(path).with("client-address", "10.0.0.1");
        request.with("header:x-user", user)
    };
    let users = [
        user("/api/a", "mary"),
        user("/api/a", "john"),
        user("/api", "anne"),
        user("/other", "anne"),
        user("/other", "mary")
            .with("cookie:side", "1")
            .with("header:x-side", "1"),
        user("/api", "mary").with("cookie:side", "1"),
        user("/api", "mary").with("cookie:side", "always"),
        user("/api", ""),
        user("/api", "größe"),
    ];
    several(loaded, BY_USER, &users, transcript);
    let mut router = Router::new(loaded, KEPT);
    let methods = ["HEAD", "POST", "CONNECT", "PATCH", "PROPFIND"];
    let told = methods.map(|method| router.told(method, &kept[3]));
    transcript.line(format!("{}: {}", methods.join(", "), told[0]));
    assert!(told.iter().all(|it| *it == told[0]), "{told:?}");
}

fn several(loaded: &Loaded, config: &str, requests: &[Request], transcript: &mut Transcript) {
    transcript.title(config);
    let mut router = Router::new(loaded, config);
    for request in requests {
        let told = router.told("GET", request);
        transcript.line(format!("{} -> {told}", request.label));
    }
}

/// How many of 3000 clients are in the share, and that nobody leaves it when it grows.
fn shares(loaded: &Loaded, transcript: &mut Transcript) {
    transcript.title("3000 clients");
    for (backend, sticky) in [
        ("canary", "client-address"),
        ("tools", "client-address"),
        ("canary", "cookie:id"),
    ] {
        let mut before = [false; 3000];
        for share in ["0%", "0.1%", "5%", "33.3333%", "50%", "99.9999%", "100%"] {
            let config = format!(r#"{{"backend":"{backend}","share":"{share}","sticky":"{sticky}"}}"#);
            let mut router = Router::new(loaded, &config);
            let mut side = |number| router.is_on(&client(number).with("cookie:id", format!("id-{number}")));
            let on: [bool; 3000] = std::array::from_fn(|at| side(at as u32));
            let count = on.iter().filter(|on| **on).count();
            let left = before.iter().zip(&on).filter(|(was, is)| **was && !**is).count();
            let digest = Digest::of(&on.map(u8::from)).short();
            transcript.line(format!(
                "{backend} by {sticky}, {share}: {count} on, {left} left; {digest}"
            ));
            before = on;
        }
    }
}

/// A client that was given a cookie stays where it is when its address changes.
fn cookies(loaded: &Loaded, transcript: &mut Transcript) {
    transcript.title("1000 clients with the cookie that they were given, from elsewhere");
    let mut router = Router::new(loaded, KEPT);
    let (mut on, mut same, mut given) = (0, 0, String::new());
    for number in 0..1000 {
        let was = router.is_on(&client(number));
        let cookie = router
            .edits
            .iter()
            .find(|(edit, _)| edit.message == Message::Response)
            .map(|(_, value)| value.to_owned())
            .expect("a cookie");
        given += &cookie;
        let value = cookie
            .strip_prefix("canary=")
            .and_then(|rest| rest.split(';').next());
        let again = client(number + 500_000).with("cookie:canary", value.expect("its value"));
        on += u32::from(was);
        same += u32::from(
            router.is_on(&again) == was
                && router
                    .edits
                    .iter()
                    .all(|(edit, _)| edit.message == Message::Request),
        );
    }
    let digest = Digest::of(given.as_bytes()).short();
    transcript.line(format!(
        "{on} on; {same} where they were, without another cookie; {digest}"
    ));
}
