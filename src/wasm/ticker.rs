//! The clock that cuts guests: a thread that advances the engine's epoch every 5 ms, and rests when no guest runs.
//!
//! Entering a guest costs one relaxed load. The first call after a rest wakes the thread. It goes to rest after a whole
//! [`WINDOW`] in which nobody entered; a window is longer than any deadline, so that no guest is left without a tick.
//!
//! The handshake is that of a sleeper: the ticker says *resting*, then looks at `busy` once more; a caller sets `busy`, then
//! looks at `resting`. Both are sequentially consistent, so one of them sees the other.

use rustix::time::{ClockId, clock_gettime};
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

/// Ticks after which a call is *overdue*: it has lasted that long, less than one tick more or less. One tick later it is
/// cut, if it is [`Overdue`] by its own doing.
pub(super) fn ticks(deadline: Duration) -> u64 {
    let ticks = deadline.min(DEADLINE_MAX).as_nanos().div_ceil(TICK.as_nanos());
    ticks.max(1) as u64
}

/// A call whose time is over. It is cut when its thread has really run for half a tick since, so that a thread that the
/// system had put aside in the middle of a short call can end it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overdue {
    /// The thread's time when it was found.
    ran: Duration,
    /// Ticks that it may still be given.
    grace: u32,
}

/// Ticks of grace for a thread that does not run.
const GRACE_MAX: u32 = 20;

impl Overdue {
    pub(super) fn begin() -> Overdue {
        Overdue {
            ran: ran(),
            grace: GRACE_MAX,
        }
    }

    /// Whether it has had its tick.
    pub(super) fn is_over(&mut self) -> bool {
        self.grace -= 1;
        self.grace == 0 || ran().saturating_sub(self.ran) >= TICK / 2
    }
}

/// The time that this thread has run.
fn ran() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
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
        // Never two ticks within less than one: a tick that came late must not take from the time of a guest that has
        // just been entered.
        next = now + TICK;
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
    fn windows_are_longer_than_deadlines() {
        assert_eq!(ticks(Duration::from_millis(10)), 2);
        assert_eq!(ticks(Duration::from_millis(11)), 3);
        assert_eq!(ticks(Duration::ZERO), 1);
        assert_eq!(ticks(Duration::from_secs(9)), ticks(DEADLINE_MAX));
        assert!(DEADLINE_MAX + TICK * (GRACE_MAX + 1) < WINDOW);
    }
}
