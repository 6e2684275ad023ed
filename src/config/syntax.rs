//! From text to a TOML tree with places, going on after every mistake.
//!
//! The reader of the `toml` crate recovers and reports; here its reports become ours: in plain words, one per line,
//! and without the cascade that an unclosed bracket causes (everything behind it is read as part of it).

use super::errors::{At, Class, Problem, Report, place};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Error};

/// Reads the whole text. What could be read is in the tree; what could not be is in the report.
pub(super) fn read<'a>(text: &'a str, report: &mut Report) -> Spanned<DeTable<'a>> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<(At, Error)> = errors
        .into_iter()
        .map(|error| (error.span().unwrap_or(0..0), error))
        .collect();
    errors.sort_by_key(|(at, _)| at.start);
    if let Some(open) = unclosed(&tree, &errors) {
        errors.retain(|(at, _)| at.start < open.start);
        let bracket = text.get(open.start..open.start + 1).unwrap_or("[");
        let found = format!("`{bracket}` is never closed");
        let help = format!("close it with `{}`", if bracket == "[" { "]" } else { "}" });
        report.push(Problem::new(Class::Syntax, open.start..open.start + 1, found).help(help));
        report.unreliable_from(open.start);
    }
    errors.dedup_by_key(|(at, _)| place(text, at.start).0);
    for (at, error) in errors {
        if error.message().starts_with("unclosed table")
            || error.message().starts_with("unclosed array table")
        {
            // What follows is taken for part of the section before.
            report.unreliable_from(at.start);
        }
        report.push(explain(text, &tree, at, &error));
    }
    tree
}

/// The outermost bracket that the reader found no end of.
fn unclosed(tree: &Spanned<DeTable<'_>>, errors: &[(At, Error)]) -> Option<At> {
    let (end, _) = errors
        .iter()
        .find(|(_, error)| UNCLOSED.iter().any(|start| error.message().starts_with(start)))?;
    let mut found: Option<At> = None;
    visit(tree.get_ref(), &mut |_, value| {
        let open = matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_));
        let at = value.span();
        if open && at.end >= end.start && found.as_ref().is_none_or(|outer| at.start < outer.start) {
            found = Some(at);
        }
    });
    found
}

const UNCLOSED: [&str; 2] = ["unclosed array, ", "unclosed inline table"];

/// Every key of the tree with its value, tables in lists included.
pub(super) fn visit<'t, 'a>(
    table: &'t DeTable<'a>,
    seen: &mut dyn FnMut(&'t Spanned<DeString<'a>>, &'t Spanned<DeValue<'a>>),
) {
    for (name, value) in table.iter() {
        seen(name, value);
        inside(value, seen);
    }
}

fn inside<'t, 'a>(
    value: &'t Spanned<DeValue<'a>>,
    seen: &mut dyn FnMut(&'t Spanned<DeString<'a>>, &'t Spanned<DeValue<'a>>),
) {
    match value.get_ref() {
        DeValue::Table(table) => visit(table, seen),
        DeValue::Array(list) => list.iter().for_each(|value| inside(value, seen)),
        _ => {}
    }
}

fn explain(text: &str, tree: &Spanned<DeTable<'_>>, at: At, error: &Error) -> Problem {
    let found = text.get(at.clone()).unwrap_or("").trim_end();
    let problem = |headline: String| Problem::new(Class::Syntax, at.clone(), headline);
    match error.message().split(", expected ").next().unwrap_or_default() {
        "string values must be quoted" if found.is_empty() => {
            problem("there is no value".into()).expected("expected a value")
        }
        "string values must be quoted" => {
            let expected = "expected a quoted string, a number, `true` or `false`";
            problem(format!("`{found}` is not quoted"))
                .expected(expected)
                .help(format!("a string is written \"{found}\""))
        }
        "invalid boolean" => problem(format!("`{found}` is neither `true` nor `false`"))
            .expected("expected `true`, `false` or a quoted string")
            .help(match found.to_lowercase().as_str() {
                word @ ("true" | "false") => format!("write {word}"),
                _ => format!("a string is written \"{found}\""),
            }),
        "duplicate key" => {
            let problem = problem(format!("`{found}` is given twice"));
            match earlier(tree, found, at.start).or_else(|| written_before(text, found, at.start)) {
                Some(first) => problem
                    .expected("given again here")
                    .also(first, "first given here"),
                None => problem.expected("given again here"),
            }
        }
        "key with no value" => problem("a key has no value".into()).expected("expected `=`"),
        "unclosed table" | "unclosed array table" => {
            problem("the name of a section is not closed".into()).expected("expected `]`")
        }
        "invalid basic string" if at.is_empty() => {
            problem("a string is not closed".into()).expected("expected `\"`")
        }
        _ => match error.message().split_once(", expected ") {
            Some((headline, expected)) => problem(headline.into()).expected(format!("expected {expected}")),
            None => problem(error.message().into()),
        },
    }
}

/// The nearest key of the same name before `before`.
fn earlier(tree: &Spanned<DeTable<'_>>, name: &str, before: usize) -> Option<At> {
    let mut nearest: Option<At> = None;
    visit(tree.get_ref(), &mut |key, _| {
        let at = key.span();
        if key.get_ref() == name
            && at.start < before
            && nearest.as_ref().is_none_or(|known| known.start < at.start)
        {
            nearest = Some(at);
        }
    });
    nearest
}

/// The nearest name of a section before `before`, where the tree has forgotten it for the later one.
fn written_before(text: &str, name: &str, before: usize) -> Option<At> {
    let is_name = |at: &usize| {
        let around = (
            text[..*at].chars().next_back(),
            text[at + name.len()..].chars().next(),
        );
        matches!(around, (Some('[' | '.'), Some(']' | '.')))
    };
    let start = text
        .get(..before)?
        .rmatch_indices(name)
        .map(|(at, _)| at)
        .filter(|_| !name.is_empty())
        .find(is_name)?;
    Some(start..start + name.len())
}
