//! Forebay: a programmable HTTP proxy. A native, multi-threaded core with per-worker pools of idle server connections,
//! in which WebAssembly components can choose who gets the work.
//!
//! # The life of a request
//!
//! A worker accepts a client ([`worker`]), reads a head and parses it once ([`http1`]); the routes choose a backend or
//! an answer ([`decide::route`]); the backend's balancer chooses a server ([`decide::balance`], [`shared::table`]); the
//! request takes a slot ([`shared::slots`]) or waits for one ([`shared::queue`]), and is lent an idle connection, or a new
//! one is opened ([`shared::pool`]); head and body go both ways; the slot is passed on, the connection parked or closed
//! ([`decide::reuse`]), the request counted and logged ([`observe`]). Which step follows which, and what happens when a
//! server dies in the middle, is one pure state machine that reads as that list: [`decide::exchange`].
//!
//! # The code map
//!
//! | module | what | depends on |
//! |---|---|---|
//! | [`http1`] | bytes ↔ messages, pure | nothing of ours |
//! | [`policy`] | the seam: ids, plain-data views, traits | nothing of ours |
//! | [`decide`] | who, when, whether, pure | policy, http1 |
//! | [`shared`] | what two threads can touch, with its locks and atomics | decide, policy, sync |
//! | [`mod@sync`] | the primitives, replaced under loom and shuttle | nothing |
//! | [`sim`] | workers, servers, clients, a clock that are not real, around decisions that are | shared, decide, policy |
//! | `net` | sockets, readiness, tokens, timers | nothing of ours |
//! | `worker` | one thread: the loop, both sides of a request, the relay | net, shared, decide, http1, policy, observe |
//! | `control` | the one thread that is no worker: reload, publication, drain | shared, decide, policy, config, net, observe |
//! | `observe` | operator messages, access log, metrics | nothing of ours |
//! | `admin` | runtime commands | control, shared, observe |
//! | `config` | file → typed configuration, with errors that help | decide, policy, http1, net |
//! | `wasm` | the host of policies, the only folder that names wasmtime | policy |
//! | `cli` | the commands | all |
//!
//! A test draws these arrows and keeps them as a snapshot. The first six build without sockets and threads
//! (`--no-default-features`). Decisions and their reasons: `src/manual/decisions`; every clause that the code cites:
//! `src/manual/rules.md`.

#[cfg(feature = "proxy")]
pub mod admin;
#[cfg(feature = "proxy")]
pub mod cli;
#[cfg(feature = "proxy")]
pub mod config;
#[cfg(feature = "proxy")]
pub mod control;
pub mod decide;
pub mod http1;
#[cfg(feature = "proxy")]
pub mod net;
#[cfg(feature = "proxy")]
pub mod observe;
pub mod policy;
pub mod shared;
#[cfg(not(any(feature = "loom", feature = "shuttle")))]
pub mod sim;
pub mod sync;
#[cfg(feature = "wasm")]
pub mod wasm;
#[cfg(feature = "proxy")]
pub mod worker;
