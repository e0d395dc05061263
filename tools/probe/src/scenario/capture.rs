//! Values that a user takes from a response: a header field, a value of a JSON document (RFC 6901), or what a regular expression
//! finds.

use http::HeaderName;
use regex_lite::{Regex, RegexBuilder};

/// Of a body that something is taken from, so much is kept, in bytes (1 MiB). What lies behind is not found.
pub const KEPT_BYTES: usize = 1 << 20;

/// The longest value that is taken, in bytes.
const VALUE_BYTES: usize = 4096;

/// The largest compiled expression, in bytes.
const EXPRESSION_BYTES: usize = 1 << 20;

/// A value that is taken from a response.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Slot in which the user keeps it.
    pub slot: usize,
    /// Place of the value.
    pub place: Place,
}

/// Place of a value.
#[derive(Debug, Clone)]
pub enum Place {
    /// The value of the first field of this name.
    Field(HeaderName),
    /// A JSON pointer (RFC 6901).
    Json(String),
    /// The first group of an expression, or all that it finds if it has none.
    Pattern(Regex),
}

impl Place {
    /// Reads `header NAME`, `json /POINTER` or `regex EXPRESSION`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!("`{text}`: {why}; use `json /items/0/id`, `header etag` or `regex id=(\\d+)`")
        };
        let (kind, what) = text.split_once(' ').ok_or_else(|| wrong("says no place"))?;
        match kind {
            "header" => HeaderName::try_from(what)
                .map(Self::Field)
                .map_err(|_| wrong("is not the name of a field")),
            "json" if what.starts_with('/') => Ok(Self::Json(what.to_owned())),
            "json" => Err(wrong("a JSON pointer begins with `/`")),
            "regex" => RegexBuilder::new(what)
                .size_limit(EXPRESSION_BYTES)
                .build()
                .map(Self::Pattern)
                .map_err(|error| wrong(&format!("is not an expression: {error}"))),
            _ => Err(wrong("is of no known kind")),
        }
    }

    /// Returns whether it is in the body, not in the head.
    pub fn is_in_body(&self) -> bool {
        !matches!(self, Self::Field(_))
    }
}

impl Capture {
    /// Returns what a value is kept as, if it is not too long.
    pub fn kept(value: &str) -> Option<Box<str>> {
        (value.len() <= VALUE_BYTES).then(|| value.into())
    }

    /// Returns what is taken from a body; `None`: it is not there, or too long.
    pub fn find_in(&self, body: &[u8]) -> Option<Box<str>> {
        match &self.place {
            Place::Field(_) => None,
            Place::Json(pointer) => {
                let document: serde_json::Value = serde_json::from_slice(body).ok()?;
                match document.pointer(pointer)? {
                    serde_json::Value::String(text) => Self::kept(text),
                    serde_json::Value::Null => None,
                    other => Self::kept(&other.to_string()),
                }
            }
            Place::Pattern(pattern) => {
                let text = String::from_utf8_lossy(body);
                let found = pattern.captures(&text)?;
                Self::kept(found.get(1).or_else(|| found.get(0))?.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken(place: &str, body: &str) -> Option<String> {
        let capture = Capture { slot: 0, place: Place::parse(place).unwrap() };
        capture.find_in(body.as_bytes()).map(Into::into)
    }

    #[test]
    fn values_are_taken_from_bodies() {
        let json = r#"{"a":[{"id":7},{"id":"x/y"}],"none":null,"c/d":true}"#;
        for (place, expected) in [
            ("json /a/0/id", Some("7")),
            ("json /a/1/id", Some("x/y")),
            ("json /a/0", Some("{\"id\":7}")),
            ("json /c~1d", Some("true")),
            ("json /none", None),
            ("json /b", None),
            ("regex \"id\":(\\d+)", Some("7")),
            ("regex x.y", Some("x/y")),
            ("regex z", None),
        ] {
            assert_eq!(taken(place, json).as_deref(), expected, "{place}");
        }
        assert_eq!(taken("json /a", "no JSON"), None);
        let long = format!("\"{}\"", "x".repeat(VALUE_BYTES + 1));
        assert_eq!(taken("regex \"(x+)\"", &long), None);
        assert!(taken("regex x+\"", &long[3..]).is_some());
    }

    #[test]
    fn a_place_that_is_none_is_told_what_would_be_right() {
        for (text, why) in [
            ("token", "says no place"),
            ("json token", "begins with `/`"),
            ("header a b", "not the name of a field"),
            ("regex (", "not an expression"),
            ("xpath //a", "no known kind"),
        ] {
            let said = Place::parse(text).unwrap_err();
            assert!(said.contains(why) && said.contains("header etag"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn no_body_breaks_it(body in proptest::collection::vec(any::<u8>(), 0..80)) {
            for place in ["json /a/0", "regex a(.)?b"] {
                let capture = Capture { slot: 0, place: Place::parse(place).unwrap() };
                let _ = capture.find_in(&body);
            }
        }
    }
}
