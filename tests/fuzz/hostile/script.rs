//! An input as a script: the servers there are, how the guest configures itself, and the calls.
//!
//! ```text
//!  servers (1)  length (1)  script of configure  [ hook (1)  length (1)  script of the call ]…
//! ```
//!
//! Any bytes are a script; a length beyond the end is shortened. A script of a call is a list of deeds, which
//! `guest.wat` does one after another, each a number below 32:
//!
//! | deed | what |
//! |---|---|
//! | 0 | end |
//! | 1, 4, 14, 19 | write into the answer: a number, a byte, the time, a number that is drawn |
//! | 2, 3 | write into the answer where a place of it is; go to a place of it |
//! | 5 | write into the answer where a text of the script is, and its size |
//! | 6, 7 | put a number anywhere; answer what stands anywhere |
//! | 8, 9 | log a text of the script; what stands anywhere |
//! | 10–18 | ask the host: attribute, length, hash, draw, now, in-flight, queued, idle, column |
//! | 20–24 | set and append a text of the script; what stands anywhere; remove |
//! | 25 | all that was done so far again |
//! | 26–28 | grow memory; an allocator that answers so; an arena that goes on there |
//! | 29–31 | trap, overflow the stack, loop (if 85 follows) |

/// How many servers there may be.
const SERVERS: [usize; 4] = [3, 0, 1, 40];
/// Calls of one input; more would only make it slow.
const CALLS_MAX: usize = 12;

/// An input, read.
pub(super) struct Script<'a> {
    pub(super) servers: usize,
    /// Empty for a guest that has the usual wishes.
    pub(super) configure: &'a [u8],
    pub(super) calls: Vec<Call<'a>>,
}

/// One call of a hook.
pub(super) struct Call<'a> {
    pub(super) hook: Hook,
    pub(super) script: &'a [u8],
}

/// What a guest is asked.
#[derive(Clone, Copy)]
pub(super) enum Hook {
    Pick,
    Table,
    Route,
    Prefer,
    Classify,
    Admit,
    Plan,
    PlanReuse,
}

impl Hook {
    const ALL: [Hook; 8] = [
        Hook::Pick,
        Hook::Table,
        Hook::Route,
        Hook::Prefer,
        Hook::Classify,
        Hook::Admit,
        Hook::Plan,
        Hook::PlanReuse,
    ];

    /// Its word among the ends of calls.
    pub(super) fn word(self) -> &'static str {
        match self {
            Hook::Pick => "a pick",
            Hook::Table => "a table",
            Hook::Route => "a route",
            Hook::Prefer => "a preference",
            Hook::Classify => "a standing",
            Hook::Admit => "a verdict",
            Hook::Plan => "a plan",
            Hook::PlanReuse => "wishes",
        }
    }
}

impl<'a> Script<'a> {
    /// From any bytes.
    pub(super) fn read(input: &'a [u8]) -> Script<'a> {
        let (servers, rest) = first(input);
        let (configure, mut rest) = part(rest);
        let mut calls = Vec::new();
        while !rest.is_empty() && calls.len() < CALLS_MAX {
            let (hook, after) = first(rest);
            let (script, after) = part(after);
            calls.push(Call {
                hook: Hook::ALL[usize::from(hook) % Hook::ALL.len()],
                script,
            });
            rest = after;
        }
        Script {
            servers: SERVERS[usize::from(servers) % SERVERS.len()],
            configure,
            calls,
        }
    }
}

fn first(bytes: &[u8]) -> (u8, &[u8]) {
    bytes
        .split_first()
        .map_or((0, bytes), |(first, rest)| (*first, rest))
}

/// As many bytes as the first one says.
fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (length, rest) = first(bytes);
    rest.split_at(usize::from(length).min(rest.len()))
}

/// A script as the guest reads it, in letters because what a guest is given is text.
pub(super) fn letters(script: &[u8]) -> String {
    let halves = script.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(|half| char::from(b'a' + half)).collect()
}
