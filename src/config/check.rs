//! What is right but hardly meant: warnings that need the whole configuration.

use super::errors::{At, Class, Problem, Report};
use super::model::{Config, PolicyRef};
use super::read::Text;
use crate::decide::route::{Action, BackendRef};

/// Whether there is room for all policies where they are attached, in the order of the file.
pub(super) fn attachments(attached: Vec<At>, max: u16, report: &mut Report) {
    if let Some(extra) = attached.get(usize::from(max)) {
        let found = format!("policies are attached in {} places", attached.len());
        let help = format!("set `attachments-max = {}` in [process]", attached.len());
        let expected = format!("expected at most {max}; this one is too many");
        report.wrong(extra.clone(), found, expected, help);
    }
}

/// Warns of backends that no listener uses, of such whose servers all have weight 0, and of policies that nothing uses.
/// The names stand beside the backends and the policies.
pub(super) fn odd(config: &Config, names: &[Text<'_>], policies: &[Text<'_>], report: &mut Report) {
    for (at, name) in policies.iter().enumerate() {
        if !is_attached(config, at) {
            let found = format!("policy \"{}\" is never used", name.text);
            let problem = Problem::new(Class::Warning, name.at.clone(), found);
            report.push(problem.expected("no backend and no listener names it"));
        }
    }
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

/// A policy that routes may name every backend.
fn is_used(config: &Config, at: usize) -> bool {
    let is_it = |backend: &BackendRef| usize::from(backend.0) == at;
    config.listeners.iter().any(|listen| {
        if listen.route_policy.is_some() {
            return true;
        }
        let routed = listen
            .routes
            .routes
            .iter()
            .any(|route| matches!(&route.action, Action::Backend(to) if is_it(to)));
        routed || listen.routes.default.as_ref().is_some_and(is_it)
    })
}

fn is_attached(config: &Config, at: usize) -> bool {
    let is_it = |policy: PolicyRef| usize::from(policy.0) == at;
    let of_backends = config.backends.iter().filter_map(|backend| backend.policy);
    let of_connections = config.backends.iter().filter_map(|backend| backend.reuse_policy);
    let of_queues = config.backends.iter().filter_map(|backend| backend.queue_policy);
    let of_listeners = config.listeners.iter().filter_map(|listen| listen.route_policy);
    let all = of_backends
        .chain(of_connections)
        .chain(of_queues)
        .chain(of_listeners);
    all.into_iter().any(is_it)
}
