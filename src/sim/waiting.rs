//! A slot for a request: take it or wait, be told, give up, give it back.
//!
//! A wait is told to its worker as production does, by a message; it arrives at the same instant, and the worker does
//! what it was at first.

use super::agenda::{Agenda, Step};
use super::connections::Name;
use super::consult;
use super::decision::Queued;
use super::invariant::{Broken, Invariant};
use super::live::{Live, Token, Wait};
use super::run::Run;
use super::steering::Current;
use crate::decide::balance::servers;
use crate::decide::exchange::{Event, ServerSide, Taken, Timer};
use crate::decide::settings::Micros;
use crate::decide::usher::{AboutToWait, Admission};
use crate::policy::{Priority, ServerId, ServerIndex, Table};
use crate::shared::queue::{Grants, Outcome, Waiter};
use crate::shared::table::{BackendTable, Waiting};
use std::sync::Arc;

impl Run<'_> {
    // ---- slots ---------------------------------------------------------------------------------------------------

    pub(super) fn take_slot(&mut self, token: Token, index: ServerIndex) -> Result<Taken, Broken> {
        let taken = self.take_now(token, index)?;
        let live = self.lives.get_mut(token).expect("it takes a slot");
        let table = &live.entry().table;
        // What the balancer did not choose itself, it has to be told of (LB-22).
        if !taken || live.asked {
            table.changed(index);
        }
        if !taken {
            return Ok(Taken::Refused);
        }
        live.seat.slot = Some((table.at(index).server.id, index));
        live.seat.until = 0;
        Ok(Taken::Yes)
    }

    /// Takes a slot by the limit of today, which the request's table may not know; none of a server in maintenance.
    fn take_now(&self, token: Token, index: ServerIndex) -> Result<bool, Broken> {
        let live = self.lives.get(token).expect("it takes a slot");
        let own = &live.entry().table;
        let newest = &self.workers[usize::from(live.worker.0)].generation;
        let table = match consult::place_of(newest, own.id) {
            Some(at) => &newest.backends[usize::from(at.0)].table,
            None => own,
        };
        let Some(place) = table.find_near(own.at(index).server.id, index) else {
            return Ok(own.take(index));
        };
        let taken = table.takes_tied(place) && table.take(place);
        if taken {
            self.check_slots(table, place)?;
        }
        Ok(taken)
    }

    pub(super) fn release_slot(&mut self, token: Token) -> Result<(), Broken> {
        let Some(live) = self.lives.get_mut(token) else {
            return Ok(());
        };
        if let Some(slot) = live.seat.slot.take() {
            let table = newest(&self.current, &live.entry().table);
            give_back(&mut self.agenda, self.now, table, slot);
        }
        Ok(())
    }

    /// Whether a request goes by what its worker goes by.
    pub(super) fn is_current(&self, live: &Live) -> bool {
        Arc::ptr_eq(
            &self.workers[usize::from(live.worker.0)].generation,
            &live.generation,
        )
    }

    /// Goes on with what its worker has by now; `false` if the backend has gone. Nothing may be held of the former table.
    pub(super) fn move_to_current(&mut self, token: Token) -> bool {
        let Some(live) = self.lives.get_mut(token) else {
            return false;
        };
        let newest = &self.workers[usize::from(live.worker.0)].generation;
        if Arc::ptr_eq(newest, &live.generation) {
            return true;
        }
        let before = live.entry().table.clone();
        let Some(at) = consult::place_of(newest, before.id) else {
            return false;
        };
        let now = newest.backends[usize::from(at.0)].table.clone();
        let find = |index: ServerIndex| now.find_near(before.at(index).server.id, index);
        live.machine.renumber(find);
        live.server = live.server.and_then(find);
        // What it shows to a policy was gathered for the one that there was.
        let (former, next) = (live.entry(), &newest.backends[usize::from(at.0)]);
        let same = |one: Option<&Arc<_>>, other: Option<&Arc<_>>| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let picks = same(
            former.policy.as_ref().map(|policy| &policy.attached),
            next.policy.as_ref().map(|policy| &policy.attached),
        );
        let ushers = same(former.queue_policy.as_ref(), next.queue_policy.as_ref());
        if !picks {
            live.for_picker = None;
        }
        if !ushers {
            live.for_usher = None;
        }
        (live.generation, live.backend) = (newest.clone(), at.0);
        before.depart();
        let mut grants = Grants::new();
        now.arrive(&mut grants);
        self.tell_waits_of(&now, grants);
        true
    }

    // ---- waiting -------------------------------------------------------------------------------------------------

    /// Begins to wait for a slot of a server, or of any.
    pub(super) fn wait(&mut self, token: Token, place: Option<ServerIndex>) -> Result<(), Broken> {
        self.move_to_current(token);
        let live = self.lives.get(token).expect("it is about to wait");
        let ServerSide::Waiting(now, _) = live.machine.server() else {
            return Ok(());
        };
        if place.is_some() && now.is_none() {
            return self.drive(token, Event::SentBack); // its server has gone
        }
        match self.ask_to_wait(token, now) {
            Some(rank) => self.enter(token, now, rank),
            None => self.drive(token, Event::NotAdmitted),
        }
    }

    /// Asks whether it may wait, how long, and where in the order.
    fn ask_to_wait(&mut self, token: Token, place: Option<ServerIndex>) -> Option<(i16, i64)> {
        let live = self.lives.get(token)?;
        let (table, longest) = (live.entry().table.clone(), live.entry().settings.queue);
        let about = AboutToWait {
            server: place,
            queued: place.map_or_else(|| table.queued(), |server| table.waiting(server)),
            priority: live.seat.priority,
        };
        let now = self.now;
        let ushered = self.usher(token, &about).over(about.priority, now);
        if ushered.admission != Admission::Accepted {
            return None;
        }
        let seat = &mut self.lives.get_mut(token)?.seat;
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

    fn enter(&mut self, token: Token, place: Option<ServerIndex>, rank: (i16, i64)) -> Result<(), Broken> {
        let live = self.lives.get(token).expect("it is about to wait");
        let (worker, table) = (live.worker, live.entry().table.clone());
        let waiter = Arc::new(Waiter::new(worker, token));
        let mut grants = Grants::new();
        let waiting = table.wait(place, waiter.clone(), rank, &mut grants);
        self.tell_waits_of(&table, grants);
        match waiting {
            Waiting::Queued { rank, ahead } => {
                self.tally.waited += 1;
                self.in_queues += 1;
                let since = self.now;
                let patience = self.world.leaves_after.map(|patience| self.dice.time(patience));
                let live = self.lives.get_mut(token).expect("looked up above");
                live.attempt = live.attempt.wrapping_add(1);
                let (attempt, until) = (live.attempt, live.seat.until);
                if let Some(decision) = &mut live.decision {
                    decision.queue = Some(Queued {
                        own: place.is_some(),
                        ahead,
                        waited: 0,
                    });
                }
                live.seat.wait = Some(Wait {
                    waiter,
                    place,
                    rank,
                    since,
                });
                self.agenda.enter(until, worker, Step::Expired(token, attempt));
                if let Some(patience) = patience {
                    self.agenda
                        .enter(since + patience, worker, Step::Left(token, attempt));
                }
                Ok(())
            }
            Waiting::Full => self.drive(token, Event::Full),
            // Its worker may not have heard of the table that closed it: it chooses again, as if nothing tied it.
            Waiting::Closed => {
                let live = self.lives.get_mut(token).expect("looked up above");
                live.seat.turned_away = true;
                self.take_up_now(token)?;
                self.go_back(token)
            }
        }
    }

    /// The worker of a request looks at what is published before it goes on.
    fn take_up_now(&mut self, token: Token) -> Result<(), Broken> {
        let worker = self.lives.get(token).expect("it goes on").worker;
        self.take_up(worker)
    }

    /// A wait has ended.
    pub(super) fn told(&mut self, token: Token) -> Result<(), Broken> {
        let outcome = self
            .lives
            .get(token)
            .and_then(|live| live.seat.wait.as_ref())
            .and_then(|wait| wait.waiter.outcome());
        match outcome {
            Some(Outcome::Granted(granted)) => {
                self.spent += self.world.costs.grant;
                self.account_wait(token);
                self.granted(token, granted.server, granted.near)
            }
            Some(Outcome::SentBack) => {
                self.spent += self.world.costs.grant;
                self.account_wait(token);
                self.go_back(token)
            }
            _ if self.late.remove(&token) => Ok(()),
            outcome => {
                let seen = format!("wait {token:x} is told of with {outcome:?}");
                Err(self.broken((Invariant::WaitsEndOnce, seen)))
            }
        }
    }

    fn granted(&mut self, token: Token, server: ServerId, near: ServerIndex) -> Result<(), Broken> {
        let live = self.lives.get_mut(token).expect("it waited");
        live.seat.slot = Some((server, near));
        live.seat.until = 0;
        self.move_to_current(token);
        let live = self.lives.get_mut(token).expect("looked up above");
        let table = live.entry().table.clone();
        let Some(index) = table.find_near(server, near) else {
            self.release_slot(token)?;
            return self.go_back(token);
        };
        (live.server, live.asked) = (Some(index), false);
        if let Some(decision) = &mut live.decision {
            decision.server = table.at(index).server.name.to_string();
        }
        self.check_slots(&table, index)?;
        let waited = self.now
            - self
                .lives
                .get(token)
                .and_then(|live| live.seat.arrived)
                .unwrap_or(self.now);
        self.report.waited(waited);
        self.drive(token, Event::Granted(index))
    }

    /// Its server has gone, or all of them have: another choice, with the current table.
    fn go_back(&mut self, token: Token) -> Result<(), Broken> {
        if let Some(live) = self.lives.get_mut(token) {
            live.seat.sent_back = true;
            return self.drive(token, Event::SentBack);
        }
        Ok(())
    }

    /// Forgets a wait that has ended.
    fn account_wait(&mut self, token: Token) {
        let now = self.now;
        let Some(live) = self.lives.get_mut(token) else {
            return;
        };
        let Some(wait) = live.seat.wait.take() else {
            return;
        };
        self.in_queues -= 1;
        if let Some(queue) = live
            .decision
            .as_mut()
            .and_then(|decision| decision.queue.as_mut())
        {
            queue.waited += now - wait.since;
        }
    }

    /// The time of a wait is over, unless it has ended otherwise at this instant: then its worker is told.
    pub(super) fn wait_expired(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        if !self.end_wait(token, attempt) {
            return Ok(());
        }
        self.drive(token, Event::Expired(Timer::Queue))
    }

    /// Its client leaves; a slot that it was granted at that instant goes on to the next.
    pub(super) fn leave_queue(&mut self, token: Token, attempt: u16) -> Result<(), Broken> {
        let waits =
            self.is_of(token, attempt) && self.lives.get(token).is_some_and(|live| live.seat.wait.is_some());
        if waits {
            return self.drive(token, Event::ClientGone);
        }
        Ok(())
    }

    /// Takes a request out of its queue; `false` if it is not there any more.
    fn end_wait(&mut self, token: Token, attempt: u16) -> bool {
        if !self.is_of(token, attempt) {
            return false;
        }
        let live = self.lives.get(token).expect("looked up above");
        let Some(wait) = &live.seat.wait else {
            return false;
        };
        let table = &live.entry().table;
        if table.cancel(wait.place, wait.rank, &wait.waiter).is_err() {
            return false;
        }
        self.account_wait(token);
        true
    }

    /// Ends a wait that is given up with its request, and gives back what it brought.
    pub(super) fn leave_seat(&mut self, token: Token, live: &mut Live) -> Result<(), Broken> {
        if let Some(wait) = live.seat.wait.take() {
            self.in_queues -= 1;
            match live.entry().table.cancel(wait.place, wait.rank, &wait.waiter) {
                Ok(()) => {}
                Err(Outcome::Granted(granted)) => {
                    self.late.insert(token);
                    live.seat.slot = Some((granted.server, granted.near));
                }
                Err(_) => {
                    self.late.insert(token);
                }
            }
        }
        if let Some(slot) = live.seat.slot.take() {
            let table = newest(&self.current, &live.entry().table);
            give_back(&mut self.agenda, self.now, table, slot);
        }
        Ok(())
    }

    // ---- who is told ---------------------------------------------------------------------------------------------

    pub(super) fn tell_waits(&mut self, mut grants: Grants) {
        for grant in grants.drain() {
            self.agenda.enter(self.now, grant.worker, Step::Told(grant.token));
        }
    }

    /// The same, and goes on where a call served as many as one may.
    pub(super) fn tell_waits_of(&mut self, table: &BackendTable<Name>, grants: Grants) {
        tell(&mut self.agenda, self.now, table, grants);
    }

    // ---- what must hold ------------------------------------------------------------------------------------------

    fn check_slots(&self, table: &BackendTable<Name>, server: ServerIndex) -> Result<(), Broken> {
        let (served, limit) = (table.served(server), table.limit(server));
        // A limit that moves may have fallen since a slot was granted.
        if served <= limit || table.at(server).queueing.minconn > 0 || !self.is_settled() {
            return Ok(());
        }
        let seen = format!(
            "server {} serves {served} of {limit}",
            table.at(server).server.name
        );
        Err(self.broken((Invariant::Slots, seen)))
    }

    pub(super) fn check_waiting(&self) -> Result<(), Broken> {
        if self.in_queues == 0 || !self.is_settled() {
            return Ok(());
        }
        for entry in &self.current.backends {
            self.check_queues(&entry.table)?;
        }
        Ok(())
    }

    fn check_queues(&self, table: &BackendTable<Name>) -> Result<(), Broken> {
        let queued = table.queued();
        for server in servers(table) {
            let own = table.waiting(server);
            if own == 0 && queued == 0 {
                continue;
            }
            let (served, limit) = (table.served(server), table.limit(server));
            // A slot above a plan's cap, or behind a tier that is waited for, is free for nobody who waits for any.
            let serves_any = table.limit_for_any(server).is_some_and(|most| served < most);
            if own > 0 && served < limit || queued > 0 && serves_any {
                let seen = format!(
                    "server {} serves {served} of {limit}, and {own} wait for it, {queued} for any",
                    table.at(server).server.name
                );
                return Err(self.broken((Invariant::NobodyWaitsBesideAFreeSlot, seen)));
            }
        }
        Ok(())
    }
}

/// Gives a slot back: to whoever waits for it, if anybody does.
fn give_back(
    agenda: &mut Agenda,
    now: Micros,
    table: &BackendTable<Name>,
    (server, near): (ServerId, ServerIndex),
) {
    let mut grants = Grants::new();
    table.give_back(server, near, &mut grants);
    tell(agenda, now, table, grants);
}

/// Enters what the workers of those who waited are told, and goes on where a call served as many as one may.
pub(super) fn tell(agenda: &mut Agenda, now: Micros, table: &BackendTable<Name>, mut grants: Grants) {
    loop {
        for grant in grants.drain() {
            agenda.enter(now, grant.worker, Step::Told(grant.token));
        }
        if !grants.take_unfinished() {
            return;
        }
        table.look(&mut grants);
    }
}

/// The table that slots are given back to: the published one; that which is had, where its backend has gone.
fn newest<'t>(current: &'t Current, own: &'t BackendTable<Name>) -> &'t BackendTable<Name> {
    consult::place_of(current, own.id).map_or(own, |at| &current.backends[usize::from(at.0)].table)
}
