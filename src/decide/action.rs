//! What a rule does with a request: give it to a backend, send the client elsewhere, answer, refuse.
//!
//! All values are checked when they are made, so that carrying them out cannot fail.

use super::mistake::{Kind, Mistake, What};
use super::redirect::Redirect;

/// The status where no rule matches and no default backend is named: as HAProxy, 503 rather than 404, because the resource
/// may well exist; it is the proxy that has nobody to ask.
pub const NO_ROUTE_STATUS: u16 = 503;

/// A backend, by its place in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BackendRef(pub u16);

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A server of this backend answers.
    Backend(BackendRef),
    /// The client is sent elsewhere.
    Redirect(Redirect),
    /// The proxy answers.
    Respond(Respond),
    /// The proxy refuses, with this status ([`Action::deny`]).
    Deny(u16),
}

impl Action {
    /// A refusal with a status from 400 to 599.
    pub fn deny(status: u16) -> Result<Action, Mistake> {
        match status {
            400..=599 => Ok(Action::Deny(status)),
            _ => Err(Mistake::new(0, What::Status(400, 599))),
        }
    }
}

/// A fixed answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Respond {
    status: u16,
    content_type: Box<str>,
    body: Box<[u8]>,
}

impl Respond {
    /// A status from 200 to 599, with a body where the status has one (RFC 9110 §6.4.1).
    pub fn new(status: u16, content_type: &str, body: &[u8]) -> Result<Respond, Mistake> {
        if !(200..=599).contains(&status) {
            return Err(Mistake::new(0, What::Status(200, 599)));
        }
        if matches!(status, 204 | 205 | 304) && !body.is_empty() {
            return Err(Mistake::new(0, What::BodyForbidden(status)));
        }
        check_content_type(content_type)?;
        Ok(Respond {
            status,
            content_type: content_type.into(),
            body: body.into(),
        })
    }

    /// 200…599.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of `Content-Type`.
    pub fn content_type(&self) -> &str {
        &self.content_type
    }

    /// The content; may be empty.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

fn check_content_type(text: &str) -> Result<(), Mistake> {
    let printable = |found: char| matches!(found, ' '..='~');
    match text.char_indices().find(|(_, found)| !printable(*found)) {
        Some((at, found)) => Err(Mistake::new(at, What::Byte(found, Kind::ContentType))),
        None if text.trim() == text && text.split_once('/').is_some_and(|(main, _)| !main.is_empty()) => {
            Ok(())
        }
        None => Err(Mistake::new(0, What::ContentType)),
    }
}

impl Action {
    /// What a request that matches gets.
    pub(super) fn outcome(&self) -> Outcome<'_> {
        match self {
            Action::Backend(backend) => Outcome::Backend(*backend),
            Action::Redirect(redirect) => Outcome::Redirect(redirect),
            Action::Respond(respond) => Outcome::Respond(respond),
            Action::Deny(status) => Outcome::Deny(*status),
        }
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'t> {
    /// A server of this backend answers.
    Backend(BackendRef),
    /// The client is sent elsewhere.
    Redirect(&'t Redirect),
    /// The proxy answers.
    Respond(&'t Respond),
    /// The proxy refuses, with this status.
    Deny(u16),
    /// Nobody answers: [`NO_ROUTE_STATUS`].
    NoRoute,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_bodies_are_checked() {
        assert!(Action::deny(399).is_err() && Action::deny(600).is_err() && Action::deny(429).is_ok());
        let cases = [
            (199, "text/plain", "", Err(What::Status(200, 599))),
            (204, "text/plain", "x", Err(What::BodyForbidden(204))),
            (204, "text/plain", "", Ok(204)),
            (200, "text", "x", Err(What::ContentType)),
            (
                200,
                "text/plain\r\n",
                "x",
                Err(What::Byte('\r', Kind::ContentType)),
            ),
            (503, "text/html; charset=utf-8", "x", Ok(503)),
        ];
        for (status, content_type, body, expected) in cases {
            let made = Respond::new(status, content_type, body.as_bytes());
            assert_eq!(
                made.map(|made| made.status()).map_err(|mistake| mistake.what),
                expected,
                "{status}"
            );
        }
    }
}
