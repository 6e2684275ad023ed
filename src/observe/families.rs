//! The metrics there are: one row each, in the order of the text.
//!
//! Names are those of HAProxy's exporter with our prefix, so that its dashboards are translated by replacing `haproxy_`
//! with `forebay_` (ST-5): a *frontend* is a `[[listen]]` section, the label `proxy` is the name of a section, a *session*
//! of a frontend is a client connection, a session of a server is a request that holds a slot. What HAProxy does not
//! have is named in the same manner and says so by *(ours)*. Rows are only ever added.

use super::metrics::{Family, Read};
use super::snapshot::{Backend, Count, Listener, Policy, Server, Snapshot, State, Worker};
use std::time::UNIX_EPOCH;

/// `forebay_process_…`, no labels.
pub(super) const PROCESS: &[Family<Snapshot>] = &[
    row(
        "process_build_info",
        "Version of the program",
        Read::Text("version", |all| all.process.version),
    ),
    row(
        "process_nbthread",
        "Worker threads",
        Read::Gauge(|all| all.workers.len() as u64),
    ),
    row(
        "process_start_time_seconds",
        "Start of the process, seconds since 1970",
        Read::Seconds(|all| Some(all.process.started.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())),
    ),
    row(
        "process_uptime_seconds",
        "Age of the process",
        Read::Seconds(|all| Some(all.process.uptime().as_secs_f64())),
    ),
    row(
        "process_max_fds",
        "Descriptors the process may have open",
        Read::Gauge(|all| all.process.descriptor_limit),
    ),
    row(
        "process_open_fds",
        "Descriptors open now (ours)",
        Read::Gauge(|all| all.process.descriptors),
    ),
    row(
        "process_listeners",
        "Sections that listen",
        Read::Gauge(|all| all.listeners.len() as u64),
    ),
    row(
        "process_stopping",
        "1 while the process drains",
        Read::Gauge(|all| u64::from(all.process.stopping)),
    ),
    row(
        "process_current_connections",
        "Client connections open now",
        Read::Gauge(|all| all.workers.iter().map(|worker| worker.sessions).sum()),
    ),
    row(
        "process_connections",
        "Client connections accepted",
        Read::Counter(|all| all.workers.iter().map(|worker| worker.accepts).sum()),
    ),
    row(
        "process_generation",
        "Configurations published so far (ours)",
        Read::Gauge(|all| all.process.generation),
    ),
    row(
        "process_failed_reloads",
        "Reloads that changed nothing (ours)",
        Read::Counter(|all| all.process.failed_reloads),
    ),
    row(
        "process_written_logs",
        "Access log lines written (ours)",
        Read::Counter(|all| all.process.log.written),
    ),
    row(
        "process_dropped_logs",
        "Access log records dropped for want of room",
        Read::Counter(|all| all.process.log.dropped),
    ),
    row(
        "process_failed_logs",
        "Access log lines that could not be written (ours)",
        Read::Counter(|all| all.process.log.failed),
    ),
    row(
        "process_dropped_messages",
        "Operator messages dropped (ours)",
        Read::Counter(|all| all.process.messages_dropped),
    ),
    row(
        "process_replaced_policies",
        "Policies that were replaced and are still in use (ours)",
        Read::Gauge(|all| all.process.policies_replaced),
    ),
];

/// `forebay_worker_…{worker}`, all ours.
pub(super) const WORKER: &[Family<Worker>] = &[
    row(
        "worker_turns",
        "Turns of the worker's loop (ours)",
        Read::Counter(|worker| worker.turns),
    ),
    row(
        "worker_connections",
        "Client connections accepted (ours)",
        Read::Counter(|worker| worker.accepts),
    ),
    row(
        "worker_handed_off",
        "Client connections handed off to others (ours)",
        Read::Counter(|worker| worker.hand_offs_given),
    ),
    row(
        "worker_taken_on",
        "Client connections taken from others (ours)",
        Read::Counter(|worker| worker.hand_offs_taken),
    ),
    row(
        "worker_current_sessions",
        "Client connections open now (ours)",
        Read::Gauge(|worker| worker.sessions),
    ),
    row(
        "worker_takeovers",
        "Server connections taken over from other workers",
        Read::Counter(|worker| worker.takeovers),
    ),
    row(
        "worker_panics",
        "Sessions ended by a fault of ours (ours)",
        Read::Counter(|worker| worker.panics),
    ),
    row(
        "worker_accept_pauses",
        "Pauses of accepting for want of descriptors (ours)",
        Read::Counter(|worker| worker.accept_pauses),
    ),
];

/// `forebay_frontend_…{proxy}`.
pub(super) const FRONTEND: &[Family<Listener>] = &[
    row(
        "frontend_current_sessions",
        "Client connections open now",
        Read::Gauge(|listener| listener.sessions),
    ),
    row(
        "frontend_sessions",
        "Client connections accepted",
        Read::Counter(|listener| listener.connections),
    ),
    row(
        "frontend_connections",
        "Client connections accepted",
        Read::Counter(|listener| listener.connections),
    ),
    row(
        "frontend_http_requests",
        "Requests accepted",
        Read::Counter(|listener| listener.requests),
    ),
    row(
        "frontend_http_responses",
        "Responses sent, by class",
        Read::Codes(|listener| listener.replies),
    ),
    row(
        "frontend_request_errors",
        "Requests refused",
        Read::Counter(|listener| sum(&listener.refused)),
    ),
    row(
        "frontend_refused_requests",
        "Requests refused, by cause (ours)",
        Read::Causes("cause", |listener| &listener.refused),
    ),
    row(
        "frontend_timeouts",
        "Timeouts, by phase (ours)",
        Read::Causes("phase", |listener| &listener.timeouts),
    ),
    row(
        "frontend_bytes_in",
        "Bytes received from clients",
        Read::Counter(|listener| listener.bytes_in),
    ),
    row(
        "frontend_bytes_out",
        "Bytes sent to clients",
        Read::Counter(|listener| listener.bytes_out),
    ),
];

/// `forebay_backend_…{proxy}`: sums over its servers.
pub(super) const BACKEND: &[Family<Backend>] = &[
    row(
        "backend_status",
        "1 for the state it has",
        Read::States(&["UP", "DOWN"], backend_state),
    ),
    row(
        "backend_active_servers",
        "Servers that get new requests",
        Read::Gauge(Backend::usable),
    ),
    row(
        "backend_weight",
        "Sum of the weights of these",
        Read::Gauge(usable_weight),
    ),
    row(
        "backend_current_sessions",
        "Requests that hold a slot now",
        Read::Gauge(|backend| over(backend, |server| server.served)),
    ),
    row(
        "backend_current_queue",
        "Requests that wait now, in its queue and those of its servers",
        Read::Gauge(|backend| backend.waiting + over(backend, |server| server.waiting)),
    ),
    row(
        "backend_max_queue",
        "The most that waited at once in its own queue",
        Read::Gauge(|backend| backend.queue.longest),
    ),
    row(
        "backend_queue_waits",
        "Requests that waited in its own queue (ours)",
        Read::Counter(|backend| backend.queue.waits),
    ),
    row(
        "backend_queue_time_seconds",
        "Time of these in its own queue, summed (ours)",
        Read::SecondsTotal(|backend| backend.queue.time as f64 / 1e6),
    ),
    row(
        "backend_queue_time_average_seconds",
        "Mean time in its own queue, since the start",
        Read::Seconds(|backend| Some(backend.queue.mean_time()?.as_secs_f64())),
    ),
    row(
        "backend_queue_ends",
        "Waits in its own queue that ended without a slot or could not begin, by reason (ours)",
        Read::Causes("reason", |backend| &backend.queue.ends),
    ),
    row(
        "backend_retry_budget_spent",
        "Attempts that the retry budget did not allow (ours)",
        Read::Counter(|backend| backend.budget_spent),
    ),
    row(
        "backend_choices",
        "Servers chosen, by who chose: plan, pick, native, the session or its cookie (ours)",
        Read::Causes("source", |backend| &backend.choices),
    ),
    row(
        "backend_cookies_missed",
        "Requests whose cookie named nobody, or a server in maintenance (ours)",
        Read::Causes("cause", |backend| &backend.cookies_missed),
    ),
    row(
        "backend_sessions",
        "Requests given to a server",
        Read::Counter(|backend| backend.totals().requests),
    ),
    row(
        "backend_http_requests",
        "Requests given to a server",
        Read::Counter(|backend| backend.totals().requests),
    ),
    row(
        "backend_http_responses",
        "Responses received, by class",
        Read::Codes(|backend| backend.totals().responses),
    ),
    row(
        "backend_bytes_in",
        "Bytes sent to servers",
        Read::Counter(|backend| backend.totals().bytes_in),
    ),
    row(
        "backend_bytes_out",
        "Bytes received from servers",
        Read::Counter(|backend| backend.totals().bytes_out),
    ),
    row(
        "backend_connection_errors",
        "Connection attempts that failed",
        Read::Counter(|backend| backend.totals().connect_failures),
    ),
    row(
        "backend_response_errors",
        "Responses broken or missing",
        Read::Counter(|backend| backend.totals().response_errors),
    ),
    row(
        "backend_retry_warnings",
        "Attempts after the first",
        Read::Counter(|backend| backend.totals().retries),
    ),
    row(
        "backend_redispatch_warnings",
        "Attempts that moved to another server",
        Read::Counter(|backend| backend.totals().redispatches),
    ),
    row(
        "backend_connection_attempts",
        "Connections opened",
        Read::Counter(|backend| backend.totals().connects),
    ),
    row(
        "backend_connection_reuses",
        "Requests over a connection opened earlier",
        Read::Counter(|backend| backend.totals().reuses),
    ),
    row(
        "backend_response_time_average_seconds",
        "Mean time to a response's head, since the start",
        Read::Seconds(|backend| Some(backend.totals().mean_response_time()?.as_secs_f64())),
    ),
];

/// `forebay_server_…{proxy,server}`.
pub(super) const SERVER: &[Family<Server>] = &[
    row(
        "server_status",
        "1 for the state it has",
        Read::States(&["UP", "DRAIN", "MAINT"], server_state),
    ),
    row(
        "server_weight",
        "Weight, 0 to 256",
        Read::Gauge(|server| u64::from(server.weight)),
    ),
    row(
        "server_current_sessions",
        "Requests that hold a slot now",
        Read::Gauge(|server| server.served),
    ),
    row(
        "server_limit_sessions",
        "Slots, where they are limited",
        Read::GaugeIfAny(|server| server.limit),
    ),
    row(
        "server_current_queue",
        "Requests that wait in its own queue now",
        Read::Gauge(|server| server.waiting),
    ),
    row(
        "server_max_queue",
        "The most that waited at once in its own queue",
        Read::Gauge(|server| server.queue.longest),
    ),
    row(
        "server_queue_waits",
        "Requests that waited in its own queue (ours)",
        Read::Counter(|server| server.queue.waits),
    ),
    row(
        "server_queue_time_seconds",
        "Time of these in its own queue, summed (ours)",
        Read::SecondsTotal(|server| server.queue.time as f64 / 1e6),
    ),
    row(
        "server_queue_time_average_seconds",
        "Mean time in its own queue, since the start",
        Read::Seconds(|server| Some(server.queue.mean_time()?.as_secs_f64())),
    ),
    row(
        "server_queue_ends",
        "Waits in its own queue that ended without a slot or could not begin, by reason (ours)",
        Read::Causes("reason", |server| &server.queue.ends),
    ),
    row(
        "server_sessions",
        "Requests given to it",
        Read::Counter(|server| server.totals.requests),
    ),
    row(
        "server_http_responses",
        "Responses received, by class",
        Read::Codes(|server| server.totals.responses),
    ),
    row(
        "server_bytes_in",
        "Bytes sent to it",
        Read::Counter(|server| server.totals.bytes_in),
    ),
    row(
        "server_bytes_out",
        "Bytes received from it",
        Read::Counter(|server| server.totals.bytes_out),
    ),
    row(
        "server_connection_errors",
        "Connection attempts that failed",
        Read::Counter(|server| server.totals.connect_failures),
    ),
    row(
        "server_response_errors",
        "Responses broken or missing",
        Read::Counter(|server| server.totals.response_errors),
    ),
    row(
        "server_load_reports",
        "Responses in which the server reported its load, by what was made of it (ours)",
        Read::Causes("result", |server| &server.totals.load_reports),
    ),
    row(
        "server_timeouts",
        "Timeouts, by phase (ours)",
        Read::Causes("phase", |server| &server.totals.timeouts),
    ),
    row(
        "server_retry_warnings",
        "Attempts after the first",
        Read::Counter(|server| server.totals.retries),
    ),
    row(
        "server_redispatch_warnings",
        "Attempts that moved to another server",
        Read::Counter(|server| server.totals.redispatches),
    ),
    row(
        "server_connection_attempts",
        "Connections opened",
        Read::Counter(|server| server.totals.connects),
    ),
    row(
        "server_connection_reuses",
        "Requests over a connection opened earlier",
        Read::Counter(|server| server.totals.reuses),
    ),
    row(
        "server_connection_takeovers",
        "Of the reused connections, those that another worker had parked (ours)",
        Read::Counter(|server| server.totals.takeovers),
    ),
    row(
        "server_connection_opens",
        "Connections opened, by the reason why none was reused (ours)",
        Read::Causes("reason", |server| &server.totals.opens),
    ),
    row(
        "server_connection_closes",
        "Connections closed, by reason (ours)",
        Read::Causes("reason", |server| &server.totals.closes),
    ),
    row(
        "server_reuse_aborts",
        "Requests lost with a reused connection (ours)",
        Read::Counter(|server| server.totals.reuse_aborts),
    ),
    row(
        "server_used_connections_current",
        "Connections that carry a request now",
        Read::Gauge(|server| server.used),
    ),
    row(
        "server_used_connections_max",
        "The most that did since the last purge (ours)",
        Read::Gauge(|server| server.max_used),
    ),
    row(
        "server_need_connections_current",
        "Connections thought to be needed",
        Read::Gauge(|server| server.need),
    ),
    row(
        "server_idle_connections_current",
        "Parked connections",
        Read::Gauge(|server| server.idle + server.safe),
    ),
    row(
        "server_unsafe_idle_connections_current",
        "Parked connections not proven safe",
        Read::Gauge(|server| server.idle),
    ),
    row(
        "server_safe_idle_connections_current",
        "Parked connections proven safe",
        Read::Gauge(|server| server.safe),
    ),
    row(
        "server_response_time_seconds",
        "Time to responses' heads, summed (ours)",
        Read::SecondsTotal(|server| server.totals.response_time as f64 / 1e6),
    ),
    row(
        "server_response_time_average_seconds",
        "Mean time to a response's head, since the start",
        Read::Seconds(|server| Some(server.totals.mean_response_time()?.as_secs_f64())),
    ),
];

/// `forebay_policy_…{policy,attachment}`, all ours.
pub(super) const POLICY: &[Family<Policy>] = &[
    row(
        "policy_calls",
        "Questions that reached the policy (ours)",
        Read::Counter(|policy| policy.calls),
    ),
    row(
        "policy_remembered",
        "Answers that were given again without a call (ours)",
        Read::Counter(|policy| policy.remembered),
    ),
    row(
        "policy_abstained",
        "Answers without an opinion (ours)",
        Read::Counter(|policy| policy.abstained),
    ),
    row(
        "policy_unusable",
        "Answers that named servers that take no requests (ours)",
        Read::Counter(|policy| policy.unusable),
    ),
    row(
        "policy_rejected",
        "Requests that it turned away when they were about to wait (ours)",
        Read::Counter(|policy| policy.rejected),
    ),
    row(
        "policy_faults",
        "Answers that were not used, and questions that were not asked, by reason (ours)",
        Read::Causes("reason", |policy| &policy.faults),
    ),
    row(
        "policy_counter",
        "What the policy counts, under its own names (ours)",
        Read::Counters("name", |policy| &policy.counters),
    ),
    row(
        "policy_gauge",
        "What the policy says of itself, under its own names, of all its instances together (ours)",
        Read::Gauges("name", |policy| &policy.gauges),
    ),
];

const fn row<T>(name: &'static str, help: &'static str, read: Read<T>) -> Family<T> {
    Family { name, help, read }
}

fn sum(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.total).sum()
}

fn over(backend: &Backend, read: fn(&Server) -> u64) -> u64 {
    backend.servers.iter().map(read).sum()
}

fn usable_weight(backend: &Backend) -> u64 {
    backend
        .servers
        .iter()
        .filter(|server| server.usable())
        .map(|server| u64::from(server.weight))
        .sum()
}

fn backend_state(backend: &Backend) -> &'static str {
    if backend.usable() > 0 { "UP" } else { "DOWN" }
}

fn server_state(server: &Server) -> &'static str {
    match server.state {
        State::Ready => "UP",
        State::Drain => "DRAIN",
        State::Maint => "MAINT",
    }
}
