//! From the sections of a scenario to its [`Scenario`].

use super::model::{
    Asks, Behaviour, Costs, Event, Expect, Keys, Line, Machine, Pattern, Reload, Scenario, Show, Span, State,
    Traffic, Who,
};
use crate::config::errors::Report;
use crate::config::keys::{Default, Section};
use crate::config::read::Fields;
use crate::config::units;
use crate::config::words::kind;
use crate::config::{Config, model};
use std::path::Path;
use std::time::Duration;
use toml::de::DeValue;

/// Reads all of them. `config` is the configuration that is simulated.
pub(super) fn scenario(
    named: &Fields<'_>,
    file: &Fields<'_>,
    config: &Config,
    folder: &Path,
    report: &mut Report,
) -> Scenario {
    let duration = named.duration("duration", report);
    let events = file.tables("event", report);
    let reader = Reader {
        config,
        folder,
        later: later(&events, folder),
    };
    let mut traffic: Vec<Traffic> = file
        .tables("traffic", report)
        .iter()
        .filter_map(|fields| reader.traffic(fields, report))
        .collect();
    traffic.extend(reader.script(&file.tables("request", report), report));
    if traffic.is_empty() && !file.is_meant("traffic") && !file.is_meant("request") {
        report.wrong(
            named.at.clone(),
            "nobody asks",
            "expected `[[traffic]]` or `[[request]]`",
            "",
        );
    }
    let mut events: Vec<Event> = events
        .iter()
        .map(|fields| reader.event(fields, duration, report))
        .collect();
    events.sort_by_key(|event| event.at);
    Scenario {
        about: text(named, "about", report),
        config: config.clone(),
        workers: named.integer("workers", report) as u16, // at most 64
        seed: named.integer("seed", report),
        duration,
        requests: named.given_integer("requests", report).map(|(number, _)| number),
        connect: named.duration("connect", report),
        patience: span(named, "patience", report),
        contention: named.percent("contention", report) as u8, // at most 100
        descriptors: named.integer("descriptors", report) as u32,
        costs: named
            .table("costs", report)
            .map_or_else(Costs::default, |fields| costs(&fields, report)),
        machines: file
            .tables("server", report)
            .iter()
            .map(|fields| reader.machine(fields, report))
            .collect(),
        traffic,
        events,
        show: show(file.table("show", report).as_ref(), duration, report),
        expect: file
            .table("expect", report)
            .map_or_else(Expect::default, |fields| reader.expect(&fields, report)),
    }
}

/// What the sections refer to.
struct Reader<'a> {
    config: &'a Config,
    folder: &'a Path,
    /// The configurations of events.
    later: Vec<Config>,
}

impl Reader<'_> {
    fn machine(&self, fields: &Fields<'_>, report: &mut Report) -> Machine {
        let names = match fields.has("name") {
            true => self.patterns(fields, "name", report),
            false => vec![Pattern("*".into())],
        };
        let behaviour = Behaviour {
            closes_after: number(fields, "closes-after", report),
            ..self.behaviour(fields, report)
        };
        Machine { names, behaviour }
    }

    /// What a server and an event have in common.
    fn behaviour(&self, fields: &Fields<'_>, report: &mut Report) -> Behaviour {
        Behaviour {
            service: span(fields, "service", report),
            capacity: number(fields, "capacity", report),
            closes_after: None,
            report: fields.text("report", report).map(|text| text.text.to_owned()),
            refuses: fields.share("refuses", report),
            drops: fields.share("drops", report),
            errors: fields.share("errors", report),
            hangs: fields.share("hangs", report),
            down: fields.given_flag("down", report),
        }
    }

    /// Names of servers; one that fits none is a mistake.
    fn patterns(&self, fields: &Fields<'_>, name: &str, report: &mut Report) -> Vec<Pattern> {
        let texts = fields.texts(name, report);
        let patterns = texts.iter().map(|text| {
            let pattern = Pattern(text.text.to_owned());
            if !self.fits_any(&pattern) {
                let found = format!("no server is called \"{}\"", text.text.escape_debug());
                report.wrong(
                    text.at.clone(),
                    found,
                    "expected BACKEND/SERVER",
                    "`*` stands for anything",
                );
            }
            pattern
        });
        patterns.collect()
    }

    fn fits_any(&self, pattern: &Pattern) -> bool {
        let configs = std::iter::once(self.config).chain(&self.later);
        let mut backends = configs.flat_map(|config| &config.backends);
        backends.any(|backend| {
            let mut servers = backend.servers.iter();
            servers.any(|server| pattern.fits(&backend.name, &server.name))
        })
    }

    fn listener(&self, fields: &Fields<'_>, report: &mut Report) -> u16 {
        let Some(text) = fields.text("listen", report) else {
            return 0;
        };
        let at = self
            .config
            .listeners
            .iter()
            .position(|listen| listen.name == text.text);
        if at.is_none() {
            let found = format!("there is no listener \"{}\"", text.text.escape_debug());
            report.wrong(text.at, found, "expected the name of a listener", "");
        }
        at.unwrap_or_default() as u16
    }

    fn traffic(&self, fields: &Fields<'_>, report: &mut Report) -> Option<Traffic> {
        let think = span(fields, "think", report);
        let rate = number(fields, "rate", report);
        let clients = number(fields, "clients", report);
        let even = fields.choice("pace", report) == "even";
        let burst = fields.integer("burst", report) as u32;
        let session = number(fields, "session", report);
        let who = match (think, rate) {
            (Some(think), None) => Who::Clients {
                count: clients.unwrap_or(1),
                think,
                session,
            },
            (None, Some(rate)) => Who::Rate {
                rate,
                even,
                burst,
                clients: clients.unwrap_or(rate.clamp(1, 1_000)),
            },
            _ => {
                let found = "`[[traffic]]` needs one of `think` and `rate`";
                let help =
                    "with `think`, clients wait for their response; with `rate`, requests come by themselves";
                report.wrong(fields.at.clone(), found, "expected exactly one of them", help);
                return None;
            }
        };
        let keys = keys(fields, report);
        Some(Traffic {
            who,
            asks: asks(fields, keys, report),
            listener: self.listener(fields, report),
            from: fields.duration("from", report),
            until: fields.given_duration("until", report),
        })
    }

    /// All single requests: those of one listener are one traffic.
    fn script(&self, all: &[Fields<'_>], report: &mut Report) -> Vec<Traffic> {
        let mut scripts: Vec<Traffic> = Vec::new();
        for fields in all {
            let asks = asks(fields, Keys::One, report);
            let (at, every) = (given(fields, "at", report), fields.duration("every", report));
            let service = fields.given_duration("service", report);
            let first = fields.integer("client", report) as u32;
            let count = fields.integer("count", report) as u32;
            let lines = (0..count).map(|nth| Line {
                at: at + every * nth,
                client: first + nth,
                asks: Some(asks.clone()),
                service,
            });
            let listener = self.listener(fields, report);
            let known = scripts.iter_mut().find(|script| script.listener == listener);
            match known.map(|script| &mut script.who) {
                Some(Who::Script(known)) => known.extend(lines),
                _ => scripts.push(Traffic {
                    who: Who::Script(lines.collect()),
                    asks,
                    listener,
                    from: Duration::ZERO,
                    until: None,
                }),
            }
        }
        scripts
    }

    fn event(&self, fields: &Fields<'_>, duration: Duration, report: &mut Report) -> Event {
        let at = given(fields, "at", report);
        if at > duration
            && let Some(value) = fields.raw("at")
        {
            let found = format!("`at` is {}", units::show_duration(at));
            let expected = format!("expected at most `duration`, {}", units::show_duration(duration));
            report.wrong(value.span(), found, expected, "nobody asks any more by then");
        }
        let behaviour = self.behaviour(fields, report);
        let state = match fields.choice("state", report) {
            "ready" => Some(State::Ready),
            "drain" => Some(State::Drain),
            "maint" => Some(State::Maint),
            _ => None,
        };
        let weight = number(fields, "weight", report).map(|weight| weight as u16); // at most 256
        let maxconn = number(fields, "maxconn", report);
        let servers = self.patterns(fields, "server", report);
        let reload = self.reload(fields, report);
        let about =
            state.is_some() || weight.is_some() || maxconn.is_some() || behaviour != Behaviour::default();
        if about && !fields.is_meant("server") {
            report.wrong(
                fields.at.clone(),
                "`server` is missing in [[event]]",
                "expected \"BACKEND/SERVER\"",
                "",
            );
        }
        if !about && reload.is_none() {
            let help = "give `state`, `weight`, `maxconn`, `service`, `down` …, `config`, or `policy` and `component`";
            report.wrong(
                fields.at.clone(),
                "nothing happens in this event",
                "expected what changes",
                help,
            );
        }
        Event {
            at,
            servers,
            state,
            weight,
            maxconn,
            behaviour,
            reload,
        }
    }

    fn reload(&self, fields: &Fields<'_>, report: &mut Report) -> Option<Reload> {
        if let Some(path) = fields.text("config", report) {
            return Some(Reload::File(self.folder.join(path.text)));
        }
        let (policy, component) = (fields.text("policy", report), fields.text("component", report));
        let (policy, component) = match (policy, component) {
            (Some(policy), Some(component)) => (policy, component),
            (None, None) => return None,
            _ => {
                let found = "one of `policy` and `component` is missing";
                report.wrong(
                    fields.at.clone(),
                    found,
                    "expected both",
                    "which policy, and what it is swapped for",
                );
                return None;
            }
        };
        let policies = &self.config.policies;
        let at = policies.iter().position(|known| known.name == policy.text);
        if at.is_none() {
            let found = format!("there is no policy \"{}\"", policy.text.escape_debug());
            report.wrong(policy.at, found, "expected the name of a policy", "");
        }
        Some(Reload::Component(
            model::PolicyRef(at? as u16),
            self.folder.join(component.text),
        ))
    }

    fn expect(&self, fields: &Fields<'_>, report: &mut Report) -> Expect {
        Expect {
            shares: self.shares(fields, report),
            least_share: fields.share("least-share", report),
            most_share: fields.share("most-share", report),
            queueing_p50: fields.given_duration("queueing-p50", report),
            queueing_p99: fields.given_duration("queueing-p99", report),
            latency_p50: fields.given_duration("latency-p50", report),
            latency_p99: fields.given_duration("latency-p99", report),
            reuse: fields.share("reuse", report),
            most_reuse: fields.share("most-reuse", report),
            failed: fields.given_integer("failed", report).map(|(number, _)| number),
            fallbacks: fields
                .given_integer("fallbacks", report)
                .map(|(number, _)| number),
            fuel: fields.given_integer("fuel", report).map(|(number, _)| number),
            moved_keys: fields.share("moved-keys", report),
        }
    }

    fn shares(&self, fields: &Fields<'_>, report: &mut Report) -> Vec<(Pattern, u32, u32)> {
        const EXPECTED: &str = "expected a table such as { \"app/a\" = \"18%..22%\" }";
        let mut shares = Vec::new();
        let Some(value) = fields.raw("share") else {
            return shares;
        };
        let DeValue::Table(table) = value.get_ref() else {
            report.wrong(
                value.span(),
                format!("`share` is {}", kind(value.get_ref())),
                EXPECTED,
                "",
            );
            return shares;
        };
        for (name, range) in table.iter() {
            let pattern = Pattern(name.get_ref().to_string());
            if !self.fits_any(&pattern) {
                let found = format!("no server is called \"{}\"", name.get_ref().escape_debug());
                report.wrong(
                    name.span(),
                    found,
                    "expected BACKEND/SERVER",
                    "`*` stands for anything",
                );
            }
            let bounds = range.get_ref().as_str().and_then(|text| text.split_once(".."));
            let bounds = bounds.and_then(|(low, high)| {
                Some((units::share(low.trim()).ok()?, units::share(high.trim()).ok()?))
            });
            match bounds.filter(|(low, high)| low <= high) {
                Some((low, high)) => shares.push((pattern, low, high)),
                None => report.wrong(range.span(), "this is no range of shares", EXPECTED, ""),
            }
        }
        shares
    }
}

/// The configurations that events bring, for the servers in them. One that is wrong brings none: the transcript says why.
fn later(events: &[Fields<'_>], folder: &Path) -> Vec<Config> {
    let named = |fields: &Fields<'_>| Some(folder.join(fields.raw("config")?.get_ref().as_str()?));
    let files = events.iter().filter_map(named);
    files.filter_map(|file| super::config(&file).ok()).collect()
}

fn costs(fields: &Fields<'_>, report: &mut Report) -> Costs {
    let mut cost = |name| fields.duration(name, report);
    Costs {
        request: cost("request"),
        response: cost("response"),
        open: cost("open"),
        takeover: cost("takeover"),
        grant: cost("grant"),
    }
}

fn show(fields: Option<&Fields<'_>>, duration: Duration, report: &mut Report) -> Show {
    /// Points of a chart.
    const POINTS: u32 = 40;
    let usual = (duration / POINTS).max(Duration::from_millis(1));
    let step = fields.and_then(|fields| fields.given_duration("step", report));
    let decisions = match fields {
        Some(fields) => fields.integer("decisions", report),
        None => match Section::Show.key("decisions").map(|key| key.default) {
            Some(Default::Integer(usual)) => usual,
            _ => unreachable!("the table of keys says so"),
        },
    };
    Show {
        decisions: decisions as u32, // at most 180
        step: step.filter(|step| !step.is_zero()).unwrap_or(usual),
    }
}

/// What requests look like.
fn asks(fields: &Fields<'_>, keys: Keys, report: &mut Report) -> Asks {
    let asks = Asks {
        method: text(fields, "method", report),
        host: text(fields, "host", report),
        path: text(fields, "path", report),
        headers: headers(fields, report),
        keys,
    };
    let texts = [&asks.method, &asks.host, &asks.path].into_iter();
    let texts = texts.chain(asks.headers.iter().flat_map(|(name, value)| [name, value]));
    let broken = |text: &String| text.bytes().any(|byte| byte.is_ascii_control());
    let names_are_tokens = asks.headers.iter().all(|(name, _)| crate::policy::is_token(name));
    let path_is_one = asks.path.starts_with('/') && !asks.path.contains(' ');
    if texts.into_iter().any(broken)
        || !crate::policy::is_token(&asks.method)
        || !path_is_one
        || asks.host.contains([' ', '/'])
        || !names_are_tokens
    {
        let expected = "expected a token as `method`, a path that begins with `/`, and fields without control characters";
        report.wrong(fields.at.clone(), "this is no request", expected, "");
    }
    asks
}

fn headers(fields: &Fields<'_>, report: &mut Report) -> Vec<(String, String)> {
    let Some(value) = fields.raw("headers") else {
        return Vec::new();
    };
    let DeValue::Table(table) = value.get_ref() else {
        let found = format!("`headers` is {}", kind(value.get_ref()));
        report.wrong(
            value.span(),
            found,
            "expected a table such as { x-user = \"{key}\" }",
            "",
        );
        return Vec::new();
    };
    let mut headers: Vec<(usize, String, String)> = Vec::new();
    for (name, value) in table.iter() {
        match value.get_ref().as_str() {
            Some(text) => headers.push((name.span().start, name.get_ref().to_string(), text.to_owned())),
            None => report.wrong(
                value.span(),
                format!("`{}` is {}", name.get_ref(), kind(value.get_ref())),
                "expected a string",
                "",
            ),
        }
    }
    headers.sort();
    headers
        .into_iter()
        .map(|(_, name, value)| (name, value))
        .collect()
}

fn keys(fields: &Fields<'_>, report: &mut Report) -> Keys {
    let Some(value) = fields.raw("keys") else {
        return Keys::One;
    };
    match value.get_ref() {
        DeValue::Array(list) if !list.is_empty() => {
            let texts: Option<Vec<String>> = list
                .iter()
                .map(|text| Some(text.get_ref().as_str()?.to_owned()))
                .collect();
            if let Some(texts) = texts {
                return Keys::Of(texts);
            }
        }
        DeValue::Table(table) => {
            let fields = Fields::of(Section::Keys, table, value.span(), report);
            let (uniform, zipf) = (
                number(&fields, "uniform", report),
                number(&fields, "zipf", report),
            );
            let exponent = fields.integer("exponent", report) as u16; // at most 400
            match (uniform, zipf) {
                (Some(count), None) => return Keys::Uniform(count),
                (None, Some(count)) => return Keys::Zipf(count, exponent),
                _ => {}
            }
        }
        _ => {}
    }
    report.wrong(
        value.span(),
        "`keys` says no keys",
        "expected a list of texts, { uniform = N } or { zipf = N }",
        "",
    );
    Keys::One
}

/// A time that may be drawn.
fn span(fields: &Fields<'_>, name: &str, report: &mut Report) -> Option<Span> {
    const EXPECTED: &str = "expected \"10ms\", { mean = \"10ms\" }, { from = \"5ms\", to = \"15ms\" } or { median = \"10ms\", p99 = \"80ms\" }";
    let value = fields.raw(name)?;
    match value.get_ref() {
        DeValue::String(text) => match units::duration(text) {
            Ok(time) => return Some(Span::Constant(time)),
            Err(_) => {
                let found = format!("`{name}` is \"{}\"", text.escape_debug());
                report.wrong(value.span(), found, EXPECTED, "");
                return None;
            }
        },
        DeValue::Table(table) => {
            let fields = Fields::of(Section::Span, table, value.span(), report);
            let mut time = |name| fields.given_duration(name, report);
            let (mean, from, to) = (time("mean"), time("from"), time("to"));
            let (median, p99) = (time("median"), time("p99"));
            match (mean, from, to, median, p99) {
                (Some(mean), None, None, None, None) => return Some(Span::Mean(mean)),
                (None, Some(from), Some(to), None, None) if from <= to => {
                    return Some(Span::Between(from, to));
                }
                (None, None, None, Some(median), Some(p99)) if median <= p99 => {
                    return Some(Span::Tail(median, p99));
                }
                _ => {}
            }
        }
        _ => {}
    }
    report.wrong(value.span(), format!("`{name}` is no time"), EXPECTED, "");
    None
}

fn number(fields: &Fields<'_>, name: &str, report: &mut Report) -> Option<u32> {
    fields
        .given_integer(name, report)
        .map(|(number, _)| number as u32) // by its range
}

/// A duration that has to be given; that it is not was reported.
fn given(fields: &Fields<'_>, name: &str, report: &mut Report) -> Duration {
    fields.given_duration(name, report).unwrap_or_default()
}

/// A text or its default.
fn text(fields: &Fields<'_>, name: &str, report: &mut Report) -> String {
    match (fields.text(name, report), fields.key(name).default) {
        (Some(text), _) => text.text.to_owned(),
        (None, Default::Word(usual)) => usual.to_owned(),
        (None, _) => String::new(),
    }
}
