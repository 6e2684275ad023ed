//! The Prometheus text, read into samples that can be added up and compared.
//!
//! Names are HAProxy's with our prefix (ST-5); labels that a test does not mention are added up over.

use super::{Client, Proxy};
use std::collections::{BTreeMap, BTreeSet};

/// One scrape.
#[derive(Clone, Debug)]
pub(crate) struct Metrics(Vec<Sample>);

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The families whose series are causes.
const CAUSES: &[&str] = &[
    "frontend_refused_requests_total",
    "frontend_timeouts_total",
    "server_timeouts_total",
    "server_connection_errors_total",
    "server_response_errors_total",
];

/// Scrapes the proxy's metrics.
#[track_caller]
pub(crate) fn metrics(proxy: &Proxy) -> Metrics {
    let mut client = Client::connect(&proxy.metrics_address());
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

    /// The series that say why something was refused or failed, as far as they have grown since then.
    pub(crate) fn causes_since(&self, before: &Metrics) -> BTreeSet<String> {
        let old = |sample: &Sample| {
            let same = before
                .0
                .iter()
                .find(|it| it.name == sample.name && it.labels == sample.labels);
            same.map_or(0.0, |it| it.value)
        };
        let of_causes = self
            .0
            .iter()
            .filter(|it| CAUSES.iter().any(|name| it.name == format!("forebay_{name}")));
        of_causes
            .filter(|it| it.value > old(it))
            .map(|it| format!("{} {:?}", it.name, it.labels))
            .collect()
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
