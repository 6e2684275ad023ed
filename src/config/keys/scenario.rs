//! Keys of a scenario's own sections: what `forebay test` simulates around a configuration.

use super::{Default, Form, Key, Section, Shape, built, key};

const COUNT: std::ops::RangeInclusive<u64> = 1..=1_000_000;
const TIME: std::ops::RangeInclusive<std::time::Duration> =
    std::time::Duration::ZERO..=std::time::Duration::from_secs(86_400);
/// A time that may be drawn.
const LONG_SHAPES: &[Shape] = &[
    Shape::As(Form::Duration(TIME)),
    Shape::As(Form::Table(Section::Span)),
];
const KEYS_SHAPES: &[Shape] = &[
    Shape::List(&[Form::Text("a text")], 100_000),
    Shape::As(Form::Table(Section::Keys)),
];
const LONG: &str = "a duration, or { mean = … }, { from = …, to = … }, { median = …, p99 = … }";

pub(super) const FILE: &[Key] = &[
    key(
        "scenario",
        Form::Table(Section::Scenario),
        Default::Required,
        "What is simulated.",
    ),
    key(
        "server",
        Form::Tables(Section::Machine),
        Default::Required,
        "How servers behave.",
    ),
    key(
        "traffic",
        Form::Tables(Section::Traffic),
        Default::Said("none"),
        "Who asks.",
    ),
    key(
        "request",
        Form::Tables(Section::Scripted),
        Default::Said("none"),
        "Single requests.",
    ),
    key(
        "event",
        Form::Tables(Section::Event),
        Default::Said("none"),
        "What happens meanwhile.",
    ),
    key(
        "show",
        Form::Table(Section::Show),
        Default::Said("see there"),
        "What the transcript shows.",
    ),
    key(
        "expect",
        Form::Table(Section::Expect),
        Default::Said("nothing"),
        "What must hold.",
    ),
    key(
        "process",
        Form::Table(Section::Process),
        Default::Said("see there"),
        "As in a configuration.",
    ),
    key(
        "listen",
        Form::Tables(Section::Listen),
        Default::Said("one that sends all to the first backend"),
        "As in a configuration.",
    ),
    key(
        "backend",
        Form::Named(Section::Backend),
        Default::Said("those of `config`"),
        "As in a configuration; \
         a server may be just a name, and \"s[1-5]\" stands for five of them.",
    ),
    key(
        "policy",
        Form::Named(Section::Policy),
        Default::Said("none"),
        "As in a configuration.",
    ),
];

pub(super) const SCENARIO: &[Key] = &[
    key(
        "about",
        Form::Text("a sentence"),
        Default::Required,
        "What the scenario is there to show.",
    ),
    key(
        "config",
        Form::Text("the path of a configuration"),
        Default::Said("this file's own sections"),
        "The configuration \
         that is simulated, as it is; relative to this file. Its addresses are not looked up.",
    ),
    key(
        "workers",
        Form::Integer(1..=64),
        Default::Integer(2),
        "Workers; clients are dealt to them in turn.",
    ),
    key(
        "seed",
        Form::Integer(0..=u64::MAX >> 1),
        Default::Integer(1),
        "Where all chance comes from.",
    ),
    key(
        "duration",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::from_secs(10)),
        "Nobody asks any more from then on.",
    ),
    key(
        "requests",
        Form::Integer(1..=100_000_000),
        Default::Said("no limit"),
        "Nor after so many requests.",
    ),
    key(
        "connect",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::from_micros(100)),
        "How long a connect takes.",
    ),
    key(
        "patience",
        Form::Other(LONG, LONG_SHAPES),
        Default::Said("none leaves"),
        "A client that waits in a queue for longer leaves; drawn for each.",
    ),
    key(
        "contention",
        Form::Percent(0..=100),
        Default::Integer(0),
        "In so many of a hundred searches one sibling, drawn, is at its own idle connections.",
    ),
    key(
        "descriptors",
        Form::Integer(16..=1 << 20),
        Default::Integer(1 << 20),
        "Descriptors that the process may open.",
    ),
    key(
        "costs",
        Form::Table(Section::Costs),
        Default::Said("nothing costs a worker time"),
        "What a worker's own work costs it.",
    ),
];

pub(super) const COSTS: &[Key] = &[
    key(
        "request",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "Read a request, choose, find a connection, send it.",
    ),
    key(
        "response",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "Read a response, send it, park the connection.",
    ),
    key(
        "open",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "Open a connection, besides.",
    ),
    key(
        "takeover",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "Take one over from a sibling, besides.",
    ),
    key(
        "grant",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "Be told of the end of a wait.",
    ),
];

pub(super) const MACHINE: &[Key] = &[
    key(
        "name",
        Form::Texts("`\"BACKEND/SERVER\"`, where `*` stands for anything"),
        Default::Said("all"),
        "Which servers; the last section that fits one counts.",
    ),
    key(
        "service",
        Form::Other(LONG, LONG_SHAPES),
        Default::Required,
        "From a request to its response, the way there and back included.",
    ),
    key(
        "capacity",
        Form::Integer(COUNT),
        Default::Said("any number"),
        "Requests that it works on at a time; more wait inside it.",
    ),
    key(
        "closes-after",
        Form::Integer(COUNT),
        Default::Said("never"),
        "It closes a connection after so many responses, and says so in the last.",
    ),
    key(
        "report",
        Form::Text("the text of the field, such as `\"TEXT cpu_utilization={load}\"`"),
        Default::Said("none"),
        "What it writes in each response about its load (`endpoint-load-metrics`; see `load-report` of a backend). Filled in \
         are `{in-flight}`, the requests that it has, `{queued}`, those of them that it does not work on yet, and \
         `{load}`, their number by its capacity.",
    ),
    key(
        "refuses",
        Form::Share,
        Default::Said("none"),
        "Connects that it refuses.",
    ),
    key(
        "drops",
        Form::Share,
        Default::Said("none"),
        "Requests on which it closes the connection instead of an answer.",
    ),
    key(
        "errors",
        Form::Share,
        Default::Said("none"),
        "Requests that it answers with 500.",
    ),
    key(
        "hangs",
        Form::Share,
        Default::Said("none"),
        "Requests that it never answers.",
    ),
    key(
        "down",
        Form::Flag,
        Default::Flag(false),
        "It is dead: connects are refused, connections closed when a request comes.",
    ),
];

pub(super) const SPAN: &[Key] = &[
    key(
        "mean",
        Form::Duration(TIME),
        Default::Said("none"),
        "Exponential: short ones are many, long ones few and far out.",
    ),
    key(
        "from",
        Form::Duration(TIME),
        Default::Said("none"),
        "Between this …",
    ),
    key(
        "to",
        Form::Duration(TIME),
        Default::Said("none"),
        "… and this, each as often.",
    ),
    key(
        "median",
        Form::Duration(TIME),
        Default::Said("none"),
        "Half are shorter (log-normal) …",
    ),
    key(
        "p99",
        Form::Duration(TIME),
        Default::Said("none"),
        "… and one in a hundred is longer.",
    ),
];

pub(super) const TRAFFIC: &[Key] = &[
    key(
        "clients",
        Form::Integer(COUNT),
        Default::Said("as many as needed"),
        "Client connections. With `think` each waits for its \
         response before it asks again; with `rate` requests are spread over them.",
    ),
    key(
        "think",
        Form::Other(LONG, LONG_SHAPES),
        Default::Said("none"),
        "From a response to the same client's next request.",
    ),
    key(
        "rate",
        Form::Integer(COUNT),
        Default::Said("none"),
        "Requests a second, whatever becomes of those before.",
    ),
    key(
        "pace",
        Form::Choice(&[built("random"), built("even")]),
        Default::Word("random"),
        "Whether the times between them are drawn (Poisson) or equal.",
    ),
    key(
        "burst",
        Form::Integer(1..=10_000),
        Default::Integer(1),
        "So many at once each time; the rate stays.",
    ),
    key(
        "session",
        Form::Integer(COUNT),
        Default::Said("for ever"),
        "After so many requests a client comes back as a new one.",
    ),
    key(
        "from",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "From when on.",
    ),
    key(
        "until",
        Form::Duration(TIME),
        Default::Said("the end"),
        "Until when.",
    ),
    key(
        "listen",
        Form::Text("a listener's name"),
        Default::Said("the first"),
        "Where they come in.",
    ),
    key(
        "method",
        Form::Text("a token"),
        Default::Word("GET"),
        "The method.",
    ),
    key(
        "host",
        Form::Text("a host"),
        Default::Word("scenario.test"),
        "The host. In this, the path and the headers `{key}` stands for \
         a key, `{client}` for the client's number, `{n}` for the request's.",
    ),
    key(
        "path",
        Form::Text("a path, perhaps with a query"),
        Default::Word("/"),
        "The path.",
    ),
    key(
        "headers",
        Form::Other("a table of names and values", &[Shape::Strings(200)]),
        Default::Said("none"),
        "Other fields.",
    ),
    key(
        "keys",
        Form::Other("a list of texts, { uniform = N } or { zipf = N }", KEYS_SHAPES),
        Default::Said("always 0"),
        "Where `{key}` comes from.",
    ),
];

pub(super) const KEYS: &[Key] = &[
    key(
        "uniform",
        Form::Integer(COUNT),
        Default::Said("none"),
        "Numbers below this, each as often.",
    ),
    key(
        "zipf",
        Form::Integer(1..=100_000),
        Default::Said("none"),
        "Numbers below this, the first most often.",
    ),
    key(
        "exponent",
        Form::Integer(1..=400),
        Default::Integer(100),
        "How steep `zipf` is, in hundredths.",
    ),
];

pub(super) const SCRIPTED: &[Key] = &[
    key("at", Form::Duration(TIME), Default::Required, "When."),
    key(
        "client",
        Form::Integer(0..=100_000),
        Default::Integer(0),
        "Which client sends it.",
    ),
    key(
        "count",
        Form::Integer(1..=100_000),
        Default::Integer(1),
        "So many of them, by clients one after the other …",
    ),
    key(
        "every",
        Form::Duration(TIME),
        Default::Duration(std::time::Duration::ZERO),
        "… each so long after the one before.",
    ),
    key(
        "service",
        Form::Duration(TIME),
        Default::Said("as the server's"),
        "How long its server takes, whichever that is.",
    ),
    key(
        "listen",
        Form::Text("a listener's name"),
        Default::Said("the first"),
        "Where it comes in.",
    ),
    key(
        "method",
        Form::Text("a token"),
        Default::Word("GET"),
        "The method.",
    ),
    key(
        "host",
        Form::Text("a host"),
        Default::Word("scenario.test"),
        "The host.",
    ),
    key(
        "path",
        Form::Text("a path, perhaps with a query"),
        Default::Word("/"),
        "The path.",
    ),
    key(
        "headers",
        Form::Other("a table of names and values", &[Shape::Strings(200)]),
        Default::Said("none"),
        "Other fields.",
    ),
];

pub(super) const EVENT: &[Key] = &[
    key("at", Form::Duration(TIME), Default::Required, "When."),
    key(
        "server",
        Form::Texts("`\"BACKEND/SERVER\"`, where `*` stands for anything"),
        Default::Said("none"),
        "About which servers.",
    ),
    key(
        "state",
        Form::Choice(&[built("as it is"), built("ready"), built("drain"), built("maint")]),
        Default::Word("as it is"),
        "The operator's word (`set server … state`).",
    ),
    key(
        "weight",
        Form::Integer(0..=256),
        Default::Said("as it is"),
        "Another weight.",
    ),
    key(
        "maxconn",
        Form::Integer(1..=1_000_000),
        Default::Said("as it is"),
        "Another limit.",
    ),
    key(
        "service",
        Form::Other(LONG, LONG_SHAPES),
        Default::Said("as it is"),
        "Another time to answer.",
    ),
    key(
        "capacity",
        Form::Integer(COUNT),
        Default::Said("as it is"),
        "Another capacity.",
    ),
    key(
        "report",
        Form::Text("the text of the field, as of a server"),
        Default::Said("as it is"),
        "Another report.",
    ),
    key(
        "refuses",
        Form::Share,
        Default::Said("as it is"),
        "As of a server.",
    ),
    key("drops", Form::Share, Default::Said("as it is"), "As of a server."),
    key(
        "errors",
        Form::Share,
        Default::Said("as it is"),
        "As of a server.",
    ),
    key("hangs", Form::Share, Default::Said("as it is"), "As of a server."),
    key(
        "down",
        Form::Flag,
        Default::Said("as it is"),
        "Whether it is dead from now on.",
    ),
    key(
        "policy",
        Form::Text("a policy's name"),
        Default::Said("none"),
        "A policy that is swapped for …",
    ),
    key(
        "component",
        Form::Text("the path of a WebAssembly component"),
        Default::Said("none"),
        "… this component.",
    ),
    key(
        "config",
        Form::Text("the path of a configuration"),
        Default::Said("none"),
        "A configuration that is taken up, as by a reload: other servers, tags, policies.",
    ),
];

pub(super) const SHOW: &[Key] = &[
    key(
        "decisions",
        Form::Integer(0..=180),
        Default::Integer(40),
        "Lines of decisions: two thirds from the beginning, the rest from the end.",
    ),
    key(
        "step",
        Form::Duration(TIME),
        Default::Said("a fortieth of `duration`"),
        "Time between two points of the charts of `--report`.",
    ),
];

pub(super) const EXPECT: &[Key] = &[
    key(
        "share",
        Form::Other(
            "a table of servers and ranges: { \"app/a\" = \"18%..22%\" }",
            &[Shape::Strings(4095)],
        ),
        Default::Said("any"),
        "Of all requests that servers had, the share of each that is named.",
    ),
    key(
        "least-share",
        Form::Share,
        Default::Said("any"),
        "No server of a backend has less of its backend's requests.",
    ),
    key("most-share", Form::Share, Default::Said("any"), "None has more."),
    key(
        "queueing-p50",
        Form::Duration(TIME),
        Default::Said("any"),
        "Half of those who waited for a slot waited no longer.",
    ),
    key(
        "queueing-p99",
        Form::Duration(TIME),
        Default::Said("any"),
        "Of a hundred who waited, 99 waited no longer.",
    ),
    key(
        "latency-p50",
        Form::Duration(TIME),
        Default::Said("any"),
        "Half of the responses took no longer, waits included.",
    ),
    key(
        "latency-p99",
        Form::Duration(TIME),
        Default::Said("any"),
        "Of a hundred responses, 99 took no longer.",
    ),
    key(
        "reuse",
        Form::Share,
        Default::Said("any"),
        "At least so many requests have a connection that was there.",
    ),
    key(
        "most-reuse",
        Form::Share,
        Default::Said("any"),
        "No more have one: those of others are not for all.",
    ),
    key(
        "failed",
        Form::Integer(0..=1_000_000_000),
        Default::Said("any"),
        "At most so many requests get no response of a server.",
    ),
    key(
        "fallbacks",
        Form::Integer(0..=1_000_000_000),
        Default::Said("any"),
        "At most so many answers of policies are not used.",
    ),
    key(
        "fuel",
        Form::Integer(1..=1_000_000_000),
        Default::Said("any"),
        "No call of a policy takes more units of work. They depend on the compiler that made the component: leave room.",
    ),
    key(
        "moved-keys",
        Form::Share,
        Default::Said("any"),
        "Of the keys that were seen before and after the first event, at most so many change their server.",
    ),
];
