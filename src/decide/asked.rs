//! What rules and templates see of a request: a view that borrows from its head.

use std::net::IpAddr;

/// What a request asks for, as far as rules and templates look at it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The method as it came.
    pub method: &'a [u8],
    /// Host and perhaps port, without user information; empty if there was none.
    pub host: &'a [u8],
    /// The path as it came, without query; empty (absolute form without path) and `*` count as `/`.
    pub path: &'a [u8],
    /// The query without `?`; `None` if there was no `?`.
    pub query: Option<&'a [u8]>,
    /// The client's address; `None` on a Unix socket.
    pub client: Option<IpAddr>,
    /// `http` or `https`: how the client came to us.
    pub scheme: &'static str,
}

impl<'a> Asked<'a> {
    /// The host without port and final dot.
    pub fn host_name(&self) -> &'a [u8] {
        host_name(self.host)
    }

    /// The path, `/` where the target has none (RFC 9112 §3.2.1) or is `*`.
    pub fn path(&self) -> &'a [u8] {
        if self.path.first() == Some(&b'/') {
            self.path
        } else {
            b"/"
        }
    }
}

/// The host of an authority: without its port, and without the final dot, which to a resolver names the same host. Case is
/// left as it came. An IPv6 address keeps its brackets.
pub fn host_name(authority: &[u8]) -> &[u8] {
    let end = match authority.first() {
        Some(b'[') => authority
            .iter()
            .position(|byte| *byte == b']')
            .map_or(authority.len(), |at| at + 1),
        _ => authority
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(authority.len()),
    };
    let name = &authority[..end];
    name.strip_suffix(b".").unwrap_or(name)
}
