//! What a guest may ask of the host: the imports of the contract, by hand because they are called per request.
//!
//! None of them waits, takes a lock or calls a guest: an epoch cannot interrupt them. Each is counted, and what it copies
//! is bounded by the store's host-call fuel.

use super::contract::edits::Message as OfMessage;
use super::contract::log::Level as OfLevel;
use super::contract::servers::Figure;
use super::contract::{EDITS, LOG, REQUEST, SERVERS};
use super::guest::Guest;
use super::{granted, measured};
use crate::policy::{Change, Fault, Level, Live, Message, ServerIndex};
use wasmtime::component::{Linker, WasmStr};
use wasmtime::{Result, StoreContextMut};
use xxhash_rust::xxh3::xxh3_64;

/// Edits within one call.
const EDITS_MAX: usize = 32;
/// Bytes of a header's value.
const VALUE_MAX: usize = 8192;
/// Bytes that are kept of a name in `configure`; none that exists is as long.
const NAME_MAX: usize = 256;

pub(super) type Caller<'a> = StoreContextMut<'a, Guest>;

/// Defines all imports of the contract.
pub(super) fn define(linker: &mut Linker<Guest>) -> Result<()> {
    log(linker)?;
    request(linker)?;
    servers(linker)?;
    edits(linker)?;
    measured::define(linker)?;
    granted::define(linker)
}

fn log(linker: &mut Linker<Guest>) -> Result<()> {
    linker.instance(LOG)?.func_wrap(
        "write",
        |mut caller: Caller<'_>, (level, text): (OfLevel, WasmStr)| {
            caller.data_mut().enter()?;
            if caller.data_mut().may_log() {
                let text = read(&mut caller, &text)?;
                caller.data().log(level_of(level), &text);
            }
            Ok(())
        },
    )
}

fn level_of(level: OfLevel) -> Level {
    match level {
        OfLevel::Error => Level::Error,
        OfLevel::Warn => Level::Warn,
        OfLevel::Info => Level::Info,
        OfLevel::Debug => Level::Debug,
    }
}

/// A name that is declared: what is longer than any is cut off.
pub(super) fn read_name(caller: &mut Caller<'_>, name: &WasmStr) -> Result<String> {
    let mut name = read(caller, name)?;
    name.truncate(name.floor_char_boundary(NAME_MAX));
    Ok(name)
}

/// A text of the guest, whose length the store's host-call fuel has bounded already.
fn read(caller: &mut Caller<'_>, text: &WasmStr) -> Result<String> {
    match text.to_str(&*caller) {
        Ok(text) => Ok(text.into_owned()),
        Err(error) => Err(caller.data_mut().cut(Fault::Utf8, error.to_string())),
    }
}

fn request(linker: &mut Linker<Guest>) -> Result<()> {
    let mut request = linker.instance(REQUEST)?;
    request.func_wrap("attribute", |mut caller: Caller<'_>, (attribute,): (i32,)| {
        let lossy = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Ok((look(&mut caller, attribute, lossy)?,))
    })?;
    request.func_wrap("length", |mut caller: Caller<'_>, (attribute,): (i32,)| {
        let length = |value: &[u8]| i32::try_from(value.len()).unwrap_or(i32::MAX);
        Ok((look(&mut caller, attribute, length)?.unwrap_or(-1),))
    })?;
    request.func_wrap("hash", |mut caller: Caller<'_>, (attribute,): (i32,)| {
        let hash = |value: &[u8]| (xxh3_64(value) & 0x7FFF_FFFF) as i32;
        Ok((look(&mut caller, attribute, hash)?.unwrap_or(-1),))
    })?;
    request.func_wrap("draw", |mut caller: Caller<'_>, (bound,): (i32,)| {
        caller.data_mut().enter()?;
        Ok((caller.data_mut().request.draw(bound),))
    })?;
    request.func_wrap("now", |mut caller: Caller<'_>, (): ()| {
        caller.data_mut().enter()?;
        let now = caller.data_mut().request.now();
        Ok((i64::try_from(now.as_millis()).unwrap_or(i64::MAX),))
    })
}

fn look<T>(caller: &mut Caller<'_>, attribute: i32, with: impl Fn(&[u8]) -> T) -> Result<Option<T>> {
    let guest = caller.data_mut();
    guest.enter()?;
    match guest.request.attribute(attribute) {
        Ok(value) => Ok(value.map(with)),
        Err(()) => {
            let detail = format!("attribute {attribute} was not asked for in configure");
            guest.note(Fault::Undeclared, detail);
            Ok(None)
        }
    }
}

fn servers(linker: &mut Linker<Guest>) -> Result<()> {
    let mut servers = linker.instance(SERVERS)?;
    for (name, figure) in [
        ("in-flight", Figure::InFlight),
        ("queued", Figure::Queued),
        ("idle", Figure::Idle),
    ] {
        let read = reader(figure);
        servers.func_wrap(name, move |mut caller: Caller<'_>, (server,): (i32,)| {
            caller.data_mut().enter()?;
            Ok((caller.data().figure(server, read),))
        })?;
    }
    servers.func_wrap("column", |mut caller: Caller<'_>, (figure,): (Figure,)| {
        caller.data_mut().enter()?;
        Ok((caller.data().column(reader(figure)),))
    })
}

fn reader(figure: Figure) -> fn(&dyn Live, ServerIndex) -> u32 {
    match figure {
        Figure::InFlight => |live, server| live.in_flight(server),
        Figure::Queued => |live, server| live.queued(server),
        Figure::Idle => |live, server| live.idle(server),
    }
}

fn edits(linker: &mut Linker<Guest>) -> Result<()> {
    let mut edits = linker.instance(EDITS)?;
    for (name, change) in [("set", Change::Set), ("append", Change::Append)] {
        edits.func_wrap(
            name,
            move |mut caller: Caller<'_>, (message, header, value): (OfMessage, i32, WasmStr)| {
                caller.data_mut().enter()?;
                let value = read(&mut caller, &value)?;
                edit(caller.data_mut(), message, header, change, &value);
                Ok(())
            },
        )?;
    }
    edits.func_wrap(
        "remove",
        |mut caller: Caller<'_>, (message, header): (OfMessage, i32)| {
            caller.data_mut().enter()?;
            edit(caller.data_mut(), message, header, Change::Remove, "");
            Ok(())
        },
    )
}

/// Keeps an edit, or notes why it cannot be.
fn edit(guest: &mut Guest, message: OfMessage, header: i32, change: Change, value: &str) {
    let Some(declared) = guest.editing else {
        return guest.note(Fault::Edit, "headers can be edited in a route call only");
    };
    let Some(header) = u8::try_from(header).ok().filter(|header| *header < declared) else {
        let detail = format!("header {header} was not declared in configure");
        return guest.note(Fault::Undeclared, detail);
    };
    if let Err(why) = check_value(value) {
        return guest.note(Fault::Edit, why);
    }
    if guest.edits.len() == EDITS_MAX {
        return guest.note(Fault::Edit, "more edits than one call may make");
    }
    let message = match message {
        OfMessage::Request => Message::Request,
        OfMessage::Response => Message::Response,
    };
    guest.edits.push(message, header, change, value);
}

/// Whether that can stand in a header field (RFC 9110 §5.5).
fn check_value(value: &str) -> std::result::Result<(), &'static str> {
    if value.len() > VALUE_MAX {
        return Err("a header value is longer than 8192 bytes");
    }
    if value.bytes().any(|it| it.is_ascii_control() && it != b'\t') {
        return Err("a header value has a control character, such as CR or LF");
    }
    if value.trim_matches([' ', '\t']).len() != value.len() {
        return Err("a header value begins or ends with a blank");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        for good in ["", "a", "a\tb", "ä"] {
            assert_eq!(check_value(good), Ok(()), "{good:?}");
        }
        for bad in ["a\r\nb", "a\nb", "a\0", "\x7f", " a", "a\t", &"a".repeat(8193)] {
            assert!(check_value(bad).is_err(), "{bad:?}");
        }
    }
}
