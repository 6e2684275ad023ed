//! What a policy is asked about the connections to servers, and what it may answer: plain data.
//!
//! How one request shares its connection is asked while it waits ([`Preference`]); how many connections a server
//! should have is asked while none does ([`PoolWish`]).

use super::{Fault, ServerIndex};

/// The largest number of connections that a policy can wish for.
pub const CONNECTIONS_MAX: u32 = 1_000_000;

/// How the connection of one request is to be shared. What is `None` is as configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// With whom.
    pub sharing: Option<WishedSharing>,
    /// Whether an idle one will do.
    pub fresh: Fresh,
    /// A number that it is marked with for good: only requests with the same share it.
    pub tag: Option<u32>,
    /// The attribute whose value is part of the tag, by its place in [`super::Offers::attributes`].
    pub tag_attribute: Option<u8>,
}

/// With whom a connection is shared, the strictest first: the modes of `reuse` (POOL-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WishedSharing {
    /// Nobody.
    Never,
    /// A client's later requests.
    Safe,
    /// Its first request too, if the connection has proven reusable.
    Aggressive,
    /// Everybody.
    Always,
}

/// Whether a request wants a connection that nobody has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fresh {
    /// An idle one will do.
    #[default]
    No,
    /// One is opened for it.
    Yes,
}

/// What the connections to one server should be, in connections, each at most [`CONNECTIONS_MAX`]. What is `None` is
/// as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolWish {
    /// Whose.
    pub server: ServerIndex,
    /// Idle ones below which a worker opens its own.
    pub low: Option<u32>,
    /// Idle ones at most.
    pub max: Option<u32>,
    /// So many are taken to be needed at least.
    pub need: Option<u32>,
    /// So many are opened in advance.
    pub preconnect: Option<u32>,
}

/// Whether all of these are about different servers, of which there are so many.
pub fn check_wishes(wishes: &[PoolWish], servers: usize) -> Result<(), Fault> {
    let mut seen = vec![false; servers];
    for wish in wishes {
        let seen = seen.get_mut(wish.server.at()).ok_or(Fault::UnknownServer)?;
        if std::mem::replace(seen, true) {
            return Err(Fault::Plan);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_one_wish() {
        let wish = |server| PoolWish {
            server: ServerIndex(server),
            low: None,
            max: None,
            need: None,
            preconnect: Some(1),
        };
        assert_eq!(check_wishes(&[wish(1), wish(0)], 2), Ok(()));
        assert_eq!(check_wishes(&[], 0), Ok(()));
        assert_eq!(check_wishes(&[wish(2)], 2), Err(Fault::UnknownServer));
        assert_eq!(check_wishes(&[wish(1), wish(1)], 2), Err(Fault::Plan));
    }
}
