//! Who says what requests are handled by, and how servers behave, while a run goes on.

use super::connections::Name;
use super::world::Model;
use crate::decide::settings::Micros;
use crate::shared::generation::Generation;
use std::sync::Arc;

/// Everything that the requests of a run are handled by, at one time.
pub(crate) type Current = Generation<Name, Nowhere>;

/// Where a simulated server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nowhere;

#[cfg(feature = "proxy")]
impl From<crate::net::Address> for Nowhere {
    fn from(_: crate::net::Address) -> Nowhere {
        Nowhere
    }
}

/// The operator, the control thread and the weather of a run.
pub(crate) trait Steering {
    /// What requests are handled by at first.
    fn first(&self) -> Arc<Current>;

    /// How a server behaves from now on.
    fn model(&self, backend: &str, server: &str) -> Model;

    /// Does what is due. Called at the beginning, and then whenever it wished.
    fn turn(&mut self, now: Micros) -> Turn;
}

/// What came of a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// What requests are handled by from now on, if that is something else.
    pub(crate) generation: Option<Arc<Current>>,
    /// Whether servers behave otherwise from now on.
    pub(crate) models: bool,
    /// When to come again; `None` for never.
    pub(crate) next: Option<Micros>,
    /// What happened, for who reads the run.
    pub(crate) notes: Vec<String>,
}
