//! One line of a transcript: what was decided for one attempt of one request, and why.

use crate::decide::exchange::Failure;
use crate::decide::reuse::OpenReason;
use crate::decide::settings::Micros;
use crate::policy::WorkerId;
use std::fmt;

/// What was decided for one attempt of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Micros,
    /// Whose request.
    pub client: u32,
    /// At which worker.
    pub worker: WorkerId,
    /// What was asked: method, target, and fields other than `host`. Empty where nobody looks at that.
    pub asked: String,
    /// The backend that it went to; empty for none.
    pub backend: String,
    /// Who could have had it, with what each had under way.
    pub candidates: String,
    /// Who got it; empty for nobody.
    pub server: String,
    /// Who chose.
    pub chooser: Option<Chooser>,
    /// How it waited, if it did.
    pub queue: Option<Queued>,
    /// Further attempts so far.
    pub retries: u8,
    /// The connection, counted from 1 in the order in which they were opened; 0 for none.
    pub connection: u64,
    /// How it came to the connection.
    pub lent: Option<Lent>,
    /// Why it got no response of a server.
    pub end: Option<End>,
}

/// Who chose a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    /// A tier of the plan.
    Plan,
    /// The policy that is asked for each request.
    Pick,
    /// The configured algorithm.
    Native,
    /// The cookie that the client sent (LB-52).
    Cookie,
    /// The client's request before (LB-51).
    Last,
    /// The client: it needs this one.
    Client,
    /// The next free slot of any.
    Queue,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Whether for one server, and not for any.
    pub own: bool,
    /// Those who were there before.
    pub ahead: u32,
    /// How long, in µs.
    pub waited: Micros,
}

/// How a request came to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lent {
    /// It was opened for it.
    Opened(OpenReason),
    /// Its client's own: private, or attached to it while it carries streams (POOL-14).
    Attached,
    /// One more stream of a busy connection (POOL-10 b).
    Joined,
    /// Parked by its worker.
    Own,
    /// Parked by this one.
    TakenOver(WorkerId),
}

/// Why a request got no response of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Every attempt failed.
    Failed(Failure),
    /// Its client left.
    ClientLeft,
    /// A rule answered: a redirect, a fixed response, a denial.
    Rule,
    /// No rule matched.
    NoRoute,
}

impl Chooser {
    /// All of them.
    pub const ALL: &[Chooser] = &[
        Chooser::Plan,
        Chooser::Pick,
        Chooser::Native,
        Chooser::Cookie,
        Chooser::Last,
        Chooser::Client,
        Chooser::Queue,
    ];
    /// Number of them.
    pub const COUNT: usize = Chooser::ALL.len();

    /// Its place in an array of counters.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its word in a transcript.
    pub fn word(self) -> &'static str {
        match self {
            Chooser::Plan => "plan",
            Chooser::Pick => "pick",
            Chooser::Native => "native",
            Chooser::Cookie => "cookie",
            Chooser::Last => "last",
            Chooser::Client => "client",
            Chooser::Queue => "queue",
        }
    }
}

impl fmt::Display for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lent::Opened(reason) => write!(f, "new ({})", reason.word().replace('_', " ")),
            Lent::Attached => write!(f, "attached"),
            Lent::Joined => write!(f, "joined"),
            Lent::Own => write!(f, "own"),
            Lent::TakenOver(from) => write!(f, "from w{}", from.0),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Failed(failure) => write!(f, "{}", failure.word().replace('_', " ")),
            End::ClientLeft => write!(f, "the client left"),
            End::Rule => write!(f, "answered by a rule"),
            End::NoRoute => write!(f, "no route"),
        }
    }
}

/// Milliseconds with three decimals.
pub(super) fn milliseconds(time: Micros) -> String {
    format!("{}.{:03}", time / 1_000, time % 1_000)
}

/// `    12.345  w1 c3  GET /a | s0:1 s1:0 | s1 plan | new (none) #7`, and how it waited or failed.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = milliseconds(self.at);
        write!(f, "{time:>12}  w{} c{}", self.worker.0, self.client)?;
        if !self.asked.is_empty() {
            write!(f, "  {}", self.asked)?;
        }
        if !self.candidates.is_empty() {
            write!(f, "  [{}]", self.candidates)?;
        }
        if !self.server.is_empty() {
            let chooser = self.chooser.map_or("", Chooser::word);
            write!(f, "  -> {} ({chooser})", self.server)?;
        }
        if self.retries > 0 {
            write!(f, "  attempt {}", u16::from(self.retries) + 1)?;
        }
        if let Some(queued) = self.queue {
            let which = if queued.own { "its queue" } else { "the queue" };
            let waited = milliseconds(queued.waited);
            write!(f, "  {waited} ms in {which} behind {}", queued.ahead)?;
        }
        if let Some(lent) = self.lent {
            write!(f, "  {lent} #{}", self.connection)?;
        }
        match self.end {
            Some(end) => write!(f, "  {end}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_one_line() {
        let decision = Decision {
            at: 12_345,
            client: 3,
            worker: WorkerId(1),
            asked: "GET /a".into(),
            candidates: "s0:1 s1:0".into(),
            server: "s1".into(),
            chooser: Some(Chooser::Plan),
            queue: Some(Queued {
                own: false,
                ahead: 2,
                waited: 1_500,
            }),
            connection: 7,
            lent: Some(Lent::TakenOver(WorkerId(0))),
            ..Decision::default()
        };
        assert_eq!(
            decision.to_string(),
            "      12.345  w1 c3  GET /a  [s0:1 s1:0]  -> s1 (plan)  1.500 ms in the queue behind 2  from w0 #7"
        );
        let failed = Decision {
            end: Some(End::Failed(Failure::QueueTimedOut)),
            ..Decision::default()
        };
        assert_eq!(failed.to_string(), "       0.000  w0 c0  queue timeout");
    }
}
