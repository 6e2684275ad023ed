//! Hostile guests, which say anything: every input that the fuzz targets keep (`tests/fuzz/corpus`), and inputs made from
//! these, the same ones in each run.
//!
//! With the feature `planted-answer-bug` one check of the host is left out; then the same inputs have to find it.

use crate::stage::{Ends, Stage, plans};
use forebay::policy::Fault;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Inputs that are made from those in the corpus.
const MADE: usize = 2000;

static STAGE: LazyLock<Stage> = LazyLock::new(Stage::new);

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/corpus")
        .join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(&path).expect("readable"));
    files.into_iter().map(read).collect()
}

/// The first input that something comes through with.
fn found<'a>(inputs: impl IntoIterator<Item = &'a [u8]>, ends: &mut Ends) -> Option<&'a [u8]> {
    inputs
        .into_iter()
        .find(|input| catch_unwind(AssertUnwindSafe(|| STAGE.play(input, ends))).is_err())
}

#[test]
fn nothing_comes_through_that_may_not() {
    let corpus = corpus("guest");
    let made = made(&corpus);
    let inputs = corpus
        .iter()
        .map(|(_, input)| &input[..])
        .chain(made.iter().map(|it| &it[..]));
    let mut ends = Ends::new();
    // A stage that cannot be made is no finding.
    LazyLock::force(&STAGE);
    let found = found(inputs, &mut ends);
    ends.iter().for_each(|(end, count)| println!("{count:7}  {end}"));
    if cfg!(feature = "planted-answer-bug") {
        println!("{:?}", found.expect("the planted bug is found"));
        return;
    }
    assert_eq!(found, None);
}

/// An input in which a part of another one stands, and a few bytes are others.
fn made(corpus: &[(PathBuf, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut random = Pcg64Mcg::new(7);
    let mut below = |bound: usize| random.next_u64() as usize % bound.max(1);
    (0..MADE)
        .map(|_| {
            let (one, other) = (&corpus[below(corpus.len())].1, &corpus[below(corpus.len())].1);
            let (cut, from) = (below(one.len() + 1), below(other.len() + 1));
            let mut input = [&one[..cut], &other[from..]].concat();
            for _ in 0..below(4) {
                let at = below(input.len());
                if let Some(byte) = input.get_mut(at) {
                    *byte = below(256) as u8;
                }
            }
            input
        })
        .collect()
}

/// Every way in which a script can end is the end of some script in the corpus.
#[test]
fn the_corpus_reaches_every_end() {
    if cfg!(feature = "planted-answer-bug") {
        return;
    }
    let mut ends = Ends::new();
    corpus("guest")
        .iter()
        .for_each(|(_, input)| STAGE.play(input, &mut ends));
    let faults = [
        Fault::Trap,
        Fault::Fuel,
        Fault::Memory,
        Fault::Stack,
        Fault::HostCalls,
        Fault::HostBytes,
        Fault::Utf8,
        Fault::Pointer,
        Fault::UnknownServer,
        Fault::UnknownTarget,
        Fault::Range,
        Fault::Plan,
        Fault::Undeclared,
        Fault::Edit,
    ];
    let answers = [
        "a pick",
        "a table",
        "a route",
        "a preference",
        "a standing",
        "a verdict",
        "a plan",
        "wishes",
        "no opinion",
        "configuration refused",
        "wish refused",
    ];
    let wanted = faults.iter().map(|fault| fault.word()).chain(answers);
    let missed: Vec<&str> = wanted.filter(|end| !ends.contains_key(end)).collect();
    assert!(
        missed.is_empty(),
        "no input of the corpus ends with {missed:?}: {ends:?}"
    );
}

#[test]
fn plans_that_come_through_can_be_executed() {
    corpus("plan").iter().for_each(|(_, input)| plans::play(input));
}
