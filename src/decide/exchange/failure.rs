//! Why an exchange ended without a whole response of its server, and what the client and the log are told.

/// Why we answer, or cut, instead of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No usable server (503, `SC`).
    NoServer,
    /// No slot came in time (503, `sQ`).
    QueueTimedOut,
    /// The queue of the only server that will do is full (503, `PQ`).
    QueueFull,
    /// A policy did not let it wait (`PQ`); the policy says how it is answered.
    NotAdmitted,
    /// Every attempt to connect was refused (503, `SC`).
    ConnectRefused,
    /// The last attempt to connect timed out (503, `sC`).
    ConnectTimedOut,
    /// No connect was possible from here (503, `RC`).
    ConnectLocal,
    /// The connection died before the first byte of a response (502, `SH`).
    ServerClosed,
    /// What came is no response (502, `PH`).
    BadResponse,
    /// The server took too long (504, `sH`).
    ServerTimedOut,
    /// The client took too long with the body (408, `cD`).
    ClientTimedOut,
    /// The client's body is malformed (400, `PR`).
    BadRequest,
    /// The server closed or failed in the middle of a response (`SD`).
    Truncated,
    /// The server stalled in the middle of a response (`sD`).
    Stalled,
    /// The client stalled in the middle of a response (`cD`).
    ClientStalled,
}

impl Failure {
    /// Every failure, in the order of [`Failure::index`].
    pub const ALL: &[Failure] = &[
        Failure::NoServer,
        Failure::QueueTimedOut,
        Failure::QueueFull,
        Failure::NotAdmitted,
        Failure::ConnectRefused,
        Failure::ConnectTimedOut,
        Failure::ConnectLocal,
        Failure::ServerClosed,
        Failure::BadResponse,
        Failure::ServerTimedOut,
        Failure::ClientTimedOut,
        Failure::BadRequest,
        Failure::Truncated,
        Failure::Stalled,
        Failure::ClientStalled,
    ];
    /// Number of failures.
    pub const COUNT: usize = Failure::ALL.len();

    /// Its place in an array of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name in metrics and logs, in snake case.
    pub fn word(self) -> &'static str {
        match self {
            Failure::NoServer => "no_server",
            Failure::QueueTimedOut => "queue_timeout",
            Failure::QueueFull => "queue_full",
            Failure::NotAdmitted => "not_admitted",
            Failure::ConnectRefused => "connect_refused",
            Failure::ConnectTimedOut => "connect_timeout",
            Failure::ConnectLocal => "connect_local",
            Failure::ServerClosed => "server_closed",
            Failure::BadResponse => "bad_response",
            Failure::ServerTimedOut => "server_timeout",
            Failure::ClientTimedOut => "client_timeout",
            Failure::BadRequest => "bad_request_body",
            Failure::Truncated => "response_truncated",
            Failure::Stalled => "response_stalled",
            Failure::ClientStalled => "client_stalled",
        }
    }

    /// The status of our answer; 0 where a response had begun and can only be cut.
    pub fn status(self) -> u16 {
        match self {
            Failure::BadRequest => 400,
            Failure::ClientTimedOut => 408,
            Failure::ServerClosed | Failure::BadResponse => 502,
            Failure::NoServer
            | Failure::QueueTimedOut
            | Failure::QueueFull
            | Failure::NotAdmitted
            | Failure::ConnectRefused
            | Failure::ConnectTimedOut
            | Failure::ConnectLocal => 503,
            Failure::ServerTimedOut => 504,
            Failure::Truncated | Failure::Stalled | Failure::ClientStalled => 0,
        }
    }

    /// Seconds of `Retry-After` in our answer, if it has one: there is room again when others have been answered, which is
    /// soon, and nobody knows how soon.
    pub fn retry_after(self) -> Option<u32> {
        matches!(self, Failure::QueueFull | Failure::NotAdmitted).then_some(1)
    }

    /// Who ended it and in which phase, as two letters (LG-3).
    pub fn termination(self) -> [u8; 2] {
        *match self {
            Failure::NoServer | Failure::ConnectRefused => b"SC",
            Failure::QueueTimedOut => b"sQ",
            Failure::QueueFull | Failure::NotAdmitted => b"PQ",
            Failure::ConnectTimedOut => b"sC",
            Failure::ConnectLocal => b"RC",
            Failure::ServerClosed => b"SH",
            Failure::BadResponse => b"PH",
            Failure::ServerTimedOut => b"sH",
            Failure::ClientTimedOut | Failure::ClientStalled => b"cD",
            Failure::BadRequest => b"PR",
            Failure::Truncated => b"SD",
            Failure::Stalled => b"sD",
        }
    }
}
