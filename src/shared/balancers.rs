//! The state of the algorithms that have one, behind one lock per backend.
//!
//! The lock is held for one pick or one move, never together with another lock. The state survives a change of the
//! table: the first pick with a newer table synchronises it by server id (LB-14), under the lock, once. Whoever still
//! holds an older table, for the rest of a turn or of an exchange, cannot turn the state back; such a pick is answered
//! by a scan of its own table.

use crate::decide::balance::leastconn::LeastConn;
use crate::decide::balance::roundrobin::RoundRobin;
use crate::decide::balance::{self, Algorithm};
use crate::policy::{ServerId, ServerIndex, Table};
use crate::sync::Mutex;

/// A table that can say which one it is, and whom it names.
pub trait Identified: Table {
    /// Grows with every table of its backend; the first is 1.
    fn generation(&self) -> u64;
    /// The identity of a server.
    fn id(&self, server: ServerIndex) -> ServerId;
}

/// The rotation, or the order of loads, of one backend.
#[derive(Debug)]
pub struct SharedBalancer {
    algorithm: Algorithm,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Generation of the table that the state is about; 0 before the first.
    generation: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    RoundRobin(RoundRobin),
    LeastConn(LeastConn),
}

impl SharedBalancer {
    /// A rotation that has not begun.
    pub fn roundrobin() -> Self {
        Self::new(Algorithm::RoundRobin, Order::RoundRobin(RoundRobin::default()))
    }

    /// An order of loads that nobody has read yet.
    pub fn leastconn() -> Self {
        Self::new(Algorithm::LeastConn, Order::LeastConn(LeastConn::default()))
    }

    fn new(algorithm: Algorithm, order: Order) -> Self {
        SharedBalancer {
            algorithm,
            state: Mutex::new(State { generation: 0, order }),
        }
    }

    /// What it is the state of.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Chooses a server of that table.
    pub fn pick(&self, table: &impl Identified, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
        let mut state = self.state.lock();
        state.follow(table);
        if state.generation > table.generation() {
            drop(state);
            return balance::least_loaded(table, avoid);
        }
        match &mut state.order {
            Order::RoundRobin(rotation) => rotation.pick(table, avoid),
            Order::LeastConn(least) => least.pick(table, avoid),
        }
    }

    /// A request has left that server, or was refused its slot: where does it stand now (LB-22)? The load is read
    /// under the lock, so that the last of several who tell tells the latest.
    pub fn changed(&self, table: &impl Identified, server: ServerIndex) {
        if self.algorithm != Algorithm::LeastConn {
            return;
        }
        let mut state = self.state.lock();
        state.follow(table);
        let newer = state.generation > table.generation();
        let Order::LeastConn(least) = &mut state.order else {
            return;
        };
        let place = if newer {
            least.find(table.id(server))
        } else {
            Some(server)
        };
        if let Some(place) = place {
            least.changed(place, balance::load(table, server));
        }
    }
}

impl State {
    /// Brings the state to a table that is newer than it.
    fn follow(&mut self, table: &impl Identified) {
        if self.generation >= table.generation() {
            return;
        }
        match &mut self.order {
            Order::RoundRobin(rotation) => rotation.sync(table, |server| table.id(server)),
            Order::LeastConn(least) => least.sync(table, |server| table.id(server)),
        }
        self.generation = table.generation();
    }
}
