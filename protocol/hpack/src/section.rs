//! RFC 7541 §1.3: the field lines of a block, one by one, for tools and tests.

use bolide_semantics::{FieldSection, Line, NameKind, Note, Text};

/// One field of a block, as [`EachField`] shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodedField<'a> {
    /// How the name is known.
    pub kind: NameKind,
    /// The name as it was sent; that of a pseudo-field with its colon.
    pub name: &'a [u8],
    /// The value as it was sent.
    pub value: &'a [u8],
    /// True if the name is a token in lower case (or a pseudo-field's) and the value passes
    /// [`bolide_semantics::is_field_value`].
    pub valid: bool,
    /// True if the peer forbids to put the field into a table, here and further on
    /// (RFC 7541 §6.2.3).
    pub never_indexed: bool,
}

/// Shows each field to a function until that returns `false`: for tools and tests.
#[derive(Debug)]
pub struct EachField<F> {
    text: Text,
    show: F,
    wanted: bool,
    /// Fields that were counted and have not been taken.
    counted: usize,
}

impl<F: FnMut(DecodedField<'_>) -> bool> EachField<F> {
    /// Shows fields to this function.
    #[must_use]
    pub fn new(show: F) -> Self {
        Self { text: Text::default(), show, wanted: true, counted: 0 }
    }
}

impl<F: FnMut(DecodedField<'_>) -> bool> FieldSection for EachField<F> {
    fn note(_: NameKind, _: &[u8]) -> Note {
        Note::PLAIN
    }

    fn text(&mut self) -> &mut Text {
        &mut self.text
    }

    fn counts(&mut self, _: usize, fields: usize) -> bool {
        self.counted = fields;
        self.wanted
    }

    fn take(&mut self, Line { kind, note, start, value, end }: Line) {
        self.counted -= 1;
        if !self.wanted {
            return;
        }
        let text = self.text.bytes();
        let name = kind.text().map_or(&text[start..value], str::as_bytes);
        let (valid, never_indexed) = (note.is_valid(), note.has(Note::NEVER_INDEXED));
        let field = DecodedField { kind, name, value: &text[value..end], valid, never_indexed };
        self.wanted = (self.show)(field);
        if self.counted == 0 {
            self.text.truncate(0);
        }
    }
}
