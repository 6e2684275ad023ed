//! What each command does and what it answers.
//!
//! Reading changes nothing; a change happens at once, lasts until the process ends and is told to the operator's
//! messages with who asked for it (CLI-4). An answer is made whole before it is written: a slow reader holds no lock and
//! no table.

use super::Control;
use super::command::{Command, Form, HELP, Refusal, Setting, parse_line};
use super::stat;
use crate::observe::messages::{Level, Messages};
use std::sync::Arc;

/// Where commands are obeyed.
pub(super) struct Desk {
    pub(super) control: Arc<dyn Control>,
    pub(super) messages: Messages,
}

impl Desk {
    /// Obeys the commands of a line in order; each is atomic, and a refused one does not stop the next.
    pub(super) fn answer(&self, line: &str, issuer: &str) -> String {
        let answer =
            |command: Result<Command, Refusal>| match command.and_then(|known| self.obey(known, issuer)) {
                Ok(text) => text + "\n",
                Err(refusal) => refusal.text(),
            };
        parse_line(line).into_iter().map(answer).collect()
    }

    fn obey(&self, command: Command, issuer: &str) -> Result<String, Refusal> {
        match command {
            Command::Help => Ok(help()),
            Command::ShowVersion => Ok(format!("forebay {}\n", env!("CARGO_PKG_VERSION"))),
            Command::ShowStat(Form::Csv) => Ok(stat::csv(&self.control.snapshot())),
            Command::ShowStat(Form::Json) => Ok(stat::json(&self.control.snapshot())),
            Command::SetServer {
                backend,
                server,
                setting,
            } => self
                .set_server(&backend, &server, setting, issuer)
                .map_err(Refusal::Impossible),
        }
    }

    fn set_server(
        &self,
        backend: &str,
        server: &str,
        setting: Setting,
        issuer: &str,
    ) -> Result<String, String> {
        self.control.set_server(backend, server, setting)?;
        let name = format!("{backend}/{server}");
        let (message, property, value): (_, _, &dyn std::fmt::Display) = match &setting {
            Setting::State(state) => ("server state set", "state", &state.word()),
            Setting::Weight(weight) => ("server weight set", "weight", weight),
            Setting::Maxconn(maxconn) => ("server maxconn set", "maxconn", maxconn),
        };
        let fields: [(&str, &dyn std::fmt::Display); 3] =
            [("server", &name), (property, value), ("by", &issuer)];
        self.messages.tell(Level::Notice, message, &fields);
        Ok(String::new())
    }
}

fn help() -> String {
    let width = HELP
        .iter()
        .map(|(command, _)| command.len())
        .max()
        .unwrap_or_default();
    HELP.iter()
        .map(|(command, about)| format!("{command:width$}  {about}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Noted;
    use super::*;
    use crate::observe::testing::{LONG, collecting};

    #[test]
    fn a_change_is_told_with_its_issuer_and_a_refusal_is_not() {
        let (messages, sink) = collecting();
        let desk = Desk {
            control: Arc::new(Noted::default()),
            messages: messages.clone(),
        };
        let answer = desk.answer(
            "set server api/z state maint; set server api/a state maint",
            "uid=0 pid=71",
        );
        assert_eq!(answer, "error: no server api/z\n\n\n");
        messages.flush(LONG);
        let told = sink.text();
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(
            told.contains(" notice server state set server=api/a state=maint by=\"uid=0 pid=71\"\n"),
            "{told}"
        );
    }

    #[test]
    fn help_is_a_list() {
        let desk = Desk {
            control: Arc::new(Noted::default()),
            messages: collecting().0,
        };
        let answer = desk.answer("help", "");
        assert_eq!(answer.lines().count(), HELP.len() + 1);
        assert!(answer.contains("show stat json  "), "{answer}");
    }
}
