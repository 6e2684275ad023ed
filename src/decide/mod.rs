//! Who, when, whether: the decisions, pure. Values in, values out; time and randomness are arguments.
//!
//! [`exchange`] reads as the life of a request. Beside it: [`route`] (which backend, or what answer), [`balance`]
//! (which server), [`reuse`] (which connection), [`schedule`] (how much per turn, which worker).

pub mod action;
pub mod additions;
pub mod asked;
pub mod attributes;
pub mod balance;
pub mod budget;
pub mod cause;
pub mod edit;
pub mod exchange;
pub mod host;
pub mod limit;
pub mod load_report;
pub mod mistake;
pub mod pattern;
pub mod persist;
pub mod redirect;
pub mod reuse;
pub mod route;
pub mod schedule;
pub mod settings;
pub mod sharing;
pub mod template;
pub mod usher;
