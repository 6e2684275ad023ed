//! Where the load that a backend's servers report is kept, and what of it: what its policies of the day read.

use crate::config::model;
use crate::policy::{Measure, ServerId};
use crate::shared::generation::AttachedPolicy;
use crate::shared::load::{ReportedLoad, ReportedNames};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The reports of one backend's servers.
#[derive(Debug, Default)]
pub(super) struct Loads {
    /// `None` where none are looked for.
    wanted: Option<Arc<ReportedNames>>,
    by_server: BTreeMap<ServerId, Arc<ReportedLoad>>,
}

impl Loads {
    /// Takes up what is wanted from now on. Where that is something else, nothing is known at first.
    pub(super) fn want<'a>(
        &mut self,
        reports: model::LoadReports,
        policies: impl Iterator<Item = &'a Arc<AttachedPolicy>>,
    ) {
        let wanted = reports.passing.map(|_| ReportedNames {
            names: names(policies),
            age_max: reports.age_max,
        });
        if self.wanted.as_deref() != wanted.as_ref() {
            self.wanted = wanted.map(Arc::new);
            self.by_server.clear();
        }
    }

    /// That of a server.
    pub(super) fn of(&mut self, server: ServerId) -> Option<Arc<ReportedLoad>> {
        let wanted = self.wanted.as_ref()?;
        let load = self.by_server.entry(server);
        Some(
            load.or_insert_with(|| Arc::new(ReportedLoad::new(wanted.clone())))
                .clone(),
        )
    }
}

/// What they read of reports, sorted.
fn names<'a>(policies: impl Iterator<Item = &'a Arc<AttachedPolicy>>) -> Box<[Box<str>]> {
    let measures = policies.flat_map(|attached| &attached.attachment.offers().measures);
    let reported = measures.filter_map(|measure| match measure {
        Measure::Report(name) => Some(name.clone()),
        _ => None,
    });
    reported.collect::<BTreeSet<_>>().into_iter().collect()
}
