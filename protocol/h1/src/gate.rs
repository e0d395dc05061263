//! RFC 9112 §6: how much of a body is read before its reader has used what came before.

use crate::Limits;

/// Bytes of the current body that were reported and not consumed, and their limit.
///
/// The room grows for a reader that had all of it and used all of it, for a handler that passes a body on pays for a turn
/// of both its connections each time. A reader that is slower than the peer leaves some, and the room stays
/// as it is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gate {
    /// In bytes.
    unconsumed: u32,
    /// In bytes; 0 before it has grown.
    grown: u32,
}

impl Gate {
    /// How much may be unconsumed, in bytes.
    fn room(self, limits: &Limits) -> u32 {
        self.grown.max(limits.bodies.unconsumed_bytes).max(1)
    }

    /// Returns whether the reader has enough for now.
    #[inline]
    pub(crate) fn is_closed(self, limits: &Limits) -> bool {
        self.unconsumed >= self.room(limits)
    }

    /// Returns what was reported and not consumed, in bytes.
    #[inline]
    pub(crate) fn unconsumed(self) -> u32 {
        self.unconsumed
    }

    /// `bytes` were reported.
    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.unconsumed = self.unconsumed.saturating_add(bytes);
    }

    /// `bytes` were consumed.
    #[inline]
    pub(crate) fn consumed(&mut self, bytes: usize, limits: &Limits) {
        let was_closed = self.is_closed(limits);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.unconsumed = self.unconsumed.saturating_sub(bytes);
        if was_closed && self.unconsumed == 0 {
            let room = self.room(limits);
            self.grown = room.saturating_mul(2).min(limits.bodies.unconsumed_bytes_max).max(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn limits() -> Limits {
        Limits {
            bodies: limits::Bodies {
                unconsumed_bytes: 100,
                unconsumed_bytes_max: 350,
                ..limits::Bodies::DEFAULT
            },
            ..Limits::default()
        }
    }

    /// How much the gate lets through before it closes, in pieces of 10.
    fn fill(gate: &mut Gate) -> usize {
        let mut bytes = 0;
        while !gate.is_closed(&limits()) {
            gate.received(10);
            bytes += 10;
        }
        bytes
    }

    #[test]
    fn a_reader_that_takes_everything_is_given_more_at_a_time() {
        let mut gate = Gate::default();
        for room in [100, 200, 350, 350] {
            assert_eq!(fill(&mut gate), room);
            gate.consumed(room, &limits());
        }
    }

    #[test]
    fn a_reader_that_leaves_some_or_takes_it_as_it_comes_is_given_no_more() {
        let mut gate = Gate::default();
        assert_eq!(fill(&mut gate), 100);
        for _ in 0..10 {
            gate.consumed(60, &limits());
            assert_eq!(fill(&mut gate), 60);
        }
        let mut gate = Gate::default();
        for _ in 0..50 {
            gate.received(90);
            gate.consumed(90, &limits());
        }
        assert_eq!(fill(&mut gate), 100);
    }

    #[test]
    fn a_lower_bound_on_growth_than_the_first_room_changes_nothing() {
        let limits = Limits {
            bodies: limits::Bodies { unconsumed_bytes_max: 0, ..limits().bodies },
            ..limits()
        };
        let mut gate = Gate::default();
        gate.received(100);
        gate.consumed(100, &limits);
        gate.received(99);
        assert!(!gate.is_closed(&limits));
        gate.received(1);
        assert!(gate.is_closed(&limits));
    }
}
