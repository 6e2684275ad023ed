//! Keeps requests in the proxy's own zone while its servers have room and enough of them are well.
//!
//! ```toml
//! config = { zone = "eu-1a", healthy-min = "70%", errors-max = "50%" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `zone` | must be given | where this proxy stands: the value of the tag of the servers beside it |
//! | `tag` | `"zone"` | the tag that names a server's zone |
//! | `healthy-min` | `"70%"` | with less of the zone's weight in servers that are well, the zone is not preferred any more |
//! | `errors-max` | `"50%"` | a server that fails more than this is not well; it is used only if the others are full or gone |
//! | `fill` | `"100%"` | up to so much of its limit (`maxconn`) a server of the zone is used before those of other zones |
//! | `cap` | none | up to so many requests at once, for servers without a limit; for each unit of its weight |
//!
//! A server that has neither a limit nor a `cap` is never full, and nothing leaves the zone before it is ill. What the
//! tiers are stands in [`zones`].

mod zones;

use exports::forebay::policy::balance_plan::{Allocation, Guest as Plan, Server};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use forebay::policy::log::{self, Level};
use settings::{Cap, Settings};
use std::sync::Mutex;
use zones::{Rules, Zones};

wit_bindgen::generate!({ path: "../../wit", world: "planner" });

struct ZoneAware;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static ZONES: Mutex<Option<Zones>> = Mutex::new(None);

impl Configure for ZoneAware {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let rules = Rules {
            zone: settings.text("zone").unwrap_or_else(|| {
                let wrong = "must say in which zone this proxy stands, such as \"eu-1a\"";
                settings.wrong("zone", wrong).unwrap_or_default()
            }),
            tag: settings.text("tag").unwrap_or("zone".into()),
            healthy_min: f64::from(settings.share("healthy-min", "70%")) / 1_000_000.0,
            errors_max: f64::from(settings.share("errors-max", "50%")) / 1_000_000.0,
            cap: Cap::read(&mut settings),
        };
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *ZONES.lock().unwrap() = Some(Zones::new(rules));
        Ok(Wishes { attributes: vec![], headers: vec![] })
    }
}

impl Plan for ZoneAware {
    fn plan(now: i64, servers: Vec<Server>) -> Option<Allocation> {
        let mut zones = ZONES.lock().unwrap();
        let zones = zones.as_mut()?;
        if let Some(word) = zones.doubt(&servers) {
            log::write(Level::Warn, &word);
        }
        zones.plan(now, &servers)
    }
}

export!(ZoneAware);
