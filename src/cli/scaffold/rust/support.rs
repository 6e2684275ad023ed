//! What every policy needs: panics that somebody reads, and settings.

use crate::exports::forebay::policy::configure::Problem;
use crate::forebay::policy::log::{self, Level};
use std::collections::BTreeMap;

/// Writes panics into the log. Without it, a call just ends.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| log::write(Level::Error, &panic.to_string())));
}

/// The texts of `config = { … }`; keys that are missing have the value beside them.
pub fn settings<const N: usize>(config: &str, known: [(&str, &str); N]) -> Result<[String; N], Vec<Problem>> {
    let given: BTreeMap<String, serde_json::Value> = serde_json::from_str(config).map_err(|error| problem("", error))?;
    if let Some(key) = given.keys().find(|key| known.iter().all(|(name, _)| name != key)) {
        let names = known.map(|(name, _)| name).join(", ");
        return Err(problem(key, format!("unknown; the keys are: {names}")));
    }
    let mut values = known.map(|(_, value)| value.to_owned());
    for (value, (name, _)) in values.iter_mut().zip(known) {
        match given.get(name).map(|given| given.as_str()) {
            None => {}
            Some(Some(text)) if !text.is_empty() => *value = text.to_owned(),
            Some(_) => return Err(problem(name, "must be a text")),
        }
    }
    Ok(values)
}

/// Refuses the configuration; the operator sees the key that it is about.
pub fn problem(path: &str, message: impl ToString) -> Vec<Problem> {
    vec![Problem { path: path.to_owned(), message: message.to_string() }]
}
