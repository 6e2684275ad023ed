//! Requests with a cookie go to another backend.

mod support;

use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use exports::forebay::policy::route::{Decision, Guest as Route, Method};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

wit_bindgen::generate!({ path: "wit", world: "router" });

const BACKEND: i32 = 0;
const NO_OPINION: Decision = Decision { action: -1, target: -1, remember: 0 };

/// The index of the backend for who has the cookie.
static TARGET: AtomicI32 = AtomicI32::new(-1);

struct Policy;

impl Configure for Policy {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        support::log_panics();
        let [cookie, backend] = support::settings(&setup.config, [("cookie", "preview"), ("backend", "next")])?;
        let target = setup.backends.iter().position(|it| *it == backend);
        // Without an attachment only the keys are checked, and no backends are given.
        if target.is_none() && !setup.attachment.is_empty() {
            let names = setup.backends.join(", ");
            return Err(support::problem("backend", format!("there is no backend `{backend}`, only: {names}")));
        }
        TARGET.store(target.map_or(-1, |at| at as i32), Relaxed);
        Ok(Wishes { attributes: vec![format!("cookie:{cookie}")], headers: vec![] })
    }
}

impl Route for Policy {
    fn route(_: Method, _host: String, _path: String, cookie: Option<String>, _: Option<String>) -> Decision {
        let target = TARGET.load(Relaxed);
        match cookie {
            Some(value) if !value.is_empty() && target >= 0 => Decision { action: BACKEND, target, remember: 0 },
            _ => NO_OPINION,
        }
    }
}

export!(Policy);
