//! From a core module to a component: the contract is embedded if need be, and WASI preview 1 is answered inside by an
//! adapter that reaches nothing (`adapter/wasi.wat`).

use super::contract::WIT;
use std::fmt;
use std::path::PathBuf;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve, SourceMap};

/// The adapter, assembled from the text beside it; a test compares them.
const ADAPTER: &[u8] = include_bytes!("adapter/wasi.wasm");
/// What a module imports that the adapter answers, under both of its names.
const PREVIEW_1: [&str; 2] = ["wasi_snapshot_preview1", "wasi_unstable"];

/// How a module writes text, when that is not written in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Text {
    /// Nearly all languages.
    #[default]
    Utf8,
    /// AssemblyScript.
    Utf16,
}

/// Why a module cannot be packed.
#[derive(Debug)]
pub struct PackError(String);

impl std::error::Error for PackError {}

impl fmt::Display for PackError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Packs a core module, binary or as text (WAT). `world` names a world of `wit/` for a module whose tools have not embedded one, with the
/// encoding of its text.
pub fn pack(core: &[u8], world: Option<(&str, Text)>) -> Result<Vec<u8>, PackError> {
    let mut module = wat::parse_bytes(core).map_err(failed("the text"))?.into_owned();
    if let Some((world, text)) = world {
        embed(&mut module, world, text)?;
    }
    let mut encoder = ComponentEncoder::default().validate(true);
    for name in PREVIEW_1 {
        encoder = encoder.adapter(name, ADAPTER).map_err(failed("the adapter"))?;
    }
    let mut encoder = encoder.module(&module).map_err(failed("the module"))?;
    encoder.encode().map_err(failed("the component"))
}

fn embed(module: &mut Vec<u8>, world: &str, text: Text) -> Result<(), PackError> {
    let (resolve, package) = contract()?;
    let world = resolve
        .select_world(&[package], Some(world))
        .map_err(failed("the world"))?;
    let encoding = match text {
        Text::Utf8 => StringEncoding::UTF8,
        Text::Utf16 => StringEncoding::UTF16,
    };
    embed_component_metadata(module, &resolve, world, encoding).map_err(failed("the module"))
}

/// The package of `wit/`, read.
pub(super) fn contract() -> Result<(Resolve, PackageId), PackError> {
    let mut map = SourceMap::new();
    for (file, contents) in WIT {
        map.push_str(&PathBuf::from(file).to_string_lossy(), contents);
    }
    let group = map
        .parse()
        .map_err(|(_, error)| PackError(format!("wit/: {error}")))?;
    let mut resolve = Resolve::default();
    let package = resolve
        .push_group(group)
        .map_err(|error| PackError(format!("wit/: {error}")))?;
    Ok((resolve, package))
}

pub(super) fn failed<E: fmt::Display>(what: &'static str) -> impl Fn(E) -> PackError {
    move |error| PackError(format!("{what}: {error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adapter_is_what_its_text_says() {
        let text = wat::parse_str(include_str!("adapter/wasi.wat")).expect("wat");
        assert!(
            text == ADAPTER,
            "assemble src/wasm/adapter/wasi.wat again: see its head"
        );
    }

    #[test]
    fn a_module_of_another_world_is_refused() {
        let module = wat::parse_str("(module)").expect("wat");
        assert!(pack(&module, Some(("picker", Text::Utf8))).is_err());
        assert!(pack(&module, Some(("nobody", Text::Utf8))).is_err());
        assert!(pack(b"text", None).is_err());
    }

    #[test]
    fn a_module_may_be_text() {
        let error =
            pack(b"(module (func (unreachabl)))", Some(("picker", Text::Utf8))).expect_err("not text");
        assert!(error.to_string().contains("unknown operator"), "{error}");
        let error = pack(b"(module)", Some(("picker", Text::Utf8))).expect_err("no exports");
        assert!(!error.to_string().contains("the text"), "{error}");
    }
}
