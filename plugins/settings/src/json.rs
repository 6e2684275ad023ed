//! As much of JSON (RFC 8259) as a table of texts and numbers needs. `serde_json` would be two thirds of each component.
//!
//! Lists are skipped, and so are tables that stand too deep: no setting of ours is one.

/// How deep tables may stand in tables.
const DEPTH_MAX: u32 = 4;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Without its quotes and escapes.
    Text(String),
    /// As it was written.
    Number(String),
    /// Its keys in their order.
    Table(Vec<(String, Value)>),
    /// A list, `true`, `false`, `null`; a table that stands too deep.
    Other,
}

/// The keys of a table in their order; `None` if the text is none.
pub(crate) fn table(text: &str) -> Option<Vec<(String, Value)>> {
    let mut reader = Reader { left: text };
    let table = reader.table(DEPTH_MAX)?;
    reader.left.trim().is_empty().then_some(table)
}

struct Reader<'a> {
    left: &'a str,
}

impl Reader<'_> {
    /// A table, in which others may stand so deep.
    fn table(&mut self, depth: u32) -> Option<Vec<(String, Value)>> {
        let mut table = Vec::new();
        self.take('{')?;
        while self.take('}').is_none() {
            if !table.is_empty() {
                self.take(',')?;
            }
            self.take('"')?;
            let key = self.text()?;
            self.take(':')?;
            table.push((key, self.value(depth)?));
        }
        Some(table)
    }

    /// That sign, after blanks.
    fn take(&mut self, sign: char) -> Option<()> {
        let rest = self.left.trim_ascii_start().strip_prefix(sign)?;
        self.left = rest;
        Some(())
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.left.chars().next()?;
        self.left = &self.left[sign.len_utf8()..];
        Some(sign)
    }

    /// The rest of a text whose first quote was taken.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                sign => text.push(sign),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let code = u32::from_str_radix(self.left.get(..4)?, 16).ok()?;
                self.left = &self.left[4..];
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            sign => sign,
        })
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        if self.take('"').is_some() {
            return self.text().map(Value::Text);
        }
        self.left = self.left.trim_ascii_start();
        if depth > 0 && self.left.starts_with('{') {
            return self.table(depth - 1).map(Value::Table);
        }
        if self.left.starts_with(['{', '[']) {
            return self.skip().map(|()| Value::Other);
        }
        let end = self.left.find([',', '}', ' ', '\n', '\r', '\t'])?;
        let (word, rest) = self.left.split_at(end);
        self.left = rest;
        match word.starts_with(|sign: char| sign == '-' || sign.is_ascii_digit()) {
            true => Some(Value::Number(word.into())),
            false => (!word.is_empty()).then_some(Value::Other),
        }
    }

    /// A table or a list, whole.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0;
        loop {
            match self.next()? {
                '"' => drop(self.text()?),
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text = |text: &str| Value::Text(text.into());
        let read = table(r#" { "a" : "x\"\u00e9\\" , "b":[{"}":"]"}],"c":-1.5e3, "d":true } "#);
        let expected = [
            ("a", text("x\"é\\")),
            ("b", Value::Other),
            ("c", Value::Number("-1.5e3".into())),
            ("d", Value::Other),
        ];
        assert_eq!(read.unwrap(), expected.map(|(key, value)| (key.into(), value)));
        assert_eq!(table("{}"), Some(vec![]));
    }

    #[test]
    fn tables_stand_in_tables_up_to_a_depth() {
        let read = table(r#"{ "a" : { "b" : "c", "d" : {} } , "e" : 1 }"#).unwrap();
        let inner = vec![("b".into(), Value::Text("c".into())), ("d".into(), Value::Table(vec![]))];
        assert_eq!(read, [("a".into(), Value::Table(inner)), ("e".into(), Value::Number("1".into()))]);
        let mut deep = table(&format!("{}1{}", "{\"a\":".repeat(30_000), "}".repeat(30_000)));
        for _ in 0..=DEPTH_MAX {
            let mut keys = deep.expect("a table");
            deep = match keys.remove(0).1 {
                Value::Table(inner) => Some(inner),
                _ => None,
            };
        }
        assert_eq!(deep, None, "skipped from there on");
    }

    #[test]
    fn what_is_no_table_is_none() {
        for text in [
            "",
            "[]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":[}",
            "{} x",
            "{\"a\":{}",
            "{\"a\":{,}}",
            "{\"a\":\"\\u12",
            "{,}",
        ] {
            assert_eq!(table(text), None, "{text}");
        }
    }
}
