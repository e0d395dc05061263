//! RFC 9113 §8.1, RFC 9114 §4.1: trailers that are sent after a body that waits.

use crate::{FieldName, FieldRef};

/// Trailers that wait for a chunk to leave: header compression follows the order of sending.
#[derive(Debug, Default)]
pub struct PendingTrailers {
    text: Vec<u8>,
    /// For each line the length of its name and of its value, and whether it is sensitive.
    lines: Vec<(usize, usize, bool)>,
}

impl PendingTrailers {
    /// Copies the fields.
    #[must_use]
    pub fn new(fields: &[FieldRef<'_>]) -> Self {
        let mut trailers = Self::default();
        for field in fields {
            trailers.text.extend_from_slice(field.name.as_bytes());
            trailers.text.extend_from_slice(field.value);
            trailers.lines.push((field.name.len(), field.value.len(), field.sensitive));
        }
        trailers
    }

    /// The memory that they take, in bytes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.text.capacity() + self.lines.capacity() * size_of::<(usize, usize, bool)>()
    }

    /// The fields, in their order.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef<'_>> + Clone {
        self.lines.iter().scan(0, |position, (name, value, sensitive)| {
            let value_start = *position + name;
            let name = &self.text[*position..value_start];
            *position = value_start + value;
            Some(FieldRef {
                known: FieldName::lookup(name),
                name: std::str::from_utf8(name).unwrap_or_default(),
                value: &self.text[value_start..*position],
                sensitive: *sensitive,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_read_back_as_they_were_given() {
        let given = [
            FieldRef::known(FieldName::Etag, b"\"a\""),
            FieldRef { known: None, name: "grpc-status", value: b"0", sensitive: true },
        ];
        let trailers = PendingTrailers::new(&given);
        let back: Vec<_> = trailers.fields().collect();
        assert_eq!(back.len(), 2);
        assert_eq!((back[0].known, back[0].value), (Some(FieldName::Etag), &b"\"a\""[..]));
        assert_eq!((back[1].name, back[1].value), ("grpc-status", &b"0"[..]));
        assert!(back[1].sensitive && !back[0].sensitive);
    }
}
