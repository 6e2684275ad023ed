//! Sends a share of the requests to another backend, or shares to several, the same clients each time.
//!
//! ```toml
//! config = { backend = "canary", share = "5%", cookie = "canary", keep = "30d" }
//! ```
//!
//! With several, and for those who try them out:
//!
//! ```toml
//! config.backends = { beta = "1%", canary = "10%" }
//! config.testers = "x-try"                # `x-try: beta` goes to `beta`
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `backend` | this or `backends` | where the share goes; all others go where the rules say |
//! | `share` | `"0%"` | how many of the clients, with at most four decimals |
//! | `backends` | | several, each with its share; 100 % together at most |
//! | `testers` | not set | a header by which a request says where it goes, before all else: the name of a backend, or the value of `on` or `off` |
//! | `path-prefix` | `"/"` | only requests whose path begins so are looked at |
//! | `sticky` | `"client-address"` | what tells clients apart: `header:NAME`, `cookie:NAME` or `query:NAME`; for a request without it, its client's address |
//! | `cookie` | `"canary"` | a cookie that decides before that |
//! | `on`, `off` | `"always"`, `"never"` | the values of the cookie that force it; of several backends, `on` is the first by name. The name of a backend forces a client there |
//! | `keep` | not set | gives clients the cookie for so long, so that they stay where they are when their address changes |
//! | `header` | `"x-canary"` | is set to `1` for the share, or to the name of one of `backends`, and taken from what clients send for all others |
//!
//! Whoever knows the header of `testers` can go there: let a proxy in front, or a route's rules, keep it from others.
//!
//! Who belongs to the share, and why a client never leaves it when it grows, stands in [`side`].

mod backends;
mod side;

use backends::backends;
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use exports::forebay::policy::route::{Decision, Guest as Route, Method};
use forebay::policy::edits::{self, Message};
use forebay::policy::request;
use settings::Settings;
use side::{Share, Side, Sides};
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "router" });

/// Where the attributes are that are asked for: those that tell clients apart, and then a tester's wish, if there is one.
/// The first two are given to `route`: the cookie and the mark.
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
    /// Of each share: the backend's index, −1 where it has none, and what the mark is set to.
    targets: Vec<(i32, String)>,
    path_prefix: String,
    sides: Sides,
    /// How many attributes tell clients apart, from [`STICKY`] on.
    sticky: i32,
    /// Whether testers say where they go.
    has_testers: bool,
    /// The cookie that is given, but for its value: name and attributes.
    keep: Option<(String, String)>,
}

impl Configure for Canary {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let backends = backends(&mut settings, &setup);
        let cookie = settings.token("cookie").unwrap_or("canary".into());
        let mark = settings.token("header").unwrap_or("x-canary".into());
        let sticky = sticky(&mut settings);
        let sides = Sides {
            shares: backends.shares(&mut settings),
            on: settings.token("on").unwrap_or("always".into()),
            off: settings.token("off").unwrap_or("never".into()),
            salt: side::salt(backends.salt(&setup)),
        };
        let testers = settings.token("testers");
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
        let target = |share: &Share| {
            let place = setup.backends.iter().position(|it| *it == share.backend);
            (place.map_or(-1, |at| at as i32), backends.mark(share).to_owned())
        };
        *CANARY.lock().unwrap() = Some(Configured {
            targets: sides.shares.iter().map(target).collect(),
            path_prefix,
            sides,
            sticky: sticky.len() as i32,
            has_testers: testers.is_some(),
            keep,
        });
        Ok(Wishes {
            attributes: [format!("cookie:{cookie}"), format!("header:{mark}")]
                .into_iter()
                .chain(sticky)
                .chain(testers.map(|name| format!("header:{name}")))
                .collect(),
            headers: vec![mark, "set-cookie".into()],
        })
    }
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
        let wish = canary.has_testers.then(|| request::attribute(STICKY + canary.sticky)).flatten();
        let side = match path.starts_with(&canary.path_prefix) {
            true => canary.sides.of(wish.as_deref(), cookie.as_deref(), || hash(canary.sticky)),
            false => Side::OUT,
        };
        if let (Some(bucket), Some((name, attributes))) = (side.new, &canary.keep) {
            edits::append(Message::Response, SET_COOKIE, &format!("{name}={bucket}{attributes}"));
        }
        let target = side.share.map(|share| &canary.targets[share]);
        if let Some((backend, marked)) = target.filter(|(backend, _)| *backend >= 0) {
            edits::set(Message::Request, MARK, marked);
            return Decision { action: 0, target: *backend, remember: REMEMBER };
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
