//! The table of keys: what may stand in the file, section by section.
//!
//! One entry says a key's form, default, range, clause and meaning. The reader (`read.rs`) is driven by it:
//! a key that is not here is unknown, a key that is here cannot be read as anything but its form, and its default
//! is written nowhere else. The manual's reference ([`super::reference`]) and the schema for editors ([`mod@super::schema`])
//! are printed from it. A key whose mechanism does not exist yet stands here too and is refused as *not yet*, never ignored.

mod backend;
mod balance;
mod listen;
mod near;
mod policy;
mod process;
mod scenario;

pub use near::nearest;

use super::units;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A table of the file with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The file itself: names of sections.
    File,
    /// `[process]`.
    Process,
    /// `log = { … }`.
    Log,
    /// `[[listen]]`.
    Listen,
    /// `[[listen.route]]`.
    Route,
    /// `match = { … }`.
    Match,
    /// `redirect = { … }`.
    Redirect,
    /// `respond = { … }`.
    Respond,
    /// `request-headers = { … }` and `response-headers = { … }`.
    Headers,
    /// `[backend.NAME]`.
    Backend,
    /// `balance = { … }`.
    Balance,
    /// `hash = { … }`.
    Hash,
    /// `cookie = { … }`.
    Cookie,
    /// An element of `servers` that is a table.
    Server,
    /// `[policy.NAME]`.
    Policy,
    /// A scenario's file: names of sections.
    ScenarioFile,
    /// `[scenario]`.
    Scenario,
    /// `costs = { … }`.
    Costs,
    /// `[[server]]` of a scenario.
    Machine,
    /// A time that is drawn: `service = { … }`.
    Span,
    /// `[[traffic]]`.
    Traffic,
    /// `keys = { … }`.
    Keys,
    /// `[[request]]`.
    Scripted,
    /// `[[event]]`.
    Event,
    /// `[show]`.
    Show,
    /// `[expect]`.
    Expect,
}

/// Every section, in the order of the manual.
pub const SECTIONS: [Section; 15] = [
    Section::File,
    Section::Process,
    Section::Log,
    Section::Listen,
    Section::Route,
    Section::Match,
    Section::Redirect,
    Section::Respond,
    Section::Headers,
    Section::Backend,
    Section::Balance,
    Section::Hash,
    Section::Cookie,
    Section::Server,
    Section::Policy,
];

/// Every section that only a scenario has, in the order of the manual.
pub const SCENARIO_SECTIONS: [Section; 11] = [
    Section::ScenarioFile,
    Section::Scenario,
    Section::Costs,
    Section::Machine,
    Section::Span,
    Section::Traffic,
    Section::Keys,
    Section::Scripted,
    Section::Event,
    Section::Show,
    Section::Expect,
];

impl Section {
    /// How the section is written in the file.
    pub fn title(self) -> &'static str {
        match self {
            Section::File => "the file",
            Section::Process => "[process]",
            Section::Log => "log = { … }",
            Section::Listen => "[[listen]]",
            Section::Route => "[[listen.route]]",
            Section::Match => "match = { … }",
            Section::Redirect => "redirect = { … }",
            Section::Respond => "respond = { … }",
            Section::Headers => "request-headers = { … }",
            Section::Backend => "[backend.NAME]",
            Section::Balance => "balance = { … }",
            Section::Hash => "hash = { … }",
            Section::Cookie => "cookie = { … }",
            Section::Server => "servers = [ { … } ]",
            Section::Policy => "[policy.NAME]",
            Section::ScenarioFile => "the scenario",
            Section::Scenario => "[scenario]",
            Section::Costs => "costs = { … }",
            Section::Machine => "[[server]]",
            Section::Span => "{ mean = … }",
            Section::Traffic => "[[traffic]]",
            Section::Keys => "keys = { … }",
            Section::Scripted => "[[request]]",
            Section::Event => "[[event]]",
            Section::Show => "[show]",
            Section::Expect => "[expect]",
        }
    }

    /// The keys of the section.
    pub fn keys(self) -> &'static [Key] {
        match self {
            Section::File => process::FILE,
            Section::Process => process::PROCESS,
            Section::Log => process::LOG,
            Section::Listen => listen::LISTEN,
            Section::Route => listen::ROUTE,
            Section::Match => listen::MATCH,
            Section::Redirect => listen::REDIRECT,
            Section::Respond => listen::RESPOND,
            Section::Headers => listen::HEADERS,
            Section::Backend => backend::BACKEND,
            Section::Balance => balance::BALANCE,
            Section::Hash => balance::HASH,
            Section::Cookie => balance::COOKIE,
            Section::Server => backend::SERVER,
            Section::Policy => policy::POLICY,
            Section::ScenarioFile => scenario::FILE,
            Section::Scenario => scenario::SCENARIO,
            Section::Costs => scenario::COSTS,
            Section::Machine => scenario::MACHINE,
            Section::Span => scenario::SPAN,
            Section::Traffic => scenario::TRAFFIC,
            Section::Keys => scenario::KEYS,
            Section::Scripted => scenario::SCRIPTED,
            Section::Event => scenario::EVENT,
            Section::Show => scenario::SHOW,
            Section::Expect => scenario::EXPECT,
        }
    }

    /// Keys of which exactly one has to be given; none of most sections.
    pub fn one_of(self) -> &'static [&'static str] {
        match self {
            Section::Route => &["backend", "redirect", "respond", "deny"],
            Section::Redirect => &["location", "prefix", "scheme"],
            Section::Balance => &["random", "hash", "policy"],
            Section::Hash => &["header", "cookie", "query", "path-prefix", "path-part"],
            _ => &[],
        }
    }

    /// The key of that name, built or not.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        self.keys().iter().find(|key| key.name == name)
    }
}

/// One key.
#[derive(Clone, Debug)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value looks like.
    pub form: Form,
    /// What holds when it is not given.
    pub default: Default,
    /// Clause of the behaviour or of a standard, or nothing.
    pub clause: &'static str,
    /// Whether its mechanism exists.
    pub state: State,
    /// One sentence for the manual.
    pub about: &'static str,
}

/// Whether the mechanism behind a key or word exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It does.
    Built,
    /// It will; refused until then.
    NotYet,
}

/// What a value looks like.
#[derive(Clone, Debug)]
pub enum Form {
    /// A duration with its unit.
    Duration(RangeInclusive<Duration>),
    /// A size in bytes.
    Size(RangeInclusive<u64>),
    /// A whole number.
    Integer(RangeInclusive<u64>),
    /// A whole number that may be negative.
    Signed(RangeInclusive<i64>),
    /// A duration that may be negative, in µs.
    Offset(RangeInclusive<i64>),
    /// Whole percent.
    Percent(RangeInclusive<u64>),
    /// A percentage with up to four decimals.
    Share,
    /// `true` or `false`.
    Flag,
    /// One of some words.
    Choice(&'static [Word]),
    /// A string; the text says of what.
    Text(&'static str),
    /// A string or a list of strings; the text says of what.
    Texts(&'static str),
    /// One of some words, or a list of them.
    Words(&'static [Word]),
    /// A list of whole numbers.
    Integers(RangeInclusive<u64>),
    /// A table with keys of its own.
    Table(Section),
    /// Tables in order, `[[…]]`, with keys of their own.
    Tables(Section),
    /// Tables by name, `[….NAME]`, with keys of their own.
    Named(Section),
    /// Header names with their values.
    Fields,
    /// Anything else; the text says what, and the builder of the section reads it as any of these.
    Other(&'static str, &'static [Shape]),
}

/// One of the ways in which a value may be written that has no form of its own.
#[derive(Clone, Debug)]
pub enum Shape {
    /// As if this were its form.
    As(Form),
    /// A list of what has one of these forms: at least one, at most so many.
    List(&'static [Form], usize),
    /// A table with these keys of a section and no others.
    Part(Section, &'static [&'static str]),
    /// A table of strings under names of the operator's own, at most so many.
    Strings(usize),
    /// A table that means something to somebody else.
    Table,
}

/// A word that a choice offers.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// As written in the file.
    pub text: &'static str,
    /// Whether its mechanism exists.
    pub state: State,
}

/// What holds when a key is not given.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// It has to be given.
    Required,
    /// This duration.
    Duration(Duration),
    /// So many bytes.
    Size(u64),
    /// This number, or so many percent.
    Integer(u64),
    /// This flag.
    Flag(bool),
    /// This word.
    Word(&'static str),
    /// What the text says; no value of its own.
    Said(&'static str),
}

impl Default {
    /// As the manual prints it.
    pub fn show(self) -> String {
        match self {
            Default::Required => "required".into(),
            Default::Duration(value) => format!("`\"{}\"`", units::show_duration(value)),
            Default::Size(value) => format!("`\"{}\"`", units::show_size(value)),
            Default::Integer(value) => format!("`{value}`"),
            Default::Flag(value) => format!("`{value}`"),
            Default::Word(word) => format!("`\"{word}\"`"),
            Default::Said(text) => text.into(),
        }
    }
}

/// Sections that have a built key of this name, for "belongs to".
pub fn homes(name: &str) -> impl Iterator<Item = Section> {
    SECTIONS
        .into_iter()
        .filter(move |section| section.key(name).is_some())
}

// ---- how the tables beside this file write an entry -----------------------------------------------------------

const fn built(text: &'static str) -> Word {
    Word {
        text,
        state: State::Built,
    }
}

const fn key(name: &'static str, form: Form, default: Default, about: &'static str) -> Key {
    Key {
        name,
        form,
        default,
        clause: "",
        state: State::Built,
        about,
    }
}

/// A key whose mechanism does not exist yet.
const fn not_yet(name: &'static str, about: &'static str) -> Key {
    Key {
        name,
        form: Form::Other("", &[]),
        default: Default::Said(""),
        clause: "",
        state: State::NotYet,
        about,
    }
}

impl Key {
    const fn clause(mut self, clause: &'static str) -> Key {
        self.clause = clause;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain() {
        for section in SECTIONS {
            for (at, key) in section.keys().iter().enumerate() {
                assert_eq!(near::plain(key.name), key.name);
                assert!(
                    section.keys()[..at].iter().all(|other| other.name != key.name),
                    "{}",
                    key.name
                );
                assert!(key.about.ends_with('.'), "{}: the sentence has no end", key.name);
            }
        }
    }
}
