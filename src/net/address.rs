//! A place to listen at or to connect to, as the sockets need it.

use std::net::SocketAddr;
use std::path::PathBuf;

/// A TCP address or the path of a Unix stream socket (`unix:PATH` in a configuration).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A Unix stream socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
