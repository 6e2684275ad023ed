//! Every default and every limit of the program, with its unit and its clause: the one place for them.
//!
//! The first part stands behind keys of the configuration (the table in [`super::keys`] takes its defaults and
//! ranges from here, so the manual and the parser cannot differ). The second part is the core's own figures that
//! are no keys. Nothing here is read at run time by name: whoever needs a figure is handed it or names it.

use std::ops::RangeInclusive;
use std::time::Duration;

const KIB: u64 = 1024;

// ---- [process] ------------------------------------------------------------------------------------------------

/// Worker threads a process may have.
pub const WORKERS: RangeInclusive<u64> = 1..=64;
/// Access log: form of a line.
pub const LOG_FORMAT: &str = "json";
/// Access log: where the lines go.
pub const LOG_TO: &str = "stdout";
/// Percent of the descriptor limit below which idle server connections are kept freely (POOL-33).
pub const POOL_LOW_FD_RATIO: u64 = 20;
/// Percent of the descriptor limit from which no idle server connection is kept (POOL-33).
pub const POOL_HIGH_FD_RATIO: u64 = 25;
/// Whether workers take over each other's idle connections (POOL-21).
pub const POOL_SHARING: &str = "on";
/// What either descriptor ratio may be, in percent.
pub const POOL_FD_RATIO: RangeInclusive<u64> = 1..=100;
/// How long a drain lasts at most (RE-1).
pub const HARD_STOP_AFTER: Duration = Duration::from_secs(30);

// ---- [[listen]] -----------------------------------------------------------------------------------------------

/// What any timeout may be. The upper end keeps a deadline far from the end of every clock we meet.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(30 * 86_400);
/// What `hard-stop-after` may be: nothing at all is a choice there.
pub const GRACE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(30 * 86_400);
/// From the first byte of a request to the end of its head; 408 beyond (RFC 9110 §15.5.9).
pub const TIMEOUT_HTTP_REQUEST: Duration = Duration::from_secs(10);
/// Inactivity of a client within a request.
pub const TIMEOUT_CLIENT: Duration = Duration::from_secs(60);
/// Idle time between two requests of a client.
pub const TIMEOUT_HTTP_KEEP_ALIVE: Duration = Duration::from_secs(60);
/// Inactivity in both directions after an upgrade.
pub const TIMEOUT_TUNNEL: Duration = Duration::from_secs(3_600);
/// Bytes of a request's head; 431 beyond (RFC 6585 §5).
pub const HEAD_MAX: u64 = 16 * KIB;
/// What `head-max` may be: a head and what follows it must fit the read scratch.
pub const HEAD_MAX_RANGE: RangeInclusive<u64> = KIB..=60 * KIB;
/// Bytes of a request line; 414 beyond (RFC 9112 §3 asks for at least 8000 octets).
pub const REQUEST_LINE_MAX: u64 = 8 * KIB;
/// What `request-line-max` may be; never above `head-max`.
pub const REQUEST_LINE_MAX_RANGE: RangeInclusive<u64> = 256..=60 * KIB;
/// Header fields of one message.
pub const HEADERS_MAX: u64 = 100;
/// What `headers-max` may be.
pub const HEADERS_MAX_RANGE: RangeInclusive<u64> = 1..=256;
/// What becomes of `X-Forwarded-*`.
pub const X_FORWARDED: &str = "append";
/// Our pseudonym in `Via` (RFC 9110 §7.6.3: a gateway must name itself in what it forwards inbound).
pub const VIA: &str = "forebay";
/// Status codes a route may answer by itself: final ones only.
pub const STATUS: RangeInclusive<u64> = 200..=599;
/// Status codes of `deny`.
pub const STATUS_DENY: RangeInclusive<u64> = 400..=599;
/// Bytes of a fixed response's body.
pub const RESPOND_BODY_MAX: usize = 64 * KIB as usize;
/// What the body of a fixed response is.
pub const RESPOND_CONTENT_TYPE: &str = "text/plain; charset=utf-8";
/// Status of a redirect (RD-4).
pub const REDIRECT_CODE: u64 = 302;

/// What a class may be; lower is served first.
pub const PRIORITY_CLASS_RANGE: RangeInclusive<i64> = -2_047..=2_047;
/// What a priority offset may be, in µs: at most 524,287 ms either way.
pub const PRIORITY_OFFSET_RANGE: RangeInclusive<i64> = -524_287_000..=524_287_000;

/// Idle private server connections of one session (POOL-61).
pub const SESSION_PRIVATE: u64 = 5;
/// What `max-session-srv-conns` may be.
pub const SESSION_PRIVATE_RANGE: RangeInclusive<u64> = 0..=1_000;

// ---- [backend.NAME] -------------------------------------------------------------------------------------------

/// From the start of a connect to its end.
pub const TIMEOUT_CONNECT: Duration = Duration::from_secs(5);
/// Inactivity of a server within a request; 504 before the head of its response.
pub const TIMEOUT_SERVER: Duration = Duration::from_secs(60);
/// The algorithm (LB-30, with two draws).
pub const BALANCE: &str = "random";
/// Draws of `random` (LB-30).
pub const RANDOM_DRAWS: u8 = 2;
/// What the draws of `random` may be. Beyond a few more draws only cost time.
pub const RANDOM_DRAWS_RANGE: RangeInclusive<u64> = 1..=16;
/// How hashes are mapped to servers (LB-42; decision 0010).
pub const HASH_TYPE: &str = "consistent";
/// What `bound` may be, in percent of a server's part (LB-43).
pub const HASH_BOUND_RANGE: RangeInclusive<u64> = 101..=10_000;
/// Until when a key stays with its server (LB-43).
pub const HASH_AFFINITY: &str = "always";
/// Who chooses for a request without a key (LB-40).
pub const HASH_ELSE: &str = "roundrobin";
/// What of a server decides which keys are its own (LB-42).
pub const HASH_KEY: &str = "name";
/// The hash function.
pub const HASH_FUNCTION: &str = "xxh3-64";
/// Segments of a path that a hash may look at.
pub const HASH_SEGMENTS: RangeInclusive<u64> = 1..=64;
/// Points of all servers of one backend on a ring of hashes (LB-42): 8 MiB, sorted in a fraction of a second.
pub const HASH_POINTS_MAX: u64 = 1 << 20;
/// What `slowstart` may be (LB-60).
pub const SLOWSTART_RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);
/// Whether requests from other sites carry the inserted cookie.
pub const COOKIE_SAME_SITE: &str = "lax";
/// What `max-age` of the inserted cookie may be.
pub const COOKIE_MAX_AGE_RANGE: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(400 * 86_400);
/// Bytes of a cookie's name, value, path and domain, each.
pub const COOKIE_TEXT_MAX: usize = 255;
/// How server connections are shared between clients (POOL-11).
pub const REUSE: &str = "safe";
/// Whether a policy may loosen `reuse`.
pub const REUSE_OVERRIDE: &str = "refuse";
/// What `pool-low-conn` and `pool-max-conn` may be, in connections.
pub const POOL_CONNECTIONS: RangeInclusive<u64> = 0..=1_000_000;
/// Time between two purges of a server's idle connections (POOL-40).
pub const POOL_PURGE_DELAY: Duration = Duration::from_secs(5);
/// What `pool-purge-delay` may be; zero keeps nothing (POOL-32).
pub const POOL_PURGE_RANGE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3_600);
/// How the room for idle connections is divided among workers (POOL-32).
pub const POOL_KEEP: &str = "first";
/// What `max-reuse` may be (POOL-53).
pub const MAX_REUSE_RANGE: RangeInclusive<u64> = 0..=u32::MAX as u64;
/// What `strict-maxconn` may be (POOL-51).
pub const STRICT_MAXCONN_RANGE: RangeInclusive<u64> = 1..=1_000_000;
/// What `maxconn` and `minconn` may be, in requests at one server.
pub const SLOTS_RANGE: RangeInclusive<u64> = 1..=1_000_000;
/// What `fullconn` may be, in requests in the backend.
pub const FULLCONN_RANGE: RangeInclusive<u64> = 1..=100_000_000;
/// What `maxqueue` may be, in requests that wait for one server.
pub const MAXQUEUE_RANGE: RangeInclusive<u64> = 0..=1_000_000;
/// Attempts to reach a server after the first one (RT-1).
pub const RETRIES: u64 = 3;
/// What `retries` may be.
pub const RETRIES_RANGE: RangeInclusive<u64> = 0..=100;
/// What a number of `redispatch` may be: each so-many-th attempt (RT-3), never beyond `retries`.
pub const REDISPATCH_EVERY_RANGE: RangeInclusive<i64> = 1..=100;
/// What it may be when it counts from the last attempt.
pub const REDISPATCH_BEFORE_END_RANGE: RangeInclusive<i64> = -100..=-1;
/// Wait before the same server is tried again after a refused or reset connect (RT-5); never above `timeout-connect`.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);
/// What `retry-delay` may be.
pub const RETRY_DELAY_RANGE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3_600);
/// Second attempts that one worker may always have under way for a backend, whatever `retry-budget` says.
pub const RETRY_BUDGET_MIN: u64 = 10;
/// What `retry-budget-min` may be.
pub const RETRY_BUDGET_MIN_RANGE: RangeInclusive<u64> = 0..=1_000_000;
/// User weight of a server (LB-1).
pub const WEIGHT: u64 = 1;
/// What a user weight may be (LB-1).
pub const WEIGHT_RANGE: RangeInclusive<u64> = 0..=256;
/// Servers of one backend (LB-13).
pub const SERVERS_MAX: usize = 4_095;

/// Tags of one server.
pub const TAGS_MAX: usize = 16;

// ---- [policy.NAME] --------------------------------------------------------------------------------------------

/// Places where policies may be attached.
pub const ATTACHMENTS_MAX: u64 = 32;
/// What `attachments-max` may be: address space is set aside for all of them, on every worker.
pub const ATTACHMENTS_RANGE: RangeInclusive<u64> = 1..=1_024;
/// How long one call of a policy may take.
pub const POLICY_DEADLINE: Duration = Duration::from_millis(10);
/// What a policy's `deadline` may be.
pub const POLICY_DEADLINE_RANGE: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(1);
/// How long a call for a request may take on average.
pub const POLICY_MEAN_MAX: Duration = Duration::from_micros(20);
/// What a policy's `mean-max` may be.
pub const POLICY_MEAN_RANGE: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_millis(100);
/// Bytes of memory of one instance of a policy.
pub const POLICY_MEMORY_MAX: u64 = 16 * KIB * KIB;
/// What a policy's `memory-max` may be: one page of WebAssembly to what a slot of the pool holds.
pub const POLICY_MEMORY_RANGE: RangeInclusive<u64> = 64 * KIB..=64 * KIB * KIB;
/// How long a load report of a server counts.
pub const LOAD_REPORT_AGE: Duration = Duration::from_secs(10);
/// What `load-report-max-age` may be.
pub const LOAD_REPORT_AGE_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(3_600);
/// Time between two questions for a plan.
pub const POLICY_INTERVAL: Duration = Duration::from_secs(1);
/// What a policy's `interval` may be: at most one plan in 50 ms.
pub const POLICY_INTERVAL_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(3_600);
/// What becomes of a request when its route policy fails.
pub const ON_FAULT: &str = "fallback";
/// Bytes of a policy's own configuration as JSON.
pub const POLICY_CONFIG_MAX: usize = 64 * KIB as usize;

// ---- limits of the file itself --------------------------------------------------------------------------------

/// Bytes of a configuration file.
pub const FILE_MAX: u64 = 8 * KIB * KIB;
/// Bytes of a name (listener, backend, server, policy, route, tag): the longest host name and its port fit.
pub const NAME_MAX: usize = 260;
/// Bytes of a Unix socket's path: what `sockaddr_un` holds, less the closing zero.
pub const UNIX_PATH_MAX: usize = 107;
/// Listeners, backends and policies of one file, of each kind.
pub const SECTIONS_MAX: usize = 65_535;
/// Threads that look up host names of servers at the same time while a file is loaded.
pub const RESOLVERS_MAX: usize = 16;

// ---- the core's own figures, no keys --------------------------------------------------------------------------

/// Bytes of a worker's read scratch.
pub const READ_SCRATCH: usize = 64 * KIB as usize;
/// Bytes of one buffer of the buffer cache.
pub const BUFFER: usize = 16 * KIB as usize;
/// Buffers a worker's cache keeps; the surplus goes to the common pool.
pub const BUFFER_CACHE: usize = 32;
/// Accepts per listener and turn (SCH-7).
pub const MAX_ACCEPT: usize = 4;
/// Events taken from one poll call (SCH-6 bounds it; one syscall should serve a full turn of one worker).
pub const POLL_EVENTS: usize = 256;
/// A new connection is handed off when loads differ by more than this many connections … (SCH-8)
pub const HAND_OFF_CONNECTIONS: usize = 8;
/// … and by more than one part in so many of the own load (SCH-8).
pub const HAND_OFF_FRACTION: usize = 8;
/// How long accepting pauses when descriptors or memory run out (SCH-7).
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Client connections that may be on their way to one worker; beyond, they stay where they are.
pub const HAND_OFFS_MAX: usize = 256;
/// Descriptors that are no connections: logs, sockets of ours, polls, mailboxes.
pub const DESCRIPTORS_RESERVED: u32 = 32;
/// How long a client may take to close after we did (RFC 9112 §9.6).
pub const LINGER: Duration = Duration::from_secs(2);
/// How long a drain leaves a client between two requests: its next one may be on its way.
pub const DRAIN_GRACE: Duration = Duration::from_millis(100);
/// Idle connections of one request that may turn out dead, one after the other, before a fresh one is opened.
pub const STALE_MAX: u8 = 2;
/// Bytes of a request's body that are held, so that it can be sent again on a fresh connection (RT-7).
pub const HELD_BODY: usize = 16 * KIB as usize;
/// Bytes of a request target that the access log shows.
pub const LOG_TARGET_MAX: usize = 2 * KIB as usize;
