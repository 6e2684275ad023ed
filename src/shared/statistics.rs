//! What is counted for people: plain numbers per worker, summed when somebody looks.
//!
//! Each worker writes its own shard, on cache lines of its own, and nobody else writes there. So counting is a load,
//! an add and a store without a lock prefix; a reader sees every number whole, though not all of the same instant.
//! Nothing is decided by these numbers ([`Need`](super::need::Need) and [`Slots`](super::slots::Slots) are for that).
//!
//! They hang on the identity of what they count and survive reload. Times are µs, sizes bytes.

use super::latencies::Histogram;
use crate::decide::reuse::{CloseReason, OpenReason};
use crate::policy::{Fault, WorkerId};
use crate::sync::{AtomicU64, Ordering};

/// One shard for each worker.
#[derive(Debug)]
pub struct PerWorker<T>(Box<[Shard<T>]>);

#[derive(Debug)]
#[repr(align(128))]
struct Shard<T>(T);

impl<T> PerWorker<T> {
    /// A shard for each of `workers`.
    pub fn new(workers: u16, shard: impl Fn() -> T) -> Self {
        PerWorker((0..workers).map(|_| Shard(shard())).collect())
    }

    /// The shard that this worker, and only it, writes.
    pub fn of(&self, worker: WorkerId) -> &T {
        &self.0[usize::from(worker.0)].0
    }

    /// All shards, in the order of workers.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|shard| &shard.0)
    }

    /// The greatest of one number of all workers.
    pub fn peak(&self, number: impl Fn(&T) -> u64) -> u64 {
        self.iter().map(number).max().unwrap_or_default()
    }

    /// One number of all workers together.
    pub fn sum(&self, number: impl Fn(&T) -> u64) -> u64 {
        self.iter().map(number).fold(0, u64::wrapping_add)
    }
}

/// A number that only grows. One thread writes it.
#[derive(Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Zero.
    pub fn new() -> Self {
        Counter(AtomicU64::new(0))
    }

    /// One more.
    pub fn count(&self) {
        self.add(1);
    }

    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.store(self.read().wrapping_add(more), Ordering::Relaxed);
    }

    /// The number now.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

/// A number that rises and falls. One thread writes it.
#[derive(Debug, Default)]
pub struct Gauge(Counter);

impl Gauge {
    /// One more.
    pub fn raise(&self) {
        self.0.add(1);
    }

    /// One less.
    pub fn lower(&self) {
        debug_assert!(self.read() > 0, "what is lowered was raised by the same worker");
        self.0.add(u64::MAX);
    }

    /// The number now.
    pub fn read(&self) -> u64 {
        self.0.read()
    }
}

/// Responses by the first digit of their status.
#[derive(Debug, Default)]
pub struct StatusClasses([Counter; 6]);

impl StatusClasses {
    /// Counts one response with that status (100…599; anything else is counted apart).
    pub fn count(&self, status: u16) {
        let class = usize::from(status / 100);
        self.0[if class < 6 { class } else { 0 }].count();
    }

    /// Responses of one class, 1…5; 0 for those of no class.
    pub fn read(&self, class: usize) -> u64 {
        self.0[class].read()
    }
}

/// A limit in time, by the phase that it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `timeout-http-request`: the head of a request.
    HttpRequest,
    /// `timeout-client`: no progress on the client's side.
    Client,
    /// `timeout-http-keep-alive`: between two requests.
    KeepAlive,
    /// `timeout-queue`.
    Queue,
    /// `timeout-connect`.
    Connect,
    /// `timeout-server`: no progress on the server's side.
    Server,
    /// `timeout-tunnel`.
    Tunnel,
}

impl Phase {
    /// All of them, in the order of [`Timeouts::read`].
    pub const ALL: [Phase; 7] = [
        Phase::HttpRequest,
        Phase::Client,
        Phase::KeepAlive,
        Phase::Queue,
        Phase::Connect,
        Phase::Server,
        Phase::Tunnel,
    ];

    /// Its word in metrics and logs.
    pub fn word(self) -> &'static str {
        match self {
            Phase::HttpRequest => "http_request",
            Phase::Client => "client",
            Phase::KeepAlive => "http_keep_alive",
            Phase::Queue => "queue",
            Phase::Connect => "connect",
            Phase::Server => "server",
            Phase::Tunnel => "tunnel",
        }
    }
}

/// Expired limits by phase.
#[derive(Debug, Default)]
pub struct Timeouts([Counter; Phase::ALL.len()]);

impl Timeouts {
    /// One more expired in that phase.
    pub fn count(&self, phase: Phase) {
        self.0[phase as usize].count();
    }

    /// How many expired in that phase.
    pub fn read(&self, phase: Phase) -> u64 {
        self.0[phase as usize].read()
    }
}

/// One queue, as one worker saw it.
#[derive(Debug, Default)]
pub struct QueueStatistics {
    /// Waits begun.
    pub entered: Counter,
    /// Of these, ended by their time.
    pub timeouts: Counter,
    /// Of these, ended by a client that left.
    pub aborted: Counter,
    /// Of these, ended by the server's going.
    pub sent_back: Counter,
    /// Requests that it had no room for.
    pub full: Counter,
    /// Requests that a policy did not let in.
    pub rejected: Counter,
    /// µs of all waits that have ended, summed.
    pub time: Counter,
    /// The most that waited at once, who came included.
    pub longest: Peak,
}

impl QueueStatistics {
    /// One more waits, behind so many.
    pub fn entered(&self, ahead: u32) {
        self.entered.count();
        self.longest.reach(u64::from(ahead) + 1);
    }
}

/// The greatest of some numbers. One thread writes it.
#[derive(Debug, Default)]
pub struct Peak(Counter);

impl Peak {
    /// One of them.
    pub fn reach(&self, number: u64) {
        self.0.add(number.saturating_sub(self.read()));
    }

    /// The greatest so far; 0 before the first.
    pub fn read(&self) -> u64 {
        self.0.read()
    }
}

/// One server, as one worker saw it.
#[derive(Debug, Default)]
pub struct ServerStatistics {
    /// Requests that were sent to it, or for which that was tried.
    pub requests: Counter,
    /// Connections that were opened (POOL-70: `connect`).
    pub connects: Counter,
    /// Requests that were lent a connection (POOL-70: `reuse`).
    pub reuses: Counter,
    /// Of these, connections that another worker had parked (TAKE-1…7).
    pub takeovers: Counter,
    /// Connections that could not be opened.
    pub connect_failures: Counter,
    /// Reused connections that died before the first byte of a response, without another attempt (POOL-16).
    pub reuse_aborts: Counter,
    /// Further attempts at this server.
    pub retries: Counter,
    /// Requests that went to another server after it failed (RT-6).
    pub redispatches: Counter,
    /// Responses that it gave.
    pub responses: StatusClasses,
    /// Responses that were broken or missing (`eresp`).
    pub response_errors: Counter,
    /// Bytes of requests sent to it.
    pub bytes_in: Counter,
    /// Bytes of responses received from it.
    pub bytes_out: Counter,
    /// Responses whose time is in `response_time`.
    pub timed_responses: Counter,
    /// µs from the end of a request sent to the head of its response, summed.
    pub response_time: Counter,
    /// The same, one by one, where somebody asks for percentiles.
    pub latencies: Histogram,
    /// Load that it reported.
    pub load_reports: Counter,
    /// Reports that could not be read.
    pub load_reports_malformed: Counter,
    /// Expired limits.
    pub timeouts: Timeouts,
    /// Its own queue.
    pub queue: QueueStatistics,
    /// Connections closed, by [`CloseReason`] (POOL-71).
    pub closes: [Counter; CloseReason::COUNT],
    /// Connections opened, by [`OpenReason`] (POOL-71).
    pub opens: [Counter; OpenReason::COUNT],
}

impl ServerStatistics {
    /// A connection is opened, because …
    pub fn opened(&self, reason: OpenReason) {
        self.connects.count();
        self.opens[reason.index()].count();
    }

    /// A connection is closed, because …
    pub fn closed(&self, reason: CloseReason) {
        self.closes[reason.index()].count();
    }

    /// The head of a response came after so many µs.
    pub fn responded(&self, status: u16, microseconds: u64) {
        self.responses.count(status);
        self.timed_responses.count();
        self.response_time.add(microseconds);
        self.latencies.count(microseconds);
    }
}

/// One listener, as one worker saw it.
#[derive(Debug)]
pub struct ListenerStatistics {
    /// Client connections accepted.
    pub connections: Counter,
    /// Client connections open now.
    pub sessions: Gauge,
    /// Requests whose head was complete.
    pub requests: Counter,
    /// Requests refused by what is wrong with them; the cause's own number is the index.
    pub refused: Box<[Counter]>,
    /// Replies to clients, our own included.
    pub replies: StatusClasses,
    /// Expired limits.
    pub timeouts: Timeouts,
    /// Bytes received from clients.
    pub bytes_in: Counter,
    /// Bytes sent to clients.
    pub bytes_out: Counter,
}

impl ListenerStatistics {
    /// All zero, for so many causes of refusal.
    pub fn new(causes: usize) -> Self {
        ListenerStatistics {
            connections: Counter::new(),
            sessions: Gauge::default(),
            requests: Counter::new(),
            refused: (0..causes).map(|_| Counter::new()).collect(),
            replies: StatusClasses::default(),
            timeouts: Timeouts::default(),
            bytes_in: Counter::new(),
            bytes_out: Counter::new(),
        }
    }
}

/// Who chose the servers of one backend, as one worker saw it.
#[derive(Debug, Default)]
pub struct BackendStatistics {
    /// Choices by the plan of a policy.
    pub by_plan: Counter,
    /// Choices by a policy that was asked.
    pub by_pick: Counter,
    /// Choices by the configured algorithm.
    pub by_native: Counter,
    /// Requests that stayed with the server that their session has a connection of its own to (POOL-62), or had the
    /// last time (LB-51).
    pub by_session: Counter,
    /// The queue for all its servers.
    pub queue: QueueStatistics,
    /// Attempts that the retry budget did not allow.
    pub budget_spent: Counter,
    /// Requests whose cookie named their server (LB-52).
    pub by_cookie: Counter,
    /// Requests whose cookie named no server of the backend.
    pub cookie_unknown: Counter,
    /// Requests whose cookie named a server in maintenance.
    pub cookie_unavailable: Counter,
}

/// One policy at one place, as one worker saw it.
#[derive(Debug)]
pub struct PolicyStatistics {
    /// Questions that reached it.
    pub calls: Counter,
    /// Answers that it had given before and that were given again without a call.
    pub remembered: Counter,
    /// Answers without an opinion, also those that were remembered.
    pub abstained: Counter,
    /// Answers that could not be followed because the server takes no requests now.
    pub unusable: Counter,
    /// Requests that it turned away when they were about to wait.
    pub rejected: Counter,
    /// Answers that were not used, by [`Fault`]; not being asked is one, too.
    pub faults: [Counter; Fault::COUNT],
}

impl Default for PolicyStatistics {
    fn default() -> Self {
        PolicyStatistics {
            calls: Counter::new(),
            remembered: Counter::new(),
            abstained: Counter::new(),
            unusable: Counter::new(),
            rejected: Counter::new(),
            faults: std::array::from_fn(|_| Counter::new()),
        }
    }
}

/// One worker, of itself.
#[derive(Debug, Default)]
pub struct WorkerStatistics {
    /// Turns of its loop.
    pub turns: Counter,
    /// Client connections that it accepted.
    pub accepts: Counter,
    /// Client connections that it handed off to another worker (SCH-8).
    pub hand_offs_given: Counter,
    /// Client connections that it was handed.
    pub hand_offs_taken: Counter,
    /// Server connections that it took over from siblings (POOL-70: `fd_takeover`).
    pub takeovers: Counter,
    /// Sessions that ended in a panic.
    pub panics: Counter,
    /// Log records that nobody had room for.
    pub records_dropped: Counter,
    /// Times that accepting paused because descriptors had run out.
    pub accept_pauses: Counter,
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    #[test]
    fn shards_are_summed() {
        let statistics = PerWorker::new(3, ServerStatistics::default);
        statistics.of(WorkerId(0)).responded(200, 150);
        statistics.of(WorkerId(2)).responded(204, 50);
        statistics.of(WorkerId(2)).responded(503, 1);
        assert_eq!(statistics.sum(|shard| shard.responses.read(2)), 2);
        assert_eq!(statistics.sum(|shard| shard.response_time.read()), 201);
        assert_eq!(
            statistics
                .iter()
                .map(|shard| shard.timed_responses.read())
                .collect::<Vec<_>>(),
            [1, 0, 2]
        );
    }

    /// A session that is handed off is lowered by one worker and raised by the other.
    #[test]
    fn gauges_rise_and_fall() {
        let listener = PerWorker::new(2, || ListenerStatistics::new(0));
        listener.of(WorkerId(0)).sessions.raise();
        listener.of(WorkerId(0)).sessions.raise();
        listener.of(WorkerId(0)).sessions.lower();
        listener.of(WorkerId(1)).sessions.raise();
        assert_eq!(listener.sum(|shard| shard.sessions.read()), 2);
    }

    #[test]
    fn an_odd_status_is_counted_apart() {
        let classes = StatusClasses::default();
        for status in [100, 199, 200, 599, 600, 42, u16::MAX] {
            classes.count(status);
        }
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(|class| classes.read(class)),
            [3, 2, 1, 0, 0, 1]
        );
    }

    #[test]
    fn connections_are_counted_by_reason() {
        let shard = ServerStatistics::default();
        shard.opened(OpenReason::Key);
        shard.closed(CloseReason::Need);
        shard.closed(CloseReason::Need);
        assert_eq!(
            (shard.connects.read(), shard.opens[OpenReason::Key.index()].read()),
            (1, 1)
        );
        assert_eq!(shard.closes.iter().map(Counter::read).sum::<u64>(), 2);
        assert_eq!(shard.closes[CloseReason::Need.index()].read(), 2);
    }

    #[test]
    fn phases_stand_at_their_places() {
        let timeouts = Timeouts::default();
        for (place, phase) in Phase::ALL.into_iter().enumerate() {
            assert_eq!(phase as usize, place);
            timeouts.count(phase);
            assert_eq!(timeouts.read(phase), 1);
        }
    }

    /// Two workers never share a line, whatever they count.
    #[test]
    fn shards_stand_on_lines_of_their_own() {
        let shards = PerWorker::new(2, WorkerStatistics::default);
        let address = |worker| std::ptr::from_ref(shards.of(WorkerId(worker))).addr();
        assert_eq!((address(0) % 128, address(1) % 128), (0, 0));
    }
}
