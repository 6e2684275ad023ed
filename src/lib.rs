//! Forebay: a programmable HTTP proxy. (Front page in progress.)

#[cfg(feature = "proxy")]
pub mod cli;
#[cfg(feature = "proxy")]
pub mod config;
pub mod decide;
pub mod http1;
pub mod policy;
pub mod shared;
pub mod sync;
