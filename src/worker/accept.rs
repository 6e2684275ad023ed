//! New client connections: accepted a few per listener and turn (SCH-7), handed off to a less loaded worker (SCH-8).
//!
//! When descriptors run out, accepting pauses and is tried again a tenth of a second later; what waits stays in the
//! kernel's queue. A listening socket is closed only after everything that waits in it was accepted.

use super::session::{Keep, NEVER, Phase, Session};
use super::{HandOff, Worker};
use crate::decide::schedule::{self, Margin};
use crate::net::{Accepted, Key, Kind, Listener, Token};
use crate::observe::messages::Level;
use crate::shared::generation::ListenerId;
use crate::shared::orders::Place;
use std::io;

/// One listening socket of this worker.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) id: ListenerId,
    place: Place,
    listener: Option<Listener>,
    /// Somebody may wait to be accepted.
    pub(super) ready: bool,
    /// Raised when the place is used again.
    pub(super) key_generation: u32,
}

impl Listening {
    pub(super) fn is_open(&self) -> bool {
        self.listener.is_some()
    }
}

impl Worker {
    pub(super) fn listen(&mut self, id: ListenerId, place: Place, mut listener: Listener) {
        let slot = self.listeners.iter().position(|listening| !listening.is_open());
        let slot = slot.unwrap_or_else(|| {
            self.listeners.push(Listening {
                id,
                place,
                listener: None,
                ready: false,
                key_generation: 0,
            });
            self.listeners.len() - 1
        });
        let generation = self.listeners[slot].key_generation + 1;
        let token = Token {
            kind: Kind::Listener,
            key: Key {
                slot: slot as u32,
                generation,
            },
        };
        if let Err(error) = self.poller.register_listener(&mut listener, token) {
            return self.messages.say(
                Level::Error,
                "cannot watch a listening socket",
                &[("error", &error)],
            );
        }
        // Clients may have come before the registration; an edge for them is not promised.
        self.listeners[slot] = Listening {
            id,
            place,
            listener: Some(listener),
            ready: true,
            key_generation: generation,
        };
    }

    pub(super) fn rename(&mut self, place: Place, id: ListenerId) {
        self.listeners
            .iter_mut()
            .filter(|listening| listening.place == place)
            .for_each(|it| it.id = id);
    }

    /// Accepts what waits, then closes the sockets of one address, or all.
    pub(super) fn unlisten(&mut self, place: Option<Place>) {
        for at in 0..self.listeners.len() {
            if place.is_some_and(|place| place != self.listeners[at].place) {
                continue;
            }
            while let Some((id, accepted)) = self.accept_one(at) {
                self.admit(id, accepted);
            }
            let listening = &mut self.listeners[at];
            listening.ready = false;
            if let Some(mut listener) = listening.listener.take() {
                let _ = self.poller.deregister(&mut listener);
            }
        }
    }

    pub(super) fn accept_all(&mut self) {
        if self.accept_resume <= self.now {
            self.accept_resume = NEVER;
            self.listeners
                .iter_mut()
                .for_each(|listening| listening.ready = listening.is_open());
        }
        for place in 0..self.listeners.len() {
            if !self.listeners[place].ready {
                continue;
            }
            for _ in 0..self.measures.max_accept {
                let Some((id, accepted)) = self.accept_one(place) else {
                    break;
                };
                self.place(id, accepted);
            }
        }
    }

    /// Accepts one connection; `None` when nobody waits or accepting has to pause.
    fn accept_one(&mut self, place: usize) -> Option<HandOff> {
        let listening = &mut self.listeners[place];
        let id = listening.id;
        let accepted = loop {
            match listening.listener.as_ref()?.accept() {
                // The client gave up while it waited: the next one is behind it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                accepted => break accepted,
            }
        };
        match accepted {
            Ok(accepted) => {
                self.own_statistics.of(self.id).accepts.count();
                Some((id, accepted))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                listening.ready = false;
                None
            }
            Err(error) => {
                self.listeners
                    .iter_mut()
                    .for_each(|listening| listening.ready = false);
                self.accept_resume = self.now + self.measures.accept_pause;
                self.statistics().accept_pauses.count();
                self.messages
                    .say(Level::Warn, "accepting pauses", &[("error", &error)]);
                None
            }
        }
    }

    /// Keeps a client, or hands it to a worker with clearly fewer.
    fn place(&mut self, id: ListenerId, accepted: Accepted) {
        let own = usize::from(self.id.0);
        let generation = self.tables.get(self.tables.current());
        let Some(listener) = generation.listener(id) else {
            return self.admit(id, accepted);
        };
        // Who waits in another's mailbox is a part of its load already: a burst must not go to one worker whole.
        let loads = self
            .process
            .loads()
            .filter(|(worker, _)| listener.accepts(*worker))
            .map(|(worker, load)| (worker, load + self.postboxes[worker].hand_offs_waiting() as u32));
        let margin = Margin {
            connections: self.measures.hand_off_connections,
            fraction: self.measures.hand_off_fraction,
        };
        match schedule::hand_off(own, loads, self.sessions.len() as u32, margin) {
            Some(other) => match self.postboxes[other].hand_off((id, accepted)) {
                Ok(()) => self.statistics().hand_offs_given.count(),
                Err((id, accepted)) => self.admit(id, accepted),
            },
            None => self.admit(id, accepted),
        }
    }

    /// A client connection becomes a session of this worker.
    pub(super) fn admit(&mut self, listener: ListenerId, accepted: Accepted) {
        let key = self.sessions.insert(Session {
            stream: accepted.stream,
            client: accepted.client,
            listener,
            pinned: None,
            phase: Phase::Idle,
            keep: Keep::Yes,
            queued: false,
            spared: false,
            unseen: false,
            requests: 0,
            input: Vec::new(),
            output: Vec::new(),
            output_sent: 0,
            private: Vec::new(),
            last: None,
            active: self.now,
            since: self.now,
            timer_at: NEVER,
        });
        let session = self.sessions.get_mut(key).expect("just inserted");
        let token = Token {
            kind: Kind::Client,
            key,
        };
        if let Err(error) = self.poller.register(&mut session.stream, token) {
            self.sessions.remove(key);
            return self.messages.say(
                Level::Error,
                "cannot watch a client connection",
                &[("error", &error)],
            );
        }
        self.process.set_load(self.id, self.sessions.len() as u32);
        if let Some(statistics) = self.listener_statistics(None, listener) {
            statistics.connections.count();
            statistics.sessions.raise();
        }
        self.arm(key);
    }
}
