//! Vectors V1, and the tables of POOL-11 and POOL-33.

use super::*;

/// The first row of V1.
const FIRST: KeepFacts = KeepFacts {
    mode: Mode::Safe,
    private: false,
    maintenance: false,
    purge_delay: true,
    reverse: false,
    streams: 0,
    free_streams: 1,
    proven: Proven::Once,
    descriptors: Descriptors {
        used: 100,
        low: 200,
        high: 250,
    },
    idle_max: None,
    idle_reserve: 0,
    own_idle: 0,
    own_safe: 0,
    idle: 0,
    used: 10,
    need: 10,
};

fn descriptors(used: u32) -> Descriptors {
    Descriptors {
        used,
        ..FIRST.descriptors
    }
}

#[test]
fn v1() {
    let own_idle = KeepFacts {
        idle: 3,
        own_idle: 1,
        ..FIRST
    };
    let own_safe = KeepFacts {
        own_safe: 1,
        proven: Proven::Safe,
        need: 13,
        ..FIRST
    };
    let roomy = KeepFacts { need: 50, ..FIRST };
    let cases = [
        ("first idle conn on this thread", FIRST, Ok(())),
        (
            "own unsafe idle present, new unsafe, no need",
            own_idle,
            Err(CloseReason::Need),
        ),
        (
            "same, but released conn is safe",
            KeepFacts {
                proven: Proven::Safe,
                ..own_idle
            },
            Ok(()),
        ),
        (
            "own safe present, safe conn, need covers",
            KeepFacts { idle: 3, ..own_safe },
            Ok(()),
        ),
        (
            "own safe present, need one short",
            KeepFacts { idle: 4, ..own_safe },
            Err(CloseReason::Need),
        ),
        (
            "same, pool-low-conn 1 adds headroom",
            KeepFacts {
                idle: 4,
                idle_reserve: 1,
                ..own_safe
            },
            Ok(()),
        ),
        (
            "between low and high fds, thread empty",
            KeepFacts {
                idle: 9,
                descriptors: descriptors(220),
                ..roomy
            },
            Ok(()),
        ),
        (
            "between low and high fds, thread not empty",
            KeepFacts {
                idle: 9,
                own_safe: 1,
                descriptors: descriptors(220),
                ..roomy
            },
            Err(CloseReason::DescriptorsLow),
        ),
        (
            "above high fds, thread empty",
            KeepFacts {
                descriptors: descriptors(250),
                ..roomy
            },
            Err(CloseReason::DescriptorsHigh),
        ),
        (
            "pool-max-conn reached",
            KeepFacts {
                idle: 8,
                idle_max: Some(8),
                ..roomy
            },
            Err(CloseReason::Max),
        ),
        (
            "pool-max-conn 0",
            KeepFacts {
                idle_max: Some(0),
                ..roomy
            },
            Err(CloseReason::Max),
        ),
        (
            "reuse never",
            KeepFacts {
                mode: Mode::Never,
                ..FIRST
            },
            Err(CloseReason::Never),
        ),
        (
            "private",
            KeepFacts {
                private: true,
                ..FIRST
            },
            Err(CloseReason::Private),
        ),
        (
            "maintenance",
            KeepFacts {
                maintenance: true,
                ..FIRST
            },
            Err(CloseReason::Maintenance),
        ),
        (
            "mux still has streams",
            KeepFacts { streams: 1, ..FIRST },
            Err(CloseReason::Busy),
        ),
    ];
    for (case, facts, expected) in cases {
        assert_eq!(keep(&facts), expected, "{case}");
    }
}

/// What V1 leaves out of POOL-32.
#[test]
fn the_rest_of_the_keep_rule() {
    let needless = KeepFacts {
        idle: 30,
        own_safe: 1,
        ..FIRST
    };
    assert_eq!(keep(&needless), Err(CloseReason::Need));
    assert_eq!(
        keep(&KeepFacts {
            reverse: true,
            ..needless
        }),
        Ok(())
    );
    assert_eq!(
        keep(&KeepFacts {
            purge_delay: false,
            ..FIRST
        }),
        Err(CloseReason::Purge)
    );
    assert_eq!(
        keep(&KeepFacts {
            free_streams: 0,
            ..FIRST
        }),
        Err(CloseReason::Busy)
    );
    let huge = KeepFacts {
        used: u32::MAX,
        idle: u32::MAX,
        own_safe: 1,
        ..FIRST
    };
    assert_eq!(keep(&huge), Err(CloseReason::Need), "no overflow");
}

/// POOL-33: 20 % and 25 % of the limit, rounded up.
#[test]
fn thresholds_round_up() {
    let of = |limit| Descriptors::new(7, limit, 20, 25);
    assert_eq!(
        of(1000),
        Descriptors {
            used: 7,
            low: 200,
            high: 250
        }
    );
    assert_eq!(
        of(1001),
        Descriptors {
            used: 7,
            low: 201,
            high: 251
        }
    );
    assert_eq!(
        of(u32::MAX),
        Descriptors {
            used: 7,
            low: 858_993_459,
            high: 1_073_741_824
        }
    );
}

/// The table of POOL-11.
#[test]
fn modes() {
    use Retryable::{No, Yes};
    let table = [
        (Mode::Never, Yes, Err(OpenReason::Never)),
        (Mode::Never, No, Err(OpenReason::Never)),
        (Mode::Safe, Yes, Ok(Wanted::Any)),
        (Mode::Safe, No, Err(OpenReason::FirstRequest)),
        (Mode::Aggressive, Yes, Ok(Wanted::Any)),
        (Mode::Aggressive, No, Ok(Wanted::SafeOnly)),
        (Mode::Always, Yes, Ok(Wanted::Any)),
        (Mode::Always, No, Ok(Wanted::SafeFirst)),
    ];
    for (mode, retryable, expected) in table {
        assert_eq!(wanted(mode, retryable), expected, "{mode:?} {retryable:?}");
    }
}
