//! Keeps the server connections of tenants apart: what has carried a request of one never carries one of another.
//!
//! ```toml
//! config = { header = "x-tenant", cookie = "tenant", first-request = "never" }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `header`, `cookie` | `header = "x-tenant"` | where the tenant's name is looked for, in this order; the first that is not empty |
//! | `first-request` | as configured | `"never"`, `"safe"`, `"aggressive"` or `"always"`: how the first request on a client's connection shares |
//!
//! Requests without a tenant share among themselves. What follows from a request stands in [`tenancy`].
//!
//! This is a preference: while a policy fails, requests are treated as configured, and tenants share. Where each tenant
//! has a host of its own, `pool-conn-name = "{host}"` in the backend keeps them apart whatever happens.

mod tenancy;

use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use exports::forebay::policy::reuse::{Guest as Reuse, Preference};
use settings::Settings;
use std::sync::Mutex;
use tenancy::{MODES, Tenancy};

wit_bindgen::generate!({ path: "../../wit", world: "sharer" });

struct Tenants;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static TENANCY: Mutex<Tenancy> = Mutex::new(Tenancy::DEFAULT);

impl Configure for Tenants {
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
        let first_request = match settings.text("first-request") {
            None => -1,
            Some(word) => tenancy::mode(&word)
                .or_else(|| settings.wrong("first-request", &format!("must be one of {MODES}")))
                .unwrap_or(-1),
        };
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        *TENANCY.lock().unwrap() = Tenancy { first_request };
        Ok(Wishes { attributes, headers: vec![] })
    }
}

impl Reuse for Tenants {
    fn prefer(first: Option<String>, second: Option<String>, first_request: i32) -> Preference {
        let tenancy = TENANCY.lock().unwrap();
        let (mode, tag_attribute) = tenancy.of([first.as_deref(), second.as_deref()], first_request == 1);
        Preference { mode, fresh: -1, tag: -1, tag_attribute }
    }
}

export!(Tenants);
