//! How the connections of one request may be shared: what is configured, and what its backend's policy wants.
//!
//! Settled once, before a server is chosen, and the same for every attempt.

use super::attributes::Values;
use super::reuse::{Looser, Mode, Override};
use crate::policy::{Fresh, Preference};

/// How the connections of one request may be shared.
#[derive(Debug)]
pub struct Sharing {
    /// With whom.
    pub mode: Mode,
    /// Whether an idle one will do.
    pub fresh: Fresh,
    /// What a connection must have in common with the request beside its server (`pool-conn-name`).
    pub name: Option<Vec<u8>>,
    /// The same by the policy's wish.
    pub tag: Option<Vec<u8>>,
}

impl Sharing {
    /// As it is configured.
    pub fn configured(mode: Mode, name: Option<Vec<u8>>) -> Sharing {
        Sharing {
            mode,
            fresh: Fresh::No,
            name,
            tag: None,
        }
    }

    /// Follows a preference, for a request with these attributes; a tag is written into what `buffer` gives.
    ///
    /// # Errors
    /// A looser mode than the policy may wish for: all else is followed.
    pub fn follow(
        &mut self,
        preference: &Preference,
        values: &Values<'_>,
        allowed: Override,
        buffer: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), Looser> {
        self.fresh = preference.fresh;
        let value = preference.tag_attribute.and_then(|at| values[usize::from(at)]);
        self.tag = tag(preference.tag, value, buffer);
        if let Some(wish) = preference.sharing {
            self.mode = self.mode.wished(wish.into(), allowed)?;
        }
        Ok(())
    }

    /// Whether its connections have a key of their own, beside their server's.
    pub fn has_key(&self) -> bool {
        self.name.is_some() || self.tag.is_some()
    }
}

/// One text for each pair of a number and a value; none for neither.
fn tag(number: Option<u32>, value: Option<&[u8]>, buffer: impl FnOnce() -> Vec<u8>) -> Option<Vec<u8>> {
    if number.is_none() && value.is_none() {
        return None;
    }
    let mut buffer = buffer();
    buffer.push(u8::from(number.is_some()));
    buffer.extend_from_slice(&number.unwrap_or_default().to_le_bytes());
    buffer.push(u8::from(value.is_some()));
    buffer.extend_from_slice(value.unwrap_or_default());
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ATTRIBUTES_MAX, WishedSharing};

    fn tagged(number: Option<u32>, value: Option<&[u8]>) -> Option<Vec<u8>> {
        tag(number, value, Vec::new)
    }

    /// Two tags are the same only if both parts are.
    #[test]
    fn tags_are_told_apart() {
        assert_eq!(tagged(None, None), None);
        let all = [
            tagged(Some(0), None),
            tagged(Some(1), None),
            tagged(None, Some(b"")),
            tagged(None, Some(b"a")),
            tagged(Some(0), Some(b"")),
            tagged(Some(0), Some(b"a")),
            tagged(Some(1), Some(b"a")),
            tagged(Some(0), Some(b"ab")),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{a:?}");
        }
        assert_eq!(tagged(Some(7), Some(b"x")), tagged(Some(7), Some(b"x")));
    }

    /// The rest of a preference counts although its mode does not: a tenant keeps to its own.
    #[test]
    fn a_looser_mode_is_refused_and_the_tag_is_not() {
        let mut values: Values<'_> = [None; ATTRIBUTES_MAX];
        values[1] = Some(b"acme");
        let preference = Preference {
            sharing: Some(WishedSharing::Always),
            fresh: Fresh::Yes,
            tag: None,
            tag_attribute: Some(1),
        };
        for (allowed, outcome, mode) in [
            (Override::Refused, Err(Looser), Mode::Safe),
            (Override::Allowed, Ok(()), Mode::Always),
        ] {
            let mut sharing = Sharing::configured(Mode::Safe, None);
            assert_eq!(sharing.follow(&preference, &values, allowed, Vec::new), outcome);
            assert_eq!((sharing.mode, sharing.fresh), (mode, Fresh::Yes));
            assert_eq!(sharing.tag, tagged(None, Some(b"acme")));
        }
    }
}
