//! RFC 7541 §3, §6: from a header block to field lines.

use bolide_semantics::{TOKEN_LOWER, is_field_value};

use crate::limits::{SIZE_UPDATES_COUNT, TABLE_BYTES, TABLE_CEILING_BYTES};
use crate::static_table::{self, ENTRIES};
use crate::table::{Table, size_of_line};
use crate::{DecodedField, Error, NameKind, huffman, integer};

/// Decodes the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table<Validity>,
    /// What our acknowledged SETTINGS_HEADER_TABLE_SIZE allows.
    allowed: u32,
    /// The least that was allowed since the last block, if that was a reduction: the next block must
    /// begin with an update that is not above it.
    required: Option<u32>,
    /// Counts what changes the meaning of blocks. 64 bits never come round.
    changes: u64,
}

/// What was found out about the parts of an entry when it was inserted.
#[derive(Debug, Clone, Copy, Default)]
struct Validity {
    name: bool,
    value: bool,
}

/// Where a string is.
#[derive(Clone, Copy)]
enum Place {
    Block(usize, usize),
    Scratch(usize, usize),
}

/// A name, and whether it is valid.
#[derive(Clone, Copy)]
struct Name {
    kind: NameKind,
    /// Nothing if `kind` has the text.
    place: Option<Place>,
    valid: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(TABLE_BYTES as usize)
    }
}

impl Decoder {
    /// A decoder whose peer may use `table_bytes_max` octets of table: 4096 at the beginning of a
    /// connection, whatever our first SETTINGS say (RFC 9113 §6.5.3). At most 65 535. Owns no memory
    /// until an entry is inserted.
    #[must_use]
    pub fn new(table_bytes_max: usize) -> Self {
        let allowed = within_ceiling(table_bytes_max);
        Self { table: Table::new(allowed), allowed, required: None, changes: 0 }
    }

    /// Decodes one whole header block and calls `field` for each line in order, until it returns
    /// `false`: the rest of the block is still decoded, since the table must stay in step, but not
    /// shown. `scratch` takes what is Huffman-coded; its content means nothing before and after.
    ///
    /// How large a section may become decoded is for `field` to watch: one octet of a block can
    /// stand for a line as large as the table.
    ///
    /// # Errors
    /// The block breaks RFC 7541: a connection error of type `COMPRESSION_ERROR`. Lines before the
    /// fault have been shown. The decoder must not be used again.
    pub fn decode<F>(
        &mut self,
        block: &[u8],
        scratch: &mut Vec<u8>,
        field: &mut F,
    ) -> Result<(), Error>
    where
        F: FnMut(DecodedField<'_>) -> bool,
    {
        let mut at = self.size_updates(block)?;
        let mut wanted = true;
        while let Some(&first) = block.get(at) {
            if first & 0x80 != 0 {
                let index = integer::decode(block, &mut at, 7)?;
                let line = self.indexed(index)?;
                wanted = wanted && field(line);
            } else if first & 0x40 != 0 {
                let name = self.name(block, &mut at, 6, scratch)?;
                let line = literal(block, &mut at, name, scratch, false)?;
                wanted = wanted && field(line.0);
                self.changes += 1;
                insert(&mut self.table, &line.0, name.valid, line.1);
            } else if first & 0x20 != 0 {
                return Err(Error::MisplacedSizeUpdate);
            } else {
                let name = self.name(block, &mut at, 4, scratch)?;
                let line = literal(block, &mut at, name, scratch, first & 0x10 != 0)?;
                wanted = wanted && field(line.0);
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
        self.changes += 1;
        if self.allowed < self.table.max() {
            self.required = Some(self.required.unwrap_or(self.allowed).min(self.allowed));
        }
    }

    /// Counts what changes the meaning of later blocks. A block that didn't change the count means
    /// the same as long as nothing else does: it needs no second decoding.
    #[inline]
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The lines that were inserted last, names and values, the newest first: all that are in the table.
    pub fn newest(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        (0..self.table.len()).map(|age| {
            let slot = self.table.slot_of(age).expect("there are as many entries");
            let entry = self.table.entry(slot);
            let (name, value) = self.table.line(entry);
            (name, value)
        })
    }

    /// The memory that the decoder holds outside itself, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.table.allocated_bytes()
    }

    /// The size of the table as RFC 7541 §4.1 counts it, in octets.
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
            self.changes += 1;
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

    /// RFC 7541 §6.1: an indexed line.
    #[inline]
    fn indexed(&self, index: usize) -> Result<DecodedField<'_>, Error> {
        if index > static_table::LENGTH {
            let slot = self.table.slot_of(index - static_table::LENGTH - 1);
            let entry = self.table.entry(slot.ok_or(Error::InvalidIndex)?);
            let (name, value) = self.table.line(entry);
            let valid = entry.tag.name & entry.tag.value;
            return Ok(DecodedField { kind: entry.kind, name, value, valid, never_indexed: false });
        }
        let (kind, value) = ENTRIES.get(index.wrapping_sub(1)).ok_or(Error::InvalidIndex)?;
        Ok(DecodedField {
            kind: *kind,
            name: kind.text().unwrap_or_default().as_bytes(),
            value: value.as_bytes(),
            valid: true,
            never_indexed: false,
        })
    }

    /// The name of a literal (RFC 7541 §6.2): an index with a prefix of `prefix` bits, or a string.
    #[inline]
    fn name(
        &self,
        block: &[u8],
        at: &mut usize,
        prefix: u32,
        scratch: &mut Vec<u8>,
    ) -> Result<Name, Error> {
        let index = integer::decode(block, at, prefix)?;
        if index == 0 {
            let place = string(block, at, scratch, 0)?;
            let text = place.text(block, scratch);
            let kind = NameKind::of(text);
            let valid = kind != NameKind::Other || is_lower_token(text);
            return Ok(Name { kind, place: Some(place), valid });
        }
        if let Some((kind, _)) = ENTRIES.get(index - 1) {
            return Ok(Name { kind: *kind, place: None, valid: true });
        }
        let slot = self.table.slot_of(index - static_table::LENGTH - 1);
        let entry = self.table.entry(slot.ok_or(Error::InvalidIndex)?);
        if entry.kind != NameKind::Other {
            return Ok(Name { kind: entry.kind, place: None, valid: entry.tag.name });
        }
        // The entry may leave when the line is inserted (RFC 7541 §4.4), so its name is copied.
        let name = self.table.line(entry).0;
        if scratch.len() < name.len() {
            scratch.resize(name.len(), 0);
        }
        scratch[..name.len()].copy_from_slice(name);
        let place = Some(Place::Scratch(0, name.len()));
        Ok(Name { kind: NameKind::Other, place, valid: entry.tag.name })
    }
}

/// The rest of a literal: its value. Returns the line, and whether the value is valid.
#[inline]
fn literal<'a>(
    block: &'a [u8],
    at: &mut usize,
    name: Name,
    scratch: &'a mut Vec<u8>,
    never_indexed: bool,
) -> Result<(DecodedField<'a>, bool), Error> {
    let free = match name.place {
        Some(Place::Scratch(_, end)) => end,
        _ => 0,
    };
    let place = string(block, at, scratch, free)?;
    let value = place.text(block, scratch);
    let text = match name.place {
        Some(place) => place.text(block, scratch),
        None => name.kind.text().unwrap_or_default().as_bytes(),
    };
    let value_valid = is_field_value(value);
    let valid = name.valid & value_valid;
    Ok((DecodedField { kind: name.kind, name: text, value, valid, never_indexed }, value_valid))
}

/// RFC 7541 §4.4: a line larger than the table empties it.
fn insert(
    table: &mut Table<Validity>,
    line: &DecodedField<'_>,
    name_valid: bool,
    value_valid: bool,
) {
    let size = size_of_line(line.name.len(), line.value.len());
    while table.is_short_of(size) {
        if table.evict().is_none() {
            return;
        }
    }
    let tag = Validity { name: name_valid, value: value_valid };
    table.push(line.kind, line.name, line.value, tag);
}

/// RFC 7541 §5.2: a string. What is Huffman-coded goes to `scratch` from `free` on.
#[inline]
fn string(
    block: &[u8],
    at: &mut usize,
    scratch: &mut Vec<u8>,
    free: usize,
) -> Result<Place, Error> {
    let coded = block.get(*at).ok_or(Error::Truncated)? & 0x80 != 0;
    let length = integer::decode(block, at, 7)?;
    let start = *at;
    let input = block[start..].get(..length).ok_or(Error::Truncated)?;
    *at += length;
    if coded {
        Ok(Place::Scratch(free, huffman::decode(input, scratch, free)?))
    } else {
        Ok(Place::Block(start, start + length))
    }
}

impl Place {
    #[inline]
    fn text<'a>(self, block: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Block(start, end) => &block[start..end],
            Self::Scratch(start, end) => &scratch[start..end],
        }
    }
}

fn is_lower_token(name: &[u8]) -> bool {
    !name.is_empty()
        && name.iter().fold(true, |ok, octet| ok & (TOKEN_LOWER[usize::from(*octet)] == *octet))
        && !name.contains(&0)
}

fn within_ceiling(bytes: usize) -> u32 {
    bytes.min(TABLE_CEILING_BYTES as usize) as u32
}

#[cfg(test)]
mod tests;
