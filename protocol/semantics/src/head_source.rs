//! RFC 9112 §2.2: the octets that a head was read from, kept for who reads the same again.

use crate::{HeadMark, HeadMarks};

/// Heads in a row that were others, after which only one in as many is kept.
const OTHERS_COUNT: u32 = 8;

/// What a parser knows of a head beside what the head says. It means something to that parser alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceNote(pub [u64; 2]);

/// The octets of the head that stands, if its parser has kept them.
#[derive(Debug, Default)]
pub(crate) struct Source {
    octets: Vec<u8>,
    note: SourceNote,
    marks: HeadMarks,
    /// Heads that were others since one came again.
    others: u32,
}

/// A copy of a head is for who keeps it, and nobody reads into that.
impl Clone for Source {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Source {
    /// The head says something else from here on.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
    }

    /// Whether `unread` begins with these octets: how many they are, and what was noted.
    #[inline]
    pub(crate) fn begins(&mut self, unread: &[u8]) -> Option<(usize, SourceNote)> {
        let length = self.octets.len();
        if length == 0 || unread.get(..length)? != self.octets {
            return None;
        }
        self.others = 0;
        Some((length, self.note))
    }

    /// Keeps the octets that the head was just read from, unless heads hardly ever repeat: a new mark for it.
    #[inline]
    pub(crate) fn keep(&mut self, octets: &[u8], note: SourceNote) -> Option<HeadMark> {
        self.others = self.others.wrapping_add(1);
        if self.others > OTHERS_COUNT && !self.others.is_multiple_of(OTHERS_COUNT) {
            return None;
        }
        self.octets.clear();
        self.octets.extend_from_slice(octets);
        self.note = note;
        Some(self.marks.make())
    }

    /// The memory that it holds, in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.octets.capacity()
    }
}
