//! How many requests a server may have at once, when that moves with the load of its backend.

/// The most requests at once. `u32::MAX` stands for no limit, and does not move.
///
/// Below `fullconn` requests in the backend the limit is their share of `maxconn`, at least `minconn`; a `minconn` of 0
/// or of `maxconn` stands still. `slow_start` is how far a slow start has come, in whole percent rounded down
/// (0…100); it leaves at least one.
pub fn limit(minconn: u32, maxconn: u32, fullconn: u32, current: u32, slow_start: u32) -> u32 {
    if maxconn == u32::MAX {
        return maxconn;
    }
    let full = if is_fixed(minconn, maxconn) || current >= fullconn {
        maxconn
    } else {
        let share = u64::from(current) * u64::from(maxconn) / u64::from(fullconn);
        (share as u32).max(minconn)
    };
    if slow_start >= 100 {
        full
    } else {
        ((u64::from(full) * u64::from(slow_start) / 100) as u32).max(1)
    }
}

/// Whether the limit does not depend on the backend's load.
pub fn is_fixed(minconn: u32, maxconn: u32) -> bool {
    minconn == 0 || minconn >= maxconn || maxconn == u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V5 of the specification (AC-28): minconn, maxconn, current, fullconn, seconds of a slow start, limit.
    #[test]
    fn v5() {
        let vectors = [
            (100, 1000, 0, 10_000, None, 100),
            (100, 1000, 5000, 10_000, None, 500),
            (100, 1000, 9999, 10_000, None, 999),
            (100, 1000, 10_000, 10_000, None, 1000),
            (50, 50, 1, 1000, None, 50),
            (50, 50, 1, 1000, Some(0), 1),
            (50, 50, 1, 1000, Some(15), 12),
            (50, 50, 1, 1000, Some(59), 49),
            (50, 50, 1, 1000, Some(60), 50),
        ];
        for (minconn, maxconn, current, fullconn, elapsed, expected) in vectors {
            let slow_start = elapsed.map_or(100, |elapsed: u32| 100 * elapsed / 60);
            assert_eq!(
                limit(minconn, maxconn, fullconn, current, slow_start),
                expected,
                "{minconn}…{maxconn}, {current} of {fullconn}, after {elapsed:?} s"
            );
        }
    }

    #[test]
    fn what_has_no_limit_and_what_has_no_range() {
        assert_eq!(limit(5, u32::MAX, 100, 50, 1), u32::MAX);
        assert_eq!(limit(0, 7, 100, 50, 100), 7);
        assert_eq!(limit(9, 7, 100, 50, 100), 7);
        assert_eq!(limit(1, 7, 0, 0, 100), 7, "fullconn 0 is reached at once");
        assert_eq!(limit(1, u32::MAX - 1, u32::MAX, u32::MAX - 1, 100), u32::MAX - 2);
    }
}
