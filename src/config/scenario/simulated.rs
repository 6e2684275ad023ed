//! What a configuration may leave out in a scenario: addresses, and the names of servers that are counted.

use crate::config::errors::Report;
use crate::config::keys::Section;
use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddr};
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

/// Every host has an address that nobody has.
pub(super) fn lookup(_: &str, port: u16) -> Result<SocketAddr, String> {
    Ok((Ipv4Addr::new(192, 0, 2, 1), port).into())
}

/// Takes the sections of a scenario out of a file: what stays is a configuration.
pub(super) fn split<'a>(tree: &mut Spanned<DeTable<'a>>) -> Spanned<DeTable<'a>> {
    let at = tree.span();
    let is_config = |name: &Spanned<DeString<'a>>| Section::File.key(name.get_ref()).is_some();
    let names: Vec<_> = tree
        .get_ref()
        .keys()
        .filter(|name| !is_config(name))
        .cloned()
        .collect();
    let mut own = DeTable::new();
    for name in names {
        if let Some((name, value)) = tree.get_mut().remove_entry(&name) {
            own.insert(name, value);
        }
    }
    Spanned::new(at, own)
}

/// Writes out what a configuration may leave out: the servers' addresses, and a listener for its first backend.
pub(super) fn expand(tree: &mut Spanned<DeTable<'_>>, report: &mut Report) {
    add_listener(tree);
    for (_, backends) in tree
        .get_mut()
        .iter_mut()
        .filter(|(name, _)| *name.get_ref() == "backend")
    {
        let DeValue::Table(backends) = backends.get_mut() else {
            return;
        };
        for (_, backend) in backends.iter_mut() {
            if let DeValue::Table(backend) = backend.get_mut() {
                let mut servers = backend
                    .iter_mut()
                    .filter(|(name, _)| *name.get_ref() == "servers");
                if let Some((_, servers)) = servers.next() {
                    expand_servers(servers, report);
                }
            }
        }
    }
}

fn add_listener(tree: &mut Spanned<DeTable<'_>>) {
    let at = tree.span();
    let top = tree.get_mut();
    if top.keys().any(|name| *name.get_ref() == "listen") {
        return;
    }
    let backends = top.iter().find(|(name, _)| *name.get_ref() == "backend");
    let Some(DeValue::Table(backends)) = backends.map(|(_, value)| value.get_ref()) else {
        return;
    };
    let Some(first) = backends.keys().min_by_key(|name| name.span().start) else {
        return;
    };
    let first = first.get_ref().to_string();
    let mut listen = DeTable::new();
    put(&mut listen, "bind", "192.0.2.1:80", &at);
    put(&mut listen, "backend", &first, &at);
    let mut list = DeArray::new();
    list.push(Spanned::new(at.clone(), DeValue::Table(listen)));
    top.insert(
        Spanned::new(at.clone(), Cow::Borrowed("listen")),
        Spanned::new(at, DeValue::Array(list)),
    );
}

fn expand_servers<'a>(servers: &mut Spanned<DeValue<'a>>, report: &mut Report) {
    let at = servers.span();
    if let DeValue::String(_) = servers.get_ref() {
        let one = std::mem::replace(
            servers,
            Spanned::new(at.clone(), DeValue::Array(Default::default())),
        );
        if let DeValue::Array(list) = servers.get_mut() {
            list.push(one);
        }
    }
    let DeValue::Array(list) = servers.get_mut() else {
        return;
    };
    let before = std::mem::replace(list, DeArray::new());
    for value in before {
        let at = value.span();
        match value.get_ref() {
            DeValue::String(text) => {
                for name in names(text, &at, report) {
                    list.push(named(name, at.clone()));
                }
            }
            DeValue::Table(_) => list.push(with_address(value)),
            _ => list.push(value),
        }
    }
}

/// `s[1-5]` as five names; any other text as it is.
fn names(text: &str, at: &std::ops::Range<usize>, report: &mut Report) -> Vec<String> {
    let counted = text.split_once('[').and_then(|(head, rest)| {
        let (range, tail) = rest.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        Some((head, first.parse::<u32>().ok()?, last.parse::<u32>().ok()?, tail))
    });
    match counted {
        Some((head, first, last, tail)) if first <= last && last - first < 4095 => {
            (first..=last).map(|n| format!("{head}{n}{tail}")).collect()
        }
        None if !text.contains('[') || text.starts_with('[') => vec![text.to_owned()],
        _ => {
            let found = format!("`{}` counts no servers", text.escape_debug());
            report.wrong(
                at.clone(),
                found,
                "expected a name, or \"s[1-5]\" for five of them",
                "",
            );
            Vec::new()
        }
    }
}

fn named<'a>(name: String, at: std::ops::Range<usize>) -> Spanned<DeValue<'a>> {
    // An address is a name, too, as in a configuration.
    let has_port = name.contains(':') || name.starts_with('/');
    if has_port {
        return Spanned::new(at, DeValue::String(Cow::Owned(name)));
    }
    let mut table = DeTable::new();
    put(&mut table, "name", &name, &at);
    with_address(Spanned::new(at, DeValue::Table(table)))
}

/// A server without an address has one that nobody has.
fn with_address(mut server: Spanned<DeValue<'_>>) -> Spanned<DeValue<'_>> {
    let at = server.span();
    if let DeValue::Table(table) = server.get_mut()
        && !table.keys().any(|name| *name.get_ref() == "address")
    {
        put(table, "address", "192.0.2.1:80", &at);
    }
    server
}

fn put<'a>(table: &mut DeTable<'a>, name: &'static str, value: &str, at: &std::ops::Range<usize>) {
    table.insert(
        Spanned::new(at.clone(), Cow::Borrowed(name)),
        Spanned::new(at.clone(), DeValue::String(Cow::Owned(value.to_owned()))),
    );
}
