//! Sends requests with the same key to the same server, and only as many as it can take.
//!
//! ```toml
//! config = { header = "x-shard-key", cookie = "shard", query = "shard", spill = 1.5, spill-min = 8 }
//! ```
//!
//! | key | default | |
//! |---|---|---|
//! | `header`, `cookie`, `query` | `header = "x-shard-key"` | where the key is looked for, in this order; the first that is not empty |
//! | `spill` | 1.5 | a server with more than so many times its share of the requests in flight is *crowded* |
//! | `spill-min` | 8 | with fewer requests in flight than this, a server is never crowded |
//!
//! A request without a key is left to the plan or the configured algorithm. What the order of servers for a key is, and
//! how little of it changes, stands in [`shards`].

mod shards;

use exports::forebay::policy::balance_pick::{Choice, Columns, Guest as Pick};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use forebay::policy::{request, servers};
use settings::Settings;
use shards::{Load, Shards, Spill};
use std::sync::Mutex;

wit_bindgen::generate!({ path: "../../wit", world: "picker" });

struct HeaderShard;

/// What the instance remembers between calls. Only one thread ever calls it: the lock is never waited for.
static STATE: Mutex<State> =
    Mutex::new(State { attributes: 0, spill: Spill::DEFAULT, shards: Shards::EMPTY });

struct State {
    attributes: i32,
    spill: Spill,
    shards: Shards,
}

impl Configure for HeaderShard {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        let mut settings = Settings::read(&setup.config);
        let mut attributes = Vec::new();
        for key in ["header", "cookie", "query"] {
            if let Some(name) = settings.token(key) {
                attributes.push(format!("{key}:{name}"));
            }
        }
        if attributes.is_empty() {
            attributes.push("header:x-shard-key".into());
        }
        let spill = Spill {
            factor: settings.factor("spill", Spill::DEFAULT.factor, 1_000..=100_000),
            least: settings.whole("spill-min", Spill::DEFAULT.least, 0..=1_000_000),
        };
        let problems = settings.finish();
        if !problems.is_empty() {
            let problem = |(path, message)| Problem { path, message };
            return Err(problems.into_iter().map(problem).collect());
        }
        let mut state = STATE.lock().unwrap();
        state.attributes = attributes.len() as i32;
        state.spill = spill;
        Ok(Wishes { attributes, headers: vec![] })
    }
}

impl Pick for HeaderShard {
    fn table(table: Columns) {
        STATE.lock().unwrap().shards = Shards::new(&table.names, &table.weights, &table.states);
    }

    fn pick(key: String, avoid: i32) -> Choice {
        let state = STATE.lock().unwrap();
        let (first, second) = match hash(&key, state.attributes) {
            Some(hash) => state.shards.choose(hash, avoid, &state.spill, &Live),
            None => (-1, -1),
        };
        Choice { first, second }
    }
}

/// The hash of the first attribute that is there and not empty. The first of all was given; the others are asked for.
fn hash(key: &str, attributes: i32) -> Option<u32> {
    let place = match key {
        "" => (1..attributes).find(|&at| request::length(at) > 0)?,
        _ => 0,
    };
    u32::try_from(request::hash(place)).ok()
}

/// The host's figures.
struct Live;

impl Load for Live {
    fn of(&self, server: i32) -> i32 {
        servers::in_flight(server)
    }

    fn all(&self) -> Vec<i32> {
        servers::column(servers::Figure::InFlight)
    }
}

export!(HeaderShard);
