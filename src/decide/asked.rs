//! What rules and templates see of a request: a view that borrows from its head.

use std::io::Write;
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

    /// Appends the client's address, if it has one, in its own family. An IPv4 address is written by hand: through
    /// `fmt` it was a seventh of all instructions of a small request.
    pub fn write_client(&self, out: &mut Vec<u8>) {
        match self.client.map(|client| client.to_canonical()) {
            Some(IpAddr::V4(address)) => write_octets(address.octets(), out),
            Some(IpAddr::V6(address)) => write!(out, "{address}").expect("a Vec takes everything"),
            None => {}
        }
    }
}

fn write_octets(octets: [u8; 4], out: &mut Vec<u8>) {
    let mut text = *b"...............";
    let mut at = 0;
    for (place, octet) in octets.into_iter().enumerate() {
        at += usize::from(place > 0); // the dot is there already
        if octet >= 100 {
            text[at] = b'0' + octet / 100;
            at += 1;
        }
        if octet >= 10 {
            text[at] = b'0' + octet / 10 % 10;
            at += 1;
        }
        text[at] = b'0' + octet % 10;
        at += 1;
    }
    out.extend_from_slice(&text[..at]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_fmt_writes_them() {
        let texts = [
            "0.0.0.0",
            "1.10.100.255",
            "255.255.255.255",
            "9.99.199.200",
            "::1",
            "2001:db8::7",
        ];
        for text in texts {
            let mut out = Vec::new();
            let asked = Asked {
                method: b"GET",
                host: b"",
                path: b"/",
                query: None,
                client: Some(text.parse().unwrap()),
                scheme: "http",
            };
            asked.write_client(&mut out);
            assert_eq!(out, text.as_bytes());
        }
    }
}
