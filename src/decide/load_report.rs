//! What a server says about its load in a response: the field `endpoint-load-metrics` of ORCA, as text or as JSON.
//!
//! ```text
//! TEXT cpu_utilization=0.3,rps_fractional=10.0,named_metrics.queue=4
//! JSON {"cpu_utilization": 0.3, "rps_fractional": 10.0, "named_metrics": {"queue": 4}}
//! ```
//!
//! The server may be anybody's: the length, the number of values and each value are bounded, nothing is allocated, and one
//! wrong value makes the whole report wrong. Names that nobody knows are passed over.

/// The name of the field.
pub const FIELD: &[u8] = b"endpoint-load-metrics";
/// Bytes of a report.
const REPORT_MAX: usize = 4096;
/// Values in a report.
const VALUES_MAX: usize = 64;
/// Bytes of one value: more digits than a double has.
const VALUE_MAX: usize = 32;

/// A report that is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What a value is about: its own name, and that of the group it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    group: &'a [u8],
    own: &'a [u8],
}

impl Name<'_> {
    /// Whether it is the one that is written so: `GROUP.NAME`, or `NAME` of none.
    pub fn is(&self, written: &str) -> bool {
        let written = written.as_bytes();
        let own = match self.group {
            [] => Some(written),
            group => written
                .strip_prefix(group)
                .and_then(|rest| rest.strip_prefix(b".")),
        };
        own == Some(self.own)
    }
}

/// Gives every value of a report; the error makes all that was given worthless. Values are finite and not negative.
pub fn read<'a>(report: &'a [u8], mut take: impl FnMut(Name<'a>, f64)) -> Result<(), Malformed> {
    if report.len() > REPORT_MAX {
        return Err(Malformed);
    }
    let mut left = VALUES_MAX;
    let mut take = |name: Name<'a>, value: f64| -> Result<(), Malformed> {
        left = left.checked_sub(1).ok_or(Malformed)?;
        take(name, value);
        Ok(())
    };
    match report.split_at_checked(5) {
        Some((b"TEXT ", pairs)) => read_pairs(pairs, &mut take),
        Some((b"JSON ", json)) => Json { rest: json }.whole(&mut take),
        _ => Err(Malformed),
    }
}

/// What takes a value, or has enough of them.
type Take<'t, 'a> = &'t mut dyn FnMut(Name<'a>, f64) -> Result<(), Malformed>;

fn read_pairs<'a>(pairs: &'a [u8], take: Take<'_, 'a>) -> Result<(), Malformed> {
    for pair in pairs.split(|byte| *byte == b',') {
        let pair = pair.trim_ascii();
        let end = pair.iter().position(|byte| matches!(byte, b'=' | b':'));
        let (name, value) = pair.split_at(end.ok_or(Malformed)?);
        let (name, value) = (name.trim_ascii_end(), value[1..].trim_ascii_start());
        if name.is_empty() {
            return Err(Malformed);
        }
        let dot = name.iter().position(|byte| *byte == b'.');
        let (group, own) = dot.map_or((&name[..0], name), |dot| (&name[..dot], &name[dot + 1..]));
        take(Name { group, own }, number(value)?)?;
    }
    Ok(())
}

fn number(text: &[u8]) -> Result<f64, Malformed> {
    let begins_well = text.first().is_some_and(u8::is_ascii_digit);
    if !begins_well || text.len() > VALUE_MAX {
        return Err(Malformed);
    }
    let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
    let value: f64 = text.parse().map_err(|_| Malformed)?;
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Malformed)
    }
}

/// An object of numbers and of objects of numbers, and what is not read yet. Numbers may stand in quotes, as JSON made
/// from protocol buffers has them; `null` says nothing.
struct Json<'a> {
    rest: &'a [u8],
}

impl<'a> Json<'a> {
    fn whole(mut self, take: Take<'_, 'a>) -> Result<(), Malformed> {
        self.object(&[], take)?;
        self.blanks();
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    fn object(&mut self, group: &'a [u8], take: Take<'_, 'a>) -> Result<(), Malformed> {
        self.sign(b'{')?;
        if self.sign(b'}').is_ok() {
            return Ok(());
        }
        loop {
            let own = self.string()?;
            let own = if group.is_empty() { in_snake_case(own) } else { own };
            self.sign(b':')?;
            self.value(Name { group, own }, take)?;
            if self.sign(b',').is_err() {
                return self.sign(b'}');
            }
        }
    }

    fn value(&mut self, name: Name<'a>, take: Take<'_, 'a>) -> Result<(), Malformed> {
        self.blanks();
        match self.rest {
            [b'{', ..] if name.group.is_empty() && !name.own.is_empty() => self.object(name.own, take),
            [b'"', ..] => {
                let text = self.string()?;
                take(name, number(text)?)
            }
            [b'n', b'u', b'l', b'l', rest @ ..] => {
                self.rest = rest;
                Ok(())
            }
            _ => {
                let inside =
                    |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
                let end = self.rest.iter().position(|byte| !inside(byte));
                let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
                self.rest = rest;
                take(name, number(text)?)
            }
        }
    }

    /// What stands between two quotes, as it is written: no name that is looked for has an escape.
    fn string(&mut self) -> Result<&'a [u8], Malformed> {
        self.sign(b'"')?;
        let mut escaped = false;
        let end = self.rest.iter().position(|byte| {
            let ends = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            ends
        });
        let (text, rest) = self.rest.split_at(end.ok_or(Malformed)?);
        self.rest = &rest[1..];
        Ok(text)
    }

    fn sign(&mut self, sign: u8) -> Result<(), Malformed> {
        self.blanks();
        match self.rest {
            [first, rest @ ..] if *first == sign => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(Malformed),
        }
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }
}

/// The names of protocol buffers have two spellings in JSON.
fn in_snake_case(name: &[u8]) -> &[u8] {
    match name {
        b"cpuUtilization" => b"cpu_utilization",
        b"memUtilization" => b"mem_utilization",
        b"applicationUtilization" => b"application_utilization",
        b"rpsFractional" => b"rps_fractional",
        b"namedMetrics" => b"named_metrics",
        b"requestCost" => b"request_cost",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, prop_assume, proptest};

    fn all(report: &str) -> Result<Vec<(String, f64)>, Malformed> {
        let mut values = Vec::new();
        let shown = |bytes| String::from_utf8_lossy(bytes).into_owned();
        read(report.as_bytes(), |name, value| {
            let own = shown(name.own);
            let written = match name.group {
                [] => own,
                group => format!("{}.{own}", shown(group)),
            };
            assert!(name.is(&written) && !name.is("other"));
            values.push((written, value));
        })
        .map(|()| values)
    }

    #[test]
    fn both_forms_say_the_same() {
        let expected = [
            ("cpu_utilization", 0.3),
            ("rps_fractional", 10.0),
            ("named_metrics.a.b", 4.0),
            ("utilization.gpu", 1.25),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value)).to_vec();
        for report in [
            "TEXT cpu_utilization=0.3,rps_fractional=10.0,named_metrics.a.b=4,utilization.gpu=1.25",
            "TEXT cpu_utilization: 0.3 , rps_fractional:1e1,named_metrics.a.b=4.0,utilization.gpu = 1.25",
            r#"JSON {"cpu_utilization":0.3,"rps_fractional":10.0,"named_metrics":{"a.b":4},"utilization":{"gpu":1.25}}"#,
            r#"JSON  { "cpuUtilization" : "0.3", "rpsFractional": 1e1, "eps": null,
                "namedMetrics": {"a.b" : "4"}, "requestCost": {}, "utilization" :{"gpu":1.25} } "#,
        ] {
            assert_eq!(all(report), Ok(expected.clone()), "{report}");
        }
        assert_eq!(all("JSON {}"), Ok(Vec::new()));
    }

    #[test]
    fn one_wrong_value_spoils_a_report() {
        let many = format!("TEXT {}", vec!["eps=1"; VALUES_MAX + 1].join(","));
        let long = format!("TEXT eps=1,named_metrics.{}=1", "x".repeat(REPORT_MAX));
        let digits = format!("TEXT eps=0.{}", "1".repeat(VALUE_MAX));
        for report in [
            "",
            "TEXT",
            "TEXT ",
            "text eps=1",
            "BIN AAAA",
            "TEXT eps",
            "TEXT eps=",
            "TEXT =1",
            "TEXT eps=1,",
            "TEXT eps=nan",
            "TEXT eps=inf",
            "TEXT eps=-1",
            "TEXT eps=+1",
            "TEXT eps=1e999",
            "TEXT eps=1x",
            "TEXT cpu_utilization=0.3,eps=NaN",
            "JSON ",
            "JSON {",
            "JSON {}x",
            "JSON []",
            r#"JSON {"eps"}"#,
            r#"JSON {"eps":}"#,
            r#"JSON {"eps":NaN}"#,
            r#"JSON {"eps":-1}"#,
            r#"JSON {"eps":"-1"}"#,
            r#"JSON {"eps":true}"#,
            r#"JSON {"eps":[1]}"#,
            r#"JSON {"eps":1,}"#,
            r#"JSON {"eps":1 "cpu_utilization":1}"#,
            r#"JSON {"a":{"b":{"c":1}}}"#,
            r#"JSON {"":{"c":1}}"#,
            r#"JSON {"eps\":1}"#,
            &many,
            &long,
            &digits,
        ] {
            assert_eq!(all(report), Err(Malformed), "{report}");
        }
    }

    proptest! {
        /// Whatever a server writes: no panic, and no value that is none.
        #[test]
        fn any_bytes_are_read(form in prop::sample::select(vec!["TEXT ", "JSON ", ""]), rest in any::<Vec<u8>>()) {
            let report = [form.as_bytes(), &rest].concat();
            let _ = read(&report, |_, value| assert!(value.is_finite() && value >= 0.0));
        }

        /// The same with what such reports are made of.
        #[test]
        fn any_words_are_read(words in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", "\\", ":", ",", "=", ".", " ", "null", "nan", "inf", "-", "1", "0.5", "1e400",
            "eps", "\"eps\"", "\"a\"", "named_metrics", "\"utilization\"", "{\"eps\":1}",
        ]), 0..40), json in any::<bool>()) {
            let report = format!("{}{}", if json { "JSON {" } else { "TEXT " }, words.concat());
            let _ = all(&report);
        }

        /// A report that is written well is read to its last value.
        #[test]
        fn what_is_written_is_read(
            pairs in prop::collection::vec(("[a-z_]{1,9}(\\.[a-z.]{1,9})?", 0..u32::MAX), 1..VALUES_MAX),
        ) {
            let pairs: Vec<(String, f64)> =
                pairs.into_iter().map(|(name, value)| (name, f64::from(value) / 8.0)).collect();
            let written: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
            prop_assume!(written.join(",").len() < REPORT_MAX - 5);
            prop_assert_eq!(all(&format!("TEXT {}", written.join(","))), Ok(pairs));
        }
    }
}
