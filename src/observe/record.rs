//! One finished request, for the access log: what a worker notes and what a line is made of.
//!
//! The words and letters of the log are defined here; how a record crosses to the log thread is told in
//! [`super::encoding`], how it reads in [`mod@super::format`].

use std::net::SocketAddr;

/// One finished request (LG-1…LG-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When its first byte came, in milliseconds since 1970 (UTC).
    pub at_unix_ms: u64,
    /// The client's address; none over a Unix socket.
    pub client: Option<SocketAddr>,
    /// Name of the `[[listen]]` section.
    pub listener: &'a str,
    /// Name of the backend; empty when none was chosen.
    pub backend: &'a str,
    /// Name of the server; empty when none was chosen.
    pub server: &'a str,
    /// The listener's route that matched, counted from 0 in file order.
    pub route: Option<u16>,
    /// Method as received; empty when the request line was not understood.
    pub method: &'a [u8],
    /// Authority that was asked for; empty when there was none.
    pub host: &'a [u8],
    /// Request target as received; empty when the request line was not understood.
    pub target: &'a [u8],
    /// The *n* of HTTP/1.*n*.
    pub minor_version: u8,
    /// Status sent to the client; 0 when nothing was sent.
    pub status: u16,
    /// Bytes received from the client for this request, head included.
    pub bytes_in: u64,
    /// Bytes sent to the client for it, head included.
    pub bytes_out: u64,
    /// How long each phase took.
    pub timers: Timers,
    /// Attempts after the first.
    pub retries: u16,
    /// How many were before it in the queues it waited in last.
    pub ahead: Ahead,
    /// Whether and how the server changed between attempts.
    pub dispatch: Dispatch,
    /// Who ended it, and in which phase.
    pub termination: Termination,
    /// Where the server connection came from.
    pub reuse: Reuse,
    /// Why it was opened, in snake case (POOL-71); empty if it was not.
    pub opened: &'a str,
    /// Why it was closed after this request; empty if it was kept, or if there was none.
    pub closed: &'a str,
    /// Why Forebay answered itself, in snake case; empty when a server answered.
    pub cause: &'a str,
}

/// Requests before one in queues; `None` where it did not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// In the queue of a server.
    pub server: Option<u32>,
    /// In that of the backend.
    pub backend: Option<u32>,
}

/// Phases of a request in µs (LG-2); [`Timers::NOT_REACHED`] where a phase was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// TR: from its first byte to the whole head.
    pub request: i64,
    /// Tw: in queues.
    pub queue: i64,
    /// Tc: to a connection; 0 on reuse.
    pub connect: i64,
    /// Tr: from the request's being sent to the response's head.
    pub response: i64,
    /// Ta: from its first byte to its last.
    pub total: i64,
}

impl Timers {
    /// The value of a phase that was not reached.
    pub const NOT_REACHED: i64 = -1;
}

impl Default for Timers {
    fn default() -> Timers {
        let never = Timers::NOT_REACHED;
        Timers {
            request: never,
            queue: never,
            connect: never,
            response: never,
            total: never,
        }
    }
}

/// Declares an enum whose values are written as one byte.
macro_rules! letters {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $letter:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// As it stands in the log and in an encoded record.
            pub fn letter(self) -> u8 {
                match self { $($name::$variant => $letter,)+ }
            }

            pub(super) fn of_letter(letter: u8) -> Option<$name> {
                match letter { $($letter => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

/// Who ended a request and in which phase: the first two letters of LG-3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Termination {
    /// Who ended it.
    pub by: EndedBy,
    /// In which phase.
    pub phase: Phase,
}

impl Termination {
    /// It ended as it should.
    pub const NORMAL: Termination = Termination {
        by: EndedBy::Nobody,
        phase: Phase::None,
    };

    /// As they stand in the log.
    pub fn letters(self) -> [char; 2] {
        [self.by.letter(), self.phase.letter()].map(char::from)
    }
}

letters! {
    /// Who ended a request (LG-3, first letter).
    EndedBy {
        /// Nobody: it went to its end.
        Nobody = b'-',
        /// The client closed or broke the connection.
        Client = b'C',
        /// The server closed, refused or broke the connection, or its response was not understood.
        Server = b'S',
        /// Forebay refused it: a limit, a deny rule, a malformed message.
        Proxy = b'P',
        /// Forebay answered it: a redirect or a fixed response.
        Local = b'L',
        /// Something ran out: descriptors, memory, ports.
        Resource = b'R',
        /// A fault of ours.
        Internal = b'I',
        /// The server was found dead while it waited or ran.
        Down = b'D',
        /// An operator ended it.
        Killed = b'K',
        /// The client was silent for too long.
        ClientTimeout = b'c',
        /// The server, or its queue, took too long.
        ServerTimeout = b's',
    }
}

letters! {
    /// The phase a request ended in (LG-3, second letter).
    Phase {
        /// After its end.
        None = b'-',
        /// Reading the request.
        Request = b'R',
        /// Waiting for a slot.
        Queue = b'Q',
        /// Connecting to a server.
        Connect = b'C',
        /// Waiting for the response's head.
        Headers = b'H',
        /// Transferring data.
        Data = b'D',
        /// Sending the last bytes to the client, the server being done.
        Last = b'L',
    }
}

letters! {
    /// Where the server connection came from.
    Reuse {
        /// There was none.
        None = b'-',
        /// It was opened for this request.
        New = b'n',
        /// It was idle, and had carried one request.
        Idle = b'i',
        /// It was idle, and had carried more.
        Safe = b's',
        /// It was idle at another worker.
        TakenOver = b't',
        /// It was its client's alone.
        Private = b'p',
    }
}

letters! {
    /// Whether a request stayed with the server that was first chosen.
    Dispatch {
        /// It did.
        First = b'-',
        /// A later attempt went to another server.
        Redispatched = b'+',
    }
}

impl Reuse {
    /// The word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Reuse::None => "-",
            Reuse::New => "new",
            Reuse::Idle => "idle",
            Reuse::Safe => "safe",
            Reuse::TakenOver => "taken_over",
            Reuse::Private => "private",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_reads_back() {
        for &by in EndedBy::ALL {
            assert_eq!(EndedBy::of_letter(by.letter()), Some(by));
        }
        for &phase in Phase::ALL {
            assert_eq!(Phase::of_letter(phase.letter()), Some(phase));
        }
        assert_eq!(EndedBy::of_letter(b'?'), None);
    }
}
