//! The Prometheus text, read into samples that can be added up and compared.
//!
//! Names are HAProxy's with our prefix (ST-5); labels that a test does not mention are added up over.

use super::{Client, Proxy};
use std::collections::BTreeMap;

/// One scrape.
#[derive(Clone, Debug)]
pub(crate) struct Metrics(Vec<Sample>);

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Scrapes the proxy's metrics.
#[track_caller]
pub(crate) fn metrics(proxy: &Proxy) -> Metrics {
    let mut client = Client::connect(&proxy.address("metrics"));
    client.send("GET /metrics HTTP/1.1\r\nHost: metrics.test\r\nConnection: close\r\n\r\n");
    let response = client.response("GET");
    assert_eq!(response.status, 200);
    Metrics::parse(&response.text())
}

impl Metrics {
    fn parse(text: &str) -> Metrics {
        let samples = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Metrics(
            samples
                .map(|line| Sample::parse(line).unwrap_or_else(|| panic!("sample {line:?}")))
                .collect(),
        )
    }

    /// The sum of the samples of that name (`forebay_` is put before it) with all these labels. Fails the test when
    /// there is no such sample at all.
    #[track_caller]
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let name = format!("forebay_{name}");
        let fits = |sample: &&Sample| {
            sample.name == name
                && labels
                    .iter()
                    .all(|(k, v)| sample.labels.get(*k).is_some_and(|it| it == v))
        };
        let mut found = self.0.iter().filter(fits).peekable();
        assert!(
            found.peek().is_some(),
            "no sample {name} with {labels:?} among {:#?}",
            self.names()
        );
        found.map(|sample| sample.value).sum()
    }

    /// The values of the label `cause` of counters that have grown since then, with the growth.
    pub(crate) fn causes_since(&self, before: &Metrics) -> BTreeMap<String, f64> {
        let old = |sample: &Sample| {
            let same = before
                .0
                .iter()
                .find(|it| it.name == sample.name && it.labels == sample.labels);
            same.map_or(0.0, |it| it.value)
        };
        let mut grown = BTreeMap::new();
        for sample in &self.0 {
            let growth = sample.value - old(sample);
            if let Some(cause) = sample.labels.get("cause").filter(|_| growth > 0.0) {
                *grown.entry(cause.clone()).or_default() += growth;
            }
        }
        grown
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.iter().map(|sample| sample.name.as_str()).collect();
        names.dedup();
        names
    }
}

impl Sample {
    fn parse(line: &str) -> Option<Sample> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, rest.strip_suffix('}')?),
            None => (series, ""),
        };
        let labels = labels.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=')?;
            Some((
                key.to_owned(),
                value.strip_prefix('"')?.strip_suffix('"')?.to_owned(),
            ))
        });
        Some(Sample {
            name: name.to_owned(),
            labels: labels.collect::<Option<_>>()?,
            value: value.parse().ok()?,
        })
    }
}
