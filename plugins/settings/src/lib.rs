//! Reads the table `config = { … }` of a policy, and gathers everything that is wrong with it.
//!
//! Each reader takes a key out of the table and always gives a value, the default where the one of the operator cannot
//! be used; whatever is left at the end is unknown. So the operator sees all mistakes at once, and a policy reads its
//! keys without a single `if`:
//!
//! ```
//! let mut settings = settings::Settings::read(r#"{ "window": "10s" }"#);
//! let window = settings.duration("window", "5s", 100..=3_600_000);
//! assert_eq!((window, settings.finish()), (10_000, vec![]));
//! ```

mod cap;
mod json;

pub use cap::Cap;
use json::Value;
use std::ops::RangeInclusive;

/// Something wrong: the path of the key, and what would be right.
pub type Problem = (String, String);

/// What is left of the table, and what was wrong so far.
pub struct Settings {
    /// Where it stands: empty, or the path of its key and a dot.
    path: String,
    left: Vec<(String, Value)>,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl Settings {
    /// Of the JSON text that `configure` is given.
    pub fn read(config: &str) -> Settings {
        let (left, problems) = match json::table(config) {
            Some(left) => (left, vec![]),
            None => (vec![], vec![(String::new(), "must be a table".into())]),
        };
        Settings { path: String::new(), left, known: vec![], problems }
    }

    /// A text; `None` without one.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        match self.take(key)? {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => self.wrong(key, "must be a text that is not empty"),
        }
    }

    /// The texts of a table with keys of the operator's own.
    pub fn texts(&mut self, key: &'static str) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        for (name, value) in self.named(key) {
            match value {
                Value::Text(text) if !text.is_empty() => texts.push((name, text)),
                _ => drop(self.wrong::<()>(&format!("{key}.{name}"), "must be a text that is not empty")),
            }
        }
        texts
    }

    /// The shares, in millionths, of a table with keys of the operator's own.
    pub fn shares(&mut self, key: &'static str) -> Vec<(String, i32)> {
        let mut shares = Vec::new();
        for (name, value) in self.named(key) {
            match share_of(&value) {
                Some(share) => shares.push((name, share)),
                None => drop(self.wrong::<()>(&format!("{key}.{name}"), SHARE)),
            }
        }
        shares
    }

    /// The tables in a table with keys of the operator's own. Each goes back by [`Self::close`].
    pub fn tables(&mut self, key: &'static str) -> Vec<(String, Settings)> {
        let mut tables = Vec::new();
        for (name, value) in self.named(key) {
            let path = format!("{key}.{name}");
            match value {
                Value::Table(left) => {
                    let path = format!("{}{path}.", self.path);
                    tables.push((name, Settings { path, left, known: vec![], problems: vec![] }));
                }
                _ => drop(self.wrong::<()>(&path, "must be a table")),
            }
        }
        tables
    }

    /// Takes over what was wrong with one of [`Self::tables`].
    pub fn close(&mut self, table: Settings) {
        self.problems.extend(table.finish());
    }

    fn named(&mut self, key: &'static str) -> Vec<(String, Value)> {
        match self.take(key) {
            None => vec![],
            Some(Value::Table(named)) => named,
            Some(_) => self.wrong(key, "must be a table").unwrap_or_default(),
        }
    }

    /// A name of a header, cookie or the like: a token of RFC 9110.
    pub fn token(&mut self, key: &'static str) -> Option<String> {
        let symbol = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
        let text = self.text(key)?;
        match text.bytes().all(symbol) {
            true => Some(text),
            false => self.wrong(key, "must be a name without blanks and separators"),
        }
    }

    /// A duration such as `"5s"`, in milliseconds.
    pub fn duration(&mut self, key: &'static str, default: &'static str, range: RangeInclusive<i64>) -> i64 {
        self.duration_if(key, range).unwrap_or_else(|| milliseconds(default).expect("a default is valid"))
    }

    /// The same without a default.
    pub fn duration_if(&mut self, key: &'static str, range: RangeInclusive<i64>) -> Option<i64> {
        let given = self.take(key)?;
        match text_of(&given).and_then(milliseconds) {
            Some(time) if range.contains(&time) => Some(time),
            Some(_) => {
                let (least, most) = (range.start(), range.end());
                self.wrong(key, &format!("must be from {least}ms to {most}ms"))
            }
            None => self.wrong(key, "must be a duration such as \"5s\" or \"250ms\""),
        }
    }

    /// A share such as `"5%"` or `"0.25%"`, in millionths.
    pub fn share(&mut self, key: &'static str, default: &'static str) -> i32 {
        let given = self.take(key).unwrap_or_else(|| Value::Text(default.into()));
        share_of(&given).unwrap_or_else(|| self.wrong(key, SHARE).unwrap_or_default())
    }

    /// A factor such as `1.5`, in thousandths.
    pub fn factor(&mut self, key: &'static str, default: i64, range: RangeInclusive<i64>) -> i64 {
        let Some(given) = self.take(key) else {
            return default;
        };
        match number_of(&given, 3) {
            Some(factor) if range.contains(&factor) => factor,
            _ => {
                let (least, most) = (range.start() / 1000, range.end() / 1000);
                let wrong = format!("must be a number from {least} to {most} with at most three decimals");
                self.wrong(key, &wrong).unwrap_or(default)
            }
        }
    }

    /// A whole number.
    pub fn whole(&mut self, key: &'static str, default: i64, range: RangeInclusive<i64>) -> i64 {
        let Some(given) = self.take(key) else {
            return default;
        };
        match number_of(&given, 0) {
            Some(number) if range.contains(&number) => number,
            _ => {
                let wrong = format!("must be a whole number from {} to {}", range.start(), range.end());
                self.wrong(key, &wrong).unwrap_or(default)
            }
        }
    }

    /// Adds what only the policy can know. Gives nothing, so that a reader can end with it.
    pub fn wrong<T>(&mut self, key: &str, message: &str) -> Option<T> {
        self.problems.push((format!("{}{key}", self.path), message.into()));
        None
    }

    /// All that was wrong, unknown keys included.
    pub fn finish(mut self) -> Vec<Problem> {
        let known = self.known.join("`, `");
        for (key, _) in self.left {
            let path = format!("{}{key}", self.path);
            self.problems.push((path, format!("unknown; the keys are `{known}`")));
        }
        self.problems
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        let place = self.left.iter().position(|(it, _)| it == key)?;
        Some(self.left.remove(place).1)
    }
}

fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

const SHARE: &str = "must be a share from \"0%\" to \"100%\" with at most four decimals";

/// In millionths.
fn share_of(value: &Value) -> Option<i32> {
    let share = decimal(text_of(value)?.strip_suffix('%')?, 4)?;
    (share <= 1_000_000).then_some(share as i32)
}

fn number_of(value: &Value, places: usize) -> Option<i64> {
    match value {
        Value::Number(text) => match text.strip_prefix('-') {
            Some(text) => decimal(text, places).map(|number| -number),
            None => decimal(text, places),
        },
        _ => None,
    }
}

/// One whole number and its unit, as everywhere in Forebay's configuration.
fn milliseconds(text: &str) -> Option<i64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let factor = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    text[..digits].parse::<i64>().ok()?.checked_mul(factor)
}

/// `12`, `12.5`: in units of 10 to the −`places`.
fn decimal(text: &str, places: usize) -> Option<i64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !digits(whole) || whole.len() > 9 || rest.len() > places || (text.contains('.') && !digits(rest)) {
        return None;
    }
    let digits = whole.bytes().chain(rest.bytes());
    let number = digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    Some(number * 10_i64.pow((places - rest.len()) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_said_at_once() {
        let mut settings =
            Settings::read(r#"{ "window": "5", "share": "101%", "windows": 1, "spill": 1e3 }"#);
        assert_eq!(settings.duration("window", "5s", 1..=10_000), 5000);
        assert_eq!(settings.share("share", "1%"), 0);
        assert_eq!(settings.factor("spill", 1500, 1000..=100_000), 1500);
        let problems = settings.finish();
        let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["window", "share", "spill", "windows"]);
        assert_eq!(problems[3].1, "unknown; the keys are `window`, `share`, `spill`");
    }

    #[test]
    fn tables_are_read_with_their_paths() {
        let config = r#"{ "classes": { "gold": { "class": -7 }, "bulk": { "klass": 1 }, "odd": 1 },
            "tenants": { "acme": "gold", "zeta": 1 }, "others": [],
            "shares": { "next": "12.5%", "far": "101%", "near": 5 } }"#;
        let mut settings = Settings::read(config);
        let mut classes = Vec::new();
        for (name, mut table) in settings.tables("classes") {
            classes.push((name, table.whole("class", 0, -9..=9)));
            settings.close(table);
        }
        assert_eq!(classes, [("gold".into(), -7), ("bulk".into(), 0)]);
        assert_eq!(settings.texts("tenants"), [("acme".into(), "gold".into())]);
        assert_eq!(settings.texts("others"), []);
        assert_eq!(settings.shares("shares"), [("next".into(), 125_000)]);
        let problems = settings.finish();
        let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
        let tables = ["classes.odd", "classes.bulk.klass", "tenants.zeta", "others"];
        assert_eq!(paths, [&tables[..], &["shares.far", "shares.near"]].concat());
    }

    #[test]
    fn what_is_no_table_has_no_path() {
        for config in ["", "[]", "1", "{"] {
            assert_eq!(Settings::read(config).finish()[0].0, "");
        }
    }

    #[test]
    fn numbers_are_exact() {
        assert_eq!(milliseconds("250ms"), Some(250));
        assert_eq!(milliseconds("2h"), Some(7_200_000));
        for wrong in ["", "s", "5", "5 s", "1.5s", "-1s", "99999999999999999h", "5ß"] {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
        assert_eq!(decimal("12.5", 4), Some(125_000));
        assert_eq!(decimal("0.0001", 4), Some(1));
        for wrong in ["", ".5", "1.", "1.00001", "-1", "+1", "1e3", "0.+1"] {
            assert_eq!(decimal(wrong, 4), None, "{wrong}");
        }
    }
}
