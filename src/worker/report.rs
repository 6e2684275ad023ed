//! What a finished request leaves behind: statistics of its listener and server, and a record for the log.

use super::Worker;
use super::session::{Account, Held, Live};
use crate::decide::cause::Cause;
use crate::decide::reuse::CloseReason;
use crate::http1::{BadResponse, RequestHead, Version};
use crate::net::{Key, Micros};
use crate::observe::messages::{Fields, Level};
use crate::observe::record::{Dispatch, EndedBy, Phase, Record, Reuse, Termination, Timers};
use crate::policy::ServerIndex;
use crate::shared::generation::ListenerId;
use crate::shared::statistics::{ListenerStatistics, ServerStatistics, WorkerStatistics};

impl Worker {
    pub(super) fn statistics(&self) -> &WorkerStatistics {
        self.own_statistics.of(self.id)
    }

    /// The statistics of a listener in the generation that its session is pinned to, else in the current one.
    pub(super) fn listener_statistics(
        &self,
        pinned: Option<u32>,
        id: ListenerId,
    ) -> Option<&ListenerStatistics> {
        let place = pinned.unwrap_or(self.tables.current());
        Some(self.tables.get(place).listener(id)?.statistics.of(self.id))
    }

    /// The statistics of the listener that a session came through.
    pub(super) fn statistics_of(&self, session: Key) -> Option<&ListenerStatistics> {
        let session = self.sessions.get(session)?;
        self.listener_statistics(session.pinned, session.listener)
    }

    /// Counts something of one server of an exchange.
    pub(super) fn server_statistics(
        &self,
        exchange: Key,
        server: ServerIndex,
        count: impl FnOnce(&ServerStatistics),
    ) {
        if let Some(live) = self.exchanges.get(exchange) {
            count(self.server_at(live, server).statistics.of(self.id));
        }
    }

    pub(super) fn flush_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Begins to note what the log will say.
    pub(super) fn open_account(&mut self, since: Micros, head: &RequestHead, bytes: &[u8]) -> Account {
        let mut account = Account {
            started: since,
            head_complete: self.now,
            ..Account::default()
        };
        if self.log.is_some() {
            let (method, target) = (head.method_name(bytes), head.target.of(bytes));
            account.texts = self.buffers.small();
            account.texts.extend_from_slice(method);
            account.texts.extend_from_slice(target);
            account.texts.extend_from_slice(head.authority(bytes));
            account.method_length = method.len() as u16;
            account.target_length = target.len() as u16;
        }
        account
    }

    /// A request that went to a server, or would have: the last word on it.
    pub(super) fn log_finished(&mut self, live: &mut Live, termination: [u8; 2], cause: &'static str) {
        let account = &live.account;
        let total = self.now - account.started;
        if let Some(statistics) = self.statistics_of(live.session) {
            statistics.bytes_in.add(account.bytes_in);
            if account.response_began > 0 {
                statistics.replies.count(account.status);
                statistics.bytes_out.add(account.bytes_out);
            }
        }
        if let Some(index) = account.server {
            let statistics = self.server_at(live, index).statistics.of(self.id);
            statistics.requests.count();
            statistics.bytes_in.add(account.bytes_in);
            statistics.bytes_out.add(account.server_bytes);
            if account.response_began > 0 {
                statistics.responded(
                    account.status,
                    account.response_began.saturating_sub(account.connected),
                );
            }
        }
        if self.log.is_some() {
            let account = std::mem::take(&mut live.account);
            let names = Names {
                backend: Some((live.generation, live.backend)),
                server: account.server,
            };
            self.log(
                live.session,
                &account,
                live.version,
                live.route,
                termination,
                cause,
                names,
                total,
            );
            live.account = account;
        }
    }

    /// A request that a rule answered.
    pub(super) fn log_local(
        &mut self,
        key: Key,
        mut account: Account,
        status: u16,
        termination: [u8; 2],
        route: Option<u16>,
        version: Version,
    ) {
        account.status = status;
        account.bytes_out = self.outgoing.len() as u64;
        if self.log.is_some() {
            let names = Names {
                backend: None,
                server: None,
            };
            let total = self.now - account.started;
            self.log(key, &account, version, route, termination, "", names, total);
        }
        self.buffers.give(account.texts);
    }

    /// A message that was no request.
    pub(super) fn log_refused(&mut self, key: Key, cause: Cause) {
        if self.log.is_none() {
            return;
        }
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        let account = Account {
            started: session.message_began(),
            status: cause.status(),
            bytes_out: self.outgoing.len() as u64,
            ..Account::default()
        };
        let names = Names {
            backend: None,
            server: None,
        };
        let total = self.now - account.started;
        self.log(
            key,
            &account,
            Version::Http11,
            None,
            cause.termination(),
            cause.word(),
            names,
            total,
        );
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one call per kind of ending; a struct would only rename them"
    )]
    fn log(
        &mut self,
        key: Key,
        account: &Account,
        version: Version,
        route: Option<u16>,
        termination: [u8; 2],
        cause: &'static str,
        names: Names,
        total: Micros,
    ) {
        let Worker {
            log: Some(log),
            sessions,
            tables,
            wall_at_zero_ms,
            ..
        } = self
        else {
            return;
        };
        let Some(session) = sessions.get(key) else { return };
        let place = session.pinned.unwrap_or(tables.current());
        let listener = tables
            .get(place)
            .listener(session.listener)
            .map_or("", |entry| &entry.name);
        let (mut backend, mut server) = ("", "");
        if let Some((generation, at)) = names.backend {
            let table = &tables.get(generation).backends[usize::from(at)].table;
            backend = &table.name;
            server = names.server.map_or("", |index| &table.at(index).server.name);
        }
        let (method, rest) = account.texts.split_at(usize::from(account.method_length));
        let (target, host) = rest.split_at(usize::from(account.target_length));
        log.push(&Record {
            at_unix_ms: *wall_at_zero_ms + account.started / 1000,
            client: (!session.client.ip().is_unspecified()).then_some(session.client),
            listener,
            backend,
            server,
            route,
            method,
            host,
            target,
            minor_version: if version == Version::Http10 { 0 } else { 1 },
            status: account.status,
            bytes_in: account.bytes_in,
            bytes_out: account.bytes_out,
            timers: account.timers(total),
            retries: account.retries,
            ahead: account.ahead,
            dispatch: if account.redispatched {
                Dispatch::Redispatched
            } else {
                Dispatch::First
            },
            termination: terminated(termination),
            reuse: match (account.connected, account.held) {
                (0, _) | (_, Held::Nothing) => Reuse::None,
                (_, Held::New(_)) => Reuse::New,
                (_, Held::Idle) => Reuse::Idle,
                (_, Held::Safe) => Reuse::Safe,
                (_, Held::TakenOver) => Reuse::TakenOver,
                (_, Held::Private) => Reuse::Private,
            },
            opened: match account.held {
                Held::New(reason) => reason.word(),
                _ => "",
            },
            closed: account.closed.map_or("", CloseReason::word),
            cause,
        });
    }

    /// An answer of ours that is about to be sent.
    pub(super) fn count_reply(&self, key: Key, status: u16, bytes: u64) {
        if let Some(statistics) = self.statistics_of(key) {
            statistics.replies.count(status);
            statistics.bytes_out.add(bytes);
        }
    }

    pub(super) fn count_cause(&self, key: Key, cause: Cause) {
        if let Some(statistics) = self.statistics_of(key) {
            statistics.refused[cause.index()].count();
        }
    }

    /// What came is no response: operators want to know why.
    pub(super) fn count_bad_response(&self, exchange: Key, bad: BadResponse) {
        let Some(live) = self.exchanges.get(exchange) else {
            return;
        };
        if let Some(index) = live.account.server {
            let server = self.server_at(live, index);
            server.statistics.of(self.id).response_errors.count();
            let (backend, reason) = (&server.backend, bad.reason());
            let fields: Fields = &[
                ("backend", backend),
                ("server", &server.name),
                ("reason", &reason),
            ];
            self.messages
                .say(Level::Warn, "a server sent what is no response", fields);
        }
    }
}

/// The two letters of LG-3 as the log's own type.
fn terminated([by, phase]: [u8; 2]) -> Termination {
    let by = EndedBy::ALL.iter().find(|one| one.letter() == by);
    let phase = Phase::ALL.iter().find(|one| one.letter() == phase);
    Termination {
        by: *by.unwrap_or(&EndedBy::Internal),
        phase: *phase.unwrap_or(&Phase::None),
    }
}

/// Whose names a record carries.
struct Names {
    backend: Option<(u32, u16)>,
    server: Option<ServerIndex>,
}

impl Account {
    fn timers(&self, total: Micros) -> Timers {
        let since = |end: Micros, start: Micros| {
            if end == 0 {
                Timers::NOT_REACHED
            } else {
                end.saturating_sub(start) as i64
            }
        };
        Timers {
            request: since(self.head_complete, self.started),
            queue: match (self.waited, self.connected) {
                (Some(waited), _) => waited as i64,
                (None, 0) => Timers::NOT_REACHED,
                (None, _) => 0,
            },
            connect: if self.held.is_reused() {
                0
            } else {
                since(self.connected, self.connect_began)
            },
            response: since(self.response_began, self.connected),
            total: total as i64,
        }
    }
}
