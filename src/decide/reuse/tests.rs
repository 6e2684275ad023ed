//! Vectors V1, and the tables of POOL-11, 32, 33, 50, 53 and 61.

use super::*;

/// The first row of V1: what is released, and what is there.
const FIRST: Released = Released {
    mode: Mode::Safe,
    private: false,
    maintenance: false,
    purge_delay: true,
    reverse: false,
    streams: 0,
    free_streams: 1,
    proven: Proven::Once,
    reuses_left: None,
    descriptors: Descriptors {
        used: 100,
        low: 200,
        high: 250,
    },
    figures: Figures {
        idle_reserve: 0,
        idle_max: None,
        need_floor: 0,
        preconnect: 0,
        rule: KeepRule::Plain,
    },
};
const ALONE: Present = Present {
    own_idle: 0,
    own_safe: 0,
    idle: 0,
    used: 10,
    need: 10,
    workers: 1,
};
const SAFE: Released = Released {
    proven: Proven::Safe,
    ..FIRST
};

fn descriptors(used: u32) -> Descriptors {
    Descriptors {
        used,
        ..FIRST.descriptors
    }
}

fn figures(idle_reserve: u32, idle_max: Option<u32>) -> Figures {
    Figures {
        idle_reserve,
        idle_max,
        ..FIRST.figures
    }
}

#[test]
fn v1() {
    let present = |idle, used, need, own_idle, own_safe| Present {
        own_idle,
        own_safe,
        idle,
        used,
        need,
        workers: 1,
    };
    let at = |used, released| Released {
        descriptors: descriptors(used),
        ..released
    };
    let limited = |most| Released {
        figures: figures(0, Some(most)),
        ..FIRST
    };
    let reserve = Released {
        figures: figures(1, None),
        ..SAFE
    };
    let never = Released {
        mode: Mode::Never,
        ..FIRST
    };
    let private = Released {
        private: true,
        ..FIRST
    };
    let maintenance = Released {
        maintenance: true,
        ..FIRST
    };
    let streams = Released { streams: 1, ..FIRST };
    use CloseReason as Close;
    #[rustfmt::skip]
    let cases = [
        ("first idle conn on this thread", FIRST, present(0, 10, 10, 0, 0), Ok(())),
        ("own unsafe idle present, new unsafe, no need", FIRST, present(3, 10, 10, 1, 0), Err(Close::Need)),
        ("same, but released conn is safe", SAFE, present(3, 10, 10, 1, 0), Ok(())),
        ("own safe present, safe conn, need covers", SAFE, present(3, 10, 13, 0, 1), Ok(())),
        ("own safe present, need one short", SAFE, present(4, 10, 13, 0, 1), Err(Close::Need)),
        ("same, pool-low-conn 1 adds headroom", reserve, present(4, 10, 13, 0, 1), Ok(())),
        ("between low and high fds, thread empty", at(220, FIRST), present(9, 10, 50, 0, 0), Ok(())),
        ("between low and high fds, thread not empty", at(220, SAFE), present(9, 10, 50, 0, 1), Err(Close::DescriptorsLow)),
        ("above high fds, thread empty", at(250, FIRST), present(0, 10, 50, 0, 0), Err(Close::DescriptorsHigh)),
        ("pool-max-conn reached", limited(8), present(8, 10, 50, 0, 0), Err(Close::Max)),
        ("pool-max-conn 0", limited(0), present(0, 10, 50, 0, 0), Err(Close::Max)),
        ("reuse never", never, present(0, 10, 10, 0, 0), Err(Close::Never)),
        ("private", private, present(0, 10, 10, 0, 0), Err(Close::Private)),
        ("maintenance", maintenance, present(0, 10, 10, 0, 0), Err(Close::Maintenance)),
        ("mux still has streams", streams, present(0, 10, 10, 0, 0), Err(Close::Busy)),
    ];
    for (case, released, present, expected) in cases {
        assert_eq!(keep(&released, &present), expected, "{case}");
    }
}

/// What V1 leaves out of POOL-32.
#[test]
fn the_rest_of_the_keep_rule() {
    let needless = Present {
        idle: 30,
        own_safe: 1,
        ..ALONE
    };
    assert_eq!(keep(&FIRST, &needless), Err(CloseReason::Need));
    let dialled = Released {
        reverse: true,
        ..FIRST
    };
    assert_eq!(keep(&dialled, &needless), Ok(()));
    let floor = Released {
        figures: Figures {
            need_floor: 40,
            ..FIRST.figures
        },
        ..FIRST
    };
    assert_eq!(keep(&floor, &needless), Ok(()), "10 used, 30 idle");
    let nothing_idle = Released {
        purge_delay: false,
        ..FIRST
    };
    assert_eq!(keep(&nothing_idle, &ALONE), Err(CloseReason::Purge));
    let full = Released {
        free_streams: 0,
        ..FIRST
    };
    assert_eq!(keep(&full, &ALONE), Err(CloseReason::Busy));
    let huge = Present {
        used: u32::MAX,
        idle: u32::MAX,
        own_safe: 1,
        ..ALONE
    };
    assert_eq!(keep(&FIRST, &huge), Err(CloseReason::Need), "no overflow");
}

/// Room for 8 among 4 workers: each keeps 3 for sure, the present one included, and nobody more once all is full.
#[test]
fn an_equal_share_is_kept_although_the_room_is_full() {
    let keeps = |rule, own_safe, idle| {
        let released = Released {
            figures: Figures { rule, ..SAFE.figures },
            ..SAFE
        };
        let present = Present {
            own_safe,
            idle,
            used: 10,
            need: 18,
            workers: 4,
            ..ALONE
        };
        keep(&released, &present)
    };
    for (own, idle, plain, equal) in [
        (1, 8, Ok(()), Ok(())),
        (1, 9, Err(CloseReason::Need), Ok(())),
        (2, 9, Err(CloseReason::Need), Ok(())),
        (3, 9, Err(CloseReason::Need), Err(CloseReason::Need)),
        (7, 8, Ok(()), Ok(())),
    ] {
        let found = [KeepRule::Plain, KeepRule::EqualShare].map(|rule| keeps(rule, own, idle));
        assert_eq!(found, [plain, equal], "own {own} of {idle}");
    }
}

/// POOL-53: so many beyond the first.
#[test]
fn a_connection_wears_out() {
    let cases = [
        (None, 9, None),
        (Some(2), 1, Some(2)),
        (Some(2), 3, Some(0)),
        (Some(0), 1, Some(0)),
    ];
    for (max_reuse, requests, expected) in cases {
        assert_eq!(
            reuses_left(max_reuse, requests),
            expected,
            "{max_reuse:?} {requests}"
        );
    }
    let worn = Released {
        reuses_left: Some(0),
        ..FIRST
    };
    assert_eq!(keep(&worn, &ALONE), Err(CloseReason::MaxReuse));
}

/// POOL-61.
#[test]
fn a_session_keeps_a_few_private_ones() {
    assert_eq!(keep_private(4, 5, false), Ok(()));
    assert_eq!(keep_private(5, 5, false), Err(CloseReason::Private));
    assert_eq!(keep_private(0, 5, true), Err(CloseReason::Maintenance));
}

/// POOL-50: strictly above.
#[test]
fn eviction_begins_above_the_high_mark() {
    assert_eq!(
        [249, 250, 251].map(|used| descriptors(used).evict()),
        [false, false, true]
    );
}

/// A policy may narrow, and widen only where that is allowed.
#[test]
fn a_policy_asks_for_a_stricter_mode() {
    let modes = [Mode::Never, Mode::Safe, Mode::Aggressive, Mode::Always];
    for (at, configured) in modes.into_iter().enumerate() {
        for (below, wish) in modes.into_iter().enumerate() {
            let expected = if below <= at { Ok(wish) } else { Err(Looser) };
            assert_eq!(configured.wished(wish, Override::Refused), expected);
            assert_eq!(configured.wished(wish, Override::Allowed), Ok(wish));
        }
    }
}

#[test]
fn the_second_request_proves_a_connection() {
    assert_eq!(
        [0, 1, 2].map(Proven::after),
        [Proven::Once, Proven::Once, Proven::Safe]
    );
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
