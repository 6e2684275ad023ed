//! What differs between two transcripts, for people: a unified diff of bounded length.

use similar::TextDiff;
use std::fmt::Write;

/// Lines of a diff that are shown.
const LINES_MAX: usize = 80;
/// Lines that are the same, shown around a difference.
const CONTEXT: usize = 3;

/// The unified diff from `before` to `after`, under these names; what is too long is counted.
pub(super) fn unified((before_name, before): (&str, &str), (after_name, after): (&str, &str)) -> String {
    let ended = |text: &str| match text {
        "" => String::new(),
        text => format!("{text}\n"),
    };
    let (before, after) = (ended(before), ended(after));
    let whole = TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(before_name, after_name)
        .to_string();
    shortened(whole)
}

fn shortened(whole: String) -> String {
    let lines = whole.lines().count();
    // One line is not worth the line that says it is missing.
    if lines <= LINES_MAX + 1 {
        return whole;
    }
    let mut text: String = whole.split_inclusive('\n').take(LINES_MAX).collect();
    let _ = writeln!(text, "… {} more lines", lines - LINES_MAX);
    text
}

/// The same with the colours of a terminal.
pub(super) fn coloured(diff: &str) -> String {
    diff.lines().fold(String::new(), |mut text, line| {
        let _ = match colour(line) {
            Some(code) => writeln!(text, "\x1b[{code}m{line}\x1b[0m"),
            None => writeln!(text, "{line}"),
        };
        text
    })
}

fn colour(line: &str) -> Option<u8> {
    let (bold, red, green, cyan) = (1, 31, 32, 36);
    match line.as_bytes().first()? {
        b'-' if line.starts_with("--- ") => Some(bold),
        b'+' if line.starts_with("+++ ") => Some(bold),
        b'-' => Some(red),
        b'+' => Some(green),
        b'@' => Some(cyan),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_with_what_is_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        let diff = unified(("a.snap", before), ("a.snap.new", &before.replace('5', "five")));
        insta::assert_snapshot!(diff, @"
        --- a.snap
        +++ a.snap.new
        @@ -2,7 +2,7 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
        ");
        assert_eq!(
            coloured("--- a\n@@ -1 +1 @@\n-x\n+y\n z\n"),
            "\x1b[1m--- a\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n z\n"
        );
    }

    #[test]
    fn a_long_difference_is_cut_and_counted() {
        let after = |lines: usize| (0..lines).map(|it| it.to_string()).collect::<Vec<_>>().join("\n");
        let fits = unified(("a", ""), ("b", &after(LINES_MAX - 2)));
        assert_eq!(fits.lines().count(), LINES_MAX + 1);
        assert_eq!(fits.lines().last(), Some("+77"));
        let cut = unified(("a", ""), ("b", &after(100)));
        assert_eq!(cut.lines().count(), LINES_MAX + 1);
        assert_eq!(cut.lines().last(), Some("… 23 more lines"));
    }
}
