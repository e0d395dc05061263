//! RFC 9218 §10: whose turn it is to send.
//!
//! Streams that have something to send, and that the transport would take it from, wait for their turn: the urgent
//! first; of one urgency those that are useless in parts each to its end, the others round-robin, and the two kinds
//! alternately.

use std::collections::BTreeMap;

use bolide_semantics::Priority;

/// Urgency, whether it shares, and its place among those: the order in which they came where they share, otherwise that of the
/// streams.
type Turn = (u8, bool, u64);

/// The streams that wait.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    waiting: BTreeMap<Turn, u32>,
    /// Counts turns.
    count: u64,
    /// Turn between the two kinds of one urgency.
    shared_turn: bool,
    /// How often the transport took something; wraps.
    pub(crate) taken_count: u32,
    /// Since when streams have waited for room that all share, and how much the transport took of all since, in bytes.
    pub(crate) stalled: Option<(u32, u32)>,
}

impl Scheduler {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The transport took so much of a stream.
    #[inline]
    pub(crate) fn took(&mut self, bytes: usize) {
        if bytes > 0 {
            self.taken_count = self.taken_count.wrapping_add(1);
            if let Some((_, taken)) = &mut self.stalled {
                *taken = taken.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        }
    }

    /// A stream waits for its turn among those of its priority; where they share, at the place that it has kept, or at the end.
    /// Returns its place.
    pub(crate) fn push(&mut self, number: u32, priority: Priority, kept: Option<u64>) -> u64 {
        self.count += 1;
        let last = kept.unwrap_or(self.count);
        let place = if priority.incremental { last } else { number.into() };
        self.waiting.insert((priority.urgency, priority.incremental, place), number);
        place
    }

    /// A stream waits no more.
    pub(crate) fn remove(&mut self, priority: Priority, place: u64) {
        self.waiting.remove(&(priority.urgency, priority.incremental, place));
    }

    /// Returns whose turn it is.
    pub(crate) fn next(&mut self) -> Option<u32> {
        let (&(urgency, shares, _), &number) = self.waiting.first_key_value()?;
        if shares {
            return Some(number);
        }
        let sharing = self.waiting.range((urgency, true, 0)..=(urgency, true, u64::MAX)).next();
        let Some((_, sharing)) = sharing else { return Some(number) };
        self.shared_turn = !self.shared_turn;
        Some(if self.shared_turn { *sharing } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(urgency: u8, incremental: bool) -> Priority {
        Priority { urgency, incremental }
    }

    /// Takes turns as sending does: who shares goes to the end.
    fn turns(scheduler: &mut Scheduler, count: usize) -> Vec<u32> {
        (0..count)
            .map(|_| {
                let number = scheduler.next().unwrap();
                let (turn, _) = scheduler.waiting.iter().find(|(_, it)| **it == number).unwrap();
                let (urgency, shares, place) = *turn;
                if shares {
                    scheduler.remove(of(urgency, shares), place);
                    scheduler.push(number, of(urgency, shares), None);
                }
                number
            })
            .collect()
    }

    #[test]
    fn the_urgent_come_first_and_equals_share() {
        let mut scheduler = Scheduler::default();
        for (number, urgency) in [(1, 3), (2, 3), (4, 3)] {
            scheduler.push(number, of(urgency, true), None);
        }
        let place = scheduler.push(3, of(1, false), None);
        assert_eq!(turns(&mut scheduler, 3), [3, 3, 3]);
        scheduler.remove(of(1, false), place);
        assert_eq!(turns(&mut scheduler, 5), [1, 2, 4, 1, 2]);
    }

    #[test]
    fn what_is_useless_in_parts_is_sent_in_the_order_of_the_streams() {
        let mut scheduler = Scheduler::default();
        for number in [4, 2, 9] {
            scheduler.push(number, of(3, false), None);
        }
        assert_eq!(scheduler.next(), Some(2));
        scheduler.remove(of(3, false), 2);
        scheduler.push(1, of(3, false), None);
        assert_eq!(scheduler.next(), Some(1));
    }

    #[test]
    fn what_is_useless_in_parts_is_sent_whole_and_the_kinds_alternate() {
        let mut scheduler = Scheduler::default();
        for (number, shares) in [(1, false), (2, false), (3, true), (4, true)] {
            scheduler.push(number, of(3, shares), None);
        }
        assert_eq!(turns(&mut scheduler, 6), [3, 1, 4, 1, 3, 1]);
        assert!(!scheduler.is_empty());
    }
}
