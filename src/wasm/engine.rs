//! The two engines: *live* for serving (epochs, no fuel) and *test* for snapshots (fuel, no epochs). What decides an
//! answer is the same in both: the compiler, canonical NaN, no relaxed SIMD, no threads.

use std::num::NonZeroUsize;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Result,
};

/// The stack of a guest. A worker's thread has 2 MiB.
const STACK: usize = 256 << 10;
/// Memory of an instance that is wiped and kept for the next one, rather than given back: about what a guest touches.
const RESIDENT: usize = 128 << 10;
/// Core modules within one component: the guest, its adapter, their glue.
const MODULES_MAX: u32 = 16;
/// Frames named in the report of a trap.
const FRAMES: NonZeroUsize = NonZeroUsize::new(8).expect("not zero");

/// What an engine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Serving: a guest is cut by the clock.
    Live,
    /// Tests: a guest is cut by counted work, the same on every machine.
    Test,
}

/// How many instances there may be at once, and how large each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) instances: u32,
    pub(super) memory_max: usize,
}

/// An engine, and why it does not use the pool if it should.
pub(super) fn engine(mode: Mode, room: Room) -> Result<(Engine, Option<String>)> {
    if mode == Mode::Test {
        return Ok((Engine::new(&config(mode))?, None));
    }
    let mut pooled = config(mode);
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(room)));
    match Engine::new(&pooled) {
        Ok(engine) => Ok((engine, None)),
        // Address space is limited: instances cost more to make, calls cost the same.
        Err(error) => Ok((Engine::new(&config(mode))?, Some(format!("{error:#}")))),
    }
}

fn config(mode: Mode) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(mode == Mode::Live)
        .consume_fuel(mode == Mode::Test)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .concurrency_support(false)
        .max_wasm_stack(STACK)
        .wasm_backtrace_max_frames(Some(FRAMES));
    config
}

fn pool(room: Room) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(room.instances)
        .total_core_instances(room.instances * 4)
        .total_memories(room.instances)
        .total_tables(room.instances * 4)
        .max_core_instances_per_component(MODULES_MAX)
        .max_memories_per_component(2)
        .max_tables_per_component(8)
        .max_memory_size(room.memory_max)
        .table_elements(super::guest::TABLE_MAX)
        .linear_memory_keep_resident(RESIDENT)
        .table_keep_resident(16 << 10)
        .pagemap_scan(Enabled::Auto)
        .max_unused_warm_slots(room.instances);
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Concurrency support makes every call four times as dear, and even compiled in and switched off it costs a tenth. An
    /// engine that was built without it refuses to have it; one that was not was given it by another crate's features.
    #[test]
    fn concurrency_support_is_off_and_not_built() {
        for mode in [Mode::Live, Mode::Test] {
            assert!(Engine::new(&config(mode)).is_ok());
            let mut wanted = config(mode);
            let refused = Engine::new(wanted.concurrency_support(true)).expect_err("not built");
            assert!(
                refused.to_string().contains("not compiled into this build"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_pool_that_cannot_be_had_is_done_without() {
        let room = Room {
            instances: 60_000,
            memory_max: 64 << 20,
        };
        let (_, without) = engine(Mode::Live, room).expect("an engine");
        assert!(without.is_some(), "60 000 slots of 4 GiB do not fit 47 bits");
        let room = Room {
            instances: 16,
            memory_max: 64 << 20,
        };
        assert_eq!(engine(Mode::Live, room).expect("an engine").1, None);
    }
}
