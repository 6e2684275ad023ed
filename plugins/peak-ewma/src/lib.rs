//! Draws two servers and takes the cheaper one: its latency, of which a peak counts at once, times its requests in flight.
//!
//! ```toml
//! interval = "200ms"
//! config = { decay = "2s" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `decay` | `"2s"` | after it, half of a peak is forgotten. `"100ms"` to `"10m"` |
//!
//! It has new latencies once in an `interval` of the policy; requests in flight are those of the instant. What a server
//! costs stands in [`costs`].

mod costs;

use costs::Costs;
use exports::forebay::policy::balance_pick::{Choice, Columns, Guest as Pick};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use forebay::policy::{request, servers};
use settings::Settings;
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "picker" });

struct PeakEwma;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static COSTS: Mutex<Costs> = Mutex::new(Costs::new(2_000.0));

impl Configure for PeakEwma {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let decay = settings.duration("decay", "2s", 100..=600_000);
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *COSTS.lock().unwrap() = Costs::new(decay as f64);
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

impl Pick for PeakEwma {
    fn table(table: Columns) {
        let Columns { names, weights, states, latencies, .. } = table;
        COSTS.lock().unwrap().show(names, &weights, &states, &latencies);
    }

    fn pick(_: String, avoid: i32) -> Choice {
        let mut costs = COSTS.lock().unwrap();
        costs.move_on(request::now());
        let (first, second) = costs.choose(avoid, request::draw, servers::in_flight);
        Choice { first, second }
    }
}

export!(PeakEwma);
