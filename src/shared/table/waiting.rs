//! Waiting for a slot of a table's servers: enter, take, pass on, cancel, and what happens when a server comes or goes.
//!
//! ```text
//! no slot ──→ queue of a server (tied to it, Q-5) ──┐   a slot of s comes free:
//!      └────→ queue of the backend (any will do) ───┴─→ the better head of the two gets it (Q-11)
//! ```
//!
//! - **A slot is passed on without being lowered.** Its holder compares the head of the server's own queue with that of
//!   the backend's, and grants it to the better one. Only if there is nobody, or the limit was lowered meanwhile
//!   (Q-15), `served` goes down, and then it looks again.
//! - **Nobody waits beside a free slot (Q-9).** Enter, then look; lower, then look; all in one order. In a server's
//!   queue both are changes of one word. In the backend's only the first to enter an empty queue looks, at all servers:
//!   what was free before it came, it finds; who lowers later finds somebody waiting and serves. Those behind it have
//!   nothing to look for. So neither a full backend nor an idle one scans or writes anything shared here.
//! - **A limit that moves** (Q-4) rises with every request that comes: who enters always looks, and so does who comes
//!   while somebody waits ([`BackendTable::arrive`]).
//! - **The current table decides.** Limits and states of an older one are out of date: wait and release with the current
//!   table ([`BackendTable::give_back`]). A worker is behind by a turn at most, and [looks](BackendTable::look) when it
//!   takes up a newer table.
//! - **Order of locks:** none is held together with another one. Of the two queues, the backend's head is read first, its
//!   lock released, then the server's queue locked; if the backend's head is the better one and has gone by then, all
//!   begins again.
//! - **Bounds.** A release serves one, besides those who had given up. A call that finds several slots free serves at
//!   most [`SERVED_MAX`] and says so ([`Grants::take_unfinished`]).

use super::{Admin, BackendTable};
use crate::decide::balance::servers;
use crate::policy::{ServerId, ServerIndex, Table};
use crate::shared::queue::{Granted, Grants, Locked, Outcome, Queue, Rank, Waiter};
use crate::shared::server::Server;
use crate::shared::slots::Release;
use crate::sync::{Arc, AtomicU32, Mutex, Ordering, full_order};
use std::collections::BTreeMap;

/// The most waiters that one call serves with slots that it finds free (Q-10).
pub const SERVED_MAX: usize = 8;
/// How often a better head of the backend's queue may escape before any will do.
const TRIES_MAX: u32 = 4;

/// Where requests of one backend wait for any of its servers, and how many it has. For its life, of all its tables.
#[derive(Debug)]
pub(super) struct Room<C> {
    queue: Queue,
    /// Requests in the backend; counted only where limits move with it (Q-4).
    current: AtomicU32,
    /// All servers that the backend has had since it was opened: a slot of one that has gone is still given back.
    /// Locked for a look, beside no other lock.
    servers: Mutex<BTreeMap<ServerId, Arc<Server<C>>>>,
}

impl<C> Default for Room<C> {
    fn default() -> Self {
        Room {
            queue: Queue::new(),
            current: AtomicU32::new(0),
            servers: Mutex::default(),
        }
    }
}

impl<C> Room<C> {
    /// Requests in the backend.
    pub(super) fn current(&self) -> u32 {
        self.current.load(Ordering::SeqCst)
    }
}

/// What came of wanting to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It waits, or its wait has ended already: see [`Waiter::outcome`].
    Queued {
        /// Its place, needed to [`BackendTable::cancel`].
        rank: Rank,
        /// How many waited there when it came.
        ahead: u32,
    },
    /// The server's queue is at its `maxqueue` (Q-5).
    Full,
    /// The server, or the backend's last one, has gone: choose again with the current table.
    Closed,
}

/// What came of a slot that was to be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    /// To one from the server's own queue.
    ToOwn,
    /// To one from the backend's.
    ToBackend,
    /// Nobody waits for it; it is still held.
    Nobody,
    /// The server had more than its limit: nobody has it any more.
    Lowered,
}

impl<C> BackendTable<C> {
    /// Whether requests wait for any server: a balanced one joins them without trying (Q-8).
    #[inline]
    pub fn is_queued(&self) -> bool {
        !self.waiting.queue.is_empty()
    }

    /// How many wait for any server.
    pub fn queued(&self) -> u32 {
        self.waiting.queue.len()
    }

    /// Whether any server takes balanced requests; otherwise they are refused, not queued (Q-6).
    pub fn has_usable(&self) -> bool {
        servers(self).any(|server| self.usable(server))
    }

    /// The place of a server that is probably at `near`.
    #[inline]
    pub fn find_near(&self, id: ServerId, near: ServerIndex) -> Option<ServerIndex> {
        match self.entries.get(near.at()) {
            Some(entry) if entry.server.id == id => Some(near),
            _ => self.find(id),
        }
    }

    /// A request has come to the backend, before it asks for a server. Where limits move with their number (Q-4), those
    /// who wait may have been waiting for it.
    #[inline]
    pub fn arrive(&self, grants: &mut Grants) {
        if self.moves > 0 {
            let before = self.waiting.current.fetch_add(1, Ordering::SeqCst);
            if before < self.moves {
                full_order();
                self.look(grants);
            }
        }
    }

    /// A request that has come with this table has left the backend.
    #[inline]
    pub fn depart(&self) {
        if self.moves > 0 {
            self.waiting.current.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Takes a slot, if nobody waits for it (Q-3, Q-5). The balancers are not told.
    #[inline]
    pub fn take(&self, server: ServerIndex) -> bool {
        self.at(server).server.slots.take(self.limit(server))
    }

    /// Waits for a slot of `place`, or of any server. `at` is [`Rank::at`].
    ///
    /// Only who found no free slot waits for any; but it need not have looked at all of them.
    pub fn wait(
        &self,
        place: Option<ServerIndex>,
        waiter: Arc<Waiter>,
        (class, at): (i16, i64),
        grants: &mut Grants,
    ) -> Waiting {
        match place {
            Some(server) => self.wait_for(server, waiter, (class, at), grants),
            None => self.wait_for_any(waiter, (class, at), grants),
        }
    }

    fn wait_for(
        &self,
        server: ServerIndex,
        waiter: Arc<Waiter>,
        (class, at): (i16, i64),
        grants: &mut Grants,
    ) -> Waiting {
        let entry = self.at(server);
        let mut queue = entry.server.queue.lock();
        if queue.is_closed() {
            return Waiting::Closed;
        }
        let ahead = queue.len();
        if entry.queueing.queue_max.is_some_and(|most| ahead >= most) {
            return Waiting::Full;
        }
        let rank = queue.insert(class, at, waiter);
        let found = entry.server.slots.enter();
        drop(queue);
        self.changed(server);
        full_order();
        if found.served < self.limit(server) {
            self.serve(server, grants);
        }
        Waiting::Queued { rank, ahead }
    }

    fn wait_for_any(&self, waiter: Arc<Waiter>, (class, at): (i16, i64), grants: &mut Grants) -> Waiting {
        let mut queue = self.waiting.queue.lock();
        if queue.is_closed() {
            return Waiting::Closed;
        }
        let ahead = queue.len();
        let rank = queue.insert(class, at, waiter);
        drop(queue);
        if ahead == 0 || self.moves > 0 {
            full_order();
            self.look(grants);
        }
        Waiting::Queued { rank, ahead }
    }

    /// Ends a wait by its own worker: time is up, or the client left (Q-14). `place` and `rank` are those of
    /// [`Self::wait`], with the same table. `Err`: it has ended already; a slot that was granted is the caller's.
    pub fn cancel(&self, place: Option<ServerIndex>, rank: Rank, waiter: &Waiter) -> Result<(), Outcome> {
        waiter.end(Outcome::Cancelled)?;
        match place {
            None => {
                self.waiting.queue.lock().remove(rank);
            }
            Some(server) => {
                let of = &self.at(server).server;
                let mut queue = of.queue.lock();
                let removed = queue.remove(rank);
                if removed {
                    of.slots.leave();
                }
                drop(queue);
                if removed {
                    self.changed(server);
                }
            }
        }
        Ok(())
    }

    /// Gives a slot back that was taken or granted with any table of the backend; `self` is the current one. `near` is
    /// where the server was.
    #[inline]
    pub fn give_back(&self, server: ServerId, near: ServerIndex, grants: &mut Grants) {
        match self.find_near(server, near) {
            Some(server) => self.release(server, grants),
            None => self.abandon(server),
        }
    }

    /// Gives a slot of this table's server back: to the next who waits for it, if anybody does. Tells the balancers.
    pub fn release(&self, server: ServerIndex, grants: &mut Grants) {
        let passed = self.pass_or_lower(server, grants);
        // What came from the backend's queue took the place of what left.
        if passed != Passed::ToBackend {
            self.changed(server);
        }
        if passed == Passed::Lowered {
            self.serve(server, grants);
        }
    }

    /// Serves those who wait with what is free of a server: its limit was raised, or it came up (Q-10).
    pub fn serve(&self, server: ServerIndex, grants: &mut Grants) {
        let slots = &self.at(server).server.slots;
        let enough = grants.len() + SERVED_MAX;
        loop {
            full_order();
            let most = if slots.waiting() > 0 {
                self.limit(server)
            } else if self.is_queued() {
                match self.limit_for_any(server) {
                    Some(most) => most,
                    None => return,
                }
            } else {
                return;
            };
            if slots.served() >= most {
                return;
            }
            if grants.len() >= enough {
                return grants.leave_unfinished();
            }
            if !slots.claim(most) {
                return;
            }
            self.pass_or_lower(server, grants);
            self.changed(server);
        }
    }

    /// The same for all servers. To be called when a table is taken up, and for what was left unfinished.
    pub fn look(&self, grants: &mut Grants) {
        let enough = grants.len() + SERVED_MAX;
        for server in servers(self) {
            // Planted: who waits for the last server is not seen when it comes back.
            if cfg!(feature = "planted-queue-bug") && server.at() + 1 == self.entries.len() {
                continue;
            }
            self.serve(server, grants);
            if grants.len() >= enough {
                return grants.leave_unfinished();
            }
        }
    }

    /// Lets requests wait for the servers of this table, before it is published (Q-13).
    pub fn open(&self) {
        let known = self
            .entries
            .iter()
            .map(|entry| (entry.server.id, entry.server.clone()));
        self.waiting.servers.lock().extend(known);
        for server in servers(self).filter(|&server| self.keeps_queue(server)) {
            self.at(server).server.queue.lock().open();
        }
        if self.has_usable() {
            self.waiting.queue.lock().open();
        }
    }

    /// Sends those back who waited for a server that has gone, and everybody if the last one has, after this table has
    /// replaced `before`. Answers with their number (Q-13).
    pub fn send_back(&self, before: &BackendTable<C>, grants: &mut Grants) -> u32 {
        let mut sent = 0;
        for former in servers(before) {
            let stays = self.find_near(before.id_of(former), former);
            if !stays.is_some_and(|server| self.keeps_queue(server)) {
                sent += before.send_back_from(former, grants);
            }
        }
        if !self.has_usable() {
            sent += self.send_back_from_any(grants);
        }
        sent
    }

    /// Sends everybody back: no table of the backend is published any more. Answers with their number.
    pub fn retire(&self, grants: &mut Grants) -> u32 {
        let own: u32 = servers(self)
            .map(|server| self.send_back_from(server, grants))
            .sum();
        own + self.send_back_from_any(grants)
    }

    fn send_back_from(&self, server: ServerIndex, grants: &mut Grants) -> u32 {
        let of = &self.at(server).server;
        let mut queue = of.queue.lock();
        queue.close();
        let sent = empty(&mut queue, || of.slots.leave(), grants);
        drop(queue);
        self.changed(server);
        sent
    }

    fn send_back_from_any(&self, grants: &mut Grants) -> u32 {
        let mut queue = self.waiting.queue.lock();
        queue.close();
        empty(&mut queue, || {}, grants)
    }

    /// Gives back a slot of a server that this table does not have. Nobody gets it; who waits for the server by then,
    /// because it is back, is found by the look at the table that has it.
    fn abandon(&self, server: ServerId) {
        let of = self.waiting.servers.lock().get(&server).cloned();
        debug_assert!(of.is_some(), "every table is opened before it is published");
        if let Some(of) = of {
            of.slots.lower();
        }
    }

    /// Whether those who are tied to a server go on waiting for it. One that drains serves whom it has (Q-12).
    fn keeps_queue(&self, server: ServerIndex) -> bool {
        self.at(server).state != Admin::Maint
    }

    /// Up to how many requests a server has may it serve the backend's queue; `None` where it may not (Q-10).
    pub(crate) fn limit_for_any(&self, server: ServerIndex) -> Option<u32> {
        let limit = self.limit(server);
        match &self.tiers {
            None => self.usable(server).then_some(limit),
            Some(tiers) => tiers.limit_for_any(server, limit).filter(|_| self.usable(server)),
        }
    }

    fn pass_or_lower(&self, server: ServerIndex, grants: &mut Grants) -> Passed {
        loop {
            match self.pass(server, grants) {
                Passed::Nobody => match self.at(server).server.slots.release() {
                    Release::Lowered => return Passed::Lowered,
                    Release::Owed => {}
                },
                passed => return passed,
            }
        }
    }

    /// Passes a slot that is held on to the better head of both queues (Q-11).
    fn pass(&self, server: ServerIndex, grants: &mut Grants) -> Passed {
        let slots = &self.at(server).server.slots;
        let nobody_waits_here = slots.waiting() == 0;
        if nobody_waits_here && !self.is_queued() {
            return Passed::Nobody;
        }
        if slots.lower_above(self.limit(server)) {
            return Passed::Lowered;
        }
        if nobody_waits_here {
            let passed = self.serves_any(server) && self.pass_to_any(server, None, grants);
            return if passed { Passed::ToBackend } else { Passed::Nobody };
        }
        for left in (0..TRIES_MAX).rev() {
            let rival = self.best_for_any(server);
            if self.pass_to_own(server, rival, grants) {
                return Passed::ToOwn;
            }
            let Some(rival) = rival else {
                return Passed::Nobody;
            };
            let at_most = (left > 0).then_some(rival);
            if self.pass_to_any(server, at_most, grants) {
                return Passed::ToBackend;
            }
        }
        Passed::Nobody
    }

    /// Whether a slot that is held of this server may go to the backend's queue, and somebody is there.
    fn serves_any(&self, server: ServerIndex) -> bool {
        let served = self.at(server).server.slots.served();
        self.is_queued() && self.limit_for_any(server).is_some_and(|most| served <= most)
    }

    fn best_for_any(&self, server: ServerIndex) -> Option<Rank> {
        if !self.serves_any(server) {
            return None;
        }
        self.waiting.queue.lock().first()
    }

    /// To the first of the server's own queue, unless the rival comes before it.
    fn pass_to_own(&self, server: ServerIndex, rival: Option<Rank>, grants: &mut Grants) -> bool {
        let of = &self.at(server).server;
        let mut queue = of.queue.lock();
        while let Some(first) = queue.first() {
            if rival.is_some_and(|rival| rival.is_before(first)) {
                return false;
            }
            let waiter = queue.pop().expect("it has a first");
            of.slots.leave();
            if waiter.end(self.granted(server)).is_ok() {
                drop(queue);
                grants.add(&waiter);
                return true;
            }
        }
        false
    }

    /// To the first of the backend's queue, unless it comes after `at_most`.
    fn pass_to_any(&self, server: ServerIndex, at_most: Option<Rank>, grants: &mut Grants) -> bool {
        let mut queue = self.waiting.queue.lock();
        while let Some(first) = queue.first() {
            if at_most.is_some_and(|rank| first > rank) {
                return false;
            }
            let waiter = queue.pop().expect("it has a first");
            if waiter.end(self.granted(server)).is_ok() {
                drop(queue);
                grants.add(&waiter);
                return true;
            }
        }
        false
    }

    fn granted(&self, server: ServerIndex) -> Outcome {
        Outcome::Granted(Granted {
            server: self.id_of(server),
            near: server,
        })
    }

    fn id_of(&self, server: ServerIndex) -> ServerId {
        self.at(server).server.id
    }
}

/// Sends everybody back, `beside` each removal.
fn empty(queue: &mut Locked<'_>, beside: impl Fn(), grants: &mut Grants) -> u32 {
    let mut sent = 0;
    while let Some(waiter) = queue.pop() {
        beside();
        if waiter.end(Outcome::SentBack).is_ok() {
            grants.add(&waiter);
            sent += 1;
        }
    }
    sent
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests;
