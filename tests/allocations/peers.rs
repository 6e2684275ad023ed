//! Both neighbours of the proxy, which allocate nothing once they are connected: answers are canned, buffers lie on the
//! stack, and every exchange is known in advance to the byte.

use forebay::{cli, config};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// What a client sends again and again.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    requests: &'static [u8],
    /// Requests in `requests`.
    count: usize,
}

/// Every kind that is measured.
pub(crate) const KINDS: [Kind; 5] = [
    Kind {
        name: "get",
        requests: b"GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
        count: 1,
    },
    Kind {
        name: "post",
        requests: b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n0123456789abcdef0123456789abcdef",
        count: 1,
    },
    Kind {
        name: "chunked response",
        requests: b"GET /chunked HTTP/1.1\r\nHost: a\r\n\r\n",
        count: 1,
    },
    Kind {
        name: "response in pieces",
        requests: b"GET /pieces HTTP/1.1\r\nHost: a\r\n\r\n",
        count: 1,
    },
    Kind {
        name: "pipelined",
        requests: b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
        count: 3,
    },
];

const PLAIN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\nplain answer end";
const CHUNKED: &[u8] =
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n3\r\nend\r\n0\r\n\r\n";
/// The last bytes of every answer: no answer has them anywhere else.
const ENDS: [&[u8]; 2] = [b" end", b"end\r\n0\r\n\r\n"];
const PATIENCE: Duration = Duration::from_secs(10);
const BUFFER: usize = 4 << 10;
const CONNECTIONS: usize = 4;

/// Keep-alive connections on which the same requests go round.
pub(crate) struct Client {
    kind: &'static Kind,
    connections: [TcpStream; CONNECTIONS],
}

impl Client {
    pub(crate) fn connect(proxy: SocketAddr, kind: &'static Kind) -> Client {
        Client {
            kind,
            connections: [(); CONNECTIONS]
                .map(|()| prepared(TcpStream::connect(proxy).expect("the proxy listens"))),
        }
    }

    /// So many requests (up to the next multiple of what goes at once), on all connections at the same time.
    pub(crate) fn exchange(&mut self, requests: usize) {
        for _ in 0..requests.div_ceil(CONNECTIONS * self.kind.count) {
            for connection in &mut self.connections {
                connection.write_all(self.kind.requests).expect("the proxy reads");
            }
            for connection in &mut self.connections {
                read_answers(connection, self.kind.count);
            }
        }
    }
}

/// Reads until so many answers have ended.
fn read_answers(connection: &mut TcpStream, count: usize) {
    let mut bytes = [0; BUFFER];
    let (mut filled, mut answers) = (0, 0);
    while answers < count {
        let n = connection.read(&mut bytes[filled..]).expect("the proxy answers");
        assert!(
            n > 0,
            "the proxy closed: {:?}",
            String::from_utf8_lossy(&bytes[..filled])
        );
        filled += n;
        assert!(
            bytes.starts_with(b"HTTP/1.1 200 "),
            "{:?}",
            String::from_utf8_lossy(&bytes[..filled])
        );
        answers = ENDS
            .iter()
            .map(|end| {
                bytes[..filled]
                    .windows(end.len())
                    .filter(|window| window == end)
                    .count()
            })
            .sum();
    }
    assert_eq!(answers, count);
}

/// An origin that answers by path, on every connection at once.
pub(crate) fn start_origin() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = prepared(connection.expect("a connection of the proxy"));
            thread::spawn(move || while answer(&mut connection) {});
        }
    });
    address
}

/// One request; `false` at the end of the connection.
fn answer(connection: &mut TcpStream) -> bool {
    let mut bytes = [0; BUFFER];
    let mut filled = 0;
    while !is_whole(&bytes[..filled]) {
        match connection.read(&mut bytes[filled..]) {
            Ok(n) if n > 0 => filled += n,
            _ => return false,
        }
    }
    let sent = if bytes.starts_with(b"GET /chunked") {
        connection.write_all(CHUNKED)
    } else if bytes.starts_with(b"GET /pieces") {
        let mut parts = PLAIN.chunks(PLAIN.len() / 3 + 1);
        parts.try_for_each(|part| {
            thread::sleep(Duration::from_micros(50));
            connection.write_all(part)
        })
    } else {
        connection.write_all(PLAIN)
    };
    sent.is_ok()
}

fn is_whole(request: &[u8]) -> bool {
    let ended = request.ends_with(b"\r\n\r\n") && !request.starts_with(b"POST");
    ended || request.ends_with(b"0123456789abcdef")
}

fn prepared(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).expect("a TCP socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a TCP socket");
    stream
}

/// One worker before the origin, as `forebay demo` would run it. It ends with this process.
pub(crate) fn start_proxy(origin: SocketAddr, log: &str) -> SocketAddr {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = free.local_addr().expect("it is bound");
    drop(free);
    let text = format!(
        "[process]\nworkers = 1\nlog = {{ to = {log:?} }}\n\
         [[listen]]\nbind = {:?}\nbackend = \"app\"\n\
         [backend.app]\nservers = [{:?}]\n",
        address.to_string(),
        origin.to_string(),
    );
    let config = config::parse(&text, "allocations").expect("a sound configuration");
    let serving = thread::spawn(move || {
        // It shows no numbers while anything is counted.
        let ended = cli::run::serve(config, |_| {}, Duration::from_secs(3600));
        panic!("the proxy ended: {ended:?}");
    });
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        assert!(
            !serving.is_finished() && Instant::now() < deadline,
            "the proxy does not listen"
        );
        thread::sleep(Duration::from_millis(10));
    }
    address
}
