//! RFC 9204 §2.2, §3.2, §4.5: from an encoded field section to field lines.

use bolide_hpack::table::{Entry, Table};
use bolide_hpack::{Error as Fault, integer, string};
use bolide_semantics::{FieldSection, NameKind, Note, Text, is_field_value};

use crate::limits::{BLOCKED_STREAMS_COUNT, TABLE_BYTES};
use crate::static_table::ENTRIES;

mod instructions;
mod section;

/// Result of decoding a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// All of it has been taken.
    Whole,
    /// It refers to entries that have not come: it can be decoded once the table has had so many
    /// ([`Decoder::is_ready`]). Nothing has been taken.
    Blocked(u64),
}

/// Decodes the field sections of one direction of a connection.
#[derive(Debug)]
pub struct Decoder {
    /// Entries with what is known of them.
    table: Table<Note>,
    /// Entries ever inserted.
    inserted: u64,
    /// How many of them the peer's encoder has been told of.
    told: u64,
    /// Size that our SETTINGS_QPACK_MAX_TABLE_CAPACITY allows, in bytes.
    capacity_max: u32,
    /// Streams that are blocked, and how many may be.
    blocked: u32,
    blocked_max: u32,
    /// Instructions since the last section that referred to the table.
    instructions: u32,
    /// An instruction of which a part has come.
    partial: Vec<u8>,
    /// Buffer in which an entry is put together, and how much of that is a name that was copied.
    scratch: Text,
    scratch_name_len: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(TABLE_BYTES, BLOCKED_STREAMS_COUNT)
    }
}

impl Decoder {
    /// A decoder that has announced so much table, at most 65,535 bytes, and so many blocked streams.
    #[must_use]
    pub fn new(capacity_max: u32, blocked_max: u32) -> Self {
        Self {
            table: Table::new(0),
            inserted: 0,
            told: 0,
            capacity_max: capacity_max.min(bolide_hpack::limits::TABLE_CEILING_BYTES),
            blocked: 0,
            blocked_max,
            instructions: 0,
            partial: Vec::new(),
            scratch: Text::default(),
            scratch_name_len: 0,
        }
    }

    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY, in bytes.
    #[must_use]
    pub fn capacity_max(&self) -> u32 {
        self.capacity_max
    }

    /// SETTINGS_QPACK_BLOCKED_STREAMS.
    #[must_use]
    pub fn blocked_max(&self) -> u32 {
        self.blocked_max
    }

    /// Returns whether a section that was blocked until the table has had so many entries can be decoded.
    #[must_use]
    pub fn is_ready(&self, required: u64) -> bool {
        required <= self.inserted
    }

    /// A stream that was [blocked](Decoded::Blocked) is so no more: its section is decoded next, or the stream has ended.
    pub fn unblock(&mut self) {
        self.blocked = self.blocked.saturating_sub(1);
    }

    /// Appends a Stream Cancellation (RFC 9204 §4.4.2): no more of this stream will be decoded.
    pub fn cancel(&self, stream: u64, out: &mut Vec<u8>) {
        if self.capacity_max > 0 {
            integer::encode(stream as usize, 6, 0x40, out);
        }
    }

    /// Appends an Insert Count Increment (RFC 9204 §4.4.3), if the peer's encoder has not been told of an entry. To be
    /// called after instructions have been read.
    pub fn increment(&mut self, out: &mut Vec<u8>) {
        if self.told < self.inserted {
            integer::encode((self.inserted - self.told) as usize, 6, 0, out);
            self.told = self.inserted;
        }
    }

    /// Entries ever inserted.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The size of the table as RFC 9204 §3.2.1 counts it, in bytes.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.size() as usize
    }

    /// The memory that the decoder holds outside itself, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.table.allocated_bytes() + self.partial.capacity() + self.scratch.allocated_bytes()
    }

    /// The entry with this absolute index (RFC 9204 §3.2.4), unless it has left or never was.
    fn entry(&self, absolute: u64) -> Option<&Entry<Note>> {
        self.table.by_age(self.age(absolute)?)
    }

    /// How many entries were inserted after the one with this absolute index.
    fn age(&self, absolute: u64) -> Option<usize> {
        let age = self.inserted.checked_sub(absolute)?.checked_sub(1)?;
        usize::try_from(age).ok()
    }
}

/// Returns what is known of a line with this name and value.
#[inline]
fn note_of<S: FieldSection>(kind: NameKind, of_name: Note, value: &[u8]) -> Note {
    let note = of_name.and(S::note(kind, value));
    if note.has(Note::CHECKED) {
        return note;
    }
    note.and(Note::VALUE_INVALID.when(!is_field_value(value)))
}

/// Reads the name of a line that is sent as a string: it is appended to the text unless its kind has it.
fn new_name(
    bytes: &[u8],
    at: &mut usize,
    prefix: u32,
    text: &mut Text,
) -> Result<(NameKind, Note), Fault> {
    let start = text.len();
    string::read(bytes, at, prefix, text)?;
    let name = &text.bytes()[start..];
    let kind = NameKind::of(name);
    if kind == NameKind::Other {
        return Ok((kind, Note::NAME_INVALID.when(!string::is_lower_token(name))));
    }
    text.truncate(start);
    Ok((kind, Note::PLAIN))
}

/// The name of an entry of the static table, which is appended to the text unless its kind has it.
fn static_name(index: usize, text: &mut Text) -> Option<NameKind> {
    let (kind, name, _) = ENTRIES.get(index)?;
    if *kind == NameKind::Other {
        text.push(name.as_bytes());
    }
    Some(*kind)
}
