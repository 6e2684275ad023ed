//! Where each connection is. Its number is all that the pool is given, so whoever lent it twice, lost it or counted it
//! wrong would be seen here.
//!
//! ```text
//! opening ──► busy ◄──► parked in the shard of one worker
//!               │ ▲
//!               ▼ │
//!             private to one client
//! ```

use super::invariant::Invariant;
use crate::policy::{ServerId, WorkerId};
use crate::shared::key::PoolKey;
use crate::shared::pool::{Busy, Ticket};
use slab::Slab;

/// A connection, as the pool holds it: its place among all, and its serial number, since places are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    at: u32,
    serial: u32,
}

/// A connection that is open, or being opened.
#[derive(Debug)]
pub(super) struct Connection {
    /// Counted from 1.
    pub(super) serial: u32,
    pub(super) server: ServerId,
    /// In whose poll it is.
    pub(super) worker: WorkerId,
    pub(super) place: Place,
    /// Responses that came on it.
    pub(super) responses: u32,
    /// Requests on it now.
    pub(super) streams: u32,
    /// Of its last request.
    pub(super) client: u32,
    /// Its server has said that it closes it.
    pub(super) ending: bool,
    /// Under which its free streams are offered.
    pub(super) offer: Option<Ticket>,
    /// Who may use it.
    pub(super) key: Option<PoolKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Opening,
    Busy,
    Parked,
    Private,
}

/// All connections, and how many of each server are where.
#[derive(Debug)]
pub(super) struct Connections {
    all: Slab<Connection>,
    opened: u32,
    servers: Vec<Counts>,
}

/// Connections of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) used: u32,
    pub(super) parked: u32,
    pub(super) private: u32,
}

/// What is wrong with a move.
pub(super) type Wrong = (Invariant, String);

impl Name {
    /// What the owner calls it where its free streams are offered.
    pub(super) fn busy(self) -> Busy {
        Busy(u64::from(self.serial) << 32 | u64::from(self.at))
    }

    pub(super) fn of(busy: Busy) -> Name {
        Name {
            at: busy.0 as u32,
            serial: (busy.0 >> 32) as u32,
        }
    }
}

impl Connections {
    pub(super) fn new(servers: usize) -> Self {
        Connections {
            all: Slab::new(),
            opened: 0,
            servers: vec![Counts::default(); servers],
        }
    }

    /// There are so many servers by now.
    pub(super) fn make_room(&mut self, servers: usize) {
        if self.servers.len() < servers {
            self.servers.resize(servers, Counts::default());
        }
    }

    /// Opens one for a request of this client.
    pub(super) fn open(&mut self, server: ServerId, worker: WorkerId, client: u32) -> Name {
        self.opened += 1;
        self.servers[server.0 as usize].used += 1;
        let at = self.all.insert(Connection {
            serial: self.opened,
            server,
            worker,
            place: Place::Opening,
            responses: 0,
            streams: 1,
            client,
            ending: false,
            offer: None,
            key: None,
        });
        Name {
            at: at as u32,
            serial: self.opened,
        }
    }

    pub(super) fn get(&self, name: Name) -> &Connection {
        &self.all[name.at as usize]
    }

    pub(super) fn get_mut(&mut self, name: Name) -> &mut Connection {
        &mut self.all[name.at as usize]
    }

    pub(super) fn of(&self, server: ServerId) -> Counts {
        self.servers[server.0 as usize]
    }

    /// All that are open.
    pub(super) fn open_in_all(&self) -> u32 {
        self.all.len() as u32
    }

    /// Moves one; it must be where it is said to be.
    pub(super) fn go(&mut self, name: Name, from: Place, to: Place) -> Result<(), Wrong> {
        let is_it = |connection: &&mut Connection| connection.serial == name.serial;
        let Some(connection) = self.all.get_mut(name.at as usize).filter(is_it) else {
            return Err(nowhere(name, from));
        };
        if connection.place != from {
            return Err(elsewhere(connection, from));
        }
        connection.place = to;
        let server = &mut self.servers[connection.server.0 as usize];
        *server.at(from) -= 1;
        *server.at(to) += 1;
        Ok(())
    }

    /// The pool has given one away that this worker had parked.
    pub(super) fn found(&mut self, name: Name, parked_by: WorkerId) -> Result<(), Wrong> {
        self.go(name, Place::Parked, Place::Busy)?;
        let connection = self.get(name);
        if connection.worker == parked_by {
            Ok(())
        } else {
            let seen = format!(
                "connection {} is of worker {}, and was found at worker {}",
                connection.serial, connection.worker.0, parked_by.0
            );
            Err((Invariant::OnePlace, seen))
        }
    }

    /// Closes one; it must be where it is said to be.
    pub(super) fn close(&mut self, name: Name, place: Place) -> Result<ServerId, Wrong> {
        let is_it = |connection: &&Connection| connection.serial == name.serial;
        let Some(connection) = self.all.get(name.at as usize).filter(is_it) else {
            return Err(nowhere(name, place));
        };
        if connection.place != place {
            return Err(elsewhere(connection, place));
        }
        let server = connection.server;
        self.all.remove(name.at as usize);
        *self.servers[server.0 as usize].at(place) -= 1;
        Ok(server)
    }
}

impl Counts {
    pub(super) fn in_all(self) -> u32 {
        self.used + self.parked + self.private
    }

    fn at(&mut self, place: Place) -> &mut u32 {
        match place {
            Place::Opening | Place::Busy => &mut self.used,
            Place::Parked => &mut self.parked,
            Place::Private => &mut self.private,
        }
    }
}

fn nowhere(name: Name, expected: Place) -> Wrong {
    let seen = format!("connection {} is closed, not {expected:?}", name.serial);
    (Invariant::OnePlace, seen)
}

fn elsewhere(connection: &Connection, expected: Place) -> Wrong {
    let seen = format!(
        "connection {} is {:?}, not {expected:?}",
        connection.serial, connection.place
    );
    (Invariant::OnePlace, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: ServerId = ServerId(0);

    fn one() -> (Connections, Name) {
        let mut connections = Connections::new(1);
        let name = connections.open(SERVER, WorkerId(1), 7);
        (connections, name)
    }

    #[test]
    fn a_connection_is_counted_where_it_is() {
        let (mut connections, name) = one();
        connections.go(name, Place::Opening, Place::Busy).unwrap();
        connections.go(name, Place::Busy, Place::Parked).unwrap();
        let counts = connections.of(SERVER);
        assert_eq!((counts.used, counts.parked, counts.in_all()), (0, 1, 1));
        connections.found(name, WorkerId(1)).unwrap();
        assert_eq!(connections.of(SERVER).used, 1);
        assert_eq!(connections.close(name, Place::Busy), Ok(SERVER));
        assert_eq!(
            (connections.of(SERVER).in_all(), connections.open_in_all()),
            (0, 0)
        );
    }

    #[test]
    fn what_is_in_two_places_is_seen() {
        let (mut connections, name) = one();
        let broken = |result: Result<(), Wrong>| result.unwrap_err().0;
        assert_eq!(broken(connections.found(name, WorkerId(1))), Invariant::OnePlace);
        connections.go(name, Place::Opening, Place::Parked).unwrap();
        assert_eq!(broken(connections.found(name, WorkerId(0))), Invariant::OnePlace);
        let again = connections.go(name, Place::Parked, Place::Busy);
        assert_eq!(broken(again), Invariant::OnePlace, "it was found already");
        connections.close(name, Place::Busy).unwrap();
        assert!(connections.close(name, Place::Busy).is_err(), "closed twice");
    }
}
