//! A parked connection in the hands of its owner, because of an event on it (POOL-5, TAKE-4).

use super::{Pool, Ticket};
use crate::policy::WorkerId;
use std::ops::{Deref, DerefMut};

/// A parked connection that its owner looks at because of an event. Its place is kept meanwhile, and it stays counted
/// as idle (POOL-5); nobody else can take it.
#[derive(Debug)]
#[must_use = "dropping it closes the connection"]
pub struct Taken<'p, C> {
    pub(super) pool: &'p Pool<C>,
    pub(super) worker: WorkerId,
    pub(super) ticket: Ticket,
    pub(super) connection: Option<C>,
}

impl<C> Taken<'_, C> {
    /// Puts it back in its old place, under its old ticket. `Some`: the pool was drained meanwhile, close it.
    #[must_use = "a connection without a place is closed by the caller"]
    pub fn put_back(mut self) -> Option<C> {
        let connection = self.connection.take()?;
        self.pool
            .shard(self.worker)
            .change(|parked| parked.put_back(self.ticket, connection))
            .err()
    }

    /// Removes it from the pool for good, to be closed.
    pub fn remove(mut self) -> C {
        self.give_up_place();
        self.connection.take().expect(STILL_HERE)
    }

    fn give_up_place(&self) {
        if self
            .pool
            .shard(self.worker)
            .change(|parked| parked.forget(self.ticket))
        {
            self.pool.need.dropped(1);
        }
    }
}

impl<C> Deref for Taken<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.connection.as_ref().expect(STILL_HERE)
    }
}

impl<C> DerefMut for Taken<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect(STILL_HERE)
    }
}

impl<C> Drop for Taken<'_, C> {
    fn drop(&mut self) {
        if self.connection.is_some() {
            self.give_up_place();
        }
    }
}

const STILL_HERE: &str = "only `put_back` and `remove` empty it, and they consume it";
