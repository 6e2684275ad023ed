//! Small HTTP/1.1 servers for the demo and for tests: one thread, any number of them, each with its own speed.
//!
//! Every answer comes after a delay around the server's mean (half of it fixed, half exponential, so that the fast one is
//! sometimes slow) and says who gave it and how often. `/slow` takes 300 ms, `/large` is 1 MiB, `/chunked` comes in chunks
//! with a trailer, and a body is sent back. Keep-alive, pipelining, HEAD, HTTP/1.0, `Expect: 100-continue` work. Nothing
//! blocks and a delay costs no thread, so that under load it is not the origins that are measured.

mod connection;
mod request;
mod response;
mod turning;

use mio::net::TcpListener;
use mio::{Interest, Poll, Token, Waker};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use turning::{Turning, WAKER};

/// The name and the mean delay of one origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// What it calls itself in its answers.
    pub name: &'static str,
    /// Mean time from a whole request to its answer.
    pub mean: Duration,
}

/// Running origins on 127.0.0.1. They end when this is dropped.
#[derive(Debug)]
pub struct Origins {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    /// Requests answered, by origin.
    answered: Vec<AtomicU64>,
}

impl Origins {
    /// Starts one origin per speed, each on a free port.
    pub fn start(speeds: &[Speed]) -> io::Result<Origins> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let answered = speeds.iter().map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            answered,
        });
        let mut servers = Vec::new();
        for (at, speed) in speeds.iter().enumerate() {
            let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
            poll.registry()
                .register(&mut listener, Token(at), Interest::READABLE)?;
            servers.push(Server::new(at, speed, listener, shared.clone()));
        }
        let addresses = servers
            .iter()
            .map(|server| server.listener.local_addr())
            .collect::<Result<_, _>>()?;
        let mut turning = Turning::new(poll, servers, shared.clone());
        let thread = std::thread::Builder::new()
            .name("origins".to_owned())
            .spawn(move || turning.run())?;
        Ok(Origins {
            addresses,
            shared,
            waker,
            thread: Some(thread),
        })
    }

    /// Where they listen, in the order of their speeds.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Requests answered so far by the origin at this place.
    pub fn answered(&self, at: usize) -> u64 {
        self.shared.answered[at].load(Ordering::Relaxed)
    }
}

impl Drop for Origins {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if self.waker.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join(); // a panic over there was printed already
        }
    }
}

/// One origin, as its thread sees it.
struct Server {
    name: &'static str,
    mean: Duration,
    listener: TcpListener,
    accepted: u64,
    random: u64,
    at: usize,
    shared: Arc<Shared>,
}

impl Server {
    fn new(at: usize, speed: &Speed, listener: TcpListener, shared: Arc<Shared>) -> Server {
        let random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(at as u64 + 1);
        Server {
            name: speed.name,
            mean: speed.mean,
            listener,
            accepted: 0,
            random,
            at,
            shared,
        }
    }

    fn count_request(&self) -> u64 {
        self.shared.answered[self.at].fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Half the mean, and an exponential draw of the same mean; at most 5 ½ times the mean.
    fn draw_delay(&mut self) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let uniform = ((self.random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        self.mean.mul_f64(0.5 + 0.5 * (-uniform.ln()).min(10.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;
    use turning::EARLY;

    const FAST: Speed = Speed {
        name: "fast",
        mean: Duration::from_micros(200),
    };
    const LATE: Speed = Speed {
        name: "late",
        mean: Duration::from_millis(30),
    };

    struct Client(BufReader<TcpStream>);

    impl Client {
        fn new(origins: &Origins, at: usize) -> Client {
            let stream = TcpStream::connect(origins.addresses()[at]).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            Client(BufReader::new(stream))
        }

        fn send(&mut self, text: &str) {
            self.0.get_mut().write_all(text.as_bytes()).unwrap();
        }

        /// Status line and fields, in one text.
        fn head(&mut self) -> String {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                assert_ne!(self.0.read_line(&mut head).unwrap(), 0, "the end after {head:?}");
            }
            head
        }

        fn answer(&mut self) -> (String, Vec<u8>) {
            let head = self.head();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            self.0.read_exact(&mut body).unwrap();
            (head, body)
        }

        fn ends(&mut self) -> bool {
            matches!(self.0.read(&mut [0]), Ok(0))
        }
    }

    #[test]
    fn pipelined_requests_are_answered_in_order_and_counted() {
        let origins = Origins::start(&[FAST]).unwrap();
        let mut client = Client::new(&origins, 0);
        client.send(&"GET / HTTP/1.1\r\n\r\n".repeat(20));
        for number in 1..=20 {
            let (head, body) = client.answer();
            assert!(head.contains(&format!(
                "X-Demo: server=fast total={number} connection=1 request={number}"
            )));
            assert!(body.starts_with(format!("fast: request {number} ").as_bytes()));
        }
        assert_eq!(origins.answered(0), 20);
    }

    #[test]
    fn each_origin_has_its_own_name_count_and_speed() {
        let origins = Origins::start(&[FAST, LATE]).unwrap();
        let mut clients = [Client::new(&origins, 0), Client::new(&origins, 1)];
        let started = Instant::now();
        for (client, name) in clients.iter_mut().zip(["fast", "late"]) {
            client.send("GET / HTTP/1.1\r\n\r\n");
            assert!(
                client
                    .answer()
                    .0
                    .contains(&format!("server={name} total=1 connection=1"))
            );
        }
        assert!(
            started.elapsed() >= LATE.mean / 2 - EARLY,
            "half of the mean is fixed"
        );
        assert_eq!([origins.answered(0), origins.answered(1)], [1, 1]);
    }

    #[test]
    fn large_answers_wait_for_their_reader_and_the_next_request_behind_them() {
        let origins = Origins::start(&[FAST]).unwrap();
        let mut client = Client::new(&origins, 0);
        client.send(&"GET /large HTTP/1.1\r\n\r\n".repeat(8));
        client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
        for _ in 0..8 {
            assert!(client.answer().1 == response::large());
        }
        assert!(client.answer().0.contains("Connection: close"));
        assert!(client.ends());
    }

    #[test]
    fn bodies_come_back() {
        let origins = Origins::start(&[FAST]).unwrap();
        let mut client = Client::new(&origins, 0);
        let body = "x".repeat(300_000);
        client.send(&format!(
            "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        assert!(client.answer().1 == body.as_bytes());
        client.send("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        client.send("2\r\nhi\r\n0\r\n\r\n");
        assert_eq!(client.answer().1, b"hi");
    }

    #[test]
    fn refusals_arrive_although_the_client_is_still_sending() {
        let origins = Origins::start(&[FAST]).unwrap();
        let mut client = Client::new(&origins, 0);
        client.send("POST / HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n");
        client.send(&"x".repeat(100_000));
        assert!(client.answer().0.starts_with("HTTP/1.1 413 "));
        assert!(client.ends());
    }

    #[test]
    fn slow_is_slow_and_holds_up_nobody_else() {
        let origins = Origins::start(&[FAST]).unwrap();
        let (mut slow, mut other) = (Client::new(&origins, 0), Client::new(&origins, 0));
        let started = Instant::now();
        slow.send("GET /slow HTTP/1.1\r\n\r\n");
        std::thread::sleep(Duration::from_millis(20)); // so that it comes first; nothing fails if it does not
        other.send("GET / HTTP/1.1\r\n\r\n");
        assert!(other.answer().0.contains("total=1 "));
        assert!(slow.answer().0.contains("total=2 "));
        assert!(started.elapsed() >= request::SLOW - EARLY);
    }

    #[test]
    fn delays_keep_their_mean_and_their_bounds() {
        let origins = Origins::start(&[]).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut server = Server::new(0, &LATE, listener, origins.shared.clone());
        let delays: Vec<_> = (0..20_000).map(|_| server.draw_delay()).collect();
        let mean = delays.iter().sum::<Duration>() / 20_000;
        assert!(
            (LATE.mean.mul_f64(0.97)..LATE.mean.mul_f64(1.03)).contains(&mean),
            "{mean:?}"
        );
        assert!(
            delays
                .iter()
                .all(|delay| (LATE.mean / 2..=LATE.mean * 11 / 2).contains(delay))
        );
    }
}
