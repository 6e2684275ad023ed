//! A connected socket and what is known of its readiness.
//!
//! This is the one place that says when a socket is drained: on an edge-triggered stream socket, a read shorter than
//! the buffer means *nothing is left* — unless the event said that the peer has closed or failed, for then no second
//! edge comes and the end must be read (`hangup`). Events set bits; reads and writes clear them.

use super::address::Address;
use super::poller::Ready;
use mio::event::Source;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSlice, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A TCP or Unix stream with its readiness bits.
#[derive(Debug)]
pub struct Stream {
    transport: Transport,
    readable: bool,
    hangup: bool,
    dead: bool,
    writable: bool,
    /// Whether we have ended our side.
    ended: bool,
}

#[derive(Debug)]
enum Transport {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

/// What one read brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes.
    Bytes(usize),
    /// Nothing now; an event will tell.
    Empty,
    /// The peer has closed its side: no byte will come.
    End,
    /// The connection is broken.
    Failed(io::ErrorKind),
}

impl Stream {
    /// A stream just accepted or just being connected. An accepted one is readable once its first event comes.
    pub fn tcp(stream: mio::net::TcpStream) -> Stream {
        Stream::new(Transport::Tcp(stream))
    }

    /// The same for a Unix socket.
    pub fn unix(stream: mio::net::UnixStream) -> Stream {
        Stream::new(Transport::Unix(stream))
    }

    fn new(transport: Transport) -> Stream {
        Stream {
            transport,
            readable: false,
            hangup: false,
            dead: false,
            writable: true,
            ended: false,
        }
    }

    /// Begins to connect, from `source` if one is given (a Unix socket has none). The end of it shows as writability;
    /// see [`Stream::connected`].
    pub fn connect(address: &Address, source: Option<IpAddr>) -> io::Result<Stream> {
        match address {
            Address::Tcp(address) => {
                let stream = match source {
                    None => mio::net::TcpStream::connect(*address)?,
                    Some(source) => connect_from(source, *address)?,
                };
                stream.set_nodelay(true)?;
                let mut stream = Stream::tcp(stream);
                stream.writable = false;
                Ok(stream)
            }
            Address::Unix(path) => Ok(Stream::unix(mio::net::UnixStream::connect(path)?)),
        }
    }

    /// Whether a connect has ended: `Ok(true)` well, `Ok(false)` not yet.
    pub fn connected(&self) -> io::Result<bool> {
        match &self.transport {
            Transport::Tcp(stream) => {
                if let Some(error) = stream.take_error()? {
                    return Err(error);
                }
                match stream.peer_addr() {
                    Ok(_) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
                    Err(error) => Err(error),
                }
            }
            Transport::Unix(stream) => match stream.take_error()? {
                Some(error) => Err(error),
                None => Ok(true),
            },
        }
    }

    /// Takes over what an event says.
    pub fn mark(&mut self, ready: &Ready) {
        self.readable |= ready.readable;
        self.hangup |= ready.hangup;
        // Closed both ways, and one of them is our doing: the peer's last bytes may still be here.
        self.dead |= ready.failed || ready.closed && !self.ended;
        self.writable |= ready.writable;
    }

    /// Whether a read may bring something.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether a write may succeed.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Whether the connection is broken, or the peer has closed both directions.
    pub fn is_dead(&self) -> bool {
        self.dead
    }

    /// Whether the peer has closed its side (an end is to be read behind the bytes that are left).
    pub fn is_hangup(&self) -> bool {
        self.hangup
    }

    /// A write has failed: the end is to be read, behind what the peer sent before.
    pub fn expect_end(&mut self) {
        self.readable = true;
        self.hangup = true;
    }

    /// Reads once into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> Read {
        if !self.readable {
            return Read::Empty;
        }
        loop {
            return match self.transport.read(buffer) {
                Ok(0) => {
                    self.readable = false;
                    Read::End
                }
                Ok(n) => {
                    self.readable = n == buffer.len() || self.hangup;
                    Read::Bytes(n)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    Read::Empty
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.readable = false;
                    Read::Failed(error.kind())
                }
            };
        }
    }

    /// Reads one byte of a parked connection, whatever the bits say: [`Read::Empty`] means it is still good.
    pub fn probe(&mut self) -> Read {
        self.readable = true;
        self.read(&mut [0])
    }

    /// Writes once; tells how many bytes went out (0 when there is no room).
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len();
        self.after_write(length, |transport| transport.write(bytes))
    }

    /// Writes the parts, in order, once.
    pub fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let length = parts.iter().map(|part| part.len()).sum();
        self.after_write(length, |transport| transport.write_vectored(parts))
    }

    fn after_write(
        &mut self,
        length: usize,
        mut write: impl FnMut(&mut Transport) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if !self.writable {
            return Ok(0);
        }
        loop {
            return match write(&mut self.transport) {
                Ok(n) => {
                    self.writable = n == length;
                    Ok(n)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable = false;
                    Ok(0)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Says to the peer that no more bytes come (half-close).
    pub fn end(&mut self) -> io::Result<()> {
        self.ended = true;
        match &self.transport {
            Transport::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Transport::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// Makes the close that follows a reset, so that the peer does not take what it has for the whole.
    pub fn reset_on_close(&self) {
        if let Transport::Tcp(stream) = &self.transport {
            let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
    }
}

impl Source for Stream {
    fn register(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        match &mut self.transport {
            Transport::Tcp(stream) => stream.register(registry, token, interests),
            Transport::Unix(stream) => stream.register(registry, token, interests),
        }
    }

    fn reregister(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        match &mut self.transport {
            Transport::Tcp(stream) => stream.reregister(registry, token, interests),
            Transport::Unix(stream) => stream.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &mio::Registry) -> io::Result<()> {
        match &mut self.transport {
            Transport::Tcp(stream) => stream.deregister(registry),
            Transport::Unix(stream) => stream.deregister(registry),
        }
    }
}

/// Straight to the system call: libc's `recv` and `send` are cancellation points of a threaded process, which costs
/// some sixty instructions each way.
impl Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (n, _) = rustix::net::recv(self.as_fd(), buffer, RecvFlags::empty())?;
        Ok(n)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.as_fd(), bytes, SendFlags::NOSIGNAL)?)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Transport::Tcp(stream) => stream.as_fd(),
            Transport::Unix(stream) => stream.as_fd(),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Transport::Tcp(stream) => stream.write_vectored(parts),
            Transport::Unix(stream) => stream.write_vectored(parts),
        }
    }
}

/// Begins to connect from an address of ours. The system picks a port that no other connection from it has, so that one
/// source has as many connections at once, to all servers together, as there are ephemeral ports.
fn connect_from(source: IpAddr, to: SocketAddr) -> io::Result<mio::net::TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    match socket.connect(&to.into()) {
        Ok(()) => {}
        Err(error) if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(mio::net::TcpStream::from_std(socket.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Stream, std::os::unix::net::UnixStream) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Stream::unix(mio::net::UnixStream::from_std(ours)), theirs)
    }

    #[test]
    fn a_short_read_is_drained_unless_the_peer_hung_up() {
        let (mut stream, mut peer) = pair();
        peer.write_all(b"abc").unwrap();
        stream.readable = true;
        assert_eq!(stream.read(&mut [0; 8]), Read::Bytes(3));
        assert!(!stream.is_readable(), "short: drained");

        peer.write_all(b"def").unwrap();
        drop(peer);
        stream.readable = true;
        stream.hangup = true;
        assert_eq!(stream.read(&mut [0; 8]), Read::Bytes(3));
        assert!(stream.is_readable(), "the end is still to be read");
        assert_eq!(stream.read(&mut [0; 8]), Read::End);
        assert_eq!(stream.read(&mut [0; 8]), Read::Empty);
    }

    #[test]
    fn a_full_read_says_that_more_may_be_there() {
        let (mut stream, mut peer) = pair();
        peer.write_all(b"abcd").unwrap();
        stream.readable = true;
        assert_eq!(stream.read(&mut [0; 4]), Read::Bytes(4));
        assert!(stream.is_readable());
        assert_eq!(stream.read(&mut [0; 4]), Read::Empty);
        assert!(!stream.is_readable());
    }

    #[test]
    fn a_full_pipe_takes_what_fits_and_says_so() {
        let (mut stream, _peer) = pair();
        let big = vec![0; 4 << 20];
        let sent = stream.write(&big).unwrap();
        assert!(sent > 0 && sent < big.len());
        assert!(!stream.is_writable());
        assert_eq!(stream.write(&big).unwrap(), 0);
    }

    #[test]
    fn a_peer_that_ends_after_us_is_not_dead_until_it_fails() {
        let event = |closed, failed| Ready {
            token: crate::net::Token {
                kind: crate::net::Kind::Client,
                key: crate::net::Key {
                    slot: 0,
                    generation: 0,
                },
            },
            readable: true,
            writable: true,
            hangup: true,
            closed,
            failed,
        };
        let (mut stream, _peer) = pair();
        stream.end().unwrap();
        stream.mark(&event(true, false));
        assert!(!stream.is_dead(), "its last bytes are still to be read");
        stream.mark(&event(true, true));
        assert!(stream.is_dead());
        let (mut stream, _peer) = pair();
        stream.mark(&event(true, false));
        assert!(stream.is_dead());
    }

    #[test]
    fn a_probe_tells_quiet_from_closed() {
        let (mut stream, mut peer) = pair();
        assert_eq!(stream.probe(), Read::Empty);
        peer.write_all(b"x").unwrap();
        assert_eq!(stream.probe(), Read::Bytes(1));
        drop(peer);
        assert_eq!(stream.probe(), Read::End);
    }
}
