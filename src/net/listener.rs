//! Listening sockets: binding them and accepting from them.
//!
//! Every worker has its own socket for an address (`SO_REUSEPORT`): the kernel spreads the clients. Because that
//! option would also let a second process join in silently, an address is first bound without it.

use super::address::Address;
use super::stream::Stream;
use mio::event::Source;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

const BACKLOG: i32 = 4096;

/// A socket that accepts client connections.
#[derive(Debug)]
pub struct Listener(Inner);

#[derive(Debug)]
enum Inner {
    Tcp(mio::net::TcpListener),
    Unix(mio::net::UnixListener),
}

/// A client connection just accepted.
#[derive(Debug)]
pub struct Accepted {
    /// The socket, not registered yet.
    pub stream: Stream,
    /// The client's address; 0.0.0.0:0 for a Unix socket.
    pub client: SocketAddr,
}

impl Listener {
    /// Binds `count` sockets to one address and tells which (port 0 picks a free one). A Unix address gets one.
    ///
    /// # Errors
    /// The address is in use, not ours, or not permitted.
    pub fn bind(address: &Address, count: usize) -> io::Result<(Address, Vec<Listener>)> {
        match address {
            Address::Unix(path) => Ok((address.clone(), vec![bind_unix(path)?])),
            Address::Tcp(address) => {
                if address.port() != 0 {
                    tcp_socket(*address, false)?;
                }
                let first = tcp_socket(*address, true)?;
                let bound = first
                    .local_addr()?
                    .as_socket()
                    .expect("an IP socket has an IP address");
                let mut sockets = vec![first];
                for _ in 1..count {
                    sockets.push(tcp_socket(bound, true)?);
                }
                for socket in &sockets {
                    socket.listen(BACKLOG)?;
                }
                let listeners = sockets
                    .into_iter()
                    .map(|socket| Listener(Inner::Tcp(mio::net::TcpListener::from_std(socket.into()))));
                Ok((Address::Tcp(bound), listeners.collect()))
            }
        }
    }

    /// Accepts one connection; `WouldBlock` when nobody waits.
    pub fn accept(&self) -> io::Result<Accepted> {
        match &self.0 {
            Inner::Tcp(listener) => {
                let (stream, client) = listener.accept()?;
                Ok(Accepted {
                    stream: Stream::tcp(stream),
                    client,
                })
            }
            Inner::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                let client = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
                Ok(Accepted {
                    stream: Stream::unix(stream),
                    client,
                })
            }
        }
    }
}

impl Source for Listener {
    fn register(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        match &mut self.0 {
            Inner::Tcp(listener) => listener.register(registry, token, interests),
            Inner::Unix(listener) => listener.register(registry, token, interests),
        }
    }

    fn reregister(
        &mut self,
        registry: &mio::Registry,
        token: mio::Token,
        interests: mio::Interest,
    ) -> io::Result<()> {
        match &mut self.0 {
            Inner::Tcp(listener) => listener.reregister(registry, token, interests),
            Inner::Unix(listener) => listener.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &mio::Registry) -> io::Result<()> {
        match &mut self.0 {
            Inner::Tcp(listener) => listener.deregister(registry),
            Inner::Unix(listener) => listener.deregister(registry),
        }
    }
}

fn tcp_socket(address: SocketAddr, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Accepted sockets inherit it: one system call less per client.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    if !reuse_port {
        // Only a listening socket collides with one that other sockets share.
        socket.listen(1)?;
    }
    Ok(socket)
}

fn bind_unix(path: &Path) -> io::Result<Listener> {
    match mio::net::UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && nobody_answers(path) => {
            std::fs::remove_file(path)?;
            Ok(Listener(Inner::Unix(mio::net::UnixListener::bind(path)?)))
        }
        result => Ok(Listener(Inner::Unix(result?))),
    }
}

fn nobody_answers(path: &Path) -> bool {
    let attempt = std::os::unix::net::UnixStream::connect(path);
    attempt.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_use_is_refused_although_ports_are_shared() {
        let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let (bound, sockets) = Listener::bind(&any, 3).unwrap();
        assert_eq!(sockets.len(), 3);
        let error = Listener::bind(&bound, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(sockets);
        Listener::bind(&bound, 2).unwrap();
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_and_a_live_one_is_not() {
        let path = std::env::temp_dir().join(format!("forebay-listener-{}.sock", std::process::id()));
        let address = Address::Unix(path.clone());
        let (_, first) = Listener::bind(&address, 1).unwrap();
        assert_eq!(
            Listener::bind(&address, 1).unwrap_err().kind(),
            io::ErrorKind::AddrInUse
        );
        drop(first);
        Listener::bind(&address, 1).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
