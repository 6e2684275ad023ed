//! What `show stat` answers: the snapshot as comma-separated lines in HAProxy's columns (ST-4), or as JSON.
//!
//! Readers of the lines rely on the names in the header, so columns keep their names and order and new ones go to the
//! end; what Forebay does not count is empty. A listener is a `FRONTEND` line, a backend one line per server and a
//! `BACKEND` line. JSON tells everything, in the words of our own snapshot.

use crate::observe::calendar::Moment;
use crate::observe::snapshot::{
    Backend, Count, Listener, Policy, Process, Queue, Server, ServerTotals, Snapshot, State, StatusClasses,
    Worker,
};
use serde_json::{Map, Value, json};

/// The numbers as comma-separated lines, a header first.
pub fn csv(snapshot: &Snapshot) -> String {
    let mut text = format!("# {}\n", COLUMNS.join(","));
    let first_backend = snapshot.listeners.len() + 1;
    for (number, listener) in (1..).zip(&snapshot.listeners) {
        write_row(&listener_row(number, listener, &snapshot.process), &mut text);
    }
    for (number, backend) in (first_backend..).zip(&snapshot.backends) {
        for (place, server) in (1..).zip(&backend.servers) {
            write_row(&server_row(number, place, backend, server), &mut text);
        }
        write_row(&backend_row(number, backend), &mut text);
    }
    text
}

/// The columns there are, in order. HAProxy's first 62, then some of its later ones, then ours.
#[rustfmt::skip]
const COLUMNS: &[&str] = &[
    "pxname", "svname", "qcur", "qmax", "scur", "smax", "slim", "stot", "bin", "bout", "dreq", "dresp", "ereq",
    "econ", "eresp", "wretr", "wredis", "status", "weight", "act", "bck", "chkfail", "chkdown", "lastchg",
    "downtime", "qlimit", "pid", "iid", "sid", "throttle", "lbtot", "tracked", "type", "rate", "rate_lim",
    "rate_max", "check_status", "check_code", "check_duration", "hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx",
    "hrsp_5xx", "hrsp_other", "hanafail", "req_rate", "req_rate_max", "req_tot", "cli_abrt", "srv_abrt",
    "comp_in", "comp_out", "comp_byp", "comp_rsp", "lastsess", "last_chk", "last_agt", "qtime", "ctime", "rtime",
    "ttime",
    "addr", "mode", "algo", "conn_tot", "connect", "reuse", "idle_conn_cur", "safe_conn_cur", "used_conn_cur",
    "need_conn_est", "uweight",
    "reuse_aborts", "used_conn_max",
];

/// Values of one line, by the name of their column.
type Row = Vec<(&'static str, String)>;

fn write_row(row: &Row, text: &mut String) {
    for (place, column) in COLUMNS.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        if let Some((_, value)) = row.iter().find(|(name, _)| name == column) {
            write_value(value, text);
        }
    }
    text.push('\n');
}

/// A value in quotes, quotes doubled, if it could be taken for more than one (RFC 4180 §2).
fn write_value(value: &str, text: &mut String) {
    if value.contains(['"', ',', '\n', '\r']) {
        text.push('"');
        text.push_str(&value.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(value);
    }
}

fn listener_row(number: usize, listener: &Listener, process: &Process) -> Row {
    let refused: u64 = listener.refused.iter().map(|count| count.total).sum();
    let mut row = vec![
        ("pxname", listener.name.clone()),
        ("svname", "FRONTEND".into()),
        ("scur", listener.sessions.to_string()),
        ("stot", listener.connections.to_string()),
        ("bin", listener.bytes_in.to_string()),
        ("bout", listener.bytes_out.to_string()),
        ("ereq", refused.to_string()),
        ("status", if process.stopping { "STOP" } else { "OPEN" }.into()),
        ("pid", "1".into()),
        ("iid", number.to_string()),
        ("sid", "0".into()),
        ("type", "0".into()),
        ("req_tot", listener.requests.to_string()),
        ("addr", listener.addresses.join(" ")),
        ("mode", "http".into()),
        ("conn_tot", listener.connections.to_string()),
    ];
    responses(listener.replies, &mut row);
    row
}

fn server_row(number: usize, place: usize, backend: &Backend, server: &Server) -> Row {
    let mut row = vec![
        ("pxname", backend.name.clone()),
        ("svname", server.name.clone()),
        ("qcur", server.waiting.to_string()),
        ("qmax", server.queue.longest.to_string()),
        ("scur", server.served.to_string()),
        (
            "slim",
            server.limit.map(|limit| limit.to_string()).unwrap_or_default(),
        ),
        ("status", server_status(server.state).into()),
        ("weight", server.weight.to_string()),
        ("uweight", server.weight.to_string()),
        ("act", "1".into()),
        ("bck", "0".into()),
        ("pid", "1".into()),
        ("iid", number.to_string()),
        ("sid", place.to_string()),
        ("type", "2".into()),
        ("addr", server.address.clone()),
        ("mode", "http".into()),
        ("idle_conn_cur", server.idle.to_string()),
        ("safe_conn_cur", server.safe.to_string()),
        ("used_conn_cur", server.used.to_string()),
        ("used_conn_max", server.max_used.to_string()),
        ("need_conn_est", server.need.to_string()),
    ];
    totals(&server.totals, &mut row);
    queue_time(&server.queue, &mut row);
    row
}

fn queue_time(queue: &Queue, row: &mut Row) {
    let mean = queue.mean_time().map(|mean| mean.as_millis().to_string());
    row.push(("qtime", mean.unwrap_or_default()));
}

/// No health check has spoken about a server that is ready.
fn server_status(state: State) -> &'static str {
    match state {
        State::Ready => "no check",
        State::Drain => "DRAIN",
        State::Maint => "MAINT",
    }
}

fn backend_row(number: usize, backend: &Backend) -> Row {
    let over = |read: fn(&Server) -> u64| backend.servers.iter().map(read).sum::<u64>();
    let usable = backend.servers.iter().filter(|server| server.usable());
    let weight: u64 = usable.map(|server| u64::from(server.weight)).sum();
    let mut row = vec![
        ("pxname", backend.name.clone()),
        ("svname", "BACKEND".into()),
        (
            "qcur",
            (backend.waiting + over(|server| server.waiting)).to_string(),
        ),
        ("qmax", backend.queue.longest.to_string()),
        ("scur", over(|server| server.served).to_string()),
        ("status", if backend.usable() > 0 { "UP" } else { "DOWN" }.into()),
        ("weight", weight.to_string()),
        ("act", backend.usable().to_string()),
        ("bck", "0".into()),
        ("pid", "1".into()),
        ("iid", number.to_string()),
        ("sid", "0".into()),
        ("type", "1".into()),
        ("mode", "http".into()),
        ("algo", backend.balance.clone()),
        ("req_tot", backend.totals().requests.to_string()),
        ("idle_conn_cur", over(|server| server.idle).to_string()),
        ("safe_conn_cur", over(|server| server.safe).to_string()),
        ("used_conn_cur", over(|server| server.used).to_string()),
        ("need_conn_est", over(|server| server.need).to_string()),
    ];
    totals(&backend.totals(), &mut row);
    queue_time(&backend.queue, &mut row);
    row
}

fn totals(totals: &ServerTotals, row: &mut Row) {
    let mean = totals
        .mean_response_time()
        .map(|mean| mean.as_millis().to_string());
    row.extend([
        ("stot", totals.requests.to_string()),
        ("lbtot", totals.requests.to_string()),
        ("bin", totals.bytes_in.to_string()),
        ("bout", totals.bytes_out.to_string()),
        ("econ", totals.connect_failures.to_string()),
        ("eresp", totals.response_errors.to_string()),
        ("wretr", totals.retries.to_string()),
        ("wredis", totals.redispatches.to_string()),
        ("connect", totals.connects.to_string()),
        ("reuse", totals.reuses.to_string()),
        ("reuse_aborts", totals.reuse_aborts.to_string()),
        ("rtime", mean.unwrap_or_default()),
    ]);
    responses(totals.responses, row);
}

fn responses(responses: StatusClasses, row: &mut Row) {
    let columns = ["hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx"];
    row.extend(
        columns
            .into_iter()
            .zip(responses.by_class.map(|count| count.to_string())),
    );
    row.push(("hrsp_other", responses.other.to_string()));
}

/// Everything, as one JSON object on one line.
pub fn json(snapshot: &Snapshot) -> String {
    let Snapshot {
        process,
        workers,
        listeners,
        backends,
        policies,
    } = snapshot;
    let list = |values: Vec<Value>| Value::Array(values);
    let all = json!({
        "process": process_object(process),
        "workers": list(workers.iter().map(worker_object).collect()),
        "listeners": list(listeners.iter().map(listener_object).collect()),
        "backends": list(backends.iter().map(backend_object).collect()),
        "policies": list(policies.iter().map(policy_object).collect()),
    });
    format!("{all}\n")
}

fn process_object(process: &Process) -> Value {
    json!({
        "version": process.version,
        "pid": process.pid,
        "started": Moment::of(process.started).to_string(),
        "taken": Moment::of(process.taken).to_string(),
        "uptime_s": process.uptime().as_secs(),
        "generation": process.generation,
        "failed_reloads": process.failed_reloads,
        "stopping": process.stopping,
        "descriptors": process.descriptors,
        "descriptor_limit": process.descriptor_limit,
        "log": {
            "written": process.log.written,
            "dropped": process.log.dropped,
            "failed": process.log.failed,
        },
        "messages_dropped": process.messages_dropped,
        "policies_replaced": process.policies_replaced,
    })
}

fn worker_object(worker: &Worker) -> Value {
    json!({
        "number": worker.number,
        "turns": worker.turns,
        "accepts": worker.accepts,
        "hand_offs_given": worker.hand_offs_given,
        "hand_offs_taken": worker.hand_offs_taken,
        "sessions": worker.sessions,
        "panics": worker.panics,
        "accept_pauses": worker.accept_pauses,
    })
}

fn listener_object(listener: &Listener) -> Value {
    json!({
        "name": listener.name,
        "addresses": listener.addresses,
        "connections": listener.connections,
        "sessions": listener.sessions,
        "requests": listener.requests,
        "refused": counts_object(&listener.refused),
        "replies": responses_object(listener.replies),
        "timeouts": counts_object(&listener.timeouts),
        "bytes_in": listener.bytes_in,
        "bytes_out": listener.bytes_out,
    })
}

fn backend_object(backend: &Backend) -> Value {
    json!({
        "name": backend.name,
        "balance": backend.balance,
        "waiting": backend.waiting,
        "queue": queue_object(&backend.queue),
        "retry_budget_spent": backend.budget_spent,
        "choices": counts_object(&backend.choices),
        "cookies_missed": counts_object(&backend.cookies_missed),
        "servers": backend.servers.iter().map(server_object).collect::<Vec<_>>(),
    })
}

fn policy_object(policy: &Policy) -> Value {
    json!({
        "name": policy.name,
        "attachment": policy.attachment,
        "calls": policy.calls,
        "remembered": policy.remembered,
        "abstained": policy.abstained,
        "unusable": policy.unusable,
        "rejected": policy.rejected,
        "faults": counts_object(&policy.faults),
    })
}

fn server_object(server: &Server) -> Value {
    let totals = &server.totals;
    json!({
        "name": server.name,
        "address": server.address,
        "weight": server.weight,
        "state": server.state.word(),
        "served": server.served,
        "waiting": server.waiting,
        "queue": queue_object(&server.queue),
        "limit": server.limit,
        "used": server.used,
        "max_used": server.max_used,
        "need": server.need,
        "idle": server.idle,
        "safe": server.safe,
        "requests": totals.requests,
        "connects": totals.connects,
        "reuses": totals.reuses,
        "connect_failures": totals.connect_failures,
        "reuse_aborts": totals.reuse_aborts,
        "retries": totals.retries,
        "redispatches": totals.redispatches,
        "responses": responses_object(totals.responses),
        "response_errors": totals.response_errors,
        "timed_responses": totals.timed_responses,
        "bytes_in": totals.bytes_in,
        "bytes_out": totals.bytes_out,
        "response_time_us": totals.response_time,
        "timeouts": counts_object(&totals.timeouts),
        "opens": counts_object(&totals.opens),
        "closes": counts_object(&totals.closes),
    })
}

fn queue_object(queue: &Queue) -> Value {
    json!({
        "longest": queue.longest,
        "waits": queue.waits,
        "time_us": queue.time,
        "ends": counts_object(&queue.ends),
    })
}

fn responses_object(responses: StatusClasses) -> Value {
    let [one, two, three, four, five] = responses.by_class;
    json!({ "1xx": one, "2xx": two, "3xx": three, "4xx": four, "5xx": five, "other": responses.other })
}

fn counts_object(counts: &[Count]) -> Value {
    let pairs = counts
        .iter()
        .map(|count| (count.cause.to_owned(), Value::from(count.total)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::example_snapshot;

    #[test]
    fn the_lines_in_full() {
        insta::assert_snapshot!(csv(&example_snapshot()));
    }

    #[test]
    fn json_in_full() {
        let value: Value = serde_json::from_str(&json(&example_snapshot())).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn every_value_has_its_column_and_every_line_all_columns() {
        let snapshot = example_snapshot();
        let backend = &snapshot.backends[0];
        let rows = [
            listener_row(1, &snapshot.listeners[0], &snapshot.process),
            server_row(2, 1, backend, &backend.servers[0]),
            backend_row(2, backend),
        ];
        for (column, _) in rows.iter().flatten() {
            assert!(COLUMNS.contains(column), "{column}");
        }
        for row in &rows {
            let names: std::collections::HashSet<_> = row.iter().map(|(column, _)| column).collect();
            assert_eq!(names.len(), row.len(), "a column twice");
        }
        let text = csv(&snapshot);
        assert_eq!(text.lines().count(), 1 + 1 + 3 + 1);
        for line in text.lines() {
            assert_eq!(line.split(',').count(), COLUMNS.len(), "{line}");
        }
        assert_eq!(
            (COLUMNS[17], COLUMNS[60], COLUMNS[61]),
            ("status", "rtime", "ttime")
        );
    }

    #[test]
    fn a_name_with_a_comma_stays_one_value() {
        let mut text = String::new();
        write_value("a,\"b\"", &mut text);
        assert_eq!(text, "\"a,\"\"b\"\"\"");
    }
}
