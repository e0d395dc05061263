//! RFC 9110 §8.8.3: entity tags.

use crate::limits::ENTITY_TAGS_COUNT;

/// One entity tag, weak or strong, as it stands in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// True if it says only that representations are equivalent.
    pub weak: bool,
    /// The characters between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a value that is one tag, such as that of `ETag`.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::first(value)?;
        rest.is_empty().then_some(tag)
    }

    /// The tag that the text begins with, and what follows it.
    fn first(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        // `W` is one of the few things in HTTP that are not the same in lower case.
        let (weak, text) = match text.strip_prefix(b"W/") {
            Some(text) => (true, text),
            None => (false, text),
        };
        let text = text.strip_prefix(b"\"")?;
        let end = text.iter().position(|byte| *byte == b'"')?;
        let (opaque, rest) = text.split_at(end);
        let is_valid = |byte: &u8| matches!(byte, 0x21 | 0x23..=0x7e | 0x80..);
        opaque.iter().all(is_valid).then_some((Self { weak, opaque }, &rest[1..]))
    }

    /// Strong comparison: equal, and neither is weak (§8.8.3.2).
    #[must_use]
    pub fn is_strongly(&self, other: &EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// Weak comparison: equal but for weakness (§8.8.3.2).
    #[must_use]
    pub fn is_weakly(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }
}

/// The tags of one field line; ends at what is no tag. At most [`ENTITY_TAGS_COUNT`].
pub(crate) fn tags(line: &[u8]) -> impl Iterator<Item = EntityTag<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        while let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
        }
        let (tag, after) = EntityTag::first(rest)?;
        let after = after.trim_ascii_start();
        // Without a comma, what follows is no member of a list.
        rest = if after.starts_with(b",") { after } else { b"" };
        Some(tag)
    })
    .take(ENTITY_TAGS_COUNT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> EntityTag<'_> {
        EntityTag::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_a_tag() {
        assert_eq!(tag("\"xyzzy\""), EntityTag { weak: false, opaque: b"xyzzy" });
        assert_eq!(tag("W/\"xyzzy\""), EntityTag { weak: true, opaque: b"xyzzy" });
        assert_eq!(tag("\"\""), EntityTag { weak: false, opaque: b"" });
        for bad in ["", "xyzzy", "\"", "\"a", "w/\"a\"", "\"a b\"", "\"a\"b", "W/", "\"a\"\""] {
            assert_eq!(EntityTag::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_table_of_comparisons() {
        for (one, other, strong, weak) in [
            ("W/\"1\"", "W/\"1\"", false, true),
            ("W/\"1\"", "W/\"2\"", false, false),
            ("W/\"1\"", "\"1\"", false, true),
            ("\"1\"", "\"1\"", true, true),
        ] {
            assert_eq!(tag(one).is_strongly(&tag(other)), strong, "{one} {other}");
            assert_eq!(tag(one).is_weakly(&tag(other)), weak, "{one} {other}");
        }
    }

    #[test]
    fn lists() {
        let list = |line: &str| -> Vec<String> {
            tags(line.as_bytes())
                .map(|tag| String::from_utf8_lossy(tag.opaque).into_owned())
                .collect()
        };
        assert_eq!(list("\"a\", W/\"b\",\"c,d\" ,, \"e\""), ["a", "b", "c,d", "e"]);
        assert_eq!(list("\"a\" \"b\""), ["a"]);
        assert_eq!(list("\"a\", b, \"c\""), ["a"]);
        assert!(list(", ,").is_empty());
    }

    #[test]
    fn of_many_entity_tags_the_first_are_looked_at() {
        let line = "\"a\",".repeat(10_000);
        assert_eq!(tags(line.as_bytes()).count(), ENTITY_TAGS_COUNT);
    }
}
