//! RFC 7541 §3, §6: from a header block to field lines.

use bolide_semantics::{Text, is_field_value};

use crate::limits::{SIZE_UPDATES_COUNT, TABLE_BYTES, TABLE_CEILING_BYTES};
use crate::static_table::{ENTRIES, LENGTH};
use crate::table::{Table, size_of_line};
use crate::{Error, FieldSection, Line, NameKind, Note, integer, string};

/// The index of the newest entry (RFC 7541 §2.3.3).
const FIRST: usize = LENGTH + 1;

/// Decodes the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    /// Entries with what is known of them.
    table: Table<Note>,
    /// Size that our acknowledged SETTINGS_HEADER_TABLE_SIZE allows.
    allowed: u32,
    /// The least that was allowed since the last block, if that was a reduction: the next block must
    /// begin with an update that is not above it.
    required: Option<u32>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(TABLE_BYTES as usize)
    }
}

impl Decoder {
    /// A decoder whose peer may use `table_bytes_max` bytes of table: 4096 at the beginning of a
    /// connection, whatever our first SETTINGS say (RFC 9113 §6.5.3). At most 65 535. Owns no memory
    /// until an entry is inserted.
    #[must_use]
    pub fn new(table_bytes_max: usize) -> Self {
        let allowed = within_ceiling(table_bytes_max);
        Self { table: Table::new(allowed), allowed, required: None }
    }

    /// Decodes one whole header block, field by field into `section`, each of which must hold sections of one type:
    /// what is known of an entry is kept with it.
    ///
    /// How large a section may become is for `section` to [count](FieldSection::counts): one byte of a block can
    /// stand for a field as large as the table.
    ///
    /// # Errors
    /// The block breaks RFC 7541: a connection error of type `COMPRESSION_ERROR`. Fields before the
    /// fault have been taken. The decoder must not be used again.
    #[inline]
    pub fn decode<S: FieldSection>(&mut self, block: &[u8], section: &mut S) -> Result<(), Error> {
        let mut at = self.size_updates(block)?;
        while let Some(&first) = block.get(at) {
            if first & 0x80 != 0 {
                let index = integer::decode(block, &mut at, 7)?;
                match index.checked_sub(FIRST) {
                    None => from_static(index, section)?,
                    Some(age) => at += self.indexed(age, &block[at - 1..], section)?,
                }
            } else {
                at = self.literal(block, at, first, section)?;
            }
        }
        Ok(())
    }

    /// Our SETTINGS_HEADER_TABLE_SIZE, at most 65 535, was acknowledged. If that is less than what
    /// the peer's encoder uses, its next block must begin with a size update (RFC 9113 §4.3.1).
    pub fn set_table_bytes_max(&mut self, bytes: usize) {
        let allowed = within_ceiling(bytes);
        if allowed == self.allowed && self.required.is_none() {
            return;
        }
        self.allowed = allowed;
        if self.allowed < self.table.max() {
            self.required = Some(self.required.unwrap_or(self.allowed).min(self.allowed));
        }
    }

    /// The memory that the decoder holds outside itself, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.table.allocated_bytes()
    }

    /// The size of the table as RFC 7541 §4.1 counts it, in bytes.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.size() as usize
    }

    /// Reads the size updates at the beginning of a block (RFC 7541 §4.2, §6.3) and returns where
    /// they end.
    #[inline]
    fn size_updates(&mut self, block: &[u8]) -> Result<usize, Error> {
        let (mut at, mut updates) = (0, 0);
        while block.get(at).is_some_and(|first| first & 0xe0 == 0x20) {
            updates += 1;
            if updates > SIZE_UPDATES_COUNT {
                return Err(Error::TooManySizeUpdates);
            }
            let size = integer::decode(block, &mut at, 5)?;
            if size > self.allowed as usize {
                return Err(Error::SizeUpdateTooLarge);
            }
            if self.required.take().is_some_and(|least| size > least as usize) {
                return Err(Error::MissingSizeUpdate);
            }
            self.table.set_max(size as u32);
            while self.table.is_short_of(0) {
                self.table.evict();
            }
            if size == 0 {
                self.table.release();
            }
        }
        if self.required.is_some() { Err(Error::MissingSizeUpdate) } else { Ok(at) }
    }

    /// RFC 7541 §6.1: a field that is in the table, and those after it whose entries follow its entry: a peer that
    /// repeats its fields names them in the order in which it inserted them. `bytes` begin with the last one of the
    /// first index. Returns how many bytes beyond that were used.
    #[inline]
    fn indexed<S: FieldSection>(
        &self,
        age: usize,
        bytes: &[u8],
        section: &mut S,
    ) -> Result<usize, Error> {
        const NEWEST: u8 = 0x80 + FIRST as u8;
        let follows =
            |pair: &&[u8]| pair[1] >= NEWEST && u16::from(pair[0]) == u16::from(pair[1]) + 1;
        let more = bytes.windows(2).take_while(follows).count();
        self.table.copy(age, 1 + more, section).ok_or(Error::InvalidIndex)?;
        Ok(more)
    }

    /// RFC 7541 §6.2: a literal, with or without indexing, at `at`. Returns where it ends.
    #[inline(never)]
    fn literal<S: FieldSection>(
        &mut self,
        block: &[u8],
        mut at: usize,
        first: u8,
        section: &mut S,
    ) -> Result<usize, Error> {
        let inserts = first & 0x40 != 0;
        if !inserts && first & 0x20 != 0 {
            return Err(Error::MisplacedSizeUpdate);
        }
        let text = section.text();
        let start = text.len();
        let (kind, mut note) = self.name(block, &mut at, if inserts { 6 } else { 4 }, text)?;
        let middle = text.len();
        string::read(block, &mut at, 7, text)?;
        let (name, value) = text.bytes()[start..].split_at(middle - start);
        note = note.and(S::note(kind, value));
        if !note.has(Note::CHECKED) {
            note = note.and(Note::VALUE_INVALID.when(!is_field_value(value)));
        }
        let name = kind.text().map_or(name, str::as_bytes);
        let size = size_of_line(name.len(), value.len());
        if inserts {
            insert(&mut self.table, kind, name, value, note);
        } else {
            note = note.and(Note::NEVER_INDEXED.when(first & 0x10 != 0));
        }
        if section.counts(size, 1) {
            let end = section.text().len();
            section.take(Line { kind, note, start, value: middle, end });
        } else {
            section.text().truncate(start);
        }
        Ok(at)
    }

    /// The name of a literal (RFC 7541 §6.2): an index with a prefix of `prefix` bits, or a string. It is appended to
    /// the text if its kind does not have it.
    #[inline]
    fn name(
        &self,
        block: &[u8],
        at: &mut usize,
        prefix: u32,
        text: &mut Text,
    ) -> Result<(NameKind, Note), Error> {
        let index = integer::decode(block, at, prefix)?;
        if index == 0 {
            return new_name(block, at, text);
        }
        if let Some(entry) = ENTRIES.get(index - 1) {
            return Ok((entry.kind, Note::PLAIN));
        }
        let entry = self.table.by_age(index - FIRST);
        let entry = entry.ok_or(Error::InvalidIndex)?;
        text.push(self.table.stored_name(entry).ok_or(Error::InvalidIndex)?);
        Ok((entry.kind, entry.tag.only(Note::NAME_INVALID)))
    }
}

/// RFC 7541 Appendix A: a field that every connection has.
#[inline]
fn from_static<S: FieldSection>(index: usize, section: &mut S) -> Result<(), Error> {
    let entry = ENTRIES.get(index.wrapping_sub(1)).ok_or(Error::InvalidIndex)?;
    let (kind, length) = (entry.kind, usize::from(entry.value_len));
    if section.counts(size_of_line(usize::from(entry.name_len), length), 1) {
        let text = section.text();
        let start = text.len();
        text.push_front(&entry.block, length);
        let is_whole_pseudo = matches!(kind, NameKind::Pseudo(_)) && length > 0;
        let note = if is_whole_pseudo {
            Note::SPECIAL.and(Note::CHECKED)
        } else {
            S::note(kind, entry.value())
        };
        section.take(Line { kind, note, start, value: start, end: start + length });
    }
    Ok(())
}

/// A name that is sent as a string.
fn new_name(block: &[u8], at: &mut usize, text: &mut Text) -> Result<(NameKind, Note), Error> {
    let start = text.len();
    string::read(block, at, 7, text)?;
    let name = &text.bytes()[start..];
    let kind = NameKind::of(name);
    if kind == NameKind::Other {
        return Ok((kind, Note::NAME_INVALID.when(!string::is_lower_token(name))));
    }
    text.truncate(start);
    Ok((kind, Note::PLAIN))
}

/// RFC 7541 §4.4: a field larger than the table empties it.
fn insert(table: &mut Table<Note>, kind: NameKind, name: &[u8], value: &[u8], note: Note) {
    let size = size_of_line(name.len(), value.len());
    while table.is_short_of(size) {
        if table.evict().is_none() {
            return;
        }
    }
    table.push(kind, name, value, note);
}

fn within_ceiling(bytes: usize) -> u32 {
    bytes.min(TABLE_CEILING_BYTES as usize) as u32
}

#[cfg(test)]
mod tests;
