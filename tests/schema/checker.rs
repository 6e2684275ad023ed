//! A small reader of JSON Schemas, for the keywords that ours has.
//!
//! It knows no others: a keyword that is not here, or has a value of the wrong kind, is a mistake of the schema and panics.

use regex::Regex;
use serde_json::{Map, Value};

/// What is wrong with a value; empty if it is as the schema says.
pub(crate) fn check(root: &Value, value: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    Checker { root }.check(root, value, "", &mut wrong);
    wrong
}

/// Looks at every schema within one, and gives the default beside each.
pub(crate) fn walk<'s>(schema: &'s Value, seen: &mut dyn FnMut(&'s Map<String, Value>)) {
    let keywords = schema.as_object().expect("a schema is an object");
    seen(keywords);
    for (keyword, value) in keywords {
        assert!(is_well_formed(keyword, value), "{keyword}: {value}");
        match keyword.as_str() {
            "properties" | "$defs" => members(value).values().for_each(|inner| walk(inner, seen)),
            "anyOf" | "oneOf" => items(value).iter().for_each(|inner| walk(inner, seen)),
            "items" => walk(value, seen),
            "additionalProperties" if value.is_object() => walk(value, seen),
            _ => {}
        }
    }
}

fn is_well_formed(keyword: &str, value: &Value) -> bool {
    match keyword {
        "$schema" | "title" | "description" => value.is_string(),
        "$ref" => value.as_str().is_some_and(|to| to.starts_with("#/$defs/")),
        "default" => true,
        "type" => ["object", "array", "string", "boolean", "integer", "number"]
            .map(Value::from)
            .contains(value),
        "enum" | "anyOf" | "oneOf" => value.as_array().is_some_and(|list| !list.is_empty()),
        "required" => value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string)),
        "pattern" => value.as_str().is_some_and(|text| Regex::new(text).is_ok()),
        "minimum" | "maximum" => value.is_number(),
        "minItems" | "maxItems" | "maxProperties" => value.is_u64(),
        "properties" | "$defs" | "items" => value.is_object(),
        "additionalProperties" => value.is_object() || *value == Value::Bool(false),
        _ => false,
    }
}

struct Checker<'s> {
    root: &'s Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        for (keyword, says) in members(schema) {
            match keyword.as_str() {
                "$ref" => self.check(self.named(says), value, at, wrong),
                "anyOf" if self.fitting(says, value) == 0 => {
                    wrong.push(format!("{at}: {value} fits nothing"))
                }
                "oneOf" if self.fitting(says, value) != 1 => {
                    wrong.push(format!("{at}: not exactly one of {says}"));
                }
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(says, item, &format!("{at}[{number}]"), wrong);
                    }
                }
                "properties" | "additionalProperties" => self.members(keyword, schema, value, at, wrong),
                _ if !holds(keyword, says, value) => {
                    wrong.push(format!("{at}: {keyword} {says}, not {value}"))
                }
                _ => {}
            }
        }
    }

    fn members(&self, keyword: &str, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            let (at, property) = (format!("{at}.{name}"), schema["properties"].get(name));
            match (keyword, property, &schema["additionalProperties"]) {
                ("properties", Some(property), _) => self.check(property, inner, &at, wrong),
                ("additionalProperties", None, Value::Bool(false)) => wrong.push(format!("{at}: unknown")),
                ("additionalProperties", None, others) => self.check(others, inner, &at, wrong),
                _ => {}
            }
        }
    }

    fn fitting(&self, schemas: &Value, value: &Value) -> usize {
        let fits = |schema: &&Value| {
            let mut wrong = Vec::new();
            self.check(schema, value, "", &mut wrong);
            wrong.is_empty()
        };
        items(schemas).iter().filter(fits).count()
    }

    fn named(&self, reference: &Value) -> &Value {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let found = self.root.pointer(pointer.expect("a reference within the schema"));
        found.unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }
}

/// Whether a keyword holds that looks at the value alone; one about another kind of value does.
fn holds(keyword: &str, says: &Value, value: &Value) -> bool {
    let most = |length: usize| length as u64 <= says.as_u64().expect("a number");
    match (keyword, value) {
        ("type", value) => is_a(says.as_str().expect("a type"), value),
        ("enum", value) => items(says).contains(value),
        ("pattern", Value::String(text)) => Regex::new(says.as_str().expect("a pattern"))
            .expect("a pattern")
            .is_match(text),
        ("minimum", Value::Number(_)) => value.as_f64() >= says.as_f64(),
        ("maximum", Value::Number(_)) => value.as_f64() <= says.as_f64(),
        ("minItems", Value::Array(list)) => list.len() as u64 >= says.as_u64().expect("a number"),
        ("maxItems", Value::Array(list)) => most(list.len()),
        ("maxProperties", Value::Object(members)) => most(members.len()),
        ("required", Value::Object(members)) => {
            let name = |name: &Value| members.contains_key(name.as_str().expect("a name"));
            items(says).iter().all(name)
        }
        _ => true,
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("type {other}"),
    }
}

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn items(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
