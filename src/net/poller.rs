//! Readiness: mio's poll behind the few words a worker needs.
//!
//! A socket is registered once, for both directions, for its life in this poll (edge-triggered). A token carries
//! what kind of thing it is, its slot and its generation; an event for something that is gone is silence.

use super::slab::Key;
use mio::event::Source;
use std::io;
use std::time::Duration;

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The mailbox was written to.
    Wake,
    /// A listening socket.
    Listener,
    /// A client connection.
    Client,
    /// A server connection, lent or parked.
    Server,
}

/// What was registered: kind and key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of thing.
    pub kind: Kind,
    /// Where it is.
    pub key: Key,
}

impl Token {
    fn pack(self) -> mio::Token {
        let kind = self.kind as u64;
        mio::Token((kind << 62 | u64::from(self.key.slot) << 32 | u64::from(self.key.generation)) as usize)
    }

    fn unpack(token: mio::Token) -> Token {
        let raw = token.0 as u64;
        let kind = match raw >> 62 {
            0 => Kind::Wake,
            1 => Kind::Listener,
            2 => Kind::Client,
            _ => Kind::Server,
        };
        Token {
            kind,
            key: Key {
                slot: (raw >> 32) as u32 & 0x3fff_ffff,
                generation: raw as u32,
            },
        }
    }
}

/// One event: what is ready.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Whose event it is.
    pub token: Token,
    /// Bytes, an end or an error can be read.
    pub readable: bool,
    /// There is room to write, or a connect has ended.
    pub writable: bool,
    /// The peer has closed its side or the socket has failed: read on to the end.
    pub hangup: bool,
    /// Both directions are closed, whoever closed them.
    pub closed: bool,
    /// The connection is broken.
    pub failed: bool,
}

/// Wakes a worker out of its poll from another thread.
#[derive(Debug)]
pub struct Waker(mio::Waker);

impl Waker {
    /// Wakes the worker. An error would mean that the worker is gone; there is nobody to tell.
    pub fn wake(&self) {
        let _ = self.0.wake();
    }
}

/// Another worker's poll, as far as a connection is taken over from it (TAKE-5).
#[derive(Debug)]
pub struct Registrar(mio::Registry);

impl Registrar {
    /// Takes a stream out of that poll. Events that its worker has in hand already are for the worker to ignore.
    pub fn deregister(&self, source: &mut impl Source) -> io::Result<()> {
        self.0.deregister(source)
    }
}

/// One worker's poll.
#[derive(Debug)]
pub struct Poller {
    poll: mio::Poll,
    events: mio::Events,
}

impl Poller {
    /// A poll that takes at most `events_max` events a call (SCH-6).
    pub fn new(events_max: usize) -> io::Result<Poller> {
        Ok(Poller {
            poll: mio::Poll::new()?,
            events: mio::Events::with_capacity(events_max),
        })
    }

    /// A waker whose events carry [`Kind::Wake`].
    pub fn waker(&self) -> io::Result<Waker> {
        let token = Token {
            kind: Kind::Wake,
            key: Key {
                slot: 0,
                generation: 0,
            },
        };
        Ok(Waker(mio::Waker::new(self.poll.registry(), token.pack())?))
    }

    /// A way for other threads to take a stream out of this poll.
    pub fn registrar(&self) -> io::Result<Registrar> {
        Ok(Registrar(self.poll.registry().try_clone()?))
    }

    /// Waits for events, at most `timeout` (for ever without one), and appends them to `ready`.
    pub fn wait(&mut self, timeout: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        ready.extend(self.events.iter().map(|event| Ready {
            token: Token::unpack(event.token()),
            readable: event.is_readable() || event.is_error(),
            writable: event.is_writable(),
            hangup: event.is_read_closed() || event.is_error(),
            closed: event.is_read_closed() && event.is_write_closed(),
            failed: event.is_error(),
        }));
        Ok(())
    }

    /// Registers a stream for both directions.
    pub fn register(&self, source: &mut impl Source, token: Token) -> io::Result<()> {
        let both = mio::Interest::READABLE | mio::Interest::WRITABLE;
        self.poll.registry().register(source, token.pack(), both)
    }

    /// Registers a listening socket.
    pub fn register_listener(&self, source: &mut impl Source, token: Token) -> io::Result<()> {
        self.poll
            .registry()
            .register(source, token.pack(), mio::Interest::READABLE)
    }

    /// Takes a stream out of this poll.
    pub fn deregister(&self, source: &mut impl Source) -> io::Result<()> {
        self.poll.registry().deregister(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_poll() {
        for kind in [Kind::Wake, Kind::Listener, Kind::Client, Kind::Server] {
            let token = Token {
                kind,
                key: Key {
                    slot: 0x3fff_fffe,
                    generation: u32::MAX,
                },
            };
            assert_eq!(Token::unpack(token.pack()), token);
        }
    }
}
