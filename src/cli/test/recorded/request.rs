//! The requests of a recording, made compact: a log of millions is held in memory at once.

use super::line::Line;
use super::skipped::Skipped;
use super::texts::{Full, Text, Texts};
use crate::observe::record::{Reuse, Timers};
use std::collections::HashMap;
use std::net::IpAddr;

/// Requests in the order in which they came.
///
/// What a recording cannot know, and no replay of it therefore shows:
///
/// - How a server would have answered under another load: the times are those of the load that was. A replay that spreads
///   it otherwise still draws from times that include the recorded server's own queues.
/// - Requests that were never sent. A client that got its answer sooner would have asked again sooner, one that got none
///   might have left; a recording asks at the recorded moments, whatever happens.
/// - What came before and after: clients and connections that were there already, and requests that had not ended.
/// - Lines that the log dropped under pressure (the metrics count them), and times between the milliseconds in which
///   arrivals are written: those of one millisecond come in the order of their lines.
/// - Which client it was, behind another proxy or a Unix socket: there the address is one for all of them. A port that
///   a client used twice looks like one connection.
/// - Headers and bodies: sizes, not contents. A response's size is that of the recorded answer, errors included.
#[derive(Debug)]
pub struct Recording {
    /// All of them.
    pub requests: Vec<Request>,
    /// What their texts say.
    pub texts: Texts,
    /// When the first one came, in milliseconds since 1970.
    pub began_unix_ms: u64,
    /// Addresses that they came from; all that came over Unix sockets count as one.
    pub clients: u32,
    /// Addresses with their ports: as far as a log can tell, connections.
    pub connections: u32,
    /// Requests that came over Unix sockets.
    pub without_address: u64,
    /// What was left out.
    pub skipped: Skipped,
}

/// One request, as the log has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When its first byte came, in µs since the first one's; whole milliseconds.
    pub at: u64,
    /// Bytes from the client, head included.
    pub bytes_in: u64,
    /// Bytes to the client, head included.
    pub bytes_out: u64,
    /// Whose it was, by address: a number from 0.
    pub client: u32,
    /// On which connection it came, by address and port: a number from 0.
    pub connection: u32,
    /// The listener it came to.
    pub listener: Text,
    /// The backend that was chosen; empty if none was.
    pub backend: Text,
    /// The server that was chosen last; empty if none was.
    pub server: Text,
    /// The method.
    pub method: Text,
    /// The authority that was asked for; empty if none was.
    pub host: Text,
    /// Path and query, as sent; the log cuts them after 2 KiB.
    pub target: Text,
    /// From its first byte to its whole head.
    pub head: Took,
    /// In queues.
    pub queue: Took,
    /// To a connection; 0 if it was an idle one.
    pub connect: Took,
    /// From its being sent to the head of the response: the service time.
    pub response: Took,
    /// From its first byte to the last of the response.
    pub total: Took,
    /// The status sent; 0 if nothing was.
    pub status: u16,
    /// Attempts after the first.
    pub retries: u16,
    /// Who ended it and in which phase (LG-3); `--` is the normal end.
    pub end: [u8; 2],
    /// Where its server connection came from.
    pub reuse: Reuse,
}

/// How long a phase took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took(u32);

impl Took {
    /// In µs, at most 71 minutes of them; none if it was not reached.
    pub fn us(self) -> Option<u64> {
        (self.0 != u32::MAX).then_some(u64::from(self.0))
    }

    fn of(us: i64) -> Took {
        match us {
            Timers::NOT_REACHED => Took(u32::MAX),
            us => Took(us.clamp(0, i64::from(u32::MAX - 1)) as u32),
        }
    }
}

/// A recording that grows by lines.
#[derive(Default)]
pub(super) struct Builder {
    requests: Vec<Request>,
    texts: Texts,
    clients: HashMap<Option<IpAddr>, u32>,
    connections: HashMap<(u32, u16), u32>,
    without_address: u64,
}

impl Builder {
    pub(super) fn count(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn push(&mut self, line: &Line) -> Result<(), Full> {
        let client = number(&mut self.clients, line.client.map(|client| client.ip()));
        let port = line.client.map_or(0, |client| client.port());
        self.without_address += u64::from(line.client.is_none());
        let Timers {
            request,
            queue,
            connect,
            response,
            total,
        } = line.timers;
        self.requests.push(Request {
            at: line.at_unix_ms,
            bytes_in: line.bytes_in,
            bytes_out: line.bytes_out,
            client,
            connection: number(&mut self.connections, (client, port)),
            listener: self.texts.add(&line.listener)?,
            backend: self.texts.add(&line.backend)?,
            server: self.texts.add(&line.server)?,
            method: self.texts.add(&line.method)?,
            host: self.texts.add(&line.host)?,
            target: self.texts.add(&line.target)?,
            head: Took::of(request),
            queue: Took::of(queue),
            connect: Took::of(connect),
            response: Took::of(response),
            total: Took::of(total),
            status: line.status,
            retries: line.retries,
            end: line.end,
            reuse: line.reuse,
        });
        Ok(())
    }

    /// Sorts by arrival; those of one millisecond stay as their lines are.
    pub(super) fn finish(mut self, skipped: Skipped) -> Recording {
        self.requests.sort_by_key(|request| request.at);
        let began_unix_ms = self.requests.first().map_or(0, |first| first.at);
        for request in &mut self.requests {
            request.at = (request.at - began_unix_ms).saturating_mul(1000);
        }
        self.texts.close();
        Recording {
            requests: self.requests,
            texts: self.texts,
            began_unix_ms,
            clients: self.clients.len() as u32, // at most one for each request
            connections: self.connections.len() as u32, // the same
            without_address: self.without_address,
            skipped,
        }
    }
}

/// The number of a key, in the order in which they were seen.
fn number<K: Eq + std::hash::Hash>(numbers: &mut HashMap<K, u32>, key: K) -> u32 {
    let next = numbers.len() as u32; // at most one for each request
    *numbers.entry(key).or_insert(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_million_fit() {
        assert!(size_of::<Request>() <= 88, "{}", size_of::<Request>());
    }

    #[test]
    fn a_phase_is_not_reached_or_took_at_most_so_long() {
        assert_eq!(Took::of(Timers::NOT_REACHED).us(), None);
        assert_eq!(Took::of(1690).us(), Some(1690));
        assert_eq!(Took::of(i64::MAX).us(), Some(u64::from(u32::MAX) - 1));
    }
}
