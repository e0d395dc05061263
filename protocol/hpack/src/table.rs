//! RFC 7541 §2.3.2, §4, RFC 9204 §3.2: the dynamic table.

use bolide_semantics::FIELD_OVERHEAD;

use crate::{FieldSection, Line, NameKind, Note};

/// The first allocations: enough for the few lines that a typical connection repeats.
const FIRST_ENTRIES: usize = 4;
const FIRST_TEXT_BYTES: usize = 128;

/// An entry: the text is the name, unless `kind` has it, and the value.
#[derive(Debug, Clone, Copy)]
pub struct Entry<T> {
    /// Position in the stream of all text ever inserted, modulo 2^32.
    start: u32,
    /// The sizes of all entries that were inserted before, modulo 2^32.
    before: u32,
    /// Part of the name that is in the text.
    name_len: u16,
    value_len: u16,
    /// How its name is known.
    pub kind: NameKind,
    /// Data that the owner of the table keeps with an entry.
    pub tag: T,
}

impl<T> Entry<T> {
    /// RFC 7541 §4.1
    fn size(&self) -> u32 {
        let name_len = self.kind.text().map_or_else(|| usize::from(self.name_len), str::len);
        size_of_line(name_len, usize::from(self.value_len)) as u32
    }

    /// Returns what name and value take in the text, in bytes.
    #[inline]
    fn stored_bytes(&self) -> u32 {
        u32::from(self.name_len) + u32::from(self.value_len)
    }

    /// Returns what the name takes in the text, in bytes: nothing if the kind has it.
    #[inline]
    #[must_use]
    pub fn stored_name_len(&self) -> usize {
        usize::from(self.name_len)
    }
}

/// The size that a line would have in the table, in bytes.
#[inline]
pub fn size_of_line(name_len: usize, value_len: usize) -> usize {
    name_len + value_len + FIELD_OVERHEAD
}

/// A ring of entries, the oldest of which leave when a new one needs room, and their text in one
/// block. Both grow with their use, up to what the maximum size implies.
#[derive(Debug)]
pub struct Table<T> {
    /// A power of two, or none.
    ring: Box<[Entry<T>]>,
    /// Entries ever inserted, modulo 2^32. The newest is at `inserted - 1`, modulo the ring.
    inserted: u32,
    len: u32,
    /// Text of entries that left, then of those that are there.
    text: Vec<u8>,
    dead: u32,
    /// The position of `text[0]`.
    base: u32,
    /// The sizes of all entries ever inserted, modulo 2^32.
    sizes: u32,
    size: u32,
    max: u32,
}

impl<T: Copy + Default> Table<T> {
    /// An empty table of at most `max` bytes.
    #[must_use]
    pub fn new(max: u32) -> Self {
        let (ring, text) = (Box::default(), Vec::new());
        Self { ring, inserted: 0, len: 0, text, dead: 0, base: 0, sizes: 0, size: 0, max }
    }

    /// The table as it is after almost 2^32 entries and bytes, whose counters pass their end with the next ones.
    #[cfg(test)]
    pub(crate) fn worn(self) -> Self {
        Self { inserted: u32::MAX - 20, base: u32::MAX - 100, sizes: u32::MAX - 100, ..self }
    }

    /// The maximum size in force (RFC 7541 §4.2), in bytes.
    #[inline]
    pub fn max(&self) -> u32 {
        self.max
    }

    /// The size of all entries, in bytes.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether there are no entries.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of entries that the ring has room for.
    pub fn room(&self) -> usize {
        self.ring.len()
    }

    /// The allocated memory, in bytes.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        self.ring.len() * size_of::<Entry<T>>() + self.text.capacity()
    }

    /// Sets the maximum size. The caller evicts what is too much.
    pub fn set_max(&mut self, max: u32) {
        self.max = max;
    }

    /// Gives the memory back. The table must be empty.
    pub fn release(&mut self) {
        debug_assert!(self.is_empty(), "entries would be lost");
        *self = Self::new(self.max);
    }

    /// The entry that `age` newer ones follow.
    #[inline]
    pub fn by_age(&self, age: usize) -> Option<&Entry<T>> {
        let slot = self.slot_of(age)?;
        self.ring.get(slot)
    }

    /// The name, unless the entry's kind has it.
    pub fn stored_name(&self, entry: &Entry<T>) -> Option<&[u8]> {
        let start = entry.start.wrapping_sub(self.base) as usize;
        self.text.get(start..start + entry.stored_name_len())
    }

    /// Returns whether an entry of `size` bytes (0: none) needs others to leave first.
    #[inline]
    pub fn is_short_of(&self, size: usize) -> bool {
        self.size as usize + size > self.max as usize
    }

    /// The place in the ring of the entry that `age` newer ones follow.
    #[inline]
    pub fn slot_of(&self, age: usize) -> Option<usize> {
        if age >= self.len as usize {
            return None;
        }
        let place = self.inserted.wrapping_sub(1).wrapping_sub(age as u32);
        Some(place as usize & (self.ring.len() - 1))
    }

    /// How many newer entries follow the one at `slot`.
    ///
    /// # Panics
    ///
    /// When the table has never had an entry.
    #[inline]
    #[must_use]
    pub fn age_of(&self, slot: usize) -> usize {
        let newest = self.inserted.wrapping_sub(1) as usize;
        newest.wrapping_sub(slot) & (self.ring.len() - 1)
    }

    /// The entry at a place where there is one.
    #[inline]
    #[must_use]
    pub fn entry(&self, slot: usize) -> &Entry<T> {
        &self.ring[slot]
    }

    /// Returns what is at a place that may be none, and where an entry may have left.
    #[inline]
    pub fn get(&self, slot: usize) -> Option<&Entry<T>> {
        self.ring.get(slot)
    }

    /// The same, to be changed.
    #[inline]
    pub fn entry_mut(&mut self, slot: usize) -> &mut Entry<T> {
        &mut self.ring[slot]
    }

    /// The entry's name and value.
    #[inline]
    pub fn line(&self, entry: &Entry<T>) -> (&[u8], &[u8]) {
        let start = entry.start.wrapping_sub(self.base) as usize;
        let text = &self.text[start..start + entry.stored_bytes() as usize];
        let (name, value) = text.split_at(entry.stored_name_len());
        (entry.kind.text().map_or(name, str::as_bytes), value)
    }

    /// The entry's value.
    #[inline]
    pub fn value(&self, entry: &Entry<T>) -> &[u8] {
        let start = entry.start.wrapping_sub(self.base) as usize + entry.stored_name_len();
        &self.text[start..start + usize::from(entry.value_len)]
    }

    /// Removes the oldest entry and says where it was.
    pub fn evict(&mut self) -> Option<usize> {
        let slot = self.slot_of((self.len as usize).checked_sub(1)?)?;
        let entry = self.ring[slot];
        self.len -= 1;
        self.size -= entry.size();
        self.dead += entry.stored_bytes();
        if self.len == 0 {
            self.base = self.base.wrapping_add(self.text.len() as u32);
            self.text.clear();
            self.dead = 0;
        }
        Some(slot)
    }

    /// Appends an entry, for which there must be room, and says where. The ring may have grown: then
    /// every entry is in another place.
    pub fn push(&mut self, kind: NameKind, name: &[u8], value: &[u8], tag: T) -> usize {
        debug_assert!(
            !self.is_short_of(size_of_line(name.len(), value.len())),
            "the caller has made room"
        );
        if self.len as usize == self.ring.len() {
            self.grow_ring();
        }
        let stored = if kind == NameKind::Other { name } else { &[] };
        self.make_room_for_text(stored.len() + value.len());
        let entry = Entry {
            start: self.base.wrapping_add(self.text.len() as u32),
            before: self.sizes,
            name_len: stored.len() as u16,
            value_len: value.len() as u16,
            kind,
            tag,
        };
        self.text.extend_from_slice(stored);
        self.text.extend_from_slice(value);
        let size = size_of_line(name.len(), value.len()) as u32;
        self.size += size;
        self.sizes = self.sizes.wrapping_add(size);
        let slot = self.inserted as usize & (self.ring.len() - 1);
        self.ring[slot] = entry;
        self.inserted = self.inserted.wrapping_add(1);
        self.len += 1;
        slot
    }

    fn grow_ring(&mut self) {
        let old = std::mem::take(&mut self.ring);
        let room = (old.len() * 2).max(FIRST_ENTRIES);
        let kind = NameKind::Other;
        let unused =
            Entry { start: 0, before: 0, name_len: 0, value_len: 0, kind, tag: T::default() };
        self.ring = vec![unused; room].into_boxed_slice();
        for age in 1..=self.len {
            let place = self.inserted.wrapping_sub(age) as usize;
            self.ring[place & (room - 1)] = old[place & (old.len() - 1)];
        }
    }

    /// Moves the live text to the front if that leaves an eighth of the block free, so that the cost
    /// of moving stays in proportion to what is inserted; else doubles the block.
    fn make_room_for_text(&mut self, more: usize) {
        let room = self.text.capacity();
        if self.text.len() + more <= room {
            return;
        }
        self.text.drain(..self.dead as usize);
        self.base = self.base.wrapping_add(self.dead);
        self.dead = 0;
        let needed = self.text.len() + more;
        if needed > room - room / 8 {
            let wanted = (room * 2).max(FIRST_TEXT_BYTES).max(needed.next_power_of_two());
            self.text.reserve_exact(wanted - self.text.len());
        }
    }
}

impl Table<Note> {
    /// Gives a section the fields of `count` entries, which were inserted one after the other, from the one on that `age`
    /// newer ones follow, where the others are among those. Their text is one piece. None if there is no such entry.
    #[inline]
    pub fn copy<S: FieldSection>(&self, age: usize, count: usize, section: &mut S) -> Option<()> {
        let first = self.slot_of(age)?;
        let mask = self.ring.len() - 1;
        let oldest = self.ring.get(first)?;
        let newest = self.ring.get((first + count - 1) & mask)?;
        let sizes = newest.before.wrapping_add(newest.size()).wrapping_sub(oldest.before);
        if !section.counts(sizes as usize, count) {
            return self.copy_each(age, count, section);
        }
        let start = oldest.start.wrapping_sub(self.base) as usize;
        let end = newest.start.wrapping_add(newest.stored_bytes()).wrapping_sub(self.base) as usize;
        let text = section.text();
        let mut start_of_line = text.len();
        text.push(self.text.get(start..end)?);
        for slot in first..first + count {
            let entry = self.ring.get(slot & mask)?;
            let (kind, note) = (entry.kind, entry.tag);
            let value = start_of_line + usize::from(entry.name_len);
            let end = value + usize::from(entry.value_len);
            section.take(Line { kind, note, start: start_of_line, value, end });
            start_of_line = end;
        }
        Some(())
    }

    /// The same where not all of the fields are to be kept.
    #[cold]
    fn copy_each<S: FieldSection>(&self, age: usize, count: usize, section: &mut S) -> Option<()> {
        if count > 1 {
            for newer in 0..count {
                self.copy(age - newer, 1, section)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &mut Table<()>, name: &[u8], value: &[u8]) {
        while table.is_short_of(size_of_line(name.len(), value.len())) {
            table.evict().unwrap();
        }
        table.push(NameKind::of(name), name, value, ());
    }

    fn lines(table: &Table<()>) -> Vec<(Vec<u8>, Vec<u8>)> {
        (0..table.len())
            .map(|age| {
                let slot = table.slot_of(age).unwrap();
                assert_eq!(table.age_of(slot), age);
                let (name, value) = table.line(table.entry(slot));
                (name.to_vec(), value.to_vec())
            })
            .collect()
    }

    #[test]
    fn it_owns_nothing_until_an_entry_comes_and_little_after() {
        let mut table = Table::new(4096);
        assert_eq!(table.allocated_bytes(), 0);
        assert_eq!(table.slot_of(0), None);
        insert(&mut table, b"server", b"bolide");
        insert(&mut table, b"date", b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert!(table.allocated_bytes() <= 256, "{}", table.allocated_bytes());
        table.evict();
        table.evict();
        assert_eq!(table.evict(), None);
        table.release();
        assert_eq!(table.allocated_bytes(), 0);
    }

    #[test]
    fn entries_survive_growing_moving_and_wrapping() {
        let mut table = Table::new(1000).worn();
        let mut model = Vec::new();
        for round in 0_usize..500 {
            let name = if round % 3 == 0 { "date".to_owned() } else { format!("x-{}", round % 7) };
            let value = "v".repeat(round * 37 % 90) + &round.to_string();
            insert(&mut table, name.as_bytes(), value.as_bytes());
            model.insert(0, (name.into_bytes(), value.into_bytes()));
            let mut size = 0;
            model.retain(|(name, value)| {
                size += name.len() + value.len() + 32;
                size <= 1000
            });
            assert_eq!(lines(&table), model);
            assert!(table.size() <= 1000);
        }
        assert!(table.allocated_bytes() <= 2048 + 32 * size_of::<Entry<()>>());
    }
}
