//! RFC 9113 §5.1: which streams were reset a short while ago, so that what crossed our reset on its
//! way is not taken for an error.

use std::collections::VecDeque;

use crate::limits::RESET_RANGES_COUNT;

/// The numbers of streams that ended without the peer's knowledge, as ranges: refused streams come in
/// rows.
#[derive(Debug, Default)]
pub(crate) struct ResetStreams {
    /// In a box, for most connections have none.
    #[allow(clippy::box_collection, reason = "a pointer is a quarter of a queue")]
    ranges: Option<Box<VecDeque<(u32, u32)>>>,
}

impl ResetStreams {
    /// Remembers a stream.
    pub(crate) fn insert(&mut self, id: u32) {
        let ranges = self.ranges.get_or_insert_default();
        if let Some((_, last)) = ranges.back_mut()
            && id == *last + 2
        {
            *last = id;
            return;
        }
        if ranges.len() == RESET_RANGES_COUNT {
            ranges.pop_front();
        }
        ranges.push_back((id, id));
    }

    /// Returns whether a stream is remembered. Ranges hold numbers of one parity only.
    pub(crate) fn contains(&self, id: u32) -> bool {
        let mut ranges = self.ranges.iter().flat_map(|ranges| ranges.iter());
        ranges.any(|(first, last)| (*first..=*last).contains(&id))
    }

    pub(crate) fn trim(&mut self) {
        if let Some(ranges) = &mut self.ranges {
            ranges.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_take_one_range() {
        let mut reset = ResetStreams::default();
        for id in (1..10_001).step_by(2) {
            reset.insert(id);
        }
        assert_eq!(reset.ranges.as_ref().map(|ranges| ranges.len()), Some(1));
        assert!(reset.contains(5001));
        assert!(!reset.contains(10_001));
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut reset = ResetStreams::default();
        for index in 0..=RESET_RANGES_COUNT as u32 {
            reset.insert(1 + 8 * index);
        }
        assert!(!reset.contains(1));
        assert!(reset.contains(9));
        assert_eq!(reset.ranges.as_ref().map(|ranges| ranges.len()), Some(RESET_RANGES_COUNT));
    }
}
