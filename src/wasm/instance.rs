//! One guest in its store: made, called within an allowance, and given up after any error.
//!
//! A store is never used again after an `Err` of a call, whatever the error says: a trap poisons it, and other errors leave
//! it in a state that nobody has promised. A mistake that is only noted leaves it alive.

use super::Host;
use super::component::Loaded;
use super::contract::{admit, balance_pick, balance_plan, classify, configure, reuse, reuse_plan, route};
use super::guest::{Guest, clean};
use super::ticker;
use crate::policy::{Attached, Fault, Fuel, Usage};
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::Utf8Error;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::{Error, PoolConcurrencyLimitError, Store, Trap};

/// Bytes that a guest may hand over in one host call, or as the answer of a call per request.
const BYTES_MAX: usize = 64 << 10;
/// Bytes of the answer of a `configure` or a `plan`.
const ANSWER_MAX: usize = 1 << 20;
/// Handles of resources that it may hold: only closed WASI has any.
const HANDLES_MAX: usize = 64;

/// A guest that can be called.
pub(super) struct Instance {
    store: Store<Guest>,
    exports: Exports,
    host: Arc<Host>,
    /// What the last call might have used.
    fuel: u64,
}

/// The interfaces that it exports.
pub(super) struct Exports {
    pub(super) configure: Option<configure::Guest>,
    pub(super) plan: Option<balance_plan::Guest>,
    pub(super) pick: Option<balance_pick::Guest>,
    pub(super) route: Option<route::Guest>,
    pub(super) reuse: Option<reuse::Guest>,
    pub(super) reuse_plan: Option<reuse_plan::Guest>,
    pub(super) classify: Option<classify::Guest>,
    pub(super) admit: Option<admit::Guest>,
}

/// How long a call may last, on either engine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    ticks: u64,
    fuel: u64,
}

impl Allowance {
    pub(super) fn new(deadline: Duration, fuel: u64) -> Allowance {
        Allowance {
            ticks: ticker::ticks(deadline),
            fuel,
        }
    }
}

/// Why a call gave no answer, and whether the instance is gone.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) fault: Fault,
    pub(super) detail: Cow<'static, str>,
    pub(super) dropped: bool,
}

impl Cut {
    /// An answer that is not used.
    pub(super) fn refused(fault: Fault, detail: impl Into<Cow<'static, str>>) -> Cut {
        Cut {
            fault,
            detail: detail.into(),
            dropped: false,
        }
    }

    /// An instance that is of no use.
    pub(super) fn dropped(fault: Fault, detail: impl Into<Cow<'static, str>>) -> Cut {
        Cut {
            fault,
            detail: detail.into(),
            dropped: true,
        }
    }
}

impl Instance {
    pub(super) fn new(
        loaded: &Loaded,
        who: &Arc<Attached>,
        memory_max: usize,
        allowance: Allowance,
    ) -> Result<Instance, Cut> {
        let host = Arc::clone(loaded.host());
        let guest = Guest::new(Arc::clone(who), Arc::clone(&host.journal), memory_max);
        let mut store = Store::new(&host.engine, guest);
        store.limiter(|guest| &mut guest.memory);
        if host.ticker.is_some() {
            store.epoch_deadline_callback(|mut store| Ok(store.data_mut().overdue()));
        }
        store.set_hostcall_fuel(BYTES_MAX);
        store.set_max_component_handles(HANDLES_MAX);
        let made = within(&host, &mut store, allowance, |store| loaded.instantiate(store));
        match made {
            Ok(exports) => Ok(Instance {
                store,
                exports,
                host,
                fuel: allowance.fuel,
            }),
            Err(cut) if matches!(cut.fault, Fault::Pointer | Fault::Trap) && store.data().memory.refused => {
                Err(Cut::dropped(
                    Fault::Memory,
                    "it needs more memory than memory-max to start",
                ))
            }
            Err(cut) if cut.fault == Fault::Pointer => Err(Cut {
                fault: Fault::Instantiate,
                ..cut
            }),
            Err(cut) => Err(cut),
        }
    }

    /// What the host keeps for it.
    pub(super) fn guest(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    /// What its last call used, where fuel is counted, and the memory that it holds.
    pub(super) fn usage(&self) -> Usage {
        let allowed = self.fuel;
        let left = self.store.get_fuel().ok();
        Usage {
            fuel: left.map(|left| Fuel {
                used: allowed.saturating_sub(left),
                allowed,
            }),
            memory: Some(self.store.data().memory.held as u64),
        }
    }

    /// Calls it. The question has been put into [`Self::guest`] by `ask`, which runs after the allowance is renewed.
    pub(super) fn call<R>(
        &mut self,
        allowance: Allowance,
        ask: impl FnOnce(&mut Guest),
        run: impl FnOnce(&mut Store<Guest>, &Exports) -> wasmtime::Result<R>,
    ) -> Result<R, Cut> {
        let exports = &self.exports;
        self.fuel = allowance.fuel;
        self.store.data_mut().begin();
        ask(self.store.data_mut());
        let answer = within(&self.host, &mut self.store, allowance, |store| {
            run(store, exports)
        })?;
        match self.store.data_mut().noted.take() {
            None => Ok(answer),
            Some((fault, detail)) => Err(Cut::refused(fault, detail)),
        }
    }

    /// The same for a call that is not per request: its answer may be longer.
    pub(super) fn call_at_leisure<R>(
        &mut self,
        allowance: Allowance,
        ask: impl FnOnce(&mut Guest),
        run: impl FnOnce(&mut Store<Guest>, &Exports) -> wasmtime::Result<R>,
    ) -> Result<R, Cut> {
        self.store.set_hostcall_fuel(ANSWER_MAX);
        let answer = self.call(allowance, ask, run);
        self.store.set_hostcall_fuel(BYTES_MAX);
        answer
    }
}

/// Runs something in a store, for as long as it may last.
fn within<R>(
    host: &Host,
    store: &mut Store<Guest>,
    allowance: Allowance,
    run: impl FnOnce(&mut Store<Guest>) -> wasmtime::Result<R>,
) -> Result<R, Cut> {
    match &host.ticker {
        Some(ticker) => {
            store.set_epoch_deadline(allowance.ticks);
            ticker.touch();
        }
        None => refuel(store, allowance.fuel)?,
    }
    match catch_unwind(AssertUnwindSafe(|| run(store))) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(cut(store.data_mut(), &error)),
        Err(_) => Err(Cut::dropped(
            Fault::Host,
            "the host panicked while it served the guest",
        )),
    }
}

fn refuel(store: &mut Store<Guest>, fuel: u64) -> Result<(), Cut> {
    store
        .set_fuel(fuel)
        .map_err(|error| Cut::dropped(Fault::Host, format!("{error:#}")))
}

/// What an error was: what the host noted before it, else what the engine says.
fn cut(guest: &mut Guest, error: &Error) -> Cut {
    if let Some((fault, detail)) = guest.noted.take() {
        return Cut::dropped(fault, detail);
    }
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return Cut::dropped(
            Fault::Instantiate,
            "no room for another instance: raise `attachments-max`",
        );
    }
    // One line, whatever the engine's report looks like.
    let words: Vec<String> = format!("{error:#}")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let text = words.join(" ");
    let fault = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Fault::Deadline,
        Some(Trap::OutOfFuel) => Fault::Fuel,
        Some(Trap::StackOverflow) => Fault::Stack,
        Some(_) if guest.memory.refused => Fault::Memory,
        Some(_) => Fault::Trap,
        None if error.downcast_ref::<Utf8Error>().is_some() || text.contains("utf-8") => Fault::Utf8,
        // The engine keeps this error's type to itself.
        None if text.contains("fuel allocated for hostcalls") => Fault::HostBytes,
        None => Fault::Pointer,
    };
    // It may name functions of the guest, as the guest calls them.
    Cut::dropped(fault, clean(&text))
}
