//! Prints the table of keys as a JSON Schema (2020-12): what an editor completes and checks a file by.
//!
//! It refuses nothing that the reader takes, and says what one value alone can be wrong about: a key, a word, a unit, a
//! number out of its range, a table in the place of a list. What it leaves to the reader: ranges of what is written with
//! a unit (the description has them), what texts mean, and what one key asks of another. Each section is a definition of its own;
//! keys and words that are *not yet* built are left out, so that they are refused here, too.

use super::keys::{Default, Form, Key, Section, Shape, State, Word};
use super::{reference, units};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;

/// The schema of a file whose top is that section.
pub fn schema(top: Section) -> String {
    let mut printer = Printer {
        named: Vec::new(),
        simulated: top == Section::ScenarioFile,
    };
    let mut root = printer.table(top, &built(top));
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!(format!("Forebay: {}", top.title()));
    root["$defs"] = printer.definitions();
    format!("{root:#}\n")
}

/// Prints sections, and remembers which ones were referred to.
struct Printer {
    named: Vec<Section>,
    /// A simulated server needs no address.
    simulated: bool,
}

impl Printer {
    /// Every section that was referred to, and those that these refer to.
    fn definitions(&mut self) -> Value {
        let mut definitions = Map::new();
        let mut next = 0;
        while let Some(section) = self.named.get(next).copied() {
            definitions.insert(name(section), self.table(section, &built(section)));
            next += 1;
        }
        Value::Object(definitions)
    }

    /// A table with these keys of a section.
    fn table(&mut self, section: Section, keys: &[&'static Key]) -> Value {
        let properties: Map<String, Value> = keys
            .iter()
            .map(|key| (key.name.to_owned(), self.key(key)))
            .collect();
        let left_out = self.simulated && section == Section::Server;
        let required = keys
            .iter()
            .filter(|key| matches!(key.default, Default::Required) && !left_out);
        let required: Vec<&str> = required.map(|key| key.name).collect();
        let mut table = json!({
            "title": section.title(),
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        });
        if !required.is_empty() {
            table["required"] = json!(required);
        }
        let one_of = section.one_of().iter();
        let one_of: Vec<&&str> = one_of.filter(|name| properties.contains_key(**name)).collect();
        if !one_of.is_empty() {
            table["oneOf"] = one_of.iter().map(|name| json!({ "required": [name] })).collect();
        }
        table
    }

    fn key(&mut self, key: &Key) -> Value {
        let mut value = self.form(&key.form);
        value["description"] = json!(description(key));
        if let Some(default) = default(key.default) {
            value["default"] = default;
        }
        value
    }

    fn form(&mut self, form: &Form) -> Value {
        match form {
            Form::Duration(_) => pattern(&units::duration_pattern()),
            Form::Offset(_) => pattern(&units::offset_pattern()),
            Form::Size(range) => any_of([integer(range), pattern(&units::size_pattern())]),
            Form::Percent(range) => any_of([integer(range), pattern(units::PERCENT_PATTERN)]),
            Form::Share => any_of([
                json!({ "type": "number", "minimum": 0, "maximum": 100 }),
                pattern(units::SHARE_PATTERN),
            ]),
            Form::Integer(range) => integer(range),
            Form::Signed(range) => integer(range),
            Form::Integers(range) => list(integer(range)),
            Form::Flag => json!({ "type": "boolean" }),
            Form::Choice(words) => choice(words),
            Form::Words(words) => one_or_several(choice(words)),
            Form::Text(_) => text(),
            Form::Texts(_) => one_or_several(text()),
            Form::Fields => tables_by_name(one_or_several(text())),
            Form::Table(section) => self.reference(*section),
            Form::Tables(section) => json!({ "type": "array", "items": self.reference(*section) }),
            Form::Named(section) => tables_by_name(self.reference(*section)),
            Form::Other(_, shapes) => any_of(shapes.iter().map(|shape| self.shape(shape))),
        }
    }

    fn shape(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::As(form) => self.form(form),
            Shape::List(forms, most) => {
                let mut several = list(any_of(forms.iter().map(|form| self.form(form))));
                several["maxItems"] = json!(most);
                several
            }
            Shape::Part(section, names) => {
                let keys = built(*section).into_iter();
                self.table(
                    *section,
                    &keys.filter(|key| names.contains(&key.name)).collect::<Vec<_>>(),
                )
            }
            Shape::Strings(most) => {
                let mut strings = tables_by_name(text());
                strings["maxProperties"] = json!(most);
                strings
            }
            Shape::Table => json!({ "type": "object" }),
        }
    }

    fn reference(&mut self, section: Section) -> Value {
        if !self.named.contains(&section) {
            self.named.push(section);
        }
        json!({ "$ref": format!("#/$defs/{}", name(section)) })
    }
}

fn built(section: Section) -> Vec<&'static Key> {
    let keys = section.keys().iter();
    keys.filter(|key| key.state == State::Built).collect()
}

/// The section among the definitions.
fn name(section: Section) -> String {
    format!("{section:?}").to_lowercase()
}

/// What it means, and of its value what the schema cannot say otherwise.
fn description(key: &Key) -> String {
    let mut text = key.about.to_owned();
    if !key.clause.is_empty() {
        text.push_str(&format!(" ({})", key.clause));
    }
    if let Form::Duration(_)
    | Form::Offset(_)
    | Form::Size(_)
    | Form::Share
    | Form::Text(_)
    | Form::Texts(_) = key.form
    {
        text.push_str(&format!("\nValue: {}.", reference::value(key)));
    }
    match key.default {
        Default::Required => {}
        default => text.push_str(&format!("\nDefault: {}.", default.show())),
    }
    text
}

/// What holds without the key, where that is a value.
fn default(default: Default) -> Option<Value> {
    match default {
        Default::Required | Default::Said(_) => None,
        Default::Duration(value) => Some(json!(units::show_duration(value))),
        Default::Size(value) => Some(json!(units::show_size(value))),
        Default::Integer(value) => Some(json!(value)),
        Default::Flag(value) => Some(json!(value)),
        Default::Word(word) => Some(json!(word)),
    }
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn integer<T: Into<Value> + Copy>(range: &RangeInclusive<T>) -> Value {
    let (least, most): (Value, Value) = ((*range.start()).into(), (*range.end()).into());
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn choice(words: &[Word]) -> Value {
    let words = words.iter().filter(|word| word.state == State::Built);
    json!({ "enum": words.map(|word| word.text).collect::<Vec<_>>() })
}

/// A list that is not empty.
fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items, "minItems": 1 })
}

fn one_or_several(item: Value) -> Value {
    any_of([item.clone(), list(item)])
}

fn tables_by_name(each: Value) -> Value {
    json!({ "type": "object", "additionalProperties": each })
}

/// Any of them; one alone as it is.
fn any_of(alternatives: impl IntoIterator<Item = Value>) -> Value {
    let mut alternatives: Vec<Value> = alternatives.into_iter().collect();
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => json!({ "anyOf": alternatives }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::SECTIONS;
    use super::*;

    fn parsed(top: Section) -> Value {
        serde_json::from_str(&schema(top)).unwrap()
    }

    #[test]
    fn every_section_that_can_be_reached_is_defined() {
        let schema = parsed(Section::File);
        for section in SECTIONS.into_iter().filter(|section| *section != Section::File) {
            assert_eq!(schema["$defs"][name(section)]["title"], section.title());
        }
        assert_eq!(schema["$defs"].as_object().unwrap().len(), SECTIONS.len() - 1);
    }

    #[test]
    fn any_section_can_be_the_top() {
        for section in SECTIONS {
            let schema = parsed(section);
            assert_eq!(schema["additionalProperties"], false, "{section:?}");
            assert_eq!(
                schema["properties"].as_object().unwrap().len(),
                built(section).len()
            );
        }
        assert_eq!(parsed(Section::Hash)["$defs"], json!({}));
    }

    #[test]
    fn two_runs_are_one_text() {
        assert_eq!(schema(Section::File), schema(Section::File));
    }

    /// A form that the builder of a section reads by itself has to say what it takes.
    #[test]
    fn every_other_form_has_its_shapes() {
        for section in SECTIONS {
            for key in built(section) {
                if let Form::Other(_, shapes) = key.form {
                    assert!(!shapes.is_empty(), "`{}` of {}", key.name, section.title());
                }
            }
        }
    }

    #[test]
    fn parts_are_keys_of_their_section() {
        let shapes = SECTIONS.into_iter().flat_map(built).map(|key| &key.form);
        let mut parts = 0;
        for shape in shapes.flat_map(|form| match form {
            Form::Other(_, shapes) => *shapes,
            _ => &[],
        }) {
            if let Shape::Part(section, names) = shape {
                assert!(names.iter().all(|name| section.key(name).is_some()), "{names:?}");
                parts += 1;
            }
        }
        assert!(parts > 0);
        let fallback = &parsed(Section::Policy)["properties"]["fallback"]["anyOf"][1]["properties"];
        assert_eq!(
            fallback.as_object().unwrap().len(),
            Section::Balance.keys().len() - 1
        );
    }

    #[test]
    fn a_key_in_full() {
        let schema = parsed(Section::File);
        assert_eq!(
            schema["$defs"]["listen"]["properties"]["head-max"],
            json!({
                "anyOf": [
                    { "type": "integer", "minimum": 1024, "maximum": 61440 },
                    { "type": "string", "pattern": "^[0-9]+(GiB|MiB|KiB|B)?$" },
                ],
                "default": "16KiB",
                "description": "Bytes of a request's head; 431 beyond. (RFC 6585 §5)\nValue: size, 1KiB to 60KiB.\n\
                    Default: `\"16KiB\"`.",
            })
        );
        assert!(schema["$defs"]["backend"]["properties"].get("check").is_none());
    }
}
