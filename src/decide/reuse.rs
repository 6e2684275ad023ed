//! Which idle connections a request may use (POOL-11), and whether a released one is kept (POOL-32).
//!
//! Values in, values out: the counters are read by the caller, and the answer names its reason, because every open
//! and every close of a server connection is counted by reason (POOL-71).
//!
//! The keep rule in one sentence: every worker may keep one connection of each server, and beyond that as many are
//! kept as the recent past needed, as long as descriptors are plenty.

/// How server connections are shared between clients (`reuse`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every connection is private to its client.
    Never,
    /// A client's first request opens its own; later ones may share.
    Safe,
    /// A client's first request may use a connection that has proven reusable.
    Aggressive,
    /// Any request may use any connection.
    Always,
}

/// Whether a request may be sent again if its connection turns out dead (POOL-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retryable {
    /// Not the first request of its client connection, or the backend retries what a dead connection causes.
    Yes,
    /// The first request of its client connection.
    No,
}

/// What a released connection has shown so far (POOL-30: `is_safe`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proven {
    /// It carried one request: nobody knows whether the server keeps it.
    Once,
    /// It carried two requests or more.
    Safe,
}

/// Which collections are searched, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Idle first, then safe: using an unproven one proves it, and spares the proven.
    Any,
    /// Safe first, then idle.
    SafeFirst,
    /// Safe only.
    SafeOnly,
}

/// What a request may take from the idle and safe collections; or why it must open a connection (POOL-11).
pub fn wanted(mode: Mode, retryable: Retryable) -> Result<Wanted, OpenReason> {
    match (mode, retryable) {
        (Mode::Never, _) => Err(OpenReason::Never),
        (_, Retryable::Yes) => Ok(Wanted::Any),
        (Mode::Safe, Retryable::No) => Err(OpenReason::FirstRequest),
        (Mode::Aggressive, Retryable::No) => Ok(Wanted::SafeOnly),
        (Mode::Always, Retryable::No) => Ok(Wanted::SafeFirst),
    }
}

/// Everything that the keep rule looks at. Numbers of connections unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFacts {
    /// How the backend shares connections.
    pub mode: Mode,
    /// It belongs to one client (POOL-60).
    pub private: bool,
    /// The server is in maintenance (POOL-52).
    pub maintenance: bool,
    /// `pool-purge-delay` is not zero: idle connections may exist at all.
    pub purge_delay: bool,
    /// The server dialled us: it cannot be connected to again.
    pub reverse: bool,
    /// Streams that it still carries.
    pub streams: u32,
    /// Streams that it could take.
    pub free_streams: u32,
    /// What it has shown so far.
    pub proven: Proven,
    /// Descriptors in use, and where they begin to be short (POOL-33).
    pub descriptors: Descriptors,
    /// `pool-max-conn`; `None` for no limit.
    pub idle_max: Option<u32>,
    /// `pool-low-conn`: kept beyond the need.
    pub idle_reserve: u32,
    /// Idle at this worker, with one request behind them.
    pub own_idle: u32,
    /// Safe at this worker.
    pub own_safe: u32,
    /// Idle and safe at all workers.
    pub idle: u32,
    /// Used at all workers, this one included: it is not parked yet.
    pub used: u32,
    /// Estimated need of the server.
    pub need: u32,
}

/// Descriptors of the process (POOL-33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Open now.
    pub used: u32,
    /// From here on, a worker keeps one connection of a server and no more.
    pub low: u32,
    /// From here on, nothing is kept. Not below `low`.
    pub high: u32,
}

impl Descriptors {
    /// The thresholds for a descriptor limit of the process and two percentages of it, rounded up (POOL-33).
    pub fn new(used: u32, limit: u32, low_percent: u8, high_percent: u8) -> Self {
        let share = |percent: u8| (u64::from(limit) * u64::from(percent)).div_ceil(100) as u32;
        Descriptors {
            used,
            low: share(low_percent),
            high: share(high_percent),
        }
    }
}

/// Whether a released connection is parked, or else why it is closed (POOL-32, in its order).
pub fn keep(facts: &KeepFacts) -> Result<(), CloseReason> {
    let refused = if facts.private {
        CloseReason::Private
    } else if !facts.purge_delay {
        CloseReason::Purge
    } else if facts.maintenance {
        CloseReason::Maintenance
    } else if facts.mode == Mode::Never {
        CloseReason::Never
    } else if facts.descriptors.used >= facts.descriptors.high {
        CloseReason::DescriptorsHigh
    } else if facts.idle_max.is_some_and(|max| facts.idle >= max) {
        CloseReason::Max
    } else if facts.streams > 0 || facts.free_streams == 0 {
        CloseReason::Busy
    } else if facts.worker_has_none() {
        return Ok(());
    } else if facts.descriptors.used >= facts.descriptors.low {
        CloseReason::DescriptorsLow
    } else if !facts.reverse && facts.beyond_need() {
        CloseReason::Need
    } else {
        return Ok(());
    };
    Err(refused)
}

impl KeepFacts {
    /// Rule A: this worker's place is empty, or holds one that has proven less.
    fn worker_has_none(&self) -> bool {
        self.own_safe == 0 && (self.proven == Proven::Safe || self.own_idle == 0)
    }

    /// Rule B, turned round.
    fn beyond_need(&self) -> bool {
        let present = u64::from(self.used) + u64::from(self.idle);
        present > u64::from(self.used.max(self.need)) + u64::from(self.idle_reserve)
    }
}

/// Declares an enum of reasons with the word that metrics and logs use for each.
macro_rules! reasons {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of [`Self::index`].
            pub const ALL: &[$name] = &[$($name::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Its place in an array of counters.
            pub fn index(self) -> usize {
                self as usize
            }

            /// Its word in metrics and logs.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    };
}

reasons! {
    /// Why a server connection was closed (POOL-71).
    CloseReason {
        /// Its client went, and it was that client's alone.
        Private = "private",
        /// The server is in maintenance, or has another address now.
        Maintenance = "maint",
        /// The backend shares nothing.
        Never = "never",
        /// Descriptors above the high threshold.
        DescriptorsHigh = "fd_high",
        /// Descriptors between the thresholds, and this worker keeps one already.
        DescriptorsLow = "fd_low",
        /// `pool-max-conn` reached.
        Max = "max",
        /// More than the server has needed lately.
        Need = "need",
        /// Not free: streams left on it, or it takes no more.
        Busy = "busy",
        /// The message was not finished, or its peer asked to close.
        NotReusable = "not_reusable",
        /// An error on it.
        Error = "error",
        /// The server sent bytes that belong to no response.
        ExcessData = "excess_data",
        /// The server closed it.
        Remote = "remote",
        /// Idle for too long, or nothing may be idle.
        Purge = "purge",
        /// Oldest while descriptors were short (POOL-50).
        Evicted = "evicted",
    }
}

reasons! {
    /// Why a server connection was opened instead of reused (POOL-71).
    OpenReason {
        /// First request of its client, which may not share yet.
        FirstRequest = "first_request",
        /// The server had no idle connection.
        None = "none",
        /// Below `pool-low-conn`: every worker grows its own reserve.
        LowConn = "low_conn",
        /// Only other workers had idle connections, and they do not share.
        SharingOff = "sharing_off",
        /// Other workers had some, but were at them.
        Contended = "contended",
        /// There were idle ones, none with the right key.
        Key = "key",
        /// The backend shares nothing.
        Never = "never",
        /// A second attempt after a dead connection wants a fresh one.
        Retry = "retry",
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn reasons_have_places_and_words_of_their_own() {
        for (place, reason) in CloseReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), place);
            assert_eq!(
                CloseReason::ALL
                    .iter()
                    .filter(|other| other.word() == reason.word())
                    .count(),
                1
            );
        }
        for (place, reason) in OpenReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), place);
            assert_eq!(
                OpenReason::ALL
                    .iter()
                    .filter(|other| other.word() == reason.word())
                    .count(),
                1
            );
        }
    }
}
