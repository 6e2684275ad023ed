//! The questions to a policy that picks: tables that change, keys of all kinds, servers that get crowded.

use super::request::{Request, asked};
use super::{Transcript, attach};
use forebay::policy::{Columns, Live, Offers, Pick, Policy, ServerIndex, Shown, State};
use forebay::wasm::{Digest, Loaded};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// As an operator writes it, in JSON.
const ALL_KEYS: &str = r#"{"cookie":"shard","header":"x-user","query":"s","spill":1.25,"spill-min":4}"#;

const CONFIGURATIONS: [&str; 8] = [
    "{}",
    ALL_KEYS,
    r#"{"query":"s"}"#,
    r#"{"header":"two words"}"#,
    r#"{"spill":0.5}"#,
    r#"{"spill-min":-1}"#,
    r#"{"colour":"red"}"#,
    r#"{"spill":"2"}"#,
];

pub(super) fn script(loaded: &Loaded) -> Transcript {
    let mut transcript = Transcript::default();
    transcript.configurations(loaded, &CONFIGURATIONS);
    requests(loaded, &mut transcript);
    tables(loaded, &mut transcript);
    crowds(loaded, &mut transcript);
    transcript
}

/// Name, weight, state.
type Server = (&'static str, i32, State);

const FOUR: [Server; 4] = [
    ("a", 16, State::Ready),
    ("b", 16, State::Ready),
    ("c", 32, State::Ready),
    ("10.0.0.1:80", 64, State::Ready),
];

/// A policy and the table that it was shown last.
struct Shard {
    offers: Offers,
    policy: Box<dyn Policy>,
    servers: Vec<Server>,
    loads: Arc<Loads>,
}

impl Shard {
    fn new(loaded: &Loaded, config: &str) -> Shard {
        let attachment = attach(loaded, config);
        Shard {
            offers: attachment.offers().clone(),
            policy: attachment.policy(Duration::ZERO).expect("an instance"),
            servers: Vec::new(),
            loads: Arc::default(),
        }
    }

    fn show(&mut self, servers: &[Server]) {
        let each = |read: fn(&Server) -> i32| servers.iter().map(read).collect::<Vec<i32>>();
        let columns = Columns {
            names: servers.iter().map(|it| it.0.to_owned()).collect(),
            zones: servers.iter().map(|it| format!("zone-{}", it.0)).collect(),
            weights: each(|it| it.1),
            states: each(|it| it.2 as i32),
            limits: each(|it| it.1 * 4),
            latencies: each(|it| it.1 * 100),
        };
        let live = Arc::<Loads>::clone(&self.loads);
        let shown = Shown {
            columns: Arc::new(columns),
            live,
        };
        self.policy.table(&shown, Duration::ZERO).expect("a table");
        self.servers = servers.to_vec();
    }

    fn pick(&mut self, request: &Request, avoid: Option<u16>) -> Option<Pick> {
        let values = request.values(&self.offers);
        let answer = self.policy.pick(&asked(&values), avoid.map(ServerIndex));
        answer.expect("an answer")
    }

    /// First and second by their names.
    fn names(&self, pick: Option<Pick>) -> String {
        let name = |server: ServerIndex| self.servers[server.at()].0;
        match pick {
            None => "nobody".into(),
            Some(Pick { first, second: None }) => name(first).into(),
            Some(Pick {
                first,
                second: Some(second),
            }) => format!("{} or {}", name(first), name(second)),
        }
    }
}

/// Requests in flight, by index.
#[derive(Default)]
pub(super) struct Loads([AtomicU32; 8]);

impl Live for Loads {
    fn in_flight(&self, server: ServerIndex) -> u32 {
        self.0[server.at()].load(Relaxed)
    }
    fn queued(&self, server: ServerIndex) -> u32 {
        self.in_flight(server) / 2
    }
    fn idle(&self, _: ServerIndex) -> u32 {
        3
    }
}

impl Loads {
    pub(super) fn set(&self, loads: [u32; 4]) {
        for (slot, load) in self.0.iter().zip(loads) {
            slot.store(load, Relaxed);
        }
    }
}

/// Where the key is looked for, and what counts as one.
fn requests(loaded: &Loaded, transcript: &mut Transcript) {
    transcript.title("one request each: a 16, b 16, c 32, 10.0.0.1:80 64");
    let mut shard = Shard::new(loaded, ALL_KEYS);
    shard.show(&FOUR);
    let keyed = |key: &str| Request::to("/").with("header:x-user", key);
    let long = "k".repeat(8192);
    let requests = [
        Request::to("/"),
        keyed("mary"),
        Request::to("/").with("cookie:shard", "mary"),
        Request::to("/").with("query:s", "mary"),
        keyed("").with("cookie:shard", "").with("query:s", "mary"),
        keyed("mary").with("cookie:shard", "john"),
        keyed("john"),
        Request::to("/").with("header:x-user", b"\xff\xfe"),
        Request::to("/").with("header:x-user", b"\xff\xfd"),
        keyed("größe"),
        keyed(&long),
    ];
    for request in &requests {
        let pick = shard.pick(request, None);
        transcript.line(format!("{} -> {}", request.label, shard.names(pick)));
    }
    for avoid in 0..4 {
        let pick = shard.pick(&keyed("mary"), Some(avoid));
        transcript.line(format!(
            "mary without {} -> {}",
            FOUR[usize::from(avoid)].0,
            shard.names(pick)
        ));
    }
    for loads in [
        [3; 4],
        [0, 0, 0, 9],
        [9, 9, 9, 200],
        [u32::MAX; 4],
        [u32::MAX, 0, 0, u32::MAX],
    ] {
        shard.loads.set(loads);
        let picks = ["mary", "john", "anne"].map(|key| shard.pick(&keyed(key), None));
        let names = picks.map(|pick| shard.names(pick)).join(", ");
        transcript.line(format!("mary, john, anne with {loads:?} in flight -> {names}"));
    }
}

/// Who has which of 2000 keys, and how many go elsewhere than in the table before.
fn tables(loaded: &Loaded, transcript: &mut Transcript) {
    transcript.title("2000 keys in each table");
    let mut shard = Shard::new(loaded, "{}");
    let state = |at: usize, state| {
        let mut servers = FOUR;
        servers[at].2 = state;
        servers
    };
    let heavier = [("c", 256, State::Ready), ("a", 0, State::Ready), FOUR[1], FOUR[3]];
    let fifth = [("e", 32, State::Ready), FOUR[3], FOUR[2], FOUR[1], FOUR[0]];
    let steps: [(&str, &[Server]); 11] = [
        ("four", &FOUR),
        ("b down", &state(1, State::Down)),
        ("b back", &FOUR),
        ("c drains", &state(2, State::Draining)),
        ("c in maintenance", &state(2, State::Maintenance)),
        ("a fifth, all at other places", &fifth),
        ("c heavier, a without weight", &heavier),
        ("four again", &FOUR),
        ("only a", &FOUR[..1]),
        ("only b, down", &state(1, State::Down)[1..2]),
        ("none", &[]),
    ];
    let mut before: Vec<String> = Vec::new();
    for (name, servers) in steps {
        shard.show(servers);
        let owners: Vec<String> = (0..2000)
            .map(|key| {
                let request = Request::to("/").with("header:x-shard-key", format!("user-{key}"));
                let pick = shard.pick(&request, None);
                shard.names(pick)
            })
            .collect();
        let first = |owner: &str| owner.split(" or ").next().unwrap_or_default().to_owned();
        let moved = before
            .iter()
            .zip(&owners)
            .filter(|(was, is)| first(was) != first(is))
            .count();
        let mut names: Vec<&str> = servers.iter().map(|it| it.0).chain(["nobody"]).collect();
        names.sort_unstable();
        let share = |name: &&str| {
            let count = owners.iter().filter(|owner| first(owner) == **name).count();
            format!("{name} {count}")
        };
        let shares: Vec<String> = names.iter().map(share).collect();
        let digest = Digest::of(owners.join("\n").as_bytes()).short();
        transcript.line(format!("{name}: {}; moved {moved}; {digest}", shares.join(", ")));
        before = owners;
    }
}

/// Each of 5000 requests stays for the next 40; one key in three is the same.
fn crowds(loaded: &Loaded, transcript: &mut Transcript) {
    transcript.title("5000 requests, 40 at once, a third of them with one key");
    for config in [
        "{}",
        r#"{"spill":1.25,"spill-min":4}"#,
        r#"{"spill":1,"spill-min":0}"#,
        r#"{"spill":100,"spill-min":0}"#,
        r#"{"spill":1.5,"spill-min":1000000}"#,
    ] {
        let mut shard = Shard::new(loaded, config);
        shard.show(&FOUR);
        let (mut chosen, mut most, mut picks) = ([0; 4], [0; 4], String::new());
        let mut staying = VecDeque::new();
        for number in 0..5000_u32 {
            let key = if number % 3 == 0 { 0 } else { number * 7 % 1000 };
            let request = Request::to("/").with("header:x-shard-key", format!("user-{key}"));
            let pick = shard.pick(&request, None).expect("a server");
            picks.push_str(&format!("{} {:?}\n", pick.first.0, pick.second));
            let at = pick.first.at();
            chosen[at] += 1;
            most[at] = most[at].max(shard.loads.0[at].fetch_add(1, Relaxed) + 1);
            staying.push_back(at);
            if staying.len() > 40 {
                let left = staying.pop_front().expect("not empty");
                shard.loads.0[left].fetch_sub(1, Relaxed);
            }
        }
        let digest = Digest::of(picks.as_bytes()).short();
        transcript.line(format!(
            "{config}: chosen {chosen:?}, at most {most:?} at once; {digest}"
        ));
    }
}
