//! Reads a scenario: a configuration, and around it the servers, the clients and the events of a simulation.
//!
//! The sections of a configuration stand in the same file, or in another one that it names. They are read by the same
//! readers, with two things made easier: a server may be just a name, and `"s[1-5]"` stands for five of them. No host
//! name is looked up.

mod change;
mod model;
mod sections;
mod simulated;

pub use model::*;

use super::errors::Report;
use super::keys::Section;
use super::read::Fields;
use super::{Config, Errors, parse_tree, read_text, syntax};
use change::Change;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::DeTable;

/// Reads a scenario and the configuration in it, with changes `KEY=VALUE`.
///
/// # Errors
/// Every mistake of the file, and of the configuration that it names.
pub fn load(path: &Path, changes: &[String]) -> Result<Scenario, Errors> {
    let file = path.display().to_string();
    parse(&read_text(path, &file)?, &file, changes)
}

/// Reads a text; `file` is its name in messages, and relative paths begin at its folder.
///
/// # Errors
/// Every mistake of the file, and of the configuration that it names.
pub fn parse(text: &str, file: &str, changes: &[String]) -> Result<Scenario, Errors> {
    let changes = change::documents(changes).map_err(|why| Errors::unreadable(file, why, ""))?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut report = Report::new(text);
    let mut tree = syntax::read(text, &mut report);
    let mut unchanged = change::apply(&mut tree, &changes);
    let own = simulated::split(&mut tree);
    simulated::expand(&mut tree, &mut report);
    let fields = Fields::of(Section::ScenarioFile, own.get_ref(), 0..0, &mut report);
    let named = fields.table("scenario", &mut report);
    let of = named
        .as_ref()
        .and_then(|scenario| scenario.text("config", &mut report));
    let config = match of {
        Some(path) => Source::File(folder.join(path.text), path.at.clone()),
        None => Source::Here,
    };
    let config = match config {
        Source::Here => parse_tree(&tree, folder, &simulated::lookup, &mut report),
        Source::File(path, at) => match read_config(&path, &mut unchanged) {
            Ok(config) => config,
            Err(ReadConfig::Wrong(errors)) => return Err(errors),
            Err(ReadConfig::Missing(found)) => {
                let expected = "expected the path of a configuration";
                report.wrong(at, found, expected, "it is relative to this file");
                return Err(report.finish(file).expect_err("it has a mistake"));
            }
        },
    };
    if let Some(change) = unchanged.first() {
        let why = format!("--set {}: there is no such place in the file", change.key());
        return Err(Errors::unreadable(
            file,
            why,
            "keys are written with dots, as in backend.app.balance",
        ));
    }
    let scenario = named.map(|named| sections::scenario(&named, &fields, &config, folder, &mut report));
    // Warnings of a configuration are for `forebay check`.
    report.finish(file)?;
    let mut scenario = scenario.expect("that it is missing was reported");
    scenario.config.process.workers = scenario.workers;
    Ok(scenario)
}

/// Reads a configuration as a scenario sees it.
///
/// # Errors
/// Every mistake of the file.
pub fn config(path: &Path) -> Result<Config, String> {
    read_config(path, &mut Vec::new()).map_err(|wrong| match wrong {
        ReadConfig::Missing(text) => text,
        ReadConfig::Wrong(errors) => errors.to_string(),
    })
}

enum Source {
    Here,
    File(PathBuf, super::errors::At),
}

enum ReadConfig {
    Missing(String),
    Wrong(Errors),
}

fn read_config(path: &Path, changes: &mut Vec<&Change>) -> Result<Config, ReadConfig> {
    let file = path.display().to_string();
    if !path.is_file() {
        return Err(ReadConfig::Missing(format!("there is no file {file}")));
    }
    let text = read_text(path, &file).map_err(ReadConfig::Wrong)?;
    let mut report = Report::new(&text);
    let mut tree: Spanned<DeTable<'_>> = syntax::read(&text, &mut report);
    changes.retain(|change| !change.put(&mut tree));
    simulated::expand(&mut tree, &mut report);
    let folder = path.parent().unwrap_or(Path::new(""));
    let config = parse_tree(&tree, folder, &simulated::lookup, &mut report);
    report.finish(&file).map_err(ReadConfig::Wrong)?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of keys and the readers are two: what the table promises of an event, a server and a request is read.
    #[test]
    fn every_key_is_read() {
        let text = r#"
            [scenario]
            about = "All at once."
            workers = 3
            seed = 7
            duration = "2s"
            requests = 10
            connect = "1ms"
            patience = { from = "1s", to = "2s" }
            contention = 5
            descriptors = 1000
            costs = { request = "1us", response = "1us", open = "1us", takeover = "1us", grant = "1us" }
            [backend.app]
            servers = ["s[1-2]"]
            [[server]]
            name = "app/*"
            service = { median = "10ms", p99 = "80ms" }
            capacity = 4
            closes-after = 10
            refuses = "1%"
            drops = "1%"
            errors = "1%"
            hangs = "1%"
            down = false
            [[traffic]]
            clients = 2
            think = { mean = "5ms" }
            session = 3
            from = "0s"
            until = "1s"
            listen = "listen-1"
            method = "PUT"
            host = "app.test"
            path = "/{key}"
            headers = { x-user = "{client}" }
            keys = { zipf = 10, exponent = 90 }
            [[traffic]]
            rate = 10
            pace = "even"
            burst = 2
            keys = ["a", "b"]
            [[request]]
            at = "0s"
            client = 1
            count = 2
            every = "1ms"
            service = "3ms"
            [[event]]
            at = "1s"
            server = "app/s1"
            state = "drain"
            weight = 2
            maxconn = 3
            service = "4ms"
            capacity = 5
            refuses = "6%"
            drops = "7%"
            errors = "8%"
            hangs = "9%"
            down = true
            [show]
            decisions = 3
            step = "10ms"
            [expect]
            share = { "app/*" = "0%..100%" }
            least-share = "0%"
            most-share = "100%"
            queueing-p50 = "1s"
            queueing-p99 = "1s"
            latency-p50 = "1s"
            latency-p99 = "1s"
            reuse = "0%"
            most-reuse = "100%"
            failed = 10
            fallbacks = 0
            moved-keys = "100%"
        "#;
        let scenario = parse(text, "all.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(scenario.events[0].behaviour.down, Some(true));
        assert_eq!(scenario.machines[0].behaviour.down, Some(false));
        assert_eq!(scenario.traffic.len(), 3);
    }

    /// A server that comes with a reload can be named from the beginning; one that never comes cannot.
    #[test]
    fn servers_of_later_configurations_are_known() {
        let text = |server: &str| {
            format!(
                r#"
                [scenario]
                about = "A fifth one comes."
                duration = "2s"
                [backend.cache]
                servers = ["c[1-4]"]
                [[server]]
                service = "1ms"
                [[traffic]]
                clients = 1
                think = "1ms"
                [[event]]
                at = "1s"
                config = "after/five-caches.toml"
                [expect]
                share = {{ "{server}" = "0%..100%" }}
                "#
            )
        };
        let read = |server| parse(&text(server), "examples/scenarios/any.toml", &[]);
        assert!(read("cache/c5").is_ok());
        let errors = read("cache/c6").unwrap_err().to_string();
        assert!(errors.contains("no server is called \"cache/c6\""), "{errors}");
    }
}
