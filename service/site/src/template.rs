//! Text with placeholders, and what it becomes for a request.

use std::fmt::Write;

use bolide_server::{TextPart, text_parts};

use crate::error::SiteError;
use crate::facts::Facts;
use crate::limits::EXPANDED_BYTES;

/// The placeholders of every template; `{1}` to `{9}` are the captures of a pattern where there is one.
pub const PLACEHOLDERS: [&str; 7] = ["scheme", "host", "path", "query", "method", "client", "user"];

/// Text with placeholders: `{scheme}`, `{host}` (without the port), `{path}` (as sent), `{query}` (with its `?`; empty
/// without one), `{method}`, `{client}` (an address; `unix` on a Unix socket), `{user}` (as authentication
/// names it; empty without), and `{1}` to `{9}` for captures. `{{` and
/// `}}` stand for braces.
///
/// It is visible ASCII, spaces and tabs; so is what a request's parts can be, so that what it becomes is always a
/// field value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Box<[Part]>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Box<str>),
    Scheme,
    Host,
    Path,
    Query,
    Method,
    Client,
    User,
    Capture(usize),
}

impl Template {
    /// Reads a template. `captures`: how many a pattern has for it.
    ///
    /// # Errors
    ///
    /// A placeholder that is not known, a capture that its pattern does not have, a single brace, or a character that no
    /// field value may have.
    pub fn parse(text: &str, captures: usize) -> Result<Self, SiteError> {
        if let Some(bad) = text.chars().find(|c| !(c.is_ascii_graphic() || matches!(c, ' ' | '\t')))
        {
            let what = format!("has {bad:?}, which a field must not have");
            return Err(SiteError::new(what));
        }
        let part = |part| match part {
            TextPart::Literal(literal) => Ok(Part::Literal(literal.into())),
            TextPart::Placeholder(name) => placeholder(name, captures),
        };
        text_parts(text)
            .map_err(SiteError::new)?
            .into_iter()
            .map(part)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns what it becomes. `None`: longer than [`EXPANDED_BYTES`].
    #[must_use]
    pub fn expand(&self, facts: &Facts<'_>, captures: &[&str]) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => text.push_str(literal),
                Part::Scheme => text.push_str(facts.scheme()),
                Part::Host => text.push_str(facts.host()),
                Part::Path => text.push_str(facts.path()),
                Part::Query => text.push_str(facts.query()),
                Part::Method => text.push_str(facts.head.method().as_str()),
                Part::Client => match facts.client {
                    // Writing to a string never fails.
                    Some(client) => drop(write!(text, "{client}")),
                    None => text.push_str("unix"),
                },
                Part::User => {
                    if let Some(user) = facts.user {
                        user.with(|name| push_name(&mut text, name));
                    }
                }
                Part::Capture(number) => {
                    text.push_str(captures.get(*number).copied().unwrap_or_default());
                }
            }
            if text.len() > EXPANDED_BYTES {
                return None;
            }
        }
        Some(text)
    }

    /// The text, where it is the same for every request.
    #[must_use]
    pub fn fixed(&self) -> Option<&str> {
        match &*self.0 {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text before the first placeholder.
    #[must_use]
    pub fn beginning(&self) -> &str {
        match self.0.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// Returns whether `{user}` is in it.
    #[must_use]
    pub fn has_user(&self) -> bool {
        self.0.contains(&Part::User)
    }

    /// Returns whether `{host}` is in it.
    #[must_use]
    pub fn has_host(&self) -> bool {
        self.0.contains(&Part::Host)
    }

    /// Returns whether it begins with `{path}`, or with `{scheme}`.
    #[must_use]
    pub fn begins_with(&self, name: &str) -> bool {
        self.0.first().is_some_and(|part| match part {
            Part::Path => name == "path",
            Part::Scheme => name == "scheme",
            _ => false,
        })
    }

    /// Returns whether the query is said: by `{query}`, or by a `?`.
    #[must_use]
    pub fn has_query(&self) -> bool {
        self.0.iter().any(|part| match part {
            Part::Query => true,
            Part::Literal(text) => text.contains('?'),
            _ => false,
        })
    }
}

/// Appends a name: what is no visible ASCII, and `%`, by its bytes as URLs write them.
fn push_name(text: &mut String, name: &str) {
    for byte in name.bytes() {
        match byte {
            b'%' | 0..=b' ' | 0x7f.. => drop(write!(text, "%{byte:02X}")),
            _ => text.push(char::from(byte)),
        }
    }
}

/// `name` is not a placeholder.
fn unknown(name: &str) -> SiteError {
    // Each begins with a letter of its own.
    let near = |known: &&&str| !name.is_empty() && known.starts_with(&name[..1]);
    let advice = match PLACEHOLDERS.iter().filter(|_| name.is_ascii()).find(near) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None => {
            let known: Vec<String> =
                PLACEHOLDERS.iter().map(|name| format!("{{{name}}}")).collect();
            format!("known are {}, and {{1}} to {{9}} with a pattern", known.join(", "))
        }
    };
    SiteError::new(format!("`{{{name}}}` is not a placeholder: {advice}"))
}

fn placeholder(name: &str, captures: usize) -> Result<Part, SiteError> {
    Ok(match name {
        "scheme" => Part::Scheme,
        "host" => Part::Host,
        "path" => Part::Path,
        "query" => Part::Query,
        "method" => Part::Method,
        "client" => Part::Client,
        "user" => Part::User,
        _ => match name.as_bytes() {
            [digit @ b'1'..=b'9'] => {
                let number = usize::from(digit - b'0');
                if number > captures {
                    let what = match captures {
                        0 => format!("has {{{name}}}, but there is no pattern with a capture"),
                        _ => format!("has {{{name}}}, but the pattern has {captures} captures"),
                    };
                    return Err(SiteError::new(what));
                }
                Part::Capture(number)
            }
            _ => return Err(unknown(name)),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::tests::{facts, head};
    use proptest::prelude::*;

    fn expanded(text: &str, target: &str, captures: &[&str]) -> Option<String> {
        let head = head("PUT", "example.org:8080", target, &[]);
        Template::parse(text, 9).unwrap().expand(&facts(&head), captures)
    }

    #[test]
    fn placeholders_become_parts_of_the_request() {
        for (text, becomes) in [
            ("https://{host}{path}{query}", "https://example.org/a%20b?c=d"),
            ("{scheme} {method} {client}", "https PUT 192.0.2.1"),
            ("{{path}} {1}{9}", "{path} one"),
            ("", ""),
        ] {
            let got = expanded(text, "/a%20b?c=d", &["all", "one"]);
            assert_eq!(got.as_deref(), Some(becomes), "{text}");
        }
        assert_eq!(expanded("{path}{query}", "/a", &[]).as_deref(), Some("/a"));
    }

    #[test]
    fn what_is_no_template_is_named() {
        for (text, said) in [
            ("{pth}", "`{pth}` is not a placeholder: did you mean `{path}`?"),
            ("{remote_address_of_the_client}", "known are {scheme}, {host}, {path}, {query}"),
            ("{}", "`{}` is not a placeholder: known are"),
            ("{path", "has a single `{`: write `{{` for a brace"),
            ("a}b", "has a single `}`: write `}}` for a brace"),
            ("a\r\nb", "has '\\r', which a field must not have"),
            ("é", "which a field must not have"),
            ("{3}", "has {3}, but the pattern has 2 captures"),
        ] {
            let told = Template::parse(text, 2).unwrap_err().to_string();
            assert!(told.contains(said), "{text}: {told}");
        }
        let told = Template::parse("{1}", 0).unwrap_err().to_string();
        assert_eq!(told, "has {1}, but there is no pattern with a capture");
    }

    #[test]
    fn a_user_cannot_break_a_field() {
        let mut text = String::new();
        push_name(&mut text, "al ice%\r\né:\x7f\"");
        assert_eq!(text, "al%20ice%25%0D%0A%C3%A9:%7F\"");
        assert_eq!(expanded("a{user}b", "/", &[]).as_deref(), Some("ab"));
        assert!(Template::parse("{user}", 0).unwrap().has_user());
    }

    #[test]
    fn template_growth_ends_at_the_limit() {
        let long = format!("/{}", "a".repeat(EXPANDED_BYTES / 2));
        assert!(expanded("{path}", &long, &[]).is_some());
        assert_eq!(expanded("{path}{path}", &long, &[]), None);
    }

    proptest! {
        #[test]
        fn what_comes_out_is_a_field_value_or_nothing(
            text in "([ -~]|\\{path\\}|\\{host\\}|\\{1\\}|\\{\\{){0,12}",
            target in "/[!-~]{0,20}",
        ) {
            if let Ok(template) = Template::parse(&text, 1) {
                let head = head("GET", "a", &target, &[]);
                let value = template.expand(&facts(&head), &["", &target]).unwrap();
                prop_assert!(bolide_server::HeaderValue::try_from(&value).is_ok());
                prop_assert!(!value.contains(['\r', '\n', '\0']));
            }
        }
    }
}
