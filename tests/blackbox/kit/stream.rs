//! Addresses and connected sockets, TCP and Unix alike.

use super::PATIENCE;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// As printed by `listening NAME ADDRESS`.
    pub(crate) fn parse(text: &str) -> Address {
        match text.strip_prefix("unix:") {
            Some(path) => Address::Unix(path.into()),
            None => Address::Tcp(
                text.parse()
                    .unwrap_or_else(|_| panic!("not an address: {text:?}")),
            ),
        }
    }

    /// A new connection, or why there is none.
    pub(crate) fn connect(&self) -> io::Result<Stream> {
        match self {
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, PATIENCE)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path)?)),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A connected stream socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// A second handle of the same socket.
    pub(crate) fn again(&self) -> Stream {
        match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone().expect("descriptor")),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone().expect("descriptor")),
        }
    }

    /// Ends one direction or both; nothing if the peer was faster.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(how),
            Stream::Unix(stream) => stream.shutdown(how),
        };
    }

    /// Makes the close of the last handle a reset (TCP only).
    pub(crate) fn reset_on_close(&self) {
        if let Stream::Tcp(stream) = self {
            let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// Everything, or an error within [`PATIENCE`] of silence.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_write_timeout(Some(PATIENCE))?;
                stream.write_all(bytes)
            }
            Stream::Unix(stream) => {
                stream.set_write_timeout(Some(PATIENCE))?;
                stream.write_all(bytes)
            }
        }
    }

    /// What is there, waiting at most so long for the first byte.
    pub(super) fn read(&mut self, into: &mut [u8], wait: Duration) -> io::Result<usize> {
        let wait = Some(wait.max(Duration::from_millis(1)));
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(wait)?;
                stream.read(into)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(wait)?;
                stream.read(into)
            }
        }
    }
}
