//! A scripted client on a raw socket: it sends exactly the bytes it is told and reads one response at a time.

use super::stream::Address;
use super::wire::{Body, Broken, Framing, Head, Why, Wire};
use super::{PATIENCE, Proxy};
use std::net::Shutdown;
use std::time::Duration;

/// One client connection.
pub(crate) struct Client {
    wire: Wire,
}

/// One final response with the interim ones before it.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    pub(crate) interim: Vec<Head>,
}

impl Response {
    /// The number of the origin's connection that carried the request, counted from 1.
    #[track_caller]
    pub(crate) fn connection(&self) -> u32 {
        self.number("x-connection")
    }

    /// The number of the request on that connection, counted from 1.
    #[track_caller]
    pub(crate) fn request(&self) -> u32 {
        self.number("x-request")
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether the proxy announced that it closes the connection after this response (RFC 9112 §9.6).
    pub(crate) fn closes(&self) -> bool {
        self.head.names("connection", "close")
    }

    #[track_caller]
    fn number(&self, name: &str) -> u32 {
        let value = self
            .head
            .value(name)
            .unwrap_or_else(|| panic!("no {name} in {self:?}"));
        value.parse().expect("a number")
    }
}

impl Client {
    /// Connects, or fails the test.
    #[track_caller]
    pub(crate) fn connect(to: &Address) -> Client {
        let stream = to
            .connect()
            .unwrap_or_else(|error| panic!("connect to {to}: {error}"));
        Client {
            wire: Wire::new(stream),
        }
    }

    /// To the listener `web` of a proxy.
    #[track_caller]
    pub(crate) fn of(proxy: &Proxy) -> Client {
        Client::connect(&proxy.web())
    }

    /// Sends these bytes, or fails the test.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the proxy takes the bytes");
    }

    /// Sends these bytes if the connection still takes them.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.wire.stream.write(bytes.as_ref())
    }

    /// Sends in pieces of so many bytes, each in a segment of its own (the socket has no Nagle delay), waiting a
    /// moment for an early answer between two.
    #[track_caller]
    pub(crate) fn send_in_pieces(&mut self, bytes: impl AsRef<[u8]>, piece: usize, between: Duration) {
        for each in bytes.as_ref().chunks(piece) {
            self.send(each);
            if !between.is_zero() {
                self.listen_for(between);
            }
        }
    }

    /// `GET` on this connection, which must answer.
    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(get(path));
        self.response("GET")
    }

    /// Sends while it reads: for bodies that are larger than what sockets buffer. Whether the proxy takes the whole
    /// request is not looked at; the response says enough.
    #[track_caller]
    pub(crate) fn exchange(&mut self, method: &str, message: &[u8]) -> Result<Response, Broken> {
        let mut other = self.wire.stream.again();
        std::thread::scope(|scope| {
            let sender = scope.spawn(move || other.write(message));
            let response = self.try_response(method);
            if response.is_err() {
                self.wire.stream.shutdown(Shutdown::Both);
            }
            let _ = sender.join().expect("no panic");
            response
        })
    }

    /// The next final response, or fails the test.
    #[track_caller]
    pub(crate) fn response(&mut self, method: &str) -> Response {
        match self.try_response(method) {
            Ok(response) => response,
            Err(broken) => panic!("no response to {method}: {broken:?}"),
        }
    }

    /// The next final response to a request of that method, or why there is none.
    pub(crate) fn try_response(&mut self, method: &str) -> Result<Response, Broken> {
        let mut interim = Vec::new();
        loop {
            let head = self.head()?;
            let status = status(&head)?;
            if (100..200).contains(&status) && status != 101 {
                interim.push(head);
                continue;
            }
            let bodiless = method == "HEAD" || matches!(status, 101 | 204 | 304);
            let body = match (bodiless, head.framing()) {
                (true, _) => Body::default(),
                (_, framing) => self.body(framing.unwrap_or(Framing::UntilClose))?,
            };
            return Ok(Response {
                status,
                head,
                body: body.bytes,
                trailers: body.trailers,
                interim,
            });
        }
    }

    /// The next head, interim or final.
    pub(crate) fn head(&mut self) -> Result<Head, Broken> {
        self.wire.head(PATIENCE)
    }

    /// The body that follows a head read by [`Client::head`].
    pub(crate) fn body(&mut self, framing: Framing) -> Result<Body, Broken> {
        self.wire.body(framing, PATIENCE)
    }

    /// So many raw bytes, as after an upgrade.
    #[track_caller]
    pub(crate) fn raw(&mut self, count: usize) -> Vec<u8> {
        self.body(Framing::Length(count))
            .expect("bytes of the tunnel")
            .bytes
    }

    /// Waits for bytes for so long and keeps them for the next read; false if none came.
    pub(crate) fn listen_for(&mut self, wait: Duration) -> bool {
        !self.wire.buffer.is_empty() || self.wire.fill(wait).is_ok()
    }

    /// Everything until the proxy closes in the regular way; fails the test on a reset or when it stays open.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.wire
            .rest(PATIENCE)
            .unwrap_or_else(|broken| panic!("no regular end: {broken:?}"))
    }

    /// How the connection ends when nothing more is read from it than what comes.
    pub(crate) fn ending(&mut self) -> Why {
        loop {
            if let Err(broken) = self.wire.fill(PATIENCE) {
                return broken.why;
            }
        }
    }

    /// Ends our direction; answers can still be read.
    pub(crate) fn half_close(&mut self) {
        self.wire.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        self.wire.stream.reset_on_close();
    }
}

/// A plain `GET`.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: app.test\r\n\r\n")
}

/// A request with these field lines (each with CRLF) and this body, framed by length where there is one.
pub(crate) fn request(method: &str, path: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let length = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Length: {}\r\n", body.len())
    };
    let mut message =
        format!("{method} {path} HTTP/1.1\r\nHost: app.test\r\n{fields}{length}\r\n").into_bytes();
    message.extend_from_slice(body);
    message
}

fn status(head: &Head) -> Result<u16, Broken> {
    let number = head
        .line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.get(..3))
        .and_then(|it| it.parse().ok());
    number.ok_or_else(|| Broken {
        why: Why::Malformed(format!("status line {:?}", head.line)),
        got: head.line.clone().into_bytes(),
    })
}
