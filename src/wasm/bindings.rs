//! What does an author in C include? The types and calls of one world of `wit/`, as `wit-bindgen c` writes them.
//!
//! Languages with a generator of their own (Rust, JavaScript, Python) read the contract instead.

use super::pack::{PackError, contract, failed};
use wit_bindgen_c::Opts;
use wit_bindgen_core::Files;

/// The files for a module of that world: a source, its header, and an object that says which world it is.
pub fn c_bindings(world: &str) -> Result<Vec<(String, Vec<u8>)>, PackError> {
    let (mut resolve, package) = contract()?;
    let world = resolve
        .select_world(&[package], Some(world))
        .map_err(failed("the world"))?;
    let mut files = Files::default();
    let mut generator = Opts::default().build();
    generator
        .generate(&mut resolve, world, &mut files)
        .map_err(failed("the bindings"))?;
    Ok(files
        .iter()
        .map(|(name, contents)| (name.to_owned(), contents.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_has_a_source_a_header_and_an_object() {
        let files = c_bindings("picker").expect("bindings");
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["picker.c", "picker.h", "picker_component_type.o"]);
        let header = String::from_utf8(files[1].1.clone()).expect("text");
        assert!(
            header.contains("exports_forebay_policy_balance_pick_pick"),
            "{header}"
        );
    }

    #[test]
    fn a_world_that_is_not_there_is_refused() {
        let error = c_bindings("nobody").expect_err("no world");
        assert!(error.to_string().contains("the world"), "{error}");
    }
}
