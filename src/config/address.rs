//! Addresses as written in the file, and what was probably meant where they are none.
//!
//! `192.0.2.1:80`, `[2001:db8::1]:80`, `*:80` (every local address, both families), `name:80` and `unix:/path`. A name is
//! only checked for its form here; [`super::resolve`] looks it up.

use super::defaults::UNIX_PATH_MAX;
use super::errors::Report;
use super::read::Text;
use super::resolve::Answers;
use super::syntax;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A place as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// An address of its own.
    Socket(SocketAddr),
    /// Every local address with this port.
    Any(u16),
    /// A host name and a port.
    Name(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Why a text is no address, and what was probably meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoAddress {
    /// What is wrong with it.
    pub(super) why: String,
    /// How it should have been written, if that can be told.
    pub(super) meant: Option<String>,
}

/// Reads the address that is the value of `key`, or reports why it is none.
pub(super) fn read(key: &str, text: &Text<'_>, report: &mut Report) -> Option<Place> {
    let wrong = match place(text.text) {
        Ok(place) => return Some(place),
        Err(wrong) => wrong,
    };
    let found = format!("`{key}`: \"{}\" {}", text.text.escape_debug(), wrong.why);
    let help = wrong
        .meant
        .map_or(String::new(), |meant| format!("did you mean \"{meant}\"?"));
    report.wrong(
        text.at.clone(),
        found,
        "expected HOST:PORT, [IPv6]:PORT or unix:PATH",
        help,
    );
    None
}

/// The address of a host name, or a report that it has none.
pub(super) fn resolved(
    text: &Text<'_>,
    name: &str,
    port: u16,
    answers: &Answers,
    report: &mut Report,
) -> Option<SocketAddr> {
    let address = answers.get(name, port);
    if let Err(why) = &address {
        let found = format!("the host name `{name}` cannot be looked up: {why}");
        report.wrong(
            text.at.clone(),
            found,
            "expected a name with an address",
            "check the spelling, or write the IP address",
        );
    }
    address.ok()
}

/// Every host name that stands where an address does.
pub(super) fn names(tree: &Spanned<DeTable<'_>>) -> Vec<String> {
    let mut names = Vec::new();
    syntax::visit(tree.get_ref(), &mut |key, value| {
        if !["address", "bind", "metrics", "servers"].contains(&key.get_ref().as_ref()) {
            return;
        }
        let mut note = |value: &DeValue<'_>| {
            if let Some(Ok(Place::Name(name, _))) = value.as_str().map(place) {
                names.push(name);
            }
        };
        note(value.get_ref());
        value
            .get_ref()
            .as_array()
            .into_iter()
            .flat_map(|list| list.iter())
            .for_each(|item| note(item.get_ref()));
    });
    names
}

/// Reads one address.
pub(super) fn place(text: &str) -> Result<Place, NoAddress> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix_path(path).map(Place::Unix);
    }
    if text.starts_with('/') || text.starts_with("./") {
        return no("is a path", Some(format!("unix:{text}")));
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let meant = rest.trim_end_matches('/').to_owned();
        return no(
            format!("begins with a scheme, `{scheme}://`"),
            Some(meant).filter(|meant| place(meant).is_ok()),
        );
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Place::Socket(address));
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<Ipv6Addr>() {
        return no("has no port", Some(without_brackets(text, address)));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return without_port(text);
    };
    if let Some((port, _)) = port.split_once('/') {
        return no(
            "has a path after its port",
            Some(format!("{host}:{port}")).filter(|meant| place(meant).is_ok()),
        );
    }
    let port = match port.parse::<u16>() {
        Ok(number) if port.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ if port.is_empty() => return no("has no port after its `:`", None),
        _ => {
            return no(
                format!("has port `{port}`, which is not a number from 0 to 65535"),
                None,
            );
        }
    };
    match host {
        "*" => Ok(Place::Any(port)),
        "" => no("has no host before its `:`", Some(format!("*:{port}"))),
        _ => host_name(host).map(|name| Place::Name(name, port)),
    }
}

/// Reads the path of a Unix socket.
pub(super) fn unix_path(path: &str) -> Result<PathBuf, NoAddress> {
    match path {
        "" => no("has no path", None),
        _ if path.contains('\0') => no("holds a zero byte", None),
        _ if path.len() > UNIX_PATH_MAX => no(
            format!(
                "has {} bytes; a Unix socket's path has at most {UNIX_PATH_MAX}",
                path.len()
            ),
            None,
        ),
        _ => Ok(PathBuf::from(path)),
    }
}

/// The two addresses that stand for every local one.
pub(super) fn any(port: u16) -> [SocketAddr; 2] {
    [
        (Ipv4Addr::UNSPECIFIED, port).into(),
        (Ipv6Addr::UNSPECIFIED, port).into(),
    ]
}

/// `::1:80` reads as an address, but hardly anybody means it so.
fn without_brackets(text: &str, address: Ipv6Addr) -> String {
    let parted = text
        .rsplit_once(':')
        .and_then(|(host, port)| Some(SocketAddrV6::new(host.parse().ok()?, port.parse().ok()?, 0, 0)));
    parted
        .unwrap_or(SocketAddrV6::new(address, 8080, 0, 0))
        .to_string()
}

fn without_port(text: &str) -> Result<Place, NoAddress> {
    if text.is_empty() {
        return no("is empty", None);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return no(
            "is a port without a host",
            text.parse::<u16>().ok().map(|port| format!("*:{port}")),
        );
    }
    let host = host_name(text).is_ok() || text.parse::<Ipv4Addr>().is_ok();
    no("has no port", host.then(|| format!("{text}:8080")))
}

/// A host name as DNS has it: labels of letters, digits, `-` and `_`. Only digits and dots is an address gone wrong.
fn host_name(host: &str) -> Result<String, NoAddress> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return no(format!("has `{host}`, which is no IPv4 address"), None);
    }
    if host.len() > 253 || !host.trim_end_matches('.').split('.').all(label) {
        return no(
            format!("has `{host}`, which is neither an IP address nor a host name"),
            None,
        );
    }
    Ok(host.to_owned())
}

fn no<T>(why: impl Into<String>, meant: Option<String>) -> Result<T, NoAddress> {
    Err(NoAddress {
        why: why.into(),
        meant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(
            place("127.0.0.1:80"),
            Ok(Place::Socket("127.0.0.1:80".parse().unwrap()))
        );
        assert_eq!(place("[::1]:80"), Ok(Place::Socket("[::1]:80".parse().unwrap())));
        assert_eq!(place("*:80"), Ok(Place::Any(80)));
        assert_eq!(
            place("app_1.example:80"),
            Ok(Place::Name("app_1.example".into(), 80))
        );
        assert_eq!(place("unix:/run/a.sock"), Ok(Place::Unix("/run/a.sock".into())));
    }

    #[test]
    fn what_is_meant() {
        for (text, meant) in [
            (":80", Some("*:80")),
            ("8080", Some("*:8080")),
            ("::1:80", Some("[::1]:80")),
            ("2001:db8::1", Some("[2001:db8::1]:8080")),
            ("[::1]", Some("[::1]:8080")),
            ("http://app:80/", Some("app:80")),
            ("app:80/v1", Some("app:80")),
            ("/run/a.sock", Some("unix:/run/a.sock")),
            ("10.0.0.1", Some("10.0.0.1:8080")),
            ("10.0.0.300:80", None),
            ("app:http", None),
            ("app:+80", None),
            ("a b:80", None),
            ("", None),
            ("unix:", None),
        ] {
            assert_eq!(place(text).unwrap_err().meant.as_deref(), meant, "{text}");
        }
        assert!(place(&format!("unix:/{}", "x".repeat(107))).is_err());
    }
}
