//! The runtime commands' view of the running process.

use super::Control;
use crate::control;
use crate::observe::snapshot::{Snapshot, State};
use crate::shared::table::Admin;

impl Control for control::Control {
    fn snapshot(&self) -> Snapshot {
        self.take_snapshot()
    }

    fn set_server_state(&self, backend: &str, server: &str, state: State) -> Result<(), String> {
        let admin = match state {
            State::Ready => Admin::Ready,
            State::Drain => Admin::Drain,
            State::Maint => Admin::Maint,
        };
        self.set_server_admin(backend, server, admin)
    }
}
