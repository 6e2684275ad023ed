//! Which requests came when, by a recorded access log? Reads one of ours, of either form, line by line.
//!
//! A line is written when its request has ended, so the lines of a log are not in the order in which the requests came;
//! [`read`] gives them in that order. A line that cannot be read is skipped and counted, with examples; a file of which
//! nothing can be read, or whose clock was set back, is refused with what to do about it.
//!
//! What no recording can know is told at [`Recording`].
//!
//! ```text
//! bytes ─ lines ─→ text ─ json, human ─→ Line ─ order, texts ─→ Request ─ sort ─→ Recording
//!            └────────────────┴─ what cannot be read ─→ Skipped
//! ```

mod foreign;
mod human;
mod json;
mod line;
mod lines;
mod order;
mod request;
mod skipped;
mod texts;

pub use request::{Recording, Request, Took};
pub use skipped::{Example, Skipped, Why};
pub use texts::{Text, Texts};

use line::Line;
use lines::{Broken, Lines, Piece};
use order::{Back, Order};
use request::Builder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Requests of one recording, at most: with their texts, some 1.5 GB at worst.
pub const REQUESTS_MAX: usize = 5_000_000;

/// Lines after which a file is given up of which none could be read.
const PATIENCE: u64 = 1_000;

/// Reads the access log at that path, whole.
///
/// # Errors
///
/// What is wrong with the file, where, and what to do; ready to print.
pub fn read(path: &Path) -> Result<Recording, String> {
    let file = path.display().to_string();
    match File::open(path) {
        Ok(input) => read_from(BufReader::with_capacity(1 << 20, input), &file, REQUESTS_MAX),
        Err(error) => Err(format!("{file}: cannot be read: {error}")),
    }
}

/// Reads a log from anywhere; `file` is its name in messages.
fn read_from(input: impl BufRead, file: &str, most: usize) -> Result<Recording, String> {
    let (mut lines, mut order) = (Lines::of(input), Order::default());
    let (mut builder, mut skipped) = (Builder::default(), Skipped::default());
    let mut first: Option<Vec<u8>> = None;
    while let Some((number, piece)) = lines.next().map_err(|broken| unreadable(file, &broken))? {
        first.get_or_insert_with(|| piece.bytes().to_vec());
        match understood(&piece) {
            Ok(line) => take(&line, &mut order, &mut builder, most)
                .map_err(|end| format!("{file}:{number}: {}", told(&end, file, number)))?,
            Err((why, what)) => {
                let cut = !piece.is_ended() && builder.count() > 0 && why != Why::Request;
                skipped.add(number, if cut { Why::CutOff } else { why }, what);
            }
        }
        let hopeless = builder.count() == 0 && skipped.count(Why::Request) == 0;
        if hopeless && skipped.total() >= PATIENCE {
            break;
        }
    }
    match builder.count() {
        0 => Err(nothing(file, first.as_deref(), &skipped)),
        _ => Ok(builder.finish(skipped)),
    }
}

/// Why nothing can be read beyond a line.
enum End {
    /// The clock was set back there.
    Back(Back),
    /// There are as many requests as may be.
    Requests(usize),
    /// Their texts are as long as may be.
    Texts,
}

fn take(line: &Line, order: &mut Order, builder: &mut Builder, most: usize) -> Result<(), End> {
    order.next(line).map_err(End::Back)?;
    if builder.count() == most {
        return Err(End::Requests(most));
    }
    builder.push(line).map_err(|_| End::Texts)
}

/// What it means, and what to do.
fn told(end: &End, file: &str, number: u64) -> String {
    let part = format!("replay a part of it, such as `head -n {} {file}`", number - 1);
    match end {
        End::Back(Back { seconds }) => format!(
            "the time goes back by {seconds} s here. If the clock was set back, replay the parts one by one: `head -n {} {file}` \
             and `tail -n +{number} {file}`. If these are several logs in one file, sort its lines by their time",
            number - 1
        ),
        End::Requests(most) => format!("a recording has at most {most} requests; {part}"),
        End::Texts => format!(
            "the hosts and targets before it take {} MiB, which is the most; {part}",
            texts::TEXT_MAX >> 20
        ),
    }
}

fn unreadable(file: &str, broken: &Broken) -> String {
    format!("{file}:{}: cannot be read: {}", broken.line, broken.error)
}

/// What stands in a line, or why it is skipped.
fn understood(piece: &Piece<'_>) -> Result<Line, (Why, String)> {
    match piece {
        Piece::TooLong(_) => Err((Why::Misread, format!("longer than {} KiB", lines::LINE_MAX >> 10))),
        Piece::Line { text, .. } if text.starts_with(b"{") => json::line(text),
        Piece::Line { text, .. } => human::line(text),
    }
}

/// Why there is nothing to replay.
fn nothing(file: &str, first: Option<&[u8]>, skipped: &Skipped) -> String {
    let Some(first) = first else {
        return format!(
            "{file}: the log is empty: nothing came while it was recorded, or `to` of `log` named another file"
        );
    };
    match skipped.count(Why::Foreign) + skipped.count(Why::Misread) {
        0 => format!("{file}: no request of it can be sent again\n{skipped}"),
        _ => format!(
            "{file}:1: {}\nexpected an access log of this proxy: record one with `log = {{ format = \"json\", to = \"PATH\" }}` in \
             [process]\n{skipped}",
            foreign::guess(first)
        ),
    }
}

#[cfg(test)]
mod tests;
