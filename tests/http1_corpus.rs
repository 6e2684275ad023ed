//! The conformance corpus without a socket: what of each case `http1` alone decides.
//!
//! The client's bytes go through `parse_request`, `Body` and `write_request`, the scripted server's through their
//! counterparts. Checked are: refused or forwarded, with which status, where the next message begins, the decoded bodies,
//! and that every head written is one unambiguous message. Time, retries and connections are the black-box run's subject.
#![cfg(feature = "proxy")]

use forebay::http1::{
    Body, ClientConnection, Framing, Limits, Output, Parsed, RequestContext, RequestHead, ResponseHead,
    TrailerLimits, parse_request, parse_response, write_request, write_response,
};
use serde_json::Value;

const LIMITS: Limits = Limits {
    head_max: 16 * 1024,
    request_line_max: 8 * 1024,
    headers_max: 100,
};
const TRAILERS: TrailerLimits = TrailerLimits {
    bytes_max: 8 * 1024,
    fields_max: 32,
};

#[test]
fn requests() {
    let mut failures = Vec::new();
    for case in cases() {
        let run = run_client(&client_bytes(&case));
        failures.extend(judge_requests(&case, &run).map(|what| format!("{}: {what}", case["id"])));
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn responses() {
    let mut failures = Vec::new();
    for case in cases() {
        if let (Some(context), Some(bytes)) = (context(&case), server_bytes(&case)) {
            failures
                .extend(judge_response(&case, context, &bytes).map(|what| format!("{}: {what}", case["id"])));
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// What the requests of one connection came to.
#[derive(Debug, Default)]
struct Run {
    /// Decoded bodies of the requests that were forwarded whole.
    bodies: Vec<Vec<u8>>,
    /// Status of our own answer that ended the connection.
    answered: Option<u16>,
    /// Whether something is left that we wait for.
    waiting: bool,
    /// The first head written that is ambiguous.
    unsound: Option<String>,
}

fn run_client(mut bytes: &[u8]) -> Run {
    let (mut run, mut head) = (Run::default(), RequestHead::default());
    while !bytes.is_empty() {
        match parse_request(bytes, &LIMITS, &mut head) {
            Err(refusal) => {
                run.answered = Some(refusal.status());
                return run;
            }
            Ok(Parsed::Partial) => {
                run.waiting = true;
                return run;
            }
            Ok(Parsed::Complete) if head.max_forwards == Some(0) => {
                run.answered = Some(501);
                return run;
            }
            Ok(Parsed::Complete) => {}
        }
        let mut out = Vec::new();
        write_request(bytes, &head, b"Via: 1.1 forebay\r\n", &mut out);
        run.unsound = run.unsound.take().or(unsound(&out, true));
        match read_body(head.framing, &bytes[head.length..]) {
            Err(status) => {
                run.answered = Some(status);
                return run;
            }
            Ok((_, _, false)) => {
                run.waiting = true;
                return run;
            }
            Ok((data, consumed, true)) => {
                run.bodies.push(data);
                bytes = &bytes[head.length + consumed..];
            }
        }
        if head.upgrade || !head.keep_alive {
            return run;
        }
    }
    run
}

/// The data of a body, what it used up, whether it is whole; or the status of its error.
fn read_body(framing: Framing, input: &[u8]) -> Result<(Vec<u8>, usize, bool), u16> {
    let (mut sent, mut data) = (Vec::new(), Vec::new());
    let step = Body::new(framing, TRAILERS)
        .advance(input, &mut sent)
        .map_err(|error| error.status())?;
    if let Output::Verbatim(length) = step.output {
        sent.extend_from_slice(&input[..length]);
    }
    let mut decoder = Body::decoding(framing, TRAILERS);
    let decoded = decoder.advance(&sent, &mut data).expect("what goes on is sound");
    if let Output::Verbatim(length) = decoded.output {
        data.extend_from_slice(&sent[..length]);
    }
    assert_eq!((decoded.consumed, decoded.done), (sent.len(), step.done));
    Ok((data, step.consumed, step.done))
}

fn judge_requests(case: &Value, run: &Run) -> Option<String> {
    let expect = &case["expect"];
    let forwarded = run.bodies.len();
    if let Some(what) = &run.unsound {
        return Some(format!("unsound head: {what}"));
    }
    let allowed = numbers(&expect["upstream_requests"]);
    let nothing = expect["upstream_sees"] == "nothing" || allowed.iter().max() == Some(&0);
    if nothing && forwarded > 0 && case.get("upstream_steps").is_none() {
        return Some(format!("{forwarded} requests forwarded, none may be"));
    }
    let whole = case.get("request_bytes").is_some() && !run.waiting;
    if whole && !nothing && !allowed.is_empty() && run.answered.is_none() {
        let most = allowed.iter().max().is_some_and(|&most| forwarded as u64 > most);
        if most
            || allowed
                .iter()
                .min()
                .is_some_and(|&least| (forwarded as u64) < least)
        {
            return Some(format!("{forwarded} requests forwarded, expected {allowed:?}"));
        }
    }
    let sequences = sequences(&expect["client_status"]);
    if let (Some(status), false) = (run.answered, sequences.is_empty()) {
        if !sequences
            .iter()
            .any(|s| s.len() == forwarded + 1 && s[forwarded] == status)
        {
            return Some(format!(
                "{forwarded} forwarded, then {status}, expected {sequences:?}"
            ));
        }
    } else if whole && !sequences.is_empty() && !sequences.iter().any(|s| s.len() == forwarded) {
        return Some(format!("{forwarded} forwarded, expected {sequences:?}"));
    }
    let bodies = texts(&expect["upstream_bodies"]);
    let differs = !bodies.is_empty() && forwarded > 0 && whole && bodies != run.bodies;
    differs.then(|| "other bodies than expected".to_owned())
}

/// The context of the first request of a case, if it is forwarded.
fn context(case: &Value) -> Option<RequestContext> {
    let (bytes, mut head) = (client_bytes(case), RequestHead::default());
    let parsed = parse_request(&bytes, &LIMITS, &mut head);
    (parsed == Ok(Parsed::Complete)).then_some(RequestContext {
        method: head.method,
        upgrade: head.upgrade,
        client: head.version,
    })
}

fn judge_response(case: &Value, context: RequestContext, mut bytes: &[u8]) -> Option<String> {
    let expect = &case["expect"];
    let statuses: Vec<u16> = sequences(&expect["client_status"])
        .iter()
        .filter_map(|s| s.first().copied())
        .collect();
    let mut head = ResponseHead::default();
    loop {
        match parse_response(bytes, &LIMITS, context, &mut head) {
            // Whether the rest never comes is the black-box run's subject.
            Ok(Parsed::Partial) => return None,
            Err(bad) if statuses.contains(&bad.status()) => return None,
            Err(bad) => return Some(format!("{bad}, expected {statuses:?}")),
            Ok(Parsed::Complete) => {}
        }
        let mut out = Vec::new();
        let connection = head.connection_for(context.client, ClientConnection::KeepAlive);
        write_response(bytes, &head, connection, context.client, b"", &mut out);
        if let Some(what) = unsound(&out, false) {
            return Some(format!("unsound head: {what}"));
        }
        if head.goes_verbatim(connection, context.client, b"") && out != bytes[..head.length] {
            return Some("the verbatim head is another one than the written head".to_owned());
        }
        bytes = &bytes[head.length..];
        if !head.is_interim() {
            break;
        }
    }
    // Without any status the client is gone before the answer.
    if !statuses.is_empty() && !statuses.contains(&head.status) {
        return Some(format!("{} goes on, expected {statuses:?}", head.status));
    }
    judge_body(expect, &head, bytes)
}

fn judge_body(expect: &Value, head: &ResponseHead, bytes: &[u8]) -> Option<String> {
    let cut = expect["client_truncated"] == true;
    match read_body(head.framing, bytes) {
        Err(_) if cut => None,
        Err(status) => Some(format!("body error {status}")),
        Ok((_, _, true)) if cut => Some("a body that must look cut is whole".to_owned()),
        Ok((data, _, done)) => {
            let bodies = texts(&expect["client_bodies"]);
            let whole = done || head.framing == Framing::UntilClose;
            let differs = whole && bodies.first().is_some_and(|body| *body != data) && !head.switching;
            differs.then(|| "another body than expected".to_owned())
        }
    }
}

/// What makes a head that we wrote ambiguous, if anything does.
fn unsound(head: &[u8], is_request: bool) -> Option<String> {
    let text: String = head.iter().map(|&byte| byte as char).collect();
    let Some(text) = text.strip_suffix("\r\n\r\n") else {
        return Some("no empty line".to_owned());
    };
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or("");
    let fields: Vec<(String, &str)> = lines
        .map(|line| {
            line.split_once(": ")
                .map_or((line.to_owned(), ""), |(n, v)| (n.to_ascii_lowercase(), v))
        })
        .collect();
    let count = |name: &str| fields.iter().filter(|(field, _)| field == name).count();
    let token = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_.!".contains(&b))
    };
    match () {
        () if text.replace("\r\n", "").contains(['\r', '\n', '\0']) => {
            Some("stray control characters".to_owned())
        }
        () if fields.iter().any(|(name, _)| !token(name)) => Some(format!("bad names in {fields:?}")),
        () if is_request && !(first.ends_with(" HTTP/1.1") && first.split(' ').count() == 3) => {
            Some(first.to_owned())
        }
        () if !is_request && !first.starts_with("HTTP/1.1 ") => Some(first.to_owned()),
        () if is_request && count("host") != 1 => Some(format!("{} Host lines", count("host"))),
        () if count("content-length") + count("transfer-encoding") > 1 => Some("two framings".to_owned()),
        () if count("connection") > 1 => Some("two Connection lines".to_owned()),
        () if count("keep-alive") + count("proxy-connection") > 0 => {
            Some("a field of the other hop".to_owned())
        }
        () => None,
    }
}

fn cases() -> Vec<Value> {
    let text = include_str!("conformance/h1_cases.jsonl");
    let cases: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object a line"))
        .collect();
    assert!(cases.len() > 300);
    cases
}

/// Everything that the client sends unasked.
fn client_bytes(case: &Value) -> Vec<u8> {
    match case["request_bytes"].as_str() {
        Some(text) => expand(text),
        None => sent(&case["client_steps"]),
    }
}

/// Everything that the server sends to the first request, if it is scripted.
fn server_bytes(case: &Value) -> Option<Vec<u8>> {
    let bytes = match case["upstream_response"].as_str() {
        Some(text) => expand(text),
        None => sent(&case["upstream_steps"]),
    };
    (!bytes.is_empty()).then_some(bytes)
}

fn sent(steps: &Value) -> Vec<u8> {
    let steps = steps.as_array().into_iter().flatten();
    steps
        .filter_map(|step| step["send"].as_str().or(step["drip"][0].as_str()))
        .flat_map(expand)
        .collect()
}

/// One character is one byte; `<<N*text>>` is N times the text.
fn expand(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, count, repeated, after)) = repetition(rest) {
        bytes.extend(latin1(before));
        (0..count).for_each(|_| bytes.extend(latin1(repeated)));
        rest = after;
    }
    bytes.extend(latin1(rest));
    bytes
}

fn repetition(text: &str) -> Option<(&str, usize, &str, &str)> {
    let (before, rest) = text.split_once("<<")?;
    let (count, rest) = rest.split_once('*')?;
    let (repeated, after) = rest.split_once(">>")?;
    Some((before, count.parse().ok()?, repeated, after))
}

fn latin1(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.chars().map(|character| character as u8)
}

fn numbers(value: &Value) -> Vec<u64> {
    value
        .as_u64()
        .into_iter()
        .chain(value.as_array().into_iter().flatten().filter_map(Value::as_u64))
        .collect()
}

fn texts(value: &Value) -> Vec<Vec<u8>> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(expand)
        .collect()
}

/// Acceptable sequences of statuses: a number, a list of numbers, or a list of sequences.
fn sequences(value: &Value) -> Vec<Vec<u16>> {
    let number = |value: &Value| value.as_u64().and_then(|status| u16::try_from(status).ok());
    let items = value
        .as_array()
        .cloned()
        .unwrap_or_else(|| number(value).map(Value::from).into_iter().collect());
    let sequence = |item: &Value| match item.as_array() {
        Some(list) => list.iter().filter_map(number).collect(),
        None => number(item).into_iter().collect(),
    };
    items.iter().map(sequence).collect()
}
