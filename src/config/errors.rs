//! What is wrong with a configuration file, told so that a tired person can mend it.
//!
//! A [`Problem`] says where (a byte range), what was found, what was expected and, if it can be told, how it should
//! read. [`Errors`] are all problems of one file in the order of the file. Two renderings: [`Errors::render`] with
//! the lines of the file for a person, and `Display`, one `file:line:column: …` per problem, for logs and editors.
//! What only follows from another mistake (a value on a line that is no TOML, a missing key in a file that could
//! not be read to its end) is left out.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt::{self, Write};
use std::ops::Range;

/// A range of bytes of the file.
pub(super) type At = Range<usize>;

/// How grave a problem is, and what it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// The file cannot be read, or is no TOML there.
    Syntax,
    /// What stands there is wrong.
    Wrong,
    /// Something that should stand somewhere is not there.
    Missing,
    /// It works, but hardly as meant. Never an error.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    class: Class,
    at: At,
    found: String,
    expected: String,
    help: String,
    also: Option<(At, String)>,
}

impl Problem {
    /// `found` says what stands there and why it is wrong; it is the headline.
    pub(super) fn new(class: Class, at: At, found: impl Into<String>) -> Problem {
        let (found, expected, help) = (found.into(), String::new(), String::new());
        Problem {
            class,
            at,
            found,
            expected,
            help,
            also: None,
        }
    }

    /// What was expected instead; stands under the place.
    pub(super) fn expected(mut self, expected: impl Into<String>) -> Problem {
        self.expected = expected.into();
        self
    }

    /// What to do: the right spelling, the place where it belongs.
    pub(super) fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = help.into();
        self
    }

    /// Another place that has to do with it.
    pub(super) fn also(mut self, at: At, what: impl Into<String>) -> Problem {
        self.also = Some((at, what.into()));
        self
    }
}

/// Collects the problems of one file while it is read.
#[derive(Debug)]
pub(super) struct Report<'t> {
    text: &'t str,
    problems: Vec<Problem>,
    unreliable_from: usize,
}

impl<'t> Report<'t> {
    /// Nothing is wrong yet with this text.
    pub(super) fn new(text: &'t str) -> Report<'t> {
        Report {
            text,
            problems: Vec::new(),
            unreliable_from: usize::MAX,
        }
    }

    /// Notes a problem.
    pub(super) fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Notes that what stands at `at` is wrong.
    pub(super) fn wrong(
        &mut self,
        at: At,
        found: impl Into<String>,
        expected: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(
            Problem::new(Class::Wrong, at, found)
                .expected(expected)
                .help(help),
        );
    }

    /// From this byte on the text was read as part of something that it is no part of: only its syntax counts.
    pub(super) fn unreliable_from(&mut self, at: usize) {
        self.unreliable_from = self.unreliable_from.min(at);
    }

    /// Where byte `offset` of a string's value stands: the string lies at `at`, with quotes and perhaps with escapes. With
    /// escapes the whole string is meant.
    pub(super) fn byte_of(&self, at: &At, value: &str, offset: usize) -> At {
        let start = at.start + 1;
        let exact = self.text.get(start..start + value.len()) == Some(value);
        match value.get(offset..).and_then(|rest| rest.chars().next()) {
            Some(sign) if exact => start + offset..start + offset + sign.len_utf8(),
            _ => at.clone(),
        }
    }

    /// The warnings, if there is nothing worse; else the errors, without what only follows from others.
    pub(super) fn finish(self, file: &str) -> Result<Errors, Errors> {
        let text = self.text;
        let syntax = self
            .problems
            .iter()
            .filter(|problem| problem.class == Class::Syntax);
        let broken: Vec<usize> = syntax.map(|problem| line_of(text, problem.at.start)).collect();
        let is_good = self
            .problems
            .iter()
            .all(|problem| problem.class == Class::Warning);
        let follows = |problem: &Problem| match problem.class {
            Class::Syntax => false,
            Class::Wrong => {
                problem.at.start >= self.unreliable_from || broken.contains(&line_of(text, problem.at.start))
            }
            Class::Missing => !broken.is_empty(),
            Class::Warning => !is_good,
        };
        let mut problems: Vec<_> = self
            .problems
            .iter()
            .filter(|problem| !follows(problem))
            .cloned()
            .collect();
        problems.sort_by_key(|problem| (problem.at.start, problem.class));
        let errors = Errors {
            file: file.to_owned(),
            text: text.to_owned(),
            problems,
        };
        if is_good { Ok(errors) } else { Err(errors) }
    }
}

/// All problems of one file. Never empty as the error of a `Result`.
#[derive(Clone, Debug)]
pub struct Errors {
    file: String,
    text: String,
    problems: Vec<Problem>,
}

impl std::error::Error for Errors {}

impl Errors {
    /// The file as a whole cannot be read.
    pub(super) fn unreadable(file: &str, why: impl Into<String>, help: impl Into<String>) -> Errors {
        let problem = Problem::new(Class::Syntax, 0..0, why).help(help);
        Errors {
            file: file.to_owned(),
            text: String::new(),
            problems: vec![problem],
        }
    }

    /// Number of problems, warnings included.
    pub fn len(&self) -> usize {
        self.problems.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Line and column of every problem, counted from 1 in characters, in file order.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.problems
            .iter()
            .map(|problem| place(&self.text, problem.at.start))
    }

    /// For a person: every problem with its lines; in colour when `styled`.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut out = String::new();
        for (at, problem) in self.problems.iter().take(SHOWN_MAX).enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            // Written to a String, which does not fail.
            let _ = writeln!(out, "{gap}{}", renderer.render(&[self.report(problem)]));
        }
        if let Some(more) = self
            .problems
            .len()
            .checked_sub(SHOWN_MAX)
            .filter(|more| *more > 0)
        {
            let _ = writeln!(out, "\nand {more} more");
        }
        out
    }

    fn report<'a>(&'a self, problem: &'a Problem) -> Group<'a> {
        let level = if problem.class == Class::Warning {
            Level::WARNING
        } else {
            Level::ERROR
        };
        if self.text.is_empty() {
            // Nothing to show: the file's name belongs into the headline.
            let title = level.primary_title(format!("{}: {}", self.file, problem.found));
            let note = Some(&problem.help).filter(|help| !help.is_empty());
            return Group::with_title(title).elements(note.map(|help| Level::HELP.message(help.as_str())));
        }
        let label = Some(problem.expected.as_str()).filter(|text| !text.is_empty());
        let mut snippet = Snippet::source(self.text.as_str())
            .path(self.file.as_str())
            .annotation(
                AnnotationKind::Primary
                    .span(self.visible(&problem.at))
                    .label(label),
            );
        if let Some((at, what)) = &problem.also {
            snippet = snippet.annotation(
                AnnotationKind::Context
                    .span(self.visible(at))
                    .label(what.as_str()),
            );
        }
        let group = level.primary_title(problem.found.as_str()).element(snippet);
        if problem.help.is_empty() {
            group
        } else {
            group.element(Level::HELP.message(problem.help.as_str()))
        }
    }

    /// The range, cut at the end of its first line: a value over many lines is marked where it begins.
    fn visible(&self, at: &At) -> At {
        let start = at.start.min(self.text.len());
        let end = at.end.clamp(start, self.text.len());
        match self
            .text
            .get(start..end)
            .and_then(|shown| shown.find(['\n', '\r']))
        {
            Some(line) => start..start + line,
            None => start..end,
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let (line, column) = place(&self.text, problem.at.start);
            let kind = if problem.class == Class::Warning {
                "warning: "
            } else {
                ""
            };
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{}:{line}:{column}: {kind}{}", self.file, problem.found)?;
            for more in [&problem.expected, &problem.help] {
                if !more.is_empty() {
                    write!(f, "; {more}")?;
                }
            }
            if let Some((at, what)) = &problem.also {
                write!(f, "; line {}: {what}", line_of(&self.text, at.start))?;
            }
        }
        Ok(())
    }
}

/// Problems that are shown with their lines; nobody mends more at a time.
const SHOWN_MAX: usize = 50;

/// Line and column of a byte, both from 1; the column counts characters, as editors do.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

fn line_of(text: &str, at: usize) -> usize {
    place(text, at).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let text = "a\nä = ö!\n";
        assert_eq!(place(text, 0), (1, 1));
        assert_eq!(place(text, text.find('!').unwrap()), (2, 6));
        assert_eq!(place(text, text.len()), (3, 1));
    }

    #[test]
    fn what_follows_from_broken_toml_is_left_out() {
        let mut report = Report::new("a = b c\nd = e\n");
        report.wrong(4..5, "a consequence", "", "");
        report.wrong(9..10, "a mistake of its own", "", "");
        report.push(Problem::new(Class::Missing, 0..1, "perhaps only unread"));
        report.push(Problem::new(Class::Syntax, 4..6, "no TOML"));
        let errors = report.finish("f.toml").unwrap_err();
        assert_eq!(
            errors.to_string(),
            "f.toml:1:5: no TOML\nf.toml:2:2: a mistake of its own"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let errors = Errors::unreadable("f.toml", "cannot be read: no such file", "look again");
        assert_eq!(
            errors.to_string(),
            "f.toml:1:1: cannot be read: no such file; look again"
        );
        assert!(
            errors
                .render(false)
                .starts_with("error: f.toml: cannot be read: no such file")
        );
    }
}
