//! The runtime commands' view of the running process.

use super::Control;
use super::command::Setting;
use crate::control;
use crate::control::Decision;
use crate::observe::snapshot::{Snapshot, State};
use crate::shared::table::Admin;

impl Control for control::Control {
    fn snapshot(&self) -> Snapshot {
        self.take_snapshot()
    }

    fn set_server(&self, backend: &str, server: &str, setting: Setting) -> Result<(), String> {
        let decision = match setting {
            Setting::State(State::Ready) => Decision::State(Admin::Ready),
            Setting::State(State::Drain) => Decision::State(Admin::Drain),
            Setting::State(State::Maint) => Decision::State(Admin::Maint),
            Setting::Weight(weight) => Decision::Weight(weight),
            Setting::Maxconn(maxconn) => Decision::Maxconn(maxconn),
        };
        self.decide(backend, server, decision)
    }
}
