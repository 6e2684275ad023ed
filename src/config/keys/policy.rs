//! Keys of `[policy.NAME]`.

use super::{Default, Form, Key, Section, Shape, balance, built, key, not_yet};
use crate::config::defaults;

pub(super) const POLICY: &[Key] = &[
    key(
        "component",
        Form::Text("the path of a WebAssembly component"),
        Default::Required,
        "The component; a relative path begins at the folder of this file.",
    ),
    key(
        "config",
        Form::Other("a table", &[Shape::Table]),
        Default::Said("`{}`"),
        "The component's own configuration, which it checks itself. It gets JSON: durations and sizes as the strings that \
         are written here, dates as strings too; at most 64 KiB.",
    ),
    key(
        "fallback",
        Form::Other(
            "as `balance`, without a policy",
            &[
                Shape::As(balance::ALGORITHMS),
                Shape::Part(Section::Balance, balance::NATIVE),
            ],
        ),
        Default::Word(defaults::BALANCE),
        "How a backend chooses a server when the policy is silent, fails or is too slow.",
    ),
    key(
        "on-fault",
        Form::Choice(&[built("fallback"), built("deny")]),
        Default::Word(defaults::ON_FAULT),
        "When a route policy fails: `fallback` does what the routes chose, `deny` refuses the request. Only for route \
         policies.",
    ),
    key(
        "deadline",
        Form::Duration(defaults::POLICY_DEADLINE_RANGE),
        Default::Duration(defaults::POLICY_DEADLINE),
        "How long one call may take before it is cut.",
    ),
    key(
        "mean-max",
        Form::Duration(defaults::POLICY_MEAN_RANGE),
        Default::Duration(defaults::POLICY_MEAN_MAX),
        "How long a call for a request may take on average; a slower policy is not asked for a while.",
    ),
    key(
        "memory-max",
        Form::Size(defaults::POLICY_MEMORY_RANGE),
        Default::Size(defaults::POLICY_MEMORY_MAX),
        "Memory of one instance; there is one for each worker and each place where the policy is attached.",
    ),
    key(
        "interval",
        Form::Duration(defaults::POLICY_INTERVAL_RANGE),
        Default::Duration(defaults::POLICY_INTERVAL),
        "Time between two questions for a plan.",
    ),
    key(
        "grants",
        Form::Words(&[built("counters"), built("store")]),
        Default::Said("none"),
        "What the component may import beyond what every policy may: `counters` that are shown with the metrics, a `store` \
         that outlives its instances. A component that imports what it was not granted is refused.",
    ),
    key(
        "sha256",
        Form::Text("64 hexadecimal digits"),
        Default::Said("any"),
        "Digest that the component must have.",
    ),
    not_yet("fuel-max", "Instructions of one call in a test."),
];
