//! The request target: its form, its authority, its path (RFC 9112 §3.2).
//!
//! The path goes on byte for byte; nothing is decoded, joined or normalised here (RFC 9110 §7.7).

use super::authority::is_authority;
use super::{Method, Refusal, Span};

/// How the target of a request was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// `/path?query`.
    #[default]
    Origin,
    /// `http://authority/path?query`; goes on as origin form, its authority as `Host`.
    Absolute,
    /// `*`, with OPTIONS only.
    Asterisk,
}

/// The parts of a target. A query, if any, lies behind the path's end and a question mark.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Target {
    pub(super) form: TargetForm,
    /// Empty unless the form is absolute.
    pub(super) authority: Span,
    /// May be empty when the form is absolute.
    pub(super) path: Span,
}

/// Takes the target at `span` of `bytes` apart.
pub(super) fn read_target(bytes: &[u8], span: Span, method: Method) -> Result<Target, Refusal> {
    let text = span.of(bytes);
    match text {
        [b'/', ..] => {
            let path = path_within(bytes, span)?;
            Ok(Target {
                form: TargetForm::Origin,
                authority: Span::default(),
                path,
            })
        }
        b"*" if method == Method::Options => Ok(Target {
            form: TargetForm::Asterisk,
            authority: Span::default(),
            path: span,
        }),
        _ => absolute(bytes, span),
    }
}

/// `scheme "://" authority path-abempty ["?" query]`. User information is an error: nobody sends it in good faith
/// (RFC 9110 §4.2.4).
fn absolute(bytes: &[u8], span: Span) -> Result<Target, Refusal> {
    let text = span.of(bytes);
    let scheme = [b"http://".as_slice(), b"https://"]
        .into_iter()
        .find(|scheme| starts_with(text, scheme));
    let start = scheme.ok_or(Refusal::MalformedTarget)?.len();
    let end = text[start..]
        .iter()
        .position(|byte| b"/?#".contains(byte))
        .map_or(text.len(), |at| start + at);
    if !is_authority(&text[start..end]) {
        return Err(Refusal::MalformedTarget);
    }
    let authority = Span {
        start: span.start + start as u32,
        end: span.start + end as u32,
    };
    let path = path_within(
        bytes,
        Span {
            start: authority.end,
            end: span.end,
        },
    )?;
    Ok(Target {
        form: TargetForm::Absolute,
        authority,
        path,
    })
}

/// The path of `span`, which ends at a question mark. A fragment never belongs into a request (RFC 9112 §3.2.1).
fn path_within(bytes: &[u8], span: Span) -> Result<Span, Refusal> {
    let text = span.of(bytes);
    match memchr::memchr2(b'?', b'#', text) {
        None => Ok(span),
        Some(at) if text[at] == b'?' && memchr::memchr(b'#', &text[at..]).is_none() => Ok(Span {
            start: span.start,
            end: span.start + at as u32,
        }),
        Some(_) => Err(Refusal::MalformedTarget),
    }
}

fn starts_with(text: &[u8], lower: &[u8]) -> bool {
    text.get(..lower.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

#[cfg(test)]
mod tests {
    use super::{TargetForm, read_target};
    use crate::http1::{Method, Refusal, Span};

    fn read(target: &str, method: Method) -> Result<(TargetForm, String, String), Refusal> {
        let bytes = format!("GET {target} HTTP/1.1");
        let span = Span {
            start: 4,
            end: 4 + target.len() as u32,
        };
        let read = read_target(bytes.as_bytes(), span, method)?;
        let text = |span: Span| String::from_utf8(span.of(bytes.as_bytes()).to_vec()).unwrap();
        Ok((read.form, text(read.authority), text(read.path)))
    }

    #[test]
    fn forms() {
        let cases = [
            ("/", TargetForm::Origin, "", "/"),
            ("/a?b?c", TargetForm::Origin, "", "/a"),
            ("//other.test/x", TargetForm::Origin, "", "//other.test/x"),
            ("http://app.test/a?q", TargetForm::Absolute, "app.test", "/a"),
            ("HTTPS://app.test:1?q", TargetForm::Absolute, "app.test:1", ""),
            ("http://app.test", TargetForm::Absolute, "app.test", ""),
        ];
        for (target, form, authority, path) in cases {
            assert_eq!(
                read(target, Method::Get),
                Ok((form, authority.to_owned(), path.to_owned())),
                "{target}"
            );
        }
        assert_eq!(
            read("*", Method::Options),
            Ok((TargetForm::Asterisk, String::new(), "*".to_owned()))
        );
    }

    #[test]
    fn refused() {
        for target in [
            "*",
            "x",
            "rl/noslash",
            "/a#b",
            "/a?b#c",
            "http:///a",
            "http://u@app.test/",
            "http://u:p@app.test/",
            "ftp://a/",
            "http://app.test#x",
            "http://a b/",
            "?q",
            "**",
            "http:/a",
        ] {
            assert_eq!(
                read(target, Method::Get),
                Err(Refusal::MalformedTarget),
                "{target}"
            );
        }
    }
}
