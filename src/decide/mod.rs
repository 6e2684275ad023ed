//! (in progress)
pub mod edit; pub mod route;
