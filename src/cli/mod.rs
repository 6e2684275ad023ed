//! (in progress)
pub mod demo;
