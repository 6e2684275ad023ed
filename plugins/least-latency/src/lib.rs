//! Gives more work to servers that answer faster and fail less.
//!
//! ```toml
//! interval = "500ms"
//! config = { window = "5s", spread = 4, errors-max = "20%" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `window` | `"5s"` | over which latency and errors are smoothed: after it, half of what is known is new. `"100ms"` to `"10m"` |
//! | `spread` | 4 | the best server gets at most so many times the work of the worst (of equal weight). 1 to 64 |
//! | `errors-max` | `"20%"` | servers that fail more than this are used only if no other takes requests |
//!
//! What follows from the figures stands in [`planner`]. No call is made while a request waits: the core executes the
//! plan.

mod planner;

use exports::forebay::policy::balance_plan::{Allocation, Guest as Plan, Server};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use planner::{Planner, Rules};
use settings::Settings;
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "planner" });

struct LeastLatency;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static PLANNER: Mutex<Planner> = Mutex::new(Planner::new(Rules::DEFAULT));

impl Configure for LeastLatency {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let rules = Rules {
            window: settings.duration("window", "5s", 100..=600_000) as f64,
            spread: settings.factor("spread", 4_000, 1_000..=64_000) as f64 / 1_000.0,
            errors_max: f64::from(settings.share("errors-max", "20%")) / 1_000_000.0,
        };
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *PLANNER.lock().unwrap() = Planner::new(rules);
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

impl Plan for LeastLatency {
    fn plan(now: i64, servers: Vec<Server>) -> Option<Allocation> {
        PLANNER.lock().unwrap().plan(now, &servers)
    }
}

export!(LeastLatency);
