//! RFC 9110 §5.5: text of a peer in lines that people read, where control characters would be orders.

use std::borrow::Cow;

/// Returns whether a terminal or an editor takes a character for an order: a control (C0, DEL, C1), or one that changes the
/// direction or the lines in which it shows what follows.
#[inline]
#[must_use]
pub fn is_terminal_order(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text in one line that says nothing to a terminal: what it takes for an order is escaped, as `\u{1b}`.
///
/// ```
/// use bolide_semantics::in_one_line;
///
/// assert_eq!(in_one_line("the server closed: \x1b[2J"), "the server closed: \\u{1b}[2J");
/// ```
#[must_use]
pub fn in_one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_terminal_order)
}

/// The same for a text of ours with peers' words in it: its line feeds stay.
#[must_use]
pub fn in_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |one| one != '\n' && is_terminal_order(one))
}

/// Text as it may stand in an element or a quoted attribute of HTML, SVG or XML.
#[must_use]
pub fn in_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        match one {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn escaped(text: &str, is_order: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_order) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 16);
    for one in text.chars() {
        if is_order(one) {
            line.extend(one.escape_unicode());
        } else {
            line.push(one);
        }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let safe = "&lt;a b=&quot;c&amp;d&#39;&quot;&gt;";
        assert_eq!(in_markup("<a b=\"c&d'\">"), safe);
        assert_eq!(in_markup("a \u{e9}"), "a \u{e9}");
    }

    #[test]
    fn orders_to_terminals_are_escaped_and_letters_are_not() {
        for plain in ["", "a b", "\u{e9}\u{4e2d}\u{1f600}", "back\\slash"] {
            assert!(matches!(in_one_line(plain), Cow::Borrowed(same) if same == plain));
        }
        let odd = "\0\t\n\r\x1b]0;x\x07\x7f\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{2028}z";
        let line = in_one_line(odd);
        assert_eq!(
            line,
            "\\u{0}\\u{9}\\u{a}\\u{d}\\u{1b}]0;x\\u{7}\\u{7f}\\u{9b}31m\\u{202e}\\u{2066}\\u{200f}\\u{61c}\\u{2028}z"
        );
        assert_eq!(in_one_line(&line), line, "twice is as once");
        assert_eq!(in_lines("a\n\x1bb\n"), "a\n\\u{1b}b\n");
    }
}
