//! (in progress)
pub mod edit;
pub mod mistake;
pub mod pattern;
pub mod redirect;
pub mod route;
pub mod template;
