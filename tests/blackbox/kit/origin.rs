//! A scripted origin: a listener, a thread per connection, and a closure that is run for every request.
//!
//! The closure is the script, its argument an [`Exchange`]. Connections are numbered from 1, and so are the requests on each; both numbers stand in
//! every answer made by [`Exchange::answer`] and in [`Seen`], the record of what arrived.

use super::eventually;
use super::exchange::Exchange;
use super::stream::{Address, Stream};
use super::wire::{Head, Wire};
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an origin's connection may stay silent; longer than any test.
pub(super) const SILENCE: Duration = Duration::from_secs(120);

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) connection: u32,
    pub(crate) request: u32,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) head: Head,
    /// The first 64 KiB of the body, once the script has read it whole.
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) trailers: Vec<(String, String)>,
}

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Accepts {
    /// It is served.
    Yes,
    /// It is closed at once.
    ThenCloses,
    /// It is reset at once.
    ThenResets,
}

/// An origin server on a port of its own (or a path).
pub(crate) struct Origin {
    shared: Arc<Shared>,
    address: Address,
    accepting: Mutex<Option<Accepting>>,
}

pub(super) struct Shared {
    script: Box<dyn Fn(&mut Exchange) + Send + Sync>,
    accepts: AtomicU8,
    connections: AtomicU32,
    pub(super) seen: Mutex<Vec<Seen>>,
    open: Mutex<BTreeMap<u32, Stream>>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

struct Accepting {
    listener: Arc<Listener>,
    thread: JoinHandle<()>,
}

impl Origin {
    /// Runs this script for every request, on a free port of 127.0.0.1.
    pub(crate) fn start(script: impl Fn(&mut Exchange) + Send + Sync + 'static) -> Origin {
        Origin::start_at(&Address::parse("127.0.0.1:0"), script)
    }

    /// The same at a given address.
    pub(crate) fn start_at(at: &Address, script: impl Fn(&mut Exchange) + Send + Sync + 'static) -> Origin {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            accepts: AtomicU8::new(Accepts::Yes as u8),
            connections: AtomicU32::new(0),
            seen: Mutex::default(),
            open: Mutex::default(),
        });
        let (accepting, address) = accept_at(at, &shared);
        Origin {
            shared,
            address,
            accepting: Mutex::new(Some(accepting)),
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// What becomes of connections from now on.
    pub(crate) fn accept(&self, how: Accepts) {
        self.shared.accepts.store(how as u8, Ordering::SeqCst);
    }

    /// How many connections were ever accepted.
    pub(crate) fn connections(&self) -> u32 {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many are open now.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.lock().expect("not poisoned").len()
    }

    /// Every request whose head arrived, in order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().expect("not poisoned").clone()
    }

    /// The requests with that target, waiting for at least one.
    #[track_caller]
    pub(crate) fn saw(&self, target: &str) -> Vec<Seen> {
        eventually(target, || {
            let found: Vec<Seen> = self
                .seen()
                .into_iter()
                .filter(|seen| seen.target == target)
                .collect();
            (!found.is_empty()).then_some(found)
        })
    }

    /// The only request with that target.
    #[track_caller]
    pub(crate) fn saw_once(&self, target: &str) -> Seen {
        let found = self.saw(target);
        assert_eq!(found.len(), 1, "{target} arrived {} times", found.len());
        found.into_iter().next().expect("one")
    }

    /// Ends every connection in the regular way, as a server does whose idle time is over.
    pub(crate) fn close_connections(&self) {
        for stream in self.shared.open.lock().expect("not poisoned").values() {
            stream.shutdown(Shutdown::Both);
        }
        eventually("the origin's connections end", || {
            (self.open() == 0).then_some(())
        });
    }

    /// As after `kill -9`: the port refuses, connections are reset.
    pub(crate) fn crash(&self) {
        let Some(accepting) = self.accepting.lock().expect("not poisoned").take() else {
            return;
        };
        accepting.listener.stop();
        accepting.thread.join().expect("no panic");
        for stream in self.shared.open.lock().expect("not poisoned").values() {
            stream.reset_on_close();
            stream.shutdown(Shutdown::Read);
        }
    }

    /// Listens again at the same address after [`Origin::crash`].
    pub(crate) fn restart(&self) {
        let mut accepting = self.accepting.lock().expect("not poisoned");
        assert!(accepting.is_none(), "it still listens");
        *accepting = Some(accept_at(&self.address, &self.shared).0);
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.crash();
    }
}

impl Listener {
    fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Listener::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
        }
    }

    /// Makes `accept` return.
    fn stop(&self) {
        let socket = match self {
            Listener::Tcp(listener) => socket2::SockRef::from(listener),
            Listener::Unix(listener) => socket2::SockRef::from(listener),
        };
        let _ = socket.shutdown(Shutdown::Both);
    }
}

fn accept_at(at: &Address, shared: &Arc<Shared>) -> (Accepting, Address) {
    let (listener, address) = match at {
        Address::Tcp(socket) => {
            let listener = TcpListener::bind(socket).unwrap_or_else(|error| panic!("bind {at}: {error}"));
            let address = Address::Tcp(listener.local_addr().expect("an address"));
            (Listener::Tcp(listener), address)
        }
        Address::Unix(path) => {
            let _ = std::fs::remove_file(path);
            let listener = UnixListener::bind(path).unwrap_or_else(|error| panic!("bind {at}: {error}"));
            (Listener::Unix(listener), at.clone())
        }
    };
    let listener = Arc::new(listener);
    let (mine, shared) = (Arc::clone(&listener), Arc::clone(shared));
    let thread = std::thread::spawn(move || {
        while let Ok(stream) = mine.accept() {
            let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
            let how = shared.accepts.load(Ordering::SeqCst);
            if how == Accepts::ThenResets as u8 {
                stream.reset_on_close();
            }
            if how == Accepts::Yes as u8 {
                shared
                    .open
                    .lock()
                    .expect("not poisoned")
                    .insert(number, stream.again());
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, number, &shared));
            }
        }
    });
    (Accepting { listener, thread }, address)
}

fn serve(stream: Stream, connection: u32, shared: &Shared) {
    let mut wire = Wire::new(stream);
    let mut request = 0;
    while let Ok(head) = wire.head(SILENCE) {
        request += 1;
        let mut exchange = Exchange::new(&mut wire, shared, head, connection, request);
        (shared.script)(&mut exchange);
        if exchange.body().is_none() || !exchange.is_open() {
            break;
        }
    }
    shared.open.lock().expect("not poisoned").remove(&connection);
}
