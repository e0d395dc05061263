//! RFC 9110 §6.3: names for what heads say, so that who has dealt with a head need not look at an equal one.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many marks are taken at once: of a connection that makes a mark for every request, one in so many
/// touches memory that others write to.
const MARKS_AT_ONCE: u64 = 1 << 16;

/// The first mark that nobody has taken.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Stands for the whole content of a [`Head`](crate::Head): of two heads of this process that have the same
/// mark, everything is equal. Equal heads may have different marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadMark(NonZeroU64);

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

#[cfg(test)]
mod tests {
    use super::*;

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
