//! Names that one part of the file gives and another refers to: backends and policies.

use super::errors::{At, Class, Problem, Report};
use super::keys;
use super::model::{Balance, OnFault, Policy, PolicyRef};
use super::read::{Fields, Text};
use super::words::{did_you_mean, one_of};
use std::cell::RefCell;

/// The names of all tables `[what.NAME]`.
pub(super) struct Names<'a> {
    what: &'static str,
    known: Vec<Text<'a>>,
    /// Whether every one that the file means is among them.
    complete: bool,
}

impl<'a> Names<'a> {
    /// Those that were read from the tables under the key `what` of the file.
    pub(super) fn of(what: &'static str, top: &Fields<'_>, known: Vec<Text<'a>>) -> Names<'a> {
        let complete = match top.raw(what) {
            None => !top.is_meant(what),
            Some(value) => value
                .get_ref()
                .as_table()
                .is_some_and(|tables| tables.len() == known.len()),
        };
        Names {
            what,
            known,
            complete,
        }
    }

    /// In the order of the configuration.
    pub(super) fn known(&self) -> &[Text<'a>] {
        &self.known
    }

    /// The place of that name, or a report that there is none.
    pub(super) fn find(&self, name: &Text<'_>, report: &mut Report) -> Option<u16> {
        if let Some(at) = self.known.iter().position(|known| known.text == name.text) {
            return u16::try_from(at).ok();
        }
        if !self.complete {
            return None;
        }
        let what = self.what;
        let known = || self.known.iter().map(|known| known.text);
        let help = match keys::nearest(name.text, known()) {
            None if self.known.is_empty() => format!("add `[{what}.{}]`", name.text),
            None if self.known.len() <= 8 => format!("there is {}", one_of(known())),
            near => did_you_mean(near, "\""),
        };
        let found = format!("there is no {what} \"{}\"", name.text.escape_debug());
        report.push(
            Problem::new(Class::Missing, name.at.clone(), found)
                .expected(format!("expected the name of a {what}"))
                .help(help),
        );
        None
    }
}

/// The policies of the file, and where they were attached.
pub(super) struct Policies<'a> {
    names: Names<'a>,
    list: &'a [Policy],
    attached: RefCell<Vec<At>>,
}

impl<'a> Policies<'a> {
    pub(super) fn of(names: Names<'a>, list: &'a [Policy]) -> Policies<'a> {
        Policies {
            names,
            list,
            attached: RefCell::default(),
        }
    }

    /// The policy that chooses servers of a backend, with what is used without it.
    pub(super) fn of_backend(&self, name: &Text<'_>, report: &mut Report) -> Option<(PolicyRef, Balance)> {
        let policy = self.of_listener(name, report)?;
        self.must_not_deny(policy, name, report);
        Some((policy, self.list[usize::from(policy.0)].fallback.clone()))
    }

    /// A policy that a backend names beside `others`. One policy in one place is attached once.
    pub(super) fn beside(
        &self,
        others: &[Option<PolicyRef>],
        name: &Text<'_>,
        report: &mut Report,
    ) -> Option<PolicyRef> {
        let policy = PolicyRef(self.names.find(name, report)?);
        if others.contains(&Some(policy)) {
            return Some(policy);
        }
        self.attached.borrow_mut().push(name.at.clone());
        self.must_not_deny(policy, name, report);
        Some(policy)
    }

    fn must_not_deny(&self, policy: PolicyRef, name: &Text<'_>, report: &mut Report) {
        let it = &self.list[usize::from(policy.0)];
        if it.on_fault == OnFault::Deny {
            let found = format!("policy \"{}\" denies requests on a fault", it.name);
            report.wrong(
                name.at.clone(),
                found,
                "only a route policy may",
                format!("remove `on-fault = \"deny\"` of [policy.{}]", it.name),
            );
        }
    }

    /// The policy that chooses routes of a listener.
    pub(super) fn of_listener(&self, name: &Text<'_>, report: &mut Report) -> Option<PolicyRef> {
        let at = self.names.find(name, report)?;
        self.attached.borrow_mut().push(name.at.clone());
        Some(PolicyRef(at))
    }

    /// Where policies were attached, in the order of the file.
    pub(super) fn attached(self) -> Vec<At> {
        let mut attached = self.attached.into_inner();
        attached.sort_by_key(|at| at.start);
        attached
    }
}
