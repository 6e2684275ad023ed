//! Closed WASI 0.2: what the runtimes of common languages import must link, and nothing of it reaches out.
//!
//! | interface | here |
//! |---|---|
//! | clocks | the time of the question, whatever the world's is |
//! | random | numbers that follow from the seed of the question |
//! | stdout, stderr | lines of the log |
//! | stdin, arguments, environment, directories, terminals | empty |
//! | exit, poll, files, sockets, http and all else | linked, and cut when called |
//!
//! Defined from the types that a component imports, so that every 0.2.x links; calls are untyped, and therefore slow, which
//! does not matter to guests that insist on an operating system.

use super::guest::Guest;
use crate::policy::{Fault, Level};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, LinkerInstance, Resource, ResourceType, Val};
use wasmtime::{Result, StoreContextMut, format_err};

/// Bytes of randomness for one host call.
const RANDOM_MAX: u64 = 4096;
/// Bytes that a stream takes at once.
const WRITE_MAX: u64 = 4096;

/// Behind every resource of WASI there is nothing.
struct Nothing;

/// Whether that import belongs to WASI 0.2.
pub(super) fn is_closed(import: &str) -> bool {
    interface(import).is_some()
}

/// `io/streams` of `wasi:io/streams@0.2.3`.
fn interface(import: &str) -> Option<&str> {
    let (name, version) = import.strip_prefix("wasi:")?.split_once('@')?;
    version.starts_with("0.2.").then_some(name)
}

/// Defines what the component imports of WASI.
pub(super) fn define(linker: &mut Linker<Guest>, component: &Component) -> Result<()> {
    let engine = component.engine();
    for (import, item) in component.component_type().imports(engine) {
        if let (Some(name), ComponentItem::ComponentInstance(of)) = (interface(import), &item.ty) {
            let mut linker = linker.instance(import)?;
            for (item, found) in of.exports(engine) {
                match found.ty {
                    ComponentItem::Resource(_) => {
                        linker.resource(item, ResourceType::host::<Nothing>(), |_, _| Ok(()))?;
                    }
                    ComponentItem::ComponentFunc(_) => function(&mut linker, name, item)?,
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

fn function(linker: &mut LinkerInstance<'_, Guest>, interface: &str, name: &str) -> Result<()> {
    let answer = answer(interface, name);
    let shown = format!("wasi:{interface} {name} is closed to policies");
    linker.func_new(name, move |mut caller, _, given, results| {
        caller.data_mut().enter()?;
        let Some(answer) = answer else {
            return Err(caller.data_mut().cut(Fault::Closed, shown.clone()));
        };
        let value = answer(&mut caller, given)?;
        give_back(&mut caller, given)?;
        if let Some(result) = results.first_mut() {
            *result = value;
        }
        Ok(())
    })
}

/// Ends the loan of what was lent with a call: the engine cuts a guest whose host has kept it.
fn give_back(caller: &mut Caller<'_>, given: &[Val]) -> Result<()> {
    for value in given {
        if let Val::Resource(lent) = value
            && !lent.owned()
        {
            lent.resource_drop(&mut *caller)?;
        }
    }
    Ok(())
}

type Caller<'a> = StoreContextMut<'a, Guest>;
type Answer = fn(&mut Caller<'_>, &[Val]) -> Result<Val>;

/// All that is answered; every other function of WASI cuts.
const ANSWERED: &[(&str, &str, Answer)] = &[
    ("clocks/monotonic-clock", "now", |caller, _| {
        Ok(Val::U64(nanoseconds(caller)))
    }),
    ("clocks/monotonic-clock", "resolution", |_, _| {
        Ok(Val::U64(1_000_000))
    }),
    ("clocks/wall-clock", "now", |caller, _| {
        Ok(wall(nanoseconds(caller)))
    }),
    ("clocks/wall-clock", "resolution", |_, _| Ok(wall(1_000_000))),
    ("random/random", "get-random-bytes", bytes),
    ("random/random", "get-random-u64", number),
    ("random/insecure", "get-insecure-random-bytes", bytes),
    ("random/insecure", "get-insecure-random-u64", number),
    ("random/insecure-seed", "insecure-seed", |_, _| {
        Ok(Val::Tuple(vec![Val::U64(0), Val::U64(0)]))
    }),
    ("cli/environment", "get-environment", empty),
    ("cli/environment", "get-arguments", empty),
    ("cli/environment", "initial-cwd", none),
    ("filesystem/preopens", "get-directories", empty),
    ("cli/terminal-stdin", "get-terminal-stdin", none),
    ("cli/terminal-stdout", "get-terminal-stdout", none),
    ("cli/terminal-stderr", "get-terminal-stderr", none),
    ("cli/stdin", "get-stdin", stream),
    ("cli/stdout", "get-stdout", stream),
    ("cli/stderr", "get-stderr", stream),
    ("io/streams", "[method]output-stream.check-write", |_, _| {
        Ok(ok(Some(Val::U64(WRITE_MAX))))
    }),
    ("io/streams", "[method]output-stream.write", write),
    (
        "io/streams",
        "[method]output-stream.blocking-write-and-flush",
        write,
    ),
    ("io/streams", "[method]output-stream.flush", done),
    ("io/streams", "[method]output-stream.blocking-flush", done),
    ("io/streams", "[method]input-stream.read", ended),
    ("io/streams", "[method]input-stream.blocking-read", ended),
];

/// The functions of closed WASI that answer: the interface without package version, and the name.
pub fn answered() -> impl Iterator<Item = (&'static str, &'static str)> {
    ANSWERED.iter().map(|(interface, name, _)| (*interface, *name))
}

/// What a function of WASI does; nothing for those that cut.
fn answer(interface: &str, name: &str) -> Option<Answer> {
    let known = |it: &&(&str, &str, Answer)| (it.0, it.1) == (interface, name);
    ANSWERED.iter().find(known).map(|(.., answer)| *answer)
}

fn empty(_: &mut Caller<'_>, _: &[Val]) -> Result<Val> {
    Ok(Val::List(Vec::new()))
}

fn none(_: &mut Caller<'_>, _: &[Val]) -> Result<Val> {
    Ok(Val::Option(None))
}

fn done(_: &mut Caller<'_>, _: &[Val]) -> Result<Val> {
    Ok(ok(None))
}

/// A stream at its end.
fn ended(_: &mut Caller<'_>, _: &[Val]) -> Result<Val> {
    let closed = Val::Variant("closed".into(), None);
    Ok(Val::Result(Err(Some(Box::new(closed)))))
}

fn ok(value: Option<Val>) -> Val {
    Val::Result(Ok(value.map(Box::new)))
}

fn nanoseconds(caller: &mut Caller<'_>) -> u64 {
    u64::try_from(caller.data_mut().request.now().as_nanos()).unwrap_or(u64::MAX)
}

fn wall(nanoseconds: u64) -> Val {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    Val::Record(vec![
        ("seconds".into(), Val::U64(seconds)),
        ("nanoseconds".into(), Val::U32(rest as u32)),
    ])
}

fn number(caller: &mut Caller<'_>, _: &[Val]) -> Result<Val> {
    Ok(Val::U64(caller.data_mut().request.random()))
}

fn bytes(caller: &mut Caller<'_>, given: &[Val]) -> Result<Val> {
    let Some(Val::U64(wanted @ 0..=RANDOM_MAX)) = given.first() else {
        return Err(caller
            .data_mut()
            .cut(Fault::HostBytes, "too much randomness at once"));
    };
    let byte = |_| Val::U8(caller.data_mut().request.random() as u8);
    Ok(Val::List((0..*wanted).map(byte).collect()))
}

fn stream(caller: &mut Caller<'_>, _: &[Val]) -> Result<Val> {
    let stream = Resource::<Nothing>::new_own(0).try_into_resource_any(&mut *caller)?;
    Ok(Val::Resource(stream))
}

fn write(caller: &mut Caller<'_>, given: &[Val]) -> Result<Val> {
    let Some(Val::List(written)) = given.get(1) else {
        return Err(format_err!("a write without bytes"));
    };
    let byte = |it: &Val| if let Val::U8(byte) = it { *byte } else { b'?' };
    let text: Vec<u8> = written.iter().map(byte).collect();
    let text = String::from_utf8_lossy(&text);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if caller.data_mut().may_log() {
            caller.data().log(Level::Info, line);
        }
    }
    Ok(ok(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_second_preview_is_known() {
        assert_eq!(interface("wasi:io/streams@0.2.9"), Some("io/streams"));
        for other in ["wasi:io/streams@0.3.0", "wasi:io/streams", "lab:io/streams@0.2.0"] {
            assert_eq!(interface(other), None, "{other}");
        }
    }
}
