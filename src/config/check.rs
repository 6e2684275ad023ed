//! What is right but hardly meant: warnings that need the whole configuration.

use super::errors::{Class, Problem, Report};
use super::model::Config;
use super::read::Text;
use crate::decide::route::{Action, BackendRef};

/// Warns of backends that no listener uses, and of such whose servers all have weight 0. `names` stand beside the backends.
pub(super) fn odd(config: &Config, names: &[Text<'_>], report: &mut Report) {
    for ((at, backend), name) in config.backends.iter().enumerate().zip(names) {
        if !is_used(config, at) {
            let problem = Problem::new(
                Class::Warning,
                name.at.clone(),
                format!("backend \"{}\" is never used", name.text),
            );
            report.push(problem.expected("no listener and no route names it"));
        }
        if !backend.servers.is_empty() && backend.servers.iter().all(|server| server.weight == 0) {
            let found = format!("every server of backend \"{}\" has weight 0", name.text);
            report.push(
                Problem::new(Class::Warning, name.at.clone(), found)
                    .expected("its requests are answered with 503"),
            );
        }
    }
}

fn is_used(config: &Config, at: usize) -> bool {
    let is_it = |backend: &BackendRef| usize::from(backend.0) == at;
    config.listeners.iter().any(|listen| {
        let routed = listen
            .routes
            .routes
            .iter()
            .any(|route| matches!(&route.action, Action::Backend(to) if is_it(to)));
        routed || listen.routes.default.as_ref().is_some_and(is_it)
    })
}
