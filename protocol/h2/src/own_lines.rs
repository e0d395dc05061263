//! RFC 7541 §6: field lines in the form that they have on every connection, whatever its tables hold.

use bolide_hpack::Encoder;
use bolide_semantics::FieldRef;

use crate::head_writer;
use crate::limits::REMEMBERED_HEAD_BYTES;

/// The lines of a response's head that stay out of every table, encoded once: what is of this response alone, such
/// as its `Content-Length` and `ETag`. The other lines, which many have in common, are each connection's to encode.
#[derive(Debug)]
pub struct OwnLines {
    block: Box<[u8]>,
    /// The Content-Length, if one is among them.
    length: Option<u64>,
}

impl OwnLines {
    /// Whether a line is always encoded alike.
    #[must_use]
    pub fn takes(field: &FieldRef<'_>) -> bool {
        head_writer::travels(field, false) && Encoder::fixed(field, &mut Vec::new())
    }

    /// These lines. `None` when one of them can't be sent or isn't [taken](Self::takes), or when they are long.
    #[must_use]
    pub fn new<'a>(fields: impl Iterator<Item = FieldRef<'a>> + Clone) -> Option<Self> {
        let length = head_writer::check(fields.clone()).ok()?;
        let mut block = Vec::new();
        for field in fields {
            if !head_writer::travels(&field, false) || !Encoder::fixed(&field, &mut block) {
                return None;
            }
        }
        let length = (length != crate::stream::LENGTH_UNKNOWN).then_some(length);
        (block.len() <= REMEMBERED_HEAD_BYTES).then(|| Self { block: block.into(), length })
    }

    /// Their part of a block.
    #[inline]
    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }

    /// The Content-Length among them.
    #[inline]
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use bolide_semantics::FieldName;

    use super::*;

    #[test]
    fn lines_that_would_enter_a_table_or_frame_the_message_are_not_taken() {
        let known = FieldRef::known;
        let own = [known(FieldName::Etag, b"\"1\""), known(FieldName::ContentLength, b"7")];
        let lines = OwnLines::new(own.into_iter()).unwrap();
        assert_eq!(lines.length(), Some(7));
        assert_eq!(lines.block(), b"\x0f\x13\x03\"1\"\x0f\x0d\x017");
        for other in [
            known(FieldName::Server, b"a"),
            known(FieldName::ContentLength, b"8"),
            known(FieldName::Connection, b"close"),
            known(FieldName::Etag, b"\n"),
            FieldRef { known: None, name: "x-a", value: b"1", sensitive: false },
        ] {
            let lines = own.into_iter().chain([other]);
            assert!(OwnLines::new(lines).is_none(), "{other:?}");
        }
        assert!(!OwnLines::takes(&known(FieldName::Connection, b"close")));
        let long = vec![b'#'; REMEMBERED_HEAD_BYTES];
        assert!(OwnLines::new([known(FieldName::Etag, &long)].into_iter()).is_none());
        assert_eq!(OwnLines::new(std::iter::empty()).unwrap().length(), None);
    }
}
