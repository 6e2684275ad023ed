//! Waiting for a slot, holding one, giving it back.
//!
//! Who waits is one [`Waiter`] in a queue that all workers share. Whoever ends the wait changes the waiter and sends the
//! worker its token: that only puts the session on the run queue. What became of the wait is read from the waiter, in the
//! session's own step ([`Worker::advance_waiting`]), so that a message too many, too late or for somebody who has gone
//! says nothing. Messages are collected in a buffer and sent after the step, in one burst for each worker.
//!
//! What a request holds here, it holds in its [`Seat`], whatever its machine believes: the exchange's end gives it back.

use super::Worker;
use super::session::Live;
use crate::decide::exchange::{Budget, Event, ServerSide, Taken, Timer};
use crate::decide::usher::{AboutToWait, Admission};

use crate::net::{Address, Connection, Key, Micros};
use crate::policy::{BackendId, Priority, ServerId, ServerIndex, Table};
use crate::shared::generation::{AttachedPolicy, BackendEntry};
use crate::shared::orders::Order;
use crate::shared::queue::{Granted, Outcome, Rank, Waiter};
use crate::shared::statistics::{Phase, QueueStatistics};
use crate::shared::table::Waiting;
use std::sync::Arc;

/// What a request holds of a server's slots and of queues.
#[derive(Debug)]
pub(super) struct Seat {
    /// Its slot.
    slot: Option<Slot>,
    /// Its wait for one.
    wait: Option<Wait>,
    /// Where it stands in a queue, by its route.
    priority: Priority,
    /// When it came to a queue for the first time: its place in the order of every one after.
    arrived: Option<Micros>,
    /// When its waiting ends, slot or not; 0 when it does not wait.
    pub(super) until: Micros,
    /// The turn in which the queue it came to was closed: it chooses again with the tables of the next.
    closed_in: Option<u64>,
    /// Whether it was sent back from a queue.
    pub(super) sent_back: bool,
    /// Whether it came to a closed queue: nothing ties it to that server any more.
    pub(super) turned_away: bool,
    /// Whether its end was the end of a wait.
    pub(super) left_waiting: bool,
    /// The answer to a request that was not let in: status, and seconds of `Retry-After`.
    pub(super) refusal: Option<(u16, Option<u32>)>,
    /// What it counts for in the retry budget.
    weighed: Weighed,
}

/// A slot that is held, of that server, which was at that place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    server: ServerId,
    near: ServerIndex,
}

/// A wait in a queue.
#[derive(Debug)]
struct Wait {
    waiter: Arc<Waiter>,
    place: Option<ServerIndex>,
    rank: Rank,
    since: Micros,
}

/// What a request counts for in the retry budget of its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighed {
    /// Nothing: there was no budget when it came.
    No,
    /// One under way.
    Live,
    /// One under way, on another attempt.
    Trying,
}

/// Requests of this worker in one backend that has a retry budget.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    live: u32,
    trying: u32,
}

/// Whether an exchange goes on with the current table of its backend.
#[derive(Debug)]
pub(super) enum Moved {
    /// It had it.
    Same,
    /// It has it now; this was the former.
    From(Arc<super::Current>, u16),
    /// There is none: the backend has gone.
    Gone,
}

impl Seat {
    /// Of a request that has just come.
    pub(super) fn new(priority: Priority) -> Seat {
        Seat {
            slot: None,
            wait: None,
            priority,
            arrived: None,
            until: 0,
            closed_in: None,
            sent_back: false,
            turned_away: false,
            left_waiting: false,
            refusal: None,
            weighed: Weighed::No,
        }
    }
}

// ---- slots --------------------------------------------------------------------------------------------------------

impl Worker {
    pub(super) fn take_slot(&mut self, exchange: Key, index: ServerIndex) -> Taken {
        let Some(live) = self.exchanges.get(exchange) else {
            return Taken::Refused;
        };
        let table = &self.backend(live).table;
        let server = table.at(index).server.id;
        let taken = self.take_now(live, index);
        // What the balancer did not choose itself, it has to be told of (LB-22).
        if !taken || live.asked {
            table.changed(index);
        }
        if !taken {
            return Taken::Refused;
        }
        let live = self.exchanges.get_mut(exchange).expect("looked up above");
        live.seat.slot = Some(Slot { server, near: index });
        live.seat.until = 0;
        Taken::Yes
    }

    /// Takes a slot by the limit of today, which the exchange's table may not know; none of a server in maintenance.
    fn take_now(&self, live: &Live, index: ServerIndex) -> bool {
        let own = &self.backend(live).table;
        let Some((generation, backend)) = self.newest(live.generation, live.backend) else {
            return own.take(index);
        };
        let table = &self.tables.get(generation).backends[usize::from(backend)].table;
        match table.find_near(own.at(index).server.id, index) {
            Some(place) => table.takes_tied(place) && table.take(place),
            None => own.take(index),
        }
    }

    pub(super) fn release_slot(&mut self, exchange: Key) {
        if let Some(live) = self.exchanges.get_mut(exchange)
            && let Some(slot) = live.seat.slot.take()
        {
            let (generation, backend) = (live.generation, live.backend);
            self.give_back(generation, backend, slot);
        }
    }

    /// Gives a slot back that was had with the table of that place: to whoever waits for it, if anybody does.
    fn give_back(&mut self, generation: u32, backend: u16, slot: Slot) {
        let (generation, at) = self.newest(generation, backend).unwrap_or((generation, backend));
        let Worker { tables, grants, .. } = self;
        let table = &tables.get(generation).backends[usize::from(at)].table;
        table.give_back(slot.server, slot.near, grants);
        let id = table.id;
        self.note_unfinished(id);
    }

    /// Where the backend is in the current generation.
    fn newest(&self, generation: u32, backend: u16) -> Option<(u32, u16)> {
        let current = self.tables.current();
        if generation == current {
            return Some((generation, backend));
        }
        let id = self.tables.get(generation).backends[usize::from(backend)]
            .table
            .id;
        let at = self.place_of(id)?;
        Some((current, at))
    }

    /// The place of a backend in the current generation.
    fn place_of(&self, id: BackendId) -> Option<u16> {
        let current = self.tables.get(self.tables.current());
        let at = current.backends.iter().position(|entry| entry.table.id == id)?;
        Some(at as u16)
    }

    /// Goes on with the current table of its backend; nothing may be held of the former one.
    pub(super) fn move_to_current(&mut self, exchange: Key) -> Moved {
        let Some(live) = self.exchanges.get(exchange) else {
            return Moved::Same;
        };
        let (former, former_backend) = (live.generation, live.backend);
        match self.newest(former, former_backend) {
            None => Moved::Gone,
            Some((current, _)) if current == former => Moved::Same,
            Some((current, backend)) => {
                let was = self.tables.get(former).clone();
                self.move_to(exchange, current, backend);
                Moved::From(was, former_backend)
            }
        }
    }

    fn move_to(&mut self, exchange: Key, generation: u32, backend: u16) {
        let Worker {
            tables,
            exchanges,
            grants,
            buffers,
            ..
        } = self;
        let live = exchanges.get_mut(exchange).expect("whose backend was looked up");
        let before = &tables.get(live.generation).backends[usize::from(live.backend)];
        let now = &tables.get(generation).backends[usize::from(backend)];
        // What it shows to its backend's policy was gathered for the one that there was.
        if !is_same(picker(before), picker(now)) {
            buffers.give(live.attributes.take().unwrap_or_default());
        }
        if !is_same(before.queue_policy.as_ref(), now.queue_policy.as_ref()) {
            buffers.give(live.ushering.forget());
        }
        let find = |index: ServerIndex| now.table.find_near(before.table.at(index).server.id, index);
        live.machine.renumber(find);
        live.account.server = live.account.server.and_then(find);
        before.table.depart();
        now.table.arrive(grants);
        let id = now.table.id;
        tables.hold(generation);
        let former = std::mem::replace(&mut live.generation, generation);
        live.backend = backend;
        if former != live.begun.generation {
            tables.release(former);
        }
        self.note_unfinished(id);
    }
}

/// The policy of a backend that plans or picks.
fn picker(entry: &BackendEntry<Connection, Address>) -> Option<&Arc<AttachedPolicy>> {
    entry.policy.as_ref().map(|policy| &policy.attached)
}

/// Whether that is one policy, or none.
fn is_same(before: Option<&Arc<AttachedPolicy>>, now: Option<&Arc<AttachedPolicy>>) -> bool {
    match (before, now) {
        (Some(before), Some(now)) => Arc::ptr_eq(before, now),
        (None, None) => true,
        _ => false,
    }
}

// ---- waiting ------------------------------------------------------------------------------------------------------

impl Worker {
    /// Begins to wait for a slot of a server, or of any.
    pub(super) fn wait(&mut self, exchange: Key, place: Option<ServerIndex>) {
        let moved = self.move_to_current(exchange);
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        let place = match (moved, live.machine.server()) {
            (Moved::From(..), ServerSide::Waiting(None, _)) if place.is_some() => {
                return self.drive(exchange, Event::SentBack); // its server has gone
            }
            (_, ServerSide::Waiting(place, _)) => place,
            _ => return,
        };
        match self.ask_to_wait(exchange, place) {
            Some(rank) => self.enter(exchange, place, rank),
            None => self.drive(exchange, Event::NotAdmitted),
        }
    }

    /// Asks whether it may wait, how long, and where in the order.
    fn ask_to_wait(&mut self, exchange: Key, place: Option<ServerIndex>) -> Option<(i16, i64)> {
        let live = self.exchanges.get(exchange)?;
        let table = &self.backend(live).table;
        let queued = place.map_or_else(|| table.queued(), |server| table.waiting(server));
        let about = AboutToWait {
            server: place,
            queued,
            priority: live.seat.priority,
        };
        let ushered = self.usher(exchange, &about);
        let now = self.now;
        let longest = self.backend(self.exchanges.get(exchange)?).settings.queue;
        let seat = &mut self.exchanges.get_mut(exchange)?.seat;
        if let Admission::Rejected { status, seconds } = ushered.admission {
            seat.refusal = Some((status, seconds));
            self.count_at(exchange, place, |queue| queue.rejected.count());
            return None;
        }
        let arrived = *seat.arrived.get_or_insert(now);
        if seat.until == 0 {
            seat.until = now + longest;
        }
        if let Some(most) = ushered.wait_max {
            seat.until = seat.until.min(now + most);
        }
        let Priority { class, offset } = ushered.priority;
        Some((class, (arrived as i64).saturating_add(offset)))
    }

    fn enter(&mut self, exchange: Key, place: Option<ServerIndex>, rank: (i16, i64)) {
        let (worker, now) = (self.id, self.now);
        let Worker {
            tables,
            exchanges,
            grants,
            ..
        } = self;
        let live = exchanges.get_mut(exchange).expect("who waits is there");
        let entry = &tables.get(live.generation).backends[usize::from(live.backend)];
        let waiter = Arc::new(Waiter::new(worker, pack(exchange)));
        let id = entry.table.id;
        let waiting = entry.table.wait(place, waiter.clone(), rank, grants);
        self.note_unfinished(id);
        let turn = self.statistics().turns.read();
        let live = self.exchanges.get_mut(exchange).expect("looked up above");
        let session = live.session;
        match waiting {
            Waiting::Queued { rank, ahead } => {
                live.seat.wait = Some(Wait {
                    waiter,
                    place,
                    rank,
                    since: now,
                });
                match place {
                    Some(_) => live.account.ahead.server = Some(ahead),
                    None => live.account.ahead.backend = Some(ahead),
                }
                live.account.waited.get_or_insert(0);
                self.count_at(exchange, place, |queue| queue.entered(ahead));
                self.arm(session);
            }
            Waiting::Full => {
                self.count_at(exchange, place, |queue| queue.full.count());
                self.drive(exchange, Event::Full);
            }
            Waiting::Closed => {
                live.seat.closed_in = Some(turn);
                self.enqueue(session);
            }
        }
    }

    /// Looks what has become of a wait.
    pub(super) fn advance_waiting(&mut self, key: Key, exchange: Key) -> bool {
        let turn = self.statistics().turns.read();
        let (Some(session), Some(live)) = (self.sessions.get(key), self.exchanges.get(exchange)) else {
            return false;
        };
        // a client that closes its side, too, is taken to have left: there is no telling whether it would read an
        // answer, and somebody else waits for the slot.
        if session.stream.is_hangup() {
            self.drive(exchange, Event::ClientGone);
            return true;
        }
        let outcome = live.seat.wait.as_ref().and_then(|wait| wait.waiter.outcome());
        match (outcome, live.seat.closed_in) {
            (Some(outcome), _) => self.wait_over(exchange, outcome),
            (None, Some(closed)) if closed == turn => {
                self.enqueue(key);
                return false;
            }
            (None, Some(_)) => {
                if let Some(live) = self.exchanges.get_mut(exchange) {
                    live.seat.turned_away = true;
                }
                self.go_back(exchange);
            }
            (None, None) => return false,
        }
        true
    }

    /// The time of a wait is over, unless it has ended otherwise.
    pub(super) fn wait_expired(&mut self, exchange: Key) {
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        if let Some(wait) = &live.seat.wait
            && let Err(outcome) = self
                .backend(live)
                .table
                .cancel(wait.place, wait.rank, &wait.waiter)
        {
            return self.wait_over(exchange, outcome);
        }
        let place = self.account_wait(exchange);
        self.count_at(exchange, place, |queue| queue.timeouts.count());
        if let Some(server) = place {
            self.server_statistics(exchange, server, |statistics| {
                statistics.timeouts.count(Phase::Queue);
            });
        }
        let session = self.exchanges.get(exchange).map(|live| live.session);
        if let Some(statistics) = session.and_then(|session| self.statistics_of(session)) {
            statistics.timeouts.count(Phase::Queue);
        }
        self.drive(exchange, Event::Expired(Timer::Queue));
    }

    /// Somebody else has ended the wait.
    fn wait_over(&mut self, exchange: Key, outcome: Outcome) {
        let place = self.account_wait(exchange);
        match outcome {
            Outcome::Granted(granted) => self.granted(exchange, granted),
            Outcome::SentBack => {
                self.count_at(exchange, place, |queue| queue.sent_back.count());
                self.go_back(exchange);
            }
            Outcome::Cancelled => debug_assert!(false, "only this worker cancels"),
        }
    }

    fn granted(&mut self, exchange: Key, granted: Granted) {
        let Some(live) = self.exchanges.get_mut(exchange) else {
            return;
        };
        live.seat.slot = Some(Slot {
            server: granted.server,
            near: granted.near,
        });
        live.seat.until = 0;
        // The table it has waited with may be older than the server, or than its address.
        self.move_to_current(exchange);
        let index = self.exchanges.get(exchange).and_then(|live| {
            let table = &self.backend(live).table;
            table.find_near(granted.server, granted.near)
        });
        let Some(index) = index else {
            self.release_slot(exchange);
            return self.go_back(exchange);
        };
        let live = self.exchanges.get_mut(exchange).expect("looked up above");
        live.account.server = Some(index);
        live.asked = false;
        self.drive(exchange, Event::Granted(index));
    }

    /// Its server has gone, or all of them have: another choice, with the current table.
    fn go_back(&mut self, exchange: Key) {
        if let Some(live) = self.exchanges.get_mut(exchange) {
            live.seat.closed_in = None;
            live.seat.sent_back = true;
            self.drive(exchange, Event::SentBack);
        }
    }

    /// Ends a wait that is given up with its exchange, and gives back what it brought.
    pub(super) fn leave_seat(&mut self, live: &mut Live) {
        if let Some(wait) = live.seat.wait.take() {
            live.seat.left_waiting = true;
            let waited = self.now.saturating_sub(wait.since);
            *live.account.waited.get_or_insert(0) += waited;
            self.queue_of(live, wait.place, |queue| {
                queue.time.add(waited);
                queue.aborted.count();
            });
            let table = &self.backend(live).table;
            if let Err(Outcome::Granted(granted)) = table.cancel(wait.place, wait.rank, &wait.waiter) {
                live.seat.slot = Some(Slot {
                    server: granted.server,
                    near: granted.near,
                });
            }
        }
        if let Some(slot) = live.seat.slot.take() {
            self.give_back(live.generation, live.backend, slot);
        }
    }

    /// Forgets a wait that has ended, and tells where it was.
    fn account_wait(&mut self, exchange: Key) -> Option<ServerIndex> {
        let now = self.now;
        let live = self.exchanges.get_mut(exchange)?;
        let wait = live.seat.wait.take()?;
        let waited = now.saturating_sub(wait.since);
        *live.account.waited.get_or_insert(0) += waited;
        self.count_at(exchange, wait.place, |queue| queue.time.add(waited));
        wait.place
    }

    fn count_at(&self, exchange: Key, place: Option<ServerIndex>, count: impl FnOnce(&QueueStatistics)) {
        if let Some(live) = self.exchanges.get(exchange) {
            self.queue_of(live, place, count);
        }
    }

    fn queue_of(&self, live: &Live, place: Option<ServerIndex>, count: impl FnOnce(&QueueStatistics)) {
        match place {
            Some(server) => count(&self.server_at(live, server).statistics.of(self.id).queue),
            None => count(&self.backend(live).statistics.of(self.id).queue),
        }
    }
}

// ---- messages -----------------------------------------------------------------------------------------------------

impl Worker {
    /// Tells those whose waits have ended meanwhile; after a step, so that what they will want is there by then.
    pub(super) fn send_grants(&mut self) {
        if self.grants.is_empty() {
            return;
        }
        let mut grants = std::mem::take(&mut self.grants);
        for grant in grants.drain() {
            if grant.worker == self.id {
                self.woken(grant.token);
            } else {
                let _ = self.postboxes[usize::from(grant.worker.0)].send(Order::Woken(grant.token));
            }
        }
        self.grants = grants;
    }

    /// The wait of one of ours has ended.
    pub(super) fn woken(&mut self, token: u64) {
        if let Some(live) = self.exchanges.get(unpack(token)) {
            let session = live.session;
            self.enqueue(session);
        }
    }

    fn note_unfinished(&mut self, backend: BackendId) {
        if self.grants.take_unfinished() && !self.unfinished.contains(&backend) {
            self.unfinished.push(backend);
        }
    }

    /// Goes on where a call served as many as one may.
    pub(super) fn finish_serving(&mut self) {
        for backend in std::mem::take(&mut self.unfinished) {
            if let Some(at) = self.place_of(backend) {
                self.look_at_queues(at);
            }
        }
        self.send_grants();
    }

    /// A newer generation: what waits may have been waiting for it.
    pub(super) fn look_at_all_queues(&mut self) {
        let count = self.tables.get(self.tables.current()).backends.len();
        (0..count).for_each(|at| self.look_at_queues(at as u16));
    }

    fn look_at_queues(&mut self, at: u16) {
        let Worker { tables, grants, .. } = self;
        let table = &tables.get(tables.current()).backends[usize::from(at)].table;
        table.look(grants);
        let id = table.id;
        self.note_unfinished(id);
    }
}

/// A key as a waiter's token.
fn pack(key: Key) -> u64 {
    u64::from(key.generation) << 32 | u64::from(key.slot)
}

fn unpack(token: u64) -> Key {
    Key {
        slot: token as u32,
        generation: (token >> 32) as u32,
    }
}

// ---- who comes and goes -------------------------------------------------------------------------------------------

impl Worker {
    /// A request has come to its backend, before it asks for a server.
    pub(super) fn arrive(&mut self, exchange: Key) {
        let Worker {
            tables,
            exchanges,
            grants,
            loads,
            ..
        } = self;
        let Some(live) = exchanges.get_mut(exchange) else {
            return;
        };
        let entry = &tables.get(live.generation).backends[usize::from(live.backend)];
        entry.table.arrive(grants);
        let id = entry.table.id;
        if entry.settings.budget.is_some() {
            let place = id.0 as usize;
            if loads.len() <= place {
                loads.resize(place + 1, Load::default());
            }
            loads[place].live += 1;
            live.seat.weighed = Weighed::Live;
        }
        self.note_unfinished(id);
    }

    /// It has left it.
    pub(super) fn depart(&mut self, live: &Live) {
        let table = &self.backend(live).table;
        table.depart();
        if live.seat.weighed != Weighed::No {
            let place = table.id.0 as usize;
            let load = &mut self.loads[place];
            load.live -= 1;
            load.trying -= u32::from(live.seat.weighed == Weighed::Trying);
        }
    }

    /// Whether another attempt is within the budget of its backend.
    pub(super) fn charge(&mut self, exchange: Key) -> Budget {
        let worker = self.id;
        let Worker {
            tables,
            exchanges,
            loads,
            ..
        } = self;
        let Some(live) = exchanges.get_mut(exchange) else {
            return Budget::Spent;
        };
        let entry = &tables.get(live.generation).backends[usize::from(live.backend)];
        let (Weighed::Live, Some(budget)) = (live.seat.weighed, entry.settings.budget) else {
            return Budget::Allows; // without a budget, or on another attempt already
        };
        let load = &mut loads[entry.table.id.0 as usize];
        if !budget.allows(load.live, load.trying) {
            entry.statistics.of(worker).budget_spent.count();
            return Budget::Spent;
        }
        load.trying += 1;
        live.seat.weighed = Weighed::Trying;
        Budget::Allows
    }
}
