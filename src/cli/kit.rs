//! `forebay plugin check`: asks components whatever they answer, in situations that are the same for all, and tells what
//! was found. What is looked for stands in [`crate::sim::kit`].

use crate::policy::{Attached, Attachment, Fault, Grants, Journal, Level, Setup};
use crate::sim::kit::{self, Effort, Finding, Report, Verdict};
use crate::wasm::{Host, Limits, LoadError, Mode, Settings};
use anyhow::Context;
use clap::Args;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Names that a route may choose, besides every text of the configuration.
const NAMES: [&str; 2] = ["app", "other"];
/// What could not be read, as a wrong command line.
const UNREADABLE: u8 = 2;

/// Arguments of `forebay plugin check`.
#[derive(Args, Clone, Debug)]
pub(super) struct CheckArgs {
    /// The components
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What they are told as their configuration: JSON text, or a file of it
    #[arg(long, value_name = "FILE.json|JSON", default_value = "{}")]
    config: String,
    /// Print one line of JSON for each component
    #[arg(long)]
    json: bool,
    /// Ask less, which shows gross mistakes only
    #[arg(long)]
    quick: bool,
    /// Where keys, draws and orders come from
    #[arg(long, default_value_t = Effort::WHOLE.seed)]
    seed: u64,
}

/// Checks one component after the other.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let config = match read_config(&args.config) {
        Ok(config) => config,
        Err(error) => return Ok(unreadable(&error)),
    };
    let effort = Effort {
        seed: args.seed,
        ..if args.quick { Effort::QUICK } else { Effort::WHOLE }
    };
    let mut worst = Verdict::Ok;
    for file in &args.files {
        let checked = match check(file, &config, &effort)? {
            Ok(checked) => checked,
            Err(error) => return Ok(unreadable(&error.into())),
        };
        worst = worst.max(checked.report.worst());
        match args.json {
            true => println!("{}", checked.json(file)),
            false => print!("{}", checked.text(file)),
        }
    }
    Ok(match worst {
        Verdict::Failed => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

fn unreadable(error: &anyhow::Error) -> ExitCode {
    eprintln!("forebay: {error:#}");
    ExitCode::from(UNREADABLE)
}

/// JSON text, or what a file says.
pub(super) fn read_config(text: &str) -> anyhow::Result<Value> {
    let (text, place) = match text.trim_start().starts_with('{') {
        true => (text.to_owned(), "--config".to_owned()),
        false => {
            let read = std::fs::read_to_string(text).with_context(|| format!("cannot read {text}"))?;
            (read, text.to_owned())
        }
    };
    let value: Value = serde_json::from_str(&text).with_context(|| format!("{place} is not JSON"))?;
    anyhow::ensure!(value.is_object(), "{place} is no table: {{ \"key\": … }}");
    Ok(value)
}

/// What came out about one component.
struct Checked {
    offers: Vec<&'static str>,
    report: Report,
    /// What the host or the guest said about each kind of fault, the first time.
    details: BTreeMap<Fault, String>,
}

/// The inner error is a file that cannot be read; whatever else is wrong with a file is a finding.
fn check(file: &Path, config: &Value, effort: &Effort) -> anyhow::Result<Result<Checked, LoadError>> {
    let notes = Arc::new(Notes::default());
    let settings = Settings {
        mode: Mode::Test,
        threads: 1,
        attachments: 1,
        cache: None,
    };
    let host = Host::new(&settings, notes.clone())?;
    let attached = host
        .load(file, None)
        .and_then(|loaded| loaded.attach(&setup(config), granted(), Duration::ZERO));
    Ok(match attached {
        Ok(attachment) => {
            let report = kit::check(&*attachment, effort);
            let details = notes.0.lock().clone();
            Ok(Checked {
                offers: offered(&*attachment),
                report,
                details,
            })
        }
        Err(error @ LoadError::Read { .. }) => Err(error),
        Err(refusal) => Ok(Checked::refused(&refusal)),
    })
}

/// Its author may look at it with everything granted.
pub(super) fn granted() -> Limits {
    Limits {
        grants: Grants::ALL,
        ..Limits::default()
    }
}

/// What the component is told. Whatever its configuration names is there for a route to choose.
pub(super) fn setup(config: &Value) -> Setup {
    let mut names: BTreeSet<String> = NAMES.map(str::to_owned).into();
    texts(config, &mut names);
    let names: Vec<String> = names.into_iter().collect();
    Setup {
        policy: "checked".into(),
        attachment: "app".into(),
        config: config.to_string(),
        backends: names.clone(),
        redirects: names.clone(),
        responses: names,
    }
}

/// Every text within a value.
fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(list) => list.iter().for_each(|it| texts(it, found)),
        Value::Object(table) => table.values().for_each(|it| texts(it, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn offered(attachment: &dyn Attachment) -> Vec<&'static str> {
    let offers = attachment.offers();
    let all = [
        (offers.plan, "plan"),
        (offers.pick, "pick"),
        (offers.route, "route"),
        (offers.reuse, "reuse"),
        (offers.reuse_plan, "reuse-plan"),
        (offers.classify, "classify"),
        (offers.admit, "admit"),
    ];
    all.into_iter()
        .filter_map(|(offers, name)| offers.then_some(name))
        .collect()
}

impl Checked {
    /// One that cannot be asked.
    fn refused(refusal: &LoadError) -> Checked {
        let finding = Finding {
            check: "load".into(),
            verdict: Verdict::Failed,
            figure: refusal.to_string(),
            situation: String::new(),
        };
        Checked {
            offers: Vec::new(),
            report: Report {
                findings: vec![finding],
            },
            details: BTreeMap::new(),
        }
    }

    fn text(&self, file: &Path) -> String {
        let mut text = format!("{}: {}\n{}", file.display(), self.offers.join(", "), self.report);
        for (fault, detail) in &self.details {
            text.push_str(&format!("  {}: {detail}\n", fault.word()));
        }
        text
    }

    fn json(&self, file: &Path) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "check": finding.check,
                "verdict": finding.verdict.word(),
                "figure": finding.figure,
                "situation": finding.situation,
            })
        };
        let detail = |(fault, detail): (&Fault, &String)| (fault.word().to_owned(), json!(detail));
        json!({
            "file": file.display().to_string(),
            "offers": self.offers,
            "verdict": self.report.worst().word(),
            "findings": self.report.findings.iter().map(finding).collect::<Vec<_>>(),
            "faults": self.details.iter().map(detail).collect::<serde_json::Map<_, _>>(),
        })
    }
}

/// Keeps the first detail of each kind of fault. What a guest logs is for operators.
#[derive(Default)]
pub(super) struct Notes(Mutex<BTreeMap<Fault, String>>);

impl Journal for Notes {
    fn said(&self, _: &Attached, _: Level, _: &str) {}
    fn fault(&self, _: &Attached, fault: Fault, detail: &str) {
        self.0.lock().entry(fault).or_insert_with(|| detail.to_owned());
    }
    fn paused(&self, _: &Attached, _: Fault, _: Duration) {}
    fn resumed(&self, _: &Attached) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_configuration_names_is_there() {
        let config = json!({ "backend": "canary", "share": 5, "more": ["x", { "of": "y" }] });
        let setup = setup(&config);
        assert_eq!(setup.backends, ["app", "canary", "other", "x", "y"]);
        assert_eq!(setup.config, config.to_string());
    }

    #[test]
    fn a_configuration_is_text_or_a_file() {
        assert_eq!(read_config(r#" { "a": 1 }"#).expect("JSON"), json!({ "a": 1 }));
        for wrong in ["{ a", "/no/such/file.json", ""] {
            assert!(read_config(wrong).is_err(), "{wrong}");
        }
    }
}
