//! Fills the cheapest servers first, and goes on to dearer ones when they are full.
//!
//! ```toml
//! config = { tag = "cost", fill = "80%" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `tag` | `"cost"` | the tag that says what a server costs: a number such as `0`, `3` or `0.045`, in whatever unit |
//! | `fill` | `"100%"` | up to so much of its limit (`maxconn`) a server is used before dearer ones |
//! | `cap` | none | up to so many requests at once, for servers without a limit; for each unit of its weight |
//!
//! Servers of the same cost are equally good. Those that do not say what they cost come last. A server that has neither a
//! limit nor a `cap` is never full: nothing goes to dearer ones as long as it takes requests. What the tiers are stands
//! in [`prices`].

mod prices;

use exports::forebay::policy::balance_plan::{Allocation, Guest as Plan, Server};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use forebay::policy::log::{self, Level};
use prices::{Prices, Rules};
use settings::{Cap, Settings};
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "planner" });

struct LeastCost;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static PRICES: Mutex<Option<Prices>> = Mutex::new(None);

impl Configure for LeastCost {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let rules =
            Rules { tag: settings.text("tag").unwrap_or("cost".into()), cap: Cap::read(&mut settings) };
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *PRICES.lock().unwrap() = Some(Prices::new(rules));
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

impl Plan for LeastCost {
    fn plan(now: i64, servers: Vec<Server>) -> Option<Allocation> {
        let mut prices = PRICES.lock().unwrap();
        let prices = prices.as_mut()?;
        if let Some(word) = prices.doubt(&servers) {
            log::write(Level::Warn, &word);
        }
        prices.plan(now, &servers)
    }
}

export!(LeastCost);
