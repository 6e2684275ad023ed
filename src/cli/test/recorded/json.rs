//! Reads a line of the JSON form.
//!
//! Fields are found by their names, in any order; those that are not needed here may be there or not.

use super::line::{Line, Read, end, misread, reuse};
use super::skipped::Why;
use crate::observe::calendar::Moment;
use crate::observe::record::Timers;
use serde_json::{Map, Value};

pub(super) fn line(text: &[u8]) -> Read {
    let fields = match serde_json::from_slice(text) {
        Ok(Value::Object(fields)) => Fields(fields),
        Ok(_) => return Err((Why::Foreign, "no JSON object".to_owned())),
        Err(error) => return Err((Why::Foreign, format!("no JSON: {error}"))),
    };
    let told = |what: String| match fields.is_ours() {
        true => misread(what),
        false => (Why::Foreign, format!("JSON of something else: {what}")),
    };
    fields.line().map_err(told)?.sendable()
}

struct Fields(Map<String, Value>);

impl Fields {
    /// Whether it is a line of this log at all, if not a good one.
    fn is_ours(&self) -> bool {
        ["time", "listener", "bytes_in", "queue_us"]
            .iter()
            .all(|name| self.0.contains_key(*name))
    }

    fn line(&self) -> Result<Line, String> {
        let time = self.text("time")?;
        let client = self.text("client")?;
        let reused = match self.text("reuse")? {
            "" => "-",
            word => word,
        };
        Ok(Line {
            at_unix_ms: Moment::parse(time).ok_or_else(|| self.wrong("time"))?.unix_ms,
            client: match client {
                "" => None,
                client => Some(client.parse().map_err(|_| self.wrong("client"))?),
            },
            listener: self.text("listener")?.to_owned(),
            backend: self.text("backend")?.to_owned(),
            server: self.text("server")?.to_owned(),
            method: self.text("method")?.to_owned(),
            host: self.text("host")?.to_owned(),
            target: self.text("target")?.to_owned(),
            status: self.number("status")?,
            bytes_in: self.number("bytes_in")?,
            bytes_out: self.number("bytes_out")?,
            timers: Timers {
                request: self.timer("request_us")?,
                queue: self.timer("queue_us")?,
                connect: self.timer("connect_us")?,
                response: self.timer("response_us")?,
                total: self.timer("total_us")?,
            },
            retries: self.number("retries")?,
            end: end(self.text("end")?).ok_or_else(|| self.wrong("end"))?,
            reuse: reuse(reused).ok_or_else(|| self.wrong("reuse"))?,
        })
    }

    fn field(&self, name: &str) -> Result<&Value, String> {
        self.0.get(name).ok_or_else(|| format!("it has no `{name}`"))
    }

    /// A text, or an empty one for `null`.
    fn text(&self, name: &str) -> Result<&str, String> {
        match self.field(name)? {
            Value::Null => Ok(""),
            Value::String(text) => Ok(text),
            _ => Err(self.wrong(name)),
        }
    }

    fn number<T: TryFrom<u64>>(&self, name: &str) -> Result<T, String> {
        let number = self
            .field(name)?
            .as_u64()
            .and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.wrong(name))
    }

    fn timer(&self, name: &str) -> Result<i64, String> {
        match self.field(name)? {
            Value::Null => Ok(Timers::NOT_REACHED),
            _ => self.number::<u64>(name).map(|us| us.min(i64::MAX as u64) as i64),
        }
    }

    fn wrong(&self, name: &str) -> String {
        format!("`{name}` is {}", self.0.get(name).unwrap_or(&Value::Null))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"time":"2026-03-01T12:14:14.655Z","client":"10.0.1.2:33317","listener":"web","backend":"api",
        "server":"a","method":"GET","host":"h","target":"/","status":200,"bytes_in":1,"bytes_out":2,"request_us":1,
        "queue_us":0,"connect_us":null,"response_us":5,"total_us":9,"retries":0,"end":"--","reuse":"idle"}"#;

    fn told(from: &str, to: &str) -> (Why, String) {
        assert!(GOOD.contains(from));
        line(GOOD.replace(from, to).as_bytes()).unwrap_err()
    }

    #[test]
    fn the_field_that_is_wrong_is_named() {
        assert_eq!(line(GOOD.as_bytes()).unwrap().timers.connect, Timers::NOT_REACHED);
        let wrong = |what: &str| (Why::Misread, what.to_owned());
        assert_eq!(
            told(":14.655Z", ":14Z"),
            wrong("`time` is \"2026-03-01T12:14:14Z\"")
        );
        assert_eq!(
            told("10.0.1.2:", "10.0.1.2"),
            wrong("`client` is \"10.0.1.233317\"")
        );
        assert_eq!(
            told("\"status\":200", "\"status\":70000"),
            wrong("`status` is 70000")
        );
        assert_eq!(
            told("\"bytes_out\":2", "\"bytes_out\":-2"),
            wrong("`bytes_out` is -2")
        );
        assert_eq!(told("\"total_us\":9,", ""), wrong("it has no `total_us`"));
        assert_eq!(told("\"idle\"", "\"lent\""), wrong("`reuse` is \"lent\""));
        assert_eq!(told("\"--\"", "\"-\""), wrong("`end` is \"-\""));
    }

    #[test]
    fn what_is_not_ours_is_told_apart() {
        let (why, what) = line(br#"{"ts":1,"level":"info","msg":"hello"}"#).unwrap_err();
        assert_eq!(
            (why, &*what),
            (Why::Foreign, "JSON of something else: it has no `time`")
        );
        assert_eq!(line(b"[1]").unwrap_err().0, Why::Foreign);
        assert_eq!(line(b"{\"time\":").unwrap_err().0, Why::Foreign);
        assert_eq!(told("\"GET\"", "null"), (Why::Request, "status 200".to_owned()));
    }
}
