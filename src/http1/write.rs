//! Heads as they go out, made from the spans that are kept, plus ours.
//!
//! Whatever was parsed, what is written is HTTP/1.1, has one `Host` and one framing, and says about the connection what
//! holds for the next hop. Our own lines come last, after all that the peer named for removal is gone.

use super::fields::{Name, write_fields, write_line};
use super::{ClientConnection, Framing, HostLine, RequestHead, ResponseHead, Span, TargetForm, Version};

/// Appends the request's head as it goes to a server. `bytes` is what `head` was parsed from; `additions` are ready lines,
/// each `name: value CRLF`.
pub fn write_request(bytes: &[u8], head: &RequestHead, additions: &[u8], out: &mut Vec<u8>) {
    out.reserve(head.length + additions.len() + OWN_LINES);
    if head.line.is_empty() {
        write_request_line(bytes, head, out);
    }
    write_fields(bytes, head.line, &head.fields, out, |field| field.keep);
    write_host(bytes, head, additions, out);
    if !head.framing_line {
        write_framing(head.framing, out);
    }
    let hop: &[u8] = match (head.upgrade, head.trailers) {
        (false, false) => b"",
        (true, false) => b"Connection: Upgrade\r\n",
        (false, true) => b"Connection: TE\r\nTE: trailers\r\n",
        (true, true) => b"Connection: Upgrade, TE\r\nTE: trailers\r\n",
    };
    out.extend_from_slice(hop);
    if let Some(left) = head.max_forwards {
        out.extend_from_slice(b"Max-Forwards: ");
        push_decimal(u64::from(left.saturating_sub(1)), out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(additions);
    out.extend_from_slice(b"\r\n");
}

/// Appends the response's head as it goes to the client. What becomes of the connection is
/// [`ResponseHead::connection_for`] of `connection`; the caller acts on the same answer.
///
/// For an HTTP/1.0 client a chunked body must be decoded ([`super::Body::decoding`]): it is ended by the close.
pub fn write_response(
    bytes: &[u8],
    head: &ResponseHead,
    connection: ClientConnection,
    client: Version,
    additions: &[u8],
    out: &mut Vec<u8>,
) {
    out.reserve(head.length + additions.len() + OWN_LINES);
    if head.line.is_empty() {
        write_status_line(bytes, head, out);
    }
    let chunks = client == Version::Http11;
    write_fields(bytes, head.line, &head.fields, out, |field| {
        field.keep && (chunks || !matches!(field.known, Name::TransferEncoding | Name::Trailer))
    });
    if !head.framing_line && (chunks || head.framing != Framing::Chunked) {
        write_framing(head.framing, out);
    }
    out.extend_from_slice(connection_line(head, connection, client));
    out.extend_from_slice(additions);
    out.extend_from_slice(b"\r\n");
}

/// Room for the lines that we may add of ourselves, in bytes.
const OWN_LINES: usize = 160;

fn write_request_line(bytes: &[u8], head: &RequestHead, out: &mut Vec<u8>) {
    out.extend_from_slice(head.method_name(bytes));
    out.push(b' ');
    match head.form {
        TargetForm::Absolute => {
            out.extend_from_slice(head.path(bytes));
            out.extend_from_slice(
                Span {
                    start: head.path.end,
                    end: head.target.end,
                }
                .of(bytes),
            );
        }
        TargetForm::Origin | TargetForm::Asterisk => out.extend_from_slice(head.target.of(bytes)),
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// A request without `Host` would be malformed, and one without authority says so by an empty one (RFC 9112 §3.2).
fn write_host(bytes: &[u8], head: &RequestHead, additions: &[u8], out: &mut Vec<u8>) {
    match head.host_line {
        HostLine::Field => {}
        HostLine::Authority => write_line(b"Host", head.authority.of(bytes), out),
        HostLine::Absent | HostLine::Edited if names_host(additions) => {}
        HostLine::Absent | HostLine::Edited => write_line(b"Host", b"", out),
    }
}

fn names_host(additions: &[u8]) -> bool {
    let is_host = |line: &[u8]| {
        line.get(..5)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"host:"))
    };
    additions.split_inclusive(|&byte| byte == b'\n').any(is_host)
}

fn write_status_line(bytes: &[u8], head: &ResponseHead, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(u64::from(head.status), out);
    out.push(b' ');
    out.extend_from_slice(head.phrase.of(bytes));
    out.extend_from_slice(b"\r\n");
}

fn write_framing(framing: Framing, out: &mut Vec<u8>) {
    match framing {
        Framing::None | Framing::UntilClose => {}
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            push_decimal(length, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// The `Connection` line that belongs to our hop, if any (RFC 9112 §9.3, §9.6). Interim responses say nothing.
fn connection_line(head: &ResponseHead, wish: ClientConnection, client: Version) -> &'static [u8] {
    let connection = head.connection_for(client, wish);
    match connection {
        _ if head.switching => b"Connection: Upgrade\r\n",
        _ if head.is_interim() => b"",
        ClientConnection::Close if head.upgrade_line => b"Connection: Upgrade, close\r\n",
        ClientConnection::KeepAlive if head.upgrade_line => b"Connection: Upgrade\r\n",
        _ => plain_connection_line(connection, client),
    }
}

/// Close is always said, to keep only to a client that would not assume it.
pub(super) fn plain_connection_line(connection: ClientConnection, client: Version) -> &'static [u8] {
    match (connection, client) {
        (ClientConnection::Close, _) => b"Connection: close\r\n",
        (ClientConnection::KeepAlive, Version::Http10) => b"Connection: keep-alive\r\n",
        (ClientConnection::KeepAlive, Version::Http11) => b"",
    }
}

/// Appends a number in decimal digits.
pub(super) fn push_decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests;
