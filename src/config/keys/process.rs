//! Keys of the file itself, of `[process]` and of what stands in it.

use super::{Default, Form, Key, Section, built, key};
use crate::config::defaults;

pub(super) const FILE: &[Key] = &[
    key(
        "process",
        Form::Table(Section::Process),
        Default::Said("defaults"),
        "What the whole process shares.",
    ),
    key(
        "listen",
        Form::Tables(Section::Listen),
        Default::Required,
        "Where clients come from; at least one.",
    ),
    key(
        "backend",
        Form::Named(Section::Backend),
        Default::Said("none"),
        "Servers that answer the same requests.",
    ),
    key(
        "policy",
        Form::Named(Section::Policy),
        Default::Said("none"),
        "WebAssembly components that choose servers and routes, and say how connections are shared.",
    ),
];

pub(super) const PROCESS: &[Key] = &[
    key("workers", Form::Integer(defaults::WORKERS), Default::Said("one per core"), "Worker threads."),
    key("control", Form::Text("a path"), Default::Said("none"), "Unix socket of the runtime commands (`forebay ctl`)."),
    key(
        "metrics",
        Form::Text("an address such as \"127.0.0.1:9100\""),
        Default::Said("none"),
        "Where the Prometheus metrics are served.",
    ),
    key("log", Form::Table(Section::Log), Default::Said("defaults"), "The access log."),
    key(
        "pool-low-fd-ratio",
        Form::Percent(defaults::POOL_FD_RATIO),
        Default::Integer(defaults::POOL_LOW_FD_RATIO),
        "Percent of the descriptor limit below which idle server connections are kept freely.",
    )
    .clause("POOL-33"),
    key(
        "pool-high-fd-ratio",
        Form::Percent(defaults::POOL_FD_RATIO),
        Default::Integer(defaults::POOL_HIGH_FD_RATIO),
        "Percent of the descriptor limit from which no idle server connection is kept; not below the low one.",
    )
    .clause("POOL-33"),
    key(
        "pool-sharing",
        Form::Choice(&[built("on"), built("off")]),
        Default::Word(defaults::POOL_SHARING),
        "Whether a worker takes over an idle server connection of another one when it has none.",
    )
    .clause("POOL-21"),
    key(
        "hard-stop-after",
        Form::Duration(defaults::GRACE),
        Default::Duration(defaults::HARD_STOP_AFTER),
        "How long a drain may last before what is left is cut.",
    )
    .clause("RE-1"),
    key(
        "attachments-max",
        Form::Integer(defaults::ATTACHMENTS_RANGE),
        Default::Integer(defaults::ATTACHMENTS_MAX),
        "Places (listeners and backends) with a policy, at most. Address space is set aside for all of them at the start.",
    ),
    key(
        "plugin-cache",
        Form::Text("a path"),
        Default::Said("none"),
        "Folder where compiled components are kept; a relative path begins at the folder of this file.",
    ),
];

pub(super) const LOG: &[Key] = &[
    key(
        "format",
        Form::Choice(&[built("json"), built("human")]),
        Default::Word(defaults::LOG_FORMAT),
        "One JSON object a line, or one line for people.",
    ),
    key(
        "to",
        Form::Text("\"stdout\", \"stderr\", \"none\" or a path with a `/`"),
        Default::Word(defaults::LOG_TO),
        "Where the lines go; a file is opened again on SIGHUP; with `\"none\"` no record is made at all.",
    ),
];
