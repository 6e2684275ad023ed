//! Why a policy's answer was not used: one word each, for counters and messages.
//!
//! A fault is never an error of a request: whoever asked decides by itself, counts the fault, and goes on.

/// What went wrong when a policy was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The guest stopped itself: unreachable code, a division by zero, a read outside its memory, an exit.
    Trap,
    /// It ran for longer than it may.
    Deadline,
    /// It used up the fuel of a test.
    Fuel,
    /// It needed more memory or tables than it may have in order to start.
    Memory,
    /// Its stack overflowed.
    Stack,
    /// It asked the host too often within one call.
    HostCalls,
    /// It handed the host more than the host takes in one call.
    HostBytes,
    /// A text that it handed over is not UTF-8.
    Utf8,
    /// It handed over pointers outside its memory, or its allocator did.
    Pointer,
    /// It used an interface of WASI that is closed to it.
    Closed,
    /// It named a server that does not exist.
    UnknownServer,
    /// It named a backend, a redirect or a response that does not exist, or an action.
    UnknownTarget,
    /// A number out of its range, such as one below −1.
    Range,
    /// A plan without tiers or members, with too many, or with a server twice; wishes with a server twice.
    Plan,
    /// It named an attribute or a header that it never asked for.
    Undeclared,
    /// It wished for a looser way of sharing than is configured: the configured one stayed.
    Looser,
    /// A header edit that cannot stand in a message, or one edit too many.
    Edit,
    /// No instance could be made.
    Instantiate,
    /// `configure` was cut, or answered otherwise than the first time.
    Configure,
    /// It is too slow on average.
    Slow,
    /// The host failed while it served the guest.
    Host,
    /// Not asked: instances were cut and remade too often in a short time.
    Budget,
    /// Not asked: quarantined after repeated faults.
    Quarantined,
}

impl Fault {
    /// All of them, in the order of [`Self::index`].
    pub const ALL: [Fault; Fault::COUNT] = [
        Fault::Trap,
        Fault::Deadline,
        Fault::Fuel,
        Fault::Memory,
        Fault::Stack,
        Fault::HostCalls,
        Fault::HostBytes,
        Fault::Utf8,
        Fault::Pointer,
        Fault::Closed,
        Fault::UnknownServer,
        Fault::UnknownTarget,
        Fault::Range,
        Fault::Plan,
        Fault::Undeclared,
        Fault::Looser,
        Fault::Edit,
        Fault::Instantiate,
        Fault::Configure,
        Fault::Slow,
        Fault::Host,
        Fault::Budget,
        Fault::Quarantined,
    ];

    /// How many there are.
    pub const COUNT: usize = Fault::Quarantined as usize + 1;

    /// Its place in an array of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its word in counters, logs and reports.
    pub fn word(self) -> &'static str {
        match self {
            Fault::Trap => "trap",
            Fault::Deadline => "deadline",
            Fault::Fuel => "fuel",
            Fault::Memory => "memory",
            Fault::Stack => "stack",
            Fault::HostCalls => "host-calls",
            Fault::HostBytes => "host-bytes",
            Fault::Utf8 => "utf-8",
            Fault::Pointer => "pointer",
            Fault::Closed => "closed-wasi",
            Fault::UnknownServer => "unknown-server",
            Fault::UnknownTarget => "unknown-target",
            Fault::Range => "range",
            Fault::Plan => "plan",
            Fault::Undeclared => "undeclared",
            Fault::Looser => "looser",
            Fault::Edit => "edit",
            Fault::Instantiate => "instantiate",
            Fault::Configure => "configure",
            Fault::Slow => "slow",
            Fault::Host => "host",
            Fault::Budget => "budget",
            Fault::Quarantined => "quarantined",
        }
    }

    /// What became of the instance that was asked.
    pub fn fate(self) -> Fate {
        match self {
            Fault::Budget | Fault::Quarantined => Fate::NotAsked,
            Fault::UnknownServer
            | Fault::UnknownTarget
            | Fault::Range
            | Fault::Plan
            | Fault::Undeclared
            | Fault::Looser
            | Fault::Edit
            | Fault::Slow => Fate::Kept,
            _ => Fate::Dropped,
        }
    }
}

/// What a fault does to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No guest ran.
    NotAsked,
    /// The answer was refused; the instance lives.
    Kept,
    /// The call was cut; the next one meets a new instance.
    Dropped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_fault_has_its_place_and_word() {
        for (at, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault.index(), at);
        }
        let words: BTreeSet<&str> = Fault::ALL.iter().map(|fault| fault.word()).collect();
        assert_eq!(words.len(), Fault::COUNT);
    }
}
