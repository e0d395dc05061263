//! RFC 9110 §6.2: the text that a head is made of.

use std::fmt;

/// The first allocation, in bytes: enough for the head of a browser's request.
const FIRST_BYTES: usize = 1024;

/// The length of a block of which [the front](Text::push_front) is appended, in bytes.
pub const SHORT_BYTES: usize = 16;

/// Bytes that are appended, and emptied all at once.
///
/// The block stays initialized beyond what is used, so that a decoder writes into it without clearing it first.
#[derive(Default)]
pub struct Text {
    block: Vec<u8>,
    used: usize,
}

impl Text {
    /// The number of bytes appended since the text was empty.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Returns whether nothing was appended.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns what was appended.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.block[..self.used]
    }

    /// The same to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block[..self.used]
    }

    /// Makes room for `more` bytes: exactly so much, where a text that grows takes more than it needs.
    pub(crate) fn reserve(&mut self, more: usize) {
        let needed = self.used + more;
        if self.block.len() < needed {
            self.block.reserve_exact(needed - self.block.len());
            self.block.resize(needed, 0);
        }
    }

    /// Appends a copy of `bytes`.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        let Some(room) = self.block.get_mut(self.used..end) else {
            return self.push_growing(bytes);
        };
        room.copy_from_slice(bytes);
        self.used = end;
    }

    /// Appends the first `len` bytes of a block, which is faster than to copy a slice of any length.
    #[inline]
    pub fn push_front(&mut self, block: &[u8; SHORT_BYTES], len: usize) {
        let Some(room) = self.block.get_mut(self.used..self.used + SHORT_BYTES) else {
            return self.push_growing(&block[..len]);
        };
        room.copy_from_slice(block);
        self.used += len;
    }

    /// Appends what `write` puts at the front of at least `room` bytes: it returns how many those are.
    ///
    /// # Errors
    ///
    /// What `write` returns. Nothing is appended then.
    #[inline]
    pub fn write<E>(
        &mut self,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        if self.used + room > self.block.len() {
            self.grow(self.used + room);
        }
        self.used += write(&mut self.block[self.used..])?;
        Ok(())
    }

    /// Keeps the first `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        debug_assert!(len <= self.used, "a text does not grow by being cut");
        self.used = len;
    }

    /// The allocated memory, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.block.capacity()
    }

    #[cold]
    fn push_growing(&mut self, bytes: &[u8]) {
        self.grow(self.used + bytes.len());
        self.push(bytes);
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        let doubled = (self.block.len() * 2).max(FIRST_BYTES).max(needed.next_power_of_two());
        self.block.reserve_exact(doubled - self.block.len());
        self.block.resize(doubled, 0);
    }
}

impl Clone for Text {
    fn clone(&self) -> Self {
        Self { block: self.bytes().to_vec(), used: self.used }
    }

    fn clone_from(&mut self, other: &Self) {
        self.used = 0;
        self.push(other.bytes());
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_appended_and_read_back() {
        let mut text = Text::default();
        assert_eq!((text.allocated_bytes(), text.is_empty()), (0, true));
        text.push(b"one");
        let write = |room: &mut [u8]| {
            assert!(room.len() >= 2000);
            room[..3].copy_from_slice(b"two");
            Ok::<_, ()>(3)
        };
        text.write(2000, write).unwrap();
        assert_eq!(text.write(10, |_| Err("refused")), Err("refused"));
        assert_eq!(text.bytes(), b"onetwo");
        assert_eq!(text.clone().bytes(), b"onetwo");
        let mut short = Text::default();
        short.push_front(b"sixteen bytes...", 7);
        short.push_front(b"0123456789abcdef", 16);
        short.push_front(b"................", 0);
        assert_eq!(short.bytes(), b"sixteen0123456789abcdef");
        text.truncate(2);
        assert_eq!((text.bytes(), text.len()), (&b"on"[..], 2));
        assert_eq!(format!("{text:?}"), "\"on\"");
    }
}
