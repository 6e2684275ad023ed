//! Prints a configuration as it is in effect: TOML again, with every default written out.
//!
//! What is printed can be loaded, and means the same: host names have become addresses, `*:80` two of them. Paths stand as
//! they were written, so it has to lie in the same folder. A key that has
//! no value stands there as a comment, so that the reader sees every key there is.

use super::defaults;
use super::model::{
    self, Affinity, Attempts, Backend, Balance, Config, Forwarded, HashBalance, HashKey, KeepRule, KeyOf,
    Listen, LoadReport, LogFormat, LogTarget, Mapping, Mode, OnFault, Otherwise, Override, Policy, PolicyRef,
    Pool, Process, Redispatch, Server, Sharing,
};
use super::units::{show_duration, show_offset, show_share, show_size};
use crate::decide::edit::{Edit, Edits};
use crate::decide::redirect::{Cookie, Query, Redirect, Target};
use crate::decide::route::{Action, Matcher, PathPattern, Respond, Route};
use serde_json::Value as Json;
use std::time::Duration;

/// The whole configuration as TOML.
pub fn show(config: &Config) -> String {
    let mut out = Lines::default();
    process(&config.process, &mut out);
    for listen in &config.listeners {
        listener(listen, config, &mut out);
    }
    for each in &config.backends {
        backend(each, &config.policies, &mut out);
    }
    for each in &config.policies {
        policy(each, &mut out);
    }
    out.0
}

fn process(process: &Process, out: &mut Lines) {
    out.line("[process]");
    out.value("workers", process.workers);
    out.maybe(
        "control",
        process
            .control
            .as_ref()
            .map(|path| quote(&path.display().to_string())),
        "none",
    );
    out.maybe(
        "metrics",
        process.metrics.map(|address| quote(&address.to_string())),
        "none",
    );
    let format = match process.log.format {
        LogFormat::Json => "json",
        LogFormat::Human => "human",
    };
    let to = match &process.log.to {
        LogTarget::None => "none".into(),
        LogTarget::Stdout => "stdout".into(),
        LogTarget::Stderr => "stderr".into(),
        LogTarget::File(path) => path.display().to_string(),
    };
    out.value("log", format!("{{ format = \"{format}\", to = {} }}", quote(&to)));
    out.value("pool-low-fd-ratio", process.pool_low_fd_ratio);
    out.value("pool-high-fd-ratio", process.pool_high_fd_ratio);
    let sharing = match process.pool_sharing {
        Sharing::On => "on",
        Sharing::Off => "off",
    };
    out.value("pool-sharing", quote(sharing));
    out.duration("hard-stop-after", process.hard_stop_after);
    out.value("attachments-max", process.attachments_max);
    let cache = process.plugin_cache.as_ref();
    out.maybe("plugin-cache", cache.map(|path| quote(&path.written)), "none");
}

fn listener(listen: &Listen, config: &Config, out: &mut Lines) {
    out.line("\n[[listen]]");
    out.value("name", quote(&listen.name));
    out.value(
        "bind",
        list(listen.bind.iter().map(|address| quote(&address.to_string()))),
    );
    let workers = (!listen.workers.is_empty())
        .then(|| list(listen.workers.iter().map(|worker| (worker + 1).to_string())));
    out.maybe("workers", workers, "all");
    let name = |backend: usize| quote(&config.backends[backend].name);
    out.maybe(
        "backend",
        listen.routes.default.map(|backend| name(usize::from(backend.0))),
        "none",
    );
    out.duration("timeout-http-request", listen.timeouts.http_request);
    out.duration("timeout-client", listen.timeouts.inactivity);
    out.duration("timeout-http-keep-alive", listen.timeouts.http_keep_alive);
    out.duration("timeout-tunnel", listen.timeouts.tunnel);
    out.size("head-max", listen.limits.head_max);
    out.size("request-line-max", listen.limits.request_line_max);
    out.value("headers-max", listen.limits.headers_max);
    out.value("max-session-srv-conns", listen.session_private_max);
    out.edits(&listen.request_edits, &listen.response_edits);
    let forwarded = match listen.forwarded {
        Forwarded::Append => "append",
        Forwarded::Replace => "replace",
        Forwarded::Off => "off",
    };
    out.value("x-forwarded", quote(forwarded));
    out.value("via", quote(listen.via.as_deref().unwrap_or("off")));
    let policy = listen
        .route_policy
        .map(|policy| quote(&config.policy(policy).name));
    out.maybe("route-policy", policy, "none");
    for (each, called) in listen.routes.routes.iter().zip(&listen.route_names) {
        route(each, called.as_deref(), name, out);
    }
}

fn route(route: &Route, called: Option<&str>, name: impl Fn(usize) -> String, out: &mut Lines) {
    out.line("\n[[listen.route]]");
    out.maybe("name", called.map(quote), "none");
    out.maybe("match", matcher(&route.matcher), "everything");
    match &route.action {
        Action::Backend(backend) => out.value("backend", name(usize::from(backend.0))),
        Action::Redirect(to) => out.value("redirect", redirect(to)),
        Action::Respond(with) => out.value("respond", respond(with)),
        Action::Deny(status) => out.value("deny", status),
    }
    if matches!(route.action, Action::Backend(_)) {
        out.value("priority-class", route.priority.class);
        out.value("priority-offset", quote(&show_offset(route.priority.offset)));
    }
    out.edits(&route.request_edits, &route.response_edits);
}

fn matcher(matcher: &Matcher) -> Option<String> {
    let paths = |exact: bool| {
        let kind = matcher
            .paths
            .iter()
            .filter(move |path| matches!(path, PathPattern::Exact(_)) == exact);
        kind.map(|path| quote(path.text()))
    };
    let mut pairs = Vec::new();
    let mut any_of = |key: &str, texts: Vec<String>| {
        if !texts.is_empty() {
            pairs.push(format!("{key} = {}", list(texts.into_iter())));
        }
    };
    any_of(
        "host",
        matcher
            .hosts
            .iter()
            .map(|host| quote(&host.to_string()))
            .collect(),
    );
    any_of("path", paths(true).collect());
    any_of("path-prefix", paths(false).collect());
    any_of(
        "method",
        matcher
            .methods
            .iter()
            .map(|method| quote(method.text()))
            .collect(),
    );
    pairs.extend(
        matcher
            .share
            .map(|share| format!("share = {}", quote(&show_share(share.in_millionths())))),
    );
    (!pairs.is_empty()).then(|| table(&pairs))
}

fn redirect(redirect: &Redirect) -> String {
    let mut pairs = Vec::new();
    match &redirect.target {
        Target::Location {
            to,
            keep_query,
            ignore_empty,
        } => {
            pairs.push(format!("location = {}", quote(to.source())));
            pairs.push(format!("keep-query = {keep_query}"));
            pairs.push(format!("ignore-empty = {ignore_empty}"));
        }
        Target::Prefix { to, query } | Target::Scheme { to, query } => {
            let way = if matches!(redirect.target, Target::Prefix { .. }) {
                "prefix"
            } else {
                "scheme"
            };
            pairs.push(format!("{way} = {}", quote(to.source())));
            pairs.push(format!("drop-query = {}", *query != Query::Keep));
            pairs.push(format!("append-slash = {}", *query == Query::DropAndSlash));
        }
    }
    pairs.push(format!("code = {}", redirect.status.code()));
    pairs.extend(redirect.cookie.as_ref().map(|cookie| match cookie {
        Cookie::Set(text) => format!("set-cookie = {}", quote(text.text())),
        Cookie::Clear(text) => format!("clear-cookie = {}", quote(text.text())),
    }));
    table(&pairs)
}

fn respond(respond: &Respond) -> String {
    let body = quote(&String::from_utf8_lossy(respond.body()));
    let kind = quote(respond.content_type());
    table(&[
        format!("status = {}", respond.status()),
        format!("body = {body}"),
        format!("content-type = {kind}"),
    ])
}

fn backend(backend: &Backend, policies: &[Policy], out: &mut Lines) {
    out.line(&format!("\n[backend.{}]", name(&backend.name)));
    let named = |policy: PolicyRef| quote(&policies[usize::from(policy.0)].name);
    let chooser = match backend.policy {
        Some(policy) => table(&[format!("policy = {}", named(policy))]),
        None => balance(&backend.balance),
    };
    out.value("balance", chooser);
    out.value("allbackups", backend.all_backups);
    let slow = backend.slow_start.map(|time| quote(&show_duration(time)));
    out.maybe("slowstart", slow, "at once");
    out.value("prefer-last-server", backend.prefer_last_server);
    out.maybe("cookie", backend.cookie.as_ref().map(cookie), "none");
    pool(&backend.pool, backend.reuse_policy.map(named), out);
    attempts(&backend.attempts, out);
    limits(backend, out);
    out.duration("timeout-connect", backend.timeouts.connect);
    out.duration("timeout-server", backend.timeouts.inactivity);
    out.duration("timeout-queue", backend.timeouts.queue);
    out.maybe("queue-policy", backend.queue_policy.map(named), "none");
    out.value(
        "load-report",
        match backend.load_report.passing {
            None => "false",
            Some(LoadReport::Taken) => "true",
            Some(LoadReport::Passed) => "\"pass\"",
        },
    );
    out.duration("load-report-max-age", backend.load_report.age_max);
    out.edits(&backend.request_edits, &backend.response_edits);
    out.line("servers = [");
    for server in &backend.servers {
        out.line(&format!("    {},", one_server(server)));
    }
    out.line("]");
}

fn attempts(attempts: &Attempts, out: &mut Lines) {
    let causes = attempts.retry_on.words().map(quote);
    out.value("retry-on", list(causes));
    out.value("retries", attempts.retries);
    let redispatch = match attempts.redispatch {
        Redispatch::Never => "false".to_owned(),
        Redispatch::USUAL => "true".to_owned(),
        Redispatch::Every(each) => each.to_string(),
        Redispatch::BeforeEnd(before) => format!("-{before}"),
    };
    out.value("redispatch", redispatch);
    out.duration("retry-delay", attempts.delay);
    match attempts.budget {
        Some(budget) => {
            out.value("retry-budget", quote(&show_share(budget.share)));
            out.value("retry-budget-min", budget.least);
        }
        None => out.line("# retry-budget: none"),
    }
}

fn limits(backend: &Backend, out: &mut Lines) {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    out.maybe("maxconn", number(backend.limits.max), "no limit");
    out.maybe("minconn", number(backend.limits.min), "none");
    let moves = backend.servers.iter().any(|server| server.limits.min.is_some());
    let fullconn = moves.then_some(backend.fullconn);
    out.maybe("fullconn", number(fullconn), "no limit moves");
    out.maybe("maxqueue", number(backend.limits.queue), "no limit");
}

fn pool(pool: &Pool, policy: Option<String>, out: &mut Lines) {
    let reuse = match pool.reuse {
        Mode::Never => "never",
        Mode::Safe => "safe",
        Mode::Aggressive => "aggressive",
        Mode::Always => "always",
    };
    out.value("reuse", quote(reuse));
    out.maybe("reuse-policy", policy, "none");
    let overriding = match pool.overriding {
        Override::Refused => "refuse",
        Override::Allowed => "allow",
    };
    out.value("reuse-override", quote(overriding));
    out.value("pool-low-conn", pool.low);
    out.maybe("pool-max-conn", pool.max.map(|max| max.to_string()), "no limit");
    out.duration("pool-purge-delay", pool.purge_delay);
    let keep = match pool.keep {
        KeepRule::Plain => "first",
        KeepRule::EqualShare => "equal",
    };
    out.value("pool-keep", quote(keep));
    out.maybe("max-reuse", pool.max_reuse.map(|max| max.to_string()), "no limit");
    out.maybe(
        "strict-maxconn",
        pool.strict_max.map(|max| max.to_string()),
        "no limit",
    );
    out.maybe(
        "pool-conn-name",
        pool.name.as_ref().map(|name| quote(name.source())),
        "none",
    );
    out.maybe(
        "source",
        pool.source.map(|source| quote(&source.to_string())),
        "the system's choice",
    );
    out.value("prefer-idle", pool.prefer_idle);
}

fn balance(balance: &Balance) -> String {
    match balance {
        Balance::Random(draws) => format!("{{ random = {draws} }}"),
        Balance::RoundRobin => quote("roundrobin"),
        Balance::LeastConn => quote("leastconn"),
        Balance::First => quote("first"),
        Balance::Sticky => quote("sticky"),
        Balance::Hash(it) => hash(it),
    }
}

fn hash(balance: &HashBalance) -> String {
    let of = match &balance.of {
        KeyOf::Source => quote("source"),
        KeyOf::Uri => quote("uri"),
        KeyOf::Path => quote("path"),
        KeyOf::PathPrefix(segments) => table(&[format!("path-prefix = {segments}")]),
        KeyOf::PathPart(at) => table(&[format!("path-part = {at}")]),
        KeyOf::Header(name) => table(&[format!("header = {}", quote(name))]),
        KeyOf::Cookie(name) => table(&[format!("cookie = {}", quote(name))]),
        KeyOf::Query(name) => table(&[format!("query = {}", quote(name))]),
    };
    let mapping = match balance.hash.mapping {
        Mapping::Consistent => "consistent",
        Mapping::Map => "map-based",
    };
    let affinity = match balance.hash.affinity {
        Affinity::Always => "always",
        Affinity::Maxconn => "maxconn",
        Affinity::Maxqueue => "maxqueue",
    };
    let otherwise = match balance.hash.otherwise {
        Otherwise::Random(draws) => table(&[format!("random = {draws}")]),
        Otherwise::RoundRobin => quote("roundrobin"),
        Otherwise::LeastConn => quote("leastconn"),
        Otherwise::First => quote("first"),
    };
    let by = match balance.by {
        HashKey::Name => "name",
        HashKey::Address => "address",
    };
    let mut pairs = vec![format!("hash = {of}"), format!("type = {}", quote(mapping))];
    pairs.extend(balance.hash.bound.map(|bound| format!("bound = {bound}")));
    pairs.push(format!("affinity = {}", quote(affinity)));
    pairs.push(format!("else = {otherwise}"));
    pairs.push(format!("hash-key = {}", quote(by)));
    pairs.push(format!("function = {}", quote(defaults::HASH_FUNCTION)));
    table(&pairs)
}

fn cookie(cookie: &model::Cookie) -> String {
    let mut pairs = vec![
        format!("name = {}", quote(&cookie.name)),
        format!("http-only = {}", cookie.http_only),
        format!("secure = {}", cookie.secure),
        format!("same-site = {}", quote(cookie.same_site.word())),
        format!("path = {}", quote(&cookie.path)),
    ];
    let domain = cookie.domain.as_ref();
    pairs.extend(domain.map(|domain| format!("domain = {}", quote(domain))));
    let age = cookie.max_age.map(|age| quote(&show_duration(age)));
    pairs.extend(age.map(|age| format!("max-age = {age}")));
    pairs.push(format!("private = {}", cookie.private));
    table(&pairs)
}

fn policy(policy: &Policy, out: &mut Lines) {
    out.line(&format!("\n[policy.{}]", name(&policy.name)));
    out.value("component", quote(&policy.component.written));
    // Ours, and so it can be read.
    let config = serde_json::from_str(&policy.config_json).unwrap_or_default();
    out.value("config", inline(&config));
    out.value("fallback", balance(&policy.fallback));
    let on_fault = match policy.on_fault {
        OnFault::Fallback => "fallback",
        OnFault::Deny => "deny",
    };
    out.value("on-fault", quote(on_fault));
    out.duration("deadline", policy.deadline);
    out.duration("mean-max", policy.mean_max);
    out.size("memory-max", policy.memory_max);
    out.duration("interval", policy.interval);
    let grants: Vec<String> = policy.grants.iter().map(|grant| quote(grant.word())).collect();
    out.maybe(
        "grants",
        (!grants.is_empty()).then(|| list(grants.into_iter())),
        "none",
    );
    let digest = |digest: &[u8; 32]| {
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    out.maybe(
        "sha256",
        policy.sha256.as_ref().map(|it| quote(&digest(it))),
        "any",
    );
}

/// JSON as TOML writes it; what came from TOML has no null.
fn inline(json: &Json) -> String {
    match json {
        Json::String(text) => quote(text),
        Json::Array(items) => list(items.iter().map(inline)),
        Json::Object(pairs) if pairs.is_empty() => "{}".into(),
        Json::Object(pairs) => {
            let pair = |(key, value): (&String, &Json)| format!("{} = {}", name(key), inline(value));
            table(&pairs.iter().map(pair).collect::<Vec<_>>())
        }
        plain => plain.to_string(),
    }
}

fn one_server(server: &Server) -> String {
    let (name, address) = (quote(&server.name), quote(&server.address.to_string()));
    let mut pairs = vec![
        format!("name = {name}"),
        format!("address = {address}"),
        format!("weight = {}", server.weight),
        format!("backup = {}", server.backup),
    ];
    let limits = [
        ("maxconn", server.limits.max),
        ("minconn", server.limits.min),
        ("maxqueue", server.limits.queue),
    ];
    let given = limits.iter().filter_map(|(key, limit)| Some((key, (*limit)?)));
    pairs.extend(given.map(|(key, limit)| format!("{key} = {limit}")));
    let cookie = server.cookie.as_ref();
    pairs.extend(cookie.map(|cookie| format!("cookie = {}", quote(cookie))));
    let tags: Vec<_> = server
        .tags
        .iter()
        .map(|(tag, value)| format!("{} = {}", self::name(tag), quote(value)))
        .collect();
    pairs.extend((!tags.is_empty()).then(|| format!("tags = {}", table(&tags))));
    table(&pairs)
}

fn edits(edits: &Edits) -> Option<String> {
    let mut removed = Vec::new();
    let mut set = Vec::new();
    let mut added: Vec<(String, Vec<String>)> = Vec::new();
    for edit in &edits.list {
        match edit {
            Edit::Remove(field) => removed.push(quote(field.text())),
            Edit::Set(field, value) => {
                set.push(format!("{} = {}", name(field.text()), quote(value.source())))
            }
            Edit::Add(field, value) => match added.last_mut() {
                Some((last, values)) if last == field.text() => values.push(quote(value.source())),
                _ => added.push((field.text().to_owned(), vec![quote(value.source())])),
            },
        }
    }
    let added: Vec<_> = added
        .iter()
        .map(|(field, values)| format!("{} = {}", name(field), list(values.iter().cloned())))
        .collect();
    let mut pairs = Vec::new();
    pairs.extend((!removed.is_empty()).then(|| format!("remove = {}", list(removed.into_iter()))));
    pairs.extend((!set.is_empty()).then(|| format!("set = {}", table(&set))));
    pairs.extend((!added.is_empty()).then(|| format!("add = {}", table(&added))));
    (!pairs.is_empty()).then(|| table(&pairs))
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn value(&mut self, key: &str, value: impl std::fmt::Display) {
        self.line(&format!("{key} = {value}"));
    }

    fn maybe(&mut self, key: &str, value: Option<String>, absent: &str) {
        match value {
            Some(value) => self.value(key, value),
            None => self.line(&format!("# {key}: {absent}")),
        }
    }

    fn duration(&mut self, key: &str, value: Duration) {
        self.value(key, quote(&show_duration(value)));
    }

    fn size(&mut self, key: &str, bytes: usize) {
        self.value(key, quote(&show_size(bytes as u64)));
    }

    fn edits(&mut self, request: &Edits, response: &Edits) {
        self.maybe("request-headers", edits(request), "none");
        self.maybe("response-headers", edits(response), "none");
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn table(pairs: &[String]) -> String {
    format!("{{ {} }}", pairs.join(", "))
}

/// A key, quoted where it has to be.
fn name(name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if bare { name.to_owned() } else { quote(name) }
}

/// A basic string of TOML.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            sign if sign.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(sign))),
            sign => quoted.push(sign),
        }
    }
    quoted.push('"');
    quoted
}
