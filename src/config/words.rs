//! The words of messages: what was found, what was expected, what was probably meant.

use super::defaults::NAME_MAX;
use super::errors::{At, Class, Problem, Report};
use super::keys::{self, Form, Key, Section, State};
use super::read::Text;
use crate::decide::mistake::{Mistake, What};
use crate::decide::template::Placeholder;
use toml::de::DeValue;

/// "a string", "a whole number", …
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// `"a"`, `"b"` or `"c"`.
pub(super) fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// The help for a near spelling, if there is one.
pub(super) fn did_you_mean(near: Option<&str>, quote: &str) -> String {
    near.map_or(String::new(), |near| {
        format!("did you mean {quote}{near}{quote}?")
    })
}

/// Something whose mechanism does not exist yet.
pub(super) fn not_yet(what: String, at: At) -> Problem {
    Problem::new(
        Class::Wrong,
        at,
        format!("not yet: {what} is known but not built"),
    )
}

/// A key whose mechanism does not exist yet.
pub(super) fn not_yet_key(key: &Key, at: At) -> Problem {
    let help = "remove it: it would have no effect in this version";
    not_yet(format!("`{}`", key.name), at)
        .expected(key.about.trim_end_matches('.'))
        .help(help)
}

/// A required key that is not there.
pub(super) fn missing(section: Section, key: &Key, at: At) -> Problem {
    let title = section.title();
    let form = match key.form {
        Form::Text(what) | Form::Texts(what) | Form::Other(what, _) => format!("expected {what}"),
        _ => String::new(),
    };
    match section {
        Section::File => Problem::new(Class::Missing, 0..0, format!("there is no `[[{}]]`", key.name))
            .expected("nothing would be served")
            .help("add `[[listen]]` with `bind = \"127.0.0.1:8080\"` and `backend = \"app\"`"),
        _ => Problem::new(
            Class::Missing,
            at,
            format!("`{}` is missing in {title}", key.name),
        )
        .expected(form),
    }
}

/// A key that nobody knows here.
pub(super) fn unknown(section: Section, name: &str, near: Option<&str>, at: At) -> Problem {
    let title = section.title();
    let problem = Problem::new(Class::Wrong, at, format!("unknown key `{name}`"))
        .expected(format!("not a key of {title}"));
    if let Some(near) = near {
        return problem.help(format!("did you mean `{near}`?"));
    }
    if let Some(home) = keys::homes(name).next() {
        return problem.help(match home.key(name).map(|key| &key.form) {
            Some(Form::Tables(inner)) => format!("write `{}`", inner.title()),
            _ => format!("`{name}` is a key of {}", home.title()),
        });
    }
    let known = section
        .keys()
        .iter()
        .filter(|key| key.state == State::Built)
        .map(|key| key.name);
    problem.help(format!("known here: {}", known.collect::<Vec<_>>().join(", ")))
}

/// A value as it stands in a message: strings in quotes, numbers bare.
pub(super) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", text.escape_debug()),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        other => kind(other).to_owned(),
    }
}

/// Reports what one of the small languages (templates, patterns, names) refused, at the very byte if it can be found. `name`
/// says of what it is the text.
pub(super) fn refused(name: &str, text: &Text<'_>, mistake: &Mistake, report: &mut Report) {
    let help = match &mistake.what {
        What::UnknownPlaceholder(hole) => match keys::nearest(hole, Placeholder::NAMES) {
            Some(near) => format!("did you mean `{{{near}}}`?"),
            None => format!(
                "known: {}",
                Placeholder::NAMES.map(|name| format!("{{{name}}}")).join(", ")
            ),
        },
        _ => String::new(),
    };
    let mut at = report.byte_of(&text.at, text.text, mistake.at);
    if let (What::UnknownPlaceholder(hole), 1) = (&mistake.what, at.len()) {
        at.end = at.start + hole.len();
    }
    let found = format!("{name} is \"{}\"", text.text.escape_debug());
    report.wrong(at, found, mistake.to_string(), help);
}

/// Checks the name of a listener, backend or server: printable ASCII that needs no quoting in commands and logs.
pub(super) fn check_name(what: &str, text: &Text<'_>, also_refused: &str, report: &mut Report) {
    let name = text.text;
    let wrong = name
        .chars()
        .find(|sign| !sign.is_ascii_graphic() || "\"\\,;".contains(*sign) || also_refused.contains(*sign));
    let expected = match wrong {
        Some(sign) => format!("`{}` cannot stand in a name", sign.escape_debug()),
        None if name.is_empty() => "expected at least one character".to_owned(),
        None if name.len() > NAME_MAX => format!("expected at most {NAME_MAX} bytes"),
        None => return,
    };
    report.wrong(
        text.at.clone(),
        format!("{what} \"{}\" is no name", name.escape_debug()),
        expected,
        "",
    );
}
