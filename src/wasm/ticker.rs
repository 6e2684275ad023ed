//! The clock that cuts guests: a thread that advances the engine's epoch every 5 ms, and rests when no guest runs.
//!
//! Entering a guest costs one relaxed load. The first call after a rest wakes the thread. It goes to rest after a whole
//! [`WINDOW`] in which nobody entered; a window is longer than any deadline, so that no guest is left without a tick.
//!
//! The handshake is that of a sleeper: the ticker says *resting*, then looks at `busy` once more; a caller sets `busy`, then
//! looks at `resting`. Both are sequentially consistent, so one of them sees the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle, Thread};
use std::time::{Duration, Instant};
use wasmtime::{Engine, EngineWeak};

/// Between two ticks.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// How long the ticker goes on after the last call.
const WINDOW: Duration = Duration::from_millis(2500);
const TICKS_PER_WINDOW: u32 = (WINDOW.as_millis() / TICK.as_millis()) as u32;

/// The longest deadline that may be given.
pub(super) const DEADLINE_MAX: Duration = Duration::from_secs(2);

/// Ticks after which a call that begins now has lasted at least that long.
pub(super) fn ticks(deadline: Duration) -> u64 {
    deadline.min(DEADLINE_MAX).as_nanos().div_ceil(TICK.as_nanos()) as u64 + 1
}

/// Ends its thread when it is dropped.
pub(super) struct Ticker {
    flags: Arc<Flags>,
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Flags {
    busy: AtomicBool,
    resting: AtomicBool,
    ended: AtomicBool,
}

impl Ticker {
    pub(super) fn start(engine: &Engine) -> std::io::Result<Ticker> {
        let flags = Arc::new(Flags::default());
        let (theirs, engine) = (Arc::clone(&flags), engine.weak());
        let handle = Builder::new()
            .name("ticker".into())
            .spawn(move || run(&theirs, &engine))?;
        Ok(Ticker {
            flags,
            thread: handle.thread().clone(),
            handle: Some(handle),
        })
    }

    /// A guest is about to run.
    pub(super) fn touch(&self) {
        if !self.flags.busy.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.flags.busy.store(true, Ordering::SeqCst);
        if self.flags.resting.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.flags.ended.store(true, Ordering::SeqCst);
        self.thread.unpark();
        if let Some(handle) = self.handle.take() {
            // A panic there has been reported by the thread itself.
            let _ = handle.join();
        }
    }
}

fn run(flags: &Flags, engine: &EngineWeak) {
    let mut next = Instant::now() + TICK;
    let mut ticks = 0;
    while !flags.ended.load(Ordering::SeqCst) {
        if ticks == TICKS_PER_WINDOW {
            ticks = 0;
            if !flags.busy.swap(false, Ordering::SeqCst) {
                rest(flags);
                next = Instant::now() + TICK;
            }
        }
        std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        if now < next {
            continue;
        }
        // After a stall it goes on from here: guests did not run meanwhile either.
        next = now.max(next + TICK);
        ticks += 1;
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}

fn rest(flags: &Flags) {
    flags.resting.store(true, Ordering::SeqCst);
    while !flags.busy.load(Ordering::SeqCst) && !flags.ended.load(Ordering::SeqCst) {
        std::thread::park();
    }
    flags.resting.store(false, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_shortened() {
        assert_eq!(ticks(Duration::from_millis(10)), 3);
        assert_eq!(ticks(Duration::from_millis(11)), 4);
        assert_eq!(ticks(Duration::from_secs(9)), ticks(DEADLINE_MAX));
        assert!(DEADLINE_MAX + 2 * TICK < WINDOW);
    }
}
