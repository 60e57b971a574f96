//! A writer for HTML and SVG that escapes everything it is given.

use std::fmt::Display;

/// Attributes of an element: names are ours, values may come from anywhere.
pub type Attributes<'a> = &'a [(&'static str, &'a dyn Display)];

/// Markup under construction. Names of elements and attributes are literals of this program; every
/// text and every attribute value is escaped, so that no name from a file can become markup.
#[derive(Debug, Default)]
pub struct Markup {
    text: String,
    open: Vec<&'static str>,
}

impl Markup {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an element; [`Markup::close`] ends it.
    pub fn open(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.tag(name, attributes);
        self.text.push('>');
        self.open.push(name);
    }

    /// Ends the element opened last.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str("</");
            self.text.push_str(name);
            self.text.push('>');
            if !matches!(name, "tspan" | "span" | "b" | "code" | "a" | "td" | "th") {
                self.text.push('\n');
            }
        }
    }

    /// An element with content, closed on return.
    pub fn within(
        &mut self,
        name: &'static str,
        attributes: Attributes<'_>,
        content: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        content(self);
        self.close();
    }

    /// An element with text.
    pub fn element(&mut self, name: &'static str, attributes: Attributes<'_>, text: &str) {
        self.within(name, attributes, |markup| markup.text(text));
    }

    /// An element without content: a shape of SVG or a void element of HTML.
    pub fn leaf(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.tag(name, attributes);
        self.text.push_str("/>\n");
    }

    /// Escaped text.
    pub fn text(&mut self, text: &str) {
        escape_into(&mut self.text, text);
    }

    /// Text of this program that is markup already, such as a style sheet.
    pub(crate) fn trusted(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    /// The markup, with every open element closed.
    #[must_use]
    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn tag(&mut self, name: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(name);
        for (key, value) in attributes {
            self.text.push(' ');
            self.text.push_str(key);
            self.text.push_str("=\"");
            escape_into(&mut self.text, &value.to_string());
            self.text.push('"');
        }
    }
}

/// Escapes for text and quoted attributes of HTML and XML. Characters XML cannot hold become
/// U+FFFD.
fn escape_into(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Markup;

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut markup = Markup::new();
        markup.open("g", &[("class", &"a\"b<c>'&")]);
        markup.text("</g><script>\u{0}\u{1b}\u{ffff}&amp;");
        assert_eq!(
            markup.finish(),
            "<g class=\"a&quot;b&lt;c&gt;&#39;&amp;\">&lt;/g&gt;&lt;script&gt;\u{fffd}\u{fffd}\u{fffd}&amp;amp;</g>\n"
        );
    }

    #[test]
    fn open_elements_are_closed_in_order() {
        let mut markup = Markup::new();
        markup.open("svg", &[]);
        markup.open("g", &[]);
        markup.leaf("path", &[("d", &"M0 0")]);
        assert_eq!(markup.finish(), "<svg><g><path d=\"M0 0\"/>\n</g>\n</svg>\n");
    }
}
