//! The way to a slot and a connection: choose, take or wait, lend or connect, and the same again (RT-*).

use super::{
    Bond, Budget, Chosen, Command, Commands, ConnectFailure, Effort, Exchange, Failed, Failure, Found, Lease,
    Redispatch, ServerSide, Taken, Tie, Wish,
};
use crate::policy::ServerIndex;

impl Exchange {
    pub(super) fn choose(
        &mut self,
        failed: Option<Failed>,
        avoid: Option<ServerIndex>,
        commands: &mut Commands,
    ) {
        self.server = ServerSide::Choosing(failed);
        let tie = self.tie;
        commands.push(Command::Choose(Wish { avoid, tie }));
    }

    pub(super) fn chosen(&mut self, chosen: Chosen, commands: &mut Commands) {
        let ServerSide::Choosing(failed) = self.server else {
            return;
        };
        let (server, bond) = match chosen {
            Chosen::Server(server, bond) => (server, bond),
            Chosen::Anyone => return self.wait(None, failed, commands),
            Chosen::Nobody => return self.end(Failure::NoServer, commands),
        };
        self.bond = bond;
        match failed {
            Some(failed) if failed.server == server => self.stay(failed, commands),
            _ => {
                count_attempt(failed, server, commands);
                self.take_slot(server, commands);
            }
        }
    }

    /// Once more on the same server; after a moment, where that may help (RT-5).
    fn stay(&mut self, failed: Failed, commands: &mut Commands) {
        count_attempt(Some(failed), failed.server, commands);
        if failed.wait {
            self.server = ServerSide::Pausing(failed.server);
            commands.push(Command::Pause);
        } else {
            self.take_slot(failed.server, commands);
        }
    }

    pub(super) fn pause_over(&mut self, commands: &mut Commands) {
        if let ServerSide::Pausing(server) = self.server {
            self.take_slot(server, commands);
        }
    }

    fn take_slot(&mut self, server: ServerIndex, commands: &mut Commands) {
        self.server = ServerSide::Taking(server);
        commands.push(Command::TakeSlot(server));
    }

    pub(super) fn slot(&mut self, taken: Taken, commands: &mut Commands) {
        let ServerSide::Taking(server) = self.server else {
            return;
        };
        match (taken, self.bond) {
            (Taken::Yes, _) => self.use_slot(server, commands),
            (Taken::Refused, Bond::Loose) => self.wait(None, None, commands),
            (Taken::Refused, Bond::Preferred | Bond::Tied) => self.wait(Some(server), None, commands),
        }
    }

    fn use_slot(&mut self, server: ServerIndex, commands: &mut Commands) {
        if self.fresh_only {
            self.connect(server, commands);
        } else {
            self.lend(server, commands);
        }
    }

    fn wait(&mut self, place: Option<ServerIndex>, failed: Option<Failed>, commands: &mut Commands) {
        self.server = ServerSide::Waiting(place, failed);
        commands.push(Command::Wait(place));
    }

    /// No pause, even on the server that failed before: the wait was one.
    pub(super) fn granted(&mut self, server: ServerIndex, commands: &mut Commands) {
        let ServerSide::Waiting(place, failed) = self.server else {
            return;
        };
        if place.is_none() {
            self.bond = Bond::Loose;
        }
        count_attempt(failed, server, commands);
        self.use_slot(server, commands);
    }

    pub(super) fn sent_back(&mut self, commands: &mut Commands) {
        if let ServerSide::Waiting(_, failed) = self.server {
            self.choose(failed, failed.map(|failed| failed.server), commands);
        }
    }

    /// balanced once more, as if nothing tied it to the server; then it waits with all others.
    pub(super) fn full(&mut self, commands: &mut Commands) {
        let ServerSide::Waiting(place, failed) = self.server else {
            return;
        };
        let imposed = self.bond == Bond::Tied && self.effort.redispatch == Redispatch::Never;
        match (place, self.tie) {
            (None, _) => self.end(Failure::QueueFull, commands),
            (Some(_), _) if imposed => self.end(Failure::QueueFull, commands),
            (Some(_), Tie::Kept) => {
                self.tie = Tie::Forgotten;
                self.choose(failed, None, commands);
            }
            (Some(_), Tie::Forgotten) => self.wait(None, failed, commands),
        }
    }

    pub(super) fn give_up_waiting(&mut self, failure: Failure, commands: &mut Commands) {
        if let ServerSide::Waiting(..) = self.server {
            self.end(failure, commands);
        }
    }

    pub(super) fn lend(&mut self, server: ServerIndex, commands: &mut Commands) {
        self.server = ServerSide::Lending(server);
        commands.push(Command::Lend(server));
    }

    pub(super) fn connect(&mut self, server: ServerIndex, commands: &mut Commands) {
        self.server = ServerSide::Connecting(server);
        commands.push(Command::Connect(server));
    }

    pub(super) fn lent(&mut self, found: Found, commands: &mut Commands) {
        let ServerSide::Lending(server) = self.server else {
            return;
        };
        match found {
            Found::Idle => self.hold(server, Lease::Reused, commands),
            Found::Nothing => self.connect(server, commands),
        }
    }

    pub(super) fn connected(&mut self, commands: &mut Commands) {
        if let ServerSide::Connecting(server) = self.server {
            self.hold(server, Lease::Fresh, commands);
        }
    }

    fn hold(&mut self, server: ServerIndex, lease: Lease, commands: &mut Commands) {
        self.server = ServerSide::Holding(server, lease);
        self.written = false;
        commands.push(Command::Send);
    }

    pub(super) fn connect_failed(&mut self, failure: ConnectFailure, commands: &mut Commands) {
        let ServerSide::Connecting(server) = self.server else {
            return;
        };
        commands.push(Command::ReleaseSlot(server));
        let last = match failure {
            ConnectFailure::Remote => Failure::ConnectRefused,
            ConnectFailure::TimedOut => Failure::ConnectTimedOut,
            ConnectFailure::Local => Failure::ConnectLocal,
        };
        if self.retries_left == 0 || !self.effort.retry_on.conn_failure {
            return self.end(last, commands);
        }
        let wait = failure != ConnectFailure::Local;
        self.charge(Failed { server, wait }, last, commands);
    }

    /// Wants another attempt; nothing is held any more.
    pub(super) fn charge(&mut self, failed: Failed, failure: Failure, commands: &mut Commands) {
        self.server = ServerSide::Charging(failed, failure);
        commands.push(Command::Charge);
    }

    pub(super) fn charged(&mut self, budget: Budget, commands: &mut Commands) {
        let ServerSide::Charging(failed, failure) = self.server else {
            return;
        };
        if budget == Budget::Spent {
            return self.end(failure, commands);
        }
        self.retries_left -= 1;
        let Effort {
            retries, redispatch, ..
        } = self.effort;
        if redispatch == Redispatch::Never {
            self.bond = Bond::Tied; // to whoever was chosen first
            return self.stay(failed, commands);
        }
        let tied = self.bond == Bond::Tied;
        if tied && !redispatch.is_due(retries - self.retries_left, retries) {
            return self.choose(Some(failed), None, commands);
        }
        if tied {
            self.tie = Tie::Forgotten;
        }
        self.choose(Some(failed), Some(failed.server), commands);
    }
}

/// Counts a second attempt, if it is one: on the server that failed, or as having left it (RT-6).
fn count_attempt(failed: Option<Failed>, server: ServerIndex, commands: &mut Commands) {
    match failed {
        Some(failed) if failed.server == server => commands.push(Command::CountRetry(server)),
        Some(failed) => commands.push(Command::CountRedispatch(failed.server)),
        None => {}
    }
}
