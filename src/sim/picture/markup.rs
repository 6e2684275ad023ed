//! How does a text get into a page without breaking it?
//!
//! Elements are written by calls that also end them, and all that lies between them, or in an attribute, is escaped. What
//! comes out is HTML and XML at once. Titles and names are anybody's: what would turn the direction of the text after it,
//! or may not stand in XML at all, is replaced.

use std::fmt::{self, Display, Write};

/// Names and values.
pub(super) type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// What has been written.
#[derive(Default)]
pub(super) struct Markup {
    text: String,
}

impl Markup {
    /// An element with others in it.
    pub(super) fn within(&mut self, name: &str, attributes: Attributes, contents: impl FnOnce(&mut Markup)) {
        self.begin(name, attributes);
        self.text.push_str(">\n");
        contents(self);
        self.end(name);
    }

    /// An element with a text in it.
    pub(super) fn leaf(&mut self, name: &str, attributes: Attributes, text: &dyn Display) {
        self.begin(name, attributes);
        self.text.push('>');
        self.escaped(text);
        self.end(name);
    }

    /// An element with nothing in it.
    pub(super) fn empty(&mut self, name: &str, attributes: Attributes) {
        self.begin(name, attributes);
        self.text.push_str("/>\n");
    }

    /// A text between elements.
    pub(super) fn words(&mut self, text: &dyn Display) {
        self.escaped(text);
    }

    /// Our own text, as it is.
    pub(super) fn verbatim(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, name: &str, attributes: Attributes) {
        self.text.push('<');
        self.text.push_str(name);
        for (attribute, value) in attributes {
            self.text.push(' ');
            self.text.push_str(attribute);
            self.text.push_str("=\"");
            self.escaped(value);
            self.text.push('"');
        }
    }

    fn end(&mut self, name: &str) {
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push_str(">\n");
    }

    fn escaped(&mut self, text: &dyn Display) {
        // A String takes whatever it is given.
        let _ = write!(Escaping(&mut self.text), "{text}");
    }
}

struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' => self.0.push('\n'),
                '\t' | '\r' => self.0.push(' '),
                it if it.is_control() || turns(it) || matches!(it, '\u{fffe}' | '\u{ffff}') => {
                    self.0.push(char::REPLACEMENT_CHARACTER);
                }
                it => self.0.push(it),
            }
        }
        Ok(())
    }
}

/// Whether it changes the direction in which what follows is shown.
fn turns(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(of: &str) -> String {
        let mut markup = Markup::default();
        markup.words(&of);
        markup.finish()
    }

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(
            text("a <b> & \"c\" 'd'"),
            "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;"
        );
        assert_eq!(text("]]>&lt;"), "]]&gt;&amp;lt;");
    }

    #[test]
    fn what_may_not_stand_in_xml_or_turns_the_text_is_replaced() {
        assert_eq!(
            text("\0\u{1b}\u{fffe}\u{202e}x"),
            "\u{fffd}\u{fffd}\u{fffd}\u{fffd}x"
        );
        assert_eq!(text("a\tb\rc\nd é 水"), "a b c\nd é 水");
    }

    #[test]
    fn elements_end_where_they_began() {
        let mut markup = Markup::default();
        markup.within("g", &[("class", &"a\"b"), ("x", &12)], |inside| {
            inside.leaf("text", &[], &"<");
            inside.empty("path", &[("d", &"M0 0")]);
        });
        let expected = "<g class=\"a&quot;b\" x=\"12\">\n<text>&lt;</text>\n<path d=\"M0 0\"/>\n</g>\n";
        assert_eq!(markup.finish(), expected);
    }
}
