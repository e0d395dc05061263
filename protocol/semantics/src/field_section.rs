//! RFC 9113 §8.2, RFC 9114 §4.2: what compressed field lines are decoded into.

use crate::{NameKind, Text};

/// Size that a field counts for beyond its name and value, in bytes (RFC 7541 §4.1, RFC 9113 §6.5.2).
pub const FIELD_OVERHEAD: usize = 32;

/// Facts about a field, as a set of bits. None: it is valid and is to be kept as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note(u8);

impl Note {
    /// Nothing is to be done but to keep the field.
    pub const PLAIN: Self = Self(0);
    /// The field means something to the section that takes it.
    pub const SPECIAL: Self = Self(1);
    /// The value is right for what it means, and so may be a field's.
    pub const CHECKED: Self = Self(1 << 1);
    /// The peer forbids to put the field into a table (RFC 7541 §6.2.3).
    pub const NEVER_INDEXED: Self = Self(1 << 2);
    /// The name is not a token in lower case, or begins with a colon and is not a pseudo-field's.
    pub const NAME_INVALID: Self = Self(1 << 3);
    /// The value may not be a field's ([`is_field_value`](crate::is_field_value)).
    pub const VALUE_INVALID: Self = Self(1 << 4);

    /// Both sets of bits.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set of bits where it `holds`, else none.
    #[inline]
    #[must_use]
    pub const fn when(self, holds: bool) -> Self {
        Self(if holds { self.0 } else { 0 })
    }

    /// Returns whether all of these bits are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those of the bits that `other` has, too.
    #[inline]
    #[must_use]
    pub const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether name and value may be sent.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 & (Self::NAME_INVALID.0 | Self::VALUE_INVALID.0) == 0
    }
}

/// A field that was appended to the text of a section.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// How the name is known.
    pub kind: NameKind,
    /// Facts about the field.
    pub note: Note,
    /// Start of the name in the text; there is none of it there unless the kind is [`NameKind::Other`].
    pub start: usize,
    /// Start of the value in the text.
    pub value: usize,
    /// End of the value.
    pub end: usize,
}

/// The target of a header block's decoder: fields one after the other, each copied once.
pub trait FieldSection {
    /// Returns what a field with this name and value means to the section: [`Note::SPECIAL`] and [`Note::CHECKED`]. Kept in
    /// the table with each entry, so that it is found out once.
    fn note(kind: NameKind, value: &[u8]) -> Note;

    /// Returns where names and values are appended.
    fn text(&mut self) -> &mut Text;

    /// Counts fields whose names and values take so many bytes together, with [32](FIELD_OVERHEAD) for each. False: one
    /// is not to be kept, and must not be appended to the text; of several none was counted, and each is to be counted
    /// for itself.
    fn counts(&mut self, bytes: usize, fields: usize) -> bool;

    /// Takes a field that was appended. Fields that were counted together are appended together, and taken in their order.
    fn take(&mut self, line: Line);
}
