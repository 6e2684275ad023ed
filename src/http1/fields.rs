//! Header fields as spans: which one it is, whether it goes on, and whether its line may go on as it came.

use super::Span;
use super::options::{members, same};

/// The fields that this program acts on; every other one is [`Name::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `Host`.
    Host,
    /// `Connection`: never goes on (RFC 9110 §7.6.1).
    Connection,
    /// `Content-Length`.
    ContentLength,
    /// `Transfer-Encoding`.
    TransferEncoding,
    /// `Expect`.
    Expect,
    /// `Upgrade`: goes on only where an upgrade is under way.
    Upgrade,
    /// `TE`: never goes on; `TE: trailers` of our own may.
    Te,
    /// `Trailer`.
    Trailer,
    /// `Keep-Alive`: never goes on.
    KeepAlive,
    /// `Proxy-Connection`: never goes on (RFC 9112 §C.2.2).
    ProxyConnection,
    /// `Max-Forwards`.
    MaxForwards,
    /// `Via`.
    Via,
    /// `Date`.
    Date,
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `X-Forwarded-Host`.
    XForwardedHost,
    /// `X-Forwarded-Proto`.
    XForwardedProto,
    /// `Content_Length` or `Transfer_Encoding`, which a CGI-like server cannot tell from the real ones.
    LookAlike,
    /// Any other field.
    Other,
}

impl Name {
    /// Classifies a field name, which is a token, by its length and first byte, then by the rest: most names are none of
    /// these, and two comparisons say so.
    pub fn of(name: &[u8]) -> Name {
        let Some(first) = name.first() else {
            return Name::Other;
        };
        match (name.len(), first | 0x20) {
            (2, b't') if same(name, b"te") => Name::Te,
            (3, b'v') if same(name, b"via") => Name::Via,
            (4, b'h') if same(name, b"host") => Name::Host,
            (4, b'd') if same(name, b"date") => Name::Date,
            (6, b'e') if same(name, b"expect") => Name::Expect,
            (7, b'u') if same(name, b"upgrade") => Name::Upgrade,
            (7, b't') if same(name, b"trailer") => Name::Trailer,
            (10, b'c') if same(name, b"connection") => Name::Connection,
            (10, b'k') if same(name, b"keep-alive") => Name::KeepAlive,
            (12, b'm') if same(name, b"max-forwards") => Name::MaxForwards,
            (14, b'c') if same(name, b"content-length") => Name::ContentLength,
            (14, b'c') if name.eq_ignore_ascii_case(b"content_length") => Name::LookAlike,
            (15, b'x') if same(name, b"x-forwarded-for") => Name::XForwardedFor,
            (16, b'p') if same(name, b"proxy-connection") => Name::ProxyConnection,
            (16, b'x') if same(name, b"x-forwarded-host") => Name::XForwardedHost,
            (17, b't') if same(name, b"transfer-encoding") => Name::TransferEncoding,
            (17, b't') if name.eq_ignore_ascii_case(b"transfer_encoding") => Name::LookAlike,
            (17, b'x') if same(name, b"x-forwarded-proto") => Name::XForwardedProto,
            _ => Name::Other,
        }
    }

    /// Whether neither `Connection` nor an edit may take the field away: without it the message would mean another one.
    fn is_framing(self) -> bool {
        matches!(self, Name::ContentLength | Name::TransferEncoding)
    }
}

/// One header field of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name as it came: a token (RFC 9110 §5.1).
    pub name: Span,
    /// The value without white space around it: no control character but HTAB.
    pub value: Span,
    /// The whole line with its line end. Lines of a head adjoin.
    pub line: Span,
    /// Which field it is.
    pub known: Name,
    /// Whether it goes on.
    pub keep: bool,
    /// Whether the line is exactly `name ":" SP value CRLF`, so that it may go on as it came.
    pub canonical: bool,
}

/// The values of all kept fields of this name, in order.
pub(super) fn values<'a>(
    bytes: &'a [u8],
    fields: &'a [Field],
    name: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> + 'a {
    named(bytes, fields, name).map(|field| field.value.of(bytes))
}

fn named<'a>(bytes: &'a [u8], fields: &'a [Field], name: &'a [u8]) -> impl Iterator<Item = &'a Field> + 'a {
    fields
        .iter()
        .filter(move |field| field.keep && field.name.of(bytes).eq_ignore_ascii_case(name))
}

/// Marks the fields of this name as not kept; whether there was any. Framing fields stay (see [`Name`]).
pub(super) fn drop_named(bytes: &[u8], fields: &mut [Field], name: &[u8]) -> bool {
    let mut dropped = false;
    for field in fields
        .iter_mut()
        .filter(|field| field.keep && !field.known.is_framing())
    {
        if field.name.of(bytes).eq_ignore_ascii_case(name) {
            field.keep = false;
            dropped = true;
        }
    }
    dropped
}

/// Marks every field of this kind as kept or not.
pub(super) fn mark(fields: &mut [Field], known: Name, keep: bool) {
    fields
        .iter_mut()
        .filter(|field| field.known == known)
        .for_each(|field| field.keep = keep);
}

/// Removes the fields that `Connection` names (RFC 9110 §7.6.1). Fields that every recipient needs stay, whatever a client
/// writes there: the framing, `Host`, and `Expect`, which we act on.
pub(super) fn drop_options(bytes: &[u8], fields: &mut [Field]) {
    for at in 0..fields.len() {
        if fields[at].known == Name::Connection {
            members(fields[at].value.of(bytes)).for_each(|option| drop_option(bytes, fields, option));
        }
    }
}

fn drop_option(bytes: &[u8], fields: &mut [Field], option: &[u8]) {
    if !matches!(Name::of(option), Name::Host | Name::Expect) {
        drop_named(bytes, fields, option);
    }
}

/// Appends `first`, which goes on as it came, then the fields that go: adjoining canonical lines as one range, together
/// with `first` if they adjoin it; others serialised afresh.
pub(super) fn write_fields(
    bytes: &[u8],
    first: Span,
    fields: &[Field],
    out: &mut Vec<u8>,
    goes: impl Fn(&Field) -> bool,
) {
    let mut run = first;
    for field in fields {
        if field.canonical && goes(field) {
            if field.line.start != run.end {
                out.extend_from_slice(run.of(bytes));
                run.start = field.line.start;
            }
            run.end = field.line.end;
        } else if goes(field) {
            out.extend_from_slice(run.of(bytes));
            run = Span {
                start: field.line.end,
                end: field.line.end,
            };
            write_line(field.name.of(bytes), field.value.of(bytes), out);
        }
    }
    out.extend_from_slice(run.of(bytes));
}

/// Appends `name: value CRLF`.
pub(super) fn write_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::Name;

    #[test]
    fn names_are_known_in_any_letter_case() {
        let names: [(&str, Name); 18] = [
            ("host", Name::Host),
            ("connection", Name::Connection),
            ("content-length", Name::ContentLength),
            ("transfer-encoding", Name::TransferEncoding),
            ("expect", Name::Expect),
            ("upgrade", Name::Upgrade),
            ("te", Name::Te),
            ("trailer", Name::Trailer),
            ("keep-alive", Name::KeepAlive),
            ("proxy-connection", Name::ProxyConnection),
            ("max-forwards", Name::MaxForwards),
            ("via", Name::Via),
            ("date", Name::Date),
            ("x-forwarded-for", Name::XForwardedFor),
            ("x-forwarded-host", Name::XForwardedHost),
            ("x-forwarded-proto", Name::XForwardedProto),
            ("content_length", Name::LookAlike),
            ("transfer_encoding", Name::LookAlike),
        ];
        for (name, known) in names {
            assert_eq!(Name::of(name.as_bytes()), known, "{name}");
            assert_eq!(Name::of(name.to_ascii_uppercase().as_bytes()), known, "{name}");
        }
    }

    #[test]
    fn near_names_are_other_names() {
        for name in [
            "hosts",
            "content-lengt",
            "contentXlength",
            "xtransfer-encoding",
            "keep_alive",
            "",
            "user-agent",
        ] {
            assert_eq!(Name::of(name.as_bytes()), Name::Other, "{name}");
        }
    }
}
