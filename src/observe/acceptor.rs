//! A listening socket beside the proxy: one thread that accepts, one short-lived thread per connection, bounded.
//!
//! The metrics and the runtime commands stand on it. Whoever is over the bound waits in the socket's own queue until
//! one of the served ones ends, which their deadlines see to. Dropping an [`Acceptor`] ends the accepting and closes
//! the socket; connections that are being served go on to their end.

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A listening socket.
pub trait Listening: AsRawFd + Send + 'static {
    /// What it accepts.
    type Stream: Send + 'static;
    /// Accepts one connection; its reads and writes block.
    fn accept_one(&self) -> io::Result<Self::Stream>;
    /// Makes accepting itself never block.
    fn never_block(&self) -> io::Result<()>;
}

impl Listening for TcpListener {
    type Stream = TcpStream;

    fn accept_one(&self) -> io::Result<TcpStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn never_block(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Listening for UnixListener {
    type Stream = UnixStream;

    fn accept_one(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn never_block(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

/// An accepting thread.
#[derive(Debug)]
pub struct Acceptor {
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts accepting; at most `connections_max` are served at a time. `serve` runs on a thread for each of them and
    /// keeps its own deadlines; `name` is the name of all these threads.
    pub fn start<L: Listening>(
        name: &'static str,
        listener: L,
        connections_max: usize,
        serve: impl Fn(L::Stream) + Send + Sync + 'static,
    ) -> io::Result<Acceptor> {
        listener.never_block()?;
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        poll.registry()
            .register(&mut SourceFd(&listener.as_raw_fd()), ACCEPT, Interest::READABLE)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let places = Places {
            taken: AtomicUsize::new(0),
            waker: Arc::clone(&waker),
        };
        let accepting = Accepting {
            name,
            listener,
            stopping: Arc::clone(&stopping),
            places: Arc::new(places),
            connections_max,
            serve: Arc::new(serve),
        };
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || accepting.run(poll))?;
        Ok(Acceptor {
            stopping,
            waker,
            thread: Some(thread),
        })
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // Without the wake-up the thread would stay; then it must not be waited for.
        if self.waker.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

const WAKE: Token = Token(0);
const ACCEPT: Token = Token(1);
/// How long accepting pauses when the process has run out of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);

struct Accepting<L: Listening, S> {
    name: &'static str,
    listener: L,
    stopping: Arc<AtomicBool>,
    places: Arc<Places>,
    connections_max: usize,
    serve: Arc<S>,
}

impl<L: Listening, S: Fn(L::Stream) + Send + Sync + 'static> Accepting<L, S> {
    fn run(self, mut poll: Poll) {
        let mut events = Events::with_capacity(4);
        let mut pause = None;
        while !self.stopping.load(Ordering::Acquire) {
            match poll.poll(&mut events, pause) {
                Ok(()) => pause = self.accept_all(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    /// Accepts whoever is there and has a place; says when to look again although the poller stays silent.
    fn accept_all(&self) -> Option<Duration> {
        while self.places.taken.load(Ordering::Acquire) < self.connections_max {
            match self.listener.accept_one() {
                Ok(stream) => self.take_on(stream),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return None,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => return Some(PAUSE),
                },
            }
        }
        None
    }

    fn take_on(&self, stream: L::Stream) {
        let place = Place::of(&self.places);
        let serve = Arc::clone(&self.serve);
        // A thread that cannot be had closes the connection.
        let _ = thread::Builder::new().name(self.name.into()).spawn(move || {
            let _place = place;
            serve(stream);
        });
    }
}

/// How many connections are being served; only the accepting thread adds to them.
struct Places {
    taken: AtomicUsize,
    waker: Arc<Waker>,
}

/// One of the connections being served, until dropped. Its end wakes the accepting thread.
struct Place {
    places: Arc<Places>,
}

impl Place {
    fn of(places: &Arc<Places>) -> Place {
        places.taken.fetch_add(1, Ordering::Relaxed);
        Place {
            places: Arc::clone(places),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.fetch_sub(1, Ordering::Release);
        // Fails only when the poller is gone, and with it the need.
        let _ = self.places.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::LONG;
    use super::*;
    use std::io::{Read, Write};

    /// Answers each byte until the client ends.
    fn echo(mut stream: TcpStream) {
        let mut byte = [0];
        while stream.read(&mut byte).is_ok_and(|length| length == 1) {
            assert_ne!(byte, *b"!", "a fault, for the test");
            let _ = stream.write_all(&byte);
        }
    }

    fn ask(stream: &mut TcpStream, byte: u8) -> Option<u8> {
        let mut answer = [0];
        let _ = stream.write_all(&[byte]);
        (stream.read(&mut answer).ok()? == 1).then_some(answer[0])
    }

    fn connect(address: std::net::SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    #[test]
    fn connections_over_the_bound_wait_for_a_place() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = Acceptor::start("echo", listener, 2, echo).unwrap();
        let (mut one, mut two, mut three) = (connect(address), connect(address), connect(address));
        assert_eq!(
            (ask(&mut one, b'1'), ask(&mut two, b'2')),
            (Some(b'1'), Some(b'2'))
        );
        three.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert_eq!(ask(&mut three, b'3'), None, "no place yet");
        three.set_read_timeout(Some(LONG)).unwrap();
        assert_eq!(
            ask(&mut one, b'!'),
            None,
            "a panic ends its own connection, and leaves its place"
        );
        assert_eq!(ask(&mut three, b'4'), Some(b'3'));
        drop(two);
        assert_eq!(ask(&mut connect(address), b'5'), Some(b'5'));
        drop(acceptor);
        assert_eq!(
            TcpStream::connect(address).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        assert_eq!(ask(&mut three, b'6'), Some(b'4'), "goes on to its end");
    }
}
