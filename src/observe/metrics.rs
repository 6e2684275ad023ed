//! The numbers of a snapshot as Prometheus text.
//!
//! Which families there are is said in `families.rs`, one row each; here stands how a row is read from the things
//! it is about and written. The encoder adds `_total` to counters and escapes labels.

use super::families;
use super::snapshot::{Count, Snapshot, StatusClasses};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// The content type of [`render`]'s text.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// All numbers of the snapshot as Prometheus text 0.0.4.
pub fn render(snapshot: Snapshot) -> String {
    let mut registry = Registry::with_prefix("forebay");
    registry.register_collector(Box::new(Scrape(snapshot)));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry).expect("a String takes any text");
    text
}

/// One family of metrics: its name without prefix and `_total`, its help, and how to read it from each member.
pub(super) struct Family<T: 'static> {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) read: Read<T>,
}

/// How a family's values are read from one member of it.
pub(super) enum Read<T> {
    /// A number that only grows.
    Counter(fn(&T) -> u64),
    /// A number of now.
    Gauge(fn(&T) -> u64),
    /// A number of now that not every member has.
    GaugeIfAny(fn(&T) -> Option<u64>),
    /// A time that only grows.
    SecondsTotal(fn(&T) -> f64),
    /// A time of now that not every member has.
    Seconds(fn(&T) -> Option<f64>),
    /// A counter for each value of this label.
    Causes(&'static str, fn(&T) -> &[Count]),
    /// A counter for each class of statuses.
    Codes(fn(&T) -> StatusClasses),
    /// A gauge that is 1 for the state it has and 0 for the others.
    States(&'static [&'static str], fn(&T) -> &'static str),
    /// A counter for each of the member's own names, in this label.
    Counters(&'static str, fn(&T) -> &[(String, u64)]),
    /// A gauge for each of the member's own names, in this label.
    Gauges(&'static str, fn(&T) -> &[(String, i64)]),
    /// A gauge that is always 1 and carries a text in this label.
    Text(&'static str, fn(&T) -> &str),
}

/// Which member it is.
type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Scrape(Snapshot);

impl Collector for Scrape {
    fn encode(&self, mut out: DescriptorEncoder) -> fmt::Result {
        let Snapshot {
            workers,
            listeners,
            backends,
            policies,
            ..
        } = &self.0;
        let proxy = |name: &str| ("proxy", name.to_owned());
        let of_worker = workers
            .iter()
            .map(|worker| (vec![("worker", worker.number.to_string())], worker));
        let of_listener = listeners
            .iter()
            .map(|listener| (vec![proxy(&listener.name)], listener));
        let of_backend = backends
            .iter()
            .map(|backend| (vec![proxy(&backend.name)], backend));
        let of_server = backends.iter().flat_map(|backend| {
            let labels = |server: &str| vec![proxy(&backend.name), ("server", server.to_owned())];
            backend
                .servers
                .iter()
                .map(move |server| (labels(&server.name), server))
        });
        encode_all(families::PROCESS, [(Labels::new(), &self.0)], &mut out)?;
        encode_all(families::WORKER, of_worker, &mut out)?;
        encode_all(families::FRONTEND, of_listener, &mut out)?;
        encode_all(families::BACKEND, of_backend, &mut out)?;
        encode_all(families::SERVER, of_server, &mut out)?;
        let of_policy = policies.iter().map(|policy| {
            let name = |text: &String| text.clone();
            (
                vec![
                    ("policy", name(&policy.name)),
                    ("attachment", name(&policy.attachment)),
                ],
                policy,
            )
        });
        encode_all(families::POLICY, of_policy, &mut out)
    }
}

fn encode_all<'a, T>(
    families: &[Family<T>],
    members: impl IntoIterator<Item = (Labels, &'a T)>,
    out: &mut DescriptorEncoder,
) -> fmt::Result {
    let members: Vec<_> = members.into_iter().collect();
    for family in families {
        let mut out = out.encode_descriptor(family.name, family.help, None, family.read.kind())?;
        for (labels, member) in &members {
            family.read.encode(labels, member, &mut out)?;
        }
    }
    Ok(())
}

impl<T> Read<T> {
    fn kind(&self) -> MetricType {
        match self {
            Read::Counter(_)
            | Read::SecondsTotal(_)
            | Read::Causes(..)
            | Read::Codes(_)
            | Read::Counters(..) => MetricType::Counter,
            Read::Gauge(_) | Read::GaugeIfAny(_) | Read::Seconds(_) => MetricType::Gauge,
            Read::States(..) | Read::Text(..) | Read::Gauges(..) => MetricType::Gauge,
        }
    }

    fn encode(&self, labels: &Labels, member: &T, out: &mut MetricEncoder) -> fmt::Result {
        match self {
            Read::Counter(read) => counter(labels, read(member), out),
            Read::Gauge(read) => gauge(labels, read(member), out),
            Read::GaugeIfAny(read) => read(member).map_or(Ok(()), |value| gauge(labels, value, out)),
            Read::SecondsTotal(read) => out
                .encode_family(labels)?
                .encode_counter::<NoLabelSet, _, u64>(&read(member), None),
            Read::Seconds(read) => {
                read(member).map_or(Ok(()), |value| out.encode_family(labels)?.encode_gauge(&value))
            }
            Read::Causes(label, read) => {
                let one = |count: &Count| counter(&with(labels, label, count.cause), count.total, out);
                read(member).iter().try_for_each(one)
            }
            Read::Counters(label, read) => {
                let one = |(name, total): &(String, u64)| counter(&with(labels, label, name), *total, out);
                read(member).iter().try_for_each(one)
            }
            Read::Gauges(label, read) => {
                let one = |(name, value): &(String, i64)| {
                    out.encode_family(&with(labels, label, name))?.encode_gauge(value)
                };
                read(member).iter().try_for_each(one)
            }
            Read::Codes(read) => {
                let StatusClasses { by_class, other } = read(member);
                let mut counts = CLASSES.iter().zip(by_class.into_iter().chain([other]));
                counts.try_for_each(|(class, count)| counter(&with(labels, "code", class), count, out))
            }
            Read::States(all, read) => {
                let now = read(member);
                let one = |state: &&str| gauge(&with(labels, "state", state), u64::from(*state == now), out);
                all.iter().try_for_each(one)
            }
            Read::Text(label, read) => gauge(&with(labels, label, read(member)), 1, out),
        }
    }
}

/// Values of the label `code`, in the order of [`StatusClasses`].
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

fn with(labels: &Labels, label: &'static str, value: &str) -> Labels {
    let mut labels = labels.clone();
    labels.push((label, value.to_owned()));
    labels
}

fn counter(labels: &Labels, value: u64, out: &mut MetricEncoder) -> fmt::Result {
    out.encode_family(labels)?
        .encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn gauge(labels: &Labels, value: u64, out: &mut MetricEncoder) -> fmt::Result {
    out.encode_family(labels)?.encode_gauge(&value)
}

#[cfg(test)]
mod tests {
    use super::super::testing::example_snapshot;
    use super::*;
    use std::collections::HashSet;

    fn samples(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    #[test]
    fn the_whole_text() {
        insta::assert_snapshot!(render(example_snapshot()));
    }

    #[test]
    fn every_family_is_told_once_and_every_sample_once() {
        let text = render(example_snapshot());
        let told: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .collect();
        assert_eq!(told.iter().collect::<HashSet<_>>().len(), told.len());
        let names: Vec<_> = samples(&text)
            .iter()
            .map(|line| line.rsplit_once(' ').unwrap().0)
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        for line in samples(&text) {
            let name = line.split([' ', '{']).next().unwrap();
            assert!(
                told.iter().any(|told| told.split(' ').next() == Some(name)),
                "{line}"
            );
        }
    }

    #[test]
    fn a_process_without_sections_has_only_its_own_numbers() {
        let mut snapshot = example_snapshot();
        snapshot.listeners.clear();
        snapshot.backends.clear();
        snapshot.policies.clear();
        let text = render(snapshot);
        assert!(
            samples(&text)
                .iter()
                .all(|line| { line.starts_with("forebay_process_") || line.starts_with("forebay_worker_") })
        );
    }

    #[test]
    fn a_name_in_a_label_is_escaped() {
        let mut snapshot = example_snapshot();
        snapshot.listeners[0].name = "a\"b\\c\nd".into();
        let text = render(snapshot);
        assert!(text.contains("{proxy=\"a\\\"b\\\\c\\nd\"} 33\n"), "{text}");
    }
}
