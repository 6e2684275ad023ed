//! The command line: one file per command.

pub mod check;
pub mod config;
