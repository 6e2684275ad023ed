//! Forebay: a programmable HTTP proxy. (Front page in progress.)

pub mod http1;
pub mod decide;
pub mod policy;
pub mod shared;
pub mod sync;
#[cfg(feature = "proxy")]
pub mod config;
#[cfg(feature = "proxy")]
pub mod cli;
