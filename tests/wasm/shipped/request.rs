//! A request as far as a policy may see it.

use forebay::policy::{Asked, Attribute, Offers};
use std::time::Duration;

/// What a request shows, and how a transcript calls it.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) label: String,
    shown: Vec<(Attribute, Vec<u8>)>,
}

impl Request {
    pub(super) fn to(path: &str) -> Request {
        Request {
            path: path.to_owned(),
            label: path.to_owned(),
            shown: Vec::new(),
        }
    }

    /// With that attribute, by the name that a policy gives it.
    pub(super) fn with(mut self, name: &str, value: impl AsRef<[u8]>) -> Request {
        let value = value.as_ref();
        let text = match value.len() {
            0..40 => value.escape_ascii().to_string(),
            length => format!("{length} bytes"),
        };
        self.label.push_str(&format!(" {name}={text}"));
        let attribute = Attribute::parse(name).expect("an attribute of the contract");
        self.shown.push((attribute, value.to_owned()));
        self
    }

    /// The values that a policy wants to see, in its order.
    pub(super) fn values(&self, offers: &Offers) -> Vec<Option<&[u8]>> {
        let value = |wanted: &Attribute| {
            let found = self.shown.iter().find(|(attribute, _)| attribute == wanted);
            found.map(|(_, value)| value.as_slice())
        };
        offers.attributes.iter().map(value).collect()
    }
}

/// A question about these values.
pub(super) fn asked<'a>(values: &'a [Option<&'a [u8]>]) -> Asked<'a> {
    Asked {
        now: Duration::from_secs(1),
        seed: 7,
        attributes: values,
    }
}
