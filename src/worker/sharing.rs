//! How the connections of one request are shared where no policy has a say.

use super::Worker;
use super::begin::Incoming;
use crate::decide::route::BackendRef;
use crate::decide::sharing::Sharing;
use crate::decide::template::ControlCharacter;

impl Worker {
    /// How the connections of a request are shared where no policy has a say.
    pub(super) fn configured_sharing(
        &mut self,
        incoming: &Incoming<'_>,
        backend: BackendRef,
    ) -> Result<Sharing, ControlCharacter> {
        let Worker { tables, buffers, .. } = self;
        let settings = &tables.get(incoming.place).backends[usize::from(backend.0)].settings;
        let Some(template) = &settings.pool.name else {
            return Ok(Sharing::configured(settings.pool.mode, None));
        };
        let mut name = buffers.small();
        match template.render(&incoming.asked, &mut name) {
            Ok(()) => Ok(Sharing::configured(settings.pool.mode, Some(name))),
            Err(refused) => {
                buffers.give(name);
                Err(refused)
            }
        }
    }
}
