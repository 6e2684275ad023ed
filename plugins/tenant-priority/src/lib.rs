//! Says whose requests wait in front, for how long they may wait, and whose are turned away first.
//!
//! ```toml
//! config.header = "x-tenant"
//! config.tenants = { acme = "gold", zeta = "bulk" }
//! config.default = "plain"
//! config.classes.gold = { class = -10 }
//! config.classes.plain = { deadline = "2s" }
//! config.classes.bulk = { class = 10, deadline = "500ms", queue-max = 20, retry-after = "5s" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `header`, `cookie` | `header = "x-tenant"` | where the tenant's name is looked for, in this order; the first that is not empty |
//! | `tenants` | none | the class of each tenant, by its name |
//! | `default` | none | the class of every other request; without it, the policy has no opinion about them |
//! | `classes.NAME.class` | 0 | −2047…2047; the lowest is served first |
//! | `classes.NAME.deadline` | none | a request that has waited for so long is answered with 503 |
//! | `classes.NAME.queue-max` | none | where so many wait already, of whatever class, a request of this one is answered with 429 |
//! | `classes.NAME.retry-after` | `"1s"` | when such a client may come again |
//!
//! Nothing of this counts while a server has a slot: then nobody waits, and nobody asks. Who is served in front has to
//! come from somewhere: as long as gold fills the servers, bulk waits until its deadline. What follows from a tenant
//! stands in [`priority`].
//!
//! Whoever sends the header chooses its tenant: let a proxy in front, or a route's `request-headers`, set it.

mod priority;

use exports::forebay::policy::admit::{Guest as Admit, Verdict};
use exports::forebay::policy::classify::{Guest as Classify, Standing};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use priority::Priorities;
use settings::Settings;
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "usher" });

struct TenantPriority;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static PRIORITIES: Mutex<Priorities> = Mutex::new(Priorities::NONE);

impl Configure for TenantPriority {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let mut attributes = Vec::new();
        for key in ["header", "cookie"] {
            if let Some(name) = settings.token(key) {
                attributes.push(format!("{key}:{name}"));
            }
        }
        if attributes.is_empty() {
            attributes.push("header:x-tenant".into());
        }
        let priorities = Priorities::read(&mut settings);
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *PRIORITIES.lock().unwrap() = priorities;
        Ok(Wishes { attributes, headers: vec![] })
    }
}

impl Classify for TenantPriority {
    fn classify(
        first: Option<String>,
        second: Option<String>,
        _server: i32,
        _queued: i32,
        _class: i32,
        offset: i32,
    ) -> Standing {
        match PRIORITIES.lock().unwrap().of([first.as_deref(), second.as_deref()]) {
            None => Standing { ranked: -1, class: 0, offset: 0, deadline: -1 },
            Some(class) => Standing { ranked: 1, class: class.number, offset, deadline: class.deadline },
        }
    }
}

impl Admit for TenantPriority {
    fn admit(
        first: Option<String>,
        second: Option<String>,
        _server: i32,
        queued: i32,
        _class: i32,
    ) -> Verdict {
        let silent = Verdict { action: -1, status: -1, retry_after: -1, wait_max: -1 };
        match PRIORITIES.lock().unwrap().of([first.as_deref(), second.as_deref()]) {
            Some(class) if class.is_full(queued) => {
                Verdict { action: 1, status: 429, retry_after: class.retry_after, ..silent }
            }
            _ => silent,
        }
    }
}

export!(TenantPriority);
