//! What a policy may read of servers beyond their columns: what the proxy measured in the last window, and what servers
//! report about themselves.

/// The most measures that a policy may ask for.
pub const MEASURES_MAX: usize = 16;
/// The longest name of something in a report.
pub const REPORT_NAME_MAX: usize = 128;

/// Something that is known of each server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// `safe-idle`: idle connections that have carried more than one request.
    SafeIdle,
    /// One of the last window.
    Window(Windowed),
    /// `report:NAME`: what the server reported under that name.
    Report(Box<str>),
}

/// A measure of the last window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Windowed {
    /// `latency-p50`, in µs.
    Median,
    /// `latency-p99`, in µs.
    Tail,
    /// `failures`: the part of the requests that failed, in 1/10,000.
    Failures,
}

impl Windowed {
    /// All of them, in the order of [`Self::index`].
    pub const ALL: [Windowed; 3] = [Windowed::Median, Windowed::Tail, Windowed::Failures];

    /// Its place in an array.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A measure as the servers of one table know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As [`Measure::SafeIdle`].
    SafeIdle,
    /// As [`Measure::Window`].
    Window(Windowed),
    /// What stands at this place of what is kept of a report.
    Report(u16),
}

impl Measure {
    /// From the name that a policy gives it.
    pub fn parse(name: &str) -> Option<Measure> {
        match name {
            "safe-idle" => return Some(Measure::SafeIdle),
            "latency-p50" => return Some(Measure::Window(Windowed::Median)),
            "latency-p99" => return Some(Measure::Window(Windowed::Tail)),
            "failures" => return Some(Measure::Window(Windowed::Failures)),
            _ => {}
        }
        let reported = name.strip_prefix("report:")?;
        is_reported(reported).then(|| Measure::Report(reported.into()))
    }
}

/// Whether a report may say something under that name.
fn is_reported(name: &str) -> bool {
    const PLAIN: [&str; 5] = [
        "cpu_utilization",
        "mem_utilization",
        "application_utilization",
        "rps_fractional",
        "eps",
    ];
    let named = ["utilization.", "named_metrics.", "request_cost."]
        .iter()
        .filter_map(|group| name.strip_prefix(group))
        .any(|rest| !rest.is_empty());
    (PLAIN.contains(&name) || named) && name.len() <= REPORT_NAME_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_parsed() {
        assert_eq!(Measure::parse("safe-idle"), Some(Measure::SafeIdle));
        assert_eq!(
            Measure::parse("latency-p99"),
            Some(Measure::Window(Windowed::Tail))
        );
        for name in [
            "cpu_utilization",
            "eps",
            "utilization.gpu",
            "named_metrics.a.b",
            "request_cost.x",
        ] {
            let measure = Measure::parse(&format!("report:{name}"));
            assert_eq!(measure, Some(Measure::Report(name.into())), "{name}");
        }
        let long = format!("report:named_metrics.{}", "x".repeat(REPORT_NAME_MAX));
        for wrong in [
            "",
            "report:",
            "report:cpu",
            "report:named_metrics.",
            "cpu_utilization",
            &long,
        ] {
            assert_eq!(Measure::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn windowed_measures_stand_at_their_places() {
        for (at, measure) in Windowed::ALL.into_iter().enumerate() {
            assert_eq!(measure.index(), at);
        }
    }
}
