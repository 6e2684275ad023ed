//! (in progress)
pub mod balance;
pub mod edit;
pub mod reuse;
pub mod route;
