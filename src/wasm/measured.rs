//! The import `measures`: what a guest asked for in `configure`, and where it is read.

use super::contract::MEASURES;
use super::guest::{Guest, number};
use super::imports::{Caller, read_name};
use crate::policy::{Live, MEASURES_MAX, Measure, Reading, ServerIndex};
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Result;
use wasmtime::component::{Linker, WasmStr};

/// What a guest may read of servers, in one store.
#[derive(Default)]
pub(super) struct Measured {
    /// Whether names are taken: in `configure` only.
    pub(super) declaring: bool,
    /// As they were asked for.
    pub(super) names: Vec<String>,
    /// The same, as they are known everywhere.
    measures: Box<[Measure]>,
    servers: Option<Servers>,
}

struct Servers {
    live: Arc<dyn Live>,
    count: usize,
    /// By measure; `None` for one that these servers do not know.
    readings: Vec<Option<Reading>>,
}

impl Measured {
    /// Takes a name; what it is like is for who asked to see.
    fn declare(&mut self, name: String) -> i32 {
        // One too many is kept, so that it is seen.
        if !self.declaring || self.names.len() > MEASURES_MAX {
            return -1;
        }
        self.names.push(name);
        self.names.len() as i32 - 1
    }

    /// What the names have turned out to mean.
    pub(super) fn settle(&mut self, measures: &[Measure]) {
        self.measures = measures.into();
    }

    /// The servers that indices mean from now on.
    pub(super) fn follow(&mut self, live: &Arc<dyn Live>, count: usize) {
        if self.measures.is_empty() {
            return;
        }
        let readings = self.measures.iter().map(|measure| live.find(measure)).collect();
        self.servers = Some(Servers {
            live: live.clone(),
            count,
            readings,
        });
    }

    fn value(&self, server: i32, measure: i32, now: Duration) -> i32 {
        let Some((servers, reading)) = self.reading(measure) else {
            return -1;
        };
        match usize::try_from(server) {
            Ok(at) if at < servers.count => servers.value(at, reading, now),
            _ => -1,
        }
    }

    fn column(&self, measure: i32, now: Duration) -> Vec<i32> {
        match (&self.servers, self.reading(measure)) {
            (_, Some((servers, reading))) => (0..servers.count)
                .map(|at| servers.value(at, reading, now))
                .collect(),
            (Some(servers), None) => vec![-1; servers.count],
            (None, None) => Vec::new(),
        }
    }

    fn reading(&self, measure: i32) -> Option<(&Servers, Reading)> {
        let servers = self.servers.as_ref()?;
        let reading = *servers.readings.get(usize::try_from(measure).ok()?)?;
        Some((servers, reading?))
    }
}

impl Servers {
    fn value(&self, at: usize, reading: Reading, now: Duration) -> i32 {
        let value = self.live.measure(ServerIndex(at as u16), reading, now);
        value.map_or(-1, number)
    }
}

/// Defines the import.
pub(super) fn define(linker: &mut Linker<Guest>) -> Result<()> {
    let mut measures = linker.instance(MEASURES)?;
    measures.func_wrap("measure", |mut caller: Caller<'_>, (name,): (WasmStr,)| {
        caller.data_mut().enter()?;
        let name = read_name(&mut caller, &name)?;
        Ok((caller.data_mut().measured.declare(name),))
    })?;
    measures.func_wrap(
        "value",
        |mut caller: Caller<'_>, (server, measure): (i32, i32)| {
            caller.data_mut().enter()?;
            let guest = caller.data();
            Ok((guest.measured.value(server, measure, guest.request.time()),))
        },
    )?;
    measures.func_wrap("column", |mut caller: Caller<'_>, (measure,): (i32,)| {
        caller.data_mut().enter()?;
        let guest = caller.data();
        Ok((guest.measured.column(measure, guest.request.time()),))
    })
}
