//! RFC 9204 §4.5: fields that many responses share, in the form that they have on every connection.

use bolide_qpack::Encoder;
use bolide_semantics::{FieldName, FieldRef, LENGTH_UNKNOWN, check_fields, travels};

/// Fields of final responses, checked and encoded once: by the static table or as literals, so that they mean the same
/// whatever the tables of a connection hold.
#[derive(Debug, Clone)]
pub struct SharedFields {
    lines: Box<[u8]>,
    /// The value of a `Priority` field (RFC 9218 §5).
    priority: Option<Box<[u8]>>,
}

impl SharedFields {
    /// These fields, in this order; connection-specific ones are dropped. `None` when one of them can't be sent, or is
    /// the content's length, which each response has for itself.
    #[must_use]
    pub fn new<'a>(fields: impl Iterator<Item = FieldRef<'a>>) -> Option<Self> {
        let (mut lines, mut priority) = (Vec::new(), None);
        for field in fields {
            if check_fields(&[field]).ok()? != LENGTH_UNKNOWN {
                return None;
            }
            if field.known == Some(FieldName::Priority) {
                priority = Some(field.value.into());
            }
            if travels(&field, false) {
                Encoder::stateless(&field, &mut lines);
            }
        }
        Some(Self { lines: lines.into_boxed_slice(), priority })
    }

    /// Their part of a field section.
    #[inline]
    pub(crate) fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// The value of the `Priority` field, if there is one.
    #[inline]
    pub(crate) fn priority(&self) -> Option<&[u8]> {
        self.priority.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_frame_a_message_or_cannot_be_sent_are_not_shared() {
        let known = FieldRef::known;
        let fields = [known(FieldName::Etag, b"\"1\""), known(FieldName::Connection, b"close")];
        let shared = SharedFields::new(fields.into_iter()).unwrap();
        assert_eq!(shared.lines(), b"\x57\x03\"1\"");
        assert_eq!(shared.priority(), None);
        for other in [known(FieldName::ContentLength, b"8"), known(FieldName::Etag, b"\n")] {
            assert!(SharedFields::new([other].into_iter()).is_none(), "{other:?}");
        }
    }
}
