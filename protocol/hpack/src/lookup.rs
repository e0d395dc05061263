//! RFC 7541 §2.3, RFC 9204 §2.1: the encoder's table, found by content.

use bolide_semantics::FieldName;

use crate::table::{Table, size_of_line};
use crate::{NameKind, Pseudo};

/// The end of a chain.
const NONE: u8 = u8::MAX;
/// Names that have a place in `Lookup::recent`.
const RECENT_COUNT: usize = FieldName::ALL.len() + Pseudo::ALL.len();
/// Chains for each entry of room.
const CHAINS_PER_ENTRY: usize = 2;

/// Data that is kept with each entry.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Link {
    hash: u32,
    /// The next older entry of the chain.
    next: u8,
    /// True if the entry was of use after it was inserted.
    used: bool,
}

/// Result of [`Lookup::find`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The line: so many newer entries follow it.
    Age(usize),
    /// Nothing. This is the line's hash, for [`Lookup::insert`].
    Hash(u32),
}

/// A table of at most 4096 bytes, so of at most 128 entries, whose lines are chained by hash, the
/// newest first: so the one that leaves, the oldest, is always at the end of its chain.
///
/// Most lines have the value that the name had the last time: these are found without a hash.
#[derive(Debug)]
pub struct Lookup {
    table: Table<Link>,
    chains: Box<[u8]>,
    /// For each interned name and pseudo-field, where its line was the last time. The entry may have
    /// left or moved since.
    recent: Box<[u8]>,
}

impl Lookup {
    /// An empty table of at most `max` bytes, which are at most 4096.
    #[must_use]
    pub fn new(max: u32) -> Self {
        let (chains, recent) = (Box::default(), Box::default());
        Self { table: Table::new(max), chains, recent }
    }

    /// As [`Table::worn`].
    #[cfg(test)]
    pub(crate) fn worn(self) -> Self {
        Self { table: self.table.worn(), ..self }
    }

    /// The maximum size, in bytes.
    #[inline]
    #[must_use]
    pub fn max(&self) -> u32 {
        self.table.max()
    }

    /// The allocated memory, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.table.allocated_bytes() + self.chains.len() + self.recent.len()
    }

    /// Looks for the line, which counts as used from now on.
    #[inline]
    pub fn find(&mut self, kind: NameKind, name: &[u8], value: &[u8]) -> Found {
        if let Some(&slot) = recent_place(kind).and_then(|place| self.recent.get(place))
            && let Some(entry) = self.table.get(usize::from(slot))
            && entry.kind == kind
        {
            let age = self.table.age_of(usize::from(slot));
            // The text of an entry that has left may be gone.
            if age < self.table.len() && self.table.value(entry) == value {
                self.table.entry_mut(usize::from(slot)).tag.used = true;
                return Found::Age(age);
            }
        }
        self.find_by_hash(kind, name, value)
    }

    fn find_by_hash(&mut self, kind: NameKind, name: &[u8], value: &[u8]) -> Found {
        let hash = hash(kind, name, value);
        if self.chains.is_empty() {
            return Found::Hash(hash);
        }
        let mut next = self.chains[hash as usize & (self.chains.len() - 1)];
        while next != NONE {
            let slot = usize::from(next);
            let entry = self.table.entry(slot);
            if entry.tag.hash == hash
                && entry.kind == kind
                && self.table.value(entry) == value
                && (kind != NameKind::Other || self.table.line(entry).0 == name)
            {
                self.table.entry_mut(slot).tag.used = true;
                self.remember(kind, slot);
                return Found::Age(self.table.age_of(slot));
            }
            next = entry.tag.next;
        }
        Found::Hash(hash)
    }

    fn remember(&mut self, kind: NameKind, slot: usize) {
        if let Some(place) = recent_place(kind) {
            self.recent[place] = slot as u8;
        }
    }

    /// The newest entry with this name: how many newer ones follow, and whether it was of use.
    #[must_use]
    pub fn find_name(&self, kind: NameKind, name: &[u8]) -> Option<(usize, bool)> {
        (0..self.table.len()).find_map(|age| {
            let entry = self.table.entry(self.table.slot_of(age)?);
            let same =
                entry.kind == kind && (kind != NameKind::Other || self.table.line(entry).0 == name);
            same.then_some((age, entry.tag.used))
        })
    }

    /// Inserts a line, which must fit into the table, as [`Self::find`] has not found it.
    pub fn insert(&mut self, kind: NameKind, name: &[u8], value: &[u8], hash: u32) {
        self.evict_for(size_of_line(name.len(), value.len()));
        let room = self.table.room();
        let slot = self.table.push(kind, name, value, Link { hash, next: NONE, used: false });
        if self.table.room() == room {
            self.chain(slot);
        } else {
            self.chain_all();
        }
        self.remember(kind, slot);
    }

    /// Returns whether a line of so many bytes needs the oldest one to leave first.
    #[must_use]
    pub fn is_short_of(&self, size: usize) -> bool {
        self.table.is_short_of(size)
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The oldest line leaves.
    pub fn evict(&mut self) {
        if let Some(slot) = self.table.evict() {
            self.unchain(slot);
        }
    }

    /// Sets the maximum size, in bytes.
    pub fn set_max(&mut self, max: u32) {
        self.table.set_max(max);
        self.evict_for(0);
        if max == 0 {
            self.table.release();
            (self.chains, self.recent) = (Box::default(), Box::default());
        }
    }

    fn evict_for(&mut self, size: usize) {
        while self.table.is_short_of(size) {
            let Some(slot) = self.table.evict() else { break };
            self.unchain(slot);
        }
    }

    fn chain(&mut self, slot: usize) {
        let hash = self.table.entry(slot).tag.hash;
        let chain = hash as usize & (self.chains.len() - 1);
        self.table.entry_mut(slot).tag.next = self.chains[chain];
        self.chains[chain] = slot as u8;
    }

    fn chain_all(&mut self) {
        if self.recent.is_empty() {
            self.recent = vec![NONE; RECENT_COUNT].into_boxed_slice();
        }
        self.chains = vec![NONE; self.table.room() * CHAINS_PER_ENTRY].into_boxed_slice();
        for age in (0..self.table.len()).rev() {
            if let Some(slot) = self.table.slot_of(age) {
                self.chain(slot);
            }
        }
    }

    /// Cuts the entry that has just left from the end of its chain.
    fn unchain(&mut self, left: usize) {
        let hash = self.table.entry(left).tag.hash;
        let chain = hash as usize & (self.chains.len() - 1);
        if usize::from(self.chains[chain]) == left {
            self.chains[chain] = NONE;
            return;
        }
        let mut slot = usize::from(self.chains[chain]);
        loop {
            let next = self.table.entry(slot).tag.next;
            if usize::from(next) == left {
                self.table.entry_mut(slot).tag.next = NONE;
                return;
            }
            slot = usize::from(next);
        }
    }
}

#[inline]
fn recent_place(kind: NameKind) -> Option<usize> {
    match kind {
        NameKind::Known(known) => Some(known as usize),
        NameKind::Pseudo(pseudo) => Some(FieldName::ALL.len() + pseudo as usize),
        NameKind::Other => None,
    }
}

/// A hash of a line in constant time: of the name, of the value's length and of the bytes at its
/// beginning, middle and end. Lines that agree in all of these share a chain, which has at most 128
/// entries; so a peer that makes them agree gains little.
#[inline]
pub(crate) fn hash(kind: NameKind, name: &[u8], value: &[u8]) -> u32 {
    let name = match kind {
        NameKind::Known(known) => known as u64,
        NameKind::Pseudo(pseudo) => 0x100 | pseudo as u64,
        NameKind::Other => mix(0x200, name),
    };
    let mixed = mix(name, value);
    (mixed ^ (mixed >> 32)) as u32
}

#[inline]
fn mix(seed: u64, text: &[u8]) -> u64 {
    let length = text.len();
    let (first, last, middle) = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            let middle = text[length / 2 - 4..].first_chunk::<8>().map_or(0, |m| bytes(*m));
            (bytes(*first), bytes(*last), middle)
        }
        _ => short(text),
    };
    let left = first ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xa076_1d64_78bd_642f;
    let right = last.rotate_left(32) ^ middle ^ (length as u64) << 48 ^ 0xe703_7ed1_a0b4_28db;
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn bytes(chunk: [u8; 8]) -> u64 {
    u64::from_le_bytes(chunk)
}

/// Fewer than eight bytes.
#[inline]
fn short(text: &[u8]) -> (u64, u64, u64) {
    match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)), 0)
        }
        _ => (text.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)), 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(lookup: &mut Lookup, name: &str, value: &str) -> Option<usize> {
        let kind = NameKind::of(name.as_bytes());
        match lookup.find(kind, name.as_bytes(), value.as_bytes()) {
            Found::Age(age) => Some(age),
            Found::Hash(_) => None,
        }
    }

    #[test]
    fn entries_are_found_at_their_age_until_they_leave() {
        let mut lookup = Lookup::new(4096);
        let mut model: Vec<(String, String)> = Vec::new();
        for round in 0_usize..2000 {
            let name = ["date", "x-a", "x-b", ":path"][round % 4].to_owned();
            // Same beginning, middle and end: they share a chain.
            let value = format!("{}{round:05}{}", "a".repeat(8), "a".repeat(round % 3 * 20 + 20));
            let kind = NameKind::of(name.as_bytes());
            let hash = hash(kind, name.as_bytes(), value.as_bytes());
            lookup.insert(kind, name.as_bytes(), value.as_bytes(), hash);
            model.insert(0, (name, value));
            if model.len() > lookup.table.len() {
                let (name, value) = &model[lookup.table.len()];
                assert_eq!(find(&mut lookup, name, value), None);
                model.truncate(lookup.table.len());
            }
            for (age, (name, value)) in model.iter().enumerate() {
                assert_eq!(find(&mut lookup, name, value), Some(age));
            }
        }
        lookup.set_max(100);
        assert_eq!(lookup.table.len(), 1);
        assert_eq!(find(&mut lookup, &model[0].0, &model[0].1), Some(0));
        lookup.set_max(0);
        assert_eq!(find(&mut lookup, &model[0].0, &model[0].1), None);
        assert_eq!(lookup.allocated_bytes(), 0);
    }

    #[test]
    fn one_hundred_and_twenty_eight_entries_are_the_most() {
        let mut lookup = Lookup::new(4096);
        for _ in 0..300 {
            let hash = hash(NameKind::Other, b"", b"");
            lookup.insert(NameKind::Other, b"", b"", hash);
        }
        assert_eq!(lookup.table.len(), 128);
        assert_eq!(find(&mut lookup, "", ""), Some(0));
    }

    #[test]
    fn an_entry_that_has_left_is_not_found_where_it_was() {
        let mut lookup = Lookup::new(4096);
        for value in ["long enough to be moved about", "b"] {
            let Found::Hash(hash) = lookup.find(NameKind::of(b"date"), b"date", value.as_bytes())
            else {
                panic!("nothing was inserted");
            };
            lookup.insert(NameKind::of(b"date"), b"date", value.as_bytes(), hash);
            assert_eq!(find(&mut lookup, "date", value), Some(0));
            lookup.set_max(33);
            lookup.set_max(4096);
            assert_eq!(find(&mut lookup, "date", value), None);
        }
    }
}
