//! Prints the table of keys as the manual's reference, `src/manual/configuration.md`.
//!
//! The file is generated: after a change to the keys run the tests of this module with `FOREBAY_WRITE_MANUAL=1` (or
//! `forebay config reference > src/manual/configuration.md`); a test fails while it is stale.

use super::keys::{Form, Key, SCENARIO_SECTIONS, SECTIONS, Section, Shape, State, Word};
use super::units::{show_duration, show_offset, show_size};
use std::fmt::Write;

/// The reference as Markdown.
pub fn reference() -> String {
    let mut out = String::from(HEAD);
    for section in SECTIONS {
        // Writing to a String does not fail.
        let _ = write!(out, "\n## {}\n\n{}\n\n", heading(section), intro(section));
        keys(section, &mut out);
    }
    out
}

fn keys(section: Section, out: &mut String) {
    out.push_str("| key | value | default | clause | meaning |\n|---|---|---|---|---|\n");
    for key in section.keys().iter().filter(|key| key.state == State::Built) {
        let (value, default) = (cell(&value(key)), key.default.show());
        let _ = writeln!(
            out,
            "| `{}` | {value} | {default} | {} | {} |",
            key.name,
            key.clause,
            cell(key.about)
        );
    }
    let later: Vec<_> = section
        .keys()
        .iter()
        .filter(|key| key.state == State::NotYet)
        .collect();
    if !later.is_empty() {
        out.push_str("\nNot yet, and refused until it works:");
        for (at, key) in later.iter().enumerate() {
            let about = key.about.trim_end_matches('.').to_owned();
            let (first, rest) = about.split_at(about.chars().next().map_or(0, char::len_utf8));
            let _ = write!(
                out,
                "{} `{}` ({}{rest})",
                if at == 0 { "" } else { "," },
                key.name,
                first.to_lowercase()
            );
        }
        out.push_str(".\n");
    }
}

/// What its value looks like.
pub(super) fn value(key: &Key) -> String {
    match &key.form {
        Form::Duration(range) => format!(
            "duration, {} to {}",
            show_duration(*range.start()),
            show_duration(*range.end())
        ),
        Form::Size(range) => format!(
            "size, {} to {}",
            show_size(*range.start()),
            show_size(*range.end())
        ),
        Form::Integer(range) => format!("number, {} to {}", range.start(), range.end()),
        Form::Signed(range) => format!("number, {} to {}", range.start(), range.end()),
        Form::Offset(range) => format!(
            "duration with a sign, {} to {}",
            show_offset(*range.start()),
            show_offset(*range.end())
        ),
        Form::Percent(range) => format!("percent, {} to {}", range.start(), range.end()),
        Form::Share => "percent, 0 to 100, in steps of 0.0001".into(),
        Form::Flag => "`true` or `false`".into(),
        Form::Choice(words) => choice(words),
        Form::Words(words) => format!("{}, or a list of them", choice(words)),
        Form::Text(what) => format!("string: {what}"),
        Form::Texts(what) => format!("string or list of strings: {what}"),
        Form::Integers(range) => format!("list of numbers, {} to {}", range.start(), range.end()),
        Form::Table(section) | Form::Tables(section) | Form::Named(section) => {
            format!("[below](#{})", anchor(*section))
        }
        Form::Fields => "table of header names".into(),
        Form::Other(what, shapes) => match shapes.iter().find_map(section) {
            Some(section) => format!("{what}; [below](#{})", anchor(section)),
            None => (*what).into(),
        },
    }
}

fn choice(words: &[Word]) -> String {
    let words = words.iter().map(|word| match word.state {
        State::Built => format!("`\"{}\"`", word.text),
        State::NotYet => format!("`\"{}\"` (not yet)", word.text),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The section that says what may stand in a table of that shape.
fn section(shape: &Shape) -> Option<Section> {
    match shape {
        Shape::As(Form::Table(section)) => Some(*section),
        _ => None,
    }
}

/// `|` would end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn heading(section: Section) -> String {
    match section {
        Section::File | Section::ScenarioFile => "The file".into(),
        section => format!("`{}`", section.title()),
    }
}

/// As Markdown readers make it of a heading: small letters and digits, `-` for a space, nothing for the rest.
fn anchor(section: Section) -> String {
    let kept = |sign: char| match sign {
        ' ' => Some('-'),
        sign if sign.is_alphanumeric() || sign == '-' => Some(sign.to_ascii_lowercase()),
        _ => None,
    };
    heading(section).chars().filter_map(kept).collect()
}

fn intro(section: Section) -> &'static str {
    match section {
        Section::File => "The sections. A key that is not listed here is an error, never ignored.",
        Section::Process => "What the whole process shares.",
        Section::Log => "The access log: one line for each finished request.",
        Section::Listen => {
            "One listener: addresses, limits towards its clients, and where their requests go."
        }
        Section::Route => {
            "Routes are tried in order, the first that matches decides; then the `backend` of the listener. A route has \
             exactly one of `backend`, `redirect`, `respond`, `deny`. Edits have an effect with `backend` only."
        }
        Section::Match => {
            "All conditions that are given must hold; a list holds if one of its elements does."
        }
        Section::Redirect => {
            "Exactly one of `location`, `prefix`, `scheme`. A template may hold `{host}` (without port), `{authority}` (with \
             it), `{path}`, `{query}`, `{client-ip}`, `{method}` and `{scheme}`; a literal brace is doubled."
        }
        Section::Respond => "A fixed response.",
        Section::Headers => {
            "Also `response-headers`. First `remove`, then `set`, then `add`. Values are templates, as in `redirect`. Fields \
             that frame a message or belong to one connection cannot be named."
        }
        Section::Backend => {
            "Servers that answer the same requests. `NAME` is what listeners and routes call it."
        }
        Section::Balance => {
            "The long form of `balance`: exactly one of `random`, `policy`, `hash`; the other keys belong to `hash`."
        }
        Section::Hash => "The long form of `hash`: exactly one of these.",
        Section::Cookie => {
            "A cookie of the backend's own. What it says is which server, and nothing about the client; nothing is remembered \
             here. A cookie that names no server, or one in maintenance, is counted and replaced."
        }
        Section::Server => "The long form of one server.",
        Section::Policy => {
            "A WebAssembly component that chooses servers (`balance = { policy = \"NAME\" }`), says how connections are shared \
             (`reuse-policy = \"NAME\"`), which requests wait and in which order (`queue-policy = \"NAME\"`), or routes \
             (`route-policy = \"NAME\"`), and what it may cost. Whatever goes wrong with it, requests are answered as `fallback` and `on-fault` say."
        }
        Section::ScenarioFile => {
            "The sections of a scenario. Those of a configuration may stand in the same file."
        }
        Section::Scenario => "What is simulated, and for how long. All times are of the simulation.",
        Section::Costs => "What a worker's own work takes. While a worker is at work, whatever comes waits.",
        Section::Machine => {
            "How servers behave. Several sections may fit one server; the last of them counts. A server that none fits is a \
             mistake."
        }
        Section::Span => "A time that is drawn anew for each use; a plain duration is always the same.",
        Section::Traffic => {
            "Who asks, and for what. With `think` there are clients that wait for each response (a closed loop), with `rate` \
             requests that come by themselves (an open one)."
        }
        Section::Keys => "Keys as numbers; a list of texts stands for itself.",
        Section::Scripted => "Requests one by one.",
        Section::Event => "What happens meanwhile. Behaviour that is not named stays as it is.",
        Section::Show => "What the transcript shows.",
        Section::Expect => {
            "What must hold at the end of each run, whatever the seed; otherwise the scenario fails."
        }
    }
}

/// The reference of scenarios as Markdown.
pub fn scenario_reference() -> String {
    let mut out = String::from(SCENARIO_HEAD);
    for section in SCENARIO_SECTIONS {
        // Writing to a String does not fail.
        let _ = write!(out, "\n## {}\n\n{}\n\n", heading(section), intro(section));
        keys(section, &mut out);
    }
    out
}

const SCENARIO_HEAD: &str = "# Scenarios

<!-- Generated from the table of keys: forebay config reference --scenario. Do not edit. -->

One TOML file that `forebay test` simulates: a configuration, the servers behind it, the clients before it, and what happens
meanwhile. `testing.md` explains one line by line.
";

const HEAD: &str = "# Configuration

<!-- Generated from the table of keys: forebay config reference. Do not edit. -->

One TOML file. `forebay check FILE` reads it and lists every mistake at once; `forebay config show FILE` prints what is in
effect, with every default. SIGHUP reads the file again; when it has a mistake, what runs goes on unchanged.

`forebay config schema > forebay.schema.json` writes a JSON Schema of it. Editors that know TOML by Taplo complete and check
a file by it whose first line is `#:schema ./forebay.schema.json`.

A *duration* is a whole number with its unit: `us`, `ms`, `s`, `m`, `h`, `d`. A *size* is a whole number with `B`, `KiB`,
`MiB`, `GiB`, or a bare number of bytes. A *percent* is `20` or `\"20%\"`.

```toml
[[listen]]
bind = \"127.0.0.1:8080\"
backend = \"app\"

[backend.app]
servers = [\"127.0.0.1:9001\", \"127.0.0.1:9002\"]
```
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_is_what_the_keys_say() {
        is_fresh("configuration.md", &reference());
        is_fresh("scenarios.md", &scenario_reference());
    }

    fn is_fresh(name: &str, fresh: &str) {
        let path = format!("{}/src/manual/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("FOREBAY_WRITE_MANUAL").is_some() {
            std::fs::write(&path, fresh).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == fresh,
            "{path} is stale: run this test with FOREBAY_WRITE_MANUAL=1"
        );
    }

    #[test]
    fn links_lead_to_headings() {
        assert_eq!(anchor(Section::Process), "process");
        assert_eq!(anchor(Section::Route), "listenroute");
        assert_eq!(anchor(Section::Match), "match----");
    }
}
