//! RFC 9204 §2.1, §4.3, §4.5: from field lines to an encoded field section.
//!
//! A line enters the table when it comes the second time, and sections refer only to entries that the peer's decoder
//! has acknowledged: so no stream is ever blocked, whatever order the streams' bytes arrive in.

use std::collections::VecDeque;

use bolide_hpack::lookup::{Found, Lookup};
use bolide_hpack::policy::{self, Rule};
use bolide_hpack::table::size_of_line;
use bolide_hpack::{integer, string};
use bolide_semantics::{FieldRef, NameKind, Pseudo};

use crate::limits::{OUTSTANDING_SECTIONS_COUNT, TABLE_BYTES};
use crate::static_table;

mod feedback;
mod write;

pub use write::SectionWriter;

/// Entries that a table of [`TABLE_BYTES`] can have: the least is 32 bytes.
const ENTRIES_MAX: usize = TABLE_BYTES as usize / 32;

/// Sets of hashes of lines that came once, and hashes in a set. Another line with the same hash only enters the table
/// sooner.
const SEEN_SETS: usize = 16;
const SEEN_IN_SET: usize = 6;

/// A section of ours that refers to entries and is not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Outstanding {
    stream: u64,
    /// The oldest entry that it refers to.
    oldest: u64,
}

/// State that is kept once the peer allows a table and a line has come.
#[derive(Debug)]
struct Marks {
    /// Hashes of lines that came and are not in the table.
    seen: [[u32; SEEN_IN_SET]; SEEN_SETS],
    /// For each entry, by its absolute index, the outstanding sections whose oldest entry it is.
    pins: [u8; ENTRIES_MAX],
}

/// Encodes the field sections of one direction of a connection.
#[derive(Debug, Default)]
pub struct Encoder {
    table: Option<Box<Dynamic>>,
    /// The peer's SETTINGS have come.
    settled: bool,
    /// The first bytes of an instruction of the peer's decoder whose rest is to come.
    partial: feedback::Partial,
}

/// The dynamic table, once the peer allows one.
#[derive(Debug)]
struct Dynamic {
    lookup: Lookup,
    /// Entries ever inserted.
    inserted: u64,
    /// Those of them that the peer's decoder has acknowledged.
    known: u64,
    /// Twice the most entries that the peer's table may have: Required Insert Counts are sent modulo this.
    range: u64,
    outstanding: VecDeque<Outstanding>,
    /// Instructions to be sent on the encoder stream.
    instructions: Vec<u8>,
    marks: Marks,
}

impl Encoder {
    /// An encoder that uses the static table until [`set_peer_capacity`](Self::set_peer_capacity).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The peer's SETTINGS_QPACK_MAX_TABLE_CAPACITY came, once: at most 4096 bytes of it are used.
    pub fn set_peer_capacity(&mut self, bytes: u64) {
        if self.settled || bytes < 64 {
            return;
        }
        self.settled = true;
        let capacity = bytes.min(u64::from(TABLE_BYTES)) as u32;
        let mut instructions = Vec::new();
        integer::encode(capacity as usize, 5, 0x20, &mut instructions);
        self.table = Some(Box::new(Dynamic {
            lookup: Lookup::new(capacity),
            inserted: 0,
            known: 0,
            range: 2 * (bytes / 32),
            outstanding: VecDeque::new(),
            instructions,
            marks: Marks { seen: [[0; SEEN_IN_SET]; SEEN_SETS], pins: [0; ENTRIES_MAX] },
        }));
    }

    /// Instructions that wait to be sent on the encoder stream, from which the caller takes those that it sends.
    #[inline]
    pub fn instructions(&mut self) -> Option<&mut Vec<u8>> {
        self.table.as_mut().map(|table| &mut table.instructions)
    }

    /// The memory that the encoder holds outside itself, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, |table| {
            size_of::<Dynamic>()
                + table.lookup.allocated_bytes()
                + table.instructions.capacity()
                + table.outstanding.capacity() * size_of::<Outstanding>()
        })
    }
}

impl Dynamic {
    /// The absolute index of the entry that `age` newer ones follow.
    fn absolute(&self, age: usize) -> u64 {
        self.inserted - 1 - age as u64
    }

    /// RFC 9204 §2.1.1: makes room, unless an entry in the way is in use or not acknowledged.
    fn make_room(&mut self, size: usize) -> bool {
        while self.lookup.is_short_of(size) {
            if self.lookup.is_empty() {
                return false;
            }
            let oldest = self.inserted - self.lookup.len() as u64;
            if oldest >= self.known || self.marks.pins[place(oldest)] > 0 {
                return false;
            }
            self.lookup.evict();
        }
        true
    }

    /// A line that is not in the table: it is inserted when it has come before.
    fn consider(
        &mut self,
        kind: NameKind,
        name: &str,
        name_index: Option<usize>,
        value: &[u8],
        hash: u32,
    ) {
        let seen = &mut self.marks.seen[hash as usize % SEEN_SETS];
        if !seen.contains(&hash) {
            seen.rotate_right(1);
            seen[0] = hash;
            return;
        }
        let size = size_of_line(name.len(), value.len());
        if size > self.lookup.max() as usize / policy::ENTRY_SHARE || !self.make_room(size) {
            return;
        }
        match name_index {
            Some(index) => integer::encode(index, 6, 0xc0, &mut self.instructions),
            None => string::write(name.as_bytes(), true, 5, 0x40, &mut self.instructions),
        }
        string::write(value, true, 7, 0, &mut self.instructions);
        self.lookup.insert(kind, name.as_bytes(), value, hash);
        self.inserted += 1;
    }
}

/// Returns where an entry has its count of pins.
fn place(absolute: u64) -> usize {
    (absolute % ENTRIES_MAX as u64) as usize
}
