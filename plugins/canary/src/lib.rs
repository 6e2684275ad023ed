//! Sends a share of the requests to another backend, the same clients each time.
//!
//! ```toml
//! config = { backend = "canary", share = "5%", cookie = "canary", keep = "30d" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `backend` | must be given | where the share goes; all others go where the rules say |
//! | `share` | `"0%"` | how many of the clients, with at most four decimals |
//! | `path-prefix` | `"/"` | only requests whose path begins so are looked at |
//! | `sticky` | `"client-address"` | what tells clients apart: `header:NAME`, `cookie:NAME` or `query:NAME`; for a request without it, its client's address |
//! | `cookie` | `"canary"` | a cookie that decides before that |
//! | `on`, `off` | `"always"`, `"never"` | the values of the cookie that force it |
//! | `keep` | not set | gives clients the cookie for so long, so that they stay where they are when their address changes |
//! | `header` | `"x-canary"` | is set to `1` for the share, and taken from what clients send for all others |
//!
//! Who belongs to the share, and why a client never leaves it when it grows, stands in [`side`].

mod side;

use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use exports::forebay::policy::route::{Decision, Guest as Route, Method};
use forebay::policy::edits::{self, Message};
use forebay::policy::request;
use settings::Settings;
use side::{Side, Sides};
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "router" });

/// Where the attributes that tell clients apart begin. The first two are given to `route`: the cookie and the mark.
const STICKY: i32 = 2;
/// The headers, likewise.
const MARK: i32 = 0;
const SET_COOKIE: i32 = 1;

/// How long the same request may get the same answer without asking: nothing but its values decides.
const REMEMBER: i32 = 60_000;

const NO_OPINION: Decision = Decision { action: -1, target: -1, remember: REMEMBER };

struct Canary;

/// What `configure` settled. Only one thread ever calls the instance: the lock is never waited for.
static CANARY: Mutex<Option<Configured>> = Mutex::new(None);

struct Configured {
    backend: i32,
    path_prefix: String,
    sides: Sides,
    /// How many attributes tell clients apart, from [`STICKY`] on.
    sticky: i32,
    /// The cookie that is given, but for its value: name and attributes.
    keep: Option<(String, String)>,
}

impl Configure for Canary {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let backend = backend(&mut settings, &setup);
        let cookie = settings.token("cookie").unwrap_or("canary".into());
        let mark = settings.token("header").unwrap_or("x-canary".into());
        let sticky = sticky(&mut settings);
        let sides = Sides {
            share: settings.share("share", "0%"),
            on: settings.token("on").unwrap_or("always".into()),
            off: settings.token("off").unwrap_or("never".into()),
            salt: side::salt(backend.as_deref().unwrap_or_default()),
        };
        let keep = settings.duration_if("keep", 60_000..=400 * 86_400_000).map(|time| {
            let attributes = format!("; Path=/; Max-Age={}; HttpOnly; SameSite=Lax", time / 1000);
            (cookie.clone(), attributes)
        });
        let path_prefix = settings.text("path-prefix").unwrap_or("/".into());
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        let place = setup.backends.iter().position(|it| Some(it) == backend.as_ref());
        *CANARY.lock().unwrap() = Some(Configured {
            backend: place.map_or(-1, |at| at as i32),
            path_prefix,
            sides,
            sticky: sticky.len() as i32,
            keep,
        });
        Ok(Wishes {
            attributes: [format!("cookie:{cookie}"), format!("header:{mark}")]
                .into_iter()
                .chain(sticky)
                .collect(),
            headers: vec![mark, "set-cookie".into()],
        })
    }
}

/// The name of the backend, which must be one that a route may name.
fn backend(settings: &mut Settings, setup: &Setup) -> Option<String> {
    let Some(name) = settings.text("backend") else {
        return settings.wrong("backend", "must name the backend that gets the share");
    };
    // Without an attachment there may be no list to look in.
    let unchecked = setup.attachment.is_empty() && setup.backends.is_empty();
    if !unchecked && !setup.backends.contains(&name) {
        let names = setup.backends.join("`, `");
        settings.wrong::<()>("backend", &format!("there is no backend `{name}`, only `{names}`"));
    }
    Some(name)
}

/// The attributes that tell clients apart: the configured one, and the address for requests without it.
fn sticky(settings: &mut Settings) -> Vec<String> {
    let address = String::from("client-address");
    match settings.text("sticky") {
        None => vec![address],
        Some(it) if it == address => vec![address],
        Some(it) if ["header:", "cookie:", "query:"].iter().any(|kind| it.starts_with(kind)) => {
            vec![it, address]
        }
        Some(_) => {
            let wrong = "must be `client-address`, `header:NAME`, `cookie:NAME` or `query:NAME`";
            settings.wrong("sticky", wrong).unwrap_or_default()
        }
    }
}

impl Route for Canary {
    fn route(_: Method, _: String, path: String, cookie: Option<String>, mark: Option<String>) -> Decision {
        let canary = CANARY.lock().unwrap();
        let Some(canary) = canary.as_ref() else {
            return NO_OPINION;
        };
        let side = match path.starts_with(&canary.path_prefix) {
            true => canary.sides.of(cookie.as_deref(), || hash(canary.sticky)),
            false => Side::OUT,
        };
        if let (Some(bucket), Some((name, attributes))) = (side.new, &canary.keep) {
            edits::append(Message::Response, SET_COOKIE, &format!("{name}={bucket}{attributes}"));
        }
        if side.on && canary.backend >= 0 {
            edits::set(Message::Request, MARK, "1");
            return Decision { action: 0, target: canary.backend, remember: REMEMBER };
        }
        if mark.is_some() {
            edits::remove(Message::Request, MARK);
        }
        NO_OPINION
    }
}

/// Of the first that is there and not empty.
fn hash(sticky: i32) -> i32 {
    let told = (STICKY..STICKY + sticky).find(|&at| request::length(at) > 0);
    told.map_or(0, request::hash)
}

export!(Canary);
