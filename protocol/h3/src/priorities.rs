//! RFC 9218 §7.2: PRIORITY_UPDATE frames, which may come before their requests.

use bolide_semantics::Priority;

use crate::limits::EARLY_PRIORITIES_COUNT;

/// Priorities of requests that have not come.
#[derive(Debug, Default)]
pub(crate) struct EarlyPriorities {
    waiting: Vec<(u32, Priority)>,
}

impl EarlyPriorities {
    /// Remembers a priority; the oldest is forgotten when there are too many.
    pub(crate) fn insert(&mut self, number: u32, priority: Priority) {
        self.waiting.retain(|(waiting, _)| *waiting != number);
        if self.waiting.len() == EARLY_PRIORITIES_COUNT {
            self.waiting.remove(0);
        }
        self.waiting.push((number, priority));
    }

    /// The priority of a request that comes.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> Option<Priority> {
        let index = self.waiting.iter().position(|(waiting, _)| *waiting == number)?;
        Some(self.waiting.swap_remove(index).1)
    }
}
