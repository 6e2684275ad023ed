//! The command line.

pub mod ctl;
