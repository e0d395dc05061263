//! RFC 9218 §7.1: PRIORITY_UPDATE frames that come before their streams.

use bolide_semantics::Priority;

/// Priorities of streams that are not open yet.
#[derive(Debug, Default)]
pub(crate) struct EarlyPriorities {
    waiting: Vec<(u32, Priority)>,
}

impl EarlyPriorities {
    /// Remembers a priority; the oldest is forgotten when there are too many.
    pub(crate) fn insert(&mut self, stream: u32, priority: Priority) {
        self.waiting.retain(|(id, _)| *id != stream);
        if self.waiting.len() == crate::limits::EARLY_PRIORITIES_COUNT {
            self.waiting.remove(0);
        }
        self.waiting.push((stream, priority));
    }

    /// The priority of a stream that opens.
    #[inline]
    pub(crate) fn take(&mut self, stream: u32) -> Option<Priority> {
        if self.waiting.is_empty() {
            return None;
        }
        let index = self.waiting.iter().position(|(id, _)| *id == stream)?;
        Some(self.waiting.swap_remove(index).1)
    }

    pub(crate) fn trim(&mut self) {
        self.waiting = Vec::new();
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
        assert_eq!(early.waiting.len(), crate::limits::EARLY_PRIORITIES_COUNT);
        assert_eq!(early.take(999), Some(of(7, false)));
        assert_eq!(early.take(999), None);
        assert_eq!(early.take(1), None);
    }
}
