//! The header lines of ours in a request that is forwarded: `Via`, `X-Forwarded-*`, then the edits.
//!
//! Lines of the client that do not go on beside them are marked in its head; ours are appended to a buffer of the worker,
//! ready to be written behind the client's.

use super::asked::Asked;
use super::edit::Edits;
use super::settings::{Forwarded, ListenerSettings, VIA_MINOR};
use crate::http1::{RequestHead, Version};

/// Makes the lines anew. Edits apply in the order listener, route, backend; `route` is the place of the rule that matched.
pub fn prepare(
    listener: &ListenerSettings,
    route: Option<u16>,
    of_backend: &Edits,
    asked: &Asked<'_>,
    head: &mut RequestHead,
    bytes: &[u8],
    lines: &mut Vec<u8>,
) {
    lines.clear();
    if !listener.via.is_empty() {
        lines.extend_from_slice(&listener.via);
        if head.version == Version::Http10 {
            lines[VIA_MINOR] = b'0';
        }
    }
    if listener.forwarded != Forwarded::Off {
        if listener.forwarded == Forwarded::Replace {
            head.drop_named(bytes, b"X-Forwarded-For");
        }
        head.drop_named(bytes, b"X-Forwarded-Proto");
        head.drop_named(bytes, b"X-Forwarded-Host");
        add_forwarded(asked, lines);
    }
    let of_route = route.map(|at| &listener.routes.routes[usize::from(at)].request_edits);
    let all = [Some(&listener.request_edits), of_route, Some(of_backend)];
    for edits in all.into_iter().flatten().filter(|edits| !edits.is_empty()) {
        edits.apply(asked, |name| head.drop_named(bytes, name), lines);
    }
}

fn add_forwarded(asked: &Asked<'_>, lines: &mut Vec<u8>) {
    if asked.client.is_some() {
        lines.extend_from_slice(b"X-Forwarded-For: ");
        asked.write_client(lines);
        lines.extend_from_slice(b"\r\n");
    }
    lines.extend_from_slice(b"X-Forwarded-Proto: ");
    lines.extend_from_slice(asked.scheme.as_bytes());
    lines.extend_from_slice(b"\r\n");
    if !asked.host.is_empty() {
        lines.extend_from_slice(b"X-Forwarded-Host: ");
        lines.extend_from_slice(asked.host);
        lines.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{self, Limits, Parsed};

    const LIMITS: Limits = Limits {
        head_max: 4096,
        request_line_max: 1024,
        headers_max: 16,
    };

    fn settings(forwarded: Forwarded) -> ListenerSettings {
        ListenerSettings {
            http_request: 0,
            inactivity: 0,
            http_keep_alive: 0,
            tunnel: 0,
            limits: LIMITS,
            session_private_max: 5,
            named: Default::default(),
            routes: Default::default(),
            request_edits: Edits::default(),
            response_edits: Edits::default(),
            forwarded,
            via: Box::from(&b"Via: 1.1 us\r\n"[..]),
        }
    }

    /// Our lines, and the fields of the client that go on beside `Host`.
    fn prepared(forwarded: Forwarded, version: &str, client: Option<&str>) -> (String, Vec<String>) {
        let text = format!(
            "GET / HTTP/1.{version}\r\nHost: a:80\r\nX-Forwarded-For: 9.9.9.9\r\n\
             x-forwarded-proto: https\r\nX-Forwarded-Host: b\r\nVia: 1.0 them\r\n\r\n"
        );
        let bytes = text.as_bytes();
        let mut head = RequestHead::default();
        assert_eq!(
            http1::parse_request(bytes, &LIMITS, &mut head),
            Ok(Parsed::Complete)
        );
        let asked = Asked {
            method: b"GET",
            host: head.authority(bytes),
            path: b"/",
            query: None,
            client: client.map(|text| text.parse().unwrap()),
            scheme: "http",
        };
        let mut lines = b"left over".to_vec();
        prepare(
            &settings(forwarded),
            None,
            &Edits::default(),
            &asked,
            &mut head,
            bytes,
            &mut lines,
        );
        let kept = head.fields.iter().skip(1).filter(|field| field.keep);
        let kept = kept.map(|field| String::from_utf8_lossy(field.name.of(bytes)).into_owned());
        (String::from_utf8(lines).unwrap(), kept.collect())
    }

    #[test]
    fn the_chain_is_continued_or_begun_anew() {
        let ours = "Via: 1.1 us\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\n";
        let (lines, kept) = prepared(Forwarded::Append, "1", Some("::ffff:192.0.2.7"));
        assert_eq!(
            (lines.as_str(), kept),
            (ours, vec!["X-Forwarded-For".into(), "Via".into()])
        );
        let (lines, kept) = prepared(Forwarded::Replace, "1", Some("192.0.2.7"));
        assert_eq!((lines.as_str(), kept), (ours, vec!["Via".into()]));
        let (lines, kept) = prepared(Forwarded::Off, "0", Some("192.0.2.7"));
        assert_eq!(
            (lines.as_str(), kept.len()),
            ("Via: 1.0 us\r\n", 4),
            "and nothing of the client's goes"
        );
    }

    #[test]
    fn a_client_without_an_address_is_not_named() {
        let (lines, _) = prepared(Forwarded::Replace, "1", None);
        assert_eq!(
            lines,
            "Via: 1.1 us\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: a:80\r\n"
        );
    }
}
