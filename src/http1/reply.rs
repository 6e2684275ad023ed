//! Responses of our own: refusals, errors, fixed answers. Complete messages, appended to the output in one piece.

use super::write::{plain_connection_line, push_decimal};
use super::{ClientConnection, Version};

/// The interim response that tells a client to send its body (RFC 9110 §15.2.1).
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Appends a complete response to a client of `client` version.
///
/// `extra` is ready lines, each `name: value CRLF`. `body` is its content type and its bytes; without one, a line of
/// `text/plain` names the status. A HEAD request gets the head only, and so do 1xx, 204 and 304 (RFC 9112 §6.3).
pub fn write_reply(
    out: &mut Vec<u8>,
    status: u16,
    client: Version,
    connection: ClientConnection,
    head_request: bool,
    extra: &[u8],
    body: Option<(&[u8], &[u8])>,
) {
    let (phrase, has_content) = (
        reason_phrase(status),
        status >= 200 && status != 204 && status != 304,
    );
    write_status_line(out, status, phrase);
    let default_length = "200 ".len() + phrase.len() + "\n".len();
    let (content_type, length) = body.map_or((b"text/plain".as_slice(), default_length), |(kind, text)| {
        (kind, text.len())
    });
    if has_content {
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(length as u64, out);
        if length > 0 {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(content_type);
        }
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(plain_connection_line(connection, client));
    out.extend_from_slice(extra);
    out.extend_from_slice(b"\r\n");
    if has_content && !head_request {
        match body {
            Some((_, text)) => out.extend_from_slice(text),
            None => write_default_body(out, status, phrase),
        }
    }
}

fn write_status_line(out: &mut Vec<u8>, status: u16, phrase: &str) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(phrase.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn write_default_body(out: &mut Vec<u8>, status: u16, phrase: &str) {
    push_decimal(u64::from(status), out);
    out.push(b' ');
    out.extend_from_slice(phrase.as_bytes());
    out.push(b'\n');
}

/// The registered reason phrase of a status; for others, `Unassigned`.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        _ => "Unassigned",
    }
}

#[cfg(test)]
mod tests {
    use super::write_reply;
    use crate::http1::{BadResponse, BodyError, ClientConnection, Refusal, Version, reason_phrase};

    fn reply(
        status: u16,
        client: Version,
        connection: ClientConnection,
        head: bool,
        body: Option<(&[u8], &[u8])>,
    ) -> String {
        let mut out = Vec::new();
        write_reply(&mut out, status, client, connection, head, b"X-A: 1\r\n", body);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replies_are_complete_messages() {
        use ClientConnection::{Close, KeepAlive};
        use Version::{Http10, Http11};
        let plain = reply(400, Http11, Close, false, None);
        assert_eq!(
            plain,
            "HTTP/1.1 400 Bad Request\r\nContent-Length: 16\r\nContent-Type: text/plain\r\nConnection: close\r\nX-A: 1\r\n\r\n\
             400 Bad Request\n"
        );
        let head = reply(200, Http10, KeepAlive, true, Some((b"text/html", b"<p>")));
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/html\r\nConnection: keep-alive\r\nX-A: 1\r\n\r\n"
        );
        assert_eq!(
            reply(204, Http11, KeepAlive, false, None),
            "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n"
        );
        let empty = reply(302, Http11, KeepAlive, false, Some((b"", b"")));
        assert_eq!(empty, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nX-A: 1\r\n\r\n");
    }

    #[test]
    fn every_status_that_we_answer_has_a_phrase() {
        let refused = Refusal::ALL.iter().map(|cause| cause.status());
        let bad = BadResponse::ALL.iter().map(|cause| cause.status());
        let bodies = BodyError::ALL.iter().map(|cause| cause.status());
        for status in refused.chain(bad).chain(bodies).chain([408, 413, 503, 504]) {
            assert_ne!(reason_phrase(status), "Unassigned", "{status}");
        }
    }
}
