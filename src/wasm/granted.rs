//! The imports `counters` and `store`: what a guest has only where the operator granted it, and the core keeps.
//!
//! A component that imports one of them without its grant is refused before it is configured, so that what is here is
//! called by nobody else.

use super::contract::{COUNTERS, STORE};
use super::guest::Guest;
use super::imports::{Caller, read_name};
use crate::policy::{Fault, Keeper, NUMBERS_MAX, NumberKind, Tally};
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::{Linker, WasmList, WasmStr};

/// What a guest was granted, in one store.
#[derive(Default)]
pub(super) struct Granted {
    /// Whether names are taken: in `configure` only.
    pub(super) declaring: bool,
    /// As they were declared.
    pub(super) numbers: Vec<(NumberKind, String)>,
    /// Where it counts; `None` while it is only being configured.
    pub(super) tally: Option<Arc<Tally>>,
    /// Where its bytes are kept; `None` in a call that may not use them.
    pub(super) keeper: Option<Arc<dyn Keeper>>,
}

impl Granted {
    /// Before each call: what this one may do is said anew.
    pub(super) fn begin(&mut self) {
        self.declaring = false;
        self.keeper = None;
    }

    fn declare(&mut self, kind: NumberKind, name: String) -> i32 {
        // One too many is kept, so that it is seen.
        if !self.declaring || self.numbers.len() > NUMBERS_MAX {
            return -1;
        }
        self.numbers.push((kind, name));
        self.numbers.len() as i32 - 1
    }
}

/// Defines the imports.
pub(super) fn define(linker: &mut Linker<Guest>) -> Result<()> {
    counters(linker)?;
    store(linker)
}

fn counters(linker: &mut Linker<Guest>) -> Result<()> {
    let mut counters = linker.instance(COUNTERS)?;
    for (name, kind) in [("counter", NumberKind::Counter), ("gauge", NumberKind::Gauge)] {
        counters.func_wrap(name, move |mut caller: Caller<'_>, (name,): (WasmStr,)| {
            caller.data_mut().enter()?;
            let name = read_name(&mut caller, &name)?;
            Ok((caller.data_mut().granted.declare(kind, name),))
        })?;
    }
    counters.func_wrap("add", |mut caller: Caller<'_>, (counter, more): (i32, i32)| {
        change(caller.data_mut(), "counter", counter, |tally, at| {
            u32::try_from(more).is_ok_and(|more| tally.add(at, more))
        })
    })?;
    counters.func_wrap("set", |mut caller: Caller<'_>, (gauge, value): (i32, i32)| {
        change(caller.data_mut(), "gauge", gauge, |tally, at| {
            tally.set(at, value)
        })
    })
}

/// Changes a number, or notes that it cannot be.
fn change(guest: &mut Guest, kind: &str, at: i32, change: impl FnOnce(&Tally, usize) -> bool) -> Result<()> {
    guest.enter()?;
    let Some(tally) = &guest.granted.tally else {
        return Ok(()); // it is being configured
    };
    let changed = usize::try_from(at).is_ok_and(|at| change(tally, at));
    if !changed {
        let detail = format!("{at} is no {kind} that was declared in configure, or it was to shrink");
        guest.note(Fault::Undeclared, detail);
    }
    Ok(())
}

fn store(linker: &mut Linker<Guest>) -> Result<()> {
    let mut store = linker.instance(STORE)?;
    store.func_wrap(
        "save",
        |mut caller: Caller<'_>, (version, bytes): (i32, WasmList<u8>)| {
            caller.data_mut().enter()?;
            let guest = caller.data();
            let saved = match &guest.granted.keeper {
                Some(keeper) => keeper.save(version, bytes.as_le_slice(&caller)),
                None => false,
            };
            Ok((saved,))
        },
    )?;
    store.func_wrap("restore", |mut caller: Caller<'_>, (version,): (i32,)| {
        caller.data_mut().enter()?;
        let keeper = caller.data().granted.keeper.as_ref();
        Ok((keeper.and_then(|keeper| keeper.restore(version)),))
    })
}
