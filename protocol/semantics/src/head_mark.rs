//! RFC 9110 §6.3: names for what heads say, so that who has dealt with a head need not look at an equal one.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::KNOWN_HEADS_COUNT;

/// How many marks are taken at once: of a connection that makes a mark for every request, one in so many
/// touches memory that others write to.
const MARKS_AT_ONCE: u64 = 1 << 16;

/// The first mark that nobody has taken.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Stands for the whole content of a [`Head`](crate::Head): of two heads of this process that have the same
/// mark, everything is equal. Equal heads may have different marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadMark(NonZeroU64);

impl HeadMark {
    /// Its number: marks that were made one after the other have numbers that are.
    #[inline]
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.get()
    }
}

/// Makes marks, none of which was made before.
#[derive(Debug, Default)]
pub struct HeadMarks(Range<u64>);

impl HeadMarks {
    /// Another mark.
    #[inline]
    pub fn make(&mut self) -> HeadMark {
        let number = self.0.next().unwrap_or_else(|| self.take());
        HeadMark(NonZeroU64::new(number).expect("2^48 times as many would have to be taken"))
    }

    #[cold]
    fn take(&mut self) -> u64 {
        let first = NEXT.fetch_add(MARKS_AT_ONCE, Ordering::Relaxed);
        self.0 = first + 1..first + MARKS_AT_ONCE;
        first
    }
}

/// What is a function of a head, remembered for the heads that a worker knows.
///
/// Marks that were made one after the other have places of their own.
#[derive(Debug)]
pub struct ByMark<T>(Vec<Option<(HeadMark, T)>>);

impl<T> Default for ByMark<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByMark<T> {
    /// What was remembered for this mark, if no other has taken its place.
    #[inline]
    #[must_use]
    pub fn get(&self, mark: HeadMark) -> Option<&T> {
        match self.0.get(place_of(mark)) {
            Some(Some((known, what))) if *known == mark => Some(what),
            _ => None,
        }
    }

    /// Remembers it.
    pub fn insert(&mut self, mark: HeadMark, what: T) {
        if self.0.is_empty() {
            self.0.resize_with(KNOWN_HEADS_COUNT, || None);
        }
        self.0[place_of(mark)] = Some((mark, what));
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[inline]
fn place_of(mark: HeadMark) -> usize {
    mark.number() as usize % KNOWN_HEADS_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_by_a_mark_is_found_until_another_takes_its_place() {
        let (mut memory, mut marks) = (ByMark::default(), HeadMarks::default());
        let first = marks.make();
        assert_eq!(memory.get(first), None);
        memory.insert(first, 0);
        let others: Vec<_> = (1..KNOWN_HEADS_COUNT).map(|_| marks.make()).collect();
        for (number, mark) in others.iter().enumerate() {
            memory.insert(*mark, number + 1);
        }
        assert_eq!(memory.get(first), Some(&0));
        assert_eq!(memory.get(others[6]), Some(&7));
        let last = marks.make();
        memory.insert(last, 8);
        assert_eq!((memory.get(last), memory.get(first)), (Some(&8), None));
        memory.clear();
        assert_eq!(memory.get(last), None);
    }

    #[test]
    fn no_mark_is_made_twice() {
        let (mut some, mut others) = (HeadMarks::default(), HeadMarks::default());
        let mut made = std::collections::BTreeSet::new();
        for _ in 0..MARKS_AT_ONCE + 10 {
            assert!(made.insert(some.make().0));
            assert!(made.insert(others.make().0));
        }
    }
}
