//! Names with values inside one field or component: cookies, query parameters. Slices in, slices out; as sent, nothing
//! is decoded.

/// The value of the first cookie of that name in a `Cookie` field (RFC 6265 §4.2).
pub fn cookie<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    line.split(|byte| *byte == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let at = memchr::memchr(b'=', pair)?;
        (&pair[..at] == name.as_bytes()).then(|| &pair[at + 1..])
    })
}

/// The first value of a query parameter; empty where it stands without `=`.
pub fn parameter<'a>(query: &'a [u8], name: &str) -> Option<&'a [u8]> {
    query
        .split(|byte| *byte == b'&')
        .find_map(|pair| match memchr::memchr(b'=', pair) {
            Some(at) => (&pair[..at] == name.as_bytes()).then(|| &pair[at + 1..]),
            None => (pair == name.as_bytes()).then_some(&pair[pair.len()..]),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_name() {
        let of = |name| cookie(b"a=1;b=2; sid=s=3 ;a=4", name);
        assert_eq!(
            [of("a"), of("sid"), of("c")],
            [Some(&b"1"[..]), Some(b"s=3"), None]
        );
        let of = |name| parameter(b"x=1&user=me&x=2&on", name);
        assert_eq!(
            [of("x"), of("user"), of("on"), of("use")],
            [Some(&b"1"[..]), Some(b"me"), Some(b""), None]
        );
    }
}
