//! Comma lists: the `Connection` field and membership in other list-valued fields (RFC 9110 §5.6.1, §7.6.1).

/// What the `Connection` lines of a head say together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
    /// Options that name a field to remove.
    pub(super) named: u16,
}

/// Most fields that `Connection` may name: the search for them is a product.
pub(super) const NAMED_MAX: u16 = 64;

impl Options {
    /// Adds one `Connection` line.
    pub(super) fn read(&mut self, value: &[u8]) {
        if same(value, b"keep-alive") {
            self.keep_alive = true;
        } else if same(value, b"close") {
            self.close = true;
        } else {
            members(value).for_each(|option| self.add(option));
        }
    }

    fn add(&mut self, option: &[u8]) {
        if same(option, b"close") {
            self.close = true;
        } else if same(option, b"keep-alive") {
            self.keep_alive = true;
        } else if same(option, b"upgrade") {
            self.upgrade = true;
        } else {
            self.named = self.named.saturating_add(1);
        }
    }

    /// Whether the connection outlives the message (RFC 9112 §9.3).
    pub(super) fn persist(&self, version: super::Version) -> bool {
        match version {
            super::Version::Http11 => !self.close,
            super::Version::Http10 => self.keep_alive && !self.close,
        }
    }
}

/// The members of a comma list, without white space around them, empty ones left out.
pub(super) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Whether a comma list has this member; `lower` is in lower case. Parameters (`;q=…`) make a member another one.
pub(super) fn lists<const N: usize>(value: &[u8], lower: &[u8; N]) -> bool {
    same(value, lower) || members(value).any(|member| same(member, lower))
}

/// Whether `text` is `lower` in any letter case. Exact for letters, digits, `-` and `/` in `lower` and text without
/// control characters, which is all that a parsed head contains.
pub(super) fn same<const N: usize>(text: &[u8], lower: &[u8; N]) -> bool {
    let Ok(text) = <&[u8; N]>::try_from(text) else {
        return false;
    };
    let mut difference = 0;
    for at in 0..N {
        difference |= (text[at] | 0x20) ^ lower[at];
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::{Options, lists, same};
    use crate::http1::Version;

    #[test]
    fn letter_case_is_ignored_and_nothing_else() {
        assert!(same(b"ChUNked", b"chunked"));
        assert!(!same(b"chunked ", b"chunked"));
        assert!(!same(b"chunke", b"chunked"));
        assert!(!same(b"keep_alive", b"keep-alive"));
        assert!(!same(b"\"close\"", b"close"));
    }

    #[test]
    fn connection_lines_add_up() {
        let mut options = Options::default();
        options.read(b"x-one , X-TWO");
        options.read(b"Keep-Alive,, Upgrade");
        assert!(options.keep_alive && options.upgrade && !options.close);
        assert_eq!(options.named, 2);
        assert!(options.persist(Version::Http10) && options.persist(Version::Http11));
        options.read(b"ClOsE");
        assert!(!options.persist(Version::Http10) && !options.persist(Version::Http11));
        assert!(!Options::default().persist(Version::Http10));
    }

    #[test]
    fn members_are_whole_words() {
        assert!(lists(b"gzip;q=0.5 , Trailers", b"trailers"));
        assert!(!lists(b"x-trailers", b"trailers"));
        assert!(!lists(b"trailers;q=1", b"trailers"));
    }
}
