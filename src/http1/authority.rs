//! `host [":" port]` as `Host` and absolute targets carry it (RFC 9110 §4.2, §7.2; RFC 3986 §3.2.2).
//!
//! Stricter than the grammar in two points: a comma is refused, because it is what two joined `Host` lines look like, and
//! of bracketed literals only IPv6 addresses are known.

use std::net::Ipv6Addr;

/// Whether `text` is a host, not empty, with an optional port.
pub(super) fn is_authority(text: &[u8]) -> bool {
    if text.first() == Some(&b'[') {
        return is_literal(text);
    }
    let host = text
        .iter()
        .position(|&byte| !HOST[usize::from(byte)])
        .unwrap_or(text.len());
    host > 0 && is_port(&text[host..])
}

fn is_literal(text: &[u8]) -> bool {
    let Some(close) = text.iter().position(|&byte| byte == b']') else {
        return false;
    };
    let address = std::str::from_utf8(&text[1..close]);
    address.is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok()) && is_port(&text[close + 1..])
}

/// Nothing, or a colon and at most five digits; RFC 3986 allows none.
fn is_port(text: &[u8]) -> bool {
    match text {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Bytes of a registered name or an IPv4 address: unreserved, sub-delims without the comma, `%`.
const HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~!$&'()*+;=%";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::is_authority;

    #[test]
    fn hosts() {
        let good = [
            "app.test",
            "APP.test:8443",
            "127.0.0.1:80",
            "[2001:db8::1]:80",
            "[::1]",
            "a_b",
            "a:",
            "%C3%A9.test",
        ];
        let bad = [
            "",
            ":80",
            "app test",
            "app.test/x",
            "user@app.test",
            "a, b",
            "a,b",
            "app.test:http",
            "app.test?x",
            "app.test\0",
            "[::1",
            "[::1]x",
            "[fe80::1%25eth0]",
            "app.test#a",
            "a:1:2",
            "a:123456",
            "\u{e9}.test",
            "[]",
            "a]",
        ];
        good.iter()
            .for_each(|host| assert!(is_authority(host.as_bytes()), "{host}"));
        bad.iter()
            .for_each(|host| assert!(!is_authority(host.as_bytes()), "{host}"));
    }
}
