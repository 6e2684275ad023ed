//! Builds header edits: `request-headers` and `response-headers`.
//!
//! The order of the three is fixed, whatever the order in the file: first `remove`, then `set`, then `add`, each in file order.

use super::errors::{At, Class, Problem, Report};
use super::read::{Fields, Text};
use super::values::strings;
use super::words::{kind, refused};
use crate::decide::edit::{Edit, Edits, FieldName};
use crate::decide::template::Template;
use toml::de::DeValue;

/// The edits under the key `name`; none if it is not given.
pub(super) fn edits(name: &str, fields: &Fields<'_>, report: &mut Report) -> Edits {
    let Some(fields) = fields.table(name, report) else {
        return Edits::default();
    };
    let mut list = Vec::new();
    let mut gone: Vec<(FieldName, At, &str)> = Vec::new();
    for text in fields.texts("remove", report) {
        if let Some(field) = field_name(&text, report) {
            once(&field, &text.at, "remove", &mut gone, report);
            list.push(Edit::Remove(field));
        }
    }
    for (field, at, value) in pairs("set", &fields, report) {
        let [text] = value.as_slice() else {
            report.wrong(
                at,
                format!("`set` gives `{}` a list of values", field.text()),
                "expected one value",
                "use `add` for more",
            );
            continue;
        };
        once(&field, &at, "set", &mut gone, report);
        list.extend(template(&field, text, report).map(|value| Edit::Set(field.clone(), value)));
    }
    for (field, _, values) in pairs("add", &fields, report) {
        for text in &values {
            list.extend(template(&field, text, report).map(|value| Edit::Add(field.clone(), value)));
        }
    }
    Edits { list }
}

/// The fields of a table `{ name = "value" }` in file order; a wrong name or value is reported and left out.
fn pairs<'a>(key: &str, fields: &Fields<'a>, report: &mut Report) -> Vec<(FieldName, At, Vec<Text<'a>>)> {
    let Some(value) = fields.raw(key) else {
        return Vec::new();
    };
    let DeValue::Table(table) = value.get_ref() else {
        let expected = "expected a table such as { X-Name = \"value\" }";
        report.wrong(
            value.span(),
            format!("`{key}` is {}", kind(value.get_ref())),
            expected,
            "",
        );
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (name, value) in table.iter() {
        let what = format!("`{}`", name.get_ref());
        let values = strings(value, &what, "the value of the field", report);
        let name = Text {
            text: name.get_ref(),
            at: name.span(),
        };
        if let Some(field) = field_name(&name, report).filter(|_| !values.is_empty()) {
            pairs.push((field, name.at, values));
        }
    }
    pairs.sort_by_key(|(_, at, _)| at.start);
    pairs
}

fn field_name(text: &Text<'_>, report: &mut Report) -> Option<FieldName> {
    FieldName::parse(text.text)
        .map_err(|mistake| refused("the header name", text, &mistake, report))
        .ok()
}

fn template(field: &FieldName, text: &Text<'_>, report: &mut Report) -> Option<Template> {
    Template::parse(text.text)
        .map_err(|mistake| refused(&format!("`{}`", field.text()), text, &mistake, report))
        .ok()
}

/// A name that is set or removed twice is a slip: only one of the two would count.
fn once<'n>(
    field: &FieldName,
    at: &At,
    by: &'n str,
    gone: &mut Vec<(FieldName, At, &'n str)>,
    report: &mut Report,
) {
    let known = gone
        .iter()
        .find(|(other, ..)| other.text().eq_ignore_ascii_case(field.text()));
    if let Some((_, first, first_by)) = known {
        let found = format!("`{}` is in `{by}`, but in `{first_by}` already", field.text());
        let problem = Problem::new(Class::Wrong, at.clone(), found).also(first.clone(), "here already");
        report.push(
            problem
                .expected("expected once")
                .help("`set` alone drops what was there"),
        );
    }
    gone.push((field.clone(), at.clone(), by));
}
