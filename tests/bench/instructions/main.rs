//! `instructions SHAPE REQUESTS`: serves so many requests of one shape, for `check.sh` to count instructions of. Without
//! arguments it lists the shapes.

#[path = "../path.rs"]
mod path;

use path::{Path, SHAPES};

/// Until every server has a proven idle connection and every buffer its size.
const WARM_UP: u64 = 2_000;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let Some(name) = arguments.next() else {
        SHAPES.iter().for_each(|shape| println!("{}", shape.name));
        return;
    };
    let shape = SHAPES
        .iter()
        .find(|shape| shape.name == name)
        .expect("a shape of the list");
    let requests: u64 = arguments
        .next()
        .map_or(0, |count| count.parse().expect("a number"));
    let mut path = Path::new();
    let bytes = (0..WARM_UP + requests).fold(0, |sum, _| sum + path.serve(std::hint::black_box(shape)));
    println!("{bytes}");
}
