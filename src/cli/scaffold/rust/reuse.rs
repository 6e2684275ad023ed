//! What comes with a certain header goes over a connection that nobody shares with its client.

mod support;

use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use exports::forebay::policy::reuse::{Guest as Reuse, Preference};

wit_bindgen::generate!({ path: "wit", world: "sharer" });

const WITH_NOBODY: i32 = 0;
const NO_OPINION: Preference = Preference { mode: -1, fresh: -1, tag: -1, tag_attribute: -1 };

struct Policy;

impl Configure for Policy {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        support::log_panics();
        let [header] = support::settings(&setup.config, [("header", "authorization")])?;
        Ok(Wishes { attributes: vec![format!("header:{header}")], headers: vec![] })
    }
}

impl Reuse for Policy {
    fn prefer(header: Option<String>, _: Option<String>, _first_request: i32) -> Preference {
        match header {
            Some(value) if !value.is_empty() => Preference { mode: WITH_NOBODY, ..NO_OPINION },
            _ => NO_OPINION,
        }
    }
}

export!(Policy);
