//! What was skipped of a log, and why.

use std::fmt;

/// Examples of one recording, at most.
const EXAMPLES_MAX: usize = 5;

/// Why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is no line of this log: a message, or something of another program.
    Foreign,
    /// It is one, and a field is missing or wrong.
    Misread,
    /// The file ends within it: it was still being written, or the file was cut.
    CutOff,
    /// Its request was never understood (or never came whole), so that there is nothing to send again.
    Request,
}

impl Why {
    const ALL: [Why; 4] = [Why::Foreign, Why::Misread, Why::CutOff, Why::Request];

    fn told(self) -> &'static str {
        match self {
            Why::Foreign => "not of this log",
            Why::Misread => "misread",
            Why::CutOff => "cut off at the end of the file",
            Why::Request => "of a request that was never understood",
        }
    }
}

/// Lines that were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    counts: [u64; Why::ALL.len()],
    examples: Vec<Example>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The number of the line, from 1.
    pub line: u64,
    /// Why it was skipped.
    pub why: Why,
    /// What is wrong with it, or what stands there.
    pub what: String,
}

impl Skipped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Those that were skipped for that reason.
    pub fn count(&self, why: Why) -> u64 {
        self.counts[why as usize]
    }

    /// The first few.
    pub fn examples(&self) -> &[Example] {
        &self.examples
    }

    pub(super) fn add(&mut self, line: u64, why: Why, what: String) {
        self.counts[why as usize] += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(Example { line, why, what });
        }
    }
}

/// One line for each reason, then the examples; nothing if nothing was skipped.
impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for why in Why::ALL.into_iter().filter(|why| self.count(*why) > 0) {
            let count = self.count(why);
            let lines = if count == 1 { "line" } else { "lines" };
            writeln!(f, "skipped {count} {lines} {}", why.told())?;
        }
        for Example { line, why, what } in &self.examples {
            writeln!(f, "  line {line}, {}: {what}", why.told())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_a_few_examples() {
        let mut skipped = Skipped::default();
        assert_eq!(skipped.to_string(), "");
        for line in 1..=7 {
            skipped.add(line, Why::Misread, format!("`status` is {line}"));
        }
        skipped.add(9, Why::CutOff, "…".to_owned());
        assert_eq!((skipped.total(), skipped.examples().len()), (8, EXAMPLES_MAX));
        let told = skipped.to_string();
        assert!(told.starts_with("skipped 7 lines misread\nskipped 1 line cut off at the end of the file\n"));
        assert!(told.contains("\n  line 5, misread: `status` is 5\n"), "{told}");
    }
}
