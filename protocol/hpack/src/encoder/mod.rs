//! RFC 7541 §6, §7.1: from field lines to a header block.

use bolide_semantics::FieldRef;

use crate::limits::TABLE_BYTES;
use crate::lookup::{self, Found, Lookup};
use crate::policy::{self, Rule};
use crate::static_table::{self, value_at};
use crate::table::size_of_line;
use crate::{NameKind, Pseudo, integer, string};

/// Encodes the header blocks of one direction of a connection, in their order.
#[derive(Debug)]
pub struct Encoder {
    /// The table, once a line was inserted.
    lookup: Option<Box<Lookup>>,
    /// The size of the table as the peer knows it.
    max: u16,
    /// The size that the table is to have.
    target: u16,
    /// The least that was allowed since the last block.
    lowest: u16,
    /// Lines that stayed out because their name's last entry was of no use.
    withheld: u32,
}

/// A literal's representation: the bits above the index, and the bits of the index.
#[derive(Clone, Copy)]
struct Literal(u8, u32);

/// RFC 7541 §6.2.1
const WITH_INDEXING: Literal = Literal(0x40, 6);
/// RFC 7541 §6.2.2
const WITHOUT_INDEXING: Literal = Literal(0, 4);
/// RFC 7541 §6.2.3
const NEVER_INDEXED: Literal = Literal(0x10, 4);

/// A name, and its index in the static table, or 0.
#[derive(Clone, Copy)]
struct Name<'a> {
    kind: NameKind,
    text: &'a str,
    index: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder that uses 4096 bytes of table: what every peer allows at the beginning. Owns no
    /// memory until a line is inserted.
    #[must_use]
    pub fn new() -> Self {
        let max = TABLE_BYTES as u16;
        Self { lookup: None, max, target: max, lowest: max, withheld: 0 }
    }

    /// An encoder whose table's counters pass their end with the next entries.
    #[cfg(test)]
    pub(crate) fn worn() -> Self {
        Self { lookup: Some(Box::new(Lookup::new(TABLE_BYTES).worn())), ..Self::new() }
    }

    /// The peer's SETTINGS_HEADER_TABLE_SIZE, in bytes; no more than 4096 are used. The next block
    /// begins with the size updates that this needs (RFC 7541 §4.2).
    pub fn set_peer_table_bytes(&mut self, bytes: u32) {
        self.target = bytes.min(TABLE_BYTES) as u16;
        self.lowest = self.lowest.min(self.target);
    }

    /// Between blocks: forgets what it has inserted, and gives the memory back. The peer need not be told: its
    /// entries are older than any that follow, so that no index points to them, and they leave first.
    pub fn forget(&mut self) {
        self.lookup = None;
    }

    /// Begins a block in `out`. To be called before each block.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.lowest != self.max || self.target != self.max {
            self.size_updates(out);
        }
    }

    /// Appends what most responses begin with, in a form that means the same whatever the tables hold: `:status`, which
    /// has three digits, then `Content-Length` and `Date` where they are given.
    #[inline]
    pub fn response_start(
        status: u16,
        length: Option<u64>,
        date: Option<&[u8; 29]>,
        out: &mut Vec<u8>,
    ) {
        // One copy of constant length costs less than one for each part.
        let mut start = [0; 64];
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => 0,
        };
        let mut end = 1;
        start[0] = 0x80 | index;
        if index == 0 {
            let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
            start[..5].copy_from_slice(&[0x08, 3, digit(100), digit(10), digit(1)]);
            end = 5;
        }
        if let Some(length) = length {
            let digits = length.checked_ilog10().unwrap_or(0) as usize + 1;
            // A literal without indexing by the 28th name of the static table.
            start[end..end + 3].copy_from_slice(&[0x0f, 28 - 15, digits as u8]);
            let mut left = length;
            for place in start[end + 3..end + 3 + digits].iter_mut().rev() {
                *place = b'0' + (left % 10) as u8;
                left /= 10;
            }
            end += 3 + digits;
        }
        if let Some(date) = date {
            start[end..end + 3].copy_from_slice(&[0x0f, 33 - 15, 29]);
            start[end + 3..end + 32].copy_from_slice(date);
            end += 32;
        }
        let before = out.len();
        out.extend_from_slice(&start);
        out.truncate(before + end);
    }

    /// Appends a pseudo-field.
    #[inline]
    pub fn pseudo(&mut self, pseudo: Pseudo, value: &[u8], out: &mut Vec<u8>) {
        let (index, count) = static_table::indices_of(pseudo);
        for whole in index..index + count {
            if value_at(whole) == value {
                out.push(0x80 | whole as u8);
                return;
            }
        }
        let name = Name { kind: NameKind::Pseudo(pseudo), text: pseudo.as_str(), index };
        self.line(name, value, Rule::Insert, out);
    }

    /// Appends a field line, whose name is in lower case.
    pub fn field(&mut self, field: &FieldRef<'_>, out: &mut Vec<u8>) {
        let Some(known) = field.known else {
            let rule = if field.sensitive { Rule::Never } else { Rule::Insert };
            let name = Name { kind: NameKind::Other, text: field.name, index: 0 };
            return self.line(name, field.value, rule, out);
        };
        let index = static_table::index_of(known);
        let rule = policy::rule_of(known, field);
        if index != 0 && rule != Rule::Never && value_at(index) == field.value {
            out.push(0x80 | index as u8);
            return;
        }
        let name = Name { kind: NameKind::Known(known), text: known.as_str(), index };
        self.line(name, field.value, rule, out);
    }

    /// Appends a field in a form that every encoder may send at any time, whatever its table holds: by the static
    /// table where that has it whole, else as a literal without indexing (RFC 7541 §6.2.2).
    pub fn stateless(field: &FieldRef<'_>, out: &mut Vec<u8>) {
        let (kind, index) = match field.known {
            Some(known) => (NameKind::Known(known), static_table::index_of(known)),
            None => (NameKind::Other, 0),
        };
        let rule = match field.known {
            Some(known) => policy::rule_of(known, field),
            None if field.sensitive => Rule::Never,
            None => Rule::Once,
        };
        if index != 0 && rule != Rule::Never && value_at(index) == field.value {
            return out.push(0x80 | index as u8);
        }
        let form = if rule == Rule::Never { NEVER_INDEXED } else { WITHOUT_INDEXING };
        literal(form, Name { kind, text: field.name, index }, field.value, out);
    }

    /// The memory that the encoder holds outside itself, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.lookup.as_ref().map_or(0, |lookup| size_of::<Lookup>() + lookup.allocated_bytes())
    }

    /// RFC 7541 §4.2: the least size since the last block, then the one that counts.
    #[cold]
    fn size_updates(&mut self, out: &mut Vec<u8>) {
        for size in [self.lowest, self.target] {
            if size != self.max {
                integer::encode(usize::from(size), 5, 0x20, out);
                self.max = size;
                if size == 0 {
                    self.lookup = None;
                } else if let Some(lookup) = &mut self.lookup {
                    lookup.set_max(size.into());
                }
            }
        }
        self.lowest = self.target;
    }

    #[inline]
    fn line(&mut self, name: Name<'_>, value: &[u8], rule: Rule, out: &mut Vec<u8>) {
        match rule {
            Rule::Insert => self.repeated(name, value, out),
            Rule::Once => literal(WITHOUT_INDEXING, name, value, out),
            Rule::Never => literal(NEVER_INDEXED, name, value, out),
        }
    }

    /// A line that may come again.
    fn repeated(&mut self, name: Name<'_>, value: &[u8], out: &mut Vec<u8>) {
        let text = name.text.as_bytes();
        let found = match &mut self.lookup {
            Some(lookup) => lookup.find(name.kind, text, value),
            None => Found::Hash(lookup::hash(name.kind, text, value)),
        };
        match found {
            Found::Age(age) => integer::encode(static_table::LENGTH + 1 + age, 7, 0x80, out),
            Found::Hash(hash) => self.unknown(name, value, hash, out),
        }
    }

    /// A line that may come again, and is not in the table.
    fn unknown(&mut self, mut name: Name<'_>, value: &[u8], hash: u32, out: &mut Vec<u8>) {
        let text = name.text.as_bytes();
        let size = size_of_line(text.len(), value.len());
        let last = self.lookup.as_ref().and_then(|lookup| lookup.find_name(name.kind, text));
        if let (0, Some((age, _))) = (name.index, last) {
            name.index = static_table::LENGTH + 1 + age;
        }
        if size > usize::from(self.max) / policy::ENTRY_SHARE {
            return literal(WITHOUT_INDEXING, name, value, out);
        }
        if last.is_some_and(|(_, used)| !used) {
            self.withheld = self.withheld.wrapping_add(1);
            if !self.withheld.is_multiple_of(policy::RETRY_ONE_IN) {
                return literal(WITHOUT_INDEXING, name, value, out);
            }
        }
        literal(WITH_INDEXING, name, value, out);
        let max = self.max.into();
        let lookup = self.lookup.get_or_insert_with(|| Box::new(Lookup::new(max)));
        lookup.insert(name.kind, text, value, hash);
    }
}

/// RFC 7541 §6.2: a literal.
fn literal(form: Literal, name: Name<'_>, value: &[u8], out: &mut Vec<u8>) {
    let Literal(pattern, prefix) = form;
    integer::encode(name.index, prefix, pattern, out);
    let inserts = pattern == WITH_INDEXING.0;
    if name.index == 0 {
        string::write(name.text.as_bytes(), inserts, 7, 0, out);
    }
    string::write(value, inserts || value.len() >= policy::CODE_ONCE_FROM, 7, 0, out);
}

#[cfg(test)]
mod tests;
