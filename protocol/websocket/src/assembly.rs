//! Whole messages from their pieces.

use bolide_semantics::End;
use bytes::Bytes;

use crate::Payload;

/// Puts messages together. How large they get is the [codec's limit](crate::Limits::message_bytes).
#[derive(Debug, Default)]
pub struct Assembly {
    parts: Vec<u8>,
}

impl Assembly {
    /// Takes the next piece; the message, once it is whole.
    pub fn push(&mut self, payload: Payload, end: End) -> Option<Bytes> {
        if self.parts.is_empty() && end == End::Yes {
            return Some(payload.into_bytes());
        }
        payload.append_to(&mut self.parts);
        (end == End::Yes).then(|| std::mem::take(&mut self.parts).into())
    }

    /// The memory that a message in the making holds, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.parts.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_become_one_message() {
        let piece = |text: &'static str| Payload::plain(Bytes::from_static(text.as_bytes()));
        let mut assembly = Assembly::default();
        assert_eq!(assembly.push(piece("a"), End::Yes).unwrap(), "a");
        assert_eq!(assembly.push(piece("b"), End::No), None);
        assert_eq!(assembly.push(piece("c"), End::No), None);
        assert_eq!(assembly.push(piece(""), End::Yes).unwrap(), "bc");
        assert_eq!(assembly.push(piece(""), End::Yes).unwrap(), "");
    }
}
