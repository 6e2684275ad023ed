//! Has connections ready ahead of a load that comes again: at this time of the day, of the hour, of whatever comes round.
//!
//! ```toml
//! interval = "1s"
//! config = { every = "24h", ahead = "5m", margin = 1.2, max = 200 }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `every` | `"24h"` | after which time the load comes again. `"1s"` to `"7d"` |
//! | `ahead` | `"5m"` | how long before it the connections are to be there; no longer than `every` |
//! | `margin` | 1.2 | so many times what was needed then. 1 to 10 |
//! | `max` | 1000 | connections to a server, at most |
//!
//! When the load comes is learnt, because a policy has no calendar: its clock begins with the proxy. So nothing is opened
//! in the first `every`, nor again after a restart. What is remembered stands in [`lap`].
//!
//! A connection that was opened in advance has carried no request: under `reuse = "safe"` the first request of a client
//! does not use it, and the client's later ones do.

mod lap;

use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use exports::forebay::policy::reuse_plan::{Figures, Guest as ReusePlan, Server};
use lap::{Laps, Rules};
use settings::Settings;
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "stocker" });

struct Preconnect;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static LAPS: Mutex<Option<Laps>> = Mutex::new(None);

impl Configure for Preconnect {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let every = settings.duration("every", "24h", 1_000..=7 * 86_400_000);
        let rules = Rules {
            every,
            ahead: settings.duration_if("ahead", 0..=every).unwrap_or(every.min(300_000)),
            margin: settings.factor("margin", 1_200, 1_000..=10_000),
            most: settings.whole("max", 1_000, 1..=1_000_000),
        };
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *LAPS.lock().unwrap() = Some(Laps::new(rules));
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

impl ReusePlan for Preconnect {
    fn plan(now: i64, servers: Vec<Server>) -> Option<Vec<Figures>> {
        let mut laps = LAPS.lock().unwrap();
        let expected = laps.as_mut()?.round(now, servers.iter().map(|it| (it.name.as_str(), it.in_flight)));
        let figures = |(server, connections): (i32, i32)| Figures {
            server,
            low: -1,
            max: -1,
            need: connections,
            preconnect: connections,
        };
        let expected = (0..).zip(expected).filter(|(_, connections)| *connections > 0);
        Some(expected.map(figures).collect())
    }
}

export!(Preconnect);
