//! The small HTTP server that answers `GET /metrics` on the metrics address (ST-5).
//!
//! It is not the proxy: its own listening socket, its own threads, one request per connection, deadlines for the whole
//! of it, a few connections at a time. It understands just enough HTTP/1.1 to tell a scraper what it may have, and
//! nothing of it can disturb the traffic but the cost of a snapshot.

use super::acceptor::Acceptor;
use super::metrics;
use super::snapshot::Snapshot;
use super::timed::Timed;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Where the numbers come from.
pub type Source = Arc<dyn Fn() -> Snapshot + Send + Sync>;

/// Scrapes that may run at a time.
pub const SCRAPES_MAX: usize = 4;
/// Most bytes of a scraper's request.
pub const REQUEST_MAX: usize = 8 * 1024;
/// How long a scraper may take to ask, and again to take its answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The server at work, until dropped.
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    _acceptor: Acceptor,
}

impl Exporter {
    /// Binds the address and starts answering.
    pub fn start(address: SocketAddr, source: Source) -> io::Result<Exporter> {
        let listener = TcpListener::bind(address)?;
        Exporter::serve(
            listener,
            Scrapes {
                source,
                patience: PATIENCE,
            },
        )
    }

    fn serve(listener: TcpListener, scrapes: Scrapes) -> io::Result<Exporter> {
        let address = listener.local_addr()?;
        let acceptor = Acceptor::start("metrics", listener, SCRAPES_MAX, move |stream| {
            scrapes.serve(stream)
        })?;
        Ok(Exporter {
            address,
            _acceptor: acceptor,
        })
    }

    /// Where it listens, with the port that was picked for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

struct Scrapes {
    source: Source,
    patience: Duration,
}

/// How long a scraper is given to close after it.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

impl Scrapes {
    fn serve(&self, stream: TcpStream) {
        let mut stream = Timed::new(stream, self.patience);
        let reply = match read_asked(&mut stream) {
            Ok(asked) => self.answer(&asked),
            Err(error) if error.kind() == ErrorKind::InvalidData => Reply::text(400, "Bad Request"),
            Err(error) if error.kind() == ErrorKind::TimedOut => Reply::text(408, "Request Timeout"),
            Err(_) => return,
        };
        stream.renew(self.patience);
        if stream.write_all(&reply.bytes()).is_ok() {
            stream.close(CLOSE_PATIENCE.min(self.patience));
        }
    }

    fn answer(&self, asked: &Asked) -> Reply {
        let path = asked.target.split('?').next().unwrap_or_default();
        let without_body = asked.method == "HEAD";
        if asked.method != "GET" && !without_body {
            return Reply::text(405, "Method Not Allowed");
        }
        let reply = match path {
            "/metrics" => Reply {
                status: 200,
                reason: "OK",
                content_type: metrics::CONTENT_TYPE,
                body: metrics::render((self.source)()),
                without_body,
            },
            _ => Reply {
                body: "Not Found: the metrics are at /metrics\n".into(),
                ..Reply::text(404, "Not Found")
            },
        };
        Reply {
            without_body,
            ..reply
        }
    }
}

struct Asked {
    method: String,
    target: String,
}

/// Reads one request's head. `InvalidData` if it is none, or too long.
fn read_asked(stream: &mut impl Read) -> io::Result<Asked> {
    let mut bytes = [0; REQUEST_MAX];
    let mut length = 0;
    loop {
        match stream.read(&mut bytes[length..])? {
            0 if length == 0 => return Err(ErrorKind::UnexpectedEof.into()),
            0 => return Err(ErrorKind::InvalidData.into()),
            more => length += more,
        }
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut fields);
        if request
            .parse(&bytes[..length])
            .map_err(|_| ErrorKind::InvalidData)?
            .is_complete()
        {
            let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
            return Ok(Asked {
                method: text(request.method),
                target: text(request.path),
            });
        }
    }
}

struct Reply {
    status: u16,
    reason: &'static str,
    content_type: &'static str,
    body: String,
    without_body: bool,
}

impl Reply {
    fn text(status: u16, reason: &'static str) -> Reply {
        let content_type = "text/plain; charset=utf-8";
        Reply {
            status,
            reason,
            content_type,
            body: format!("{reason}\n"),
            without_body: false,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let Reply {
            status,
            reason,
            content_type,
            body,
            without_body,
        } = self;
        let allow = if *status == 405 {
            "Allow: GET, HEAD\r\n"
        } else {
            ""
        };
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{allow}\
             Connection: close\r\n\r\n",
            body.len()
        );
        let mut bytes = head.into_bytes();
        if !without_body {
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LONG, example_snapshot};
    use super::*;

    fn exporter() -> Exporter {
        let any = "127.0.0.1:0".parse().unwrap();
        Exporter::start(any, Arc::new(example_snapshot)).unwrap()
    }

    fn connect(exporter: &Exporter) -> TcpStream {
        let stream = TcpStream::connect(exporter.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    fn ask(exporter: &Exporter, request: &str) -> String {
        let mut stream = connect(exporter);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_scrape_gets_the_numbers_with_their_length() {
        let answer = ask(&exporter(), "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(head.contains("Content-Type: text/plain; version=0.0.4"));
        assert!(body.contains("\nforebay_process_nbthread 2\n"), "{body}");
    }

    #[test]
    fn what_else_may_be_asked() {
        let exporter = exporter();
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
            ("GET /metricsx HTTP/1.1\r\n\r\n", "404 Not Found"),
            (
                "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                "405 Method Not Allowed",
            ),
            ("HELO example\r\n\r\n", "400 Bad Request"),
            ("\x16\x03\x01", "400 Bad Request"),
        ] {
            let answer = ask(&exporter, request);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}\r\n")),
                "{request}: {answer}"
            );
            assert!(answer.contains("Connection: close\r\n"));
        }
        let answer = ask(&exporter, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n"),
            "{answer}"
        );
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(REQUEST_MAX));
        assert!(ask(&exporter, &long).starts_with("HTTP/1.1 400 "));
    }

    #[test]
    fn scrapers_that_say_nothing_keep_out_others_only_for_a_while() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let patience = Duration::from_millis(500);
        let exporter = Exporter::serve(
            listener,
            Scrapes {
                source: Arc::new(example_snapshot),
                patience,
            },
        )
        .unwrap();
        let mut silent: Vec<_> = (0..SCRAPES_MAX).map(|_| connect(&exporter)).collect();
        let answer = ask(&exporter, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let mut answer = String::new();
        silent[0].read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
}
