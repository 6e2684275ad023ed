//! Reads one table of the file by the table of keys.
//!
//! [`Fields::of`] sorts the keys of a TOML table: unknown ones, ones that are not built yet and missing required ones are
//! reported there, once, for every section. The getters (here those for tables, in [`super::values`] those for values) read a
//! key as the form that [`super::keys`] gives it and go on after a mistake, so that the next one is found as well. Asking
//! for a key as a form it does not have is a mistake of ours and panics (a test reads every key).

use super::errors::{At, Report};
use super::keys::{self, Default, Form, Key, Section, State};
use super::words::{kind, missing, not_yet_key, unknown};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of the file with its place.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// A text of the file with its place.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    pub(super) at: At,
}

/// The known keys of one table.
pub(super) struct Fields<'a> {
    section: Section,
    /// Where the table begins: its header or its brace.
    pub(super) at: At,
    given: Vec<(&'static Key, At, &'a Value<'a>)>,
    /// Keys that unknown ones were probably meant to be.
    meant: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Sorts the keys of a table; what is unknown, not yet or missing is reported.
    pub(super) fn of(section: Section, table: &'a DeTable<'a>, at: At, report: &mut Report) -> Fields<'a> {
        let (mut given, mut meant) = (Vec::new(), Vec::new());
        for (name, value) in table.iter() {
            match section.key(name.get_ref()) {
                Some(key) if key.state == State::Built => given.push((key, name.span(), value)),
                Some(key) => report.push(not_yet_key(key, name.span())),
                None => {
                    let near = keys::nearest(name.get_ref(), section.keys().iter().map(|key| key.name));
                    meant.extend(near);
                    report.push(unknown(section, name.get_ref(), near, name.span()));
                }
            }
        }
        let fields = Fields {
            section,
            at,
            given,
            meant,
        };
        for key in section
            .keys()
            .iter()
            .filter(|key| matches!(key.default, Default::Required))
        {
            if !fields.is_meant(key.name) {
                report.push(missing(section, key, fields.at.clone()));
            }
        }
        fields
    }

    /// Whether the key is given, rightly or not.
    pub(super) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// Whether the key is given, or another one that is probably meant to be it.
    pub(super) fn is_meant(&self, name: &str) -> bool {
        self.has(name) || self.meant.contains(&name)
    }

    /// Where the name of a given key stands.
    pub(super) fn key_at(&self, name: &str) -> Option<At> {
        self.given
            .iter()
            .find(|(key, ..)| key.name == name)
            .map(|(_, at, _)| at.clone())
    }

    /// The value as it stands there.
    pub(super) fn raw(&self, name: &str) -> Option<&'a Value<'a>> {
        self.given
            .iter()
            .find(|(key, ..)| key.name == name)
            .map(|(.., value)| *value)
    }

    /// A table with keys of its own.
    pub(super) fn table(&self, name: &str, report: &mut Report) -> Option<Fields<'a>> {
        let Form::Table(section) = self.key(name).form else {
            self.misused(name)
        };
        let value = self.raw(name)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Fields::of(section, table, value.span(), report)),
            DeValue::Array(_) if section == Section::Process => {
                report.wrong(
                    value.span(),
                    "`[[process]]` is a list of tables",
                    "expected `[process]`",
                    "",
                );
                None
            }
            other => self.mismatch(
                name,
                value,
                other,
                &format!("a table: {}", section.title()),
                report,
            ),
        }
    }

    /// Tables in order.
    pub(super) fn tables(&self, name: &str, report: &mut Report) -> Vec<Fields<'a>> {
        let Form::Tables(section) = self.key(name).form else {
            self.misused(name)
        };
        let Some(value) = self.raw(name) else {
            return Vec::new();
        };
        let title = section.title();
        let DeValue::Array(list) = value.get_ref() else {
            let single = title.replace("[[", "[").replace("]]", "]");
            let found = match value.get_ref() {
                DeValue::Table(_) => format!("`{single}` is a single table"),
                other => format!("`{name}` is {}", kind(other)),
            };
            report.wrong(
                value.span(),
                found,
                format!("expected `{title}`"),
                format!("write `{title}`, with two brackets"),
            );
            return Vec::new();
        };
        let mut fields = Vec::new();
        for value in list.iter() {
            match value.get_ref() {
                DeValue::Table(table) => fields.push(Fields::of(section, table, value.span(), report)),
                other => report.wrong(
                    value.span(),
                    format!("`{name}` holds {}", kind(other)),
                    format!("expected `{title}`"),
                    "",
                ),
            }
        }
        fields
    }

    /// Tables by name, in file order, with the place of the name.
    pub(super) fn named(&self, name: &str, report: &mut Report) -> Vec<(Text<'a>, Fields<'a>)> {
        let Form::Named(section) = self.key(name).form else {
            self.misused(name)
        };
        let Some(value) = self.raw(name) else {
            return Vec::new();
        };
        let title = section.title();
        let DeValue::Table(tables) = value.get_ref() else {
            let help = format!("write `[{name}.app]` and refer to it as \"app\"");
            report.wrong(
                value.span(),
                format!("`{name}` is {}", kind(value.get_ref())),
                format!("expected `{title}`"),
                help,
            );
            return Vec::new();
        };
        let mut named = Vec::new();
        for (key, value) in tables.iter() {
            match value.get_ref() {
                DeValue::Table(table) => {
                    let text = Text {
                        text: key.get_ref(),
                        at: key.span(),
                    };
                    named.push((text, Fields::of(section, table, value.span(), report)));
                }
                other if section.key(key.get_ref()).is_some() => {
                    let found = format!("`{}` stands in `[{name}]`, which has no name", key.get_ref());
                    let help = format!("give the {name} a name: `[{name}.app]`");
                    report.wrong(
                        key.span(),
                        found,
                        format!("expected `{title}` above {}", kind(other)),
                        help,
                    );
                }
                other => {
                    let found = format!("`{name}.{}` is {}", key.get_ref(), kind(other));
                    report.wrong(value.span(), found, format!("expected `{title}`"), "");
                }
            }
        }
        named.sort_by_key(|(name, _)| name.at.start);
        named
    }

    pub(super) fn key(&self, name: &str) -> &'static Key {
        self.section.key(name).unwrap_or_else(|| self.misused(name))
    }

    pub(super) fn misused(&self, name: &str) -> ! {
        panic!(
            "`{name}` of {} is not read as the form that the table of keys gives it",
            self.section.title()
        )
    }

    /// Reports a value of the wrong kind.
    pub(super) fn mismatch<T>(
        &self,
        name: &str,
        at: &Value<'_>,
        found: &DeValue<'_>,
        expected: &str,
        report: &mut Report,
    ) -> Option<T> {
        report.wrong(
            at.span(),
            format!("`{name}` is {}", kind(found)),
            format!("expected {expected}"),
            "",
        );
        None
    }
}
