//! Forebay: a programmable HTTP proxy. (Front page in progress.)

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
pub mod sync;
#[cfg(feature = "wasm")]
pub mod wasm;
#[cfg(feature = "proxy")]
pub mod worker;
