//! Which limit ends the present phase of a session, and when. The owner's truth behind the lazy wheel.

use super::Worker;
use super::session::{Due, Live, Manner, NEVER, Phase, Session};
use crate::decide::exchange::{RequestSide, ResponseSide, ServerSide, Timer};
use crate::net::{Key, Micros};

impl Worker {
    /// The next deadline of a session.
    pub(super) fn deadline(&self, session: &Session) -> (Micros, Due) {
        let place = session.pinned.unwrap_or(self.tables.current());
        let Some(listener) = self.tables.get(place).listener(session.listener) else {
            return (self.now, Due::KeepAlive);
        };
        let limits = &listener.settings;
        match session.phase {
            Phase::Idle if session.has_output() => {
                (session.active + limits.inactivity, Due::Phase(Timer::Client))
            }
            Phase::Idle if self.draining => (
                self.drain_grace_ends
                    .max(session.since + self.measures.drain_grace),
                Due::KeepAlive,
            ),
            Phase::Idle if session.requests == 0 => (session.since + limits.http_request, Due::KeepAlive),
            Phase::Idle => (session.since + limits.http_keep_alive, Due::KeepAlive),
            Phase::Head(began) => (began + limits.http_request, Due::Head),
            Phase::Closing(Manner::Draining) => (session.since + self.measures.linger, Due::Linger),
            Phase::Closing(_) => (session.active + limits.inactivity, Due::Linger),
            Phase::Busy(key) => match self.exchanges.get(key) {
                Some(live) => self.exchange_deadline(session, live, limits.inactivity, limits.tunnel),
                None => (NEVER, Due::Linger),
            },
        }
    }

    fn exchange_deadline(
        &self,
        session: &Session,
        live: &Live,
        client: Micros,
        tunnel: Micros,
    ) -> (Micros, Due) {
        let settings = &self.tables.get(live.generation).backends[usize::from(live.backend)].settings;
        let server = Due::Phase(Timer::Server);
        match (live.machine.server(), live.machine.response()) {
            (ServerSide::Waiting(..), _) => (live.seat.until, Due::Phase(Timer::Queue)),
            (ServerSide::Pausing(_), _) => (live.pause_until, Due::Pause),
            (ServerSide::Connecting(_), _) => (live.server_active + settings.connect, server),
            (_, ResponseSide::Tunnel) => (
                session.active.max(live.server_active) + tunnel,
                Due::Phase(Timer::Tunnel),
            ),
            _ => {
                let body_awaited = live.machine.request() == RequestSide::Arriving && live.all_sent();
                if session.has_output() || body_awaited && live.awaited() {
                    (session.active + client, Due::Phase(Timer::Client))
                } else {
                    (live.server_active + settings.inactivity, server)
                }
            }
        }
    }

    /// Sees to it that the wheel will look at the session in time.
    pub(super) fn arm(&mut self, key: Key) {
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let (deadline, _) = self.deadline(session);
        if deadline >= session.timer_at && !session.spared {
            return;
        }
        let session = self.sessions.get_mut(key).expect("looked up above");
        session.spared &= deadline <= self.now;
        if deadline < session.timer_at {
            session.timer_at = self.wheel.insert(key, deadline);
        }
    }

    /// Whether a session gets one more chance: something came for it that it had no turn to look at.
    fn spare(&mut self, key: Key) -> bool {
        let Some(session) = self.sessions.get_mut(key) else {
            return false;
        };
        let first = session.queued && !session.spared;
        session.spared |= first;
        first
    }

    /// The wheel says that it is time to look at a session.
    pub(super) fn look(&mut self, key: Key, at: Micros) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if session.timer_at != at {
            return; // an older entry; the session has a newer, earlier one
        }
        session.timer_at = NEVER;
        let session = self.sessions.get(key).expect("looked up above");
        let (deadline, due) = self.deadline(session);
        if deadline <= self.now && !self.spare(key) {
            self.expire(key, due);
        }
        self.arm(key);
    }
}
