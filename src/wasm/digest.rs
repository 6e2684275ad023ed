//! SHA-256 of a component: its identity in the cache, in reports, and in `sha256 =` of a configuration.

use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; Digest::LENGTH]);

impl Digest {
    /// In bytes.
    pub const LENGTH: usize = 32;

    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// One that was written down.
    pub fn new(bytes: [u8; Digest::LENGTH]) -> Digest {
        Digest(bytes)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; Digest::LENGTH] {
        &self.0
    }

    /// The first 12 digits, for a line that a person reads.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Digest, &'static str> {
        let wrong = "a SHA-256 is 64 hexadecimal digits";
        if text.len() != 2 * Digest::LENGTH || !text.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err(wrong);
        }
        let mut bytes = [0; Digest::LENGTH];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong)?;
        }
        Ok(Digest(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let digest = Digest::of(b"");
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        assert!("e3b0".parse::<Digest>().is_err() && "ü".repeat(32).parse::<Digest>().is_err());
    }
}
