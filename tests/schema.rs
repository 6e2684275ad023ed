//! The schema for editors says what the reader says: it takes every file that is right, and refuses what a look at one
//! value shows to be wrong.

#![cfg(feature = "proxy")]

#[path = "schema/checker.rs"]
mod checker;

use checker::{check, walk};
use forebay::config::keys::{SECTIONS, Section};
use forebay::config::schema::schema;
use forebay::config::{self, Config, Errors};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;

fn of(section: Section) -> Value {
    serde_json::from_str(&schema(section)).expect("JSON")
}

fn json(text: &str) -> Value {
    let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}\n{error}"));
    serde_json::to_value(table).expect("JSON")
}

fn read(text: &str) -> Result<Config, Errors> {
    let lookup = |_: &str, port| Ok(SocketAddr::from(([10, 0, 0, 7], port)));
    config::parse_with(text, "f.toml", &lookup).map(|loaded| loaded.config)
}

/// The texts of the files of that kind in a folder, cases and what documents show apart.
fn texts(folder: &str, extension: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).expect("a folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let files = files.filter(|path| path.extension().is_some_and(|known| known == extension));
    let text = |path| std::fs::read_to_string(path).expect("a text");
    files.flat_map(|path| parts(&text(path), extension)).collect()
}

fn parts(text: &str, extension: &str) -> Vec<String> {
    let (begin, end) = match extension {
        "cases" => ("\n### ", "\n### "),
        "md" => ("\n```toml", "\n```"),
        _ => return vec![text.to_owned()],
    };
    let text = format!("\n{text}");
    let parts = text.split(begin).skip(1);
    let whole = parts.filter_map(|part| part.split(end).next()?.split_once('\n'));
    whole.map(|(_, rest)| rest.to_owned()).collect()
}

#[test]
fn it_is_a_schema_whose_defaults_hold() {
    for section in SECTIONS {
        let (root, mut defaults) = (of(section), 0);
        walk(&root, &mut |schema| {
            let Some(default) = schema.get("default") else {
                return;
            };
            let mut alone = schema.clone();
            alone.insert("$defs".into(), root["$defs"].clone());
            assert_eq!(check(&Value::Object(alone), default), [""; 0]);
            defaults += 1;
        });
        assert!(section != Section::File || defaults > 30, "{defaults} defaults");
    }
}

#[test]
fn every_example_is_right() {
    let (root, examples) = (of(Section::File), texts("examples", "toml"));
    assert!(examples.len() >= 3);
    for text in examples {
        assert_eq!(check(&root, &json(&text)), [""; 0], "{text}");
    }
}

/// What the reader takes, with or without a warning, and what it prints as being in effect.
#[test]
fn what_the_reader_takes_is_right() {
    let (root, mut taken) = (of(Section::File), 0);
    let places = [
        ("tests/config", "cases"),
        ("examples", "toml"),
        ("src/manual", "md"),
        (".", "md"),
    ];
    let all = places
        .into_iter()
        .flat_map(|(folder, extension)| texts(folder, extension));
    for text in all {
        let Ok(config) = read(&text) else { continue };
        assert_eq!(check(&root, &json(&text)), [""; 0], "{text}");
        let shown = config::show(&config);
        assert_eq!(check(&root, &json(&shown)), [""; 0], "{shown}");
        taken += 1;
    }
    assert!(taken > 10, "{taken} files");
}

const LISTEN: &str = "[[listen]]\nbind = \"127.0.0.1:8080\"\nbackend = \"app\"\n";

/// A file whose backend has these keys.
fn backend(keys: &str) -> String {
    let servers = if keys.contains("servers") {
        ""
    } else {
        "servers = [\"127.0.0.1:9001\"]\n"
    };
    format!("{LISTEN}[backend.app]\n{servers}{keys}\n")
}

fn listener(keys: &str) -> String {
    format!("{LISTEN}{keys}\n[backend.app]\nservers = [\"127.0.0.1:9001\"]\n")
}

/// Each form that no getter reads, in each of its shapes.
#[test]
fn every_shape_is_read() {
    let root = of(Section::File);
    for keys in [
        "servers = \"unix:/run/a.sock\"",
        "servers = { address = \"127.0.0.1:1\", tags = { zone = \"eu\" } }",
        "servers = [\"127.0.0.1:1\", { name = \"b\", address = \"127.0.0.1:2\", weight = 0 }]",
        "balance = \"sticky\"",
        "balance = { random = 3 }",
        "balance = { hash = \"uri\", type = \"map-based\", bound = 150, else = { random = 2 } }",
        "balance = { hash = { path-part = 2 }, else = \"first\", affinity = \"maxqueue\" }",
        "redispatch = false",
        "redispatch = -2",
        "redispatch = 3",
        "retry-on = \"none\"",
        "retry-on = [\"conn-failure\", \"response-timeout\"]",
        "retry-budget = 12.5",
        "retry-budget = \"0.0001%\"",
        "balance = { policy = \"p\" }\n[policy.p]\ncomponent = \"p.wasm\"\nconfig = { any = [1, { b = true }] }",
        "balance = { policy = \"p\" }\n[policy.p]\ncomponent = \"p.wasm\"\nfallback = { hash = \"path\" }",
        "balance = { policy = \"p\" }\n[policy.p]\ncomponent = \"p.wasm\"\nfallback = \"leastconn\"",
    ] {
        let text = backend(keys);
        assert!(read(&text).is_ok(), "{text}\n{}", read(&text).unwrap_err());
        assert_eq!(check(&root, &json(&text)), [""; 0], "{text}");
    }
}

#[test]
fn what_is_wrong_is_refused_by_both() {
    let root = of(Section::File);
    for (what, text) in [
        ("a typing error in a key", listener("timeout-cilent = \"10s\"")),
        ("a section that nobody knows", listener("[proces]\nworkers = 1")),
        ("a unit of another place", listener("timeout-client = \"10sec\"")),
        ("no unit", listener("timeout-client = 10")),
        ("a size in another spelling", listener("head-max = \"16KB\"")),
        ("a size out of range", listener("head-max = 100")),
        ("a number out of range", listener("headers-max = 1000")),
        ("a number as a text", listener("headers-max = \"100\"")),
        ("a wrong word", listener("x-forwarded = \"add\"")),
        (
            "no address",
            "[[listen]]\nbackend = \"app\"\n[backend.app]\nservers = [\"a:1\"]\n".into(),
        ),
        ("an empty list", listener("workers = []")),
        (
            "a route that does two things",
            listener("[[listen.route]]\ndeny = 403\nbackend = \"app\""),
        ),
        (
            "a route that does nothing",
            listener("[[listen.route]]\nmatch = { path = \"/\" }"),
        ),
        (
            "a redirect to two places",
            listener("[[listen.route]]\nredirect = { prefix = \"/a\", scheme = \"https\" }"),
        ),
        ("a status out of range", listener("[[listen.route]]\ndeny = 200")),
        ("one pair of brackets", LISTEN.replace("[[listen]]", "[listen]")),
        (
            "an offset without a unit",
            listener("[[listen.route]]\nbackend = \"app\"\npriority-offset = \"-5\""),
        ),
        (
            "a share of too many decimals",
            backend("retry-budget = \"1.00001%\""),
        ),
        ("a share above all", backend("retry-budget = 101")),
        (
            "a percentage out of range",
            listener("[process]\npool-low-fd-ratio = 0"),
        ),
        (
            "a wrong word of several",
            backend("retry-on = [\"conn-failure\", \"timeout\"]"),
        ),
        ("an algorithm that nobody knows", backend("balance = \"least\"")),
        (
            "two algorithms",
            backend("balance = { random = 2, hash = \"uri\" }"),
        ),
        (
            "a hash of two things",
            backend("balance = { hash = { header = \"a\", cookie = \"b\" } }"),
        ),
        (
            "else a hash",
            backend("balance = { hash = \"uri\", else = { hash = \"path\" } }"),
        ),
        ("redispatch on each 0th attempt", backend("redispatch = 0")),
        ("no servers", backend("servers = []")),
        (
            "a server without an address",
            backend("servers = [{ name = \"a\" }]"),
        ),
        (
            "a weight out of range",
            backend("servers = [{ address = \"127.0.0.1:1\", weight = 257 }]"),
        ),
        (
            "a tag that is a number",
            backend("servers = [{ address = \"127.0.0.1:1\", tags = { a = 1 } }]"),
        ),
        ("a key that is not built yet", backend("check = true")),
        (
            "a policy as fallback",
            backend(
                "balance = { policy = \"p\" }\n[policy.p]\ncomponent = \"p\"\nfallback = { policy = \"q\" }",
            ),
        ),
        (
            "a policy without a component",
            backend("balance = { policy = \"p\" }\n[policy.p]\ndeadline = \"1ms\""),
        ),
    ] {
        assert!(read(&text).is_err(), "{what}: the reader takes it\n{text}");
        assert!(
            !check(&root, &json(&text)).is_empty(),
            "{what}: the schema takes it\n{text}"
        );
    }
}
