//! Finds out how many requests each server does well with at once, lets it have no more, and the rest wait a moment.
//!
//! ```toml
//! interval = "200ms"
//! config = { tolerance = 1.5, limit-min = 4, limit-max = 500, wait = "100ms" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `limit` | 20 | requests that a server gets at once before anything is known of it |
//! | `limit-min`, `limit-max` | 4, 1000 | never fewer, never more |
//! | `tolerance` | 1.5 | up to so many times its least latency a server is not slow. 1 to 10 |
//! | `window` | `"5m"` | after it, the least latency has come half of the way up to what is measured. `"10s"` to `"1d"` |
//! | `wait` | `"100ms"` | a request that finds no server may wait for so long … |
//! | `wait-standing` | `"10ms"` | … and for so long while there has always been somebody waiting … |
//! | `standing-after` | `"100ms"` | … for this time |
//!
//! It has two parts, and a backend names it for both: `balance = { policy = "adaptive" }`, for how many each server gets
//! ([`limits`]), and `queue-policy = "adaptive"`, for how long the rest may wait ([`patience`]). The first alone makes the
//! rest wait for `timeout-queue`; the second alone keeps the queue short that forms at `maxconn`. `maxconn` counts beside
//! it: the lower of the two.

mod limits;
mod patience;

use exports::forebay::policy::admit::{Guest as Admit, Verdict};
use exports::forebay::policy::balance_plan::{Allocation, Guest as Plan, Server};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use forebay::policy::request;
use limits::{Limits, Rules};
use patience::Patience;
use settings::Settings;
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", generate_all, inline: "
    package my:policy;
    world limiter { include forebay:policy/planner@0.1.0; include forebay:policy/admitter@0.1.0; }
" });

struct AdaptiveConcurrency;

/// What the instance remembers between calls: the one of the control thread limits, and those of the workers wait. Only
/// one thread ever calls an instance: the locks are never waited for.
static LIMITS: Mutex<Option<Limits>> = Mutex::new(None);
static PATIENCE: Mutex<Option<Patience>> = Mutex::new(None);

const DAY: i64 = 86_400_000;

impl Configure for AdaptiveConcurrency {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let rules = rules(&mut settings);
        let patience = Patience::new(
            settings.duration("wait", "100ms", 0..=DAY),
            settings.duration("wait-standing", "10ms", 0..=DAY),
            settings.duration("standing-after", "100ms", 1..=DAY),
        );
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *LIMITS.lock().unwrap() = Some(Limits::new(rules));
        *PATIENCE.lock().unwrap() = Some(patience);
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

fn rules(settings: &mut Settings) -> Rules {
    let first = settings.whole("limit", 20, 1..=1_000_000);
    let least = settings.whole("limit-min", 4.min(first), 1..=1_000_000);
    let most = settings.whole("limit-max", 1_000.max(first), 1..=1_000_000);
    if !(least..=most).contains(&first) {
        settings.wrong::<()>("limit", "must be from `limit-min` to `limit-max`");
    }
    Rules {
        first: first as f64,
        least: least as f64,
        most: most as f64,
        tolerance: settings.factor("tolerance", 1_500, 1_000..=10_000) as f64 / 1_000.0,
        window: settings.duration("window", "5m", 10_000..=DAY) as f64,
    }
}

impl Plan for AdaptiveConcurrency {
    fn plan(now: i64, servers: Vec<Server>) -> Option<Allocation> {
        LIMITS.lock().unwrap().as_mut()?.plan(now, &servers)
    }
}

impl Admit for AdaptiveConcurrency {
    fn admit(_: Option<String>, _: Option<String>, _server: i32, queued: i32, _class: i32) -> Verdict {
        let silent = Verdict { action: -1, status: -1, retry_after: -1, wait_max: -1 };
        match PATIENCE.lock().unwrap().as_mut() {
            None => silent,
            Some(patience) => {
                Verdict { action: 0, wait_max: patience.for_one(request::now(), queued), ..silent }
            }
        }
    }
}

export!(AdaptiveConcurrency);
