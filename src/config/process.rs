//! Builds `[process]`.

use super::address::{self, Place};
use super::errors::{Class, Problem, Report};
use super::keys;
use super::model::{Log, LogFormat, LogTarget, Process, Sharing};
use super::policy;
use super::read::{Fields, Text};
use super::resolve::Answers;
use super::words::did_you_mean;
use super::{defaults, keys::Section};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// `[process]`, or its defaults.
pub(super) fn process(top: &Fields<'_>, folder: &Path, answers: &Answers, report: &mut Report) -> Process {
    let none = DeTable::new();
    let given = top.table("process", report);
    let absent = given.is_none();
    let fields = given.unwrap_or_else(|| Fields::of(Section::Process, &none, 0..0, report));
    let low = fields.percent("pool-low-fd-ratio", report);
    let high = fields.percent("pool-high-fd-ratio", report);
    if !absent && low > high {
        ratios(&fields, low, high, report);
    }
    Process {
        workers: workers(&fields, report),
        control: control(&fields, report),
        metrics: metrics(&fields, answers, report),
        log: log(&fields, report),
        pool_low_fd_ratio: low as u8, // 1…100 by its range
        pool_high_fd_ratio: high as u8,
        pool_sharing: match fields.choice("pool-sharing", report) {
            "off" => Sharing::Off,
            _ => Sharing::On,
        },
        hard_stop_after: fields.duration("hard-stop-after", report),
        attachments_max: fields.integer("attachments-max", report) as u16, // at most 1024 by its range
        plugin_cache: policy::path("plugin-cache", &fields, folder, report),
    }
}

fn workers(fields: &Fields<'_>, report: &mut Report) -> u16 {
    let given = fields.given_integer("workers", report).map(|(number, _)| number);
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    given.unwrap_or_else(|| cores().clamp(*defaults::WORKERS.start(), *defaults::WORKERS.end())) as u16 // at most 64
}

fn ratios(fields: &Fields<'_>, low: u64, high: u64, report: &mut Report) {
    let at = |name: &str| fields.raw(name).map(|value| value.span());
    let Some(here) = at("pool-low-fd-ratio").or(at("pool-high-fd-ratio")) else {
        return;
    };
    let found = format!("`pool-low-fd-ratio` is {low}%, above `pool-high-fd-ratio` with {high}%");
    let problem = Problem::new(Class::Wrong, here, found).expected("expected low ≤ high (POOL-33)");
    let both = at("pool-low-fd-ratio").and(at("pool-high-fd-ratio"));
    report.push(match both {
        Some(other) => problem.also(other, "the high one"),
        None if fields.has("pool-low-fd-ratio") => {
            problem.help(format!("set `pool-high-fd-ratio` too; its default is {high}"))
        }
        None => problem.help(format!("set `pool-low-fd-ratio` too; its default is {low}")),
    });
}

fn control(fields: &Fields<'_>, report: &mut Report) -> Option<PathBuf> {
    let text = fields.text("control", report)?;
    if let Some(path) = text.text.strip_prefix("unix:") {
        let found = format!("`control` is \"{}\"", text.text);
        report.wrong(
            text.at,
            found,
            "expected a path alone",
            format!("write \"{path}\""),
        );
        return None;
    }
    match address::unix_path(text.text) {
        Ok(path) => Some(path),
        Err(wrong) => {
            let found = format!("`control` {}", wrong.why);
            report.wrong(text.at, found, "expected the path of a Unix socket", "");
            None
        }
    }
}

fn metrics(fields: &Fields<'_>, answers: &Answers, report: &mut Report) -> Option<SocketAddr> {
    let text = fields.text("metrics", report)?;
    match address::read("metrics", &text, report)? {
        Place::Socket(address) => Some(address),
        Place::Name(name, port) => address::resolved(&text, &name, port, answers, report),
        Place::Any(port) => {
            let help = format!("write \"0.0.0.0:{port}\" or \"[::]:{port}\"");
            report.wrong(
                text.at,
                "`metrics` is one address, `*` stands for two",
                "expected one address",
                help,
            );
            None
        }
        Place::Unix(_) => {
            report.wrong(
                text.at,
                "`metrics` is a Unix socket",
                "expected an address such as \"127.0.0.1:9100\"",
                "",
            );
            None
        }
    }
}

fn log(fields: &Fields<'_>, report: &mut Report) -> Log {
    let none = DeTable::new();
    let given = fields.table("log", report);
    let log = given.unwrap_or_else(|| Fields::of(Section::Log, &none, 0..0, report));
    let format = match log.choice("format", report) {
        "human" => LogFormat::Human,
        _ => LogFormat::Json,
    };
    Log {
        format,
        to: log
            .text("to", report)
            .and_then(|to| target(to, report))
            .unwrap_or(LogTarget::Stdout),
    }
}

fn target(to: Text<'_>, report: &mut Report) -> Option<LogTarget> {
    match to.text {
        "none" => Some(LogTarget::None),
        "stdout" => Some(LogTarget::Stdout),
        "stderr" => Some(LogTarget::Stderr),
        path if path.contains('/') && !path.ends_with('/') && !path.contains('\0') => {
            Some(LogTarget::File(path.into()))
        }
        other => {
            let near = keys::nearest(other, ["none", "stdout", "stderr"]);
            let help = match near {
                None if !other.is_empty() && !other.contains(['/', '\0']) => {
                    format!("a file here is \"./{other}\"")
                }
                near => did_you_mean(near, "\""),
            };
            let expected = "expected \"stdout\", \"stderr\", \"none\" or a path with a `/`";
            report.wrong(
                to.at,
                format!("`to` is \"{}\"", other.escape_debug()),
                expected,
                help,
            );
            None
        }
    }
}
