//! As much of JSON (RFC 8259) as a table of texts and numbers needs. `serde_json` would be two thirds of each component.
//!
//! What is nested is skipped: no setting of ours is a list or a table.

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Without its quotes and escapes.
    Text(String),
    /// As it was written.
    Number(String),
    /// A table, a list, `true`, `false`, `null`.
    Other,
}

/// The keys of a table in their order; `None` if the text is none.
pub(crate) fn table(text: &str) -> Option<Vec<(String, Value)>> {
    let mut reader = Reader { left: text };
    let mut table = Vec::new();
    reader.take('{')?;
    while reader.take('}').is_none() {
        if !table.is_empty() {
            reader.take(',')?;
        }
        reader.take('"')?;
        let key = reader.text()?;
        reader.take(':')?;
        table.push((key, reader.value()?));
    }
    reader.left.trim().is_empty().then_some(table)
}

struct Reader<'a> {
    left: &'a str,
}

impl Reader<'_> {
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

    fn value(&mut self) -> Option<Value> {
        if self.take('"').is_some() {
            return self.text().map(Value::Text);
        }
        self.left = self.left.trim_ascii_start();
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
    fn what_is_no_table_is_none() {
        for text in
            ["", "[]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":[}", "{} x", "{\"a\":\"\\u12", "{,}"]
        {
            assert_eq!(table(text), None, "{text}");
        }
    }
}
