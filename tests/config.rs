//! Configuration files from outside: every kind of mistake with the words it gets, and files that are right.
//!
//! A file of `tests/config/*.cases` holds mistakes of one kind: each begins with `### title`, then comes a configuration.
//! What a person reads about it is a snapshot. Host names are looked up in a table here, so that no network is needed.

#![cfg(feature = "proxy")]

use forebay::config::keys::{SCENARIO_SECTIONS, SECTIONS, Section, State};
use forebay::config::model::{Balance, HashKey, KeyOf, LogTarget, OnFault, PolicyRef};
use forebay::config::{self, Config, Errors, Loaded};
use forebay::decide::route::{Action, BackendRef};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

fn lookup(host: &str, port: u16) -> Result<SocketAddr, String> {
    match host {
        "app.internal" => Ok(SocketAddr::from(([10, 0, 0, 7], port))),
        "localhost" => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        _ => Err("Name or service not known".into()),
    }
}

fn parse(text: &str) -> Result<Loaded, Errors> {
    config::parse_with(text, "f.toml", &lookup)
}

fn good(text: &str) -> Config {
    parse(text)
        .unwrap_or_else(|errors| panic!("{text}\n{}", errors.render(false)))
        .config
}

fn from_root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What stands in the tree under `folder`, by name.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(from_root(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|known| known == extension))
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Title and text of every case of a file.
fn cases(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("### ")
        .skip(1)
        .map(|case| case.split_once('\n').unwrap_or((case, "")))
}

#[test]
fn every_mistake_is_told() {
    let files = files("tests/config", "cases");
    assert!(files.len() >= 7);
    for (name, text) in files {
        let mut told = String::new();
        for (title, text) in cases(&text) {
            let errors = match parse(text) {
                Ok(loaded) => {
                    assert!(
                        !loaded.warnings.is_empty(),
                        "{name}, {title}: nothing is wrong with it"
                    );
                    loaded.warnings
                }
                Err(errors) => errors,
            };
            told.push_str(&format!(
                "##### {title}\n{}\n{errors}\n\n",
                errors.render(false).trim_end()
            ));
        }
        insta::with_settings!({ snapshot_path => "config/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, told);
        });
    }
}

#[test]
fn every_place_lies_in_the_file() {
    for (_, text) in files("tests/config", "cases") {
        for (title, text) in cases(&text) {
            for (line, column) in parse(text)
                .map_or_else(|errors| errors, |loaded| loaded.warnings)
                .places()
            {
                let length = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
                assert!(column <= length + 1, "{title}: {line}:{column}");
            }
        }
    }
}

#[test]
fn every_example_loads_without_a_warning() {
    let files = files("examples", "toml");
    assert!(files.len() >= 3);
    for (name, text) in files {
        let loaded = parse(&text).unwrap_or_else(|errors| panic!("{name}: {}", errors.render(false)));
        assert!(loaded.warnings.is_empty(), "{name}: {}", loaded.warnings);
    }
}

/// A key of the table that nobody read would be ignored in silence: a date, which no key takes, must be refused everywhere.
#[test]
fn every_key_of_the_table_is_read() {
    for section in SECTIONS {
        for key in section.keys().iter().filter(|key| key.state == State::Built) {
            let place = |table: &str| format!("{table}\n{} = 1979-05-27\n", key.name);
            let inside = |table: &str, name: &str| format!("{table}\n{name}.{} = 1979-05-27\n", key.name);
            let beside = |other: &str| {
                if other.starts_with(key.name) {
                    String::new()
                } else {
                    format!(", {other}")
                }
            };
            let inline = |before: &str, other: &str, after: &str| {
                format!("{before}{} = 1979-05-27{}{after}\n", key.name, beside(other))
            };
            let text = match section {
                Section::File => place(""),
                Section::Process => place("[process]"),
                Section::Log => inside("[process]", "log"),
                Section::Listen => place("[[listen]]"),
                Section::Route => place("[[listen]]\n[[listen.route]]"),
                Section::Match => inside("[[listen]]\n[[listen.route]]", "match"),
                Section::Redirect if matches!(key.name, "drop-query" | "append-slash") => inline(
                    "[[listen]]\n[[listen.route]]\nredirect = { ",
                    "prefix = \"/\"",
                    " }",
                ),
                Section::Redirect if matches!(key.name, "prefix" | "scheme") => {
                    inline("[[listen]]\n[[listen.route]]\nredirect = { ", "code = 301", " }")
                }
                Section::Redirect => inline(
                    "[[listen]]\n[[listen.route]]\nredirect = { ",
                    "location = \"/\"",
                    " }",
                ),
                Section::Respond => {
                    inline("[[listen]]\n[[listen.route]]\nrespond = { ", "status = 200", " }")
                }
                Section::Headers => inside("[[listen]]", "request-headers"),
                Section::Backend => place("[backend.a]"),
                Section::Balance => inside("[backend.a]", "balance"),
                Section::Hash => inside("[backend.a]", "balance.hash"),
                Section::Cookie => inside("[backend.a]", "cookie"),
                Section::Policy => place("[policy.a]"),
                Section::Server => inline("[backend.a]\nservers = [{ ", "address = \"127.0.0.1:1\"", " }]"),
                other => unreachable!("{other:?} is of scenarios"),
            };
            let told = parse(&text).unwrap_err().to_string();
            assert!(
                told.contains(&format!("`{}` is a date", key.name)),
                "{text}\n{told}"
            );
        }
    }
}

#[test]
fn what_is_shown_loads_and_means_the_same() {
    for (name, text) in files("examples", "toml") {
        let shown = config::show(&good(&text));
        assert_eq!(config::show(&good(&shown)), shown, "{name}");
    }
}

#[test]
fn what_is_in_effect() {
    let text = "[process]\nworkers = 2\n[[listen]]\nbind = \"*:8080\"\nbackend = \"app\"\n[backend.app]\nservers = \"app.internal:80\"\n";
    insta::with_settings!({ snapshot_path => "config/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("in_effect", config::show(&good(text)));
    });
}

const WITH_POLICIES: &str = r#"
[process]
workers = 1
attachments-max = 3
plugin-cache = "cache"
[[listen]]
bind = "127.0.0.1:80"
backend = "app"
route-policy = "canary"
[[listen.route]]
name = "moved"
match = { share = 0 }
redirect = { location = "/new" }
[[listen.route]]
match = { path = "/a" }
backend = "app"
[[listen.route]]
name = "busy"
match = { share = 0 }
respond = { status = 503 }
[backend.app]
balance = { policy = "least-latency" }
reuse-policy = "least-latency"
queue-policy = "least-latency"
reuse-override = "allow"
load-report = "pass"
load-report-max-age = "2500ms"
servers = [{ name = "a", address = "127.0.0.1:1", tags = { zone = "eu", rack = "7" } }, "127.0.0.1:2"]
[policy.canary]
component = "canary.wasm"
on-fault = "deny"
sha256 = "000102030405060708090A0B0C0D0E0F101112131415161718191a1b1c1d1e1f"
[policy.least-latency]
component = "/opt/least latency.wasm"
fallback = { random = 3 }
deadline = "5ms"
mean-max = "50us"
memory-max = "1MiB"
interval = "250ms"
grants = ["store", "counters"]
config.window = "5s"
config.nested = { "a b" = [1, -2, 0x10, 1.5, 1e3, true, "\u0001\"é"], empty = {}, none = [], day = 1979-05-27 }
"#;

#[test]
fn policies_in_effect() {
    let loaded = config::parse_with(WITH_POLICIES, "etc/f.toml", &lookup).unwrap();
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let config = loaded.config;
    let (canary, least) = (&config.policies[0], &config.policies[1]);
    assert_eq!(canary.component.path, Path::new("etc/canary.wasm"));
    assert_eq!(least.component.path, Path::new("/opt/least latency.wasm"));
    assert_eq!(
        config.process.plugin_cache.as_ref().unwrap().path,
        Path::new("etc/cache")
    );
    assert_eq!(canary.sha256.unwrap(), std::array::from_fn(|at| at as u8));
    assert_eq!(
        (canary.config_json.as_str(), canary.on_fault),
        ("{}", OnFault::Deny)
    );
    assert_eq!(
        least.config_json,
        r#"{"nested":{"a b":[1,-2,16,1.5,1000.0,true,"\u0001\"é"],"day":"1979-05-27","empty":{},"none":[]},"window":"5s"}"#
    );
    let (listen, backend) = (&config.listeners[0], &config.backends[0]);
    assert_eq!(
        (backend.policy, backend.balance.clone()),
        (Some(PolicyRef(1)), Balance::Random(3))
    );
    assert_eq!(listen.route_policy, Some(PolicyRef(0)));
    assert_eq!(listen.redirects().collect::<Vec<_>>(), [("moved", 0)]);
    assert_eq!(listen.responses().collect::<Vec<_>>(), [("busy", 2)]);
    let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(backend.servers[0].tags, [tag("rack", "7"), tag("zone", "eu")]);
    let shown = config::show(&config);
    assert_eq!(config::show(&good(&shown)), shown);
    insta::with_settings!({ snapshot_path => "config/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("policies_in_effect", shown);
    });
}

const BALANCED: &str = r#"
[process]
workers = 1
[[listen]]
bind = "127.0.0.1:80"
backend = "keyed"
[backend.keyed]
balance = { hash = { header = "x-user" }, type = "consistent", bound = 150, affinity = "maxconn", else = "leastconn", hash-key = "address" }
allbackups = true
slowstart = "60s"
prefer-last-server = true
cookie = { name = "srv", secure = true, same-site = "none", path = "/app", domain = "app.test", max-age = "1d", private = false }
servers = [{ name = "a", address = "127.0.0.1:1", cookie = "one" }, { name = "b", address = "127.0.0.1:2", backup = true }]
[backend.plain]
balance = { hash = "source", else = { random = 3 } }
cookie = { name = "srv" }
servers = ["127.0.0.1:1"]
[backend.first]
balance = "first"
servers = ["127.0.0.1:1"]
[backend.sticky]
balance = "sticky"
servers = ["127.0.0.1:1"]
"#;

/// LB-40…43, LB-50…52, LB-60.
#[test]
fn what_balances_is_shown_and_loads_again() {
    let config = good(BALANCED);
    let Balance::Hash(hash) = &config.backends[0].balance else {
        panic!("{:?}", config.backends[0].balance)
    };
    assert_eq!(hash.of, KeyOf::Header("x-user".into()));
    assert_eq!((hash.by, hash.hash.bound), (HashKey::Address, Some(150)));
    let shown = config::show(&config);
    assert_eq!(config::show(&good(&shown)), shown);
    for (again, backend) in good(&shown).backends.iter().zip(&config.backends) {
        assert_eq!(
            (&again.balance, &again.cookie),
            (&backend.balance, &backend.cookie)
        );
        assert_eq!(again.slow_start, backend.slow_start);
    }
    insta::with_settings!({ snapshot_path => "config/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("balanced_in_effect", shown);
    });
}

/// LB-42: so many points are too many.
#[test]
fn a_ring_has_a_limit() {
    let servers = |count: u32| {
        let one = |at| format!("{{ name = \"s{at}\", address = \"127.0.0.1:1\", weight = 256 }}");
        (0..count).map(one).collect::<Vec<_>>().join(", ")
    };
    let of = |count, mapping: &str| {
        format!(
            "[[listen]]\nbind = \"127.0.0.1:0\"\nbackend = \"a\"\n[backend.a]\n\
             balance = {{ hash = \"uri\", type = \"{mapping}\" }}\nservers = [{}]\n",
            servers(count)
        )
    };
    good(&of(256, "consistent"));
    good(&of(257, "map-based"));
    let told = parse(&of(257, "consistent")).unwrap_err().to_string();
    assert!(
        told.contains("f.toml:5:11") && told.contains("sum up to 65792"),
        "{told}"
    );
}

#[test]
fn the_queue_waits_as_long_as_a_connect_unless_told() {
    let text = "[[listen]]\nbind = \"127.0.0.1:0\"\nbackend = \"a\"\n[backend.a]\nservers = [\"127.0.0.1:1\"]\ntimeout-connect = \"2s\"\n";
    let config = good(text);
    assert_eq!(
        config.backends[0].timeouts.queue,
        config.backends[0].timeouts.connect
    );
    let config = good(&format!("{text}timeout-queue = \"7s\"\n"));
    assert_eq!(config.backends[0].timeouts.queue.as_secs(), 7);
}

/// The shape that benches and black-box tests write.
#[test]
fn a_generated_file_loads() {
    let config = good(
        "[process]\nworkers = 2\nlog = { to = \"none\" }\npool-low-fd-ratio = 90\npool-high-fd-ratio = 95\n\
         [[listen]]\nbind = \"127.0.0.1:0\"\nbackend = \"b\"\ntimeout-client = \"600s\"\ntimeout-http-keep-alive = \"600s\"\n\
         [backend.b]\nbalance = \"roundrobin\"\ntimeout-connect = \"5s\"\ntimeout-server = \"600s\"\ntimeout-queue = \"60s\"\n\
         reuse = \"always\"\nservers = [\"127.0.0.1:9001\", \"127.0.0.1:9002\"]\n",
    );
    assert_eq!(config.process.log.to, LogTarget::None);
    assert_eq!(config.backends[0].balance, Balance::RoundRobin);
    assert_eq!(config.listeners[0].timeouts.inactivity.as_secs(), 600);
    assert_eq!(config.listeners[0].name, "listen-1");
}

#[test]
fn order_is_that_of_the_file() {
    let text = "[[listen]]\nbind = \"127.0.0.1:0\"\nbackend = \"b\"\n[[listen.route]]\nmatch.path = \"/a\"\nbackend = \"a\"\n\
                [backend.b]\nservers = [\"127.0.0.1:2\"]\n[backend.a]\nservers = [\"127.0.0.1:1\"]\n";
    let config = good(text);
    let names: Vec<_> = config
        .backends
        .iter()
        .map(|backend| backend.name.as_str())
        .collect();
    assert_eq!(names, ["b", "a"]);
    assert_eq!(config.listeners[0].routes.default.unwrap().0, 0);
    assert_eq!(
        config.listeners[0].routes.routes[0].action,
        Action::Backend(BackendRef(1))
    );
}

#[test]
fn a_file_with_windows_line_ends_and_a_byte_order_mark_is_read() {
    let text = std::fs::read_to_string(from_root("examples/full.toml")).unwrap();
    good(&format!("\u{feff}{}", text.replace('\n', "\r\n")));
}

#[test]
fn a_file_that_is_not_utf8_says_where() {
    let path = std::env::temp_dir().join(format!("forebay-latin1-{}.toml", std::process::id()));
    std::fs::write(&path, b"[process]\n# caf\xe9\n").unwrap();
    let errors = config::load(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(errors.contains("line 2, column 6: not UTF-8"), "{errors}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is cut out of a good file, doubled in it or put into it, reading ends with a configuration or with errors
    /// whose places can be printed.
    #[test]
    fn no_text_makes_it_panic(start in 0..4_000_usize, length in 0..40_usize, put in "[ -~\n\u{e4}]{0,12}", doubled: bool) {
        let text = std::fs::read_to_string(from_root("examples/full.toml")).unwrap();
        let start = text.floor_char_boundary(start.min(text.len()));
        let end = text.floor_char_boundary((start + length).min(text.len()));
        let kept = if doubled { &text[start..] } else { &text[end..] };
        let mutated = format!("{}{put}{kept}", &text[..start]);
        match parse(&mutated) {
            Ok(loaded) => { good(&config::show(&loaded.config)); }
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                prop_assert!(!errors.render(false).is_empty());
                prop_assert_eq!(errors.to_string().lines().count(), errors.len());
            }
        }
    }
}

/// The same for what only a scenario has.
#[test]
fn every_key_of_a_scenario_is_read() {
    const AROUND: &str = "[backend.a]\nservers = [\"s\"]\n[policy.p]\ncomponent = \"p.wasm\"\n";
    for section in SCENARIO_SECTIONS {
        for key in section.keys() {
            let line = format!("{} = 1979-05-27", key.name);
            let text = match section {
                // Tables of its own, and those of a configuration.
                Section::ScenarioFile => continue,
                Section::Scenario => format!("{AROUND}[scenario]\n{line}\n"),
                Section::Costs => format!("{AROUND}[scenario]\nabout = \"a\"\ncosts = {{ {line} }}\n"),
                Section::Machine => format!("{AROUND}[scenario]\nabout = \"a\"\n[[server]]\n{line}\n"),
                Section::Span => {
                    format!("{AROUND}[scenario]\nabout = \"a\"\n[[server]]\nservice = {{ {line} }}\n")
                }
                Section::Traffic if key.name == "rate" => {
                    format!("{AROUND}[scenario]\nabout = \"a\"\n[[traffic]]\n{line}\n")
                }
                Section::Traffic => {
                    let other = if key.name == "think" {
                        "rate = 1"
                    } else {
                        "think = \"1ms\""
                    };
                    format!("{AROUND}[scenario]\nabout = \"a\"\n[[traffic]]\n{other}\n{line}\n")
                }
                Section::Keys => format!(
                    "{AROUND}[scenario]\nabout = \"a\"\n[[traffic]]\nthink = \"1ms\"\nkeys = {{ {line} }}\n"
                ),
                Section::Scripted => format!("{AROUND}[scenario]\nabout = \"a\"\n[[request]]\n{line}\n"),
                Section::Event => format!("{AROUND}[scenario]\nabout = \"a\"\n[[event]]\n{line}\n"),
                Section::Show => format!("{AROUND}[scenario]\nabout = \"a\"\n[show]\n{line}\n"),
                Section::Expect => format!("{AROUND}[scenario]\nabout = \"a\"\n[expect]\n{line}\n"),
                other => unreachable!("{other:?} is of configurations"),
            };
            let errors = forebay::config::scenario::parse(&text, "s.toml", &[]).unwrap_err();
            let told = errors.to_string();
            let named = [
                format!("`{}` is a date", key.name),
                format!("`{}` is no time", key.name),
            ];
            let says_no_keys = key.name == "keys" && told.contains("`keys` says no keys");
            assert!(
                named.iter().any(|words| told.contains(words)) || says_no_keys,
                "{text}\n{told}"
            );
        }
    }
}

/// A scenario is written by a tired person, too: what is wrong is said with its place, and what to do.
#[test]
fn mistakes_in_scenarios_are_told() {
    let told = |text: &str| {
        let errors = forebay::config::scenario::parse(text, "s.toml", &[]).unwrap_err();
        errors.to_string()
    };
    let sound = "[scenario]\nabout = \"a\"\n[backend.app]\nservers = [\"s[1-2]\"]\n[[server]]\nservice = \"1ms\"\n\
        [[traffic]]\nthink = \"1ms\"\n";
    assert!(forebay::config::scenario::parse(sound, "s.toml", &[]).is_ok());
    for (wrong, words) in [
        ("[scenario]\nabuot = \"a\"\n", "s.toml:2:1: unknown key `abuot`"),
        (
            "[[event]]\nat = \"-1s\"\nserver = \"app/s1\"\nstate = \"maint\"\n",
            "`at` is \"-1s\"",
        ),
        (
            "[[event]]\nat = \"1m\"\nserver = \"app/s1\"\nstate = \"maint\"\n",
            "expected at most `duration`, 10s",
        ),
        (
            "[[event]]\nat = \"1s\"\nserver = \"app/s3\"\nstate = \"maint\"\n",
            "no server is called \"app/s3\"",
        ),
        (
            "[[event]]\nat = \"1s\"\nserver = \"app/s1\"\nstate = \"mant\"\n",
            "maint",
        ),
        ("[[event]]\nat = \"1s\"\n", "nothing happens in this event"),
        (
            "[[event]]\nat = \"1s\"\npolicy = \"p\"\ncomponent = \"x\"\n",
            "there is no policy \"p\"",
        ),
        (
            "[expect]\nshare = { \"app/s1\" = \"60%..40%\" }\n",
            "this is no range of shares",
        ),
        ("[[trafic]]\nthink = \"1ms\"\n", "traffic"),
        (
            "[[request]]\nat = \"1s\"\npath = \"no slash\"\n",
            "this is no request",
        ),
    ] {
        let text = if wrong.starts_with("[scenario]") {
            sound.replacen("[scenario]\nabout = \"a\"\n", wrong, 1)
        } else {
            format!("{sound}{wrong}")
        };
        let told = told(&text);
        assert!(told.contains(words), "{wrong}\n{told}");
    }
    let changed = |change: &str| {
        let changes = [change.to_owned()];
        forebay::config::scenario::parse(sound, "s.toml", &changes)
    };
    assert_eq!(changed("scenario.workers=7").unwrap().workers, 7);
    assert_eq!(
        changed("backend.app.balance=roundrobin").unwrap().config.backends[0].balance,
        Balance::RoundRobin
    );
    assert!(
        changed("backend.ap.balance=first")
            .unwrap_err()
            .to_string()
            .contains("there is no such place")
    );
    assert!(
        changed("workers")
            .unwrap_err()
            .to_string()
            .contains("expected KEY=VALUE")
    );
}
