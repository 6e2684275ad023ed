//! Requests with the same value of a header go to the same server. While that one is crowded, the next one helps.

mod support;

use exports::forebay::policy::balance_pick::{Choice, Columns, Guest as Pick};
use exports::forebay::policy::configure::{Guest as Configure, Problem, Setup, Wishes};
use forebay::policy::{request, servers};
use std::sync::Mutex;

wit_bindgen::generate!({ path: "wit", world: "picker" });

/// Requests that a server may have before another one helps.
const CROWDED: i32 = 8;
const NO_OPINION: Choice = Choice { first: -1, second: -1 };

/// The servers that take requests: each one's index, and a number that stays when indices change. Only one thread ever
/// calls the instance: the lock is never waited for.
static SERVERS: Mutex<Vec<(i32, u32)>> = Mutex::new(Vec::new());

struct Policy;

impl Configure for Policy {
    fn configure(setup: Setup) -> Result<Wishes, Vec<Problem>> {
        support::log_panics();
        let [header] = support::settings(&setup.config, [("header", "x-user")])?;
        Ok(Wishes { attributes: vec![format!("header:{header}")], headers: vec![] })
    }
}

impl Pick for Policy {
    fn table(table: Columns) {
        let takes_requests = |at: usize| table.states[at] == 0 && table.weights[at] > 0;
        let servers = table.names.iter().enumerate().filter(|(at, _)| takes_requests(*at));
        *SERVERS.lock().unwrap() = servers.map(|(at, name)| (at as i32, seed(name))).collect();
    }

    fn pick(key: String, avoid: i32) -> Choice {
        if key.is_empty() {
            return NO_OPINION;
        }
        let Choice { first, second } = best_two(request::hash(0) as u32, avoid);
        let crowded = || servers::in_flight(first) >= CROWDED && servers::in_flight(second) < servers::in_flight(first);
        match second >= 0 && crowded() {
            true => Choice { first: second, second: first },
            false => Choice { first, second },
        }
    }
}

/// The two servers that come first in this key's own order of all; -1 where there is none.
fn best_two(key: u32, avoid: i32) -> Choice {
    let servers = SERVERS.lock().unwrap();
    let score = |(index, seed): &(i32, u32)| (*index != avoid).then(|| mixed(key ^ seed));
    let (mut best, mut next) = (None, None);
    for it in servers.iter().map(|it| Some((score(it), it.0))) {
        if it > best {
            (best, next) = (it, best);
        } else if it > next {
            next = it;
        }
    }
    let index = |it: Option<(Option<u32>, i32)>| it.map_or(-1, |(_, index)| index);
    Choice { first: index(best), second: index(next) }
}

/// A text as 32 bits (FNV-1a).
fn seed(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |bits, byte| (bits ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// 32 bits, each of which depends on all that are given; the last steps of MurmurHash3.
fn mixed(bits: u32) -> u32 {
    let bits = (bits ^ (bits >> 16)).wrapping_mul(0x85eb_ca6b);
    let bits = (bits ^ (bits >> 13)).wrapping_mul(0xc2b2_ae35);
    bits ^ (bits >> 16)
}

export!(Policy);
