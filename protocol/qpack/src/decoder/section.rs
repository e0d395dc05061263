//! RFC 9204 §4.5: an encoded field section.

use bolide_hpack::table::size_of_line;
use bolide_hpack::{Error as Fault, integer, string};
use bolide_semantics::{FieldSection, Line, NameKind, Note};

use super::{Decoded, Decoder, new_name, note_of, static_name};
use crate::Error;
use crate::static_table::ENTRIES;

/// RFC 9204 §4.5.1: what a section begins with.
#[derive(Clone, Copy)]
struct Prefix {
    /// The table must have had so many entries.
    required: u64,
    base: u64,
}

fn of_section(fault: Fault) -> Error {
    Error::section(match fault {
        Fault::Truncated => "a section ends inside a field line",
        Fault::InvalidHuffman => "a Huffman-coded string with wrong padding or an EOS symbol",
        _ => "an integer that is too large",
    })
}

const NO_ENTRY: &str = "a reference to an entry that is not there";

impl Decoder {
    /// Decodes the section of a stream, field by field into `section`; all sections of a decoder must be of one type,
    /// for what is known of an entry is kept with it. `out` gets the acknowledgement for the decoder stream.
    ///
    /// How large a section may become is for `section` to [count](FieldSection::counts): two bytes of a section can stand
    /// for a field as large as the table.
    ///
    /// # Errors
    ///
    /// Of kind [`DecompressionFailed`](crate::ErrorKind::DecompressionFailed): also when more streams are blocked than
    /// may be. Fields before the fault have been taken.
    #[inline]
    pub fn decode<S: FieldSection>(
        &mut self,
        stream: u64,
        bytes: &[u8],
        section: &mut S,
        out: &mut Vec<u8>,
    ) -> Result<Decoded, Error> {
        if let [0, delta, lines @ ..] = bytes
            && *delta < 0x7f
        {
            // Most sections of most peers refer to no entry; then the base means nothing.
            let prefix = Prefix { required: 0, base: 0 };
            return self.lines(lines, prefix, section).map_err(of_lines).map(|()| Decoded::Whole);
        }
        self.decode_late(stream, bytes, section, out)
    }

    fn decode_late<S: FieldSection>(
        &mut self,
        stream: u64,
        bytes: &[u8],
        section: &mut S,
        out: &mut Vec<u8>,
    ) -> Result<Decoded, Error> {
        let mut at = 0;
        let prefix = self.prefix(bytes, &mut at)?;
        if prefix.required > self.inserted {
            if self.blocked == self.blocked_max {
                return Err(Error::section("more streams are blocked than may be"));
            }
            self.blocked += 1;
            return Ok(Decoded::Blocked(prefix.required));
        }
        self.lines(&bytes[at..], prefix, section).map_err(of_lines)?;
        if prefix.required > 0 {
            self.instructions = 0;
            self.told = self.told.max(prefix.required);
            integer::encode(stream as usize, 7, 0x80, out);
        }
        Ok(Decoded::Whole)
    }

    fn prefix(&self, bytes: &[u8], at: &mut usize) -> Result<Prefix, Error> {
        let encoded = integer::decode_wide(bytes, at, 8).map_err(of_section)?;
        let required = self.required(encoded)?;
        let negative = bytes.get(*at).is_some_and(|first| first & 0x80 != 0);
        let delta = integer::decode_wide(bytes, at, 7).map_err(of_section)?;
        let base = match negative {
            false => required.checked_add(delta),
            true => required.checked_sub(delta).and_then(|base| base.checked_sub(1)),
        };
        let base = base.ok_or_else(|| Error::section("a base below zero"))?;
        Ok(Prefix { required, base })
    }

    /// RFC 9204 §4.5.1.1: the Required Insert Count is sent modulo twice the most entries that a table may have.
    fn required(&self, encoded: u64) -> Result<u64, Error> {
        if encoded == 0 {
            return Ok(0);
        }
        let wrong = || Error::section("a required insert count that can't be");
        let entries_max = u64::from(self.capacity_max / 32);
        let range = 2 * entries_max;
        if encoded > range {
            return Err(wrong());
        }
        let value_max = self.inserted + entries_max;
        let rounds = value_max / range * range;
        let mut required = rounds + encoded - 1;
        if required > value_max {
            required = required.checked_sub(range).ok_or_else(wrong)?;
        }
        if required == 0 { Err(wrong()) } else { Ok(required) }
    }

    #[inline]
    fn lines<S: FieldSection>(
        &self,
        bytes: &[u8],
        prefix: Prefix,
        section: &mut S,
    ) -> Result<(), Wrong> {
        let mut at = 0;
        while let Some(first) = bytes.get(at) {
            match first >> 4 {
                0b1100.. => {
                    let index = integer::decode(bytes, &mut at, 6)?;
                    from_static(index, section)?;
                }
                0b1000.. => {
                    let index = integer::decode(bytes, &mut at, 6)?;
                    let absolute = before(prefix, index)?;
                    // The fields that follow are copied with it where their entries do.
                    let follows =
                        |pair: &&[u8]| (0x80..0xbf).contains(&pair[1]) && pair[0] == pair[1] + 1;
                    let more = bytes[at - 1..].windows(2).take_while(follows).count();
                    let more = (more as u64).min(prefix.required - absolute - 1) as usize;
                    self.indexed(absolute, 1 + more, section)?;
                    at += more;
                }
                0b0001 => {
                    let index = integer::decode(bytes, &mut at, 4)?;
                    self.indexed(after(prefix, index)?, 1, section)?;
                }
                _ => at = self.literal(bytes, at, *first, prefix, section)?,
            }
        }
        Ok(())
    }

    /// RFC 9204 §4.5.2, §4.5.3: fields that are in the dynamic table, one after the other.
    fn indexed<S: FieldSection>(
        &self,
        absolute: u64,
        count: usize,
        section: &mut S,
    ) -> Result<(), Wrong> {
        let age = self.age(absolute).ok_or(Wrong::Reference)?;
        self.table.copy(age, count, section).ok_or(Wrong::Reference)
    }

    /// RFC 9204 §4.5.4 to §4.5.6: a literal at `at`. Returns where it ends.
    #[inline(never)]
    fn literal<S: FieldSection>(
        &self,
        bytes: &[u8],
        mut at: usize,
        first: u8,
        prefix: Prefix,
        section: &mut S,
    ) -> Result<usize, Wrong> {
        let text = section.text();
        let start = text.len();
        let (never, (kind, of_name)) = if first & 0x40 != 0 {
            let index = integer::decode(bytes, &mut at, 4)?;
            let name = if first & 0x10 != 0 {
                (static_name(index, text).ok_or(Wrong::Reference)?, Note::PLAIN)
            } else {
                self.dynamic_name(before(prefix, index)?, text)?
            };
            (first & 0x20 != 0, name)
        } else if first & 0x20 != 0 {
            (first & 0x10 != 0, new_name(bytes, &mut at, 3, text)?)
        } else {
            let index = integer::decode(bytes, &mut at, 3)?;
            (first & 0x08 != 0, self.dynamic_name(after(prefix, index)?, text)?)
        };
        let middle = text.len();
        string::read(bytes, &mut at, 7, text)?;
        let (name, value) = text.bytes()[start..].split_at(middle - start);
        let note = note_of::<S>(kind, of_name, value).and(Note::NEVER_INDEXED.when(never));
        let size = size_of_line(kind.text().map_or(name.len(), str::len), value.len());
        if section.counts(size, 1) {
            let end = section.text().len();
            section.take(Line { kind, note, start, value: middle, end });
        } else {
            section.text().truncate(start);
        }
        Ok(at)
    }

    /// The name of an entry, which is appended to the text unless its kind has it.
    fn dynamic_name(
        &self,
        absolute: u64,
        text: &mut bolide_semantics::Text,
    ) -> Result<(NameKind, Note), Wrong> {
        let entry = self.entry(absolute).ok_or(Wrong::Reference)?;
        text.push(self.table.stored_name(entry).ok_or(Wrong::Reference)?);
        Ok((entry.kind, entry.tag.only(Note::NAME_INVALID)))
    }
}

/// Error of a field line.
enum Wrong {
    Coding(Fault),
    Reference,
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Self::Coding(fault)
    }
}

#[cold]
fn of_lines(wrong: Wrong) -> Error {
    match wrong {
        Wrong::Coding(fault) => of_section(fault),
        Wrong::Reference => Error::section(NO_ENTRY),
    }
}

/// RFC 9204 §3.2.5: the absolute index of an entry before the base.
fn before(prefix: Prefix, index: usize) -> Result<u64, Wrong> {
    let absolute = prefix.base.checked_sub(index as u64).and_then(|after| after.checked_sub(1));
    within(prefix, absolute)
}

/// RFC 9204 §3.2.6: the absolute index of an entry from the base on.
fn after(prefix: Prefix, index: usize) -> Result<u64, Wrong> {
    within(prefix, prefix.base.checked_add(index as u64))
}

/// RFC 9204 §2.2.3: a section refers to no entry that it does not require.
fn within(prefix: Prefix, absolute: Option<u64>) -> Result<u64, Wrong> {
    absolute.filter(|absolute| *absolute < prefix.required).ok_or(Wrong::Reference)
}

/// RFC 9204 Appendix A: a field that every connection has.
#[inline]
fn from_static<S: FieldSection>(index: usize, section: &mut S) -> Result<(), Wrong> {
    let (kind, name, value) = ENTRIES.get(index).ok_or(Wrong::Reference)?;
    if section.counts(size_of_line(name.len(), value.len()), 1) {
        let text = section.text();
        let start = text.len();
        if *kind == NameKind::Other {
            text.push(name.as_bytes());
        }
        let middle = text.len();
        text.push(value.as_bytes());
        let (note, end) = (S::note(*kind, value.as_bytes()), text.len());
        section.take(Line { kind: *kind, note, start, value: middle, end });
    }
    Ok(())
}
