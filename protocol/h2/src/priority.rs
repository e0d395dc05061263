//! RFC 9218 §7.1: PRIORITY_UPDATE frames that come before their streams.

use bolide_semantics::Priority;

/// Priorities of streams that are not open yet.
#[derive(Debug, Default)]
pub(crate) struct EarlyPriorities {
    /// In a box, for most connections have none.
    #[allow(clippy::box_collection, reason = "a pointer is a third of a vector")]
    waiting: Option<Box<Vec<(u32, Priority)>>>,
}

impl EarlyPriorities {
    /// Remembers a priority; the oldest is forgotten when there are too many.
    pub(crate) fn insert(&mut self, stream: u32, priority: Priority) {
        let waiting = self.waiting.get_or_insert_default();
        waiting.retain(|(id, _)| *id != stream);
        if waiting.len() == crate::limits::EARLY_PRIORITIES_COUNT {
            waiting.remove(0);
        }
        waiting.push((stream, priority));
    }

    /// The priority of a stream that opens.
    #[inline]
    pub(crate) fn take(&mut self, stream: u32) -> Option<Priority> {
        let waiting = self.waiting.as_mut()?;
        let index = waiting.iter().position(|(id, _)| *id == stream)?;
        Some(waiting.swap_remove(index).1)
    }

    pub(crate) fn trim(&mut self) {
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    #[test]
    fn early_priorities_are_bounded() {
        let mut early = EarlyPriorities::default();
        for stream in 0..1000 {
            early.insert(stream, of((stream % 8) as u8, false));
        }
        assert_eq!(
            early.waiting.as_ref().map(|all| all.len()),
            Some(crate::limits::EARLY_PRIORITIES_COUNT)
        );
        assert_eq!(early.take(999), Some(of(7, false)));
        assert_eq!(early.take(999), None);
        assert_eq!(early.take(1), None);
    }
}
