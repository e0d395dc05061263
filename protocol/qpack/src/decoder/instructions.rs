//! RFC 9204 §3.2, §4.3: the instructions of the peer's encoder, in pieces of any size.

use bolide_hpack::huffman;
use bolide_hpack::table::size_of_line;
use bolide_hpack::{Error as Fault, integer, string};
use bolide_semantics::{FieldSection, NameKind, Note};

use super::{Decoder, new_name, note_of, static_name};
use crate::Error;
use crate::limits::INSTRUCTIONS_COUNT;

/// Memory that is kept of the block for incomplete instructions once it is empty, in bytes.
const PARTIAL_KEPT_BYTES: usize = 256;

/// An instruction that can't be dealt with as it stands.
enum Flaw {
    /// More of it is to come.
    Incomplete,
    Wrong(Error),
}

impl From<Fault> for Flaw {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Truncated => Self::Incomplete,
            Fault::InvalidHuffman => {
                wrong("a Huffman-coded string with wrong padding or an EOS symbol")
            }
            _ => wrong("an integer that is too large"),
        }
    }
}

fn wrong(what: &'static str) -> Flaw {
    Flaw::Wrong(Error::encoder_stream(what))
}

impl Decoder {
    /// Reads what came on the peer's encoder stream, in pieces of any size. Sections that were blocked may be ready
    /// then, and an [increment](Decoder::increment) may be due.
    ///
    /// # Errors
    ///
    /// Of kind [`EncoderStream`](crate::ErrorKind::EncoderStream).
    pub fn read_instructions<S: FieldSection>(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.partial.is_empty() {
            let read = self.instructions::<S>(bytes)?;
            self.partial.extend_from_slice(&bytes[read..]);
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let read = self.instructions::<S>(&whole)?;
        if read == whole.len() && whole.capacity() > PARTIAL_KEPT_BYTES {
            return Ok(());
        }
        whole.drain(..read);
        self.partial = whole;
        Ok(())
    }

    /// Deals with every whole instruction and returns where the last one ends.
    fn instructions<S: FieldSection>(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut at = 0;
        while let Some(first) = bytes.get(at) {
            match self.instruction::<S>(&bytes[at..], *first) {
                Ok(length) => at += length,
                Err(Flaw::Incomplete) => break,
                Err(Flaw::Wrong(error)) => return Err(error),
            }
            self.instructions += 1;
            if self.instructions > INSTRUCTIONS_COUNT {
                return Err(Error::encoder_stream("too many instructions that no section uses"));
            }
        }
        Ok(at)
    }

    /// Deals with one instruction and returns its length.
    fn instruction<S: FieldSection>(&mut self, bytes: &[u8], first: u8) -> Result<usize, Flaw> {
        let mut at = 0;
        if first & 0x80 != 0 {
            // Insert with Name Reference.
            let index = integer::decode(bytes, &mut at, 6)?;
            self.check_length(bytes, at, 7)?;
            self.scratch.truncate(0);
            let (kind, note) = if first & 0x40 != 0 {
                let kind = static_name(index, &mut self.scratch);
                let what = "a name that the static table does not have";
                (kind.ok_or_else(|| wrong(what))?, Note::PLAIN)
            } else {
                self.copy(index, false)?
            };
            self.insert::<S>(bytes, at, kind, note)
        } else if first & 0x40 != 0 {
            // Insert with Literal Name. Its strings are decoded when both are there.
            self.check_length(bytes, 0, 5)?;
            let mut value = 0;
            let length = integer::decode(bytes, &mut value, 5)?;
            value += length;
            self.check_length(bytes, value, 7)?;
            self.scratch.truncate(0);
            let (kind, note) = new_name(bytes, &mut at, 5, &mut self.scratch)?;
            self.insert::<S>(bytes, at, kind, note)
        } else if first & 0x20 != 0 {
            let capacity = integer::decode(bytes, &mut at, 5)?;
            if capacity > self.capacity_max as usize {
                return Err(wrong("a table capacity above the allowed maximum"));
            }
            self.set_capacity(capacity as u32);
            Ok(at)
        } else {
            let index = integer::decode(bytes, &mut at, 5)?;
            self.scratch.truncate(0);
            let (kind, note) = self.copy(index, true)?;
            self.push(kind, note, self.scratch_name_len)?;
            Ok(at)
        }
    }

    /// Checks that the string at `at` is there, and could be in the table at all.
    fn check_length(&self, bytes: &[u8], mut at: usize, prefix: u32) -> Result<(), Flaw> {
        let coded = bytes.get(at).ok_or(Flaw::Incomplete)? & (1 << prefix) != 0;
        let length = integer::decode(bytes, &mut at, prefix)?;
        let least = if coded { huffman::least_decoded(length) } else { length };
        if least > self.table.max() as usize {
            return Err(wrong("an entry larger than the table"));
        }
        match bytes.get(at..).is_some_and(|rest| rest.len() >= length) {
            true => Ok(()),
            false => Err(Flaw::Incomplete),
        }
    }

    /// RFC 9204 §3.2.5: copies the name of an entry to the scratch, and its value if `whole`. 0 is the newest.
    fn copy(&mut self, index: usize, whole: bool) -> Result<(NameKind, Note), Flaw> {
        let entry = self.table.by_age(index);
        let entry = *entry.ok_or_else(|| wrong("an entry that the table does not have"))?;
        self.scratch_name_len = entry.stored_name_len();
        self.scratch.push(self.table.stored_name(&entry).unwrap_or_default());
        if whole {
            self.scratch.push(self.table.value(&entry));
        }
        let note = if whole { entry.tag } else { entry.tag.only(Note::NAME_INVALID) };
        Ok((entry.kind, note))
    }

    /// The value at `at` follows the name in the scratch: both become an entry. Returns where the instruction ends.
    fn insert<S: FieldSection>(
        &mut self,
        bytes: &[u8],
        mut at: usize,
        kind: NameKind,
        of_name: Note,
    ) -> Result<usize, Flaw> {
        let value = self.scratch.len();
        string::read(bytes, &mut at, 7, &mut self.scratch)?;
        let note = note_of::<S>(kind, of_name, &self.scratch.bytes()[value..]);
        self.push(kind, note, value)?;
        Ok(at)
    }

    /// RFC 9204 §3.2.2: what is in the scratch becomes an entry; the oldest ones leave for it.
    fn push(&mut self, kind: NameKind, note: Note, value: usize) -> Result<(), Flaw> {
        let (name, value) = self.scratch.bytes().split_at(value);
        let name = kind.text().map_or(name, str::as_bytes);
        let size = size_of_line(name.len(), value.len());
        if size > self.table.max() as usize {
            return Err(wrong("an entry larger than the table"));
        }
        while self.table.is_short_of(size) {
            self.table.evict();
        }
        self.table.push(kind, name, value, note);
        self.inserted += 1;
        Ok(())
    }

    /// RFC 9204 §4.3.1
    fn set_capacity(&mut self, capacity: u32) {
        self.table.set_max(capacity);
        while self.table.is_short_of(0) {
            self.table.evict();
        }
        if capacity == 0 {
            self.table.release();
        }
    }
}
