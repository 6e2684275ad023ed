//! Two loads over kept connections: one whose requests are due at fixed times, and one that asks as fast as it is answered.

use crate::origin::BODY;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Connections of a steady load: enough that a request seldom waits for the one before on its connection.
const STEADY_CONNECTIONS: u32 = 16;
/// How long an answer may take before it counts as none.
const PATIENCE: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: app.test\r\n\r\n";

/// A load of a fixed rate.
pub(crate) struct Steady {
    pub(crate) address: SocketAddr,
    /// When the first request is due. Connections are opened before.
    pub(crate) begun: Instant,
    /// Requests a second, over all connections.
    pub(crate) rate: u32,
    pub(crate) lasts: Duration,
}

/// What became of a request.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub(crate) due: Instant,
    /// From when it was due to the end of its answer.
    pub(crate) took: Duration,
    pub(crate) good: bool,
}

impl Steady {
    /// Asks until the time is over.
    pub(crate) fn run(&self) -> io::Result<Vec<Answer>> {
        thread::scope(|scope| {
            let lanes: Vec<_> = (0..STEADY_CONNECTIONS)
                .map(|lane| scope.spawn(move || self.lane(lane)))
                .collect();
            let mut answers = Vec::new();
            for lane in lanes {
                answers.extend(lane.join().expect("a lane does not panic")?);
            }
            Ok(answers)
        })
    }

    /// Every so many-th request of the load.
    fn lane(&self, lane: u32) -> io::Result<Vec<Answer>> {
        let every = Duration::from_secs(1) / self.rate;
        let mut client = Client::connect(self.address)?;
        let mut answers = Vec::new();
        for number in (lane..).step_by(STEADY_CONNECTIONS as usize) {
            let after = every * number;
            if after >= self.lasts {
                break;
            }
            let due = self.begun + after;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let good = client.ask().unwrap_or(false);
            answers.push(Answer {
                due,
                took: due.elapsed(),
                good,
            });
            if !good {
                client = Client::connect(self.address)?;
            }
        }
        Ok(answers)
    }
}

/// Requests that so many connections got answered in that time, one after another on each. None may fail.
pub(crate) fn closed(address: SocketAddr, connections: usize, lasts: Duration) -> io::Result<u64> {
    let until = Instant::now() + lasts;
    let lane = || -> io::Result<u64> {
        let mut client = Client::connect(address)?;
        let mut requests = 0;
        while Instant::now() < until {
            if !client.ask()? {
                return Err(io::Error::other("a request failed in a window of full load"));
            }
            requests += 1;
        }
        Ok(requests)
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..connections).map(|_| scope.spawn(lane)).collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().expect("a lane does not panic"))
            .sum()
    })
}

/// A kept connection.
struct Client {
    connection: TcpStream,
    buffer: Box<[u8; 4096]>,
}

impl Client {
    fn connect(address: SocketAddr) -> io::Result<Client> {
        let connection = TcpStream::connect(address)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(Client {
            connection,
            buffer: Box::new([0; 4096]),
        })
    }

    /// Whether a request was answered as the origin answers.
    fn ask(&mut self) -> io::Result<bool> {
        self.connection.write_all(REQUEST)?;
        let mut filled = 0;
        loop {
            let got = self.connection.read(&mut self.buffer[filled..])?;
            filled += got;
            let bytes = &self.buffer[..filled];
            let Some(end) = memchr::memmem::find(bytes, b"\r\n\r\n") else {
                if got == 0 {
                    return Ok(false);
                }
                continue;
            };
            let (head, body) = (&bytes[..end], &bytes[end + 4..]);
            if !head.starts_with(b"HTTP/1.1 200 ") {
                return Ok(false);
            }
            if got == 0 || body.len() >= BODY.len() {
                return Ok(body == BODY);
            }
        }
    }
}
